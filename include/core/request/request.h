/* What one pod asks for: the effective request as the kubelet and kube-scheduler compute it
 * (k8s.io/component-helpers/resource: sidecars add up, init containers run one at a time), and the
 * cards that its labels and annotations allow. It never changes after it was read; what an
 * evaluation of it carries is in core/request/evaluation.h. */
#pragma once

#include "base/err.h"
#include "base/intern.h"
#include "core/request/host.h"
#include "core/request/object_views.h"
#include "core/request/policy.h"

/* A larger request exceeds any card, in either unit (2^40 MiB are an EiB). Charges of bound pods
 * are cut to it, so that no sum on a node can overflow. */
#define REQUEST_MEM_MAX ((int64_t)1 << 40)

/* All compute of one card, in percent. */
#define REQUEST_CORES_MAX 100

/* Containers that ask for cards, cards of one pod, and the product of both. */
#define REQUEST_DEMANDS_MAX 16
#define REQUEST_CARDS_MAX   64
#define REQUEST_GRANTS_MAX  256

/* Longest name of an affinity group, in bytes: as long as a label's key may be. */
#define REQUEST_GROUP_MAX 253

/* What one container asks for, all its cards together. */
struct demand {
    int64_t mem;
    uint16_t cores;
    uint16_t index; /* in spec.containers; for spec.initContainers plus the number of containers */
    enum container_kind kind;
    uint32_t cards;   /* distinct cards; only where it has cards of its own, else 0 */
    uint32_t percent; /* likewise: of each card's memory, if that is more than its part of mem */
};

struct request {
    int64_t mem;         /* all containers at their peak: what the kubelet counts */
    int64_t lasting_mem; /* the same when the init containers are done */
    uint32_t cores;      /* like mem; percent of a card */
    uint32_t lasting_cores;
    uint32_t cards; /* distinct cards, an equal part on each; 0 counts as 1. Where each container
                       has its own: their sum */
    uint32_t exclusive; /* GPUSHARE_RESOURCE_EXCLUSIVE: whole cards of another device plugin */
    uint32_t renamed;   /* part of `exclusive`: by other names, see core/dialect/card_resources.h */
    unsigned claims;    /* CLAIMS_...: what a ResourceClaim serves of it */
    uint32_t percent;   /* of each card's memory, if that is more than mem; 0: none */
    bool whole;         /* it needs empty cards, and no other pod may share them. Where each
                           container has its own cards: one of them does, see demand_is_whole */
    bool isolated;      /* it needs a node that enforces the shares of cards */
    enum dialect dialect; /* of the resources that it names; its memory is in that unit */
    enum policy node_policy;
    enum policy card_policy;
    int32_t priority;
    bool never_preempts;
    struct host host;     /* CPU and memory of the whole pod; see host_clamp */
    struct str namespace; /* this and the next four are views; absent: no wish */
    struct str models;
    struct str uuids;
    struct str affinity;
    struct str anti_affinity;
    const struct class_request_view *classes; /* views of the pod's; a copy has none, because of a
                                                 bound pod the claims say what it has */
    uint32_t n_classes;
    uint32_t n_demands;
    struct demand demands[REQUEST_DEMANDS_MAX]; /* a copy contains only n_demands of them */
};

/*
 * ERR_SYNTAX or ERR_RANGE with the object, the field and the value in reterr: "container \"c0\":
 * aliyun.com/gpu-mem: \"1.5\" is not a whole number", "label aliyun.com/gpu-count: \"3\" does not
 * divide 8 of container \"c0\"". On an error *ret is the charge of a pod that is bound anyway: the
 * readable containers, rounded up, at most REQUEST_MEM_MAX.
 */
enum errc request_read(const struct pod_view *pod, struct request *ret, struct err *reterr)
    _must_use_;

/* Whether it asks for any card. */
static inline bool request_wants(const struct request *r)
{
    return r->mem > 0 || r->percent > 0 || r->whole || r->exclusive > 0;
}

/* Whether it asks for shared cards, which we place. */
static inline bool request_shares(const struct request *r)
{
    return r->mem > 0 || r->percent > 0 || r->whole;
}

/* Whether its charge is the same on every card. False for a whole card and for a percentage. */
static inline bool request_fixed(const struct request *r)
{
    return !r->whole && r->percent == 0;
}

static inline uint32_t request_cards(const struct request *r)
{
    return r->cards == 0 ? 1 : r->cards;
}

/* Whether each container has cards of its own, and amounts of its own of each: several containers
 * of HAMi's family. Containers may have the same card. */
static inline bool request_by_container(const struct request *r)
{
    return r->n_demands > 1 && dialect_has_uuids(r->dialect);
}

/* Whether a container with cards of its own needs empty ones, which no other container gets. */
static inline bool demand_is_whole(const struct demand *d)
{
    return d->cards > 0 && d->cores >= REQUEST_CORES_MAX * d->cards;
}

/* *to: a request for one container of r alone. It views the strings of r. */
void request_part(struct request *to, const struct request *r, uint32_t demand);

/* How many of its demands last as long as the pod: all but init containers. */
uint32_t request_lasting(const struct request *r);

/* Whether the containers may have different cards: there are several, and no rule keeps them
 * together. */
bool request_may_part(const struct request *r);

/* Asks for memory of one card and nothing else: what gpushare supports, and what most pods ask
 * for. */
bool request_plain(const struct request *r);

/* The same, without any wish for certain cards. */
bool request_simple(const struct request *r);

bool request_equal(const struct request *a, const struct request *b);

/* Whether both ask for the same of cards: they may differ in CPU and memory. */
bool request_alike(const struct request *a, const struct request *b);

/* A hash of all that request_equal compares. */
uint64_t request_hash(struct map_seed seed, const struct request *r);

/* Loads *from into *to. *to views the strings of *from. *from may be a short copy from
 * request_copy. */
void request_load(struct request *to, const struct request *from);

/* A copy with its strings, as small as possible. Never assign *copy: see request_load. NULL:
 * allocation failed. mem_free frees it. */
struct request *request_copy(const struct request *r);

/* Returns a shared copy, which never changes: equal requests, as of replicas, get the same one.
 * NULL: allocation failed. */
const struct request *request_take(struct intern_table *table, const struct request *r);

/* Accepts NULL. */
void request_give(struct intern_table *table, const struct request *copy);

/* For tests: asserts that the table has this copy, and no equal one. */
void request_check(const struct intern_table *table, const struct request *copy);
