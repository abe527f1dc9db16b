/*
 * A core/v1 Event about a pod or a node: the request body for a new Event, and the patch for a
 * repeated one. core/v1, not events.k8s.io/v1: every Kubernetes release accepts it, and one Event
 * has a count. When and how often to send an Event is decided elsewhere.
 */
#pragma once

#include "json/jwrite.h"

/* A longer message is cut: events.k8s.io allows no more, and kubectl shows one line. */
#define EVENT_MESSAGE_BYTES ((size_t)1024)

/*
 * Limits of the API server for a pod's namespace, its name and a reason; our own limit for a UID.
 */
#define EVENT_NAMESPACE_BYTES ((size_t)63)
#define EVENT_NAME_BYTES      ((size_t)253)
#define EVENT_UID_BYTES       ((size_t)128)
#define EVENT_REASON_BYTES    ((size_t)128)

enum event_level {
    EVENT_NORMAL,
    EVENT_WARNING,
};

/* The component that reports the events of the program cardpack. */
#define EVENT_COMPONENT STR("cardpack")

/* The pod or the node that the event describes. */
struct event_subject {
    struct str namespace; /* absent: a node */
    struct str name;
    struct str uid; /* of a node: its name, as the kubelet writes it and kubectl looks for it */
};

/* The namespace that the Event itself is in: of a node's, "default". */
struct str event_namespace(const struct event_subject *subject);

struct kube_event {
    struct event_subject pod;
    struct str component; /* the program that reports it; absent: EVENT_COMPONENT */
    enum event_level level;
    struct str reason;  /* one word, for machines: "FailedBinding" */
    struct str message; /* for people; at most EVENT_MESSAGE_BYTES */
    uint64_t first_ns;  /* Unix time; part of the event's name, which makes the name unique */
    uint64_t last_ns;
    uint64_t count;
};

/* Whether each of the subject's strings and the reason is present and within its limit. */
bool event_fits(const struct event_subject *pod, struct str reason);

/*
 * The event's own name, POD.HEX with first_ns in hexadecimal, as in client-go. A long pod name is
 * cut.
 */
void event_put_name(struct buf *out, struct str pod, uint64_t first_ns);

/*
 * The message, cut to its limit at a character boundary. A combined event gets the prefix that
 * client-go uses.
 */
void event_put_message(struct buf *out, struct str message, bool combined);

/* The body of a POST. A failure is stored in the buf. */
void event_write(struct jwrite *w, const struct kube_event *e);

/* The strategic merge patch for a repeated event: count, lastTimestamp and message. */
void event_write_repeat(struct jwrite *w, const struct kube_event *e);
