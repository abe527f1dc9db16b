/*
 * A node: its cards, and the pods that hold memory on them. Sizes come from the Node object of this
 * moment and usage from the pods' list, kept apart: a node that is resized, loses cards or gets its
 * sizes late is recounted whole, so nothing derived can go stale.
 *
 * Only cache.c changes these structs; everybody else reads them through const pointers, or changes
 * a draft of one.
 */
#pragma once

#include "changes.h"
#include "limit.h"
#include "macro.h"
#include "pod.h"

struct card {
    int64_t total; /* in the plugin's unit (GiB or MiB), as all memory here */
    /* May pass total after a resize or a bind by another hand; never by one of ours. */
    int64_t used;
    uint32_t cores; /* percent of its compute that pods hold, as used */
    uint32_t pods;
    uint32_t wholes; /* pods among them that hold it whole */
    bool absent;     /* a hole in the table's indices */
    bool unhealthy;
    bool cordoned;
    bool aside; /* another plugin's: see CARDPACK_ANNOTATION_EXCLUSIVE */
};

/* What only a table says of a card. */
struct card_info {
    struct str model; /* these are stored in the node's texts */
    struct str uuid;
    struct str profile;
    int32_t numa; /* -1: not said */
};

/* What is wrong with the node's own numbers. */
enum node_fault {
    NODE_OK,
    NODE_ABSENT,       /* pods or a ConfigMap name it, the API server does not */
    NODE_NOT_SHARED,   /* no gpu-mem */
    NODE_NO_CARDS,     /* gpu-mem without gpu-count and without a table */
    NODE_BAD_QUANTITY, /* gpu-mem or gpu-count is no quantity, negative, over LIMIT_CARDS, or of
                          larger cards than there are (REQUEST_MEM_MAX) */
    NODE_BAD_CARDS,    /* the table of cards can't be read: see cards_fault */
};

/* A bit for each card. */
struct card_set {
    uint64_t words[LIMIT_CARDS / 64];
};

/* What the Node object says, in one block: the same for all nodes of which it says the same, and
 * never changed. */
struct node_sizes {
    struct pooled pooled;
    enum node_fault fault;
    int64_t total;     /* capacity of all cards */
    int64_t limit;     /* what may be used of it: the smaller of capacity and allocatable */
    int64_t remainder; /* what the cards' sizes leave of it */
    uint32_t n_cards;
    uint32_t max_pods;       /* on each card; 0: no limit */
    uint32_t exclusive;      /* cards that another plugin gives out whole */
    enum pack placement;     /* of its cards */
    struct card *cards;      /* sizes and marks; usage is 0 here */
    struct card_info *infos; /* n_cards of them, or NULL without a table */
    struct str model;        /* of every card without a model of its own */
    struct str pool;
    struct str cards_fault; /* NODE_BAD_CARDS: why, for people */
    unsigned bad_tokens;    /* in its lists of cards */
};

struct node {
    struct change_link change; /* of what can be seen of it from outside */
    uint32_t epoch;            /* of the last list that named it */
    uint32_t health_epoch;     /* the same of its unhealthy ConfigMap */

    enum node_fault fault; /* these are of `sizes` */
    int64_t limit;
    int64_t remainder;
    struct card *cards;
    uint32_t n_cards;
    struct node_sizes *sizes; /* of the cache's pool; NULL while it is absent */

    int64_t counted;   /* used, as the kubelet counts it: by the pods' specs */
    int64_t unplaced;  /* by pods without a valid card */
    int64_t exclusive; /* cards that pods hold by another plugin */
    uint32_t n_pods;
    uint32_t n_sharing;  /* pods among them that want shared cards */
    struct pod *pods;    /* that hold something here */
    struct pod *claims;  /* that are pending, and for which room is kept here */
    uint32_t n_nominees; /* pods that are nominated for it, pending or reserved */

    int64_t largest;            /* total of the largest card, healthy or not */
    int64_t most_free;          /* what the freest usable card has left */
    bool uneven;                /* there is more to a verdict than the figures below */
    bool vacated;               /* a draft without the pods that are being deleted */
    uint64_t assume_ns;         /* the last ASSUME_TIME given or seen here */
    struct card_set *unhealthy; /* by the ConfigMap; NULL for none */

    void *block; /* what the node stands in */

    int64_t total; /* of `sizes` */
    int64_t used;  /* by all pods, with a card or not */

    /* From here on all that most requests need of most nodes, in one line of the processor's cache:
     * the name's bytes follow the struct. See request.simple. */
    struct str name; /* key of the cache's map */
    int64_t simple;  /* it fits up to this */
    int64_t crowded; /* what is more does not, for the pods that are there, up to this; -1: there
                        is more to a verdict than these two */
};

/* Something may be placed there at all. */
static inline bool card_usable(const struct card *c)
{
    return !c->unhealthy && !c->cordoned && !c->aside && !c->absent;
}

static inline int64_t card_free(const struct card *c)
{
    return c->used >= c->total || !card_usable(c) ? 0 : c->total - c->used;
}

static inline uint32_t card_free_cores(const struct card *c)
{
    return c->cores >= REQUEST_CORES_MAX ? 0 : REQUEST_CORES_MAX - c->cores;
}

static inline int64_t node_free(const struct node *n)
{
    return n->counted >= n->limit ? 0 : n->limit - n->counted;
}

/* What its sums leave for new pods, however much its cards have free. */
static inline int64_t node_left(const struct node *n)
{
    int64_t left = MIN_OF(node_free(n), n->total - n->used);
    return n->fault != NODE_OK || left < 0 ? 0 : left;
}

static inline bool node_has_card(const struct node *n, int64_t card)
{
    return card >= 0 && card < n->n_cards && !n->cards[card].absent;
}

/* Absent where neither a table nor a label says it. */
struct str node_card_model(const struct node *n, uint32_t card);
struct str node_card_uuid(const struct node *n, uint32_t card);
int32_t node_card_numa(const struct node *n, uint32_t card);

/* The rest is for cache.c and draft.c. */

/* What the object says; NULL without memory. */
struct node_sizes *node_sizes_take(struct pool *pool, const struct node_view *view);

/* Accepts NULL. */
void node_sizes_give(struct pool *pool, struct node_sizes *s);

/* But for tokens that say nothing. */
bool node_sizes_equal(const struct node_sizes *a, const struct node_sizes *b);

/* "0,2", white space allowed. Returns how many tokens are no index: they are left out. */
unsigned card_set_read(struct card_set *set, struct str list);

static inline bool card_set_has(const struct card_set *set, uint32_t card)
{
    return set != NULL && card < LIMIT_CARDS && (set->words[card / 64] >> (card % 64) & 1) != 0;
}

/* Sizes from the Node object. ERR_NOMEM: nothing has changed. */
enum errc node_resize(struct node *n, struct pool *pool, const struct node_view *view,
                      bool *ret_changed) _must_use_;

/* Its Node object is gone. */
void node_vanish(struct node *n, struct pool *pool);

/*
 * The unhealthy cards: "0,2", white space allowed. Tokens that are no index are counted in
 * *ret_bad and left out. ERR_NOMEM: nothing has changed.
 */
enum errc node_set_unhealthy(struct node *n, struct str gpus, unsigned *ret_bad, bool *ret_changed)
    _must_use_;
void node_clear_unhealthy(struct node *n);

/* p's request is charged to the cards of p->holding, as far as n has them, and to n. */
void node_attach(struct node *n, struct pod *p);
void node_detach(struct pod *p);

/* Room is kept on n for p, which is pending. */
void node_claim(struct node *n, struct pod *p);
void node_unclaim(struct pod *p);

/* sign is 1 or -1: for pods that are not in its list, in a draft. */
void node_charge(struct node *n, const struct request *r, const struct share *shares,
                 uint32_t count, int sign);

/* Absent, without pods. NULL without memory. */
struct node *node_new(struct str name);

/* pool: of the sizes. */
void node_drop(struct node *n, struct pool *pool);

/* Recounts from the pods' list and asserts that every figure agrees. */
void node_check(const struct node *n);
