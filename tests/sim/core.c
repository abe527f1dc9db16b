/* The simulation's machinery: random numbers, the heap of planned events, and memory. */
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

/* ---- memory ---- */

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
