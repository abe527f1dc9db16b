/*
 * Posts Events about pods and nodes to the API server in the background, within bounds. The caller
 * never waits and never fails. Events beyond the limits of event_book.h are dropped; so are Events
 * that the API server forbids. An Event is tried again after no answer, 401, 429 or 5xx.
 */
#pragma once

#include "kube/kube_api.h"
#include "objects/event.h"

struct events;

#define EVENTS_RETRY_MS UINT64_C(1000)
#define EVENTS_DRAIN_MS UINT64_C(2000)

/* Since the start; `waiting`: now. */
struct events_counts {
    uint64_t written;
    uint64_t dropped; /* not sent: over a limit, or no memory */
    uint64_t lost;    /* refused by the API server, or not written in all tries */
    size_t waiting;   /* queued or under way */
};

struct events_settings {
    struct loop *loop;
    struct kube_api *api; /* must outlive the events */
    struct str component; /* a literal; absent: EVENT_COMPONENT */
    uint64_t retry_ms;    /* pause before the second try; it doubles with each try */
    uint64_t drain_ms;    /* the longest that events_drain may take */
    /* For a log, at most every 10 minutes: `lost` Events were lost since, the last one by `why`. */
    void (*note)(void *ctx, uint64_t lost, const struct err *why);
    void *ctx;
    struct events_counts *counts; /* borrowed, kept up to date; NULL: the caller wants none */
};

enum errc events_new(const struct events_settings *s, struct events **ret, struct err *reterr)
    _must_use_;

/* Drops the queue and cancels calls; a cancelled call may still take effect. Returns NULL. */
struct events *events_free(struct events *ev);

/* Copies its strings, of the message up to EVENT_MESSAGE_BYTES. Also writes a line to the debug
 * log; with ev NULL nothing else. */
void events_post(struct events *ev, const struct event_subject *pod, enum event_level level,
                 struct str reason, struct str message);

/*
 * At shutdown: calls done when all posted Events have been sent, or after drain_ms. With ev NULL it
 * calls done at once, otherwise from the loop; done must not free ev. Call it once only.
 */
void events_drain(struct events *ev, void (*done)(void *ctx), void *ctx);
