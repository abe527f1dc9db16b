/* The table of refused pods, searched linearly: it is small. */
#include "daemon/evict/refusals.h"
#include "daemon/limit.h"

/* A node name (a DNS subdomain) and its NUL. */
#define NODE_BYTES 254

void refusals_init(struct refusals *r)
{
    *r = (struct refusals){.all = {{.uid_n = 0}}};
    for (size_t i = 0; i < COUNT_OF(r->all); i++)
        buf_init(&r->all[i].nodes, (size_t)LIMIT_REFUSAL_NODES * NODE_BYTES);
}

void refusals_done(struct refusals *r)
{
    for (size_t i = 0; i < COUNT_OF(r->all); i++)
        buf_done(&r->all[i].nodes);
}

struct refusal *refusals_get(struct refusals *r, struct str uid)
{
    for (size_t i = 0; i < COUNT_OF(r->all); i++) {
        if (refusal_used(&r->all[i]) && str_eq(refusal_uid(&r->all[i]), uid))
            return &r->all[i];
    }
    return NULL;
}

/* Whether to drop entry a rather than b: unused, of lower priority, or refused later. */
static bool refusals_matters_less(const struct refusal *a, const struct refusal *b)
{
    if (!refusal_used(a) || !refusal_used(b))
        return !refusal_used(a);
    return a->priority != b->priority ? a->priority < b->priority : a->since_ms > b->since_ms;
}

static void refusals_clear(struct refusal *f)
{
    struct buf nodes = f->nodes;
    *f = (struct refusal){.nodes = nodes};
    buf_clear(&f->nodes, SIZE_MAX);
}

static struct refusal *refusals_take_slot(struct refusals *r, struct str uid, int32_t priority)
{
    struct refusal *f = &r->all[0];
    for (size_t i = 1; i < COUNT_OF(r->all); i++) {
        if (refusals_matters_less(&r->all[i], f))
            f = &r->all[i];
    }
    if (refusal_used(f) && f->priority >= priority)
        return NULL;
    refusals_clear(f);
    memcpy(f->uid, uid.p, uid.n);
    f->uid_n = uid.n;
    return f;
}

struct refusal *refusals_note(struct refusals *r, struct str uid, int32_t priority, uint64_t now_ms)
{
    if (uid.n == 0 || uid.n > REFUSAL_UID_BYTES)
        return NULL;
    struct refusal *f = refusals_get(r, uid);
    if (f == NULL) {
        f = refusals_take_slot(r, uid, priority);
        if (f == NULL)
            return NULL;
        f->since_ms = now_ms;
    }
    f->priority = priority;
    f->last_ms = now_ms;
    f->n_nodes = 0;
    buf_clear(&f->nodes, SIZE_MAX);
    return f;
}

void refusal_add(struct refusal *f, struct str node)
{
    if (f->n_nodes == LIMIT_REFUSAL_NODES || node.n >= NODE_BYTES ||
        !buf_reserve(&f->nodes, node.n + 1))
        return;
    buf_put(&f->nodes, node);
    buf_putc(&f->nodes, '\0');
    f->n_nodes++;
}

void refusals_forget(struct refusals *r, struct str uid)
{
    struct refusal *f = refusals_get(r, uid);
    if (f != NULL)
        refusals_clear(f);
}

bool refusal_next(struct str nodes, size_t *cursor, struct str *ret)
{
    if (*cursor >= nodes.n)
        return false;
    *ret = str_of(nodes.p + *cursor);
    *cursor += ret->n + 1;
    return true;
}

struct refusal *refusals_due(struct refusals *r, uint64_t after_ms, uint64_t now_ms)
{
    struct refusal *best = NULL;
    for (size_t i = 0; i < COUNT_OF(r->all); i++) {
        struct refusal *f = &r->all[i];
        if (!refusal_used(f) || now_ms < f->since_ms + after_ms || now_ms < f->not_before_ms)
            continue;
        if (best == NULL || refusals_matters_less(best, f))
            best = f;
    }
    return best;
}
