/* Runs replay jobs, and sums up their results by workload and policy. */
#include "sim/replays.h"

#include "sim/jobs.h"
#include "sim/replay.h"

#include <unistd.h>

#define FILL_DEFAULT 130

struct plan_of_jobs {
    const struct source *source;
    const struct sim_args *args;
    struct replays *replays;
};

/* Seeds are next to each other: a row is complete before the next one begins. */
static uint32_t replays_row_of(const struct plan_of_jobs *p, uint32_t job)
{
    return job / p->args->seeds;
}

static const struct sim_workload *replays_workload(const struct plan_of_jobs *p, uint32_t job)
{
    return &p->source->workloads[replays_row_of(p, job) / p->args->n_policies];
}

static const struct sim_policy *replays_policy(const struct plan_of_jobs *p, uint32_t job)
{
    return &p->args->policies[replays_row_of(p, job) % p->args->n_policies];
}

static uint32_t replays_seed(const struct plan_of_jobs *p, uint32_t job)
{
    return p->args->first_seed + job % p->args->seeds;
}

static enum errc replays_run_one(void *ctx, uint32_t job, struct buf *ret, struct err *e)
{
    const struct plan_of_jobs *p = ctx;
    struct replay_result result;
    struct replay_settings s = {.world = {.workload = replays_workload(p, job),
                                          .policy = replays_policy(p, job),
                                          .ties = p->args->ties,
                                          .seed = replays_seed(p, job),
                                          .checked = p->args->checked},
                                .fill = p->replays->fill};
    enum errc code = replay_run(&s, &result, e);
    if (code == OK)
        buf_put(ret, (struct str){(const char *)&result, sizeof(result)});
    return code;
}

static enum errc replays_take(void *ctx, uint32_t job, struct str bytes, struct err *e)
{
    const struct plan_of_jobs *p = ctx;
    struct replay_result r;
    struct replays_row *row = &p->replays->rows[replays_row_of(p, job)];
    if (bytes.n != sizeof(r))
        return err_set(e, ERR_INTERNAL, "a result has %zu bytes", bytes.n);
    memcpy(&r, bytes.p, sizeof(r));
    row->workload = replays_workload(p, job)->name;
    row->policy = replays_policy(p, job)->name;
    row->runs++;
    row->arrived += r.arrived_percent;
    row->allocated += r.allocated_percent;
    row->broken += r.broken_percent;
    row->rejected_pods += (double)r.rejected;
    for (uint32_t i = 0; i < r.n_series; i++) {
        row->series[i] += r.series[i] < 0 ? 0 : r.series[i];
        row->counts[i] += r.series[i] < 0 ? 0 : 1;
    }
    return OK;
}

static void replays_name(void *ctx, uint32_t job, struct buf *ret)
{
    const struct plan_of_jobs *p = ctx;
    buf_printf(ret, "%.*s, policy %.*s, seed %u", STR_ARG(replays_workload(p, job)->name),
               STR_ARG(replays_policy(p, job)->name), replays_seed(p, job));
}

static void replays_finish(struct replays_row *row, uint32_t fill)
{
    double n = row->runs;
    row->arrived /= n;
    row->allocated /= n;
    row->broken /= n;
    row->rejected_pods /= n;
    for (uint32_t i = 0; i <= fill; i++)
        row->series[i] = row->counts[i] == 0 ? -1.0 : row->series[i] / row->counts[i];
    row->at_full = fill < 100 ? -1.0 : row->series[100];
    row->at_fill = row->series[fill];
}

static uint32_t replays_width(const struct sim_args *a)
{
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    if (a->jobs > 0)
        return a->jobs;
    return n < 1 ? 1 : (uint32_t)MIN_OF(n, (long)LIMIT_SIM_JOBS);
}

enum errc replays_run(const struct source *s, const struct sim_args *a, struct arena *arena,
                      bool progress, struct replays *ret, struct err *reterr)
{
    struct plan_of_jobs p = {.source = s, .args = a, .replays = ret};
    *ret = (struct replays){.n = s->n * a->n_policies};
    ret->fill = a->fill == 0 ? FILL_DEFAULT : a->fill;
    ret->rows = arena_array(arena, ret->n, sizeof(*ret->rows));
    if (ret->rows == NULL)
        return err_set(reterr, arena_fault(arena), "out of memory");
    struct jobs jobs = {.n = (uint32_t)ret->n * a->seeds,
                        .width = replays_width(a),
                        .ctx = &p,
                        .run = replays_run_one,
                        .take = replays_take,
                        .name = replays_name,
                        .progress = progress};
    enum errc code = jobs_run(&jobs, reterr);
    for (size_t i = 0; i < ret->n && code == OK; i++)
        replays_finish(&ret->rows[i], ret->fill);
    return code;
}
