/* Jobs in child processes: their results come in order, and a job that fails or crashes is named.
 */
#include "sim/jobs.h"
#include "sim/limit.h"
#include "unit.h"

#include <signal.h>
#include <unistd.h>

#define N 40

struct scene {
    uint32_t taken;
    uint32_t bad; /* the job that fails; N: none */
    int how;      /* 0: an error; else this signal */
    size_t bytes; /* of a result */
};

static enum errc scene_run(void *ctx, uint32_t job, struct buf *ret, struct err *e)
{
    const struct scene *s = ctx;
    if (job == s->bad && s->how != 0)
        (void)raise(s->how);
    if (job == s->bad)
        return err_set(e, ERR_RANGE, "it does not like its number");
    if (job % 7 == 3)
        (void)usleep(1000); /* later than the jobs after it */
    for (size_t i = 0; i < s->bytes; i++)
        buf_putc(ret, (char)('a' + (job + i) % 26));
    return OK;
}

static enum errc scene_take(void *ctx, uint32_t job, struct str result, struct err *e)
{
    struct scene *s = ctx;
    (void)e;
    ck_assert_uint_eq(job, s->taken++);
    ck_assert_uint_eq(result.n, s->bytes);
    bool same = true;
    for (size_t i = 0; i < result.n; i++)
        same = same && result.p[i] == (char)('a' + (job + i) % 26);
    ck_assert(same);
    return OK;
}

static void scene_name(void *ctx, uint32_t job, struct buf *ret)
{
    (void)ctx;
    buf_printf(ret, "job %u", job);
}

static enum errc scene_play(struct scene *s, uint32_t width, struct err *e)
{
    struct jobs j = {
        .n = N, .width = width, .ctx = s, .run = scene_run, .take = scene_take, .name = scene_name};
    return jobs_run(&j, e);
}

static const uint32_t widths[] = {1, 2, 3, 64};

TEST_EACH(takes_results_in_order, COUNT_OF(widths))
{
    struct err e = ERR_INIT;
    struct scene s = {.bad = N, .bytes = 100000}; /* more than a pipe holds */
    ck_assert_ok(scene_play(&s, widths[_i], &e), &e);
    ck_assert_uint_eq(s.taken, N);
}

static const struct {
    int how;
    const char *error;
} failures[] = {
    {0, "job 5: it does not like its number"},
    {SIGKILL, "job 5: its process was ended by signal 9"},
    {SIGUSR2, "job 5: its process was ended by signal 12"},
};

TEST_EACH(names_the_job_that_fails, COUNT_OF(failures))
{
    struct err e = ERR_INIT;
    struct scene s = {.bad = 5, .how = failures[_i].how, .bytes = 10};
    ck_assert_int_ne(scene_play(&s, 3, &e), OK);
    ck_assert_str_eq(e.text, failures[_i].error);
    ck_assert_uint_le(s.taken, 5);
}

TEST(refuses_a_result_that_is_too_large)
{
    struct err e = ERR_INIT;
    struct scene s = {.bad = N, .bytes = 5 * MIB};
    ck_assert_int_ne(scene_play(&s, 1, &e), OK);
    ck_assert_str_eq(e.text, "job 0: the result is too large");
}
