/*
 * GET /metrics: what the cluster's cards hold, what was asked and answered, and how the process is.
 * Counters are plain numbers that whoever counts adds to: there is one thread. Nothing is computed
 * or allocated before somebody asks.
 *
 * Labels are few and bounded: nodes and cards up to max_nodes nodes, else only words of ours. Never
 * a pod, a namespace or a user.
 */
#pragma once

#include "bind.h"
#include "budget_feed.h"
#include "evict_step.h"
#include "expo.h"
#include "http_server.h"
#include "kube_backend.h"

struct service;

/* The main port's, and the probes'. */
enum metrics_port {
    METRICS_MAIN,
    METRICS_PROBES,
    METRICS_PORTS
};

/* What was asked: http_request.kind. */
enum metrics_verb {
    METRICS_OTHER, /* no path of ours, or not admitted */
    METRICS_FILTER,
    METRICS_PRIORITIZE,
    METRICS_PREEMPT,
    METRICS_BIND,
    METRICS_INSPECT,
    METRICS_EXPLAIN,
    METRICS_FIT,
    METRICS_METRICS,
    METRICS_CARDS,
    METRICS_PAGE,    /* /ui and below it; of /ui/events the answer's begin */
    METRICS_CLUSTER, /* pods of an embedded cluster */
    METRICS_PROBE,   /* /healthz, /livez, /readyz, /version */
    METRICS_VERBS
};

/* How it was answered: http_request.outcome. */
enum metrics_outcome {
    OUTCOME_UNSAID, /* by the status: below 400 is ok */
    OUTCOME_OK,
    OUTCOME_REFUSED,  /* no node, or not this one, has room; or it must not be */
    OUTCOME_IN_DOUBT, /* bind: it is not known yet */
    OUTCOME_ERROR,
    OUTCOME_COUNT
};

struct metrics {
    unsigned max_nodes; /* whose own series are shown; the first by name */
    uint64_t start_ns;  /* Unix time */
    uint64_t page_ns;   /* what the last page took of the processor */
    uint64_t page_ms;   /* when it was done, loop_clock_ms */
    struct expo_histogram requests[METRICS_VERBS][OUTCOME_COUNT];
    uint64_t verdicts[VERDICT_COUNT]; /* of all candidates of all filters */
    struct http_server_counts ports[METRICS_PORTS];
    bool probes; /* there is a port for them */

    bool kubernetes; /* these mean something; else there is an embedded cluster */
    struct kube_backend_counts kube;
    struct reflector_counts budgets;
    struct events_counts events;
    struct binder_counts binds;
    struct evictor_counts evictions; /* since the start, whoever has evicted */

    const int64_t *certificate_expires_s; /* of the port; NULL: plain HTTP */
};

/* For http_server_settings.answered; ctx is the service. */
void metrics_answered(void *service, const struct http_request *r, unsigned status);

/* What filter has found. */
void metrics_judged(struct metrics *m, const unsigned counts[static VERDICT_COUNT]);

/* GET /metrics. */
void metrics_handle(struct service *s, struct http_request *r);

/* The parts of it, in metrics_*.c. */
struct metrics_page {
    struct expo expo;
    struct service *service;
    const struct metrics *metrics;
    struct arena *arena;
    uint64_t now_ms;
};

void metrics_write_cluster(struct metrics_page *p);
void metrics_write_kubernetes(struct metrics_page *p);
void metrics_write_requests(struct metrics_page *p);
void metrics_write_process(struct metrics_page *p);
