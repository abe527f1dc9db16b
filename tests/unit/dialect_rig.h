/* Objects of all dialects, from JSON, and a node of four cards of 16 units each. */
#pragma once

#include "cache_rig.h"
#include "core/place/fit.h"
#include "objects/seats.h"
#include "seeded.h"

#include <stdio.h>

static inline void all_dialects(void)
{
    dialects_use(DIALECT_BIT(DIALECT_COUNT) - 1);
}

struct object {
    struct arena arena;
    struct jread r;
    char text[8192];
    struct pod_view pod;
    struct node_view node;
    struct request request;
    struct evaluation evaluation; /* of the request, once it was made */
    struct err err;
    enum errc readable;
};

static inline void object_begin(struct object *o)
{
    arena_init(&o->arena, LIMIT_OBJECT_BYTES);
    o->err = ERR_INIT;
    jread_init(&o->r, str_of(o->text), &o->arena);
}

static inline void object_end(struct object *o)
{
    arena_done(&o->arena);
}

static inline void object_check(struct object *o)
{
    struct err e = ERR_INIT;
    ck_assert_ok(jread_finish(&o->r, &e), &e);
}

/* containers: of a spec; annotations: without the braces; node "": unbound. */
static inline void object_pod(struct object *o, const char *uid, const char *containers,
                              const char *annotations, const char *node)
{
    int n = snprintf(o->text, sizeof(o->text),
                     "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"ns\",\"uid\":\"%s\","
                     "\"annotations\":{%s}},\"spec\":{\"nodeName\":\"%s\",%s},"
                     "\"status\":{\"phase\":\"Pending\"}}",
                     uid, uid, annotations, node, containers);
    ck_assert_int_lt(n, (int)sizeof(o->text));
    object_begin(o);
    kube_read_pod(&o->r, &o->arena, &o->pod);
    object_check(o);
    o->readable = request_read(&o->pod, &o->request, &o->err);
}

static inline void object_node(struct object *o, const char *name, const char *metadata,
                               const char *capacity, const char *allocatable)
{
    int n = snprintf(o->text, sizeof(o->text),
                     "{\"metadata\":{\"name\":\"%s\"%s},\"status\":{\"capacity\":{%s},"
                     "\"allocatable\":{%s}}}",
                     name, metadata, capacity, allocatable);
    ck_assert_int_lt(n, (int)sizeof(o->text));
    object_begin(o);
    kube_read_node(&o->r, &o->arena, &o->node);
    object_check(o);
}

#define C(limits) "{\"name\":\"c0\",\"resources\":{\"limits\":{" limits "}}}"
#define D(limits) "{\"name\":\"c1\",\"resources\":{\"limits\":{" limits "}}}"
#define E(limits) "{\"name\":\"c2\",\"resources\":{\"limits\":{" limits "}}}"
#define SIDECAR(limits) \
    "{\"name\":\"s0\",\"restartPolicy\":\"Always\",\"resources\":{\"limits\":{" limits "}}}"
#define MAINS(...)  "\"containers\":[" __VA_ARGS__ "]"
#define INITS(...)  "\"initContainers\":[" __VA_ARGS__ "]"
#define ONE(limits) MAINS(C(limits))
#define TWO(a, b)   MAINS(C(a) "," D(b))
#define VOLCANO(n)  "\"volcano.sh/gpu-memory\":\"" n "\""
#define ELASTIC(core, m) \
    "\"elasticgpu.io/gpu-core\":\"" core "\",\"elasticgpu.io/gpu-memory\":\"" m "\""
#define TENCENT(core, m) \
    "\"tencent.com/vcuda-core\":\"" core "\",\"tencent.com/vcuda-memory\":\"" m "\""

static const char *const capacities[DIALECT_COUNT] = {
    [DIALECT_GPUSHARE] = "\"aliyun.com/gpu-mem\":\"64\",\"aliyun.com/gpu-count\":\"4\"",
    [DIALECT_VOLCANO] = VOLCANO("64") ",\"volcano.sh/gpu-number\":\"4\"",
    [DIALECT_ELASTIC] = ELASTIC("400", "64"),
    [DIALECT_TENCENT] = TENCENT("400", "64"),
    [DIALECT_VGPU] = "\"volcano.sh/vgpu-number\":\"40\"",
    [DIALECT_HAMI] = "\"nvidia.com/gpu\":\"40\"",
};

#define VGPU_TABLE(text) ",\"annotations\":{\"volcano.sh/node-vgpu-register\":\"" text "\"}"
#define HAMI_TABLE(text) ",\"annotations\":{\"hami.io/node-nvidia-register\":\"" text "\"}"
#define VGPU_CARD(id)    id ",10,16,NVIDIA-A10,true,hami-core:"
#define HAMI_CARD(id, index)                                                           \
    "{\\\"id\\\":\\\"" id                                                              \
    "\\\",\\\"count\\\":10,\\\"devmem\\\":16,\\\"devcore\\\":100,\\\"index\\\":" index \
    ",\\\"type\\\":\\\"NVIDIA-A10\\\",\\\"health\\\":true}"

static const char *const tables[DIALECT_COUNT] = {
    [DIALECT_VGPU] =
        VGPU_TABLE(VGPU_CARD("GPU-a") VGPU_CARD("GPU-b") VGPU_CARD("GPU-c") VGPU_CARD("GPU-d")),
    [DIALECT_HAMI] = HAMI_TABLE("[" HAMI_CARD("GPU-c", "2") "," HAMI_CARD(
        "GPU-a", "0") "," HAMI_CARD("GPU-d", "3") "," HAMI_CARD("GPU-b", "1") "]"),
};

/* The names of plugins that were on a node before: the kubelet keeps them with 0. */
#define LEFT                                                              \
    "\"aliyun.com/gpu-mem\":\"0\",\"nvidia.com/gpu\":\"0\",\"nvidia.com/" \
    "gpu.shared\":\"0\"," VOLCANO("0") "," ELASTIC("0", "0") "," TENCENT( \
        "0", "0") ",\"volcano.sh/vgpu-number\":\"0\","

static inline void set_node_as(struct rig *r, const char *name, enum dialect d,
                               const char *capacity)
{
    struct object o;
    object_node(&o, name, tables[d] == NULL ? "" : tables[d], capacity, "");
    struct cache_event e = {.type = CACHE_NODE_SET, .node = o.node};
    ck_assert_int_eq(rig_apply(r, &e), OK);
    object_end(&o);
}

/* A node of the dialect where all other plugins were before. */
static inline void set_node(struct rig *r, const char *name, enum dialect d)
{
    char capacity[512];
    int n = snprintf(capacity, sizeof(capacity), LEFT "%s", capacities[d]);
    ck_assert_int_lt(n, (int)sizeof(capacity));
    set_node_as(r, name, d, capacity);
}

/* Shows the pod, and ends it. */
static inline void object_show(struct rig *r, struct object *o)
{
    struct cache_event e = {.type = CACHE_POD_SET, .pod = o->pod};
    ck_assert_int_eq(rig_apply(r, &e), OK);
    object_end(o);
}

/* Shows a bound pod. */
static inline void set_pod(struct rig *r, const char *uid, const char *containers,
                           const char *annotations)
{
    struct object o;
    object_pod(&o, uid, containers, annotations, "n");
    object_show(r, &o);
}

/* A bound pod on a node of this dialect, and what it then holds on each card, and on none. */
struct held_case {
    enum dialect dialect;
    const char *containers;
    const char *annotations;
    int64_t used[4];
    int64_t nowhere;
};

/* All of it is released when the pod is gone. */
static inline void expect_held(const struct held_case *held)
{
    struct rig r;
    all_dialects();
    rig_init(&r);
    set_node(&r, "n", held->dialect);
    set_pod(&r, "p", held->containers, held->annotations);
    for (uint32_t card = 0; card < 4; card++)
        ck_assert_int_eq(card_used(&r, "n", card), held->used[card]);
    ck_assert_int_eq(node_of(&r, "n")->unplaced, held->nowhere);
    pod_gone(&r, "p");
    ck_assert_int_eq(node_of(&r, "n")->used, 0);
    rig_done(&r);
}

/* Reserves cards of n for the pod, whose request holds until object_end. */
static inline enum errc object_reserve(struct rig *r, const struct object *o)
{
    struct cache_event e = {.type = CACHE_RESERVE,
                            .reserve = {.uid = o->pod.uid,
                                        .namespace = o->pod.namespace,
                                        .name = o->pod.name,
                                        .node = STR("n"),
                                        .request = &o->request}};
    return rig_apply(r, &e);
}

/* What fit_place finds for an unbound pod. */
static inline enum verdict fit_of(const struct rig *r, const char *containers, const char *node,
                                  struct placement *ret)
{
    struct object o;
    object_pod(&o, "asked", containers, "", "");
    ck_assert_int_eq(o.readable, OK);
    cache_evaluation(&r->cache, STR("asked"), &o.request, &o.evaluation);
    enum verdict v = fit_node(node_of(r, node), &o.evaluation);
    ret->n = 0;
    ck_assert_int_eq(fit_place(node_of(r, node), &o.evaluation, ret), v);
    object_end(&o);
    return v;
}

#define VGPU(n, m) "\"volcano.sh/vgpu-number\":\"" n "\",\"volcano.sh/vgpu-memory\":\"" m "\""
#define HAMI(n, m) "\"nvidia.com/gpu\":\"" n "\",\"nvidia.com/gpumem\":\"" m "\""

/* The annotation with a pod's cards. */
#define LIST(text) "\"volcano.sh/vgpu-ids-new\":\"" text "\""

static const char *const plain[DIALECT_COUNT] = {
    [DIALECT_GPUSHARE] = ONE("\"aliyun.com/gpu-mem\":\"8\""),
    [DIALECT_VOLCANO] = ONE(VOLCANO("8")),
    [DIALECT_ELASTIC] = ONE(ELASTIC("50", "8")),
    [DIALECT_TENCENT] = ONE(TENCENT("50", "8")),
    [DIALECT_VGPU] = ONE(VGPU("1", "8")),
    [DIALECT_HAMI] = ONE(HAMI("1", "8")),
};

/* A node, and what the cache has of it. */
struct node_row {
    const char *metadata;
    const char *capacity;
    const char *allocatable;
    enum dialect dialect;
    enum node_fault fault;
    uint32_t cards;
    int64_t total; /* of card 0 */
    bool ill;      /* card 1 */
};

static inline void node_row_check(const struct node_row *row)
{
    struct object o;
    struct rig r;
    all_dialects();
    rig_init(&r);
    object_node(&o, "n", row->metadata, row->capacity, row->allocatable);
    struct cache_event e = {.type = CACHE_NODE_SET, .node = o.node};
    ck_assert_int_eq(rig_apply(&r, &e), OK);
    const struct node *n = node_of(&r, "n");
    ck_assert_int_eq(n->fault, row->fault);
    ck_assert_int_eq(n->sizes->dialect, row->dialect);
    ck_assert_uint_eq(n->n_cards, row->cards);
    if (n->n_cards > 0)
        ck_assert_int_eq(n->cards[0].total, row->total);
    if (n->n_cards > 1)
        ck_assert_int_eq(n->cards[1].unhealthy, row->ill);
    object_end(&o);
    rig_done(&r);
}
