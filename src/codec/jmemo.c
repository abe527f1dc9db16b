/* An object replaces the one that was not used for the longest time, in the same memory if that is
 * enough: requests about pods of one size soon need no allocation. */
#include "codec/jmemo.h"

#include "base/mem.h"
#include "codec/limit.h"

#define BYTES_MIN ((size_t)4 * KIB)
#define SKIPS_MIN 64

void jmemo_done(struct jmemo *m)
{
    for (size_t i = 0; i < JMEMO_TEXTS; i++) {
        mem_free(m->all[i].bytes);
        mem_free(m->all[i].skips);
    }
    *m = (struct jmemo){.asked = 0};
}

const struct jmemo_text *jmemo_find(struct jmemo *m, struct str rest, unsigned depth)
{
    for (size_t i = 0; i < JMEMO_TEXTS; i++) {
        struct jmemo_text *t = &m->all[i];
        if (t->n > 0 && t->n <= rest.n && t->depth == depth &&
            memcmp(t->bytes, rest.p, t->n) == 0) {
            t->asked = ++m->asked;
            return t;
        }
    }
    return NULL;
}

/* A place for an object; it is empty. */
static struct jmemo_text *jmemo_oldest(struct jmemo *m)
{
    struct jmemo_text *t = &m->all[0];
    for (size_t i = 1; i < JMEMO_TEXTS; i++)
        t = m->all[i].asked < t->asked ? &m->all[i] : t;
    t->n = 0;
    t->n_skips = 0;
    t->torn = false;
    return t;
}

struct jmemo_read jmemo_begin(struct jmemo *m, struct str rest, unsigned depth)
{
    const struct jmemo_text *known = jmemo_find(m, rest, depth);
    return (struct jmemo_read){.known = known, .learned = known == NULL ? jmemo_oldest(m) : NULL};
}

size_t jmemo_skip(struct jmemo_read *r, size_t from)
{
    const struct jmemo_text *t = r->known;
    while (r->next < t->n_skips && t->skips[r->next].from < from)
        r->next++;
    if (r->next == t->n_skips || t->skips[r->next].from != from)
        return 0;
    return t->skips[r->next++].to;
}

void jmemo_note(struct jmemo_read *r, size_t from, size_t to)
{
    struct jmemo_text *t = r->learned;
    t->torn = t->torn || to > LIMIT_JMEMO_BYTES;
    if (t->torn)
        return;
    if (t->n_skips == t->cap_skips) {
        uint32_t cap = MAX_OF(2 * t->cap_skips, (uint32_t)SKIPS_MIN);
        struct jmemo_skip *grown = mem_resize(t->skips, cap * sizeof(*grown));
        t->torn = grown == NULL;
        if (t->torn)
            return;
        t->skips = grown;
        t->cap_skips = cap;
    }
    t->skips[t->n_skips++] = (struct jmemo_skip){(uint32_t)from, (uint32_t)to};
}

void jmemo_end(struct jmemo *m, struct jmemo_read *r, struct str text, unsigned depth)
{
    struct jmemo_text *t = r->learned;
    *r = (struct jmemo_read){.next = 0};
    /* Only an object ends where its last byte is, whatever follows. */
    if (t == NULL || t->torn || text.n == 0 || text.n > LIMIT_JMEMO_BYTES || text.p[0] != '{')
        return;
    if (t->cap < text.n) {
        size_t cap = MAX_OF(t->cap, BYTES_MIN);
        while (cap < text.n)
            cap *= 2;
        char *grown = mem_resize(t->bytes, cap);
        if (grown == NULL)
            return;
        t->bytes = grown;
        t->cap = cap;
    }
    memcpy(t->bytes, text.p, text.n);
    t->n = text.n;
    t->depth = depth;
    t->asked = ++m->asked;
}
