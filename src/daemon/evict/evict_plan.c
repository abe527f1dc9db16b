/* Asks victims_choose for each node of the question and copies the cheapest plan. */
#include "daemon/evict/evict_plan.h"

#include "core/place/fit.h"
#include "daemon/limit.h"

/* STEPS: the most placement attempts of one plan, all nodes together. STEPS_MIN: what each node
 * gets at least. One attempt takes about 2 us. */
#define STEPS     16384U
#define STEPS_MIN 256U

/* Priority of system-cluster-critical: pods of this or a higher priority are never victims. It is
 * enough to drop a node's cheapest set if it has such a victim. A set without one is cheaper,
 * unless it violates more PodDisruptionBudgets, and a set with violations is not evicted. */
#define CRITICAL 2000000000

static const struct node *evict_plan_node_of(const struct evict_question *q,
                                             const struct request *r, struct str name)
{
    const struct node *n = cache_node(q->cache, name);
    return n == NULL || n->fault != NODE_OK || r->mem > node_free(n) ? NULL : n;
}

static void evict_plan_load(const struct evict_question *q, struct step_budget *w,
                            struct evaluation *ret)
{
    cache_evaluation(q->cache, q->pod->uid, q->pod->request, ret);
    step_budget_begin(w, MAX_OF(q->n_nodes, 1U));
    ret->step_budget = w;
}

bool evict_fits(const struct evict_question *q)
{
    struct step_budget step_budget;
    struct evaluation e;
    struct str name;
    size_t cursor = 0;
    evict_plan_load(q, &step_budget, &e);
    while (refusal_next(q->nodes, &cursor, &name)) {
        if (fit_node(cache_node(q->cache, name), &e) == VERDICT_FITS)
            return true;
    }
    return false;
}

/* Copies the victims: the cache may free its pods before the plan is freed. */
static enum errc evict_plan_copy(const struct victims *v, const struct node *n, struct arena *a,
                                 struct evict_plan *ret)
{
    struct evict_plan p = {.found = true,
                           .there = v->there,
                           .cost = v->cost,
                           .n = v->cost.n,
                           .node = arena_dup(a, n->name)};
    p.victims = arena_array(a, MAX_OF(p.n, 1U), sizeof(*p.victims));
    if (p.victims == NULL || p.node.p == NULL)
        return arena_fault(a);
    for (uint32_t i = 0; i < p.n; i++) {
        const struct pod *x = v->pods[i];
        p.victims[i] = (struct evict_victim){.uid = arena_dup(a, x->uid),
                                             .namespace = arena_dup(a, x->namespace),
                                             .name = arena_dup(a, x->name),
                                             .priority = x->request->priority};
        if (p.victims[i].name.p == NULL)
            return arena_fault(a);
    }
    *ret = p;
    return OK;
}

static enum errc evict_plan_consider(const struct evict_question *q, const struct evaluation *e,
                                     const struct node *n, struct arena *a, struct evict_plan *best)
{
    unsigned steps = MAX_OF(STEPS / MAX_OF(q->n_nodes, 1U), STEPS_MIN);
    struct victims found;
    struct victims_question ask = {.node = n,
                                   .evaluation = e,
                                   .budgets = q->budgets,
                                   .spared = q->spared,
                                   .n_spared = q->n_spared,
                                   .steps = &steps};
    enum errc code = victims_choose(&ask, a, &found);
    if (code != OK || found.verdict != VERDICT_FITS || found.cost.n > LIMIT_EVICT_VICTIMS)
        return code;
    if (found.cost.n > 0 && found.cost.highest >= CRITICAL)
        return OK;
    if (best->found && victims_cost_cmp(&found.cost, &best->cost) >= 0)
        return OK;
    return evict_plan_copy(&found, n, a, best);
}

enum errc evict_plan(const struct evict_question *q, struct arena *a, struct evict_plan *ret)
{
    struct evict_plan best = {.found = false};
    struct step_budget step_budget;
    struct evaluation e;
    struct str name;
    size_t cursor = 0;
    evict_plan_load(q, &step_budget, &e);
    while (refusal_next(q->nodes, &cursor, &name)) {
        const struct node *n = evict_plan_node_of(q, e.request, name);
        enum errc code = n == NULL || step_budget_is_spent(&step_budget)
                             ? OK
                             : evict_plan_consider(q, &e, n, a, &best);
        if (code != OK)
            return code;
    }
    *ret = best;
    return OK;
}
