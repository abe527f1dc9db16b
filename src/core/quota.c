/*
 * Usage and limits of namespaces. A tenant is a namespace with members. It has a sum for each limit
 * of its entry: a charge adds to the sums whose limits apply to the share, and quota_fit compares
 * the same ones. The limits are copied into one arena, which is replaced whole.
 *
 * Rejected: sums by pool and model, from which the usage of new limits could be computed without
 * the caller. A share of a new pool or model would then need memory; but a pod that another
 * scheduler has bound must be charged even without memory.
 */
#include "core/quota.h"

#include "base/mem.h"
#include "core/limit.h"
#include "core/pattern.h"

#define EVERYBODY STR("*")

/* Longest name shown in a reason, in bytes. A namespace or a label has at most 63. */
#define NAME_SHOWN 64

static void quota_tables_init(struct quota *q, struct map_seed seed)
{
    map_init(&q->entries, offsetof(struct quota_entry, namespace), seed);
    arena_init(&q->arena, LIMIT_QUOTA_ARENA);
}

static void quota_tables_done(struct quota *q)
{
    map_done(&q->entries);
    arena_done(&q->arena);
}

void quota_init(struct quota *q, struct map_seed seed)
{
    *q = (struct quota){.arena = {.max = 0}};
    quota_tables_init(q, seed);
    map_init(&q->tenants, offsetof(struct quota_tenant, namespace), seed);
}

static void quota_tenant_free(struct quota_tenant *t)
{
    mem_free(t->used);
    mem_free(t);
}

void quota_done(struct quota *q)
{
    size_t cursor = 0;
    for (struct quota_tenant *t = map_next(&q->tenants, &cursor); t != NULL;
         t = map_next(&q->tenants, &cursor))
        quota_tenant_free(t);
    map_done(&q->tenants);
    quota_tables_done(q);
}

/* Copies the names; NULL for none. A failure is in the arena. */
static struct str *quota_copy_names(struct arena *a, const struct str *names, size_t n)
{
    struct str *copy = n == 0 ? NULL : arena_array(a, n, sizeof(*copy));
    for (size_t i = 0; copy != NULL && i < n; i++)
        copy[i] = arena_dup(a, names[i]);
    return copy;
}

static struct quota_limit *quota_copy_limits(struct arena *a, const struct quota_limit *limits,
                                             size_t n)
{
    struct quota_limit *copy = n == 0 ? NULL : arena_array(a, n, sizeof(*copy));
    for (size_t i = 0; copy != NULL && i < n; i++) {
        copy[i] = limits[i];
        copy[i].name = limits[i].name.p == NULL ? STR_NULL : arena_dup(a, limits[i].name);
    }
    return copy;
}

static enum errc quota_copy_entry(struct quota *q, const struct quota_entry *entry)
{
    struct arena *a = &q->arena;
    struct quota_entry *copy = arena_alloc(a, sizeof(*copy));
    if (copy == NULL)
        return ERR_NOMEM;
    *copy = *entry;
    copy->namespace = arena_dup(a, entry->namespace);
    copy->limits = quota_copy_limits(a, entry->limits, entry->n_limits);
    copy->pools = quota_copy_names(a, entry->pools, entry->n_pools);
    copy->models = quota_copy_names(a, entry->models, entry->n_models);
    if (arena_failed(a))
        return ERR_NOMEM;
    assert(map_get(&q->entries, copy->namespace) == NULL);
    return map_put(&q->entries, copy);
}

static const struct quota_entry *quota_entry_of(const struct quota *q, struct str namespace)
{
    const struct quota_entry *entry = map_get(&q->entries, namespace);
    return entry != NULL ? entry : map_get(&q->entries, EVERYBODY);
}

static size_t quota_limits_of(const struct quota_entry *entry)
{
    return entry == NULL ? 0 : entry->n_limits;
}

/* New sums of 0 for the limits of an entry; *ret is NULL without limits. */
static enum errc quota_sums_new(const struct quota_entry *entry, struct quota_sum **ret)
{
    *ret = NULL;
    if (entry == NULL || entry->n_limits == 0)
        return OK;
    *ret = mem_alloc(entry->n_limits * sizeof(**ret));
    return *ret == NULL ? ERR_NOMEM : OK;
}

/* Replaces the limits by those of `from`. Every tenant has its new sums in `next`. */
static void quota_take_over(struct quota *q, struct quota *from)
{
    size_t cursor = 0;
    quota_tables_done(q);
    q->entries = from->entries;
    q->arena = from->arena;
    q->version = ++q->stamps;
    for (struct quota_tenant *t = map_next(&q->tenants, &cursor); t != NULL;
         t = map_next(&q->tenants, &cursor)) {
        mem_free(t->used);
        t->used = t->next;
        t->next = NULL;
        t->entry = quota_entry_of(q, t->namespace);
        t->version = ++q->stamps;
        assert((t->used != NULL) == (quota_limits_of(t->entry) > 0));
    }
}

static void quota_give_up(struct quota *q, struct quota *from)
{
    size_t cursor = 0;
    for (struct quota_tenant *t = map_next(&q->tenants, &cursor); t != NULL;
         t = map_next(&q->tenants, &cursor)) {
        mem_free(t->next);
        t->next = NULL;
    }
    quota_tables_done(from);
}

enum errc quota_set(struct quota *q, const struct quota_view *view)
{
    struct quota fresh = {.arena = {.max = 0}};
    enum errc code = OK;
    size_t cursor = 0;
    quota_tables_init(&fresh, q->entries.seed);
    for (size_t i = 0; code == OK && i < view->n; i++)
        code = quota_copy_entry(&fresh, &view->entries[i]);
    for (struct quota_tenant *t = map_next(&q->tenants, &cursor); code == OK && t != NULL;
         t = map_next(&q->tenants, &cursor))
        code = quota_sums_new(quota_entry_of(&fresh, t->namespace), &t->next);
    if (code == OK)
        quota_take_over(q, &fresh);
    else
        quota_give_up(q, &fresh);
    return code;
}

struct quota_tenant *quota_join(struct quota *q, struct str namespace)
{
    struct quota_tenant *t = map_get(&q->tenants, namespace);
    if (t != NULL) {
        t->members++;
        return t;
    }
    t = mem_alloc(sizeof(*t) + namespace.n);
    if (t == NULL)
        return NULL;
    char *at = (char *)(t + 1);
    t->namespace = str_store(&at, namespace);
    t->members = 1;
    t->entry = quota_entry_of(q, namespace);
    t->stamps = &q->stamps;
    t->version = ++q->stamps;
    if (quota_sums_new(t->entry, &t->used) != OK || map_put(&q->tenants, t) != OK) {
        quota_tenant_free(t);
        return NULL;
    }
    return t;
}

void quota_leave(struct quota *q, struct quota_tenant *t)
{
    assert(t->members > 0);
    if (--t->members > 0)
        return;
    for (size_t i = 0; i < quota_limits_of(t->entry); i++) {
        for (unsigned k = 0; k < QUOTA_KINDS; k++)
            assert(t->used[i].of[k] == 0);
    }
    const struct quota_tenant *known = map_del(&q->tenants, t->namespace);
    assert(known == t);
    quota_tenant_free(t);
}

static bool quota_within(const struct quota_limit *limit, const struct quota_use *use,
                         uint64_t *compared)
{
    switch (limit->scope) {
    case QUOTA_TOTAL:
        return true;
    case QUOTA_POOL:
        return str_eq(limit->name, use->pool);
    case QUOTA_MODEL:
        return pattern_match(limit->name, use->model, compared);
    }
    return false;
}

void quota_charge(struct quota_tenant *t, const struct quota_use *use, int sign)
{
    assert(sign == 1 || sign == -1);
    uint64_t compared = 0;
    assert(t->used != NULL || quota_limits_of(t->entry) == 0);
    for (size_t i = 0; i < quota_limits_of(t->entry); i++) {
        if (!quota_within(&t->entry->limits[i], use, &compared))
            continue;
        for (unsigned k = 0; k < QUOTA_KINDS; k++) {
            assert(use->amount[k] >= 0);
            t->used[i].of[k] += (__int128)use->amount[k] * sign;
            assert(t->used[i].of[k] >= 0);
        }
        if (t->stamps != NULL) /* a plan's tenant has no versions */
            t->version = ++*t->stamps;
    }
}

struct quota_account quota_account(const struct quota *q, struct str namespace)
{
    const struct quota_tenant *t = map_get(&q->tenants, namespace);
    if (t != NULL)
        return (struct quota_account){namespace, t->entry, t->used, t->version};
    return (struct quota_account){namespace, quota_entry_of(q, namespace), NULL, q->version};
}

static bool quota_is_listed(const struct str *pools, size_t n, struct str pool)
{
    for (size_t i = 0; i < n; i++) {
        if (str_eq(pools[i], pool))
            return true;
    }
    return false;
}

static bool quota_is_matched(const struct str *models, size_t n, struct str model,
                             uint64_t *compared)
{
    for (size_t i = 0; i < n; i++) {
        if (pattern_match(models[i], model, compared))
            return true;
    }
    return false;
}

static bool quota_asks(const struct quota_use *use)
{
    for (unsigned k = 0; k < QUOTA_KINDS; k++) {
        if (use->amount[k] > 0)
            return true;
    }
    return false;
}

static bool quota_is_allowed(const struct quota_entry *entry, const struct quota_use *use,
                             struct quota_refusal *ret, uint64_t *compared)
{
    if (entry->n_pools > 0 && !quota_is_listed(entry->pools, entry->n_pools, use->pool)) {
        ret->fault = QUOTA_POOL_DENIED;
        ret->name = use->pool;
        return false;
    }
    if (entry->n_models > 0 &&
        !quota_is_matched(entry->models, entry->n_models, use->model, compared)) {
        ret->fault = QUOTA_MODEL_DENIED;
        ret->name = use->model;
        return false;
    }
    return true;
}

static int64_t quota_cut(__int128 n)
{
    return (int64_t)MIN_OF(n, (__int128)INT64_MAX);
}

static bool quota_is_kept(const struct quota_limit *limit, const struct quota_sum *used,
                          const struct quota_use *uses, size_t n, struct quota_refusal *ret,
                          uint64_t *compared)
{
    struct quota_sum asked = {.of = {0}};
    for (size_t i = 0; i < n; i++) {
        bool counts = quota_within(limit, &uses[i], compared);
        for (unsigned k = 0; k < QUOTA_KINDS; k++)
            asked.of[k] += counts ? uses[i].amount[k] : 0;
    }
    for (unsigned k = 0; k < QUOTA_KINDS; k++) {
        __int128 held = used == NULL ? 0 : used->of[k];
        assert(held >= 0);
        if (limit->most[k] < 0 || asked.of[k] <= 0 || held + asked.of[k] <= limit->most[k])
            continue;
        ret->fault = QUOTA_EXCEEDED;
        ret->scope = limit->scope;
        ret->name = limit->name;
        ret->kind = (enum quota_kind)k;
        ret->limit = limit->most[k];
        ret->used = quota_cut(held);
        ret->asked = quota_cut(asked.of[k]);
        return false;
    }
    return true;
}

bool quota_fit(const struct quota_account *a, const struct quota_use *uses, size_t n,
               struct quota_refusal *ret, uint64_t *compared)
{
    struct quota_refusal refusal = {.namespace = a->namespace};
    bool fits = true;
    if (a->entry == NULL)
        return true;
    for (size_t i = 0; fits && i < n; i++)
        fits = !quota_asks(&uses[i]) || quota_is_allowed(a->entry, &uses[i], &refusal, compared);
    for (size_t i = 0; fits && i < a->entry->n_limits; i++)
        fits = quota_is_kept(&a->entry->limits[i], a->used == NULL ? NULL : &a->used[i], uses, n,
                             &refusal, compared);
    if (!fits)
        *ret = refusal;
    return fits;
}

bool quota_refusal_equal(const struct quota_refusal *a, const struct quota_refusal *b)
{
    return a->fault == b->fault && a->scope == b->scope && a->kind == b->kind &&
           a->limit == b->limit && a->used == b->used && a->asked == b->asked &&
           str_eq(a->name, b->name);
}

bool quota_refusal_is_final(const struct quota_refusal *r)
{
    return r->fault != QUOTA_EXCEEDED || r->asked > r->limit;
}

/* The start of a name, whole characters only. A model can be any text of a node's annotation. */
static struct str quota_head_of(struct str s)
{
    struct str rest = s;
    uint32_t rune = 0;
    for (size_t n = str_utf8(rest, &rune); n > 0 && s.n - rest.n + n <= NAME_SHOWN;
         n = str_utf8(rest, &rune))
        rest = str_skip(rest, n);
    return (struct str){s.p, s.n - rest.n};
}

static void quota_write_denied(const char *what, const char *without, struct str name,
                               struct buf *to)
{
    if (name.n == 0)
        buf_printf(to, "%s", without);
    else
        buf_printf(to, "%s \"%.*s\" is", what, STR_ARG(quota_head_of(name)));
    buf_put(to, STR(" not allowed"));
}

static void quota_write_exceeded(const struct quota_refusal *r, struct buf *to)
{
    static const char *const kinds[QUOTA_KINDS] = {
        [QUOTA_MEMORY] = "memory", [QUOTA_CARDS] = "cards", [QUOTA_COMPUTE] = "compute"};
    assert((unsigned)r->kind < QUOTA_KINDS && r->asked > 0);
    buf_printf(to, "%s", kinds[r->kind]);
    if (r->scope == QUOTA_MODEL)
        buf_printf(to, " of model %.*s", STR_ARG(quota_head_of(r->name)));
    else if (r->scope == QUOTA_POOL && r->name.n == 0)
        buf_put(to, STR(" on nodes without a pool"));
    else if (r->scope == QUOTA_POOL)
        buf_printf(to, " in pool %.*s", STR_ARG(quota_head_of(r->name)));
    buf_printf(to, ": %lld of %lld used, %lld asked", (long long)r->used, (long long)r->limit,
               (long long)r->asked);
}

void quota_refusal_write(const struct quota_refusal *r, struct buf *to)
{
    buf_printf(to, "quota of namespace %.*s: ", STR_ARG(quota_head_of(r->namespace)));
    switch (r->fault) {
    case QUOTA_EXCEEDED:
        quota_write_exceeded(r, to);
        break;
    case QUOTA_POOL_DENIED:
        quota_write_denied("pool", "nodes without a pool are", r->name, to);
        break;
    case QUOTA_MODEL_DENIED:
        quota_write_denied("card model", "cards of an unknown model are", r->name, to);
        break;
    }
}

void quota_check(const struct quota *q)
{
    size_t cursor = 0;
    for (const struct quota_tenant *t = map_next(&q->tenants, &cursor); t != NULL;
         t = map_next(&q->tenants, &cursor)) {
        assert(t->members > 0 && t->entry == quota_entry_of(q, t->namespace) && t->next == NULL);
        assert((t->used != NULL) == (quota_limits_of(t->entry) > 0));
        for (size_t i = 0; i < quota_limits_of(t->entry); i++) {
            for (unsigned k = 0; k < QUOTA_KINDS; k++)
                assert(t->used[i].of[k] >= 0);
        }
    }
}
