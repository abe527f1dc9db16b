/*
 * Reads Pods, Nodes and other objects. Each reader follows the schema of its object and skips
 * unused fields. Strings are views; of containers, only those that request GPU memory use room in
 * the arena.
 */
#include "objects/kube.h"

#include "base/near.h"
#include "core/dialect/gpushare.h"
#include "kube_classes.h"
#include "kube_host.h"
#include "kube_names.h"
#include "objects/allocation.h"
#include "objects/cards.h"
#include "objects/limit.h"
#include "objects/lock_text.h"
#include "objects/stamp.h"
#include "objects/vgpu_cards.h"
#include "json/jtoken.h"

/* Annotations and labels whose values are copied unchanged. */
struct wanted {
    struct str key;
    size_t offset; /* of the struct str in the view */
};

static const struct wanted pod_annotations[] = {
    {GPUSHARE_ANNOTATION_IDX, offsetof(struct pod_view, idx)},
    {GPUSHARE_ANNOTATION_ASSIGNED, offsetof(struct pod_view, assigned)},
    {GPUSHARE_ANNOTATION_ASSUME_TIME, offsetof(struct pod_view, assume_time)},
    {CARDPACK_ANNOTATION_PERCENT, offsetof(struct pod_view, percent)},
    {CARDPACK_ANNOTATION_MODEL, offsetof(struct pod_view, card_model)},
    {CARDPACK_ANNOTATION_UUID, offsetof(struct pod_view, card_uuid)},
    {CARDPACK_ANNOTATION_AFFINITY, offsetof(struct pod_view, affinity)},
    {CARDPACK_ANNOTATION_ANTI_AFFINITY, offsetof(struct pod_view, anti_affinity)},
    {CARDPACK_ANNOTATION_POLICY, offsetof(struct pod_view, policy)},
    {CARDPACK_ANNOTATION_NODE_POLICY, offsetof(struct pod_view, node_policy)},
    {CARDPACK_ANNOTATION_CARD_POLICY, offsetof(struct pod_view, card_policy)},
    {CARDPACK_ANNOTATION_ISOLATION, offsetof(struct pod_view, require_isolation)},
    {CARDPACK_ANNOTATION_VACATED, offsetof(struct pod_view, vacated)},
};

static const struct wanted node_annotations[] = {
    {CARDPACK_ANNOTATION_CORDONED, offsetof(struct node_view, cordoned)},
    {CARDPACK_ANNOTATION_EXCLUSIVE, offsetof(struct node_view, exclusive_cards)},
    {CARDPACK_ANNOTATION_LATE, offsetof(struct node_view, late)},
    {CARDPACK_ANNOTATION_DRA, offsetof(struct node_view, dra_cards)},
};

static const struct wanted node_labels[] = {
    {GPUSHARE_LABEL_NODE_PLACEMENT, offsetof(struct node_view, placement)},
    {GPUSHARE_LABEL_MAX_PODS, offsetof(struct node_view, max_pods)},
    {CARDPACK_LABEL_POOL, offsetof(struct node_view, pool)},
    {CARDPACK_LABEL_ISOLATION, offsetof(struct node_view, isolation)},
    {DIALECT_LABEL, offsetof(struct node_view, dialect)},
    {CARDPACK_LABEL_DRA, offsetof(struct node_view, dra)},
    {NVIDIA_LABEL_MODEL, offsetof(struct node_view, model)},
};

/* If the key is in `wanted`, reads its value and returns true. */
static bool kube_take(struct jread *r, struct str key, const struct wanted *wanted, size_t n,
                      void *view)
{
    for (size_t i = 0; i < n; i++) {
        if (!str_eq(key, wanted[i].key))
            continue;
        *(struct str *)(void *)((char *)view + wanted[i].offset) = jread_str(r);
        return true;
    }
    return false;
}

struct str kube_near_annotation(struct str key)
{
    size_t prefix = CARDPACK_ANNOTATION_PREFIX.n;
    struct near near = near_to(str_skip(key, prefix));
    for (size_t i = 0; i < COUNT_OF(pod_annotations); i++) {
        if (str_starts(pod_annotations[i].key, CARDPACK_ANNOTATION_PREFIX))
            near_offer(&near, str_skip(pod_annotations[i].key, prefix));
    }
    return near.found.p == NULL ? STR_NULL
                                : (struct str){near.found.p - prefix, near.found.n + prefix};
}

static void kube_read_pod_annotations(struct jread *r, struct arena *a, struct pod_view *pod)
{
    struct str key;
    struct str allocation = STR_NULL;
    struct seat_list seats = {.n = 0};
    jread_object (r, key) {
        if (str_eq(key, GPUSHARE_ANNOTATION_ALLOCATION)) {
            allocation = jread_str(r);
            pod->former.allocation = true;
        } else if (str_eq(key, GPUSHARE_ANNOTATION_CORES)) {
            pod->former.cores = true;
            jread_skip(r);
        } else if (!kube_take(r, key, pod_annotations, COUNT_OF(pod_annotations), pod) &&
                   !kube_names_take(r, key, a, &seats, pod)) {
            if (pod->unknown.p == NULL && str_starts(key, CARDPACK_ANNOTATION_PREFIX))
                pod->unknown = key;
            jread_skip(r);
        }
    }
    pod->seats = seats.items;
    pod->n_seats = seats.n;
    pod->former.vacated = pod->vacated.n > 0;
    if (allocation.p != NULL && !jread_failed(r) && !allocation_read(allocation, a, pod))
        jread_fail(r, arena_fault(a), "no room for its allocation");
}

static void kube_measure_pod_annotations(struct jread *r, struct arena *a, struct pod_view *pod)
{
    (void)jread_type(r);
    const char *from = r->at;
    kube_read_pod_annotations(r, a, pod);
    pod->annotation_bytes = jtoken_strings((struct str){from, (size_t)(r->at - from)});
}

static void kube_read_pod_labels(struct jread *r, struct arena *a, struct pod_view *pod)
{
    struct str key;
    struct label_view *labels = NULL;
    size_t cap = 0;
    pod->n_labels = 0;
    jread_object (r, key) {
        struct label_view one = {.key = key, .value = jread_str(r)};
        if (str_eq(key, GPUSHARE_LABEL_COUNT))
            pod->count_label = one.value;
        else if (str_eq(key, GPUSHARE_LABEL_PLACEMENT))
            pod->whole_label = one.value;
        if (pod->n_labels == LIMIT_LABELS)
            continue;
        struct label_view *grown =
            arena_grow(a, labels, pod->n_labels, &cap, sizeof(struct label_view));
        if (grown == NULL) {
            jread_fail(r, arena_fault(a), "no room for the labels");
            continue;
        }
        labels = grown;
        labels[pod->n_labels++] = one;
    }
    pod->labels = labels;
}

/* An invalid time must not exclude the object. */
static void kube_read_time(struct jread *r, uint32_t *ret_s)
{
    uint32_t s = 0;
    if (stamp_read(jread_str(r), &s))
        *ret_s = s;
}

static void kube_read_pod_metadata(struct jread *r, struct arena *a, struct pod_view *pod)
{
    struct str key;
    jread_object (r, key) {
        if (str_eq(key, STR("name")))
            pod->name = jread_str(r);
        else if (str_eq(key, STR("namespace")))
            pod->namespace = jread_str(r);
        else if (str_eq(key, STR("uid")))
            pod->uid = jread_str(r);
        else if (str_eq(key, STR("resourceVersion")))
            (void)str_to_u64(jread_str(r), UINT64_MAX, &pod->version);
        else if (str_eq(key, STR("creationTimestamp")))
            kube_read_time(r, &pod->created_s);
        else if (str_eq(key, STR("deletionTimestamp")))
            pod->deleting = jread_str(r).n > 0;
        else if (str_eq(key, STR("annotations")))
            kube_measure_pod_annotations(r, a, pod);
        else if (str_eq(key, STR("labels")))
            kube_read_pod_labels(r, a, pod);
        else
            jread_skip(r);
    }
}

struct amounts {
    struct amounts_view of[DIALECT_COUNT];
    struct str exclusive;
    uint32_t renamed;
    struct host_texts host;
    struct class_list *classes; /* NULL: their names are skipped */
    bool requested;             /* these are requests */
};

/* Where a dialect has this name for its own resource, the resource is that dialect's. */
static bool kube_is_exclusive(struct str key)
{
    return str_eq(key, GPUSHARE_RESOURCE_EXCLUSIVE) && !dialect_find_nvidias(NULL);
}

static void kube_read_amounts(struct jread *r, struct amounts *ret)
{
    struct str key;
    struct kube_named found;
    struct amounts_view *gpushare = &ret->of[DIALECT_OWN];
    jread_object (r, key) {
        if (str_eq(key, GPUSHARE_RESOURCE_MEM))
            gpushare->mem = jread_text(r);
        else if (str_eq(key, GPUSHARE_RESOURCE_CORES))
            gpushare->cores = jread_text(r);
        else if (kube_is_exclusive(key))
            ret->exclusive = jread_text(r);
        else if (str_eq(key, STR("cpu")))
            ret->host.cpu = kube_host_read(r);
        else if (str_eq(key, STR("memory")))
            ret->host.memory = kube_host_read(r);
        else if (kube_names_take_renamed(r, key, &ret->renamed) ||
                 (ret->classes != NULL && kube_classes_take(ret->classes, r, key, ret->requested)))
            continue;
        else if (!kube_names_find(
                     key, 1U << KUBE_MEM | 1U << KUBE_CORES | 1U << KUBE_COUNT | 1U << KUBE_PERCENT,
                     &found) ||
                 (found.name == KUBE_COUNT && !dialect_has_uuids(found.dialect)))
            jread_skip(r);
        else
            *kube_names_amount_at(&ret->of[found.dialect], found.name) = jread_text(r);
    }
}

static struct str kube_either(struct str a, struct str b)
{
    return a.p != NULL ? a : b;
}

struct resources {
    struct amounts limits;
    struct amounts requests;
};

static void kube_read_resources(struct jread *r, struct resources *ret)
{
    struct str key;
    jread_object (r, key) {
        if (str_eq(key, STR("limits")))
            kube_read_amounts(r, &ret->limits);
        else if (str_eq(key, STR("requests")))
            kube_read_amounts(r, &ret->requests);
        else
            jread_skip(r);
    }
}

static void kube_read_container_resources(struct jread *r, struct container_view *c,
                                          struct host_texts *ret_host, struct class_list *classes)
{
    struct resources of = {.limits = {.classes = classes},
                           .requests = {.classes = classes, .requested = true}};
    kube_read_resources(r, &of);
    for (unsigned d = 0; d < DIALECT_COUNT; d++) {
        c->of[d].mem = kube_either(of.limits.of[d].mem, of.requests.of[d].mem);
        c->of[d].cores = kube_either(of.limits.of[d].cores, of.requests.of[d].cores);
        c->of[d].count = kube_either(of.limits.of[d].count, of.requests.of[d].count);
        c->of[d].percent = kube_either(of.limits.of[d].percent, of.requests.of[d].percent);
    }
    c->exclusive = kube_either(of.limits.exclusive, of.requests.exclusive);
    c->renamed = MAX_OF(of.limits.renamed, of.requests.renamed);
    /* As the API server's defaults: a limit counts where there is no request. */
    ret_host->cpu = kube_either(of.requests.host.cpu, of.limits.host.cpu);
    ret_host->memory = kube_either(of.requests.host.memory, of.limits.host.memory);
}

static void kube_read_container(struct jread *r, struct container_view *c,
                                struct host_texts *ret_host, struct class_list *classes)
{
    bool always = false;
    struct str key;
    jread_object (r, key) {
        if (str_eq(key, STR("name")))
            c->name = jread_str(r);
        else if (str_eq(key, STR("resources")))
            kube_read_container_resources(r, c, ret_host, classes);
        else if (str_eq(key, STR("restartPolicy")))
            always = str_eq(jread_str(r), STR("Always"));
        else
            jread_skip(r);
    }
    if (always && c->kind == CONTAINER_INIT)
        c->kind = CONTAINER_SIDECAR;
    kube_classes_close(classes, c->kind);
}

struct container_list {
    struct container_view *items;
    const struct container_view *before; /* the first of them are this list's */
    size_t first;
    size_t n;
    size_t cap;
    uint32_t all; /* including those without a request */
    struct host_tally host;
    struct class_list classes;
};

static void kube_container_add(struct jread *r, struct arena *a, struct container_list *list,
                               struct container_view c)
{
    struct container_view *grown = arena_grow(a, list->items, list->n, &list->cap, sizeof(c));
    if (grown == NULL) {
        jread_fail(r, arena_fault(a), "no room for its containers");
        return;
    }
    list->items = grown;
    list->items[list->n++] = c;
}

static bool kube_names_cards(const struct container_view *c)
{
    bool names = c->exclusive.p != NULL || c->renamed > 0;
    for (unsigned d = 0; d < DIALECT_COUNT; d++)
        names = names || amounts_view_any(&c->of[d]);
    return names;
}

/* `before`: the list that these are appended to, so that nothing is copied at the end. */
static void kube_read_containers(struct jread *r, struct arena *a, enum container_kind kind,
                                 const struct container_list *before, struct container_list *list)
{
    *list = (struct container_list){.classes = {.arena = a}};
    if (before != NULL) {
        list->before = list->items = before->items;
        list->first = list->n = before->n;
        list->cap = before->cap;
    }
    jread_array (r) {
        struct container_view c = {.kind = kind, .index = list->all++};
        struct host_texts host = {.cpu = STR_NULL};
        kube_read_container(r, &c, &host, &list->classes);
        kube_host_add(&list->host, host, c.kind);
        if (kube_names_cards(&c))
            kube_container_add(r, a, list, c);
    }
}

static int32_t kube_read_priority(struct jread *r)
{
    int64_t priority = jread_i64(r);
    return (int32_t)MAX_OF(MIN_OF(priority, (int64_t)INT32_MAX), (int64_t)INT32_MIN);
}

static void kube_read_pod_spec(struct jread *r, struct arena *a, struct pod_view *pod)
{
    struct container_list inits = {.classes = {.arena = a}};
    struct container_list mains = {.classes = {.arena = a}};
    struct resources resources = {.limits = {.exclusive = STR_NULL}};
    struct amounts overhead = {.exclusive = STR_NULL};
    struct str key;
    jread_object (r, key) {
        if (str_eq(key, STR("nodeName")))
            pod->node = jread_str(r);
        else if (str_eq(key, STR("containers")))
            kube_read_containers(r, a, CONTAINER_MAIN, &inits, &mains);
        else if (str_eq(key, STR("initContainers")))
            kube_read_containers(r, a, CONTAINER_INIT, NULL, &inits);
        else if (str_eq(key, STR("overhead")))
            kube_read_amounts(r, &overhead);
        else if (str_eq(key, STR("resources")) && jread_type(r) == JTYPE_OBJECT)
            kube_read_resources(r, &resources);
        else if (str_eq(key, STR("priority")))
            pod->priority = kube_read_priority(r);
        else if (str_eq(key, STR("preemptionPolicy")))
            pod->never_preempts = str_eq(jread_str(r), STR("Never"));
        else
            jread_skip(r);
    }
    pod->mem_overhead = overhead.of[DIALECT_OWN].mem;
    pod->host = kube_host_of(&inits.host, &mains.host, resources.limits.host,
                             resources.requests.host, overhead.host);
    uint32_t n_inits = inits.all;
    kube_classes_join(&inits.classes, r, &mains.classes);
    pod->classes = inits.classes.items;
    pod->n_classes = inits.classes.n;
    if (mains.before == inits.items && mains.first == inits.n) {
        inits = mains;
    } else { /* of two lists, or in another order than an API server's */
        for (size_t i = mains.first; i < mains.n; i++)
            kube_container_add(r, a, &inits, mains.items[i]);
    }
    pod->containers = inits.items;
    pod->n_containers = inits.n;
    pod->n_mains = mains.all;
    pod->n_inits = n_inits;
}

/* Returns the condition's type. */
static struct str kube_read_condition(struct jread *r, struct condition_view *ret)
{
    struct str type = STR_NULL;
    struct str key;
    *ret = (struct condition_view){.since_s = 0};
    jread_object (r, key) {
        if (str_eq(key, STR("type")))
            type = jread_str(r);
        else if (str_eq(key, STR("status")))
            ret->status = jread_str(r);
        else if (str_eq(key, STR("reason")))
            ret->reason = jread_str(r);
        else if (str_eq(key, STR("message")))
            ret->message = jread_str(r);
        else if (str_eq(key, STR("lastTransitionTime")))
            kube_read_time(r, &ret->since_s);
        else
            jread_skip(r);
    }
    return type;
}

static void kube_read_conditions(struct jread *r, struct pod_view *pod)
{
    pod->initialized = false;
    pod->ready = false;
    pod->scheduled = (struct condition_view){.since_s = 0};
    jread_array (r) {
        struct condition_view c;
        struct str type = kube_read_condition(r, &c);
        if (str_eq(type, STR("Initialized")))
            pod->initialized = pod->initialized || str_eq(c.status, STR("True"));
        else if (str_eq(type, STR("Ready")))
            pod->ready = str_eq(c.status, STR("True"));
        else if (str_eq(type, STR("PodScheduled")))
            pod->scheduled = c;
    }
}

static void kube_read_pod_status(struct jread *r, struct pod_view *pod)
{
    struct str key;
    jread_object (r, key) {
        if (str_eq(key, STR("phase")))
            pod->phase = jread_str(r);
        else if (str_eq(key, STR("nominatedNodeName")))
            pod->nominated = jread_str(r);
        else if (str_eq(key, STR("startTime")))
            pod->admitted = jread_str(r).n > 0;
        else if (str_eq(key, STR("conditions")))
            kube_read_conditions(r, pod);
        else if (str_eq(key, STR("extendedResourceClaimStatus")))
            pod->claims = kube_classes_read_status(r);
        else
            jread_skip(r);
    }
}

void kube_read_pod(struct jread *r, struct arena *a, struct pod_view *ret)
{
    struct str key;
    *ret = (struct pod_view){.uid = STR_NULL};
    jread_object (r, key) {
        if (str_eq(key, STR("metadata")))
            kube_read_pod_metadata(r, a, ret);
        else if (str_eq(key, STR("spec")))
            kube_read_pod_spec(r, a, ret);
        else if (str_eq(key, STR("status")))
            kube_read_pod_status(r, ret);
        else
            jread_skip(r);
    }
}

/* A resource of another dialect than gpushare's. */
static void kube_read_other_capacity(struct jread *r, struct str key, bool allocatable,
                                     struct node_view *node)
{
    struct kube_named found;
    if (!kube_names_find(key, 1U << KUBE_MEM | 1U << KUBE_CORES | 1U << KUBE_COUNT, &found)) {
        if (allocatable)
            jread_skip(r);
        else
            kube_names_take_unknown(r, key, &node->unknown);
        return;
    }
    struct capacity_view *of = &node->of[found.dialect];
    struct str amount = jread_text(r);
    if (found.name == KUBE_MEM)
        *(allocatable ? &of->mem_allocatable : &of->mem) = amount;
    else if (found.name == KUBE_COUNT && dialect_has_uuids(found.dialect))
        *(allocatable ? &of->count_allocatable : &of->count) = amount;
    else if (!allocatable && !dialect_has_uuids(found.dialect))
        of->count = amount;
}

static void kube_read_capacity(struct jread *r, struct node_view *node)
{
    struct str key;
    jread_object (r, key) {
        if (str_eq(key, GPUSHARE_RESOURCE_MEM))
            node->mem = jread_text(r);
        else if (str_eq(key, GPUSHARE_RESOURCE_COUNT))
            node->count = jread_text(r);
        else if (kube_is_exclusive(key))
            node->exclusive = jread_text(r);
        else if (kube_names_take_renamed(r, key, &node->renamed))
            node->has_renamed = true;
        else
            kube_read_other_capacity(r, key, false, node);
    }
}

static void kube_read_allocatable(struct jread *r, struct node_view *node)
{
    struct str key;
    jread_object (r, key) {
        if (str_eq(key, GPUSHARE_RESOURCE_MEM))
            node->mem_allocatable = jread_text(r);
        else if (str_eq(key, STR("cpu")))
            node->cpu = kube_host_read(r);
        else if (str_eq(key, STR("memory")))
            node->memory = kube_host_read(r);
        else
            kube_read_other_capacity(r, key, true, node);
    }
}

static void kube_read_node_status(struct jread *r, struct node_view *node)
{
    struct str key;
    jread_object (r, key) {
        if (str_eq(key, STR("capacity")))
            kube_read_capacity(r, node);
        else if (str_eq(key, STR("allocatable")))
            kube_read_allocatable(r, node);
        else
            jread_skip(r);
    }
    enum dialect d;
    if (dialect_find_nvidias(&d)) /* it is that dialect's only on a node that has its plugin */
        node->exclusive = node->of[d].count;
}

static void kube_read_node_annotations(struct jread *r, struct arena *a, struct node_view *node)
{
    struct str key;
    struct str cards = STR_NULL;
    struct str tables[DIALECT_COUNT] = {STR_NULL};
    struct kube_named found;
    jread_object (r, key) {
        if (str_eq(key, CARDPACK_ANNOTATION_CARDS))
            cards = jread_str(r);
        else if (kube_names_find(key, 1U << KUBE_ILL, &found))
            node->unhealthy[found.dialect] = jread_str(r);
        else if (kube_names_find(key, 1U << KUBE_TABLE, &found))
            tables[found.dialect] = jread_str(r);
        else if (kube_names_find(key, 1U << KUBE_CORDON, &found))
            node->of[found.dialect].cordon = jread_str(r);
        else if (kube_names_find(key, 1U << KUBE_LOCK, &found))
            lock_text_read(jread_str(r), &node->of[found.dialect].lock);
        else if (!kube_take(r, key, node_annotations, COUNT_OF(node_annotations), node))
            jread_skip(r);
    }
    bool room = jread_failed(r) || cards.p == NULL || cards_read(cards, a, node);
    for (enum dialect d = 0; d < DIALECT_COUNT && room; d++) {
        if (tables[d].p != NULL && !jread_failed(r))
            room = vgpu_cards_read(tables[d], dialect_facts(d)->table, a, &node->of[d]);
    }
    if (!room)
        jread_fail(r, arena_fault(a), "no room for its cards");
}

static void kube_read_node_labels(struct jread *r, struct node_view *node)
{
    struct str key;
    struct str other = STR_NULL;
    jread_object (r, key) {
        if (str_eq(key, ALIYUN_LABEL_MODEL))
            other = jread_str(r);
        else if (!kube_take(r, key, node_labels, COUNT_OF(node_labels), node))
            jread_skip(r);
    }
    if (node->model.n == 0)
        node->model = other;
}

static void kube_read_node_metadata(struct jread *r, struct arena *a, struct node_view *node)
{
    struct str key;
    jread_object (r, key) {
        if (str_eq(key, STR("name")))
            node->name = jread_str(r);
        else if (str_eq(key, STR("annotations")))
            kube_read_node_annotations(r, a, node);
        else if (str_eq(key, STR("labels")))
            kube_read_node_labels(r, node);
        else
            jread_skip(r);
    }
}

void kube_read_node(struct jread *r, struct arena *a, struct node_view *ret)
{
    struct str key;
    *ret = (struct node_view){.name = STR_NULL};
    jread_object (r, key) {
        if (str_eq(key, STR("metadata")))
            kube_read_node_metadata(r, a, ret);
        else if (str_eq(key, STR("status")))
            kube_read_node_status(r, ret);
        else
            jread_skip(r);
    }
}
