/* The simulation's machinery: random numbers, the heap of planned events, and text buffers. */
#include "sim.h"

#include <stdio.h>
#include <stdlib.h>

struct world world;

/* SplitMix64: it works from every state, 0 included. */
uint64_t random_next(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15U);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
}

/* ---- the plan: a binary heap; the earliest first, among equals the one planned first ---- */

static struct {
    struct happening **at; /* index 0 is unused */
    size_t n;
    size_t cap;
    uint64_t planned;
} heap;

static bool before(const struct happening *a, const struct happening *b)
{
    return a->due_ms != b->due_ms ? a->due_ms < b->due_ms : a->order < b->order;
}

static void heap_set(size_t i, struct happening *h)
{
    heap.at[i] = h;
    h->at = i;
}

static void heap_up(size_t i)
{
    struct happening *h = heap.at[i];
    while (i > 1 && before(h, heap.at[i / 2])) {
        heap_set(i, heap.at[i / 2]);
        i /= 2;
    }
    heap_set(i, h);
}

static void heap_down(size_t i)
{
    struct happening *h = heap.at[i];
    for (size_t child = 2 * i; child <= heap.n; child = 2 * i) {
        if (child < heap.n && before(heap.at[child + 1], heap.at[child]))
            child++;
        if (!before(heap.at[child], h))
            break;
        heap_set(i, heap.at[child]);
        i = child;
    }
    heap_set(i, h);
}

void unplan(struct happening *h)
{
    size_t i = h->at;
    if (i == 0)
        return;
    h->at = 0;
    struct happening *last = heap.at[heap.n--];
    if (last == h)
        return;
    heap_set(i, last);
    heap_up(i);
    heap_down(last->at);
}

void plan(struct happening *h, uint64_t delay_ms)
{
    unplan(h);
    if (heap.n + 2 > heap.cap) {
        heap.cap = heap.cap == 0 ? 256 : heap.cap * 2;
        heap.at = sim_resize((void *)heap.at, heap.cap * sizeof(struct happening *));
    }
    h->due_ms = world.now_ms + delay_ms;
    h->order = heap.planned++;
    heap.n++;
    heap_set(heap.n, h);
    heap_up(heap.n);
}

struct happening *plan_first(void)
{
    return heap.n == 0 ? NULL : heap.at[1];
}

void plan_forget_all(void)
{
    for (size_t i = 1; i <= heap.n; i++)
        heap.at[i]->at = 0;
    heap.n = 0;
    heap.planned = 0;
}

/* ---- text ---- */

static void *there(void *p)
{
    if (p == NULL) {
        (void)fprintf(stderr, "the simulation itself is out of memory\n");
        exit(EXIT_FAILURE);
    }
    return p;
}

void *sim_alloc(size_t size)
{
    return there(calloc(1, size));
}

void *sim_resize(void *p, size_t size)
{
    return there(realloc(p, size));
}

void text_put(struct text *t, struct str s)
{
    if (t->n + s.n > t->cap) {
        t->cap = MAX_OF(t->n + s.n, t->cap * 2 + 256);
        t->p = sim_resize(t->p, t->cap);
    }
    if (s.n > 0)
        memcpy(t->p + t->n, s.p, s.n);
    t->n += s.n;
}

void text_u64(struct text *t, uint64_t v)
{
    char digits[20];
    size_t i = sizeof(digits);
    do {
        digits[--i] = (char)('0' + v % 10);
        v /= 10;
    } while (v > 0);
    text_put(t, (struct str){digits + i, sizeof(digits) - i});
}

void text_quoted(struct text *t, struct str s)
{
    text_put(t, STR("\""));
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        if (c == '"' || c == '\\')
            text_put(t, STR("\\"));
        text_put(t, (struct str){&c, 1});
    }
    text_put(t, STR("\""));
}

void text_done(struct text *t)
{
    free(t->p);
    *t = (struct text){.p = NULL};
}

struct name name_of(const char *prefix, uint64_t number)
{
    struct name n;
    (void)snprintf(n.z, sizeof(n.z), "%s%llu", prefix, (unsigned long long)number);
    return n;
}

struct name name_from(struct str s)
{
    struct name n = {.z = ""};
    memcpy(n.z, s.p == NULL ? "" : s.p, MIN_OF(s.n, sizeof(n.z) - 1));
    return n;
}
