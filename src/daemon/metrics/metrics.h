/*
 * GET /metrics: the usage of the cluster's cards, the requests and their outcomes, and the state of
 * the process. Counters are plain numbers that the counting code increments: there is only one
 * thread. Nothing is computed or allocated before a client requests it.
 *
 * Labels are few and bounded: nodes and cards of at most max_nodes nodes, what the most frequent
 * kinds of pods ask for, and otherwise fixed words. No label is a pod, a namespace or a user.
 */
#pragma once

#include "daemon/backend/budget_feed.h"
#include "daemon/backend/kube_backend.h"
#include "daemon/bind/bind.h"
#include "daemon/evict/evict_step.h"
#include "daemon/outcome.h"
#include "io/http_server.h"
#include "report/expo.h"

struct service;

/* The main port and the port for probes. */
enum metrics_port {
    METRICS_MAIN,
    METRICS_PROBES,
    METRICS_PORTS
};

/* The kind of a request: http_request.kind. */
enum metrics_verb {
    METRICS_OTHER, /* an unknown path, or not authenticated */
    METRICS_FILTER,
    METRICS_PRIORITIZE,
    METRICS_PREEMPT,
    METRICS_BIND,
    METRICS_INSPECT,
    METRICS_EXPLAIN,
    METRICS_FIT,
    METRICS_METRICS,
    METRICS_CARDS,
    METRICS_UI,       /* /ui and below it; for /ui/events, the beginning of the answer */
    METRICS_EMBEDDED, /* pods of an embedded cluster */
    METRICS_PROBE,    /* /healthz, /livez, /readyz, /version */
    METRICS_VERBS
};

struct metrics {
    unsigned max_nodes; /* how many nodes have series of their own; the first by name */
    uint64_t start_ns;  /* Unix time */
    uint64_t answer_ns; /* processor time of the last answer */
    uint64_t answer_ms; /* when the last answer was done, loop_clock_ms */
    struct expo_histogram requests[METRICS_VERBS][OUTCOME_COUNT];
    uint64_t verdicts[VERDICT_COUNT]; /* of all candidates of all filter requests */
    struct http_server_counts ports[METRICS_PORTS];
    bool probes; /* the port for probes is open */

    bool kubernetes; /* false: the cluster is embedded; of the following only `binds` is used */
    struct kube_backend_counts kube;
    struct reflector_counts budgets;
    struct events_counts events;
    struct bind_counts binds;
    struct evictor_counts evictions; /* since the start, of all evictors */

    const int64_t *certificate_expires_s; /* of the main port; NULL: plain HTTP */
};

/* For http_server_settings.answered; ctx is the service. */
void metrics_answered(void *service, const struct http_request *r, unsigned status);

/* Adds the verdicts of one filter request. */
void metrics_count_verdicts(struct metrics *m, const unsigned counts[static VERDICT_COUNT]);

/* GET /metrics. */
void metrics_handle(struct service *s, struct http_request *r);

/* One answer while it is written, and its parts, in metrics_*.c. */
struct metrics_writer {
    struct expo expo;
    struct service *service;
    const struct metrics *metrics;
    struct arena *arena;
    uint64_t now_ms;
};

void metrics_write_cards(struct metrics_writer *w);
void metrics_write_kubernetes(struct metrics_writer *w);
void metrics_write_lessons(struct metrics_writer *w);
void metrics_write_process(struct metrics_writer *w);
