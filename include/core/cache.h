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
#include "request.h"
#include "verdict.h"

enum cache_kind {
    CACHE_NODES,
    CACHE_PODS,
    CACHE_HEALTH, /* the unhealthy-gpu- ConfigMaps */
    CACHE_KINDS
};

struct cache {
    struct map nodes; /* by name: struct node */
    struct map pods;  /* by UID: struct pod; only pods that want or hold memory */

    struct {
        uint32_t epoch; /* of the last list that was begun */
        bool torn;      /* memory ran out on an object since */
    } lists[CACHE_KINDS];
};

void cache_init(struct cache *c, struct map_seed seed);
void cache_done(struct cache *c);

enum event_type {
    EVENT_NODE_SET,
    EVENT_NODE_GONE,
    EVENT_POD_SET,
    EVENT_POD_GONE,
    EVENT_POD_READ, /* the answer to a GET, for a pod that holds by our word alone */
    EVENT_HEALTH_SET,
    EVENT_HEALTH_GONE,
    EVENT_RESERVE,
    EVENT_RENEW, /* a reservation's Binding is about to be sent: it is the node's youngest now */
    EVENT_CONFIRM,
    EVENT_CANCEL,
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

        struct {
            struct str uid;
            struct str namespace;
            struct str name;
            struct str node;
            struct request request; /* for more than nothing */
        } reserve;

        struct {
            struct str uid;
            bool read_back; /* CONFIRM: by an answer to a GET that was sent after the write */
        } settle;           /* RENEW, CONFIRM, CANCEL */

        enum cache_kind list; /* LIST_BEGIN, LIST_END */
    };
};

/* What an event did, for logs, metrics and the caller. */
struct effect {
    bool changed;         /* what can be placed has changed */
    enum verdict verdict; /* RESERVE, RENEW */
    uint32_t card;        /* RESERVE */
    int64_t card_total;   /* RESERVE, RENEW */
    uint64_t assume_ns;   /* RESERVE, RENEW: strictly increasing on a node, in their order */
    unsigned bad_tokens;  /* HEALTH_SET: tokens that are no index */
    unsigned swept;       /* LIST_END: objects that are gone */
    unsigned unproven;    /* LIST_END: confirmed pods that are missing and may be gone: read them */
    struct err err;       /* POD_SET: why its request can't be read */
};

/*
 * now_ns is Unix time, for ASSUME_TIME only. Returns
 *   ERR_NOMEM: nothing has changed, and an object from a list or a watch is lost until the next
 *     list. LIST_END: an object of this list was lost, so nothing is taken for gone: list again;
 *   RESERVE: ERR_UNAVAILABLE with effect.verdict, ERR_CONFLICT where the pod already holds memory;
 *   RENEW: ERR_UNAVAILABLE with effect.verdict where the card has become none for the pod since,
 *     ERR_NOTFOUND where nothing is reserved for it;
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

/* NULL where unknown. Borrowed until the next cache_apply. */
const struct node *cache_node(const struct cache *c, struct str name);
const struct pod *cache_pod(const struct cache *c, struct str uid);

/* Every one in no order; start with *cursor 0. */
const struct node *cache_next_node(const struct cache *c, size_t *cursor);
const struct pod *cache_next_pod(const struct cache *c, size_t *cursor);

/* Asserts every invariant of every object: for tests, O(everything). */
void cache_check(const struct cache *c);
