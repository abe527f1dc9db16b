/*
 * Every allocation of a scenario fails: once, for a while, and from then on. See world.h for
 * scenarios and for what must hold.
 *
 * test_alloc SCENARIO ours|libraries|cold [EVERY [NTH]]
 *
 * With EVERY above 1 only one of so many allocations fails, from an offset that changes from day to
 * day. With NTH only that one fails, and the program's log is shown. OpenSSL makes most of its
 * allocations at its first use: `cold` fails each library's allocations in a process that has made
 * none yet, `libraries` in a process that has run the scenario once. Prints TAP on standard output.
 *
 * A child does the work, so that a crash is reported with the number of the failed allocation. A
 * leak shows only at the child's end, without a number.
 */
#include "base/str.h"
#include "world.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FINDINGS_MAX 20
#define NTH_MAX      100000
#define MISSES       5
#define DAY_S        86400

static const char *const mode_names[] = {
    [PLAN_NONE] = "no allocation fails",
    [PLAN_ONCE] = "each fails once",
    [PLAN_FOR_A_WHILE] = "each fails, and all others for a while",
    [PLAN_FOR_EVER] = "each fails, and all later ones",
};

static struct {
    const struct scenario *scenario;
    enum alloc_owner owner;
    bool cold;
    uint64_t every;
    uint64_t only;
} chosen = {.every = 1};

static struct world_report *report;

static void run(enum plan_mode mode, size_t nth)
{
    struct run_result r = world_run(chosen.scenario, mode, chosen.owner, nth);
    report->count = r.count;
    report->hit = r.hit;
    if (chosen.only > 0 && mode != PLAN_NONE)
        world_fail("this is what it says");
}

/*
 * Whether the failed allocation is known to leak in a library, and nothing else: a function in the
 * allocation's stack is named here.
 *
 * OpenSSL 3.0.22: if the construction of a default context fails midway (context_init, ex_data and
 * the stores before it), the context is dropped with 520 bytes not freed. This happens once per
 * process: it is not tried again.
 */
static bool library_leaks(void)
{
    static const char *const named[] = {"OSSL_LIB_CTX_get0_global_default"};
    for (size_t i = 0; i < report->trace.n; i++) {
        Dl_info where = {0};
        if (dladdr(report->trace.frames[i], &where) == 0 || where.dli_sname == NULL)
            continue;
        for (size_t k = 0; k < COUNT_OF(named); k++) {
            if (strcmp(where.dli_sname, named[k]) == 0)
                return true;
        }
    }
    return false;
}

/* In the child: runs all steps, or one step if each needs a process of its own. */
static void staircase(enum plan_mode mode, size_t first)
{
    world_start(report);
    if (!chosen.cold && chosen.owner == ALLOC_LIBRARIES)
        run(PLAN_NONE, 0);
    size_t nth = first;
    /* The kernel may cut a stream into different pieces, which makes a few allocations more or
     * fewer. */
    for (unsigned missed = 0; missed < MISSES;) {
        run(mode, nth);
        nth += chosen.every;
        missed = mode == PLAN_NONE || chosen.cold ? MISSES : report->hit ? 0 : missed + 1;
    }
    if (chosen.cold && library_leaks())
        _exit(EXIT_SUCCESS);
    exit(EXIT_SUCCESS); /* LeakSanitizer looks for leaks here */
}

static void print_log(void)
{
    char line[1024];
    FILE *f = fopen(report->log, "re");
    if (f == NULL)
        return;
    while (fgets(line, sizeof(line), f) != NULL)
        (void)printf("#     %s", line);
    (void)fclose(f);
}

static void print_finding(int status)
{
    if (WIFSIGNALED(status))
        (void)printf("# allocation %zu: signal %d\n", report->nth, WTERMSIG(status));
    else
        (void)printf("# allocation %zu: %s (status %d)\n", report->nth,
                     report->failed ? report->text : "the process ended", WEXITSTATUS(status));
    for (size_t i = 0; i < report->trace.n; i++) {
        Dl_info where = {0};
        (void)dladdr(report->trace.frames[i], &where);
        (void)printf(
            "#   %s+0x%zx %s\n", where.dli_fname == NULL ? "?" : where.dli_fname,
            (size_t)((const char *)report->trace.frames[i] - (const char *)where.dli_fbase),
            where.dli_sname == NULL ? "" : where.dli_sname);
    }
    print_log();
}

/* Continues after each finding; true: there was none. */
static bool climb(enum plan_mode mode, size_t first)
{
    int findings = 0;
    unsigned missed = 0;
    while (findings < FINDINGS_MAX && first <= NTH_MAX) {
        memset(report, 0, sizeof(*report));
        (void)fflush(stdout);
        pid_t child = fork();
        if (child == 0)
            staircase(mode, first);
        int status = 0;
        if (child < 0 || waitpid(child, &status, 0) != child)
            return false;
        bool good = WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS;
        missed = good && !report->hit ? missed + 1 : 0;
        if (!good)
            print_finding(status);
        world_remove(report);
        if (good && (mode == PLAN_NONE || !chosen.cold || missed == MISSES))
            return findings == 0;
        if (!good) {
            findings++;
            if (mode == PLAN_NONE || report->nth == 0 || chosen.only > 0)
                return false;
        }
        first = report->nth + chosen.every;
    }
    (void)printf("# and more\n");
    return false;
}

static bool choose(int argc, char **argv)
{
    for (size_t i = 0; argc >= 3 && i < n_scenarios; i++) {
        if (strcmp(scenarios[i]->name, argv[1]) == 0)
            chosen.scenario = scenarios[i];
    }
    if (chosen.scenario == NULL)
        return false;
    chosen.owner = strcmp(argv[2], "ours") == 0 ? ALLOC_OURS : ALLOC_LIBRARIES;
    chosen.cold = strcmp(argv[2], "cold") == 0;
    uint64_t sparse = 1;
    if (getenv("ALLOC_SPARSE") != NULL &&
        !str_to_u64(str_of(getenv("ALLOC_SPARSE")), NTH_MAX, &sparse))
        return false;
    return (argc < 4 || str_to_u64(str_of(argv[3]), NTH_MAX, &chosen.every)) &&
           (argc < 5 || str_to_u64(str_of(argv[4]), NTH_MAX, &chosen.only)) &&
           !__builtin_mul_overflow(chosen.every, sparse, &chosen.every) && chosen.every > 0;
}

int main(int argc, char **argv)
{
    if (!choose(argc, argv)) {
        (void)printf("Bail out! usage: %s SCENARIO ours|libraries|cold [EVERY [NTH]]\n", argv[0]);
        return EXIT_FAILURE;
    }
    size_t first = chosen.only > 0 ? chosen.only : 1 + (size_t)(time(NULL) / DAY_S) % chosen.every;
    bool all = true;
    report = mmap(NULL, sizeof(*report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (report == MAP_FAILED)
        return EXIT_FAILURE;
    (void)printf("1..%d\n", (int)COUNT_OF(mode_names));
    for (enum plan_mode mode = PLAN_NONE; mode <= PLAN_FOR_EVER; mode++) {
        bool good = climb(mode, first);
        (void)printf("%s %d - %s, %s: %s (%zu)\n", good ? "ok" : "not ok", (int)mode + 1, argv[1],
                     argv[2], mode_names[mode], mode == PLAN_NONE ? report->count : report->nth);
        all = all && good;
    }
    return all ? EXIT_SUCCESS : EXIT_FAILURE;
}
