/*
 * What the API server's objects say of nodes, cards and pods, and what we have promised beyond it.
 *
 * The cache is a reducer: cache_apply is the only way in, everything else is const. It has no
 * clock, no I/O and no log, so a list of events replays to the same state, and a simulation can
 * hold it against a naive recount after each.
 *
 * Rules (contract: the spec decides how much, the annotation which card, nodeName whether it
 * counts):
 *   - pods are known by UID alone. Two pods of one name are two pods until one is said to be gone;
 *   - a bound pod's memory is released when it is terminal, gone, or missing in a list; never on a
 *     deletionTimestamp;
 *   - nodeName never leaves a pod, so an object without it is older than a reservation or a binding
 *     that we know of, and changes nothing there;
 *   - a bound pod without a valid card is charged to its node and to no card of it;
 *   - what a pod holds counts for its namespace's quota as long as it counts for its node, whoever
 *     bound it; only a reservation asks whether that is allowed;
 *   - room that is kept for a pending pod stays until the pod holds, is gone or asks for something
 *     else, or until UNKEEP. A nomination by a scheduler yields to it;
 *   - a reservation is settled only by confirm or cancel, or by an object that shows the pod bound.
 *     Not by time, which proves nothing, nor by the pod's end: API servers before 1.27 ignore the
 *     UID of a Binding, so one that is under way may still bind the next pod of that name here.
 *
 * Lists: LIST_BEGIN when a LIST is about to be sent, its objects as SET, LIST_END when it was
 * whole. A pod that it lacks is gone if we knew it before LIST_BEGIN, however it came to be bound
 * since. One that we first heard of during the list, in a bind, may be younger than the list or
 * deleted before it was read: it stays, and is marked as missing until a watch names it.
 *
 * What is missing is believed on a fresh read only: CONFIRM and POD_READ then say ERR_CONFLICT, and
 * from there on an answer to a GET that is sent later counts, until the next list or watch event
 * that speaks against the pod.
 */
#pragma once

#include "map.h"
#include "node.h"
#include "quota.h"
#include "request.h"
#include "verdict.h"

enum cache_kind {
    CACHE_NODES,
    CACHE_PODS,
    CACHE_HEALTH, /* the ConfigMaps: of unhealthy cards, and of quotas */
    CACHE_KINDS
};

/* What the configuration says; the same for all replicas. */
struct cache_settings {
    enum pack card_policy; /* where neither pod nor node says it; UNSET is binpack */
    enum pack node_policy;
    bool shrink; /* what only init containers need is given back when they are done */
};

struct cache {
    /* Set by the owner; from the first event on, `shrink` by cache_set_shrink alone. */
    struct cache_settings settings;
    struct map nodes;     /* by name: struct node */
    struct map pods;      /* by UID: struct pod; only pods that want or hold memory */
    struct map groups;    /* affinity groups that hold cards: see cache_store.h */
    struct pool sizes;    /* of the nodes */
    struct pool requests; /* of the pods, as the labels */
    struct pool labels;
    struct quota quota;   /* each pod is a member, and charged what it holds */
    uint32_t quota_epoch; /* of the last list that named the quotas' ConfigMap */
    bool limited;         /* quotas have been set, and not taken back */

    struct changes changes;   /* of the nodes */
    struct pod *pending;      /* those that hold nothing, the latest first */
    size_t n_pending;         /* of them */
    uint64_t pending_version; /* of who they are, and what they ask for */

    struct {
        uint32_t epoch; /* of the last list that was begun */
        bool torn;      /* memory ran out on an object since */
    } lists[CACHE_KINDS];
};

void cache_init(struct cache *c, struct map_seed seed);
void cache_done(struct cache *c);

/* Charges every pod anew where that changes; can't fail. What others got meanwhile they keep. */
void cache_set_shrink(struct cache *c, bool shrink);

enum event_type {
    EVENT_NODE_SET,
    EVENT_NODE_GONE,
    EVENT_POD_SET,
    EVENT_POD_GONE,
    EVENT_POD_READ, /* the answer to a GET, for a pod that holds by our word alone */
    EVENT_HEALTH_SET,
    EVENT_HEALTH_GONE,
    EVENT_QUOTA_SET,
    EVENT_QUOTA_BAD, /* the ConfigMap is there, and can't be read: what was set before stays */
    EVENT_QUOTA_GONE,
    EVENT_RESERVE,
    EVENT_RENEW, /* a reservation's Binding is about to be sent: it is the node's youngest now */
    EVENT_CONFIRM,
    EVENT_CANCEL,
    EVENT_KEEP, /* for a pending pod, on these very cards, whoever holds them now */
    EVENT_UNKEEP,
    EVENT_LIST_BEGIN,
    EVENT_LIST_END,
};

/* Views are copied where they are kept. */
struct event {
    enum event_type type;

    union {
        struct node_view node; /* NODE_SET; NODE_GONE: the name */
        struct pod_view pod;   /* POD_SET, POD_READ; POD_GONE: the UID */

        struct {
            struct str node;
            struct str gpus;
        } health; /* HEALTH_SET; HEALTH_GONE: the node */

        struct quota_view quota; /* QUOTA_SET */

        struct {
            struct str uid;
            struct str namespace;
            struct str name;
            struct str node;
            const struct request *request; /* for more than nothing */
        } reserve;

        struct {
            struct str uid;
            bool read_back; /* CONFIRM: by an answer to a GET that was sent after the write */
        } settle;           /* RENEW, CONFIRM, CANCEL, UNKEEP */

        struct {
            struct str uid;
            struct str node;
            const struct placement *there;
        } keep;

        enum cache_kind list; /* LIST_BEGIN, LIST_END */
    };
};

/* What an event did, for logs, metrics and the caller. */
struct effect {
    bool changed;          /* what can be placed has changed */
    enum verdict verdict;  /* RESERVE, RENEW */
    const struct pod *pod; /* RESERVE, RENEW: with its holding; until the next event */
    uint32_t card;         /* RESERVE, RENEW: the first of its cards */
    int64_t card_total;    /* and its size */
    uint64_t assume_ns;    /* RESERVE, RENEW: strictly increasing on a node, in their order */
    unsigned bad_tokens;   /* HEALTH_SET: tokens that are no index */
    unsigned swept;        /* LIST_END: objects that are gone */
    bool unlimited;        /* LIST_END: the quotas' ConfigMap is one of them */
    unsigned unproven; /* LIST_END: confirmed pods that are missing and may be gone: read them */
    struct err err;    /* POD_SET: why its request can't be read */
};

/*
 * now_ns is Unix time, for ASSUME_TIME only. Returns
 *   ERR_NOMEM: nothing has changed, and an object from a list or a watch is lost until the next
 *     list. LIST_END: an object of this list was lost, so nothing is taken for gone: list again;
 *   RESERVE: ERR_UNAVAILABLE with effect.verdict, ERR_CONFLICT where the pod already holds memory;
 *   RENEW: ERR_UNAVAILABLE with effect.verdict where the card has become none for the pod since,
 *     ERR_NOTFOUND where nothing is reserved for it;
 *   KEEP: ERR_NOTFOUND where no such pod was shown by list or watch, or the node is none with such
 *     cards; ERR_CONFLICT where the pod already holds memory;
 *   CONFIRM, POD_READ: ERR_NOTFOUND where no such pod holds memory (it was deleted, or the
 *     reservation canceled); ERR_CONFLICT where the pod is missing: GET it now, whatever was read
 *     before, and say what it showed: CONFIRM with read_back, POD_READ, or CANCEL.
 *
 * POD_READ moves the charge of a pod that is reserved or confirmed to where the object is bound; an
 * object that is not bound changes nothing. An answer to a GET may be older than what the watch has
 * shown, so it must not come in as POD_SET.
 */
enum errc cache_apply(struct cache *c, const struct event *e, uint64_t now_ns, struct effect *ret)
    _must_use_;

/* Tells r what the cache knows of its pod: for policy.h. Valid until the next cache_apply. */
void cache_resolve(const struct cache *c, struct str uid, struct request *r);

/* NULL where unknown. Borrowed until the next cache_apply. */
const struct node *cache_node(const struct cache *c, struct str name);

/* The same of n names, MAP_BATCH at most. */
void cache_nodes_each(const struct cache *c, const struct str *names, size_t n,
                      const struct node **ret);
const struct pod *cache_pod(const struct cache *c, struct str uid);

/* Of what changes_after finds in c->changes. */
static inline const struct node *cache_changed_node(const struct change_link *x)
{
    return (const struct node *)(const void *)((const char *)x - offsetof(struct node, change));
}

/* Every one in no order; start with *cursor 0. */
const struct node *cache_next_node(const struct cache *c, size_t *cursor);
const struct pod *cache_next_pod(const struct cache *c, size_t *cursor);

/* Asserts every invariant of every object: for tests, O(everything). */
void cache_check(const struct cache *c);
