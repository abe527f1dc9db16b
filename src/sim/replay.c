/* The reference simulation: arrivals by seed, and what was allocated at each part of them. */
#include "sim/replay.h"

#include "base/mem.h"

struct arrivals {
    const struct sim_workload *workload;
    struct rng rng;
    uint32_t *pods; /* the workload's, in the order of arrival */
    uint32_t n;
    uint32_t at;
    bool copies;
    int64_t sum; /* of the pods' memory, on one card each */
    int64_t most;
};

static int64_t replay_card_mem(const struct arrivals *a, uint32_t shape)
{
    return a->workload->shapes[shape].card_mem;
}

static enum errc replay_open_arrivals(struct arrivals *a, const struct replay_settings *s,
                                      struct err *e)
{
    const struct sim_workload *w = s->world.workload;
    *a = (struct arrivals){.workload = w, .n = w->n_pods, .copies = !s->once};
    rng_init(&a->rng, s->world.seed, RNG_ARRIVALS);
    if (w->n_pods == 0)
        return err_set(e, ERR_RANGE, "no pod asks for a card");
    a->pods = mem_alloc(w->n_pods * sizeof(*a->pods));
    if (a->pods == NULL)
        return err_set(e, ERR_NOMEM, "out of memory");
    const uint32_t *pods = s->in_order && w->in_file != NULL ? w->in_file : w->pods;
    memcpy(a->pods, pods, w->n_pods * sizeof(*a->pods));
    if (!s->in_order)
        rng_shuffle(&a->rng, a->pods, a->n);
    for (uint32_t i = 0; i < a->n; i++)
        a->sum += replay_card_mem(a, a->pods[i]);
    if (a->sum == 0)
        return err_set(e, ERR_RANGE, "no pod asks for a card");
    a->most = w->capacity * s->fill / 100;
    while (a->sum > a->most && !s->once)
        a->sum -= replay_card_mem(a, a->pods[--a->n]);
    return OK;
}

static bool replay_next(struct arrivals *a, uint32_t *ret)
{
    if (a->at < a->n) {
        *ret = a->pods[a->at++];
        return true;
    }
    if (!a->copies)
        return false;
    *ret = a->workload->pods[rng_below(&a->rng, a->workload->n_pods)];
    a->sum += replay_card_mem(a, *ret);
    return a->sum <= a->most;
}

static double replay_percent(int64_t part, int64_t whole)
{
    return 100.0 * (double)part / (double)whole;
}

static void replay_note(struct replay_result *r, uint32_t *counts, const struct world *w,
                        int64_t arrived)
{
    size_t at = (size_t)(replay_percent(arrived, w->capacity) + 0.5);
    if (at >= r->n_series)
        return;
    r->series[at] += replay_percent(w->allocated, w->capacity);
    counts[at]++;
}

/* A pod that was not placed has no node. */
static void replay_put_place(struct buf *out, const struct world *w, uint64_t number,
                             const struct world_pod *pod)
{
    struct str node = pod->place == UINT32_MAX ? STR("") : w->places[pod->place].node->name;
    if (out != NULL)
        buf_printf(out, "%.*s,%llu,%.*s\n", STR_ARG(w->settings.policy->name),
                   (unsigned long long)number, STR_ARG(node));
}

static enum errc replay_all(struct world *w, struct arrivals *a, uint32_t *counts,
                            struct buf *places, struct replay_result *ret, struct err *e)
{
    int64_t arrived = 0;
    uint32_t shape = 0;
    enum errc code = OK;
    while (code == OK && replay_next(a, &shape)) {
        bool placed = false;
        struct world_pod pod;
        code = world_arrive(w, shape, &placed, &pod, e);
        arrived += a->workload->shapes[shape].mem;
        ret->arrived++;
        ret->rejected += placed ? 0 : 1;
        replay_note(ret, counts, w, arrived);
        replay_put_place(places, w, ret->arrived, &pod);
    }
    ret->arrived_percent = replay_percent(arrived, w->capacity);
    ret->allocated_percent = replay_percent(w->allocated, w->capacity);
    ret->broken_percent = replay_percent(world_broken(w), w->capacity);
    return code;
}

enum errc replay_run(const struct replay_settings *s, struct replay_result *ret, struct err *reterr)
{
    uint32_t counts[LIMIT_SIM_FILL + 1] = {0};
    struct arrivals a = {.pods = NULL};
    struct world w;
    assert(s->fill > 0 && s->fill <= LIMIT_SIM_FILL);
    *ret = (struct replay_result){.n_series = s->fill + 1};
    enum errc code = world_init(&w, &s->world, reterr);
    if (code == OK)
        code = replay_open_arrivals(&a, s, reterr);
    if (code == OK)
        code = replay_all(&w, &a, counts, s->places, ret, reterr);
    for (uint32_t i = 0; i < ret->n_series; i++)
        ret->series[i] = counts[i] == 0 ? -1.0 : ret->series[i] / counts[i];
    mem_free(a.pods);
    world_done(&w);
    return code;
}
