/*
 * A node: its cards, and the pods that hold memory on them. The sizes come from the current Node
 * object, the usage from the list of pods; they are stored apart. When the sizes change, the usage
 * is recounted from the list, so no derived figure can be outdated.
 *
 * Only cache.c changes these structs. Other modules read them through const pointers, or change an
 * overlay.
 */
#pragma once

#include "base/macro.h"
#include "core/limit.h"
#include "core/state/changes.h"
#include "core/state/isolation.h"
#include "core/state/lock.h"
#include "core/state/pod.h"
#include "core/state/uuids.h"

struct card {
    int64_t total; /* in the device plugin's unit (GiB or MiB), as all memory here */
    /* May exceed total after a resize or after a bind by another scheduler, never by our own
     * bind. */
    int64_t used;
    uint32_t cores; /* percent of its compute that pods hold; may exceed 100, as used */
    uint32_t pods;
    uint32_t more;    /* places for pods that they take beyond one each: see share_takers */
    uint32_t wholes;  /* pods that hold it whole */
    uint32_t foreign; /* those of them whose amounts are in another unit; see node_is_foreign */
    uint32_t lent;    /* part of `used`: what ResourceClaims hold of it */
    uint8_t kind;     /* its model and size: see market_know; 0: none */
    uint8_t withheld; /* percent of its compute that its plugin does not give out */
    uint8_t left;     /* hundredths that new pods may use, rounded down; 100: no pod is on it */
    bool absent : 1;  /* the table of cards skips this index */
    bool unhealthy : 1;
    bool cordoned : 1;
    bool aside : 1;   /* set aside for another device plugin: see CARDPACK_ANNOTATION_EXCLUSIVE */
    bool given : 1;   /* an administrator gave it to DRA: see CARDPACK_ANNOTATION_DRA */
    bool claimed : 1; /* a ResourceClaim holds it whole */
};

/* A cluster has ten thousands of them. */
static_assert(sizeof(struct card) == 48, "bits, so that a card is no larger");

/* Facts about a card that only a table of cards contains. Its UUID, which no other node has, is not
 * here: see node.uuids. */
struct card_info {
    struct str model; /* strings: stored in the node_sizes block */
    struct str profile;
    uint64_t pci;      /* dra_pci; 0: unknown */
    int32_t numa;      /* -1: unknown */
    uint32_t max_pods; /* 0: no limit of its own */
};

/* Behind the bits of the dialects: NVIDIA's plugin, by its own name and by others. */
#define OFFERS_EXCLUSIVE DIALECT_BIT(DIALECT_COUNT)
#define OFFERS_RENAMED   DIALECT_BIT(DIALECT_COUNT + 1)
#define OFFERS_ALL       (DIALECT_BIT(DIALECT_COUNT + 2) - 1)

/* What is wrong with the node's own figures. */
enum node_fault {
    NODE_OK,
    NODE_ABSENT,       /* pods or a ConfigMap name it, but the API server has no such node */
    NODE_NOT_SHARED,   /* no gpu-mem */
    NODE_NO_CARDS,     /* gpu-mem without gpu-count and without a table */
    NODE_BAD_QUANTITY, /* gpu-mem or gpu-count is not a quantity, is negative, exceeds LIMIT_CARDS,
                          or gives a card more than REQUEST_MEM_MAX */
    NODE_BAD_CARDS,    /* the table of cards can't be read: see cards_fault */
};

/* A bit for each card. */
struct card_set {
    uint64_t words[LIMIT_CARDS / 64];
};

/* What the Node object says, except for the UUIDs of the cards, as one block. It never changes, and
 * nodes with equal content share it. */
struct node_sizes {
    struct interned interned;
    enum node_fault fault;
    int64_t total;     /* capacity of all cards together */
    int64_t limit;     /* what pods may use of it: the smaller of capacity and allocatable */
    int64_t remainder; /* what is left of total after the cards' sizes */
    uint32_t n_cards;
    uint32_t max_pods;     /* on each card; 0: no limit */
    uint32_t exclusive;    /* whole cards that another device plugin allocates */
    uint32_t renamed;      /* the same by other names, see core/dialect/card_resources.h */
    unsigned offers;       /* OFFERS_..., and DIALECT_BIT of each dialect: see node_offers */
    enum policy placement; /* how pods are packed on its cards */
    enum dialect dialect;  /* of its device plugin */
    enum isolation isolation;
    bool late;               /* containers get their cards late: no pods can be swapped */
    struct card *cards;      /* sizes and flags; usage is 0 here */
    struct card_info *infos; /* n_cards entries; NULL without a table */
    struct str model;        /* of each card that has no model of its own */
    struct str pool;
    struct str cards_fault; /* NODE_BAD_CARDS: why, for people */
    unsigned bad_tokens;    /* unreadable tokens in its annotations and labels */
};

struct node {
    struct change_link change; /* its place in the cache's list of changes */
    uint32_t epoch;            /* of the last list that contained it */
    uint32_t health_epoch;     /* the same for its unhealthy ConfigMap */

    enum node_fault fault; /* copied from `sizes`, like limit, remainder and n_cards */
    int64_t limit;
    int64_t remainder;
    struct card *cards;         /* owned; the block of `uuids` is behind them */
    const unsigned char *uuids; /* of the cards, see core/state/uuids.h; NULL: none has one */
    uint32_t n_cards;
    bool locked; /* the lock keeps all pods away that need it */
    bool sliced; /* a ResourceSlice names it: DRA has devices there */
    struct node_sizes
        *sizes; /* shared, in the cache's table `sizes`; NULL while the node is absent */

    int64_t counted;   /* used as the kubelet counts it: by the pods' specs */
    int64_t unplaced;  /* held by pods without a valid card */
    int64_t exclusive; /* whole cards that pods hold from another device plugin */
    uint32_t n_pods;
    uint32_t n_sharing;    /* pods that ask for shared cards */
    struct pod *pods;      /* pods that hold something here; see pods_add */
    struct pod *kept_for;  /* pending pods for which room is kept here */
    uint32_t n_nominees;   /* pods that a scheduler nominated for it, pending or reserved */
    uint32_t n_unreadable; /* pods in its list that may hold any of its cards: no pod is placed */

    int64_t largest;       /* total of the largest card, usable or not */
    int64_t most_free;     /* the most free memory of a usable card */
    bool uneven;           /* `simple` and `crowded` do not decide */
    bool vacated;          /* an overlay: deleted pods are in its list but not in its sums */
    bool guarded;          /* SWAP_GUARD_REQUIRE */
    bool delegated;        /* DRA gives out its whole cards to new pods, by claims */
    uint32_t n_exchanging; /* pods in its list that exchange cards: no pod is placed meanwhile */
    uint64_t assume_ns;    /* the latest ASSUME_TIME given or seen here */
    struct card_set *unhealthy; /* from the ConfigMap; NULL: none */
    struct lock_view *lock;     /* of its dialect; owned, its texts are behind it; NULL: none */
    uint64_t idle_s; /* with a lock: since when no pod waits here, Unix time; 0: one does */

    uint32_t renamed;    /* part of `exclusive`: by other names */
    uint32_t n_cardless; /* pods without a GPU request that are charged to host_used */
    void *block;         /* the allocation that contains the node */

    /* What a score needs, in the line of the processor's cache that evaluate.c prefetches. */
    uint32_t n_starting; /* pods in its list of which pod_starts is true; an overlay does not count
                            it down */
    uint32_t slot;       /* its place in the cache's table of nodes; reused when the node is gone */
    int64_t total;       /* copied from `sizes` */
    int64_t used;        /* held by all pods, with a card or without */
    /* Changes with every change of the node, its cards, its pods or its kept room that a verdict or
     * a cost can depend on. No two nodes of a cache, and no two times of a node, have the same. Not
     * kept up to date in an overlay. */
    uint64_t version;
    struct host host_total; /* allocatable; HOST_UNKNOWN: absent or unreadable */
    struct host host_used;  /* requested by its pods, with a GPU request or without */

    /* From here on: what most requests need of most nodes, in one line of the processor's cache.
     * The name's bytes follow the struct. See struct evaluation. */
    struct str name; /* key of the cache's map */
    int64_t simple;  /* a simple request of at most this much is feasible */
    int64_t crowded; /* a simple request above `simple` and up to this is infeasible because of the
                        pods that are there; -1: `simple` and `crowded` do not decide */
};

/* Whether new pods may be placed on the card. */
static inline bool card_usable(const struct card *c)
{
    return !c->unhealthy && !c->cordoned && !c->aside && !c->absent && !c->given && !c->claimed;
}

/* Whether a ResourceClaim is the only reason why the card is unusable. */
static inline bool card_only_claimed(const struct card *c)
{
    return c->claimed && !c->unhealthy && !c->cordoned && !c->aside && !c->absent && !c->given;
}

static inline int64_t card_free(const struct card *c)
{
    return c->used >= c->total || !card_usable(c) ? 0 : c->total - c->used;
}

/* How many of its places for pods are taken. */
static inline uint32_t card_takers(const struct card *c)
{
    return c->pods + c->more;
}

/* What pods may have of its compute. */
static inline uint32_t card_compute(const struct card *c)
{
    return REQUEST_CORES_MAX - c->withheld;
}

static inline uint32_t card_free_cores(const struct card *c)
{
    return c->cores >= card_compute(c) ? 0 : card_compute(c) - c->cores;
}

/* Whether a card with `free` percent of its compute has too little for a part of `cores`. HAMi's
 * and Volcano's schedulers refuse a part without a limit of compute a card whose compute is all
 * given out. A card that never had any (devcore 0) they don't refuse. */
static inline bool card_lacks_cores(const struct card *c, const struct request *r, uint32_t cores,
                                    uint32_t free)
{
    return cores > free ||
           (free == 0 && card_compute(c) + c->cores > 0 && dialect_has_uuids(r->dialect));
}

static inline int64_t node_free(const struct node *n)
{
    return n->counted >= n->limit ? 0 : n->limit - n->counted;
}

/* Whether some cards are set aside for the other device plugin, so that the two plugins use
 * different cards. */
static inline bool node_has_aside(const struct node *n)
{
    for (uint32_t i = 0; i < n->n_cards; i++) {
        if (n->cards[i].aside)
            return true;
    }
    return false;
}

/* What the node's sums leave for new pods; its cards may have more free. */
static inline int64_t node_left(const struct node *n)
{
    int64_t left = MIN_OF(node_free(n), n->total - n->used);
    return n->fault != NODE_OK || left < 0 ? 0 : left;
}

/* The CPU and memory that pods have not requested; never below 0. HOST_UNKNOWN: not a limit. */
static inline struct host node_host_left(const struct node *n)
{
    struct host used = {n->host_used.cpu < 0 ? HOST_UNKNOWN : n->host_used.cpu,
                        n->host_used.memory < 0 ? HOST_UNKNOWN : n->host_used.memory};
    return host_sub(n->host_total, used);
}

/* Whether inspect, the page and the metrics list the node: it has shared memory, or pods that ask
 * for it. A node whose pods ask only for cards of another device plugin is not listed. */
static inline bool node_is_shared(const struct node *n)
{
    return n->total > 0 || n->n_sharing > 0;
}

static inline bool node_has_card(const struct node *n, int64_t card)
{
    return card >= 0 && card < n->n_cards && !n->cards[card].absent;
}

/* Whether only pods without a GPU request name it: there is no such node on the API server, and
 * nothing that is shown would name it. */
static inline bool node_is_hidden(const struct node *n)
{
    return n->fault == NODE_ABSENT && n->pods == NULL && n->kept_for == NULL &&
           n->n_nominees == 0 && n->unhealthy == NULL;
}

/* Whether the node has one of these resources, even if only with 0, as after the plugin is gone.
 * The kubelet admits a pod that names an extended resource which the node does not have, and gives
 * it nothing (pkg/kubelet/lifecycle/predicate.go, removeMissingExtendedResources): such a pod,
 * which anybody can create with spec.nodeName, holds nothing. An absent node is not known to lack
 * any. */
static inline bool node_offers(const struct node *n, unsigned what)
{
    return n->sizes == NULL || (n->sizes->offers & what) != 0;
}

/* Whether the pod can have shared cards of the node. */
static inline bool node_serves(const struct node *n, const struct request *r)
{
    return node_offers(n, DIALECT_BIT(r->dialect));
}

/* How many cards of NVIDIA's plugin the pod requests by other names, without those that a
 * ResourceClaim serves. */
static inline uint32_t node_renamed_of(const struct request *r)
{
    return (r->claims & CLAIMS_RENAMED) != 0 ? 0 : r->renamed;
}

/* What the pod has, or would have, of NVIDIA's plugin: all that no claim serves. A bound pod
 * without a claim has cards of the plugin also where the plugin is gone since. */
static inline uint32_t node_exclusive_of(const struct node *n, const struct request *r)
{
    bool claims = r->claims == 0 ? n->delegated : (r->claims & CLAIMS_CARDS) != 0;
    return (claims ? 0 : r->exclusive - r->renamed) + node_renamed_of(r);
}

/* The same for a pod of the node's list. */
static inline uint32_t node_exclusive_held(const struct node *n, const struct request *r)
{
    uint32_t renamed = node_renamed_of(r);
    return (node_offers(n, OFFERS_EXCLUSIVE) ? node_exclusive_of(n, r) - renamed : 0) +
           (node_offers(n, OFFERS_RENAMED) ? renamed : 0);
}

/* Whether the pod's amounts are in another unit than the node's, so that its part of a card is not
 * known. The card then counts as held whole. */
static inline bool node_is_foreign(const struct node *n, const struct request *r)
{
    return n->sizes != NULL && n->sizes->fault == NODE_OK && request_shares(r) &&
           r->dialect != n->sizes->dialect && node_serves(n, r);
}

/* What a pod of the node's list has of the card that its share names. */
static inline int64_t node_charge_of(const struct node *n, const struct request *r,
                                     const struct share *s)
{
    int64_t total = n->cards[s->card].total;
    if (!node_serves(n, r))
        return 0;
    return node_is_foreign(n, r) ? total : share_charge(r, s, total);
}

/* See card.left. */
uint8_t card_left(const struct card *c);

/* Absent if neither a table nor a label names it. The UUID is in `room`, or belongs to the node. */
struct str node_card_model(const struct node *n, uint32_t card);
struct str node_card_uuid(const struct node *n, uint32_t card, struct uuid_room *room);
int32_t node_card_numa(const struct node *n, uint32_t card);

/* Whether a device of this UUID is the card; letters of either case are alike, and an empty one
 * names no card. */
bool node_card_is_named(const struct node *n, uint32_t card, struct str uuid);

/* The card with exactly this UUID; INT32_MAX: none. */
uint32_t node_find_card(const struct node *n, struct str uuid);

/* How many pods the card may have; 0: no limit. */
uint32_t node_card_max_pods(const struct node *n, uint32_t card);

/* The rest is for cache.c, overlay.c and victims.c. */

/* A node's lists of pods end with NULL, unlike a list of base/list.h: a copy of the node can then
 * put further pods before those of the original, and the head costs one pointer. */
static inline void pods_add(struct pod **first, struct pod *p)
{
    assert(p->prev == NULL && *first != p);
    p->next = *first;
    if (p->next != NULL)
        p->next->prev = p;
    *first = p;
}

static inline void pods_remove(struct pod **first, struct pod *p)
{
    assert(p->prev == NULL ? *first == p : p->prev->next == p);
    if (p->prev != NULL)
        p->prev->next = p->next;
    else
        *first = p->next;
    if (p->next != NULL)
        p->next->prev = p->prev;
    p->next = p->prev = NULL;
}

/* Reads the Node object; takes a reference. NULL: allocation failed. */
struct node_sizes *node_sizes_take(struct intern_table *table, const struct node_view *view);

/* The UUIDs of the cards, by index, in the table that s was read from; they belong to the view. */
void node_sizes_list_uuids(const struct node_sizes *s, const struct node_view *view,
                           struct str ret[static LIMIT_CARDS]);

/* Accepts NULL. */
void node_sizes_give(struct intern_table *table, struct node_sizes *s);

/* Compares all but bad_tokens. */
bool node_sizes_equal(const struct node_sizes *a, const struct node_sizes *b);

/* Reads "0,2"; white space is allowed. Returns how many tokens are not a card index; they are left
 * out. A list over LIMIT_CARD_LIST_BYTES counts as one bad token and names every card: it is safer
 * to use no card than one that must not be used. */
unsigned card_set_read(struct card_set *set, struct str list);

static inline bool card_set_has(const struct card_set *set, uint32_t card)
{
    return set != NULL && card < LIMIT_CARDS && (set->words[card / 64] >> (card % 64) & 1) != 0;
}

static inline void card_set_add(struct card_set *set, uint32_t card)
{
    assert(card < LIMIT_CARDS);
    set->words[card / 64] |= (uint64_t)1 << (card % 64);
}

static inline void card_set_remove(struct card_set *set, uint32_t card)
{
    assert(card < LIMIT_CARDS);
    set->words[card / 64] &= ~((uint64_t)1 << (card % 64));
}

/* Takes the sizes from the Node object. ERR_NOMEM: nothing has changed. */
enum errc node_resize(struct node *n, struct intern_table *table, const struct node_view *view,
                      bool *ret_changed) _must_use_;

/* The API server has deleted the Node object. */
void node_vanish(struct node *n, struct intern_table *table);

/* Sets the unhealthy cards, in the form of card_set_read. *ret_bad counts tokens that are not a
 * card index; they are left out. ERR_NOMEM: nothing has changed. */
enum errc node_set_unhealthy(struct node *n, struct str gpus, unsigned *ret_bad, bool *ret_changed)
    _must_use_;
void node_clear_unhealthy(struct node *n);

/* What DRA holds of a node's cards. */
struct node_claimed {
    struct card_set whole;
    uint32_t lent[LIMIT_CARDS]; /* in the node's unit; 0 for a card of `whole` */
    bool delegated;             /* see struct node, also for the next */
    bool sliced;
};

/* Sets it. Returns whether anything has changed. */
bool node_set_claimed(struct node *n, const struct node_claimed *to);

/* Charges p's request to n and to the cards of p->allocation, as far as n has them. */
void node_attach(struct node *n, struct pod *p);
void node_detach(struct pod *p);

/* p holds cards. starting: its containers may not have been given devices yet. */
void node_note_start(struct pod *p, bool starting);

/* p holds cards. exchanging: cardpack-node is about to write, or has written, other cards into its
 * annotations, and into those of another pod. Between the two writes the cards seem to have room
 * that they have not. */
void node_note_exchange(struct pod *p, bool exchanging);

/* p holds cards, and what it holds is known, or not. */
void node_note_unreadable(struct pod *p, bool unreadable);

/* The same as node_note_start for a pod that becomes reserved, or stops being reserved. While it
 * waits, the device plugin has not acknowledged it. */
void node_note_wait(struct pod *p, bool waits);

/* deleting: p's object has a deletionTimestamp. p may hold nothing. */
void node_note_deletion(struct pod *p, bool deleting);

/* Keeps room on n for the pending pod p. */
void node_keep_room(struct node *n, struct pod *p);
void node_unkeep_room(struct pod *p);

/* For pods of an overlay that are not in its list; sign is 1 or -1. The derived figures (largest to
 * crowded) change only with node_derive. */
void node_charge(struct node *n, const struct request *r, const struct share *shares,
                 uint32_t count, int sign);

/* Gives the node a new version. Call this after a change that no function of this header makes. */
void node_stamp(struct node *n);

/* Charges a pod without a GPU request, or releases it (sign -1). */
void node_charge_cardless(struct node *n, struct host host, int sign);
void node_derive(struct node *n);

/* Whether a pod is refused where the device plugin could swap it. */
static inline bool node_is_guarded(const struct node *n)
{
    return n->guarded && (n->sizes == NULL || !n->sizes->late);
}

/* A new node without pods, marked as absent. guarded: a pod is refused here if the device plugin
 * could confuse it with a pod that starts here. NULL: allocation failed. */
struct node *node_new(struct str name, bool guarded);

/* table: that of the sizes. */
void node_drop(struct node *n, struct intern_table *table);

/* For tests: recounts from the list of pods and asserts that every figure agrees. */
void node_check(const struct node *n);
