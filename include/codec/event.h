/*
 * A core/v1 Event about a pod: what the API server is sent for a new one, and for one that came
 * again. core/v1 and not events.k8s.io/v1: every release takes it, and one Event has a count. It
 * says nothing of when and how often one is sent.
 */
#pragma once

#include "jwrite.h"

/* A longer message is cut: events.k8s.io allows no more, and kubectl shows a line. */
#define EVENT_MESSAGE_BYTES ((size_t)1024)

/* What the API server allows for a pod's namespace and name, its UID (as we bound it) and a reason.
 */
#define EVENT_NAMESPACE_BYTES ((size_t)63)
#define EVENT_NAME_BYTES      ((size_t)253)
#define EVENT_UID_BYTES       ((size_t)128)
#define EVENT_REASON_BYTES    ((size_t)128)

enum event_level {
    EVENT_NORMAL,
    EVENT_WARNING,
};

/* The pod that an event is about. */
struct event_subject {
    struct str namespace;
    struct str name;
    struct str uid;
};

struct kube_event {
    struct event_subject pod;
    enum event_level level;
    struct str reason;  /* one word, for machines: "FailedBinding" */
    struct str message; /* for people; at most EVENT_MESSAGE_BYTES */
    uint64_t first_ns;  /* Unix time; it is in the event's name, and so differs between a pod's */
    uint64_t last_ns;
    uint64_t count;
};

/* Whether each of the pod's strings and the reason is there and not too long to be true. */
bool event_fits(const struct event_subject *pod, struct str reason);

/* The event's own name, POD.HEX of first_ns, as client-go's; a long pod name is cut for it. */
void event_put_name(struct buf *out, struct str pod, uint64_t first_ns);

/* The message, cut to its ceiling between two characters; what was combined says so, as client-go's
 * does. */
void event_put_message(struct buf *out, struct str message, bool combined);

/* For a POST. Failure is the buf's. */
void event_write(struct jwrite *w, const struct kube_event *e);

/* The strategic merge patch for one that came again: count, lastTimestamp and message. */
void event_write_repeat(struct jwrite *w, const struct kube_event *e);
