/*
 * Keeps a copy of one resource in step with the API server: a paged LIST with resourceVersion "",
 * then a WATCH with bookmarks from its version, for ever. The rules are client-go's reflector's:
 *
 *   - a watch that ends normally is started again from the last version, no relist; one that ends
 *     within a second and brought nothing counts as a failure;
 *   - 410 and 504, as a status or as an ERROR event, relist; so does any ERROR event that is not
 *     429 or 5xx;
 *   - a continue token that expired (410) restarts the list;
 *   - 401 reads the credentials anew and tries again at once, once;
 *   - failures back off 800 ms to 30 s, doubling, with jitter, reset after two quiet minutes;
 *     Retry-After is honoured; connection refused on a watch retries the watch, no relist;
 *   - a watch without a byte for quiet_ms is taken for dead;
 *   - a watch that brings what is not an event is dropped and started again from the last version;
 *     after three in a row the list is read again.
 *
 * Bodies flow through: memory is one object, whatever the list's size.
 *
 * The sink sees: begin, item*, end (a whole list; what it did not name is gone), then changes. An
 * attempt that fails midway is followed by another begin. Between begin and end no change comes.
 */
#pragma once

#include "kube_api.h"
#include "reflector_step.h"

enum reflector_change {
    REFLECTOR_SET,  /* a listed item, ADDED or MODIFIED */
    REFLECTOR_GONE, /* DELETED; with a selector also: left the selection, with its old content */
};

/* None of these may free the reflector; reflector_relist is allowed in all of them. */
struct reflector_sink {
    /* A LIST is about to be sent: what is known to be newer than this moment survives `end`. */
    void (*begin)(void *ctx);
    /*
     * One object's JSON, valid during the call: well-formed where a watch brought it, still to be
     * validated where a list did. In a list its kind is absent. An object that cannot be decoded is
     * the sink's to report: it must not stop the stream.
     */
    void (*change)(void *ctx, enum reflector_change change, struct str object);
    void (*end)(void *ctx);
    /*
     * Something for a log or a metric, a constant text: "watch ended", "list failed", "relist asked
     * for"; err may be NULL. retry_in_ms 0: at once. May be NULL.
     */
    void (*note)(void *ctx, const char *what, const struct err *err, uint64_t retry_in_ms);
    void *ctx;
};

/* Since the start. */
struct reflector_counts {
    uint64_t lists;  /* begun; all but the first read what was known before */
    uint64_t listed; /* whole ones */
    uint64_t list_failures;
    uint64_t watches;        /* begun */
    uint64_t watch_failures; /* those that did not end in good order */
    uint64_t objects;        /* of lists */
    uint64_t set;            /* events of watches */
    uint64_t gone;
    uint64_t bookmarks;
    uint64_t heard_ms; /* loop time of the last whole list, event or bookmark; 0: none yet */
    bool synced;
};

struct reflector_settings {
    struct str path;     /* "/api/v1/pods"; copied */
    struct str selector; /* encoded query without '&', "fieldSelector=..."; may be absent; copied */
    unsigned page_size;  /* limit= of a list page; 0: the whole list in one */
    uint64_t quiet_ms;   /* 180 s: bookmarks come about every minute */
    struct reflector_backoff backoff; /* zero: as above; tests want it shorter */
    struct reflector_counts *counts;  /* added to; outlives the reflector. NULL: nobody counts */
};

struct reflector;

/* Lists from the loop's next turn on. The api must outlive it. */
enum errc reflector_new(struct loop *l, struct kube_api *api, const struct reflector_settings *s,
                        const struct reflector_sink *sink, struct reflector **ret,
                        struct err *reterr) _must_use_;
struct reflector *reflector_free(struct reflector *r); /* returns NULL */

/* Whether a whole list has been in since the start. */
bool reflector_synced(const struct reflector *r);

/* Whether the last attempt of a list failed with 403 or 404: what is asked for is not ours, or not
 * any more. */
bool reflector_denied(const struct reflector *r);

/* Drops what is under way and lists again in the loop's next turn. */
void reflector_relist(struct reflector *r);

/* Of the lists that begin from now on, and of the pages that are still to come. */
void reflector_set_page_size(struct reflector *r, unsigned page_size);
