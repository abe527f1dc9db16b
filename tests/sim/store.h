/*
 * What the simulated API server holds: objects with resourceVersions, and the history for its
 * watches. A deleted pod keeps its slot, so that the oracle can look at it.
 */
#pragma once

#include "core/cache.h"
#include "sim.h"

enum {
    MAX_NODES = 6,
    MAX_PODS = 96, /* per world; a slot is a UID and is never used again */
    MAX_CONTAINERS = 6,
    MAX_CARDS = 8, /* a card's index is less than this */
    MAX_GRANTS = 20,
    MAX_REPLICAS = 3,
    LIMITED_KINDS = 3, /* of quotas: memory, cards, compute */
};

enum phase {
    PHASE_PENDING,
    PHASE_RUNNING,
    PHASE_SUCCEEDED,
    PHASE_FAILED,
};

struct container_object {
    enum container_kind kind;
    bool named; /* names gpu-mem, maybe with 0 */
    int64_t mem;
    int64_t cores;     /* 0: not named */
    int64_t exclusive; /* 0: not named */
};

/* An allocation, {"CONTAINER": {"CARD": AMOUNT}}. Containers have their index in spec.containers;
 * those of spec.initContainers continue the count. */
struct grants_object {
    bool there;
    bool garbled; /* can't be read */
    unsigned n;

    struct {
        uint8_t container;
        uint8_t card;
        int32_t amount;
    } at[MAX_GRANTS];
};

/* An empty name means that the field or annotation is absent. */
struct pod_object {
    uint64_t rv;
    bool exists;
    bool deleting;
    bool gated;
    bool initialized; /* the pod's condition Initialized */
    enum phase phase;
    struct name ns;
    struct name name;
    struct name uid;
    struct name node;
    struct name nominated;
    int priority;
    unsigned n_mains;
    unsigned n_containers; /* init containers and sidecars first, in their order */
    struct container_object containers[MAX_CONTAINERS];
    unsigned count;   /* label gpu-count; 0: absent */
    unsigned percent; /* 0: absent */
    bool whole;
    unsigned model; /* index of the models it selects, see wishes.h; 0: any */
    int uuid;       /* K: only a card whose UUID ends in K-1; -K: not that card; 0: any */
    struct name affinity;
    struct name anti_affinity;
    struct name policy;
    struct name idx;
    struct name dev;
    struct name mem;
    struct name assigned;
    struct name assume;
    struct grants_object allocation;
    bool was_allocated; /* has or had an allocation that no Binding wrote */
    struct name note;
};

/* A row of a node's table of cards. */
struct card_object {
    uint8_t index;
    bool ill;
    bool uuid;    /* the row has one */
    int8_t model; /* 0: none in the row */
    int8_t numa;  /* -1: none in the row */
    int64_t mem;
};

struct node_object {
    uint64_t rv;
    bool exists;
    struct name name;
    int64_t mem;         /* -1: absent */
    int64_t count;       /* -1: absent */
    int64_t allocatable; /* -1: absent */
    int64_t exclusive;   /* of nvidia.com/gpu; -1: absent */
    bool has_table;
    bool bad_table; /* cannot be read */
    unsigned n_table;
    struct card_object table[MAX_CARDS];
    int8_t model; /* a label with the model of all cards; 0: absent */
    struct name cordoned;
    struct name aside; /* the annotation exclusive-cards */
    struct name max_pods;
    struct name placement;
};

/* Limits of a namespace. */
struct limits_object {
    bool there;
    int64_t most[LIMITED_KINDS]; /* -1: absent */
};

/* A ConfigMap: of a node's unhealthy cards, or of quotas. */
struct health_object {
    uint64_t rv;
    bool exists;
    struct name name;
    struct name gpus;
    struct limits_object limits[3]; /* of ns-0, ns-1 and "*" */
    bool garbled;                   /* the quotas cannot be read */
};

union object {
    struct pod_object pod;
    struct node_object node;
    struct health_object health;
};

/* One write, as a watch sees it. */
struct change {
    uint64_t rv;
    uint64_t at_ms;
    enum cache_kind kind;
    unsigned slot;
    bool existed; /* before */
    bool exists;
    union object old;
    union object new;
};

struct store {
    uint64_t rv;
    uint64_t oldest_rv; /* watches from older versions get 410 */
    struct pod_object pods[MAX_PODS];
    uint64_t placed_rv[MAX_PODS]; /* last change of the node, the cards or whether it holds */
    uint64_t begun_rv[MAX_PODS];  /* when the init containers last started again */
    unsigned n_pods;
    struct node_object nodes[MAX_NODES];
    struct health_object healths[MAX_NODES + 2]; /* after the nodes': one of another program, then
                                                  * the quotas' */
    unsigned n_nodes;
};

extern struct store store;

void store_reset(void);

/* Each call is one transaction: a new resourceVersion, an entry in the history, and events for the
 * watches. */
void store_put_pod(unsigned slot, const struct pod_object *p);
void store_put_node(unsigned slot, const struct node_object *n);
void store_put_health(unsigned slot, const struct health_object *h);

/* The object in a watch cache that is lag_ms behind; false: not there. */
bool history_object(enum cache_kind kind, unsigned slot, uint64_t lag_ms, union object *ret);

uint64_t history_version(uint64_t lag_ms); /* the version of that cache */

size_t history_size(void);
const struct change *history_at(size_t i);

/* The slot of the pod that has this name now, or MAX_PODS. */
unsigned store_find_pod(struct str ns, struct str name);
unsigned store_find_uid(struct str uid);   /* also of a deleted pod */
unsigned store_find_node(struct str name); /* MAX_NODES: no such node, not even a deleted one */

static inline bool pod_object_terminal(const struct pod_object *p)
{
    return p->phase == PHASE_SUCCEEDED || p->phase == PHASE_FAILED;
}

/* Whether the pod holds its part of a node. */
static inline bool pod_object_holds(const struct pod_object *p)
{
    return p->exists && p->node.z[0] != '\0' && !pod_object_terminal(p);
}

bool health_object_ill(const struct health_object *h, int64_t card);

/* Writes an object's JSON; `bare`: as an item of a list, without kind and apiVersion. */
void render_object(struct text *t, enum cache_kind kind, const union object *o, bool bare);
