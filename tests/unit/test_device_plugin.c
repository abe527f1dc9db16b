/* The messages of the device plugin API, in bytes as the kubelet's own code writes and reads them.
 */
#include "fail_alloc.h"
#include "kubelet/device_plugin.h"
#include "unit.h"

#define ARENA_BYTES ((size_t)1 << 20)
#define OUT_BYTES   ((size_t)1 << 16)

static struct arena arena;
static struct buf out;

static void set_up(void)
{
    arena_init(&arena, ARENA_BYTES);
    buf_init(&out, OUT_BYTES);
}

static void tear_down(void)
{
    buf_done(&out);
    arena_done(&arena);
}

#define assert_wrote(golden) ck_assert(str_eq(buf_str(&out), STR(golden)))

TEST(test_register)
{
    struct register_request r = {.endpoint = STR("a.sock"),
                                 .resource = STR("x/gpu"),
                                 .options = {.pre_start_required = true}};
    register_request_write(&out, &r);
    assert_wrote("\x0a\x07v1beta1\x12\x06"
                 "a.sock\x1a\x05x/gpu\x22\x02\x08\x01");
}

TEST(test_options)
{
    options_write(&out, (struct plugin_options){.preferred_allocation = true});
    assert_wrote("\x10\x01");
    buf_clear(&out, OUT_BYTES);
    options_write(&out, (struct plugin_options){.preferred_allocation = false});
    assert_wrote("");
}

TEST(test_devices)
{
    static const struct plugin_device devices[] = {
        {.id = STR("0.1"), .healthy = true, .numa = -1},
        {.id = STR("0.2"), .healthy = false, .numa = 0},
        {.id = STR("0.3"), .healthy = true, .numa = 1},
    };
    devices_write(&out, devices, COUNT_OF(devices));
    assert_wrote("\x0a\x0e\x0a\x03"
                 "0.1\x12\x07Healthy"
                 "\x0a\x14\x0a\x03"
                 "0.2\x12\x09Unhealthy\x1a\x02\x0a\x00"
                 "\x0a\x14\x0a\x03"
                 "0.3\x12\x07Healthy\x1a\x04\x0a\x02\x08\x01");
}

TEST(test_allocate_response)
{
    static const struct plugin_pair envs[] = {{STR("A"), STR("1")}, {STR("B"), STR("")}};
    static const struct plugin_mount mounts[] = {{STR("/c"), STR("/h"), true}};
    static const struct plugin_node nodes[] = {{STR("/d"), STR("/e"), STR("rw")}};
    static const struct plugin_pair notes[] = {{STR("k"), STR("v")}};
    static const struct str cdi[] = {STR("a/b=c")};
    const struct allocate_grant grants[] = {
        {.envs = envs,
         .n_envs = 2,
         .mounts = mounts,
         .n_mounts = 1,
         .nodes = nodes,
         .n_nodes = 1,
         .annotations = notes,
         .n_annotations = 1,
         .cdi = cdi,
         .n_cdi = 1},
        {.n_envs = 0},
    };
    allocate_response_write(&out, grants, COUNT_OF(grants));
    assert_wrote("\x0a\x38"
                 "\x0a\x06\x0a\x01"
                 "A\x12\x01"
                 "1"
                 "\x0a\x03\x0a\x01"
                 "B"
                 "\x12\x0a\x0a\x02/c\x12\x02/h\x18\x01"
                 "\x1a\x0c\x0a\x02/d\x12\x02/e\x1a\x02rw"
                 "\x22\x06\x0a\x01k\x12\x01v"
                 "\x2a\x07\x0a\x05"
                 "a/b=c"
                 "\x0a\x00");
}

TEST(test_answers_are_read_back)
{
    struct err e = ERR_INIT;
    struct str found;
    struct str bytes = STR("\x0a\x06\x0a\x01"
                           "A\x12\x01"
                           "1"
                           "\x2a\x07\x0a\x05"
                           "a/b=c"
                           "\x2a\x07\x0a\x05"
                           "x/y=z");
    ck_assert_ok(allocate_answer_env(bytes, STR("A"), &found, &e), &e);
    ck_assert_str_is(found, "1");
    ck_assert_ok(allocate_answer_env(bytes, STR("B"), &found, &e), &e);
    ck_assert_ptr_null(found.p);
    ck_assert_ok(allocate_answer_cdi(bytes, STR("a/b="), &found, &e), &e);
    ck_assert_str_is(found, "c");
    ck_assert_ok(allocate_answer_cdi(bytes, STR("a/c="), &found, &e), &e);
    ck_assert_ptr_null(found.p);
    ck_assert_ok(allocate_answer_cdi(STR("\x2a\x00"), STR("a/b="), &found, &e), &e);
    ck_assert_ptr_null(found.p);
    ck_assert_int_eq(allocate_answer_cdi(STR("\x2a\x03\x0a"), STR("a/b="), &found, &e), ERR_SYNTAX);
}

TEST(test_allocate_request)
{
    struct err e = ERR_INIT;
    struct allocate_request r;
    struct str bytes = STR("\x0a\x0a\x0a\x03"
                           "0.1\x0a\x03"
                           "0.2\x0a\x00\x10\x07\x0a\x03\x0a\x01z");
    ck_assert_ok(allocate_request_read(bytes, &arena, &r, &e), &e);
    ck_assert_uint_eq(r.n_containers, 3);
    ck_assert_uint_eq(r.containers[0].n_ids, 2);
    ck_assert_str_is(r.containers[0].ids[0], "0.1");
    ck_assert_str_is(r.containers[0].ids[1], "0.2");
    ck_assert_uint_eq(r.containers[1].n_ids, 0);
    ck_assert_str_is(r.containers[2].ids[0], "z");
    ck_assert_ok(allocate_request_read(STR(""), &arena, &r, &e), &e);
    ck_assert_uint_eq(r.n_containers, 0);
    ck_assert_int_eq(allocate_request_read(STR("\x0a\x03\x0a\x01\xff"), &arena, &r, &e),
                     ERR_SYNTAX);
    ck_assert_str_eq(e.text, "AllocateRequest: field 1 is not UTF-8");
}

TEST(test_preferred)
{
    struct err e = ERR_INIT;
    struct preferred_request r;
    struct str bytes = STR("\x0a\x0b\x0a\x01"
                           "a\x0a\x01"
                           "b\x12\x01"
                           "b\x18\x02");
    ck_assert_ok(preferred_request_read(bytes, &arena, &r, &e), &e);
    ck_assert_uint_eq(r.n_containers, 1);
    ck_assert_uint_eq(r.containers[0].n_available, 2);
    ck_assert_str_is(r.containers[0].available[1], "b");
    ck_assert_uint_eq(r.containers[0].n_must_include, 1);
    ck_assert_str_is(r.containers[0].must_include[0], "b");
    ck_assert_int_eq(r.containers[0].size, 2);
    ck_assert_int_eq(preferred_request_read(STR("\x0a\x02\x18"), &arena, &r, &e), ERR_SYNTAX);

    static const struct str ids[] = {STR("b"), STR("a")};
    const struct allocate_container answer[] = {{ids, 2}, {NULL, 0}};
    preferred_response_write(&out, answer, COUNT_OF(answer));
    assert_wrote("\x0a\x06\x0a\x01"
                 "b\x0a\x01"
                 "a\x0a\x00");
}

TEST(test_pre_start)
{
    struct err e = ERR_INIT;
    struct allocate_container c;
    ck_assert_ok(pre_start_request_read(STR("\x0a\x01x\x0a\x01y"), &arena, &c, &e), &e);
    ck_assert_uint_eq(c.n_ids, 2);
    ck_assert_str_is(c.ids[1], "y");
    ck_assert_int_eq(pre_start_request_read(STR("\x08\x01"), &arena, &c, &e), ERR_SYNTAX);
    ck_assert_str_eq(e.text, "PreStartContainerRequest: field 1 has wire type 0, expected 2");
}

static enum errc read_requests(void *ctx)
{
    struct arena a;
    struct allocate_request r;
    struct preferred_request p;
    (void)ctx;
    arena_init(&a, ARENA_BYTES);
    enum errc code = allocate_request_read(STR("\x0a\x03\x0a\x01z\x0a\x03\x0a\x01y"), &a, &r, NULL);
    if (code == OK)
        code = preferred_request_read(STR("\x0a\x06\x0a\x01z\x12\x01z"), &a, &p, NULL);
    arena_done(&a);
    return code;
}

TEST(test_no_memory)
{
    ck_assert_uint_gt(fail_alloc_each(read_requests, NULL), 0);
}

int main(void)
{
    TCase *t = unit_case("device_plugin");
    tcase_add_checked_fixture(t, set_up, tear_down);
    return unit_run();
}
