/*
 * What a double of the API server holds: objects with resourceVersions, and the history for its
 * watches. A deleted object keeps its slot, so that a test can look at it.
 */
#pragma once

#include "api/request.h"

enum {
    MAX_NODES = 100,
    MAX_PODS = 96,
    MAX_HEALTHS = 8,
    MAX_BUDGETS = 4,
    MAX_SLICES = 8,
    MAX_CLAIMS = 24,
    MAX_RESULTS = 2, /* devices of a claim */
    MAX_CLASSES = 2,
    MAX_OBJECTS = MAX_NODES, /* the most of one kind */
    MAX_CONTAINERS = 6,
    MAX_CARDS = 8, /* a card's index is less than this */
    MAX_GRANTS = 20,
    LIMITED_KINDS = 3, /* of quotas: memory, cards, compute */
    POOLS = 3,         /* none, gold, silver */
    MODELS = 3,        /* none, A10, T4 */
    PATTERNS = 5,      /* of models, in quotas */
    ISOLATIONS = 6,    /* values of a node's label */
    SCOPES = 1 + POOLS + PATTERNS,
    NUMA_NODES = 2,
};

/* Device plugins, whose nodes and pods have other names of resources and annotations: plugins.h. */
enum plugin {
    PLUGIN_GPUSHARE,
    PLUGIN_VOLCANO,
    PLUGIN_ELASTIC,
    PLUGIN_TENCENT,
    PLUGIN_HAMI,
    PLUGIN_VGPU, /* Volcano's vGPU plugin */
    PLUGINS
};

enum object_phase {
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
    int64_t cpu;       /* of the host, as a limit alone; in thousandths; 0: 100 */
    int64_t memory;    /* of the host, as a request alone; 0: not named */
};

/* An allocation, {"CONTAINER": {"CARD": AMOUNT}}. Containers have their index in spec.containers;
 * those of spec.initContainers continue the count. Other plugins than gpushare's have other
 * annotations for it: see plugins.h. */
struct grants_object {
    bool there;
    bool garbled; /* can't be read */
    unsigned n;

    struct {
        uint8_t container;
        uint8_t card;
        uint8_t cores; /* only of a list of HAMi's family */
        int32_t amount;
    } at[MAX_GRANTS];
};

/* An empty name means that the field or annotation is absent. */
struct pod_object {
    uint64_t rv;
    bool exists;
    bool deleting;
    bool gated;
    bool initialized;   /* the pod's condition Initialized */
    enum plugin plugin; /* whose resources it names */
    enum object_phase phase;
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
    bool beside;    /* of gpu-manager: it names memory beside whole cards */
    bool claimed;   /* a claim serves its exclusive cards, by its status */
    bool renamed;   /* its exclusive cards have other names than nvidia.com/gpu */
    unsigned model; /* index of the models it selects, see selections in render.c */
    bool isolated;  /* the annotation require-isolation is true */
    int uuid;       /* K: only a card whose UUID ends in K-1; -K: not that card; 0: any */
    struct name affinity;
    struct name anti_affinity;
    struct name policy; /* of nodes and of cards; the next two have precedence */
    struct name node_policy;
    struct name card_policy;
    struct name idx;
    struct name dev;
    struct name mem;
    struct name assigned;
    struct name assume;
    struct name on; /* annotation of the node, of HAMi's family or gpu-manager's */
    struct grants_object allocation;
    bool was_allocated; /* has or had an allocation that no Binding wrote */
    struct name note;
    struct name app; /* a label */
};

/* A row of a node's table of cards. */
struct card_object {
    uint8_t index;
    bool ill;
    bool uuid;     /* the row has one */
    int8_t model;  /* 0: none in the row */
    int8_t numa;   /* -1: none in the row */
    uint8_t pci;   /* the number in its PCI address; 0: none in the row */
    uint8_t count; /* of the table of HAMi's family: into how many parts the card is divided */
    int64_t mem;
};

/* HAMi's annotation hami.io/mutex.lock: "TIME,NAMESPACE,NAME"; hamivgpu of Volcano's vGPU plugin:
 * "TIME". */
struct lock_object {
    char z[80]; /* empty: absent */
};

struct node_object {
    uint64_t rv;
    bool exists;
    struct name name;
    enum plugin plugin;  /* with which names it reports the next three */
    int64_t mem;         /* -1: absent */
    int64_t count;       /* -1: absent */
    int64_t allocatable; /* -1: absent */
    int64_t exclusive;   /* of nvidia.com/gpu, and then 0 of its other names; -1: absent */
    unsigned left;  /* a bit for each plugin that was here: the kubelet keeps its names, with 0 */
    int64_t memory; /* allocatable of the host; 0: absent */
    bool has_table;
    bool bad_table; /* cannot be read */
    unsigned n_table;
    struct card_object table[MAX_CARDS];
    int8_t model;      /* a label with the model of all cards; 0: absent */
    uint8_t pool;      /* a label; 0: absent */
    uint8_t isolation; /* a label: see isolation_text; 0: absent */
    struct name cordoned;
    struct name aside; /* the annotation exclusive-cards */
    struct name max_pods;
    struct name placement;
    struct lock_object lock;
    struct lock_object vgpu_lock;
    struct name ill;   /* cards that Volcano's plugin calls ill */
    struct name given; /* the annotation dra-cards */
    bool given_all;    /* the label that gives all cards to DRA */
};

/* Indices of limits_object.of. */
enum {
    SCOPE_TOTAL,
    SCOPE_POOLS,
    SCOPE_PATTERNS = SCOPE_POOLS + POOLS,
};

/* Limits of a namespace: on the totals, then for each pool, then for each pattern of models. */
struct limits_object {
    bool there;
    uint8_t pools;    /* a bit for each allowed pool; 0: the field is absent */
    uint8_t patterns; /* the same for patterns of the allowed models */

    struct {
        bool there;
        int64_t most[LIMITED_KINDS]; /* -1: absent */
    } of[SCOPES];
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

/* A PodDisruptionBudget for the pods with the label "app" of its name. */
struct budget_object {
    uint64_t rv;
    bool exists;
    struct name name;
    unsigned allowed;
};

/* A device of a ResourceSlice: a GPU, or for `mig` a part of it. Its name is made from the highest
 * index less the card's, as a driver's minor number need not be the index. */
struct device_object {
    uint8_t card;   /* the index of its GPU in the node's device plugin */
    uint8_t memory; /* capacity in GiB; 0: none */
    uint8_t pci;    /* 0: none */
    bool uuid;      /* it has one; of a part, and its GPU's too */
    bool mig;
};

/* A ResourceSlice. The pool has the name of the node. */
struct slice_object {
    uint64_t rv;
    bool exists;
    struct name name;
    struct name node;
    unsigned generation;
    unsigned n_devices;
    struct device_object devices[MAX_CARDS];
};

/* A device that a claim has got. */
struct result_object {
    struct name node; /* its pool */
    uint8_t card;     /* by which the device is named */
    bool mig;
    bool admin;
    bool shared;    /* it has a shareID */
    uint8_t memory; /* consumed, in GiB; 0: it does not say */
};

/* A ResourceClaim. */
struct claim_object {
    uint64_t rv;
    bool exists;
    struct name ns;
    struct name name;
    struct name uid;
    unsigned n_results; /* 0: not allocated */
    struct result_object results[MAX_RESULTS];
};

/* A DeviceClass. */
struct class_object {
    uint64_t rv;
    bool exists;
    struct name name;
    bool serves; /* its extendedResourceName is nvidia.com/gpu; else another, or absent */
};

/* The first members of every object. */
struct any_object {
    uint64_t rv;
    bool exists;
};

union object {
    struct any_object any;
    struct pod_object pod;
    struct node_object node;
    struct health_object health;
    struct budget_object budget;
    struct slice_object slice;
    struct claim_object claim;
    struct class_object class;
};

/* One write, as a watch sees it. */
struct change {
    uint64_t rv;
    uint64_t at_ms;
    unsigned kind; /* enum cache_kind, or API_BUDGETS */
    unsigned slot;
    union object old;
    union object new;
};

struct store {
    uint64_t rv;
    uint64_t oldest_rv; /* watches from older versions get 410 */
    struct pod_object pods[MAX_PODS];
    struct node_object nodes[MAX_NODES];
    struct health_object healths[MAX_HEALTHS];
    struct budget_object budgets[MAX_BUDGETS];
    struct slice_object slices[MAX_SLICES];
    struct claim_object claims[MAX_CLAIMS];
    struct class_object classes[MAX_CLASSES];
    unsigned n_pods; /* slots in use */
    unsigned n_nodes;
    bool serves_dra;            /* resource.k8s.io/v1, as API servers from 1.34 on */
    bool ignores_preconditions; /* UID and resourceVersion of Bindings, as before 1.27 */
    uint64_t (*now_ms)(void);   /* NULL: it is always 0 */
    void (*changed)(const struct change *c); /* called after a write; may be NULL */
};

extern struct store store;

void store_reset(void);

/* Each call is one transaction: a new resourceVersion, and an entry in the history. */
void store_put(unsigned kind, unsigned slot, const union object *o);

#define store_put_pod(slot, p)  store_put(CACHE_PODS, slot, &(const union object){.pod = *(p)})
#define store_put_node(slot, n) store_put(CACHE_NODES, slot, &(const union object){.node = *(n)})
#define store_put_health(slot, h) \
    store_put(CACHE_HEALTH, slot, &(const union object){.health = *(h)})
#define store_put_budget(slot, b) \
    store_put(API_BUDGETS, slot, &(const union object){.budget = *(b)})
#define store_put_slice(slot, s) store_put(CACHE_SLICES, slot, &(const union object){.slice = *(s)})
#define store_put_claim(slot, c) store_put(CACHE_CLAIMS, slot, &(const union object){.claim = *(c)})
#define store_put_class(slot, c) \
    store_put(CACHE_CLASSES, slot, &(const union object){.class = *(c)})

/* The object in a watch cache that is lag_ms behind; false: not there. */
bool history_object(unsigned kind, unsigned slot, uint64_t lag_ms, union object *ret);

uint64_t history_version(uint64_t lag_ms); /* the version of that cache */

size_t history_size(void);
const struct change *history_at(size_t i);
size_t history_after(uint64_t version); /* the index of the first later change */

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

/* Whether it holds its part of this node. */
static inline bool pod_object_holds_on(const struct pod_object *p, const struct node_object *n)
{
    return pod_object_holds(p) && strcmp(p->node.z, n->name.z) == 0;
}

static inline bool lock_object_set(const struct lock_object *l)
{
    return l->z[0] != '\0';
}

/* Whether it can't be true: cardpack does not obey it. */
static inline bool lock_object_odd(const struct lock_object *l)
{
    return lock_object_set(l) && (strncmp(l->z, "20", 2) != 0 || strncmp(l->z, "2100", 4) == 0);
}

static inline bool lock_object_same(const struct lock_object *a, const struct lock_object *b)
{
    return strcmp(a->z, b->z) == 0;
}

const char *model_text(int8_t model);
const char *pool_text(uint8_t pool);
const char *isolation_text(uint8_t isolation);
const char *quota_scope_text(unsigned scope); /* the pool, or the pattern of models */

/* Writes an allocation as a JSON string that holds JSON. */
void render_grants(struct text *t, const struct grants_object *g);

/* From the metadata on; for render_object. */
void render_slice(struct text *t, const struct slice_object *s);
void render_claim(struct text *t, const struct claim_object *c);
void render_class(struct text *t, const struct class_object *c);

/* Writes an object's JSON; `bare`: as an item of a list, without kind and apiVersion. */
void render_object(struct text *t, unsigned kind, const union object *o, bool bare);
