/*
 * Keeps a copy of one resource in step with the API server: a paged LIST with resourceVersion "",
 * then a WATCH with bookmarks from the list's version, without end. The rules are those of
 * client-go's reflector:
 *
 *   - A watch that ends normally is started again from the last version, without a relist. A watch
 *     that ends within a second and brought nothing counts as a failure.
 *   - 410 and 504, as a status or as an ERROR event, cause a relist; so does any ERROR event other
 *     than 429 and 5xx.
 *   - A continue token that expired (410) restarts the list.
 *   - A list of another kind or without a kind has failed. A list without end has failed too: its
 *     next token is the token that was sent, or it has too many objects or too many empty pages.
 *   - After 401 the credentials are read again, and the request is tried again at once, once.
 *   - After a failure the reflector waits 800 ms to 30 s: the delay doubles, has jitter, and is
 *     reset after two minutes without a failure. Retry-After is honoured. Connection refused on a
 *     watch retries the watch, without a relist.
 *   - A watch without a byte for quiet_ms counts as dead.
 *   - A watch that brings something that is not an event is dropped and started again from the last
 *     version. After three such watches in a row the reflector lists again.
 *
 * Bodies are parsed as a stream: memory use is one object, independent of the list's size.
 *
 * The sink sees for a list: begin, change for each item, end (objects that the list did not name
 * are gone). Then it sees the changes of the watch. After a list that failed midway comes another
 * begin. Between begin and end no change of a watch comes.
 */
#pragma once

#include "kube/kube_api.h"
#include "kube/reflector_step.h"

enum reflector_change {
    REFLECTOR_SET,  /* a listed item, ADDED or MODIFIED */
    REFLECTOR_GONE, /* DELETED; with a selector also: left the selection, with its old content */
};

/* None of these may free the reflector; reflector_relist is allowed in all of them. */
struct reflector_sink {
    /* A LIST will be sent next. Newer facts that the sink learns from other sources after this call
     * survive `end`. */
    void (*begin)(void *ctx);
    /*
     * One object's JSON, valid during the call. From a watch it is well-formed; from a list the
     * sink has to validate it, and its kind is absent. The sink reports an object that it cannot
     * decode: such an object must not stop the stream.
     */
    void (*change)(void *ctx, enum reflector_change change, struct str object);
    void (*end)(void *ctx);
    /*
     * For a log or a metric. `what` is a constant text: "watch ended", "list failed", "relist asked
     * for". err may be NULL. retry_in_ms 0: at once. note itself may be NULL: see `of`.
     */
    void (*note)(void *ctx, const char *what, const struct err *err, uint64_t retry_in_ms);
    void *ctx;
    /* Without note: the reflector logs failures as warnings and the rest as debug lines, with this
     * name ("pods"); NULL: it logs nothing. */
    const char *of;
};

/* Since the start. */
struct reflector_counts {
    uint64_t lists;  /* begun; all but the first are relists */
    uint64_t listed; /* complete */
    uint64_t list_failures;
    uint64_t watches;        /* begun */
    uint64_t watch_failures; /* those that did not end normally */
    uint64_t objects;        /* of lists */
    uint64_t set;            /* events of watches */
    uint64_t gone;
    uint64_t bookmarks;
    uint64_t heard_ms; /* loop time of the last complete list, event or bookmark; 0: none yet */
    bool synced;
};

struct reflector_settings {
    struct str path;     /* "/api/v1/pods"; copied */
    struct str kind;     /* of the list: "PodList"; a literal */
    struct str selector; /* encoded query without '&', "fieldSelector=..."; may be absent; copied */
    struct str field;    /* "spec.nodeName": only objects where it equals the next; or absent */
    struct str equals;
    unsigned page_size;               /* limit= of a list page; 0: the whole list in one page */
    size_t max_objects;               /* of one list; 0: LIMIT_LIST_OBJECTS */
    uint64_t quiet_ms;                /* 180 s: bookmarks come about every minute */
    struct reflector_backoff backoff; /* zero: as above; tests use shorter times */
    struct reflector_counts *counts;  /* borrowed; added to. NULL: the caller wants none */
};

struct reflector;

/* Starts to list in the loop's next turn. The api must outlive the reflector. */
enum errc reflector_new(struct loop *l, struct kube_api *api, const struct reflector_settings *s,
                        const struct reflector_sink *sink, struct reflector **ret,
                        struct err *reterr) _must_use_;
struct reflector *reflector_free(struct reflector *r); /* returns NULL */

/* Whether a complete list has arrived since the start. */
bool reflector_synced(const struct reflector *r);

/*
 * Whether the API server answered the last list attempt with a Status of 403 or 404: this process
 * has no right to read the resource, or has lost it. A 403 or 404 without such a Status may come
 * from a load balancer, which knows nothing of rights: it counts as any other failure.
 */
bool reflector_denied(const struct reflector *r);

/*
 * Whether the last list attempt got a 404, with any body. The API server answers in plain text that
 * it does not serve a group or version, and a load balancer's 404 looks the same.
 */
bool reflector_absent(const struct reflector *r);

/* Cancels the call under way and lists again in the loop's next turn. */
void reflector_relist(struct reflector *r);
