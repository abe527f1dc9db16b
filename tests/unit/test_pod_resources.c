/* The list of pods with their devices, as the kubelet sends it. */
#include "fail_alloc.h"
#include "kubelet/pod_resources.h"
#include "unit.h"

#define ARENA_BYTES ((size_t)1 << 20)

/* Two devices of a container, a topology (field 3), a container without devices, a pod without any.
 */
#define LIST                             \
    "\x0a\x32\x0a\x01p\x12\x02ns"        \
    "\x1a\x23\x0a\x01"                   \
    "c"                                  \
    "\x12\x11\x0a\x05x/gpu\x12\x03"      \
    "0.1\x12\x03"                        \
    "0.2"                                \
    "\x12\x0b\x0a\x06x/fpga\x1a\x01\x07" \
    "\x1a\x04\x0a\x02"                   \
    "cc"                                 \
    "\x0a\x03\x0a\x01q"

TEST(test_list)
{
    struct arena arena;
    struct err e = ERR_INIT;
    struct pod_resources l;
    arena_init(&arena, ARENA_BYTES);
    ck_assert_ok(pod_resources_read(STR(LIST), &arena, &l, &e), &e);
    ck_assert_uint_eq(l.n_pods, 2);
    ck_assert_str_is(l.pods[0].namespace, "ns");
    ck_assert_str_is(l.pods[0].name, "p");
    ck_assert_uint_eq(l.pods[0].n_containers, 2);
    const struct pod_container *c = l.pods[0].containers;
    ck_assert_str_is(c[0].name, "c");
    ck_assert_uint_eq(c[0].n_devices, 2);
    ck_assert_str_is(c[0].devices[0].resource, "x/gpu");
    ck_assert_uint_eq(c[0].devices[0].n_ids, 2);
    ck_assert_str_is(c[0].devices[0].ids[1], "0.2");
    ck_assert_str_is(c[0].devices[1].resource, "x/fpga");
    ck_assert_uint_eq(c[0].devices[1].n_ids, 0);
    ck_assert_str_is(c[1].name, "cc");
    ck_assert_uint_eq(c[1].n_devices, 0);
    ck_assert_str_is(l.pods[1].name, "q");
    ck_assert_str_is(l.pods[1].namespace, "");
    ck_assert_int_eq(pod_resources_read(STR("\x0a\x02\x08\x01"), &arena, &l, &e), ERR_SYNTAX);
    ck_assert_str_eq(e.text, "ListPodResourcesResponse: field 1 has wire type 0, expected 2");
    arena_done(&arena);
}

static enum errc read_list(void *ctx)
{
    struct arena a;
    struct pod_resources l;
    (void)ctx;
    arena_init(&a, ARENA_BYTES);
    enum errc code = pod_resources_read(STR(LIST), &a, &l, NULL);
    arena_done(&a);
    return code;
}

TEST(test_no_memory)
{
    ck_assert_uint_gt(fail_alloc_each(read_list, NULL), 0);
}
