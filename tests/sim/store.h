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
    MAX_MAINS = 2,
    MAX_REPLICAS = 3,
};

enum phase {
    PHASE_PENDING,
    PHASE_RUNNING,
    PHASE_SUCCEEDED,
    PHASE_FAILED,
};

/* An empty name stands for a field or an annotation that is absent. */
struct pod_object {
    uint64_t rv;
    bool exists;
    bool deleting;
    bool gated;
    enum phase phase;
    struct name ns;
    struct name name;
    struct name uid;
    struct name node;
    unsigned n_mains;
    int64_t mains[MAX_MAINS];
    int64_t init;    /* 0: there is none */
    int64_t sidecar; /* 0: there is none */
    bool sidecar_first;
    bool bare; /* does not name the resource at all */
    struct name idx;
    struct name dev;
    struct name mem;
    struct name assigned;
    struct name assume;
    struct name note;
};

struct node_object {
    uint64_t rv;
    bool exists;
    struct name name;
    int64_t mem;         /* -1: absent */
    int64_t count;       /* -1: absent */
    int64_t allocatable; /* -1: absent */
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

/* What a pod asks for, by the formula of component-helpers. */
int64_t pod_object_mem(const struct pod_object *p);

static inline bool pod_object_terminal(const struct pod_object *p)
{
    return p->phase == PHASE_SUCCEEDED || p->phase == PHASE_FAILED;
}

/* Whether its memory counts on a node. */
static inline bool pod_object_holds(const struct pod_object *p)
{
    return p->exists && p->node.z[0] != '\0' && !pod_object_terminal(p);
}

/* The card that it names; -1: none. */
int64_t pod_object_card(const struct pod_object *p);

/* Cards and their size as a node has them; 0 where it is not usable. */
int64_t node_object_cards(const struct node_object *n);
int64_t node_object_card_size(const struct node_object *n);
int64_t node_object_limit(const struct node_object *n);

bool health_object_ill(const struct health_object *h, int64_t card);

/* As the API server writes them; `bare`: as an item of a list, without its kind. */
void render_object(struct text *t, enum cache_kind kind, const union object *o, bool bare);
