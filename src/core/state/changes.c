/* A list ordered by version, and an array of the last LIMIT_GONE names that were removed. */
#include "core/state/changes.h"
#include "core/limit.h"

void changes_init(struct changes *c)
{
    *c = (struct changes){.version = 0};
    list_init(&c->all);
}

void change_move(struct change_link *x)
{
    struct changes *c = x->list;
    assert(x->version <= c->version && (x->version > 0) == list_is_linked(&x->link));
    if (x->version > 0)
        list_remove(&x->link);
    x->version = ++c->version;
    list_push_back(&c->all, &x->link);
}

void change_end(struct change_link *x, struct str name)
{
    struct changes *c = x->list;
    if (c == NULL || x->version == 0)
        return;
    assert(x->version <= c->version);
    list_remove(&x->link);
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
    assert(c->seen <= c->version);
    c->seen = c->version;
    return c->seen;
}

const struct change_link *changes_after(const struct changes *c, uint64_t version)
{
    if (version == 0)
        return LIST_FIRST(&c->all, struct change_link, link);
    const struct change_link *found = NULL;
    const struct change_link *x = LIST_LAST(&c->all, struct change_link, link);
    while (x != NULL && x->version > version) {
        found = x;
        x = LIST_PREV(&c->all, x, struct change_link, link);
    }
    return found;
}

const struct change_link *changes_next(const struct changes *c, const struct change_link *x)
{
    return LIST_NEXT(&c->all, x, struct change_link, link);
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
