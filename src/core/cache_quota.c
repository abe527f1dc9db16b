/* Applies the quota events to the cache's quotas, and recounts usage when the limits change. */
#include "cache_quota.h"

#include "core/limit.h"
#include "core/uses.h"

/* Sets the limits, whose usage starts at 0, and then charges everything that is held. */
static enum errc set(struct cache *c, const struct quota_view *view)
{
    size_t cursor = 0;
    enum errc code = quota_set(&c->quota, view);
    if (code != OK)
        return code;
    for (const struct pod *p = map_next(&c->pods, &cursor); p != NULL;
         p = map_next(&c->pods, &cursor)) {
        if (pod_holds(p))
            uses_charge(p, 1);
    }
    return OK;
}

static void clear(struct cache *c)
{
    enum errc code = set(c, &(struct quota_view){.n = 0});
    assert(code == OK);
    c->limited = false;
}

enum errc cache_quota_apply(struct cache *c, const struct event *e, struct effect *ret)
{
    if (e->type == EVENT_QUOTA_GONE) {
        ret->changed = c->limited;
        if (c->limited)
            clear(c);
        return OK;
    }
    if (e->type == EVENT_QUOTA_SET) {
        enum errc code = set(c, &e->quota);
        if (code != OK)
            return code;
        c->limited = true;
        ret->changed = true;
    }
    c->quota_epoch = c->lists[CACHE_HEALTH].epoch;
    return OK;
}

void cache_quota_sweep(struct cache *c, struct effect *ret)
{
    if (!c->limited || c->quota_epoch == c->lists[CACHE_HEALTH].epoch)
        return;
    clear(c);
    ret->changed = true;
    ret->unlimited = true;
    ret->swept++;
}

static void check_tenant(const struct cache *c, const struct quota_tenant *t)
{
    struct quota_sum sums[LIMIT_QUOTA_SCOPES];
    struct quota_tenant again = {.entry = t->entry, .used = sums};
    size_t n = t->entry == NULL ? 0 : t->entry->n_limits;
    size_t members = 0;
    size_t cursor = 0;
    assert(n <= LIMIT_QUOTA_SCOPES);
    memset(sums, 0, sizeof(sums));
    for (const struct pod *p = map_next(&c->pods, &cursor); p != NULL;
         p = map_next(&c->pods, &cursor)) {
        if (p->tenant != t)
            continue;
        struct pod counted = *p;
        counted.tenant = &again;
        members++;
        if (pod_holds(p))
            uses_charge(&counted, 1);
    }
    assert(members == t->members);
    for (size_t i = 0; i < n; i++)
        assert(memcmp(&sums[i], &t->used[i], sizeof(sums[i])) == 0);
}

void cache_quota_check(const struct cache *c)
{
    size_t cursor = 0;
    quota_check(&c->quota);
    for (const struct pod *p = map_next(&c->pods, &cursor); p != NULL;
         p = map_next(&c->pods, &cursor))
        assert(str_eq(p->tenant->namespace, p->namespace));
    cursor = 0;
    for (const struct quota_tenant *t = map_next(&c->quota.tenants, &cursor); t != NULL;
         t = map_next(&c->quota.tenants, &cursor))
        check_tenant(c, t);
}
