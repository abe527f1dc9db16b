/* A ring of links ordered by version, and an array of the last LIMIT_GONE names that were
 * removed. */
#include "core/changes.h"
#include "core/limit.h"

void changes_init(struct changes *c)
{
    *c = (struct changes){.version = 0};
    c->ring.next = c->ring.prev = &c->ring;
}

static void unlink(struct change_link *x)
{
    x->prev->next = x->next;
    x->next->prev = x->prev;
}

void change_move(struct change_link *x)
{
    struct changes *c = x->list;
    if (x->version > 0)
        unlink(x);
    x->version = ++c->version;
    x->prev = c->ring.prev;
    x->next = &c->ring;
    x->prev->next = x;
    c->ring.prev = x;
}

void change_end(struct change_link *x, struct str name)
{
    struct changes *c = x->list;
    if (c == NULL || x->version == 0)
        return;
    unlink(x);
    struct change_gone *g = &c->gone[c->n_gone % LIMIT_GONE];
    c->lost = MAX_OF(c->lost, g->version);
    c->n_gone++;
    *g = (struct change_gone){.version = ++c->version, .n = name.n};
    if (name.n <= CHANGES_NAME_MAX) {
        memcpy(g->name, name.p, name.n);
    } else { /* longer than any object's name: counts as a removal that readers have missed */
        g->n = 0;
        c->lost = g->version;
    }
}

uint64_t changes_see(struct changes *c)
{
    c->seen = c->version;
    return c->seen;
}

const struct change_link *changes_after(const struct changes *c, uint64_t version)
{
    const struct change_link *x = &c->ring;
    if (version == 0)
        return changes_next(c, x);
    while (x->prev != &c->ring && x->prev->version > version)
        x = x->prev;
    return x == &c->ring ? NULL : x;
}

const struct change_link *changes_next(const struct changes *c, const struct change_link *x)
{
    return x->next == &c->ring ? NULL : x->next;
}

const struct change_gone *changes_gone(const struct changes *c, uint64_t version, uint64_t *cursor)
{
    uint64_t first = c->n_gone > LIMIT_GONE ? c->n_gone - LIMIT_GONE : 0;
    for (*cursor = MAX_OF(*cursor, first); *cursor < c->n_gone;) {
        const struct change_gone *g = &c->gone[(*cursor)++ % LIMIT_GONE];
        if (g->version > version && g->n > 0)
            return g;
    }
    return NULL;
}
