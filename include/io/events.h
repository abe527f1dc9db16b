/*
 * Posts Events about pods to the API server, in the background and within bounds: whoever posts one
 * neither waits nor fails, and what is too much, or not allowed, is dropped. event_book.h says what
 * is too much. Some are tried again: those that no server has answered, or that it had no time for.
 */
#pragma once

#include "event.h"
#include "kube_api.h"

struct events;

#define EVENTS_RETRY_MS UINT64_C(1000)
#define EVENTS_DRAIN_MS UINT64_C(2000)

/* Since the start; and now. */
struct events_counts {
    uint64_t written;
    uint64_t dropped; /* by us: too many, or the same again */
    uint64_t lost;    /* to the API server */
    size_t waiting;   /* now, with those under way */
};

struct events_settings {
    struct loop *loop;
    struct kube_api *api; /* must outlive it */
    uint64_t retry_ms;    /* the first pause of those that are tried again; it doubles */
    uint64_t drain_ms;    /* the longest that events_drain may take */
    /* For a log, now and then: so many were lost to the API server, the last one for that reason.
     */
    void (*note)(void *ctx, uint64_t lost, const struct err *why);
    void *ctx;
    struct events_counts *counts; /* kept up to date, and outlives them; NULL: nobody counts */
};

enum errc events_new(const struct events_settings *s, struct events **ret, struct err *reterr)
    _must_use_;

/* What was not sent will not be; what is under way may take effect. Returns NULL. */
struct events *events_free(struct events *ev);

/* Views are copied, the message up to EVENT_MESSAGE_BYTES. ev NULL: there is a line in the debug
 * log, and that is all. */
void events_post(struct events *ev, const struct event_subject *pod, enum event_level level,
                 struct str reason, struct str message);

/*
 * On the way out: done comes when all that was posted has been sent, or after drain_ms. At once
 * where ev is NULL, else from the loop; ev must not be freed inside. Not twice.
 */
void events_drain(struct events *ev, void (*done)(void *ctx), void *ctx);
