/* Applies the quota events to the cache's quotas, and recounts usage when the limits change. */
#include "cache_quota.h"

#include "core/limit.h"
#include "core/state/quota_usage.h"

/* Sets the limits, whose usage starts at 0, and then charges everything that is held. */
static enum errc cache_quota_set(struct cache *c, const struct quota_view *view)
{
    size_t cursor = 0;
    enum errc code = quota_set(&c->quota, view);
    if (code != OK)
        return code;
    for (const struct pod *p = map_next(&c->pods, &cursor); p != NULL;
         p = map_next(&c->pods, &cursor)) {
        if (pod_holds(p))
            quota_usage_charge(p, 1);
        if (p->keeper != NULL) /* no room is kept for a pod that a quota denies */
            node_stamp(p->keeper);
    }
    return OK;
}

static void cache_quota_clear(struct cache *c)
{
    assert(c->limited);
    enum errc code = cache_quota_set(c, &(struct quota_view){.n = 0});
    assert(code == OK);
    c->limited = false;
}

enum errc cache_quota_apply(struct cache *c, const struct cache_event *e, struct effect *ret)
{
    if (e->type == CACHE_QUOTA_GONE) {
        ret->changed = c->limited;
        if (c->limited)
            cache_quota_clear(c);
        return OK;
    }
    if (e->type == CACHE_QUOTA_SET) {
        enum errc code = cache_quota_set(c, &e->quota);
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
    cache_quota_clear(c);
    ret->changed = true;
    ret->unlimited = true;
    ret->swept++;
}

static void cache_quota_check_tenant(const struct cache *c, const struct quota_tenant *t)
{
    struct quota_sum sums[LIMIT_QUOTA_SCOPES];
    uint64_t stamps = 0;
    struct quota_tenant again = {.entry = t->entry, .used = sums, .stamps = &stamps};
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
            quota_usage_charge(&counted, 1);
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
        cache_quota_check_tenant(c, t);
}
