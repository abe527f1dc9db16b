/* What the decoders read from a Pod and a Node, as views into the original bytes: valid only during
 * the call that they are passed to. The decoders fill them; the cache copies what it keeps. */
#pragma once

#include "base/str.h"
#include "core/dialect/dialect.h"
#include "core/request/host.h"

enum container_kind {
    CONTAINER_MAIN,
    CONTAINER_INIT,
    CONTAINER_SIDECAR, /* an init container with restartPolicy Always */
};

/* The amounts of one dialect; see struct dialect_facts. */
struct amounts_view {
    struct str mem;
    struct str cores;
    struct str count; /* this and percent: only of dialects with UUIDs */
    struct str percent;
};

/* Only containers that name one of the resources, in the pod's order, init containers first.
 * Quantities: limits, or requests if limits do not name the resource; absent if neither does. */
struct container_view {
    struct str name;

    union {
        struct {
            struct str mem;   /* GPUSHARE_RESOURCE_MEM */
            struct str cores; /* GPUSHARE_RESOURCE_CORES */
        };
        struct amounts_view of[DIALECT_COUNT]; /* the first is gpushare's */
    };
    struct str exclusive; /* GPUSHARE_RESOURCE_EXCLUSIVE */
    uint32_t renamed;     /* the sum of what it has of core/dialect/card_resources.h */
    uint32_t index;       /* in spec.containers or in spec.initContainers */
    enum container_kind kind;
};

/* What a container requests of one DeviceClass, by the class's implicit resource name
 * DRA_CLASS_PREFIX and its name. As for CPU, the scheduler counts the request; the API server sets
 * it from the limit if there is none. */
struct class_request_view {
    struct str class;
    struct str amount;
    enum container_kind kind;
    bool requested; /* the amount is of requests, else of limits */
};

/* One entry of the allocation annotation: a container's part of a card. */
struct grant_view {
    uint32_t container; /* in spec.containers; n_mains is added for spec.initContainers */
    uint32_t card;
    int64_t mem;
};

/* An annotation with the cards of one container, of a dialect that has one for each. */
struct seat_view {
    enum dialect dialect;
    struct str container; /* its name, or its index in spec.containers */
    struct str cards;     /* "1", or "0,2" */
};

/* What a pod's annotations of one dialect say, absent if the pod has none. */
struct said_view {
    struct str idx;
    struct str assigned;
    struct str assume_time;
};

static inline bool amounts_view_any(const struct amounts_view *v)
{
    return v->mem.p != NULL || v->cores.p != NULL || v->count.p != NULL || v->percent.p != NULL;
}

struct label_view {
    struct str key;
    struct str value;
};

/* A condition of a pod's status. */
struct condition_view {
    struct str status; /* "True", "False" or "Unknown"; absent: the pod has no such condition */
    struct str reason; /* "Unschedulable"; absent: none */
    struct str message;
    uint32_t since_s; /* lastTransitionTime, Unix time; 0: absent */
};

/* Bits: which of the pod's requests for NVIDIA's cards a ResourceClaim serves, and not NVIDIA's
 * plugin. */
#define CLAIMS_CARDS   1U /* GPUSHARE_RESOURCE_EXCLUSIVE */
#define CLAIMS_RENAMED 2U /* a resource of core/dialect/card_resources.h */
#define CLAIMS_KNOWN   4U /* only in struct request: the pod is bound and gets no further claim */

/* Annotations that the pod has, readable or not, and that no Binding writes for a plain pod. On a
 * pod that is not bound they are from another one: the Binding replaces them. */
struct former {
    bool allocation; /* GPUSHARE_ANNOTATION_ALLOCATION */
    bool cores;      /* GPUSHARE_ANNOTATION_CORES */
    bool vacated;    /* CARDPACK_ANNOTATION_VACATED, not empty */
};

struct pod_view {
    struct str uid;
    struct str namespace;
    struct str name;
    struct str fault;     /* why the object can't be read: the rest is incomplete; absent: it can */
    struct str node;      /* spec.nodeName; absent or empty: not bound */
    struct str phase;     /* status.phase */
    struct str nominated; /* status.nominatedNodeName: a scheduler has evicted pods for it there */
    struct str mem_overhead; /* spec.overhead of GPUSHARE_RESOURCE_MEM; nearly always absent */
    struct host host;        /* the effective request of CPU and memory, see objects/kube.h */
    uint64_t version;        /* metadata.resourceVersion; 0: absent, or not a number */
    uint32_t created_s;      /* metadata.creationTimestamp, Unix time; 0: absent */
    int32_t priority;        /* spec.priority; 0: absent */
    bool never_preempts;     /* spec.preemptionPolicy is Never */
    bool deleting;           /* metadata.deletionTimestamp is set */
    bool initialized;        /* condition Initialized: the init containers are done */
    bool ready;              /* condition Ready */
    bool admitted;           /* status.startTime: the kubelet has asked for all its devices */
    unsigned claims;         /* CLAIMS_...: status.extendedResourceClaimStatus */
    struct condition_view scheduled; /* PodScheduled: what the scheduler says of the pod */

    union {
        struct {
            struct str idx; /* GPUSHARE_ANNOTATION_...; absent if the pod has none */
            struct str assigned;
            struct str assume_time;
        };
        struct said_view said[DIALECT_COUNT]; /* the first is gpushare's */
    };
    const struct seat_view *seats;
    size_t n_seats;
    struct str count_label; /* GPUSHARE_LABEL_COUNT */
    struct str whole_label; /* GPUSHARE_LABEL_PLACEMENT of a pod */
    struct str percent;     /* CARDPACK_ANNOTATION_...; absent if the pod has none */
    struct str card_model;
    struct str card_uuid;
    struct str affinity;
    struct str anti_affinity;
    struct str policy;
    struct str node_policy;
    struct str card_policy;
    struct str require_isolation;
    struct str vacated;
    struct str
        unknown; /* the first annotation of prefix cardpack.io/ with another name; absent: none */
    struct former former;
    size_t annotation_bytes; /* of all annotations, keys and values, as the API server counts them
                              */
    bool has_allocation;     /* GPUSHARE_ANNOTATION_ALLOCATION is there and can be read */
    const struct grant_view *grants;
    size_t n_grants;
    const struct label_view *labels;
    size_t n_labels;
    const struct container_view *containers;
    size_t n_containers;
    const struct class_request_view *classes; /* in the order of the containers, init ones first */
    size_t n_classes;
    uint32_t n_mains; /* number of spec.containers, with a request or without */
    uint32_t n_inits; /* the same of spec.initContainers */
};

/* The container of this index, as in demand.index: the init containers come after the others. NULL:
 * it names none of the resources, or there is none. */
static inline const struct container_view *pod_view_container(const struct pod_view *v,
                                                              uint32_t index)
{
    for (size_t i = 0; i < v->n_containers; i++) {
        const struct container_view *c = &v->containers[i];
        if (c->index + (c->kind == CONTAINER_MAIN ? 0 : v->n_mains) == index)
            return c;
    }
    return NULL;
}

static inline bool pod_view_bound(const struct pod_view *v)
{
    return v->node.n > 0;
}

/* Terminal: its cards are released. A deletionTimestamp alone releases nothing. */
static inline bool pod_view_terminal(const struct pod_view *v)
{
    return str_eq(v->phase, STR("Succeeded")) || str_eq(v->phase, STR("Failed"));
}

/* Whether the device plugin may take this running pod for a pod that waits: Volcano's vGPU plugin
 * does not look at the phase. A running pod still looks as if it waits if the plugin gave it
 * another pod's cards. The plugin also takes such a pod after it has ended, when no list shows it
 * any more; but a later Binding has an earlier time and so is served first: see kube_write.c. */
static inline bool pod_view_lingers(const struct pod_view *v, enum dialect d)
{
    return dialect_facts(d)->lingers && pod_view_bound(v) &&
           str_eq(v->said[d].assigned, dialect_waits(d));
}

/* Whether the device plugin may still be asked for the bound pod. The kubelet asks for all
 * containers before it admits the pod. HAMi's plugin serves the pod that the lock names, and
 * nothing in the annotations of an admitted pod makes it serve that pod again. Other plugins look
 * at the pod later, too, or go by the annotations. */
static inline bool pod_view_starts(const struct pod_view *v, enum dialect d)
{
    bool done = v->admitted && dialect_facts(d)->lock_owner;
    return (str_eq(v->phase, STR("Pending")) && !done) || pod_view_lingers(v, d);
}

/* One row of the table of a node's cards (CARDPACK_ANNOTATION_CARDS). */
struct card_view {
    uint32_t index;    /* unique in the table; indices may be missing */
    uint32_t max_pods; /* 0: no limit */
    uint8_t withheld;  /* percent of its compute that pods don't get */
    int64_t mem;       /* in the plugin's unit */
    uint64_t pci;      /* dra_pci; 0: unknown */
    int32_t numa;      /* -1: unknown */
    bool unhealthy;
    bool cordoned;
    struct str model;
    struct str uuid;
    struct str profile; /* of a MIG or vGPU slice that counts as a card */
};

/* The lock of a node: dialect_facts.lock. */
struct lock_view {
    struct str text;      /* absent: none */
    struct str namespace; /* of the pod that it names, a part of the text; absent: it names none */
    struct str name;
    uint32_t since_s; /* Unix time; 0: it can't be read */
};

/* What a node's status says in the resources of one dialect; absent: nothing. */
struct capacity_view {
    struct str mem;             /* of capacity */
    struct str count;           /* of capacity: dialect_facts.count, or a hundred times as many */
    struct str mem_allocatable; /* of allocatable */
    struct str count_allocatable;
    struct str cordon; /* dialect_facts.cordon: "GPU-a,GPU-b" */
    struct lock_view lock;
    bool has_cards;          /* this and the rest: dialect_facts.table, as of struct node_view */
    const char *cards_fault; /* a sentence for people, behind the name of the annotation */
    const struct card_view *cards;
    size_t n_cards;
};

struct node_view {
    struct str name;

    union {
        struct {
            struct str mem;             /* status.capacity of GPUSHARE_RESOURCE_MEM; absent: none */
            struct str count;           /* status.capacity of GPUSHARE_RESOURCE_COUNT */
            struct str mem_allocatable; /* status.allocatable of GPUSHARE_RESOURCE_MEM */
        };
        struct capacity_view of[DIALECT_COUNT]; /* the first is gpushare's */
    };
    struct str dialect;                  /* DIALECT_LABEL */
    struct str unhealthy[DIALECT_COUNT]; /* the annotation with the indices of ill cards */
    struct str cpu;                      /* status.allocatable of the host */
    struct str memory;
    struct str exclusive;       /* status.capacity of GPUSHARE_RESOURCE_EXCLUSIVE */
    uint32_t renamed;           /* status.capacity of its other names, their sum */
    bool has_renamed;           /* one of them is there, even if with 0 */
    struct str unknown;         /* status.capacity: what is above 0 and may be its cards by a name
                                   that is not known (card_resources_guess) */
    bool unreadable;            /* only its name is known */
    struct str cordoned;        /* CARDPACK_ANNOTATION_CORDONED: "0,2" */
    struct str exclusive_cards; /* CARDPACK_ANNOTATION_EXCLUSIVE: "0,2" */
    struct str dra_cards;       /* CARDPACK_ANNOTATION_DRA: "0,2" */
    struct str dra;             /* CARDPACK_LABEL_DRA: "true" */
    struct str late;            /* CARDPACK_ANNOTATION_LATE: "true" */
    struct str placement;       /* GPUSHARE_LABEL_NODE_PLACEMENT */
    struct str max_pods;        /* GPUSHARE_LABEL_MAX_PODS */
    struct str model;           /* of all cards, from a label; a model in the table wins */
    struct str pool;            /* CARDPACK_LABEL_POOL */
    struct str isolation;       /* CARDPACK_LABEL_ISOLATION */
    bool has_cards;             /* the table is there */
    const char *cards_fault;    /* why it can't be read, a sentence for people; NULL: readable */
    const struct card_view *cards;
    size_t n_cards;
};
