/*
 * Random histories of events, applied to the cache and to the model and compared after each event.
 * The order is not one that an API server would keep: the rules must hold for any order. In half of
 * the histories namespaces have quotas. The seed chooses the policy; one with costs learns all the
 * time, sometimes without memory. A failure prints its seed and step:
 *
 * CACHE_MODEL_SEED=17 CACHE_MODEL_HISTORIES=1 test_cache_model
 */
#include "cache_trial.h"
#include "core/place/fit.h"

#define STEPS 400

static int64_t odd_or(struct trial *t, int64_t usual)
{
    return chance(t, 8) ? -1 - (int64_t)draw(t, 2) : chance(t, 5) ? 0 : usual;
}

static void step_node_set(struct trial *t)
{
    static const int64_t sizes[] = {32, 32, 33, 16, 64, 7};
    char mem[32];
    char count[32];
    char limit[32];
    char cpu[32];
    char memory[32];
    int i = (int)draw(t, M_NODES);
    struct card_view rows[M_CARDS];
    size_t n_rows = 0;
    struct m_size s = {.present = true};
    s.mem = odd_or(t, sizes[draw(t, COUNT_OF(sizes))]);
    s.count = odd_or(t, chance(t, 80) ? 2 : draw(t, M_CARDS) + 1);
    s.allocatable = chance(t, 60) ? -1 : odd_or(t, (int64_t)draw(t, 70));
    s.host = (struct host){odd_or(t, draw(t, 3000)), odd_or(t, (int64_t)draw(t, 4) << 30)};
    s.table = !t->limited && chance(t, 30);
    s.pool = t->limited ? (int)draw(t, COUNT_OF(pool_names)) : 0;
    s.model = t->limited ? (int)draw(t, COUNT_OF(model_names)) : 0;
    for (uint32_t k = 0; s.table && k < M_CARDS; k++) {
        if (k > 0 && chance(t, 30))
            continue;
        s.cards[k] = sizes[draw(t, COUNT_OF(sizes))];
        rows[n_rows++] = (struct card_view){.index = k, .mem = s.cards[k], .numa = -1};
    }
    struct cache_event e = {
        .type = CACHE_NODE_SET,
        .node = {.name = str_of(node_names[i]),
                 .mem = number_text(mem, sizeof(mem), s.mem),
                 .count = number_text(count, sizeof(count), s.count),
                 .mem_allocatable = number_text(limit, sizeof(limit), s.allocatable),
                 .cpu = m_cpu_text(cpu, sizeof(cpu), s.host.cpu),
                 .memory = number_text(memory, sizeof(memory), s.host.memory),
                 .has_cards = s.table,
                 .cards = rows,
                 .n_cards = n_rows,
                 .pool = str_of(pool_names[s.pool]),
                 .model = str_of(model_names[s.model])}};
    (void)snprintf(t->what, sizeof(t->what), "node n%d %lld %lld %lld table of %zu", i,
                   (long long)s.mem, (long long)s.count, (long long)s.allocatable, n_rows);
    if (!apply(t, &e)) {
        lose(t, CACHE_NODES);
        return;
    }
    t->model.nodes[i].size = s;
    t->model.nodes[i].listed = true;
}

static void step_node_gone(struct trial *t)
{
    int i = (int)draw(t, M_NODES);
    struct cache_event e = {.type = CACHE_NODE_GONE, .node = {.name = str_of(node_names[i])}};
    (void)snprintf(t->what, sizeof(t->what), "node n%d gone", i);
    trial_assert(t, apply(t, &e));
    t->model.nodes[i].size = (struct m_size){.present = false};
}

static void step_health(struct trial *t)
{
    static const struct {
        const char *text;
        unsigned bits;
    } tokens[] = {{"0", 1}, {"1", 2}, {"0,1", 3}, {" 3 ,x", 8}, {"", 0}, {"x,-1", 0}};

    int i = (int)draw(t, M_NODES);
    size_t k = draw(t, COUNT_OF(tokens));
    bool set = chance(t, 60);
    struct cache_event e = {
        .type = set ? CACHE_HEALTH_SET : CACHE_HEALTH_GONE,
        .health = {.node = str_of(node_names[i]), .gpus = str_of(tokens[k].text)}};
    (void)snprintf(t->what, sizeof(t->what), "health n%d %s", i, set ? tokens[k].text : "gone");
    if (!apply(t, &e)) {
        lose(t, CACHE_HEALTH);
        return;
    }
    t->model.nodes[i].unhealthy = set ? tokens[k].bits : 0;
    t->model.nodes[i].health_listed = true;
}

static struct m_entry draw_entry(struct trial *t)
{
    struct m_entry e = {.is = chance(t, 70), .pools = chance(t, 80) ? 0 : draw(t, 7) + 1};
    for (int i = 0; i < M_LIMITS; i++) {
        e.limits[i].scope = (enum quota_scope)draw(t, 3);
        e.limits[i].name = e.limits[i].scope == QUOTA_POOL ? (int)draw(t, COUNT_OF(pool_names))
                                                           : (int)draw(t, 2) + 1;
        e.limits[i].most[QUOTA_MEMORY] = chance(t, 50) ? -1 : (int64_t)draw(t, 40);
        e.limits[i].most[QUOTA_CARDS] = chance(t, 60) ? -1 : (int64_t)draw(t, 5);
        e.limits[i].most[QUOTA_COMPUTE] = chance(t, 80) ? -1 : (int64_t)draw(t, 200);
    }
    return e;
}

static void view_entry(const struct m_entry *e, struct quota_limit limits[static M_LIMITS],
                       struct str pools[static 3], struct quota_entry *ret)
{
    *ret = (struct quota_entry){.limits = limits, .n_limits = M_LIMITS, .pools = pools};
    for (int i = 0; i < M_LIMITS; i++) {
        const char *const *names = e->limits[i].scope == QUOTA_POOL ? pool_names : model_names;
        limits[i] = (struct quota_limit){.scope = e->limits[i].scope};
        memcpy(limits[i].most, e->limits[i].most, sizeof(limits[i].most));
        if (e->limits[i].scope != QUOTA_TOTAL)
            limits[i].name = str_of(names[e->limits[i].name]);
    }
    for (size_t i = 0; i < COUNT_OF(pool_names); i++) {
        if ((e->pools >> i & 1) != 0)
            pools[ret->n_pools++] = str_of(pool_names[i]);
    }
}

static void step_quota(struct trial *t)
{
    struct m_quota q = {.is = true, .named = true};
    struct quota_limit limits[M_SPACES][M_LIMITS];
    struct str pools[M_SPACES][3];
    struct quota_entry entries[M_SPACES];
    struct cache_event e = {.type = CACHE_QUOTA_SET, .quota = {.entries = entries}};
    for (int i = 0; i < M_SPACES; i++) {
        q.entries[i] = draw_entry(t);
        if (!q.entries[i].is)
            continue;
        view_entry(&q.entries[i], limits[i], pools[i], &entries[e.quota.n]);
        entries[e.quota.n++].namespace = str_of(entry_names[i]);
    }
    uint32_t dice = draw(t, 100);
    if (dice < 15)
        e.type = CACHE_QUOTA_GONE;
    else if (dice < 25)
        e.type = CACHE_QUOTA_BAD;
    (void)snprintf(t->what, sizeof(t->what), "quota %d", e.type);
    if (!apply(t, &e)) {
        trial_assert(t, e.type == CACHE_QUOTA_SET);
        lose(t, CACHE_HEALTH);
        return;
    }
    if (e.type == CACHE_QUOTA_SET)
        t->model.quota = q;
    else if (e.type == CACHE_QUOTA_GONE)
        t->model.quota.is = false;
    else
        t->model.quota.named = true;
}

/* Mostly memory of one card; else over two or three cards, or with compute. */
static struct m_ask some_ask(struct trial *t)
{
    struct m_ask ask = {.mem = (int64_t)(draw(t, 5) + 1) * 3, .cards = 1};
    ask.host = m_some_host(draw(t, 26));
    if (chance(t, 20))
        ask.cores = 10 * (int)(1 + draw(t, 10));
    if (chance(t, 20)) {
        ask.cards = 2 + (int)draw(t, 2);
        ask.mem *= ask.cards;
        ask.cores *= ask.cards;
    }
    return ask;
}

/* A place by the index (one card or none), or by an allocation. */
static struct str some_place(struct trial *t, const struct m_ask *ask, struct m_place *place,
                             struct grant_view *grants, struct pod_view *pod)
{
    static const char *const indices[] = {"0", "1", "2", "3", "9", "x", "-1"};
    static const int cards[] = {0, 1, 2, 3, 9, -1, -1};
    uint32_t idx = chance(t, 80) ? draw(t, 2) : draw(t, COUNT_OF(indices));
    uint32_t first = draw(t, 2);
    bool serves = chance(t, 80);
    *place = (struct m_place){.n = cards[idx] < 0 ? 0 : 1, .cards = {cards[idx]}};
    if (ask->mem <= 0 || (ask->cards == 1 && chance(t, 80)))
        return str_of(indices[idx]);
    for (uint32_t i = 0; i < (uint32_t)ask->cards; i++)
        grants[i] = (struct grant_view){.card = first + i, .mem = ask->mem / ask->cards};
    grants[0].mem += serves ? 0 : 1;
    pod->has_allocation = true;
    pod->grants = grants;
    pod->n_grants = (size_t)ask->cards;
    /* An allocation counts only if it serves the spec and the index does not contradict it. */
    bool agrees = cards[idx] < 0 || (ask->cards == 1 && cards[idx] == (int)first);
    if (!serves || !agrees)
        return str_of(indices[idx]);
    place->n = ask->cards;
    for (int i = 0; i < ask->cards; i++)
        place->cards[i] = (int)first + i;
    return str_of(indices[idx]);
}

static void step_pod_shown(struct trial *t, enum cache_event_type type)
{
    static const char *const phases[] = {"Pending", "Running", "Succeeded", "Failed"};
    static const char *const counts[] = {NULL, NULL, "2", "3"};
    char mem[32];
    char cores[32];
    char assume[32];
    struct grant_view grants[M_CARDS];
    uint32_t phase = chance(t, 85) ? draw(t, 2) : 2 + draw(t, 2);
    bool assigned = chance(t, 50);
    struct m_view v = {.uid = (int)draw(t, M_PODS), .node = -1, .ask = some_ask(t)};
    if (chance(t, 60))
        v.node = (int)draw(t, M_NODES);
    if (chance(t, 10))
        v.ask = (struct m_ask){.mem = -2 * (int64_t)draw(t, 2), .cards = 1, .host = v.ask.host};
    else if (chance(t, 25))
        v.ask = (struct m_ask){.cards = 1, .host = v.ask.host};
    v.terminal = phase >= 2;
    v.awaiting = !assigned && phase == 0;
    v.assume_ns = chance(t, 30) ? draw(t, 4000) : 0;
    struct container_view c = {.mem = number_text(mem, sizeof(mem), v.ask.mem)};
    if (v.ask.cores > 0)
        c.cores = number_text(cores, sizeof(cores), v.ask.cores);
    struct cache_event e = {.type = type,
                            .pod = {.uid = str_of(pod_uids[v.uid]),
                                    .namespace = str_of(space_names[v.uid % M_SPACES]),
                                    .phase = str_of(phases[phase]),
                                    .count_label = str_of(counts[v.ask.cards]),
                                    .assigned = assigned ? STR("true") : STR("false"),
                                    .deleting = chance(t, 20),
                                    .host = v.ask.host,
                                    .containers = &c,
                                    .n_containers = 1,
                                    .n_mains = 1}};
    e.pod.idx = some_place(t, &v.ask, &v.place, grants, &e.pod);
    if (v.node >= 0)
        e.pod.node = str_of(node_names[v.node]);
    if (v.assume_ns > 0)
        e.pod.assume_time = number_text(assume, sizeof(assume), (int64_t)v.assume_ns);
    (void)snprintf(t->what, sizeof(t->what), "pod u%d %s node %d mem %lld cores %d on %d %s", v.uid,
                   type == CACHE_POD_SET ? "set" : "read", v.node, (long long)v.ask.mem,
                   v.ask.cores, v.place.n == 0 ? -1 : v.place.cards[0], phases[phase]);
    if (!apply(t, &e)) {
        if (type == CACHE_POD_SET)
            lose(t, CACHE_PODS);
        return;
    }
    if (type == CACHE_POD_SET)
        m_pod_set(&t->model, &v);
    else
        trial_assert(t, t->code == m_pod_read(&t->model, &v));
}

static void step_pod_gone(struct trial *t)
{
    int i = (int)draw(t, M_PODS);
    struct cache_event e = {.type = CACHE_POD_GONE, .pod = {.uid = str_of(pod_uids[i])}};
    (void)snprintf(t->what, sizeof(t->what), "pod u%d gone", i);
    trial_assert(t, apply(t, &e));
    m_pod_gone(&t->model, i);
}

/* A policy with costs may choose any cards with room. */
static struct m_place any_place(struct trial *t, int uid, int node, const struct m_ask *ask)
{
    struct m_place place = {.n = 0};
    const struct pod *p = cache_pod(&t->cache, str_of(pod_uids[uid]));
    trial_assert(t, p != NULL && (int)p->allocation->n_shares == ask->cards);
    for (uint32_t i = 0; i < p->allocation->n_shares; i++) {
        int card = (int)p->allocation->shares[i].card;
        trial_assert(t, place.n == 0 || card > place.cards[place.n - 1]);
        trial_assert(t, m_card(&t->model, node, card, ask) == VERDICT_FITS);
        place.cards[place.n++] = card;
    }
    return place;
}

static void reserved(struct trial *t, int uid, int node, const struct m_ask *ask)
{
    struct model *m = &t->model;
    struct m_pod *p = &m->pods[uid];
    if (m_holds(p)) {
        trial_assert(t, t->code == ERR_CONFLICT);
        return;
    }
    trial_assert(t, t->fx.verdict == m_fit(m, node, uid % M_SPACES, ask));
    t->refused[t->fx.verdict]++;
    trial_assert(t, t->code == (t->fx.verdict == VERDICT_FITS ? OK : ERR_UNAVAILABLE));
    if (t->code != OK)
        return;
    uint64_t ns = MAX_OF(t->now_ns, m->nodes[node].last_ns + 1);
    struct m_place place =
        policy_has_costs(t->policy) ? any_place(t, uid, node, ask) : m_pick(m, node, ask);
    trial_assert(t, (int)t->fx.card == place.cards[0]);
    trial_assert(t, t->fx.card_total == m_card_total(&m->nodes[node], place.cards[0]));
    trial_assert(t, t->fx.assume_ns == ns);
    if (!p->known)
        m_pod_reset(p, (struct m_pod){.known = true, .news = true});
    p->state = POD_RESERVED;
    p->edited = p->unwanting = false;
    p->ask = *ask;
    p->node = node;
    p->place = place;
    p->awaiting = true;
    m->nodes[node].last_ns = ns;
    for (int i = 0; i < place.n; i++) {
        unsigned pods = 0;
        int64_t total = m_card_total(&m->nodes[node], place.cards[i]);
        trial_assert(t, m_used(m, node, place.cards[i]) <= total);
        trial_assert(t, ask->cores == 0 || m_cores(m, node, place.cards[i], &pods) <= 100);
    }
    trial_assert(t, m_used(m, node, -2) <= m_limit(&m->nodes[node]));
}

/* What request_read gives for one container. */
static struct request request_of(const struct m_ask *ask, int space)
{
    return (struct request){.mem = ask->mem,
                            .host = ask->host,
                            .namespace = str_of(space_names[space]),
                            .lasting_mem = ask->mem,
                            .cores = (uint32_t)ask->cores,
                            .lasting_cores = (uint32_t)ask->cores,
                            .cards = ask->cards == 1 ? 0 : (uint32_t)ask->cards,
                            .n_demands = 1,
                            .demands = {{.mem = ask->mem, .cores = (uint16_t)ask->cores}}};
}

static void step_reserve(struct trial *t)
{
    int uid = (int)draw(t, M_PODS);
    int node = (int)draw(t, M_NODES);
    struct m_ask ask = some_ask(t);
    if (chance(t, 10))
        ask = (struct m_ask){.mem = (int64_t)draw(t, 70) + 1, .cards = 1};
    struct request request = request_of(&ask, uid % M_SPACES);
    struct cache_event e = {.type = CACHE_RESERVE,
                            .reserve = {.uid = str_of(pod_uids[uid]),
                                        .namespace = request.namespace,
                                        .node = str_of(node_names[node]),
                                        .request = &request}};
    (void)snprintf(t->what, sizeof(t->what), "reserve u%d n%d %lld over %d, cores %d", uid, node,
                   (long long)ask.mem, ask.cards, ask.cores);
    if (apply(t, &e))
        reserved(t, uid, node, &ask);
}

static void step_resolve(struct trial *t)
{
    int uid = (int)draw(t, M_PODS);
    bool read_back = chance(t, 50);
    bool is_confirm = chance(t, 65);
    struct cache_event e = {.type = is_confirm ? CACHE_CONFIRM : CACHE_CANCEL,
                            .holder = {.uid = str_of(pod_uids[uid]), .read_back = read_back}};
    (void)snprintf(t->what, sizeof(t->what), "%s u%d %d", is_confirm ? "confirm" : "cancel", uid,
                   read_back);
    trial_assert(t, apply(t, &e));
    if (is_confirm)
        trial_assert(t, t->code == m_confirm(&t->model, uid, read_back));
    else
        m_cancel(&t->model, uid);
}

static void step_list(struct trial *t)
{
    enum cache_kind kind = (enum cache_kind)draw(t, CACHE_KINDS);
    bool is_end = chance(t, 60);
    unsigned unproven = 0;
    struct cache_event e = {.type = is_end ? CACHE_LIST_END : CACHE_LIST_BEGIN, .list = kind};
    (void)snprintf(t->what, sizeof(t->what), "list %d %s", kind, is_end ? "end" : "begin");
    bool applied = apply(t, &e);
    if (!is_end) {
        m_list_begin(&t->model, kind);
        return;
    }
    trial_assert(t, applied == !t->model.torn[kind]);
    if (!applied)
        return;
    trial_assert(t, t->fx.swept == m_list_end(&t->model, kind, &unproven));
    trial_assert(t, t->fx.unproven == unproven);
}

/* The usage of each limit must equal what the model's pods hold. */
static void compare_quota(struct trial *t, int space)
{
    const struct m_quota *q = &t->model.quota;
    int at = q->entries[space].is ? space : M_SPACES - 1;
    struct quota_account a = quota_account(&t->cache.quota, str_of(space_names[space]));
    trial_assert(t, t->cache.limited == q->is);
    trial_assert(t, (a.entry != NULL) == (q->is && q->entries[at].is));
    for (int i = 0; i < M_LIMITS && a.entry != NULL; i++) {
        for (int k = 0; k < QUOTA_KINDS; k++) {
            int64_t used = a.used == NULL ? 0 : (int64_t)a.used[i].of[k];
            trial_assert(t, used == m_held(&t->model, space, i, (enum quota_kind)k));
        }
    }
}

static void compare_pod(struct trial *t, int i)
{
    const struct m_pod *m = &t->model.pods[i];
    const struct pod *p = cache_pod(&t->cache, str_of(pod_uids[i]));
    trial_assert(t, (p != NULL) == m->known);
    if (p == NULL)
        return;
    trial_assert(t, p->state == m->state && p->request->mem == m->ask.mem && p->seen == m->seen);
    trial_assert(t, m->state == POD_PENDING || host_equal(p->request->host, m->ask.host));
    trial_assert(t, p->missing == m->missing && p->asked == m->asked);
    trial_assert(t, pod_awaits(p) == m->awaiting);
    trial_assert(t, p->card == (m->place.n == 0 ? -1 : m->place.cards[0]));
    trial_assert(t, m->node < 0 ? p->node == NULL : p->node != NULL);
    trial_assert(t, p->node == NULL || str_eq(p->node->name, str_of(node_names[m->node])));
    if (p->allocation == NULL)
        return;
    trial_assert(t, (int)p->allocation->n_shares == m->place.n);
    for (int k = 0; k < m->place.n; k++) {
        const struct share *s = &p->allocation->shares[k];
        trial_assert(t, (int)s->card == m->place.cards[k]);
        trial_assert(t, s->mem == m->ask.mem / m->place.n && (int)s->cores == m_part_cores(m));
    }
}

static void compare_card(struct trial *t, int node, const struct card *c, int k)
{
    unsigned pods = 0;
    int cores = m_cores(&t->model, node, k, &pods);
    const struct m_node *m = &t->model.nodes[node];
    trial_assert(t, c->total == m_card_total(m, k) && c->absent == !m_has_card(m, k));
    trial_assert(t, card_free(c) == m_free(&t->model, node, k));
    trial_assert(t, c->unhealthy == (m->unhealthy >> k & 1));
    trial_assert(t, c->kind == 0 || t->cache.learned.market.kinds[c->kind - 1].total == c->total);
    if (c->absent) {
        trial_assert(t, c->left == 0);
        return;
    }
    int64_t left = c->total == 0 ? 0 : 100 * m_free(&t->model, node, k) / c->total;
    left = MIN_OF(left, pods == 0 ? 100 : 99);
    trial_assert(t, c->left == MIN_OF(left, (int64_t)MAX_OF(100 - cores, 0)));
    trial_assert(t, c->used == m_used(&t->model, node, k));
    trial_assert(t, (int)c->cores == cores && c->pods == pods);
}

static void compare_node(struct trial *t, int i)
{
    static const struct m_ask asks[] = {{1, 0, 1, {0}},   {7, 0, 1, {0}},  {13, 0, 1, {0}},
                                        {25, 0, 1, {0}},  {31, 0, 1, {0}}, {6, 50, 1, {0}},
                                        {12, 60, 2, {0}}, {33, 0, 3, {0}}};
    const struct m_node *m = &t->model.nodes[i];
    const struct node *n = cache_node(&t->cache, str_of(node_names[i]));
    trial_assert(t, (n != NULL) == m_node_known(&t->model, i));
    if (n == NULL)
        return;
    trial_assert(t, n->fault == m_fault(&m->size) && n->limit == m_limit(m));
    trial_assert(t, (int)n->n_cards == m_cards(m) && n->assume_ns == m->last_ns);
    trial_assert(t, n->used == m_used(&t->model, i, -2) && n->counted == n->used);
    trial_assert(t, n->unplaced == m_used(&t->model, i, -1));
    t->same_versions += t->digests[i].version == n->version ? 1 : 0;
    trial_assert(t, node_digest_holds(&t->digests[i], n));
    trial_assert(t, m_host_agrees(&t->model, i, n));
    for (int k = 0; k < m_cards(m); k++)
        compare_card(t, i, &n->cards[k], k);
    for (size_t k = 0; k < COUNT_OF(asks); k++) {
        int space = (int)(k % M_SPACES);
        struct request request = request_of(&asks[k], space);
        enum verdict verdict = m_fit(&t->model, i, space, &asks[k]);
        struct evaluation evaluation = {.request = &request};
        trial_assert(t, t->model.quota.is || fit_node(n, &evaluation) == verdict);
        cache_evaluation(&t->cache, STR("nobody"), &request, &evaluation);
        trial_assert(t, fit_node(n, &evaluation) == verdict);
    }
}

static void step(struct trial *t)
{
    uint32_t dice = draw(t, 100);
    t->now_ns = 1000 + (chance(t, 90) ? t->step : draw(t, 4000));
    if (dice < 30)
        step_reserve(t);
    else if (dice < 50)
        step_resolve(t);
    else if (dice < 70)
        step_pod_shown(t, CACHE_POD_SET);
    else if (dice < 75)
        step_pod_shown(t, CACHE_POD_READ);
    else if (dice < 80)
        step_pod_gone(t);
    else if (dice < 90)
        step_list(t);
    else if (dice < 96)
        step_node_set(t);
    else if (dice < 97)
        step_node_gone(t);
    else if (dice < 98 && t->limited)
        step_quota(t);
    else
        step_health(t);
    m_forget(&t->model);
    if (policy_has_costs(t->policy))
        learn(t);
    for (int i = 0; i < M_PODS; i++)
        compare_pod(t, i);
    for (int i = 0; i < M_NODES; i++)
        compare_node(t, i);
    for (int i = 0; i < M_SPACES; i++)
        compare_quota(t, i);
}

static void run_history(uint64_t seed, bool limited, unsigned refused[static VERDICT_COUNT])
{
    static const enum policy policies[] = {POLICY_BINPACK, POLICY_BINPACK, POLICY_BID_PRICE,
                                           POLICY_FGD};
    struct trial t = {.random = seed,
                      .seed = seed,
                      .limited = limited,
                      .policy = policies[seed % COUNT_OF(policies)]};
    cache_init(&t.cache, (struct map_seed){seed, 0});
    t.cache.settings.node_policy = t.policy;
    for (t.step = 0; t.step < STEPS; t.step++)
        step(&t);
    cache_done(&t.cache);
    ck_assert_uint_gt(t.same_versions, STEPS); /* of M_NODES for each step */
    ck_assert(!policy_has_costs(t.policy) || t.lessons > 0);
    for (int v = 0; v < VERDICT_COUNT; v++)
        refused[v] += t.refused[v];
}

START_TEST(agrees_with_the_model)
{
    uint64_t first = seeded_setting("CACHE_MODEL_SEED", 1);
    uint64_t n = seeded_setting("CACHE_MODEL_HISTORIES", 300);
    unsigned refused[VERDICT_COUNT] = {0};
    for (uint64_t i = 0; i < n; i++)
        run_history(first + i, _i == 1, refused);
    /* Otherwise the histories would test nothing. */
    ck_assert(_i == 0 || n < 50 ||
              (refused[VERDICT_QUOTA] > 50 && refused[VERDICT_QUOTA_DENIED] > 50));
}

int main(void)
{
    TCase *tc = unit_case("cache_model");
    tcase_set_timeout(tc, 0);
    tcase_add_loop_test(tc, agrees_with_the_model, 0, 2); /* without quotas and with them */
    return unit_run();
}
