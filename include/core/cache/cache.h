/*
 * What the API server's objects say about nodes, cards and pods, and the reservations that we made.
 *
 * The cache is a reducer: cache_apply is the only way to change it. It has no clock, no I/O and no
 * log, so the same list of events always gives the same state, and a simulation can compare it with
 * a simple recount after each event.
 *
 * Rules (contract: the spec says how much memory a pod has, the annotation which card, nodeName
 * whether the pod counts):
 *   - a pod is identified by its UID. Two pods of one name are two pods until an event says that
 *     one of them is gone;
 *   - a bound pod's memory is released when the pod is terminal, gone, or missing in a list; never
 *     because of a deletionTimestamp;
 *   - the API server never removes nodeName from a pod. So an object without nodeName is older than
 *     a reservation or a Binding that we know of, and does not release it;
 *   - a bound pod without a valid card is charged to its node and to no card of the node;
 *   - what a pod requests of CPU and memory is charged to its node as long as the pod holds cards
 *     there. A pod that asks for no card is charged from the object that shows it bound until it is
 *     terminal, gone, or missing in a list;
 *   - what a pod holds counts for its namespace's quota as long as it counts for its node,
 *     whichever scheduler bound the pod. Only a reservation checks the quota;
 *   - a card whose device a ResourceClaim holds whole gets no new pods; of a device that claims
 *     share, the card is charged with what they consume;
 *   - room that is kept for a pending pod stays until the pod holds a card, is gone, is being
 *     deleted, changes its request, or until UNKEEP. Kept room replaces a nomination by a
 *     scheduler, which counts until the pod is being deleted;
 *   - a reservation ends only by CONFIRM or CANCEL, or by an object that shows the pod bound. It
 *     does not end by time, which proves nothing. It does not end with the pod either: API servers
 *     before 1.27 ignore the UID of a Binding, so a Binding in flight may still bind the next pod
 *     of that name.
 *
 * Lists: LIST_BEGIN before a LIST is sent, its objects as SET, LIST_END when it was complete. A pod
 * that is not in the list is gone if the cache knew it before LIST_BEGIN, even if it was bound
 * since. A pod that the cache first learned of during the list, from a bind, may be younger than
 * the list or deleted before the list was read: it stays, and is marked as missing until a watch
 * event names it.
 *
 * CONFIRM and POD_READ of a missing pod return ERR_CONFLICT, because their evidence may be older
 * than the list. The caller then reads the pod. The answer to that GET counts, until a list or
 * watch event contradicts it.
 */
#pragma once

#include "base/map.h"
#include "core/dra/dra.h"
#include "core/policy/learned_costs.h"
#include "core/quota.h"
#include "core/request/evaluation.h"
#include "core/request/verdict.h"
#include "core/state/cardless_pods.h"
#include "core/state/node.h"
#include "core/state/swap.h"

enum cache_kind {
    CACHE_NODES,
    CACHE_PODS,
    CACHE_HEALTH,               /* the ConfigMaps: of unhealthy cards, and of quotas */
    CACHE_KINDS,                /* the kinds above are in every cluster */
    CACHE_SLICES = CACHE_KINDS, /* DRA's ResourceSlices, ResourceClaims and DeviceClasses */
    CACHE_CLAIMS,
    CACHE_CLASSES,
    CACHE_ALL_KINDS
};

/* Settings from the configuration. All replicas have the same. */
struct cache_settings {
    /* The policy of cards where neither the pod nor the node sets one; UNSET is binpack. If
     * node_policy has costs, only spread counts here: otherwise the costs choose the card, too. */
    enum policy card_policy;
    enum policy node_policy;
    bool shrink; /* release what only init containers need when they are done */
    enum swap_guard swap_guard;
};

struct cache {
    struct cache_settings settings; /* the owner sets it before the first event */
    struct map nodes;               /* by name: struct node */
    struct map pods;     /* by UID: struct pod; only pods that ask for memory or hold it */
    struct node **slots; /* by node.slot; n_slots of them; NULL: free */
    uint32_t n_slots;
    uint32_t first_slot;          /* no slot below is free */
    uint32_t end_slot;            /* all slots from here on are free */
    struct map groups;            /* affinity groups that hold cards: see cache_store.h */
    struct intern_table sizes;    /* of the nodes */
    struct intern_table requests; /* of the pods; `labels` too */
    struct intern_table labels;
    struct cardless_pods cardless; /* bound pods that ask for no card */
    struct dra dra;                /* the devices that DRA has given away; see cache_dra.h */
    struct quota quota;            /* each pod is a member, charged with what it holds */
    struct learned_costs learned;  /* learns from each new pod; its owner has it solve */
    uint32_t quota_epoch;          /* of the last list that contained the quota ConfigMap */
    bool limited;                  /* quotas are in force */

    struct changes changes; /* of the nodes */
    struct list pending;    /* pods that hold nothing, the latest first */
    size_t n_pending;
    uint32_t n_locks;         /* of nodes; see lock.h */
    uint64_t pending_version; /* changes when a pending pod comes, goes or changes its request */

    struct {
        uint32_t epoch; /* of the last list that began */
        bool torn;      /* an object was lost for lack of memory since the list began */
    } lists[CACHE_ALL_KINDS];
};

void cache_init(struct cache *c, struct map_seed seed);
void cache_done(struct cache *c);

enum cache_event_type {
    CACHE_NODE_SET,
    CACHE_NODE_GONE,
    CACHE_LOCKS,      /* time has passed: locks of nodes may have ended */
    CACHE_NODE_NOTED, /* changes nothing; readers of `changes` see the node again */
    CACHE_POD_SET,
    CACHE_POD_GONE,
    CACHE_POD_READ, /* the answer to a GET, for a pod that is reserved or confirmed */
    CACHE_HEALTH_SET,
    CACHE_HEALTH_GONE,
    CACHE_QUOTA_SET,
    CACHE_QUOTA_BAD, /* the ConfigMap exists but cannot be read: the old quotas stay */
    CACHE_QUOTA_GONE,
    CACHE_SLICE_SET,
    CACHE_SLICE_GONE,
    CACHE_CLAIM_SET,
    CACHE_CLAIM_GONE,
    CACHE_CLASS_SET,
    CACHE_CLASS_GONE,
    CACHE_RESERVE,
    CACHE_RENEW, /* the reservation's Binding is about to be sent: give it a new ASSUME_TIME */
    CACHE_CONFIRM,
    CACHE_CANCEL,
    CACHE_KEEP, /* keep exactly these cards for a pending pod, even if pods hold them now */
    CACHE_UNKEEP,
    CACHE_LIST_BEGIN,
    CACHE_LIST_END,
};

/* The cache copies what it keeps of a view. The comments below name events without the prefix
 * CACHE_: RESERVE is CACHE_RESERVE. */
struct cache_event {
    enum cache_event_type type;

    union {
        struct node_view node; /* NODE_SET; NODE_GONE, NODE_NOTED: the name */
        struct pod_view pod;   /* POD_SET, POD_READ; POD_GONE: the UID */

        struct {
            struct str node;
            struct str gpus;
        } health; /* HEALTH_SET; HEALTH_GONE: the node */

        struct quota_view quota; /* QUOTA_SET */

        struct dra_slice_view slice; /* SLICE_SET; SLICE_GONE: the name */
        struct dra_claim_view claim; /* CLAIM_SET; CLAIM_GONE: the UID */
        struct dra_class_view class; /* CLASS_SET; CLASS_GONE: the name */

        struct {
            struct str uid;
            struct str namespace;
            struct str name;
            struct str node;
            const struct request *request;   /* must ask for something */
            struct step_budget *step_budget; /* counts the cost of the evaluation; or NULL */
            uint64_t version;                /* of the object with this request */
        } reserve;

        struct {
            struct str uid;
            bool read_back; /* CONFIRM: by a GET sent after the write */
        } holder;           /* RENEW, CONFIRM, CANCEL, UNKEEP */

        struct {
            struct str uid;
            struct str node;
            const struct placement *there;
        } keep;

        enum cache_kind list; /* LIST_BEGIN, LIST_END */
    };
};

struct effect {
    bool changed;          /* the possible placements have changed; not: only their costs */
    enum verdict verdict;  /* RESERVE, RENEW */
    const struct pod *pod; /* RESERVE, RENEW; valid until the next event */
    uint32_t card;         /* RESERVE, RENEW: the first of its cards */
    int64_t card_total;    /* the total of that card */
    uint64_t assume_ns;    /* RESERVE, RENEW: strictly increasing on a node */
    uint64_t version;      /* RENEW: the latest shown with the reserved request; 0: not known */
    bool odd_lock;         /* NODE_SET: it has a new lock, which can't be true */
    unsigned bad_tokens;   /* HEALTH_SET: tokens that are not a card index */
    unsigned swept;        /* LIST_END: removed objects */
    bool unlimited;        /* LIST_END: the quota ConfigMap is among them */
    unsigned unproven;     /* LIST_END: confirmed pods that are missing: GET them */
    struct err err;        /* POD_SET: why the pod's request can't be read */
};

/*
 * now_ns is Unix time, for ASSUME_TIME and for locks of nodes only. Returns
 *   ERR_NOMEM: nothing has changed, and an object from a list or a watch is lost until the next
 *     list. LIST_END: an object of this list was lost, so nothing is removed: list again;
 *   RESERVE: ERR_UNAVAILABLE with effect.verdict; ERR_CONFLICT if the pod already holds memory;
 *   RENEW: ERR_UNAVAILABLE with effect.verdict if the card has become infeasible for the pod since;
 *     ERR_CONFLICT if its object now has another request than the reserved one; ERR_NOTFOUND if
 *     the pod has no reservation;
 *   KEEP: ERR_NOTFOUND if no list or watch showed the pod, or if the node does not exist or lacks
 *     such cards; ERR_CONFLICT if the pod already holds memory, or is being deleted;
 *   CONFIRM, POD_READ: ERR_NOTFOUND if no such pod holds memory (it was deleted, or the reservation
 *     was canceled); ERR_CONFLICT if the pod is missing: send a new GET now, even after an earlier
 *     one, and apply its answer: CONFIRM with read_back, POD_READ, or CANCEL.
 *
 * POD_READ moves the charge of a reserved or confirmed pod to the node and cards of the object. An
 * object that is not bound changes nothing. An answer to a GET may be older than the last watch
 * event, so it must not be applied as POD_SET.
 */
enum errc cache_apply(struct cache *c, const struct cache_event *e, uint64_t now_ns,
                      struct effect *ret) _must_use_;

/* The evaluation of r for the pod with this UID, for fit.h; memo, step_budget and shortfall are
 * NULL. *ret points to *r and into the cache: it is valid until the next cache_apply. */
void cache_evaluation(const struct cache *c, struct str uid, const struct request *r,
                      struct evaluation *ret);

/* NULL if the cache does not know the node, or knows it only from pods that ask for no card.
 * Borrowed until the next cache_apply. */
const struct node *cache_node(const struct cache *c, struct str name);

/* The same for n names, at most MAP_BATCH; a node that only such pods name is absent. */
void cache_nodes_each(const struct cache *c, const struct str *names, size_t n,
                      const struct node **ret);
const struct pod *cache_pod(const struct cache *c, struct str uid);

/* The node of a link that changes_after found in c->changes. */
static inline const struct node *cache_changed_node(const struct change_link *x)
{
    return (const struct node *)(const void *)((const char *)x - offsetof(struct node, change));
}

/* Walks all nodes that cache_node finds, or all pods, in no order. Start with *cursor 0. */
const struct node *cache_next_node(const struct cache *c, size_t *cursor);
const struct pod *cache_next_pod(const struct cache *c, size_t *cursor);

/* *ret: the settings, pods and quotas of the other cache, and no nodes. It is for questions alone,
 * as those about nodes that an autoscaler may add, and ends before the other one changes. */
void cache_template_init(struct cache *ret, const struct cache *of);
enum errc cache_template_add(struct cache *c, const struct node_view *view) _must_use_;
void cache_template_done(struct cache *c);

/* For tests: asserts every invariant of every object. O(everything). */
void cache_check(const struct cache *c);
