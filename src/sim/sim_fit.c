/* Lets one pod after another arrive until the next one fits nowhere. */
#include "sim/sim_fit.h"

#include "core/place/fit.h"
#include "core/request/verdict.h"

#include "report/shortfall_write.h"
#include <stdlib.h>

#define HOST_REASON STR("Insufficient CPU or memory")

static struct world_settings sim_fit_settings(const struct sim_workload *w,
                                              const struct sim_args *a)
{
    return (struct world_settings){.workload = w,
                                   .policy = &a->policies[0],
                                   .ties = a->ties,
                                   .held = SIM_HELD_ALL,
                                   .seed = a->first_seed,
                                   .checked = a->checked};
}

static int sim_fit_by_nodes(const void *a, const void *b)
{
    const struct sim_fit_stop *x = a;
    const struct sim_fit_stop *y = b;
    if (x->nodes != y->nodes)
        return x->nodes > y->nodes ? -1 : 1;
    return str_cmp(x->reason, y->reason);
}

static struct sim_fit_stop *sim_fit_find_stop(struct sim_fit_answer *ret, struct str reason)
{
    for (size_t i = 0; i < ret->n_stops; i++) {
        if (str_eq(ret->stops[i].reason, reason))
            return &ret->stops[i];
    }
    ret->stops[ret->n_stops] = (struct sim_fit_stop){.reason = reason};
    return &ret->stops[ret->n_stops++];
}

static enum errc sim_fit_explain(const struct world *w, uint32_t shape, struct arena *arena,
                                 struct sim_fit_answer *ret, struct err *e)
{
    uint32_t counts[VERDICT_COUNT] = {0};
    uint32_t by_host = 0;
    for (uint32_t i = 0; i < w->n_places; i++) {
        bool host = false;
        enum verdict v = world_refusal(w, shape, i, &host);
        by_host += v == VERDICT_FITS && host ? 1 : 0;
        counts[v]++;
    }
    ret->stops = arena_array(arena, VERDICT_COUNT + 1, sizeof(*ret->stops));
    if (ret->stops == NULL)
        return err_set(e, arena_fault(arena), "out of memory");
    for (unsigned v = VERDICT_FITS + 1; v < VERDICT_COUNT; v++) {
        char bytes[256];
        struct buf scratch = BUF_ON(bytes);
        struct str reason =
            shortfall_is_of_few((enum verdict)v, &w->settings.workload->shapes[shape].request, 1)
                ? STR(SHORTFALL_FEW)
                : verdict_reason((enum verdict)v, STR("..."), &scratch);
        if (counts[v] > 0)
            sim_fit_find_stop(ret, arena_dup(arena, reason))->nodes += counts[v];
    }
    if (by_host > 0)
        sim_fit_find_stop(ret, HOST_REASON)->nodes = by_host;
    if (ret->n_stops > 1)
        qsort(ret->stops, ret->n_stops, sizeof(*ret->stops), sim_fit_by_nodes);
    return OK;
}

static enum errc sim_fit_fill(struct world *w, uint32_t shape, bool *seen,
                              struct sim_fit_answer *ret, struct err *e)
{
    bool placed = true;
    enum errc code = OK;
    while (code == OK && placed && ret->fit < LIMIT_SIM_FIT) {
        struct world_pod pod;
        code = world_arrive(w, shape, &placed, &pod, e);
        if (code != OK || !placed)
            break;
        ret->fit++;
        ret->nodes += seen[pod.place] ? 0 : 1;
        seen[pod.place] = true;
    }
    ret->limited = placed;
    return code;
}

enum errc sim_fit_run(const struct sim_workload *w, uint32_t shape, const struct sim_args *a,
                      struct arena *arena, struct sim_fit_answer *ret, struct err *reterr)
{
    struct world world;
    struct world_settings settings = sim_fit_settings(w, a);
    bool *seen = arena_array(arena, w->n_nodes, sizeof(*seen));
    *ret = (struct sim_fit_answer){.fit = 0};
    if (seen == NULL)
        return err_set(reterr, arena_fault(arena), "out of memory");
    enum errc code = world_init(&world, &settings, reterr);
    if (code == OK)
        code = sim_fit_fill(&world, shape, seen, ret, reterr);
    if (code == OK && !ret->limited)
        code = sim_fit_explain(&world, shape, arena, ret, reterr);
    world_done(&world);
    return code;
}
