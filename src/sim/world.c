/* Places pods on simulated nodes by the events and functions of the daemon. */
#include "sim/world.h"

#include "base/mem.h"
#include "base/sort.h"
#include "core/place/fit.h"
#include "report/plan.h"
#include "sim/limit.h"

/* ---- nodes ---- */

static enum errc world_apply(struct world *w, const struct cache_event *e, struct effect *ret,
                             struct err *reterr)
{
    enum errc code = cache_apply(&w->cache, e, 0, ret);
    if (w->settings.checked)
        cache_check(&w->cache);
    return code == OK ? OK : err_set(reterr, code, "an event of the cache: %s", errc_name(code));
}

static bool world_comes_before(const void *ctx, uint32_t a, uint32_t b)
{
    const struct sim_workload *w = ctx;
    return str_cmp(w->nodes[a].view.name, w->nodes[b].view.name) < 0;
}

static void world_add_place(struct world *w, const struct sim_node *n)
{
    struct world_place *p = &w->places[w->n_places++];
    p->node = cache_node(&w->cache, n->view.name);
    assert(p->node != NULL && p->node->version > 0);
    p->left = node_host_left(p->node);
    p->version = p->node->version;
    if (p->node->fault == NODE_OK)
        w->capacity += p->node->total;
}

static enum errc world_add_nodes(struct world *w, struct err *e)
{
    const struct sim_workload *all = w->settings.workload;
    enum errc code = OK;
    uint32_t *order = mem_alloc(all->n_nodes * sizeof(*order));
    if (order == NULL)
        return err_set(e, ERR_NOMEM, "out of memory");
    for (uint32_t i = 0; i < all->n_nodes; i++)
        order[i] = i;
    sort_by(order, all->n_nodes, world_comes_before, all);
    if (w->settings.ties == SIM_TIES_RUN)
        rng_shuffle(&w->rng, order, all->n_nodes);
    for (uint32_t i = 0; i < all->n_nodes && code == OK; i++) {
        struct effect effect;
        struct cache_event set = {.type = CACHE_NODE_SET, .node = all->nodes[order[i]].view};
        code = world_apply(w, &set, &effect, e);
    }
    for (uint32_t i = 0; i < all->n_nodes && code == OK; i++) {
        w->place_of[order[i]] = i;
        world_add_place(w, &all->nodes[order[i]]);
    }
    mem_free(order);
    return code;
}

static enum errc world_make_room(struct world *w, struct err *e)
{
    const struct sim_workload *all = w->settings.workload;
    size_t memos = (size_t)all->n_shapes * all->n_nodes;
    bool remembers = memos > 0 && memos <= LIMIT_SIM_MEMO_BYTES / sizeof(*w->memos);
    w->places = mem_alloc(all->n_nodes * sizeof(*w->places));
    w->place_of = mem_alloc(all->n_nodes * sizeof(*w->place_of));
    w->memos = remembers ? mem_alloc(memos * sizeof(*w->memos)) : NULL;
    bool lacks = w->places == NULL || w->place_of == NULL || (remembers && w->memos == NULL);
    return lacks ? err_set(e, ERR_NOMEM, "out of memory") : OK;
}

/* ---- CPU and memory ---- */

static bool world_has(struct host left, struct host wanted)
{
    return wanted.cpu <= left.cpu && wanted.memory <= left.memory;
}

/* The node's pods have changed. */
static void world_look(struct world_place *p)
{
    p->left = node_host_left(p->node);
    p->version = p->node->version;
}

/* ---- the policies ---- */

/* The daemon lets the policies learn in steps between requests; here they are done at once. */
static void world_learn(struct world *w)
{
    struct learned_costs *p = &w->cache.learned;
    if (w->settings.policy->foresees || !policy_has_costs(w->settings.policy->policy) ||
        !learned_costs_are_due(p))
        return;
    if (learned_costs_begin(p, &w->cache.nodes))
        while (learned_costs_step(p)) {
        }
    w->lesson++;
}

/* The paper's version of a policy has seen all pods of the workload. */
static void world_foresee(struct world *w)
{
    const struct sim_workload *all = w->settings.workload;
    struct learned_costs *p = &w->cache.learned;
    if (!w->settings.policy->foresees)
        return;
    p->market.shapes.ageless = true;
    for (uint32_t i = 0; i < all->n_pods; i++) {
        struct shape x = shape_of(&all->shapes[all->pods[i]].request);
        shapes_add(&p->market.shapes, &x);
    }
    fgd_learn(&p->fgd, &p->market);
}

/* ---- pods that are there ---- */

static struct str world_number(uint64_t n, char *bytes, size_t size)
{
    struct buf b = buf_on(bytes, size);
    buf_put_u64(&b, n);
    return buf_str(&b);
}

static struct pod_view world_view(const struct world *w, uint32_t shape, struct str name)
{
    struct pod_view v = w->settings.workload->shapes[shape].view;
    v.uid = name;
    v.name = name;
    v.phase = STR("Pending");
    return v;
}

/* A pod whose node does not exist takes nothing. */
static enum errc world_hold(struct world *w, const struct sim_held *h, struct err *e)
{
    char bytes[24];
    struct effect effect;
    if (h->node == UINT32_MAX)
        return OK;
    struct world_place *p = &w->places[w->place_of[h->node]];
    struct pod_view v = world_view(w, h->shape, world_number(++w->serial, bytes, sizeof(bytes)));
    int64_t used = p->node->used;
    v.node = h->place.node;
    v.phase = STR("Running");
    v.assigned = STR("true");
    v.initialized = h->place.initialized;
    v.idx = h->place.idx;
    v.has_allocation = h->place.has_allocation;
    v.grants = h->place.grants;
    v.n_grants = h->place.n_grants;
    struct cache_event bound = {.type = CACHE_POD_SET, .pod = v};
    enum errc code = world_apply(w, &bound, &effect, e);
    if (code != OK)
        return code;
    world_look(p);
    w->allocated += p->node->used - used;
    return OK;
}

static enum errc world_hold_all(struct world *w, struct err *e)
{
    const struct sim_workload *all = w->settings.workload;
    enum errc code = OK;
    for (uint32_t i = 0; i < all->n_held && code == OK; i++) {
        bool other = !request_wants(&all->shapes[all->held[i].shape].request);
        if (w->settings.held == SIM_HELD_ALL || (other && w->settings.held == SIM_HELD_OTHERS))
            code = world_hold(w, &all->held[i], e);
    }
    return code;
}

enum errc world_init(struct world *w, const struct world_settings *settings, struct err *reterr)
{
    *w = (struct world){.settings = *settings};
    assert(settings->workload->n_nodes > 0);
    cache_init(&w->cache, (struct map_seed){settings->seed, settings->seed});
    w->cache.settings.card_policy = settings->policy->policy;
    w->cache.settings.node_policy = settings->policy->policy;
    rng_init(&w->rng, settings->seed, RNG_NODES);
    enum errc code = world_make_room(w, reterr);
    if (code == OK)
        code = world_add_nodes(w, reterr);
    if (code == OK)
        world_foresee(w);
    return code == OK ? world_hold_all(w, reterr) : code;
}

void world_done(struct world *w)
{
    mem_free(w->places);
    mem_free(w->place_of);
    mem_free(w->memos);
    cache_done(&w->cache);
}

/* ---- the decision ---- */

static uint64_t world_judge(struct world *w, const struct world_place *p, const struct sim_shape *s,
                            const struct evaluation *e)
{
    if (!world_has(p->left, s->request.host))
        return SCORE_NONE;
    if (request_wants(e->request) && !fit_simply(p->node, e) &&
        plan_evaluate(p->node, e) != VERDICT_FITS)
        return SCORE_NONE;
    return sim_policy_score(w->settings.policy, p->node, p->left, s, &w->score);
}

/* Whether the answer depends on the place and on nothing else: an affinity group may hold a card on
 * another node. */
static bool world_remembers(const struct world *w, const struct evaluation *e)
{
    return w->memos != NULL && e->request->affinity.n == 0;
}

static uint64_t world_score(struct world *w, uint32_t shape, uint32_t at,
                            const struct evaluation *e)
{
    const struct sim_shape *s = &w->settings.workload->shapes[shape];
    struct world_place *p = &w->places[at];
    if (!world_remembers(w, e))
        return world_judge(w, p, s, e);
    struct world_memo *m = &w->memos[(size_t)shape * w->n_places + at];
    if (m->version != p->version || m->lesson != w->lesson)
        *m = (struct world_memo){
            .score = world_judge(w, p, s, e), .version = p->version, .lesson = w->lesson};
    return m->score;
}

/* The place with the best score; UINT32_MAX: the pod fits nowhere. */
static uint32_t world_choose(struct world *w, uint32_t shape, const struct evaluation *e)
{
    uint64_t best = SCORE_NONE;
    uint32_t found = UINT32_MAX;
    uint32_t equal = 0;
    for (uint32_t i = 0; i < w->n_places; i++) {
        uint64_t score = world_score(w, shape, i, e);
        if (score == SCORE_NONE || score < best)
            continue;
        equal = score == best ? equal + 1 : 1;
        bool taken =
            score > best || (w->settings.ties == SIM_TIES_POD && rng_below(&w->rng, equal) == 0);
        best = score;
        found = taken ? i : found;
    }
    return found;
}

/* ---- events ---- */

/* The cards that a reservation chose, as the annotations of the bound pod name them: an index for a
 * pod with one card, an allocation for all others. */
static void world_read_cards(struct world *w, const struct pod *p, struct pod_view *ret)
{
    const struct pod_allocation *h = p->allocation;
    ret->n_grants = h == NULL ? 0 : h->n_grants;
    assert(ret->n_grants <= COUNT_OF(w->grants));
    for (uint32_t i = 0; i < ret->n_grants; i++)
        w->grants[i] = (struct grant_view){.container = h->grants[i].container,
                                           .card = h->grants[i].card,
                                           .mem = h->grants[i].mem};
    ret->grants = w->grants;
    if (ret->n_grants == 0)
        return;
    ret->has_allocation = w->grants[0].container != UINT16_MAX;
    if (!ret->has_allocation)
        ret->idx = world_number(w->grants[0].card, w->index, sizeof(w->index));
}

/* The reservation, the answer to its Binding, and the bound pod's object: it runs, and the device
 * plugin has acknowledged it. */
static enum errc world_bind(struct world *w, uint32_t at, const struct request *r,
                            struct pod_view *v, struct err *e)
{
    struct effect effect;
    struct str node = w->places[at].node->name;
    struct cache_event reserve = {
        .type = CACHE_RESERVE,
        .reserve = {
            .uid = v->uid, .namespace = v->namespace, .name = v->name, .node = node, .request = r}};
    struct cache_event confirm = {.type = CACHE_CONFIRM, .holder = {.uid = v->uid}};
    enum errc code = world_apply(w, &reserve, &effect, e);
    if (code != OK)
        return code;
    world_read_cards(w, effect.pod, v);
    int32_t card = effect.pod->card;
    code = world_apply(w, &confirm, &effect, e);
    if (code != OK)
        return code;
    v->node = node;
    v->phase = STR("Running");
    v->assigned = STR("true");
    struct cache_event bound = {.type = CACHE_POD_SET, .pod = *v};
    code = world_apply(w, &bound, &effect, e);
    const struct pod *p = cache_pod(&w->cache, v->uid);
    assert(code != OK || (p != NULL && p->node == w->places[at].node && p->card == card));
    return code;
}

/* A pod that asks for no card: kube-scheduler alone binds it. */
static enum errc world_bind_other(struct world *w, uint32_t at, struct pod_view *v, struct err *e)
{
    struct effect effect;
    v->node = w->places[at].node->name;
    v->phase = STR("Running");
    struct cache_event bound = {.type = CACHE_POD_SET, .pod = *v};
    return world_apply(w, &bound, &effect, e);
}

/* A cluster may have nodes with more than their size. */
static void world_check_node(const struct world *w, const struct node *n)
{
    if (!w->settings.checked || w->settings.held != SIM_HELD_NONE)
        return;
    assert(n->host_used.cpu <= n->host_total.cpu && n->host_used.memory <= n->host_total.memory);
    for (uint32_t i = 0; i < n->n_cards; i++)
        assert(n->cards[i].used <= n->cards[i].total);
}

static void world_note(struct world *w, uint32_t at, int64_t used_before)
{
    struct world_place *p = &w->places[at];
    world_look(p);
    w->allocated += p->node->used - used_before;
    world_check_node(w, p->node);
}

static enum errc world_place(struct world *w, uint32_t shape, struct pod_view *v, uint32_t *ret,
                             struct err *e)
{
    struct evaluation asked;
    const struct request *r = &w->settings.workload->shapes[shape].request;
    cache_evaluation(&w->cache, v->uid, r, &asked);
    score_begin(&w->score, &asked, w->settings.policy->policy);
    uint32_t at = world_choose(w, shape, &asked);
    *ret = at;
    if (at == UINT32_MAX)
        return OK;
    int64_t used = w->places[at].node->used;
    enum errc code = request_wants(r) ? world_bind(w, at, r, v, e) : world_bind_other(w, at, v, e);
    if (code == OK)
        world_note(w, at, used);
    return code;
}

static enum errc world_forget(struct world *w, struct str uid, struct err *e)
{
    struct effect effect;
    struct cache_event gone = {.type = CACHE_POD_GONE, .pod = {.uid = uid}};
    return world_apply(w, &gone, &effect, e);
}

enum errc world_arrive(struct world *w, uint32_t shape, bool *ret_placed, struct world_pod *ret,
                       struct err *reterr)
{
    char bytes[24];
    struct effect effect;
    uint32_t at = UINT32_MAX;
    assert(shape < w->settings.workload->n_shapes);
    bool wants = request_wants(&w->settings.workload->shapes[shape].request);
    struct pod_view v = world_view(w, shape, world_number(++w->serial, bytes, sizeof(bytes)));
    struct cache_event set = {.type = CACHE_POD_SET, .pod = v};
    enum errc code = wants ? world_apply(w, &set, &effect, reterr) : OK;
    if (code == OK)
        world_learn(w);
    if (code == OK)
        code = world_place(w, shape, &v, &at, reterr);
    if (code == OK && wants && at == UINT32_MAX)
        code = world_forget(w, v.uid, reterr);
    *ret_placed = at != UINT32_MAX;
    *ret = (struct world_pod){.serial = w->serial, .shape = shape, .place = at};
    return code;
}

enum errc world_leave(struct world *w, const struct world_pod *p, struct err *reterr)
{
    char bytes[24];
    assert(p->place < w->n_places);
    int64_t used = w->places[p->place].node->used;
    enum errc code = world_forget(w, world_number(p->serial, bytes, sizeof(bytes)), reterr);
    if (code == OK)
        world_note(w, p->place, used);
    return code;
}

enum verdict world_refusal(const struct world *w, uint32_t shape, uint32_t place, bool *ret_host)
{
    struct evaluation e;
    const struct world_place *p = &w->places[place];
    const struct request *r = &w->settings.workload->shapes[shape].request;
    cache_evaluation(&w->cache, STR("?"), r, &e);
    *ret_host = !world_has(p->left, r->host);
    return plan_evaluate(p->node, &e);
}

int64_t world_broken(const struct world *w)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < w->n_places; i++) {
        const struct node *n = w->places[i].node;
        for (uint32_t k = 0; k < n->n_cards; k++)
            sum += n->cards[k].used > 0 ? card_free(&n->cards[k]) : 0;
    }
    return sum;
}
