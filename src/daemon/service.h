/* State that all request handlers share. daemon.c owns it; it outlives the handlers. */
#pragma once

#include "base/list.h"
#include "core/cache/cache.h"
#include "core/preempt/budget.h"
#include "core/request/policy.h"
#include "core/state/measured.h"
#include "daemon/advise.h"
#include "daemon/backend/backend.h"
#include "daemon/backend/embedded.h"
#include "daemon/backend/leader_label.h"
#include "daemon/bind/bind.h"
#include "daemon/learn.h"
#include "daemon/metrics/metrics.h"
#include "extender/extender.h"
#include "io/http_server.h"
#include "kube/events.h"
#include "report/evaluation_memo.h"

struct filter_args;
struct candidates;

struct service {
    struct loop *loop;
    struct cache cache;
    struct measured measured; /* what cards and pods really use */
    struct budgets budgets;   /* PodDisruptionBudgets; empty without a budget_feed */
    struct backend *backend;
    struct binder *binder;
    struct advise advise;
    struct learn learn;
    struct events *events;          /* NULL with the embedded cluster: see events_post */
    struct embedded *embedded;      /* NULL: a Kubernetes cluster */
    struct leader_label *label;     /* NULL: no pod is labelled */
    struct evictor *evictor;        /* NULL: evict-for-cards is off; see evictor.h */
    struct list explains;           /* calls that wait for the API server; see query.h */
    struct ui_feed *ui;             /* NULL: /ui/events is off; see ui_feed.h */
    struct ui_reasons *reasons;     /* why filter refused pods, for the page; may be NULL */
    bool draining;                  /* after SIGTERM: /readyz says so, requests are still served */
    bool closing;                   /* after shutdown-delay: explain calls are refused */
    unsigned shortlist;             /* most nodes in an answer of filter; 0: no limit */
    struct mem_budget memory;       /* memory-budget, of the requests of all ports */
    uint64_t memory_told_ms;        /* loop time at which its last refusal was logged; 0: never */
    uint64_t memory_untold;         /* its refusals since then */
    struct step_budget step_budget; /* cost of the present or last request */
    struct evaluation_memo evaluation_memo; /* what filter and prioritize have found */
    struct metrics metrics;

    /*
     * Gets the result of each filter request that was decided; set by daemon.c; may be NULL.
     * Returns why kube-scheduler gets no node yet, so that it tries the pod again by itself.
     * Absent: filter answers with the nodes.
     */
    struct str (*filtered)(struct service *s, const struct filter_args *args,
                           const struct candidates *j);

    const struct reload_counts *reloads; /* of reload.h; NULL: nothing is reloaded */
};

/* Callbacks for struct http_server_settings; the ctx is the service. */
void routes_handle(void *service, struct http_request *r);
void routes_no_memory(void *service, const struct http_request *r);
/* Callback may_wait of struct http_server_settings. */
bool routes_may_wait(void *service, const char *method, const char *path);
void routes_too_large(void *service, struct http_request *r, uint64_t body_bytes);

/*
 * The same for the port of probes and metrics: plain HTTP, so that the kubelet needs no
 * certificate. It serves nothing that decides or changes anything.
 */
void probe_handle(void *service, struct http_request *r);
void probe_too_large(void *service, struct http_request *r, uint64_t body_bytes);

/* POST .../filter: on which of the request's nodes its pod is feasible. Changes no card. */
void filter_handle(struct service *s, struct http_request *r);

/* POST .../prioritize: 0 to 10 for each of the request's nodes. Always answers 200 and a list. */
void prioritize_handle(struct service *s, struct http_request *r);

/*
 * POST .../preempt: on which of the request's nodes pods can be evicted for its pod, and which
 * pods. Changes nothing; always answers 200 and a map.
 */
void preempt_handle(struct service *s, struct http_request *r);

/* Answers {"error": text}; for routes that are not verbs. */
void http_respond_error(struct http_request *r, unsigned status, struct str text);

/* Whether cardpack may decide; if not, *ret_missing says why. */
static inline bool service_ready(const struct service *s, struct str *ret_missing)
{
    return s->backend->ready(s->backend, ret_missing);
}
