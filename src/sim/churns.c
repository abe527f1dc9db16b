/* Runs churn jobs, and sums up their results. */
#include "sim/churns.h"

#include "sim/churn.h"
#include "sim/jobs.h"

#include <math.h>

struct shift {
    const struct sim_args *args;
    struct churns *churns;
};

static struct churns_row *churns_row_of(const struct shift *s, uint32_t job)
{
    return &s->churns->rows[job / s->args->seeds];
}

static uint32_t churns_seed(const struct shift *s, uint32_t job)
{
    return s->args->first_seed + job % s->args->seeds;
}

static enum errc churns_run_one(void *ctx, uint32_t job, struct buf *ret, struct err *e)
{
    const struct shift *s = ctx;
    const struct churns_row *row = churns_row_of(s, job);
    struct churn_result result;
    struct churn_settings settings = {.world = {.workload = row->workload,
                                                .policy = row->policy,
                                                .ties = s->args->ties,
                                                .seed = churns_seed(s, job),
                                                .checked = s->args->checked},
                                      .load = row->load};
    enum errc code = churn_run(&settings, &result, e);
    if (code == OK)
        buf_put(ret, (struct str){(const char *)&result, sizeof(result)});
    return code;
}

static enum errc churns_take(void *ctx, uint32_t job, struct str bytes, struct err *e)
{
    const struct shift *s = ctx;
    struct churn_result r;
    struct churns_row *row = churns_row_of(s, job);
    if (bytes.n != sizeof(r))
        return err_set(e, ERR_INTERNAL, "the result of a child process has %zu bytes", bytes.n);
    memcpy(&r, bytes.p, sizeof(r));
    row->runs++;
    row->rejected += r.rejected_percent;
    row->squares += r.rejected_percent * r.rejected_percent;
    row->allocated += r.allocated_percent;
    return OK;
}

static void churns_name(void *ctx, uint32_t job, struct buf *ret)
{
    const struct shift *s = ctx;
    const struct churns_row *row = churns_row_of(s, job);
    buf_printf(ret, "%.*s, policy %.*s, load %.4g, seed %u", STR_ARG(row->workload->name),
               STR_ARG(row->policy->name), row->load, churns_seed(s, job));
}

static void churns_add_rows(struct shift *s, const struct source *source)
{
    for (size_t i = 0; i < source->n; i++) {
        for (size_t k = 0; k < s->args->n_policies; k++) {
            for (size_t l = 0; l < s->args->n_loads; l++)
                s->churns->rows[s->churns->n++] =
                    (struct churns_row){.workload = &source->workloads[i],
                                        .policy = &s->args->policies[k],
                                        .load = s->args->loads[l]};
        }
    }
}

static void churns_finish(struct churns_row *row)
{
    double n = row->runs;
    row->rejected /= n;
    row->allocated /= n;
    double variance = row->squares / n - row->rejected * row->rejected;
    row->error = n < 2 || variance <= 0 ? 0 : sqrt(variance / (n - 1));
}

enum errc churns_run(const struct source *s, const struct sim_args *a, struct arena *arena,
                     bool progress, struct churns *ret, struct err *reterr)
{
    struct shift shift = {.args = a, .churns = ret};
    *ret = (struct churns){.n = 0};
    ret->rows = arena_array(arena, s->n * a->n_policies * a->n_loads, sizeof(*ret->rows));
    if (ret->rows == NULL)
        return err_set(reterr, arena_fault(arena), "out of memory");
    churns_add_rows(&shift, s);
    struct jobs jobs = {.n = (uint32_t)ret->n * a->seeds,
                        .width = jobs_width(a->jobs),
                        .ctx = &shift,
                        .run = churns_run_one,
                        .take = churns_take,
                        .name = churns_name,
                        .progress = progress};
    enum errc code = jobs_run(&jobs, reterr);
    for (size_t i = 0; i < ret->n && code == OK; i++)
        churns_finish(&ret->rows[i]);
    return code;
}
