/*
 * The fields of a list, a watch event and a Status that a reflector needs besides the objects.
 * Views point into the text, or into the arena if they contained an escape.
 */
#pragma once

#include "base/arena.h"

/* A metav1.Status, which is also the object of an ERROR event. */
struct kube_status {
    unsigned code;      /* 0: absent, or not an HTTP status */
    struct str status;  /* "Failure" or "Success" */
    struct str reason;  /* "Expired", "Conflict", ... */
    struct str message; /* for people */
    bool too_large;     /* the requested version is newer than this lagging server's */
    struct str details_kind;
};

enum errc kube_status_read(struct str json, struct arena *arena, struct kube_status *ret,
                           struct err *reterr) _must_use_;

/*
 * Whether an answer with this HTTP status, and with this Status as its body, is a failure from the
 * API server itself: status must be Failure, and code must be the HTTP status. A load balancer or
 * proxy in front of the API server uses the same HTTP statuses. Its answer proves nothing about the
 * API server's action or our rights there.
 */
bool kube_status_is_failure(const struct kube_status *s, unsigned http_status);

/* The "metadata" of a list. */
struct list_meta {
    struct str resource_version;
    struct str next; /* the continue token; empty or absent: this is the last page */
};

enum errc list_meta_read(struct str json, struct arena *arena, struct list_meta *ret,
                         struct err *reterr) _must_use_;

/*
 * Whether the "kind" of a list, a JSON string, is the wanted one. The error names the other kind.
 */
enum errc list_kind_check(struct str json, struct str wanted, struct err *reterr) _must_use_;

enum watch_type {
    WATCH_UNKNOWN, /* an unknown type; `type` contains it */
    WATCH_ADDED,
    WATCH_MODIFIED,
    WATCH_DELETED,
    WATCH_BOOKMARK,
    WATCH_ERROR,
};

struct watch_event {
    enum watch_type kind;
    struct str type;
    struct str object;           /* its JSON, unchanged */
    struct str resource_version; /* never empty, but absent with WATCH_ERROR and WATCH_UNKNOWN */
    struct kube_status status;   /* with WATCH_ERROR */
};

/* Reads one line of a watch. The whole line is validated; only the fields above are used. */
enum errc watch_event_read(struct str line, struct arena *arena, struct watch_event *ret,
                           struct err *reterr) _must_use_;
