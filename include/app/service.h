/* What the handlers of requests share. main.c makes it and outlives them all. */
#pragma once

#include "backend.h"
#include "bind.h"
#include "budget.h"
#include "cache.h"
#include "cluster.h"
#include "events.h"
#include "http_server.h"
#include "metrics.h"
#include "pack.h"

struct service {
    struct loop *loop;
    struct cache cache;
    struct budgets budgets; /* none are known where nothing feeds it */
    struct backend *backend;
    struct binder *binder;
    struct events *events;         /* NULL with the embedded cluster: see events_post */
    struct cluster *cluster;       /* NULL: a real one */
    struct evictor *evictor;       /* NULL: nobody is evicted for cards; see evictor.h */
    struct explain_call *explains; /* that wait for the API server; see explain.h */
    struct ui_feed *ui;            /* NULL: no page is told of what happens; see ui_feed.h */
    struct ui_reasons *reasons;    /* the page's; NULL: nobody notes them */
    bool draining;                 /* on the way out: /readyz says so, who asks is served */
    bool closing;                  /* and nobody new is: only a bind may still take its time */
    unsigned shortlist;            /* nodes that filter answers with at most; 0: all */
    struct metrics metrics;

    const struct reload_counts *reloads; /* of reload.h; NULL: nothing is reloaded */
};

/* Answers r by the table of routes; for struct http_server_settings. */
void routes_handle(void *service, struct http_request *r);
void routes_too_large(void *service, struct http_request *r, uint64_t body_bytes);

/* POST .../filter: which of the request's nodes can hold its pod. Changes nothing. */
void filter_handle(struct service *s, struct http_request *r);

/* POST .../prioritize: 0 to 10 for each of the request's nodes; 200 and a list in any case. */
void prioritize_handle(struct service *s, struct http_request *r);

/* POST .../preempt: on which of the request's nodes pods may be evicted for its pod, and which.
 * Changes nothing; 200 and a map in any case. */
void preempt_handle(struct service *s, struct http_request *r);

/* GET .../inspect and .../inspect/NODE: gpushare's JSON. `node` absent: all that have cards. */
void inspect_handle(struct service *s, struct http_request *r, struct str node);

/* GET .../cards and .../cards/NODE: the same with more of each card; 503 until it is ready. */
void cards_handle(struct service *s, struct http_request *r, struct str node);

/* {"error": text}; of a route that is no verb. */
void http_respond_error(struct http_request *r, unsigned status, struct str text);

/* Ready to decide; if not, why. */
bool service_ready(const struct service *s, struct str *ret_missing);
