/*
 * Binds per second with a number in flight, and an API server that answers a Binding in 10 ms.
 * Compared with the ideal (in flight / 10 ms), and with a client that posts the Bindings itself.
 * One row binds all pods to one node, where cardpack has one Binding under way at a time.
 *
 * bench_bind CARDPACK BENCH_API
 */
#include "base/str.h"
#include "bind_load.h"
#include "daemon.h"

#include <curl/curl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define DELAY_S  0.010
#define NODES    1000
#define PODS     1000
#define ROUNDS   5
#define ONE_NODE 60

struct site {
    struct process api;      /* cardpack's */
    struct process bare_api; /* for Bindings without cardpack */
    struct daemon daemon;
    uint64_t next_pod; /* pending, at both API servers */
    uint64_t bound;
};

struct cpu {
    double daemon, api, client;
};

static struct cpu cpu_now(const struct site *s)
{
    return (struct cpu){process_cpu_s(s->daemon.process.pid), process_cpu_s(s->api.pid),
                        process_cpu_s(getpid())};
}

static void tell(const char *what, unsigned in_flight, double value, const char *unit,
                 const char *beside, double limit, double target)
{
    bench_figure(&(struct figure){.table = "bind",
                                  .what = what,
                                  .by = "in flight",
                                  .x = in_flight,
                                  .value = value,
                                  .unit = unit,
                                  .beside = beside,
                                  .limit = limit,
                                  .target = target,
                                  .sense = BENCH_AT_LEAST});
}

static void measure(struct site *s, unsigned in_flight, uint64_t n)
{
    double rate[ROUNDS];
    double bare[ROUNDS];
    double p50[ROUNDS];
    double p99[ROUNDS];
    struct cpu sum = {.daemon = 0};
    size_t rounds = bench_is_quick() ? 1 : ROUNDS;
    for (size_t i = 0; i < rounds; i++) {
        struct load l = {.port = s->bare_api.port,
                         .direct = true,
                         .in_flight = in_flight,
                         .first_pod = s->next_pod,
                         .n = n,
                         .nodes = NODES};
        load_run(&l);
        bare[i] = (double)n / l.took_s;
        struct cpu before = cpu_now(s);
        l.port = s->daemon.process.port;
        l.direct = false;
        load_run(&l);
        struct cpu after = cpu_now(s);
        sum.daemon += after.daemon - before.daemon;
        sum.api += after.api - before.api;
        sum.client += after.client - before.client;
        rate[i] = (double)n / l.took_s;
        p50[i] = l.p50_ms;
        p99[i] = l.p99_ms;
        s->next_pod += n;
        s->bound += n;
    }
    double binds = (double)(n * rounds);
    double middle = bench_median(rate, rounds);
    double limit = bench_median(bare, rounds);
    tell("binds", in_flight, middle, "/s", "ideal", in_flight / DELAY_S, in_flight == 64 ? 0.6 : 0);
    tell("binds beside bare Bindings", in_flight, middle, "/s", "the same client alone", limit, 0);
    tell("one bind, p50", in_flight, bench_median(p50, rounds), "ms", "API server", DELAY_S * 1e3,
         0);
    tell("one bind, p99", in_flight, bench_median(p99, rounds), "ms", "API server", DELAY_S * 1e3,
         0);
    tell("processor time a bind, cardpack", in_flight, sum.daemon / binds * 1e6, "us", NULL, 0, 0);
    tell("processor time a bind, API server", in_flight, sum.api / binds * 1e6, "us", NULL, 0, 0);
    tell("processor time a bind, client", in_flight, sum.client / binds * 1e6, "us", NULL, 0, 0);
}

/* Bindings must commit in the order of their ASSUME_TIME. */
static void measure_one_node(struct site *s)
{
    struct load l = {.port = s->daemon.process.port,
                     .in_flight = 64,
                     .first_pod = s->next_pod,
                     .n = bench_is_quick() ? 3 : ONE_NODE,
                     .nodes = 1};
    load_run(&l);
    s->next_pod += l.n;
    s->bound += l.n;
    tell("binds, all to one node", 64, (double)l.n / l.took_s, "/s", "ideal, one at a time",
         1 / DELAY_S, 0);
}

static void check(const struct process *api, uint64_t bound)
{
    char text[64];
    char expected[64];
    (void)snprintf(expected, sizeof(expected), "%llu 0", (unsigned long long)bound);
    if (local_get(api->port, "/_bound", text, sizeof(text)) != 200 || strcmp(text, expected) != 0)
        bench_fail("not every pod was bound once");
}

static void run(char *const *argv)
{
    static const char *const settings[] = {"nodes=1000",                  /* NODES */
                                           "cards=8",        "pods=1000", /* PODS */
                                           "gpu-pods=0",     "pending=100000", "pod-mem=2",
                                           "pod-bytes=7500", "delay-ms=10",    NULL};

    /* Pods per round: at least half a second of the ideal. */
    static const struct {
        unsigned in_flight;
        uint64_t n;
    } rows[] = {{1, 50}, {8, 400}, {64, 3200}, {512, 8192}};
    struct site s = {.next_pod = PODS};
    api_start(&s.api, argv[2], settings);
    api_start(&s.bare_api, argv[2], settings);
    daemon_start(&s.daemon, argv[1], &s.api, false, NULL);
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        measure(&s, rows[i].in_flight, bench_is_quick() ? rows[i].in_flight : rows[i].n);
    check(&s.bare_api, s.bound);
    measure_one_node(&s);
    check(&s.api, s.bound);
    daemon_stop(&s.daemon);
    process_stop(&s.api);
    process_stop(&s.bare_api);
}

int main(int argc, char *argv[])
{
    if (argc != 3)
        return 2;
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return 1;
    run(argv);
    curl_global_cleanup();
    return 0;
}
