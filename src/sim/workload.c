/* The nodes and shapes of a simulation, copied from the views of a reader. */
#include "sim/workload.h"

#include "core/cache/cache.h"
#include "core/place/fit.h"
#include "core/state/pod_allocation.h"
#include "sim/limit.h"

static const struct map_seed workload_seed = {UINT64_C(0x736861706573), UINT64_C(0x63617264)};

/* ---- shapes ---- */

static uint64_t workload_hash(const struct request *r)
{
    const uint64_t words[] = {(uint64_t)r->host.cpu, (uint64_t)r->host.memory, (uint64_t)r->mem,
                              r->cards, map_hash(workload_seed, r->models)};
    return map_hash(workload_seed, (struct str){(const char *)words, sizeof(words)});
}

/* The slot of the shape, or the empty slot for it. */
static size_t workload_slot(const struct sim_shapes *t, const struct request *r)
{
    size_t at = (size_t)workload_hash(r) & (t->n_slots - 1);
    while (t->slots[at] != 0 && !request_equal(&t->all[t->slots[at] - 1].request, r))
        at = (at + 1) & (t->n_slots - 1);
    return at;
}

/* At most half of the slots are in use. */
static bool workload_make_slots(struct sim_shapes *t)
{
    if (2 * (t->n + 1) <= t->n_slots)
        return true;
    t->n_slots = MAX_OF(2 * t->n_slots, (size_t)256);
    t->slots = arena_array(t->arena, t->n_slots, sizeof(*t->slots));
    for (size_t i = 0; t->slots != NULL && i < t->n; i++) {
        size_t at = workload_slot(t, &t->all[i].request);
        t->slots[at] = (uint32_t)i + 1;
    }
    return t->slots != NULL;
}

static struct str workload_dup(struct arena *a, struct str s)
{
    return s.p == NULL ? STR_NULL : arena_dup(a, s);
}

static const struct container_view *workload_keep_containers(const struct pod_view *v,
                                                             struct arena *a)
{
    struct container_view *all = arena_array(a, v->n_containers, sizeof(*all));
    for (size_t i = 0; all != NULL && i < v->n_containers; i++) {
        all[i] = v->containers[i];
        all[i].name = workload_dup(a, all[i].name);
        all[i].mem = workload_dup(a, all[i].mem);
        all[i].cores = workload_dup(a, all[i].cores);
        all[i].exclusive = workload_dup(a, all[i].exclusive);
    }
    return all;
}

/* What a request is read from, and nothing of a place that the pod has. */
static struct pod_view workload_keep_pod(const struct pod_view *v, struct arena *a)
{
    return (struct pod_view){
        .namespace = workload_dup(a, v->namespace),
        .mem_overhead = workload_dup(a, v->mem_overhead),
        .host = v->host,
        .priority = v->priority,
        .never_preempts = v->never_preempts,
        .count_label = workload_dup(a, v->count_label),
        .whole_label = workload_dup(a, v->whole_label),
        .percent = workload_dup(a, v->percent),
        .card_model = workload_dup(a, v->card_model),
        .card_uuid = workload_dup(a, v->card_uuid),
        .affinity = workload_dup(a, v->affinity),
        .anti_affinity = workload_dup(a, v->anti_affinity),
        .policy = workload_dup(a, v->policy),
        .node_policy = workload_dup(a, v->node_policy),
        .card_policy = workload_dup(a, v->card_policy),
        .require_isolation = workload_dup(a, v->require_isolation),
        .containers = v->n_containers == 0 ? NULL : workload_keep_containers(v, a),
        .n_containers = v->n_containers,
        .n_mains = v->n_mains,
    };
}

static enum errc workload_full(const struct arena *a, struct err *e)
{
    return err_set(e, arena_fault(a), "too much for the memory of a simulation");
}

enum errc sim_shapes_add(struct sim_shapes *t, const struct pod_view *view, uint32_t *ret,
                         struct err *reterr)
{
    struct request r;
    enum errc code = request_read(view, &r, reterr);
    bool bound = pod_view_bound(view);
    if (code != OK && !bound)
        return code;
    if (!workload_make_slots(t))
        return workload_full(t->arena, reterr);
    size_t slot = workload_slot(t, &r);
    if (t->slots[slot] == 0) {
        t->all = arena_grow(t->arena, t->all, t->n, &t->cap, sizeof(*t->all));
        if (t->all == NULL)
            return workload_full(t->arena, reterr);
        struct sim_shape *s = &t->all[t->n];
        *s = (struct sim_shape){.view = workload_keep_pod(view, t->arena)};
        if (arena_failed(t->arena))
            return workload_full(t->arena, reterr);
        code = request_read(&s->view, &s->request, reterr);
        assert((code == OK || bound) && request_equal(&r, &s->request));
        s->mem = s->request.mem;
        s->card_mem = s->request.mem / request_cards(&s->request);
        t->slots[slot] = (uint32_t)++t->n;
    }
    *ret = t->slots[slot] - 1;
    return OK;
}

enum errc sim_workload_add(struct sim_workload *w, const struct pod_view *view, struct arena *a,
                           uint32_t *ret, struct err *reterr)
{
    struct sim_shapes one = {.arena = a};
    enum errc code = sim_shapes_add(&one, view, ret, reterr);
    if (code != OK)
        return code;
    assert(one.n == 1 && one.all != NULL);
    struct sim_shape *all = arena_array(a, (size_t)w->n_shapes + 1, sizeof(*all));
    if (all == NULL)
        return workload_full(a, reterr);
    if (w->n_shapes > 0)
        memcpy(all, w->shapes, w->n_shapes * sizeof(*all));
    all[w->n_shapes] = one.all[0];
    *ret = w->n_shapes++;
    w->shapes = all;
    return OK;
}

/* ---- nodes ---- */

struct node_view sim_node_keep(const struct node_view *view, struct arena *a)
{
    struct node_view n = *view;
    struct str *const texts[] = {
        &n.name,   &n.mem,       &n.count,     &n.mem_allocatable, &n.cpu,
        &n.memory, &n.exclusive, &n.placement, &n.max_pods,        &n.model,
        &n.pool,   &n.isolation, &n.cordoned,  &n.exclusive_cards, &n.dra_cards,
        &n.dra};
    for (size_t i = 0; i < COUNT_OF(texts); i++)
        *texts[i] = workload_dup(a, *texts[i]);
    struct card_view *cards = n.n_cards == 0 ? NULL : arena_array(a, n.n_cards, sizeof(*cards));
    for (size_t i = 0; cards != NULL && i < n.n_cards; i++) {
        cards[i] = view->cards[i];
        cards[i].model = workload_dup(a, cards[i].model);
        cards[i].uuid = workload_dup(a, cards[i].uuid);
        cards[i].profile = workload_dup(a, cards[i].profile);
    }
    n.cards = cards;
    if (n.cards_fault != NULL)
        n.cards_fault = "the table of cards can't be read";
    return n;
}

enum errc sim_nodes_index(struct map *ret, struct sim_node *nodes, uint32_t n, struct err *reterr)
{
    size_t key = offsetof(struct sim_node, view) + offsetof(struct node_view, name);
    map_init(ret, key, workload_seed);
    for (uint32_t i = 0; i < n; i++) {
        struct str name = nodes[i].view.name;
        if (map_get(ret, name) != NULL)
            return err_set(reterr, ERR_CONFLICT, "two nodes are named \"%.*s\"",
                           STR_ARG(str_head(name, 64)));
        if (map_put(ret, &nodes[i]) != OK)
            return err_set(reterr, ERR_NOMEM, "out of memory");
    }
    return OK;
}

static void workload_measure_shapes(struct sim_workload *w, int64_t largest)
{
    struct node n = {.largest = largest};
    for (uint32_t i = 0; i < w->n_shapes; i++) {
        struct sim_shape *s = &w->shapes[i];
        if (request_fixed(&s->request))
            continue;
        s->mem = fit_cost(&n, &s->request);
        s->card_mem = s->mem / request_cards(&s->request);
    }
}

enum errc sim_workload_measure(struct sim_workload *w, struct err *reterr)
{
    struct intern_table table;
    int64_t largest = 0;
    enum errc code = OK;
    intern_init(&table, workload_seed);
    w->capacity = 0;
    for (uint32_t i = 0; i < w->n_nodes && code == OK; i++) {
        struct node_sizes *s = node_sizes_take(&table, &w->nodes[i].view);
        if (s == NULL)
            code = err_set(reterr, ERR_NOMEM, "out of memory");
        else if (s->fault == NODE_OK)
            w->capacity += s->total;
        for (uint32_t k = 0; s != NULL && k < s->n_cards; k++)
            largest = MAX_OF(largest, s->cards[k].total);
        node_sizes_give(&table, s);
    }
    intern_done(&table);
    workload_measure_shapes(w, largest);
    if (code == OK && w->capacity == 0)
        code = err_set(reterr, ERR_RANGE, "no node has cards that are shared");
    return code;
}
