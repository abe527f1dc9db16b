/*
 * Random histories of pods that come and go and of limits that change. After each step the quota is
 * compared with a model, which keeps only a list of shares and the limits in force, and counts for
 * each question. Sometimes memory fails. A failure prints its seed and step:
 *
 * QUOTA_MODEL_SEED=17 QUOTA_MODEL_HISTORIES=1 test_quota_model
 */
#include "core/quota.h"

#include "fail_alloc.h"
#include "seeded.h"

#include <fnmatch.h>
#include <stdio.h>

#define STEPS      300
#define PODS       12
#define SHARES     3
#define ENTRIES    4
#define LIMITS     4
#define NAMESPACES 5 /* one more than the entries name */

/* The last entry is for all other namespaces. */
static const char *const namespaces[NAMESPACES] = {"ns-a", "ns-b", "ns-c", "ns-d", "ns-e"};
static const char *const entry_names[ENTRIES] = {"ns-a", "ns-b", "ns-c", "*"};
static const char *const pools[] = {"gold", "silver", "", NULL};
static const char *const models[] = {"NVIDIA-A100-SXM", "nvidia-a10", "T4", "", NULL};
static const char *const patterns[] = {"nvidia-a100*", "*A10*", "t4", "*", "", "x*"};

struct m_pod {
    bool known;
    size_t namespace;
    size_t n; /* shares that the pod holds; 0: none yet */
    struct quota_use shares[SHARES];
    struct quota_tenant *tenant;
};

struct m_entry {
    bool is;
    size_t n_limits, n_pools, n_models;
    struct quota_limit limits[LIMITS];
    struct str pools[2];
    struct str models[2];
};

struct trial {
    struct quota q;
    struct m_pod pods[PODS];
    struct m_entry entries[ENTRIES];
    uint64_t random;
    uint64_t seed;
    unsigned step;
    unsigned refused[3];
    unsigned passed;
    unsigned starved;
};

/* Not ck_assert: it sends a message to the parent process even when it holds. */
#define trial_assert(t, condition)                                                          \
    do {                                                                                    \
        if (!(condition))                                                                   \
            ck_abort_msg("seed %llu step %u: %s", (unsigned long long)(t)->seed, (t)->step, \
                         #condition);                                                       \
    } while (0)

static uint32_t draw(struct trial *t, uint32_t below)
{
    return seeded_draw(&t->random, below);
}

static void arm_sometimes(struct trial *t)
{
    if (draw(t, 100) < 15)
        fail_alloc_arm(draw(t, 2) == 0 ? FAIL_ONCE : FAIL_FROM_THEN_ON, draw(t, 8) + 1);
    else
        fail_alloc_arm(FAIL_NEVER, 1);
}

static struct quota_use draw_use(struct trial *t)
{
    struct quota_use use = {
        str_of(pools[draw(t, COUNT_OF(pools))]), str_of(models[draw(t, COUNT_OF(models))]), {0}};
    for (unsigned k = 0; k < QUOTA_KINDS; k++)
        use.amount[k] = draw(t, 4);
    return use;
}

static bool m_matches(struct str pattern, struct str model)
{
    char p[32];
    char m[32];
    (void)snprintf(p, sizeof(p), "%.*s", STR_ARG(pattern));
    (void)snprintf(m, sizeof(m), "%.*s", STR_ARG(model));
    return fnmatch(p, m, FNM_CASEFOLD | FNM_NOESCAPE) == 0;
}

static bool m_within(const struct quota_limit *limit, const struct quota_use *use)
{
    if (limit->scope == QUOTA_TOTAL)
        return true;
    return limit->scope == QUOTA_POOL ? str_eq(limit->name, use->pool)
                                      : m_matches(limit->name, use->model);
}

static const struct m_entry *m_entry_of(const struct trial *t, size_t namespace)
{
    for (size_t i = 0; i + 1 < ENTRIES; i++) {
        if (t->entries[i].is && strcmp(entry_names[i], namespaces[namespace]) == 0)
            return &t->entries[i];
    }
    return t->entries[ENTRIES - 1].is ? &t->entries[ENTRIES - 1] : NULL;
}

static int64_t m_used(const struct trial *t, size_t namespace, const struct quota_limit *limit,
                      unsigned kind)
{
    int64_t used = 0;
    for (size_t i = 0; i < PODS; i++) {
        const struct m_pod *p = &t->pods[i];
        for (size_t s = 0; p->known && p->namespace == namespace && s < p->n; s++)
            used += m_within(limit, &p->shares[s]) ? p->shares[s].amount[kind] : 0;
    }
    return used;
}

static bool m_allowed(const struct m_entry *e, const struct quota_use *use,
                      enum quota_fault *ret_fault)
{
    bool pool = e->n_pools == 0;
    bool model = e->n_models == 0;
    for (size_t i = 0; i < e->n_pools; i++)
        pool = pool || str_eq(e->pools[i], use->pool);
    for (size_t i = 0; i < e->n_models; i++)
        model = model || m_matches(e->models[i], use->model);
    *ret_fault = pool ? QUOTA_MODEL_DENIED : QUOTA_POOL_DENIED;
    return pool && model;
}

/* Whether the uses fit; else the first limit that they exceed, or why they are denied. */
static bool m_fit(const struct trial *t, size_t namespace, const struct quota_use *uses, size_t n,
                  struct quota_refusal *ret)
{
    const struct m_entry *e = m_entry_of(t, namespace);
    *ret = (struct quota_refusal){.fault = QUOTA_EXCEEDED};
    for (size_t i = 0; e != NULL && i < n; i++) {
        const int64_t *amount = uses[i].amount;
        bool wants = amount[0] > 0 || amount[1] > 0 || amount[2] > 0;
        if (wants && !m_allowed(e, &uses[i], &ret->fault))
            return false;
    }
    ret->fault = QUOTA_EXCEEDED;
    for (size_t l = 0; e != NULL && l < e->n_limits; l++) {
        for (unsigned k = 0; k < QUOTA_KINDS; k++) {
            int64_t asked = 0;
            for (size_t i = 0; i < n; i++)
                asked += m_within(&e->limits[l], &uses[i]) ? uses[i].amount[k] : 0;
            *ret = (struct quota_refusal){.scope = e->limits[l].scope,
                                          .name = e->limits[l].name,
                                          .kind = (enum quota_kind)k,
                                          .limit = e->limits[l].most[k],
                                          .used = m_used(t, namespace, &e->limits[l], k),
                                          .asked = asked};
            if (ret->limit != QUOTA_UNLIMITED && asked > 0 && ret->used + asked > ret->limit)
                return false;
        }
    }
    return true;
}

static void compare_sums(const struct trial *t)
{
    for (size_t i = 0; i < NAMESPACES; i++) {
        struct quota_account a = quota_account(&t->q, str_of(namespaces[i]));
        const struct m_entry *e = m_entry_of(t, i);
        size_t n = e == NULL ? 0 : e->n_limits;
        trial_assert(t, (a.entry == NULL ? 0 : a.entry->n_limits) == n);
        for (size_t l = 0; l < n; l++) {
            for (unsigned k = 0; k < QUOTA_KINDS; k++) {
                int64_t expected = m_used(t, i, &e->limits[l], k);
                trial_assert(t, (a.used == NULL ? 0 : a.used[l].of[k]) == expected);
            }
        }
    }
}

static void step_ask(struct trial *t)
{
    struct quota_use uses[SHARES];
    struct quota_refusal is = {.fault = QUOTA_EXCEEDED};
    struct quota_refusal expected;
    size_t n = draw(t, SHARES) + 1;
    size_t namespace = draw(t, NAMESPACES);
    for (size_t i = 0; i < n; i++) {
        uses[i] = draw_use(t);
        for (unsigned k = 0; k < QUOTA_KINDS && i > 0 && draw(t, 4) == 0; k++)
            uses[i].amount[k] = -uses[i].amount[k];
    }
    struct quota_account a = quota_account(&t->q, str_of(namespaces[namespace]));
    uint64_t compared = 0;
    bool fits = quota_fit(&a, uses, n, &is, &compared);
    trial_assert(t, fits == m_fit(t, namespace, uses, n, &expected));
    if (fits) {
        t->passed++;
        return;
    }
    t->refused[is.fault]++;
    trial_assert(t, is.fault == expected.fault);
    trial_assert(t, str_eq(is.namespace, str_of(namespaces[namespace])));
    if (is.fault != QUOTA_EXCEEDED)
        return;
    trial_assert(t, is.scope == expected.scope && str_eq(is.name, expected.name));
    trial_assert(t, is.kind == expected.kind && is.limit == expected.limit);
    trial_assert(t, is.used == expected.used && is.asked == expected.asked);
}

static void charge_all(struct m_pod *p, int sign)
{
    for (size_t i = 0; i < p->n; i++)
        quota_charge(p->tenant, &p->shares[i], sign);
}

/* A pod becomes known, gets cards, moves, loses its cards, or is forgotten. */
static void step_pod(struct trial *t)
{
    struct m_pod *p = &t->pods[draw(t, PODS)];
    if (!p->known) {
        size_t namespace = draw(t, NAMESPACES);
        arm_sometimes(t);
        struct quota_tenant *tenant = quota_join(&t->q, str_of(namespaces[namespace]));
        bool hit = fail_alloc_hit();
        fail_alloc_disarm();
        trial_assert(t, (tenant == NULL) == hit);
        if (tenant != NULL)
            *p = (struct m_pod){.known = true, .namespace = namespace, .tenant = tenant};
        t->starved += hit;
        return;
    }
    charge_all(p, -1);
    p->n = draw(t, 3) == 0 ? 0 : draw(t, SHARES) + 1;
    for (size_t i = 0; i < p->n; i++)
        p->shares[i] = draw_use(t);
    if (p->n == 0 && draw(t, 2) == 0) {
        quota_leave(&t->q, p->tenant);
        p->known = false;
    }
    charge_all(p, 1);
}

/* A node's pool changes: the shares of its pods are released before, and charged after the
 * change. */
static void step_relabel(struct trial *t)
{
    struct str from = str_of(pools[draw(t, COUNT_OF(pools))]);
    struct str to = str_of(pools[draw(t, COUNT_OF(pools))]);
    for (size_t i = 0; i < PODS; i++) {
        struct m_pod *p = &t->pods[i];
        charge_all(p, -1);
        for (size_t s = 0; s < p->n; s++)
            p->shares[s].pool = str_eq(p->shares[s].pool, from) ? to : p->shares[s].pool;
        charge_all(p, 1);
    }
}

static void draw_entry(struct trial *t, struct m_entry *e)
{
    *e = (struct m_entry){.is = draw(t, 3) > 0};
    e->n_limits = draw(t, LIMITS + 1);
    e->n_pools = draw(t, 3) == 0 ? 2 : 0;
    e->n_models = draw(t, 3) == 0 ? 2 : 0;
    for (size_t i = 0; i < e->n_limits; i++) {
        struct quota_limit *l = &e->limits[i];
        l->scope = (enum quota_scope)draw(t, 3);
        if (l->scope == QUOTA_POOL)
            l->name = str_of(pools[draw(t, 3)]);
        else if (l->scope == QUOTA_MODEL)
            l->name = str_of(patterns[draw(t, COUNT_OF(patterns))]);
        for (unsigned k = 0; k < QUOTA_KINDS; k++)
            l->most[k] = draw(t, 3) == 0 ? QUOTA_UNLIMITED : (int64_t)draw(t, 16);
    }
    for (size_t i = 0; i < 2; i++) {
        e->pools[i] = str_of(pools[draw(t, 3)]);
        e->models[i] = str_of(patterns[draw(t, COUNT_OF(patterns))]);
    }
}

static void step_set(struct trial *t)
{
    struct m_entry drawn[ENTRIES];
    struct quota_entry given[ENTRIES];
    struct quota_view view = {given, 0};
    for (size_t i = 0; i < ENTRIES; i++) {
        struct m_entry *e = &drawn[i];
        draw_entry(t, e);
        if (e->is)
            given[view.n++] = (struct quota_entry){str_of(entry_names[i]),
                                                   e->limits,
                                                   e->n_limits,
                                                   e->pools,
                                                   e->n_pools,
                                                   e->models,
                                                   e->n_models};
    }
    arm_sometimes(t);
    enum errc code = quota_set(&t->q, &view);
    bool hit = fail_alloc_hit();
    fail_alloc_disarm();
    trial_assert(t, code == (hit ? ERR_NOMEM : OK));
    t->starved += hit;
    if (hit)
        return; /* unchanged, and all of it still charged */
    memcpy(t->entries, drawn, sizeof(drawn));
    for (size_t i = 0; i < PODS; i++)
        charge_all(&t->pods[i], 1);
}

static void run_history(struct trial *t, uint64_t seed)
{
    unsigned refused[3];
    memcpy(refused, t->refused, sizeof(refused));
    *t = (struct trial){.seed = seed, .random = seed, .passed = t->passed, .starved = t->starved};
    memcpy(t->refused, refused, sizeof(refused));
    quota_init(&t->q, (struct map_seed){seed, 1});
    for (t->step = 0; t->step < STEPS; t->step++) {
        uint32_t what = draw(t, 100);
        if (what < 45)
            step_pod(t);
        else if (what < 85)
            step_ask(t);
        else if (what < 90)
            step_relabel(t);
        else
            step_set(t);
        quota_check(&t->q);
        compare_sums(t);
    }
    for (size_t i = 0; i < PODS; i++) {
        struct m_pod *p = &t->pods[i];
        charge_all(p, -1);
        if (p->known)
            quota_leave(&t->q, p->tenant);
    }
    trial_assert(t, t->q.tenants.n == 0);
    quota_done(&t->q);
}

TEST(equals_a_recount)
{
    uint64_t first = seeded_setting("QUOTA_MODEL_SEED", 1);
    uint64_t histories = seeded_setting("QUOTA_MODEL_HISTORIES", 200);
    struct trial t = {.seed = 0};
    for (uint64_t i = 0; i < histories; i++)
        run_history(&t, first + i);
    if (histories < 100)
        return;
    /* Each kind of event has happened often. */
    ck_assert_uint_gt(t.passed, 1000);
    ck_assert_uint_gt(t.starved, 100);
    for (size_t i = 0; i < COUNT_OF(t.refused); i++)
        ck_assert_uint_gt(t.refused[i], 500);
}
