/* The decoder of implicit resource names of DeviceClasses in a pod. */
#include "objects/kube.h"

#include "base/buf.h"
#include "fail_alloc.h"
#include "unit.h"

#define GPU           "\"deviceclass.resource.kubernetes.io/gpu\""
#define NIC           "\"deviceclass.resource.kubernetes.io/nic\""
#define LIMITS(...)   "{\"resources\":{\"limits\":{" __VA_ARGS__ "}}}"
#define ALWAYS(...)   "{\"resources\":{\"limits\":{" __VA_ARGS__ "}},\"restartPolicy\":\"Always\"}"
#define MAINS(...)    "\"containers\":[" __VA_ARGS__ "]"
#define INITS(...)    "\"initContainers\":[" __VA_ARGS__ "]"
#define BOTH(r, l)    "{\"resources\":{\"requests\":{" r "},\"limits\":{" l "}}}"
#define FIRST_L(l, r) "{\"resources\":{\"limits\":{" l "},\"requests\":{" r "}}}"

/* then: kind, class and amount of each */
static const struct {
    const char *spec;
    const char *then;
} pods[] = {
    {"", ""},
    {MAINS("{}"), ""},
    {MAINS(LIMITS(GPU ":\"2\"")), "m gpu 2 "},
    {MAINS(LIMITS(GPU ":1," NIC ":\"1k\"")), "m gpu 1 m nic 1k "},
    {MAINS(LIMITS(GPU ":1") "," LIMITS(GPU ":2")), "m gpu 1 m gpu 2 "},
    /* the request counts, whichever comes first */
    {MAINS(BOTH(GPU ":1", GPU ":4")), "m gpu 1 "},
    {MAINS(FIRST_L(GPU ":4", GPU ":1")), "m gpu 1 "},
    {MAINS(BOTH(NIC ":3", GPU ":4")), "m nic 3 m gpu 4 "},
    {MAINS(LIMITS(GPU ":4," GPU ":5")), "m gpu 5 "},
    /* init containers are first, wherever the object has them */
    {MAINS(LIMITS(GPU ":1")) "," INITS(LIMITS(GPU ":2") "," ALWAYS(GPU ":3")),
     "i gpu 2 s gpu 3 m gpu 1 "},
    {INITS("{}") "," MAINS(LIMITS(GPU ":1")), "m gpu 1 "},
    {MAINS(ALWAYS(GPU ":1")), "m gpu 1 "},
    /* of a repeated key the last counts */
    {MAINS(LIMITS(GPU ":1")) "," MAINS(LIMITS(GPU ":2")), "m gpu 2 "},
    /* no quantity, and names that are none */
    {MAINS(LIMITS(GPU ":{\"a\":1}," NIC ":null")), ""},
    {MAINS(LIMITS("\"deviceclass.resource.kubernetes.io\":1,\"x/gpu\":1")), ""},
    {MAINS(LIMITS("\"deviceclass.resource.kubernetes.io/\":1")), "m  1 "},
    /* not of the pod as a whole: the API server refuses them there */
    {MAINS("{}") ",\"resources\":{\"limits\":{" GPU ":1}},\"overhead\":{" GPU ":1}", ""},
    {MAINS("{\"name\":\"c\",\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":\"4\"," GPU
           ":\"1\"}}}"),
     "m gpu 1 "},
};

static enum errc read_pod(struct arena *a, struct str json, struct pod_view *ret)
{
    struct jread r;
    struct err err = ERR_INIT;
    jread_init(&r, json, a);
    kube_read_pod(&r, a, ret);
    return jread_finish(&r, &err);
}

static void print(const struct pod_view *v, struct buf *out)
{
    static const char kinds[] = {
        [CONTAINER_MAIN] = 'm', [CONTAINER_INIT] = 'i', [CONTAINER_SIDECAR] = 's'};
    for (size_t i = 0; i < v->n_classes; i++)
        buf_printf(out, "%c %.*s %.*s ", kinds[v->classes[i].kind], STR_ARG(v->classes[i].class),
                   STR_ARG(v->classes[i].amount));
}

TEST_EACH(containers_request_of_classes, COUNT_OF(pods))
{
    char json[1024];
    char text[256];
    struct arena arena;
    struct pod_view pod;
    struct buf in = BUF_ON(json);
    struct buf out = BUF_ON(text);
    buf_printf(&in, "{\"spec\":{%s}}", pods[_i].spec);
    arena_init(&arena, LIMIT_OBJECT_BYTES);
    ck_assert_int_eq(read_pod(&arena, buf_str(&in), &pod), OK);
    print(&pod, &out);
    ck_assert_str_is(buf_str(&out), pods[_i].then);
    arena_done(&arena);
}

static void put_many(struct buf *out, unsigned n)
{
    buf_put(out, STR("{\"spec\":{\"initContainers\":[" LIMITS(GPU ":1") "],\"containers\":["));
    for (unsigned i = 0; i < n; i++)
        buf_printf(out, "%s" LIMITS(GPU ":1," NIC ":1"), i == 0 ? "" : ",");
    buf_put(out, STR("]}}"));
}

TEST(the_first_names_of_a_pod_are_read)
{
    char json[16384];
    struct arena arena;
    struct pod_view pod;
    struct buf in = BUF_ON(json);
    put_many(&in, 70);
    arena_init(&arena, LIMIT_OBJECT_BYTES);
    ck_assert_int_eq(read_pod(&arena, buf_str(&in), &pod), OK);
    ck_assert_uint_eq(pod.n_classes, 64);
    ck_assert_int_eq(pod.classes[0].kind, CONTAINER_INIT);
    ck_assert_int_eq(pod.classes[63].kind, CONTAINER_MAIN);
    arena_done(&arena);
}

static enum errc read_many(void *ctx)
{
    struct arena arena;
    struct pod_view pod;
    arena_init(&arena, LIMIT_OBJECT_BYTES);
    enum errc code = read_pod(&arena, buf_str(ctx), &pod);
    arena_done(&arena);
    return code;
}

TEST(each_allocation_may_fail)
{
    char json[16384];
    struct buf in = BUF_ON(json);
    put_many(&in, 30);
    ck_assert_uint_gt(fail_alloc_each(read_many, &in), 0);
}
