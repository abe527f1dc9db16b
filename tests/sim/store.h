/*
 * What the simulated API server holds: objects with resourceVersions, and the history that its
 * watches read from. A pod keeps its slot when it is gone, so that the oracle can ask about it.
 */
#pragma once

#include "cache.h"
#include "sim.h"

enum {
    MAX_NODES = 6,
    MAX_PODS = 96, /* in one world; a slot is a UID, and never used again */
    MAX_CONTAINERS = 6,
    MAX_CARDS = 8, /* a card's index is below it */
    MAX_GRANTS = 20,
    MAX_REPLICAS = 3,
};

enum phase {
    PHASE_PENDING,
    PHASE_RUNNING,
    PHASE_SUCCEEDED,
    PHASE_FAILED,
};

struct container_object {
    enum container_kind kind;
    bool named; /* names gpu-mem, be it with 0 */
    int64_t mem;
    int64_t cores;     /* 0: not named */
    int64_t exclusive; /* 0: not named */
};

/* {"CONTAINER": {"CARD": AMOUNT}}; containers by their index in spec.containers, or behind them in
 * spec.initContainers. */
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

/* An empty name stands for a field or an annotation that is absent. */
struct pod_object {
    uint64_t rv;
    bool exists;
    bool deleting;
    bool gated;
    bool initialized; /* as the condition says */
    enum phase phase;
    struct name ns;
    struct name name;
    struct name uid;
    struct name node;
    struct name nominated;
    int priority;
    unsigned n_mains;
    unsigned n_containers; /* init containers and sidecars first, as they run */
    struct container_object containers[MAX_CONTAINERS];
    unsigned count;   /* label gpu-count; 0: there is none */
    unsigned percent; /* 0: there is none */
    bool whole;
    unsigned model; /* which of the models it will have, see wishes.h; 0: any */
    int uuid;       /* K: only the card whose UUID ends in K-1, -K: not that one; 0: any */
    struct name affinity;
    struct name anti_affinity;
    struct name policy;
    struct name idx;
    struct name dev;
    struct name mem;
    struct name assigned;
    struct name assume;
    struct grants_object allocation;
    struct name note;
};

/* A row of a node's table of cards. */
struct card_object {
    uint8_t index;
    bool ill;
    bool uuid;    /* it says one */
    int8_t model; /* 0: it says none */
    int8_t numa;  /* -1: it says none */
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
    bool bad_table; /* it can't be read */
    unsigned n_table;
    struct card_object table[MAX_CARDS];
    int8_t model; /* a label says it of all cards; 0: none does */
    struct name cordoned;
    struct name aside; /* the exclusive-cards */
    struct name max_pods;
    struct name placement;
};

struct health_object {
    uint64_t rv;
    bool exists;
    struct name name;
    struct name gpus;
};

union object {
    struct pod_object pod;
    struct node_object node;
    struct health_object health;
};

/* One write, as a watch sees it. */
struct change {
    uint64_t rv;
    enum cache_kind kind;
    unsigned slot;
    bool existed; /* before */
    bool exists;
    union object old;
    union object new;
};

struct store {
    uint64_t rv;
    uint64_t oldest_rv; /* watches from before are answered 410 */
    struct pod_object pods[MAX_PODS];
    uint64_t placed_rv[MAX_PODS]; /* when its place, or whether it holds it, was last changed */
    uint64_t begun_rv[MAX_PODS];  /* when its init containers were last begun again */
    unsigned n_pods;
    struct node_object nodes[MAX_NODES];
    struct health_object healths[MAX_NODES + 1]; /* the last one is somebody else's ConfigMap */
    unsigned n_nodes;
};

extern struct store store;

void store_reset(void);

/* Each is one transaction: a new resourceVersion, a line of history, and the watches are told. */
void store_put_pod(unsigned slot, const struct pod_object *p);
void store_put_node(unsigned slot, const struct node_object *n);
void store_put_health(unsigned slot, const struct health_object *h);

size_t history_size(void);
const struct change *history_at(size_t i);

/* The slot of the pod that has this name now; or MAX_PODS. */
unsigned store_find_pod(struct str ns, struct str name);
unsigned store_find_uid(struct str uid);   /* whether it exists or not */
unsigned store_find_node(struct str name); /* MAX_NODES: there never was one */

static inline bool pod_object_terminal(const struct pod_object *p)
{
    return p->phase == PHASE_SUCCEEDED || p->phase == PHASE_FAILED;
}

/* Whether its memory counts on a node. */
static inline bool pod_object_holds(const struct pod_object *p)
{
    return p->exists && p->node.z[0] != '\0' && !pod_object_terminal(p);
}

bool health_object_ill(const struct health_object *h, int64_t card);

/* As the API server writes them; `bare`: as an item of a list, without its kind. */
void render_object(struct text *t, enum cache_kind kind, const union object *o, bool bare);
