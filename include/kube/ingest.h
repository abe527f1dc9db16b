/*
 * Puts one Kubernetes object's JSON into the cache, and logs what an operator should know: a node
 * that appeared, went away or changed its size, a pod that is bound without a valid card, an object
 * that can't be read. An unreadable object never stops a stream. Of a pod, as much is taken as can
 * be read: if it is bound, its node gets no new pods. A node is taken for one without cards. Any
 * other object, and one without a uid or name, is left out: the cache is then incomplete.
 */
#pragma once

#include "base/arena.h"
#include "base/log.h"
#include "core/cache/cache.h"
#include "core/state/measured.h"
#include "io/loop.h"

/*
 * The pod selector that kube-scheduler also uses. A pod that ends leaves the selection: the watch
 * then sends DELETED with the pod's old content.
 */
#define INGEST_POD_SELECTOR \
    STR("fieldSelector=status.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed")

struct ingest {
    struct loop *loop;          /* borrowed */
    struct cache *cache;        /* borrowed */
    struct measured *measured;  /* borrowed; set after ingest_init; NULL: not wanted */
    struct timer lock_tick;     /* while a node has a lock */
    struct timer usage_tick;    /* when the oldest of its figures become too old */
    bool knows_nodes;           /* the list of nodes was complete once */
    struct arena arena;         /* for one object at a time */
    struct log_limit over;      /* for log lines about cards that hold more than their size */
    struct log_limit locks;     /* for log lines about locks of nodes */
    struct log_limit unkept;    /* for log lines about figures that have no room in `measured` */
    struct log_limit differing; /* for log lines about containers with other cards */
    /* Shows a pod's object, as the cache has taken it, with the fault of its request (code OK:
     * none). NULL: not wanted. */
    void (*show)(void *ctx, const struct pod_view *pod, const struct err *fault);
    void *ctx;
    bool lost;                  /* out of memory on an object: the cache is incomplete */
    bool torn[CACHE_ALL_KINDS]; /* an object was left out since the list began */
    size_t n_unreadable;        /* objects that could not be read, left out or not */
};

/* How long figures of what cards and pods use count: cardpack-node writes them again every
 * five minutes, so they are unknown after two that did not come. */
#define INGEST_USAGE_MS UINT64_C(660000)

void ingest_init(struct ingest *in, struct loop *l, struct cache *cache);
void ingest_done(struct ingest *in);

/* gone: the object was deleted, or left the selection that is watched. */
void ingest_node(struct ingest *in, struct str json, bool gone);
void ingest_pod(struct ingest *in, struct str json, bool gone);
void ingest_configmap(struct ingest *in, struct str json, bool gone);
void ingest_slice(struct ingest *in, struct str json, bool gone);
void ingest_claim(struct ingest *in, struct str json, bool gone);
void ingest_class(struct ingest *in, struct str json, bool gone);

void ingest_list_begin(struct ingest *in, enum cache_kind kind);

/*
 * Removes from the cache the objects that the whole list did not name. Removes nothing if an object
 * of the list could not be read: that object may be the missing one. Returns the number of
 * confirmed pods that the list lacked. Such a pod is either newer than the list or deleted: if it
 * is still missing after a while, list again.
 */
unsigned ingest_list_end(struct ingest *in, enum cache_kind kind);

/* What the cache lacks of the objects of one kind. */
struct ingest_loss {
    bool in_list; /* an object was lost or left out since the last list began */
    bool lacks;   /* the cache lacks an object, until the next complete list */
    bool torn;    /* because it can't be read; else memory was short for it */
};

/*
 * Call it after each of the functions above. If an object was lost for lack of memory, or left out
 * because it can't be read, the cache is incomplete, and nothing is decided until a complete list.
 * Returns after how many ms to request that list, because memory is probably still short now, or
 * the object not yet corrected; 0: nothing was lost.
 */
uint64_t ingest_note_loss(struct ingest *in, enum cache_kind kind, struct ingest_loss *l);
