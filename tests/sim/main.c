/*
 * The simulation's command line.
 *
 * sim [--seed N | --seeds FROM..TO] [--jobs N] [--trace] [--steps N] [--hash] [--counts] [--tap]
 * [--crash SIGNAL]
 *
 * --seed N: runs one history; with --trace, prints it as it runs
 * --seeds FROM..TO: runs each of these seeds, in --jobs processes
 * --steps N: each history ends after N steps
 * --hash: prints the hash over all histories' traces
 * --counts: prints how much happened
 * --crash SIGNAL: the last history ends with this signal number, to show what a crash prints
 * --tap: prints TAP: a line for each process' seeds, and one that compares the hash of some seeds
 * with the hash of a second run at other addresses
 *
 * A failure prints "seed=... step=..." and the trace's tail; --seed with --trace replays it. The
 * exit status is 0 only without a failure.
 */
#include "history.h"

#include "oracle.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define JOBS_MAX 256

struct options {
    uint64_t first;
    uint64_t last;
    uint64_t jobs;
    uint64_t steps;
    uint64_t crash;
    bool hash;
    bool tap;
    bool counts;
};

static _Noreturn void usage(void)
{
    (void)fprintf(stderr, "usage: sim [--seed N | --seeds FROM..TO] [--jobs N] [--trace] "
                          "[--steps N] [--hash] [--counts] [--tap] [--crash SIGNAL]\n");
    exit(2);
}

static bool read_range(struct str text, struct options *o)
{
    struct str first;
    struct str last;
    return str_cut(text, '.', &first, &last) && str_to_u64(first, UINT64_MAX, &o->first) &&
           str_starts(last, STR(".")) && str_to_u64(str_skip(last, 1), UINT64_MAX - 1, &o->last) &&
           o->first <= o->last;
}

static bool *flag_of(struct options *o, struct str name)
{
    if (str_eq(name, STR("--trace")))
        return &trace_all;
    if (str_eq(name, STR("--hash")))
        return &o->hash;
    if (str_eq(name, STR("--tap")))
        return &o->tap;
    return str_eq(name, STR("--counts")) ? &o->counts : NULL;
}

static void options_read(int argc, char *argv[], struct options *o)
{
    *o = (struct options){.first = 1, .last = 100, .jobs = 1};
    for (int i = 1; i < argc; i++) {
        struct str name = str_of(argv[i]);
        struct str value = i + 1 < argc ? str_of(argv[i + 1]) : STR("");
        bool good = true;
        bool *flag = flag_of(o, name);
        if (flag != NULL) {
            *flag = true;
            continue;
        }
        if (str_eq(name, STR("--seed"))) {
            good = str_to_u64(value, UINT64_MAX - 1, &o->first);
            o->last = o->first;
        } else if (str_eq(name, STR("--seeds"))) {
            good = read_range(value, o);
        } else if (str_eq(name, STR("--jobs"))) {
            good = str_to_u64(value, JOBS_MAX, &o->jobs) && o->jobs > 0;
        } else if (str_eq(name, STR("--steps"))) {
            good = str_to_u64(value, UINT64_MAX, &o->steps);
        } else if (str_eq(name, STR("--crash"))) {
            good = str_to_u64(value, 64, &o->crash) && o->crash > 0;
        } else {
            good = false;
        }
        if (!good)
            usage();
        i++;
    }
}

static void add(struct world *sum, const struct world *w)
{
    sum->steps += w->steps;
    sum->binds += w->binds;
    sum->posts += w->posts;
    sum->kills += w->kills;
    sum->evictions += w->evictions;
    sum->rest_ms = MAX_OF(sum->rest_ms, w->rest_ms);
    sum->hand_over_ms = MAX_OF(sum->hand_over_ms, w->hand_over_ms);
    for (size_t i = 0; i < ROGUES; i++) {
        struct rogue_count *c = &sum->rogues[i];
        uint64_t least_ms = w->rogues[i].least_ms;
        c->commits += w->rogues[i].commits;
        c->over_commits += w->rogues[i].over_commits;
        if (least_ms > 0)
            c->least_ms = c->least_ms == 0 ? least_ms : MIN_OF(c->least_ms, least_ms);
    }
}

/* Prints the counts of commits that broke the rules, by kind. */
static void print_rogues(const struct world *sum)
{
    static const char *const names[ROGUES] = {
        [ROGUE_COMMIT] = "Bindings that the API server committed after their deadline",
        [ROGUE_COPY] = "Bindings that a proxy delivered again, too late",
        [ROGUE_TWIN] = "Bindings that a proxy sent twice, and the other copy was refused"};
    for (size_t i = 1; i < ROGUES; i++) {
        const struct rogue_count *c = &sum->rogues[i];
        if (c->commits > 0)
            (void)fprintf(stderr,
                          "# rogue: %llu %s; %llu over-commits by these, the first %llu ms late\n",
                          (unsigned long long)c->commits, names[i],
                          (unsigned long long)c->over_commits, (unsigned long long)c->least_ms);
    }
}

static uint64_t run(const struct options *o, uint64_t first, uint64_t apart)
{
    uint64_t hash = 0;
    uint64_t n = 0;
    struct world sum = {.steps = 0};
    for (uint64_t seed = first; seed <= o->last; seed += apart) {
        hash = hash * 31 + history_run(seed, o->steps);
        if (o->crash > 0 && seed + apart > o->last)
            (void)raise((int)o->crash);
        n++;
        add(&sum, &world);
    }
    if (o->counts)
        (void)fprintf(stderr,
                      "%llu histories: %llu steps, %llu Bindings sent, %llu pods bound, "
                      "%llu processes killed, %llu pods evicted; at rest after %llu ms at most, "
                      "handed over after %llu ms\n",
                      (unsigned long long)n, (unsigned long long)sum.steps,
                      (unsigned long long)sum.posts, (unsigned long long)sum.binds,
                      (unsigned long long)sum.kills, (unsigned long long)sum.evictions,
                      (unsigned long long)sum.rest_ms, (unsigned long long)sum.hand_over_ms);
    if (o->counts || o->tap)
        print_rogues(&sum);
    return hash;
}

static bool run_jobs(const struct options *o)
{
    pid_t children[JOBS_MAX];
    bool good = true;
    for (uint64_t i = 0; i < o->jobs; i++) {
        (void)fflush(stdout);
        children[i] = fork();
        if (children[i] < 0)
            return false;
        if (children[i] == 0) {
            (void)run(o, o->first + i, o->jobs);
            _exit(EXIT_SUCCESS);
        }
    }
    for (uint64_t i = 0; i < o->jobs; i++) {
        int status = 0;
        bool ended = waitpid(children[i], &status, 0) == children[i] && WIFEXITED(status) &&
                     WEXITSTATUS(status) == EXIT_SUCCESS;
        good = good && ended;
        if (o->tap)
            printf("%s %llu - job %llu of the seeds %llu to %llu\n", ended ? "ok" : "not ok",
                   (unsigned long long)i + 1, (unsigned long long)i + 1,
                   (unsigned long long)o->first, (unsigned long long)o->last);
    }
    return good;
}

/* The hash that a second process of this program computes. */
static uint64_t hash_elsewhere(const char *program, const struct options *o)
{
    char command[4096];
    char line[64] = "";
    uint64_t hash = 0;
    (void)snprintf(command, sizeof(command), "'%s' --hash --seeds %llu..%llu", program,
                   (unsigned long long)o->first, (unsigned long long)o->last);
    FILE *pipe = popen(command, "r"); /* NOLINT(cert-env33-c): our program, numbers as arguments */
    if (pipe == NULL)
        return 0;
    bool said = fgets(line, sizeof(line), pipe) != NULL;
    bool read = said && str_to_u64(str_trim(str_of(line)), UINT64_MAX, &hash);
    return pclose(pipe) == 0 && read ? hash : 0;
}

static bool replays(const char *program, const struct options *o)
{
    struct options some = *o;
    some.last = MIN_OF(o->last, o->first + 19);
    uint64_t here = run(&some, some.first, 1);
    uint64_t again = run(&some, some.first, 1);
    uint64_t there = hash_elsewhere(program, &some);
    bool same = here == again && here == there;
    printf("%s %llu - the seeds %llu to %llu replay: %llx %llx %llx\n", same ? "ok" : "not ok",
           (unsigned long long)o->jobs + 1, (unsigned long long)some.first,
           (unsigned long long)some.last, (unsigned long long)here, (unsigned long long)again,
           (unsigned long long)there);
    return same;
}

int main(int argc, char *argv[])
{
    struct options o;
    bool good = true;
    options_read(argc, argv, &o);
    trace_catch();
    if (o.tap) {
        printf("1..%llu\n", (unsigned long long)o.jobs + 1);
        good = run_jobs(&o);
        good = replays(argv[0], &o) && good;
    } else if (o.jobs > 1) {
        good = run_jobs(&o);
    } else {
        uint64_t hash = run(&o, o.first, 1);
        if (o.hash)
            printf("%llu\n", (unsigned long long)hash);
    }
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
