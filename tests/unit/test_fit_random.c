/*
 * Random nodes, pods and requests. A placement must over-commit nothing, counted from the views
 * alone. For a refusal the test tries all placements: none may be possible.
 */
#include "core/place/fit.h"

#include "fit_trial.h"

enum {
    HISTORIES = 1000,
    STEPS = 30,
};

#define trial_assert(t, condition)                                                          \
    do {                                                                                    \
        if (!(condition))                                                                   \
            ck_abort_msg("seed %llu step %d: %s", (unsigned long long)(t)->seed, (t)->step, \
                         #condition);                                                       \
    } while (0)

/* ---- all placements ---- */

struct hunt {
    const struct trial *t;
    const struct request *r;
    struct loads loads;
    struct placement at;
    uint32_t lasting[REQUEST_DEMANDS_MAX];
    uint32_t n;
    bool cards_do;  /* some placement fits on all of its cards */
    bool node_does; /* and fits the node's sum */
};

static bool group_allows(const struct hunt *h, uint32_t card)
{
    const struct request *r = h->r;
    bool beside = false;
    bool held = false;
    for (int i = 0; i < h->t->n_pods; i++) {
        const struct made *m = &h->t->pods[i];
        const struct pod_view *v = &m->view;
        if (!m->holds || !str_eq(v->namespace, r->namespace))
            continue;
        bool here = on_card(&m->there, card);
        bool mine = r->affinity.n > 0 && str_eq(v->affinity, r->affinity);
        held = held || (mine && m->there.n > 0);
        beside = beside || (mine && here);
        if (here && r->anti_affinity.n > 0 && str_eq(v->anti_affinity, r->anti_affinity))
            return false;
    }
    return beside || !held;
}

static bool card_allows(const struct hunt *h, uint32_t card)
{
    const struct load *l = &h->loads.cards[card];
    uint64_t max_pods = 0;
    if (l->total == 0 || !l->usable || l->wholes > 0 ||
        (h->r->whole && (l->pods > 0 || l->mem > 0)))
        return false;
    if (str_to_u64(h->t->node.max_pods, UINT32_MAX, &max_pods) && max_pods > 0 &&
        l->pods >= (int)max_pods)
        return false;
    if (str_eq(h->r->models, STR("A10*")) && str_eq(l->model, STR("T4")))
        return false;
    if (str_eq(h->r->models, STR("!T4")) && str_eq(l->model, STR("T4")))
        return false;
    return group_allows(h, card);
}

static void evaluate(struct hunt *h)
{
    int64_t sum = 0;
    const struct node *n = node_of(&h->t->rig, "n");
    for (uint32_t c = 0; c < INDICES; c++) {
        if (!on_card(&h->at, c))
            continue;
        const struct load *l = &h->loads.cards[c];
        struct amount a = worst(h->r, &h->at, c, false);
        int64_t mem = costs(h->r, a, l->total);
        if (!card_allows(h, c) || l->mem + mem > l->total || l->cores + a.cores > 100)
            return;
        sum += mem;
    }
    h->cards_do = true;
    if (h->loads.used + sum <= n->total && h->loads.counted + h->r->mem <= n->limit)
        h->node_does = true;
}

/* Without a lasting container, the first of the others represents all. */
static uint16_t who(const struct hunt *h, uint32_t i)
{
    if (h->n > 0)
        return h->r->demands[h->lasting[i]].index;
    return h->r->n_demands > 0 ? h->r->demands[0].index : UINT16_MAX;
}

static void hunt_together(struct hunt *h)
{
    for (unsigned bits = 1; bits < 1U << INDICES; bits++) {
        if ((uint32_t)__builtin_popcount(bits) != request_cards(h->r))
            continue;
        h->at.n = 0;
        for (uint32_t c = 0; c < INDICES; c++) {
            for (uint32_t i = 0; (bits >> c & 1) != 0 && i < MAX_OF(h->n, 1U); i++)
                h->at.grants[h->at.n++] = (struct grant){.card = c, .container = who(h, i)};
        }
        evaluate(h);
    }
}

static void hunt_apart(struct hunt *h, uint32_t level)
{
    if (level == h->n) {
        h->at.n = h->n;
        evaluate(h);
        return;
    }
    for (uint32_t c = 0; c < INDICES; c++) {
        if (h->loads.cards[c].total == 0)
            continue;
        h->at.grants[level] =
            (struct grant){.card = c, .container = h->r->demands[h->lasting[level]].index};
        hunt_apart(h, level + 1);
    }
}

static bool node_is_divided(const struct loads *l, const struct node_view *n)
{
    return n->exclusive_cards.n > 0 && n->exclusive_cards.p[0] - '0' < INDICES &&
           l->cards[n->exclusive_cards.p[0] - '0'].total > 0;
}

/* Looks for a placement of the request. */
static void hunt(const struct trial *t, const struct request *r, struct hunt *h)
{
    *h = (struct hunt){.t = t, .r = r};
    bool shares = r->mem > 0 || r->percent > 0 || r->whole;
    count_all(t, &h->loads);
    if (!node_is_divided(&h->loads, &t->node) &&
        ((r->exclusive > 0 && (shares || h->loads.sharing > 0)) ||
         (shares && h->loads.exclusive > 0)))
        return;
    if (!shares) {
        h->cards_do = true;
        h->node_does = true;
        return;
    }
    for (uint32_t i = 0; i < r->n_demands; i++) {
        if (r->demands[i].kind != CONTAINER_INIT)
            h->lasting[h->n++] = i;
    }
    bool one_card = r->cards == 0 && r->percent == 0 && !r->whole && r->affinity.n == 0;
    if (one_card && h->n > 1)
        hunt_apart(h, 0);
    else
        hunt_together(h);
}

/* ---- histories ---- */

static void check_loads(const struct trial *t)
{
    struct loads l;
    const struct node *n = node_of(&t->rig, "n");
    count_all(t, &l);
    trial_assert(t, n->used == l.used && n->counted == l.counted);
    trial_assert(t, n->exclusive == l.exclusive && (int)n->n_sharing == l.sharing);
    /* DRA knows nothing of the node's sum. */
    int64_t lent = t->lent_of < INDICES ? t->lent : 0;
    trial_assert(t, l.counted <= n->limit && l.used <= MAX_OF(n->total, lent));
    for (uint32_t i = 0; i < n->n_cards; i++) {
        const struct card *c = &n->cards[i];
        const struct load *x = &l.cards[i];
        trial_assert(t, c->used == x->mem && c->cores == x->cores && (int)c->pods == x->pods);
        trial_assert(t, c->total == x->total && (int)c->wholes == x->wholes);
        trial_assert(t, x->mem <= x->total && x->cores <= 100);
        trial_assert(t, x->wholes == 0 || x->pods == 1);
    }
}

static void reserve_it(struct trial *t, struct made *m)
{
    struct cache_event e = {.type = CACHE_RESERVE,
                            .reserve = {.uid = m->view.uid,
                                        .namespace = m->view.namespace,
                                        .name = m->view.name,
                                        .node = STR("n"),
                                        .request = &m->request}};
    trial_assert(t, rig_apply(&t->rig, &e) == OK);
    const struct pod_allocation *h = t->rig.fx.pod->allocation;
    m->there.n = h->n_grants;
    for (uint32_t i = 0; i < h->n_grants; i++)
        m->there.grants[i] = h->grants[i];
    m->holds = true;
    m->done = false;
}

static void ask(struct trial *t, struct made *m)
{
    struct hunt h;
    struct placement there;
    make_pod(t, m, t->n_asked++);
    if (request_read(&m->view, &m->request, NULL) != OK || !request_wants(&m->request))
        return;
    cache_evaluation(&t->rig.cache, m->view.uid, &m->request, &m->evaluation);
    const struct node *n = node_of(&t->rig, "n");
    enum verdict v = fit_node(n, &m->evaluation);
    trial_assert(t, fit_place(n, &m->evaluation, &there) == v);
    hunt(t, &m->request, &h);
    if (v == VERDICT_FITS)
        trial_assert(t, h.node_does);
    else
        trial_assert(t, !h.node_does);
    trial_assert(t, v != VERDICT_NODE_FULL || h.cards_do);
    t->met[v]++;
    if (v == VERDICT_FITS && !once_in(t, 4))
        reserve_it(t, m);
}

/* Shows the pod's object as the API server has it after the Binding. */
static void show(struct trial *t, struct made *m, bool initialized, bool deleting)
{
    struct grant_view grants[64];
    char idx[16];
    struct pod_view v = m->view;
    for (uint32_t i = 0; i < m->there.n; i++) {
        const struct grant *g = &m->there.grants[i];
        grants[i] = (struct grant_view){.container = g->container, .card = g->card, .mem = g->mem};
        (void)snprintf(idx, sizeof(idx), "%u", g->card);
    }
    if (m->there.n == 1 && m->there.grants[0].container == UINT16_MAX)
        v.idx = str_of(idx);
    v.has_allocation = v.idx.p == NULL && m->there.n > 0;
    v.grants = grants;
    v.n_grants = m->there.n;
    v.node = STR("n");
    v.initialized = initialized;
    v.deleting = deleting;
    set_pod(&t->rig, v);
}

/* The pod's object shows it bound, maybe with its init containers done; or the pod ends. */
static void age(struct trial *t, struct made *m)
{
    if (!m->holds)
        return;
    if (once_in(t, 3)) {
        struct cache_event e = {.type = CACHE_POD_SET, .pod = m->view};
        e.pod.node = STR("n");
        e.pod.phase = STR("Failed");
        trial_assert(t, rig_apply(&t->rig, &e) == OK);
        m->holds = false;
        return;
    }
    bool initialized = m->done || once_in(t, 2);
    bool was_done = t->rig.cache.settings.shrink && pod_of(&t->rig, m->uid)->initialized;
    show(t, m, initialized, false);
    m->done = initialized && t->rig.cache.settings.shrink;
    trial_assert(t, t->rig.fx.changed == (m->done != was_done)); /* equal when read back */
}

static void begin(struct trial *t, uint64_t seed)
{
    *t = (struct trial){.random = seed, .seed = seed, .n_pods = PODS_MOST};
    (void)draw(t, 2);
    rig_init(&t->rig);
    t->rig.cache.settings.shrink = once_in(t, 2);
    t->rig.cache.settings.card_policy = (enum policy)draw(t, 3);
    make_node(t);
}

TEST_EACH(places_what_has_a_place_and_never_too_much, 2)
{
    unsigned met[VERDICT_COUNT] = {0};
    uint64_t first = seeded_setting("POLICY_SEED", (uint64_t)_i * HISTORIES);
    uint64_t n = seeded_setting("POLICY_HISTORIES", HISTORIES);
    for (uint64_t seed = first; seed < first + n; seed++) {
        struct trial t;
        begin(&t, seed);
        for (t.step = 0; t.step < STEPS; t.step++) {
            struct made *m = &t.pods[draw(&t, PODS_MOST)];
            if (m->holds)
                age(&t, m);
            else
                ask(&t, m);
            check_loads(&t);
        }
        for (int v = 0; v < VERDICT_COUNT; v++)
            met[v] += t.met[v];
        rig_done(&t.rig);
    }
    for (int v = VERDICT_UNUSABLE; n >= HISTORIES && v < VERDICT_HELD_ELSEWHERE; v++)
        ck_assert_msg(met[v] > 0 || v == VERDICT_UUID || v == VERDICT_KEPT || v == VERDICT_QUOTA ||
                          v == VERDICT_QUOTA_DENIED || v == VERDICT_NO_EXCLUSIVE ||
                          v == VERDICT_NO_DEVICES || v == VERDICT_SWAP || /* test_swap_model.c */
                          v == VERDICT_LOCKED ||                          /* test_lock.c */
                          v == VERDICT_PLUGIN_ORDER,                      /* test_dialect.c */
                      "%s is never met", verdict_name((enum verdict)v));
}

/* A valid request for shared cards. The claim of a pod in a group is checked without the group. */
static void make_asker(struct trial *t, struct made *m)
{
    do {
        make_pod(t, m, t->n_asked++);
        m->view.affinity = STR_NULL;
    } while (request_read(&m->view, &m->request, NULL) != OK || !request_shares(&m->request));
}

/* On one small node a request never needs more steps than allowed. */
static bool fits(struct trial *t, struct made *m)
{
    static struct step_budget step_budget;
    struct placement there;
    cache_evaluation(&t->rig.cache, m->view.uid, &m->request, &m->evaluation);
    step_budget_begin(&step_budget, 1);
    m->evaluation.step_budget = &step_budget;
    enum verdict v = fit_place(node_of(&t->rig, "n"), &m->evaluation, &there);
    m->evaluation.step_budget = NULL;
    ck_assert(!step_budget_is_spent(&step_budget));
    return v == VERDICT_FITS;
}

/*
 * Whether the nominated pod has room after all pods being deleted have gone, beside the pod that
 * asked meanwhile, if that was let in. Up to there both runs are the same.
 */
static bool claim_fits(uint64_t seed, bool let_in, bool *ret_fits)
{
    struct trial t;
    struct made claim;
    struct made other;
    bool deleting[PODS_MOST];
    begin(&t, seed);
    for (int i = 0; i < PODS_MOST; i++)
        ask(&t, &t.pods[i]);
    for (int i = 0; i < PODS_MOST; i++) {
        deleting[i] = once_in(&t, 2);
        if (t.pods[i].holds)
            show(&t, &t.pods[i], false, deleting[i]);
    }
    make_asker(&t, &claim);
    claim.view.nominated = STR("n");
    set_pod(&t.rig, claim.view);
    make_asker(&t, &other);
    *ret_fits = fits(&t, &other);
    if (*ret_fits && let_in)
        reserve_it(&t, &other);
    for (int i = 0; i < PODS_MOST; i++) {
        if (t.pods[i].holds && deleting[i])
            pod_gone(&t.rig, t.pods[i].uid);
    }
    bool result = fits(&t, &claim);
    rig_done(&t.rig);
    return result;
}

TEST(what_is_kept_is_there_when_it_is_wanted)
{
    unsigned met[2][2] = {{0}};
    uint64_t first = seeded_setting("POLICY_SEED", 0);
    uint64_t n = seeded_setting("POLICY_HISTORIES", HISTORIES);
    for (uint64_t seed = first; seed < first + n; seed++) {
        bool let_in = false;
        bool alone = claim_fits(seed, false, &let_in);
        met[alone][let_in]++;
        ck_assert_msg(!alone || !let_in || claim_fits(seed, true, &let_in),
                      "seed %llu: it was given away", (unsigned long long)seed);
    }
    ck_assert(n < HISTORIES || (met[1][1] > 0 && met[1][0] > 0 && met[0][1] > 0));
}

int main(void)
{
    TCase *tc = unit_case("fit_random");
    tcase_set_timeout(tc, 300);
    return unit_run();
}
