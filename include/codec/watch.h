/*
 * What a list, a watch and a failure carry around the objects: just enough for a reflector. Views
 * point into the text, or into the arena where they held an escape.
 */
#pragma once

#include "arena.h"

/* A metav1.Status, which is also the object of an ERROR event. */
struct kube_status {
    unsigned code;      /* 0: absent, or no HTTP status */
    struct str reason;  /* "Expired", "Conflict", ... */
    struct str message; /* for people */
    bool too_large;     /* the version is from the server's future: it lags */
    struct str details_kind;
};

enum errc kube_status_read(struct str json, struct arena *arena, struct kube_status *ret,
                           struct err *reterr) _must_use_;

/* The "metadata" of a list. */
struct list_meta {
    struct str resource_version;
    struct str next; /* the continue token; empty or absent: the last page */
};

enum errc list_meta_read(struct str json, struct arena *arena, struct list_meta *ret,
                         struct err *reterr) _must_use_;

enum watch_type {
    WATCH_UNKNOWN, /* a type that we don't know; `type` says which */
    WATCH_ADDED,
    WATCH_MODIFIED,
    WATCH_DELETED,
    WATCH_BOOKMARK,
    WATCH_ERROR,
};

struct watch_event {
    enum watch_type kind;
    struct str type;
    struct str object;           /* its JSON as it came */
    struct str resource_version; /* never empty, but absent with WATCH_ERROR and WATCH_UNKNOWN */
    struct kube_status status;   /* with WATCH_ERROR */
};

/* One line of a watch. The whole line is validated; of the object only the above is looked at. */
enum errc watch_event_read(struct str line, struct arena *arena, struct watch_event *ret,
                           struct err *reterr) _must_use_;
