/* Runs the sides of a comparison in turn and prints the figures; see bench.h. */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define SIDES_MAX  12
#define ROUNDS_MAX 10000

static uint64_t read_ns(clockid_t clock)
{
    struct timespec t;
    if (clock_gettime(clock, &t) != 0)
        abort();
    return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

uint64_t bench_now_ns(void)
{
    return read_ns(CLOCK_MONOTONIC);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_quantile(double *values, size_t n, double q)
{
    qsort(values, n, sizeof(*values), compare);
    size_t i = (size_t)(q * (double)n);
    return values[MIN_OF(i, n - 1)];
}

double bench_median(double *values, size_t n)
{
    return bench_quantile(values, n, 0.5);
}

bool bench_is_quick(void)
{
    return getenv("BENCH_QUICK") != NULL;
}

enum by {
    BY_CLOCK,
    BY_THREAD, /* this thread's processor time */
    BY_BOTH,   /* that, and the processor time of the process that gets the requests */
};

/* Reads the other process' clock first at the start and last at the end, because reading a clock
 * takes this thread's time too. */
static uint64_t spent(enum by by, const struct bench_side *s, bool before)
{
    if (by == BY_CLOCK)
        return read_ns(CLOCK_MONOTONIC);
    if (by == BY_THREAD)
        return read_ns(CLOCK_THREAD_CPUTIME_ID);
    uint64_t first = read_ns(before ? s->asked : CLOCK_THREAD_CPUTIME_ID);
    return first + read_ns(before ? CLOCK_THREAD_CPUTIME_ID : s->asked);
}

static void take_turns(enum by by, struct bench_side *sides, size_t n, size_t rounds)
{
    static double us[SIDES_MAX][ROUNDS_MAX];
    const size_t warm_up = 3;
    if (n > SIDES_MAX)
        abort();
    rounds = bench_is_quick() ? 3 : MIN_OF(rounds, (size_t)ROUNDS_MAX);
    for (size_t i = 0; i < warm_up + rounds; i++) {
        for (size_t s = 0; s < n; s++) {
            uint64_t before = spent(by, &sides[s], true);
            size_t times = sides[s].once(sides[s].ctx);
            double took = (double)(spent(by, &sides[s], false) - before) / 1000;
            if (i >= warm_up)
                us[s][i - warm_up] = took / (double)times;
        }
    }
    for (size_t s = 0; s < n; s++)
        sides[s].us = bench_median(us[s], rounds);
}

void bench_turns(struct bench_side *sides, size_t n, size_t rounds)
{
    take_turns(BY_CLOCK, sides, n, rounds);
}

void bench_turns_alone(struct bench_side *sides, size_t n, size_t rounds)
{
    take_turns(BY_THREAD, sides, n, rounds);
}

void bench_turns_together(struct bench_side *sides, size_t n, size_t rounds)
{
    take_turns(BY_BOTH, sides, n, rounds);
}

static const char *verdict(const struct figure *f, double got)
{
    if (f->target <= 0)
        return "";
    bool met = f->sense == BENCH_AT_MOST ? got <= f->target : got >= f->target;
    return met ? "met" : "MISSED";
}

static void tell_person(const struct figure *f)
{
    char x[64] = "";
    if (f->by != NULL)
        (void)snprintf(x, sizeof(x), "%llu %s", (unsigned long long)f->x, f->by);
    printf("%-19s %-36s %16s %12.3f %-8s", f->table, f->what, x, f->value, f->unit);
    double got = f->value;
    if (f->beside != NULL) {
        got = f->limit > 0 ? f->value / f->limit : 0;
        printf(" %12.3f %-28s ratio %7.3f", f->limit, f->beside, got);
    }
    if (f->target > 0)
        printf(" %s %.2f %s", f->sense == BENCH_AT_MOST ? "<=" : ">=", f->target, verdict(f, got));
    printf("\n");
    (void)fflush(stdout);
}

/* cardpack's own texts only: nothing in them needs escapes. */
static void tell_script(FILE *out, const struct figure *f)
{
    (void)fprintf(out, "{\"table\":\"%s\",\"what\":\"%s\",\"value\":%.9g,\"unit\":\"%s\"", f->table,
                  f->what, f->value, f->unit);
    if (f->by != NULL)
        (void)fprintf(out, ",\"by\":\"%s\",\"x\":%llu", f->by, (unsigned long long)f->x);
    if (f->beside != NULL)
        (void)fprintf(out, ",\"beside\":\"%s\",\"limit\":%.9g", f->beside, f->limit);
    if (f->target > 0)
        (void)fprintf(out, ",\"target\":%.9g,\"sense\":\"%s\"", f->target,
                      f->sense == BENCH_AT_MOST ? "at most" : "at least");
    (void)fprintf(out, "}\n");
}

void bench_figure(const struct figure *f)
{
    const char *path = getenv("BENCH_FIGURES");
    tell_person(f);
    if (path == NULL)
        return;
    FILE *out = fopen(path, "ae");
    if (out == NULL) {
        perror(path);
        exit(1);
    }
    tell_script(out, f);
    if (fclose(out) != 0)
        exit(1);
}
