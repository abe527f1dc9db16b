/* Runs replay jobs, and sums up their results by workload and policy. */
#include "sim/replays.h"

#include "sim/jobs.h"
#include "sim/replay.h"

#define FILL_DEFAULT 130

struct round {
    const struct sim_args *args;
    struct replays *replays;
    uint32_t n_jobs;
};

static void replays_add_row(struct round *r, const struct sim_workload *w,
                            const struct sim_policy *p, bool in_order)
{
    struct replays_row *row = &r->replays->rows[r->replays->n++];
    row->workload = w;
    row->policy = p;
    row->in_order = in_order;
    row->first_job = r->n_jobs;
    r->n_jobs += in_order ? 1 : r->args->seeds;
}

static void replays_add_rows(struct round *r, const struct source *s)
{
    for (size_t i = 0; i < s->n; i++) {
        for (size_t k = 0; k < r->args->n_policies; k++) {
            if (r->replays->once)
                replays_add_row(r, &s->workloads[i], &r->args->policies[k], true);
            if (!r->args->in_order)
                replays_add_row(r, &s->workloads[i], &r->args->policies[k], false);
        }
    }
}

static struct replays_row *replays_row_of(const struct round *r, uint32_t job)
{
    size_t i = r->replays->n - 1;
    while (r->replays->rows[i].first_job > job)
        i--;
    return &r->replays->rows[i];
}

static uint32_t replays_seed(const struct round *r, uint32_t job)
{
    return r->args->first_seed + job - replays_row_of(r, job)->first_job;
}

static enum errc replays_run_one(void *ctx, uint32_t job, struct buf *ret, struct err *e)
{
    const struct round *r = ctx;
    const struct replays_row *row = replays_row_of(r, job);
    struct replay_result result;
    struct buf places = {.p = NULL};
    struct replay_settings s = {
        .world = {.workload = row->workload,
                  .policy = row->policy,
                  .ties = r->args->ties,
                  .held = row->workload->n_held > 0 ? SIM_HELD_OTHERS : SIM_HELD_NONE,
                  .seed = replays_seed(r, job),
                  .checked = r->args->checked},
        .fill = r->replays->fill,
        .in_order = row->in_order,
        .once = r->replays->once,
        .places = r->replays->places == NULL ? NULL : &places};
    buf_init(&places, LIMIT_SIM_BYTES);
    enum errc code = replay_run(&s, &result, e);
    if (code == OK && buf_failed(&places))
        code = err_set(e, buf_fault(&places), "too many places");
    buf_put(ret, (struct str){(const char *)&result, sizeof(result)});
    buf_put(ret, buf_str(&places));
    buf_done(&places);
    return code;
}

static void replays_take_places(const struct round *r, const struct replays_row *row,
                                struct str lines)
{
    struct str line;
    while (r->replays->places != NULL && str_cut(lines, '\n', &line, &lines))
        buf_printf(r->replays->places, "%.*s,%.*s\n", STR_ARG(row->workload->name), STR_ARG(line));
}

static enum errc replays_take(void *ctx, uint32_t job, struct str bytes, struct err *e)
{
    const struct round *round = ctx;
    struct replay_result r;
    struct replays_row *row = replays_row_of(round, job);
    if (bytes.n < sizeof(r))
        return err_set(e, ERR_INTERNAL, "a result has %zu bytes", bytes.n);
    memcpy(&r, bytes.p, sizeof(r));
    replays_take_places(round, row, (struct str){bytes.p + sizeof(r), bytes.n - sizeof(r)});
    row->runs++;
    row->arrived += r.arrived_percent;
    row->allocated += r.allocated_percent;
    row->broken += r.broken_percent;
    row->rejected += (double)r.rejected;
    double last = 0;
    for (uint32_t i = 0; i < r.n_series && i < r.arrived_percent + 0.5; i++) {
        last = r.series[i] < 0 ? last : r.series[i];
        row->series[i] += last;
        row->counts[i]++;
    }
    return OK;
}

static void replays_name(void *ctx, uint32_t job, struct buf *ret)
{
    const struct round *r = ctx;
    const struct replays_row *row = replays_row_of(r, job);
    buf_printf(ret, "%.*s, policy %.*s, seed %u", STR_ARG(row->workload->name),
               STR_ARG(row->policy->name), replays_seed(r, job));
}

static void replays_finish(struct replays_row *row, uint32_t fill)
{
    double n = row->runs;
    row->arrived /= n;
    row->allocated /= n;
    row->broken /= n;
    row->rejected /= n;
    for (uint32_t i = 0; i <= fill; i++)
        row->series[i] = row->counts[i] == 0 ? -1.0 : row->series[i] / row->counts[i];
    row->at_full = fill < 100 ? -1.0 : row->series[100];
    row->at_fill = row->series[fill];
}

enum errc replays_run(const struct source *s, const struct sim_args *a, struct arena *arena,
                      bool progress, struct buf *places, struct replays *ret, struct err *reterr)
{
    struct round r = {.args = a, .replays = ret};
    *ret = (struct replays){.of_cluster = a->cluster.p != NULL, .places = places};
    ret->once = a->in_order || (ret->of_cluster && a->fill == 0);
    ret->fill = a->fill > 0 ? a->fill : ret->of_cluster ? LIMIT_SIM_FILL : FILL_DEFAULT;
    ret->rows = arena_array(arena, 2 * s->n * a->n_policies, sizeof(*ret->rows));
    if (ret->rows == NULL)
        return err_set(reterr, arena_fault(arena), "out of memory");
    replays_add_rows(&r, s);
    struct jobs jobs = {.n = r.n_jobs,
                        .width = jobs_width(a->jobs),
                        .ctx = &r,
                        .run = replays_run_one,
                        .take = replays_take,
                        .name = replays_name,
                        .progress = progress};
    enum errc code = jobs_run(&jobs, reterr);
    for (size_t i = 0; i < ret->n && code == OK; i++)
        replays_finish(&ret->rows[i], ret->fill);
    return code;
}
