/*
 * What one pod asks for: the effective request that the kubelet and the scheduler agree on
 * (k8s.io/component-helpers/resource: sidecars add up, init containers run one at a time), and
 * which cards its labels and annotations will have.
 */
#pragma once

#include "err.h"
#include "pack.h"
#include "pool.h"
#include "quota.h"
#include "view.h"

/*
 * A request beyond this is larger than any card, whatever the unit (an EiB in MiB). Charges of
 * bound pods are cut to it, so that no sum on a node can overflow.
 */
#define REQUEST_MEM_MAX ((int64_t)1 << 40)

/* Of one card's compute: all of it. */
#define REQUEST_CORES_MAX 100

/* Containers that ask for something, cards of one pod, and the product of both. */
#define REQUEST_DEMANDS_MAX 16
#define REQUEST_CARDS_MAX   64
#define REQUEST_GRANTS_MAX  256

/* The name of an affinity group, as long as a label's key may be. */
#define REQUEST_GROUP_MAX 253

struct pod;
struct uses_memo;

/* What one container asks for, over all its cards. */
struct demand {
    int64_t mem;
    uint16_t cores;
    uint16_t index; /* in spec.containers, or behind them in spec.initContainers */
    enum container_kind kind;
};

struct request {
    int64_t mem;         /* of all containers, at their peak: what the kubelet counts */
    int64_t lasting_mem; /* the same once the init containers are done */
    uint32_t cores;      /* as mem, percent of a card */
    uint32_t lasting_cores;
    uint32_t cards; /* distinct cards, an equal part on each; 0 is 1 */
    uint32_t
        exclusive;    /* whole cards that another plugin gives out (GPUSHARE_RESOURCE_EXCLUSIVE) */
    uint32_t percent; /* of each card's memory, where that is more; 0: none */
    bool whole;       /* empty cards, and nobody beside it */
    enum pack node_policy;
    enum pack card_policy;
    int32_t priority;
    bool never_preempts;
    struct str namespace; /* these are views; absent: no wish */
    struct str models;
    struct str uuids;
    struct str affinity;
    struct str anti_affinity;
    const struct pod *self; /* whose claim is no hindrance; set by cache_resolve, as these */
    bool affinity_held;     /* pods of its affinity group hold a card somewhere */
    bool simple;            /* node.simple tells whether it fits */
    enum pack fallback;     /* the configuration's, for policy_fit to choose as policy_place will */
    struct quota_account account; /* its namespace's; without an entry: no limits */
    struct uses_memo *memo;       /* what the account has answered; NULL: it is asked each time */
    uint32_t n_demands;
    struct demand demands[REQUEST_DEMANDS_MAX]; /* in a copy: only n_demands */
};

/*
 * ERR_SYNTAX or ERR_RANGE with the object, the field and the value in reterr: "container \"c0\":
 * aliyun.com/gpu-mem: \"1.5\" is not a whole number", "label aliyun.com/gpu-count: \"3\" does not
 * divide 8 of container \"c0\"". *ret is then what a pod that is bound all the same is charged: the
 * containers that can be read, rounded up, and at most REQUEST_MEM_MAX.
 */
enum errc request_read(const struct pod_view *pod, struct request *ret, struct err *reterr)
    _must_use_;

/* Whether it asks for anything at all. */
static inline bool request_wants(const struct request *r)
{
    return r->mem > 0 || r->percent > 0 || r->whole || r->exclusive > 0;
}

/* Whether it asks for shared cards: what we place. */
static inline bool request_shares(const struct request *r)
{
    return r->mem > 0 || r->percent > 0 || r->whole;
}

/* Whether it takes the same of a card whichever it is; whole, or by percentage, it does not. */
static inline bool request_fixed(const struct request *r)
{
    return !r->whole && r->percent == 0;
}

static inline uint32_t request_cards(const struct request *r)
{
    return r->cards == 0 ? 1 : r->cards;
}

/* How many of its demands go on for as long as the pod does. */
uint32_t request_lasting(const struct request *r);

/* Whether the containers may have different cards: they are several, and nothing binds them. */
bool request_may_part(const struct request *r);

/* Memory of one card and nothing else: what gpushare knows, and what most pods are. */
bool request_plain(const struct request *r);

/* The same, and no wish as to which card. */
bool request_simple(const struct request *r);

bool request_equal(const struct request *a, const struct request *b);

/* *to is from, whose strings it views, though from may be one of those copies. */
void request_load(struct request *to, const struct request *from);

/* A copy with its strings, as small as can be; never assign *copy: see request_load. NULL without
 * memory; mem_free frees it. */
struct request *request_copy(const struct request *r);

/* The same copy for all who ask alike, as replicas do: never changed. NULL without memory. */
struct request *request_take(struct pool *pool, const struct request *r);

/* Accepts NULL. */
void request_give(struct pool *pool, struct request *copy);

/* Asserts that it is the pool's, and that no other there is equal. */
void request_check(const struct pool *pool, const struct request *copy);
