/* The kubelet's checkpoint, in its present and its older form. */
#include "fail_alloc.h"
#include "kubelet/checkpoint.h"
#include "unit.h"

#define ARENA_BYTES ((size_t)1 << 20)

static struct arena arena;

static void set_up(void)
{
    arena_init(&arena, ARENA_BYTES);
}

static void tear_down(void)
{
    arena_done(&arena);
}

#define CHECKPOINT                                                                                \
    "{\"Data\":{\"PodDeviceEntries\":["                                                           \
    "{\"PodUID\":\"u1\",\"ContainerName\":\"c\",\"ResourceName\":\"x/gpu\","                      \
    "\"DeviceIDs\":{\"-1\":[\"0.1\",\"0.2\"],\"0\":[\"0.\\u0033\"]},\"AllocResp\":\"CgYKAUE=\"}," \
    "{\"PodUID\":\"u2\",\"ContainerName\":\"d\",\"ResourceName\":\"x/gpu\",\"DeviceIDs\":null},"  \
    "{\"PodUID\":\"u3\",\"ContainerName\":\"e\",\"ResourceName\":\"y\",\"DeviceIDs\":[\"a\"]}],"  \
    "\"RegisteredDevices\":{\"x/gpu\":[\"0.1\"]}},\"Checksum\":18446744073709551615}"

TEST(test_checkpoint)
{
    struct err e = ERR_INIT;
    struct checkpoint c;
    ck_assert_ok(checkpoint_read(STR(CHECKPOINT), &arena, &c, &e), &e);
    ck_assert_uint_eq(c.n_entries, 3);
    ck_assert_str_is(c.entries[0].pod_uid, "u1");
    ck_assert_str_is(c.entries[0].container, "c");
    ck_assert_str_is(c.entries[0].resource, "x/gpu");
    ck_assert_uint_eq(c.entries[0].n_ids, 3);
    ck_assert_str_is(c.entries[0].ids[1], "0.2");
    ck_assert_str_is(c.entries[0].ids[2], "0.3");
    ck_assert_uint_eq(c.entries[1].n_ids, 0);
    ck_assert_uint_eq(c.entries[2].n_ids, 1);
    ck_assert_str_is(c.entries[2].ids[0], "a");
}

static const struct {
    const char *json;
    enum errc code;
    size_t n;
} cases[] = {
    {"{\"Data\":{\"PodDeviceEntries\":null,\"RegisteredDevices\":{}},\"Checksum\":1}", OK, 0},
    {"{\"Data\":{}}", OK, 0},
    {"{\"Data\":{\"PodDeviceEntries\":[{}]}}", OK, 1},
    {"{\"Data\":{\"PodDeviceEntries\":[{},{}],\"PodDeviceEntries\":[{}]}}", OK, 1},
    {"{\"Checksum\":1}", ERR_SYNTAX, 0},
    {"null", ERR_SYNTAX, 0},
    {"", ERR_SYNTAX, 0},
    {"{\"Data\":{\"PodDeviceEntries\":[{\"DeviceIDs\":\"a\"}]}}", ERR_SYNTAX, 0},
    {"{\"Data\":{\"PodDeviceEntries\":[{\"DeviceIDs\":{\"0\":\"a\"}}]}}", ERR_SYNTAX, 0},
    {"{\"Data\":{\"PodDeviceEntries\":[{\"DeviceIDs\":[7]}]}}", ERR_SYNTAX, 0},
    {"{\"Data\":{\"PodDeviceEntries\":[{\"PodUID\":7}]}}", ERR_SYNTAX, 0},
    {"{\"Data\":{\"PodDeviceEntries\":[{}]}", ERR_SYNTAX, 0},
    {"{\"Data\":{}}x", ERR_SYNTAX, 0},
};

TEST_EACH(test_case, COUNT_OF(cases))
{
    struct err e = ERR_INIT;
    struct checkpoint c;
    enum errc code = checkpoint_read(str_of(cases[_i].json), &arena, &c, &e);
    ck_assert_msg(code == cases[_i].code, "%s: %s", cases[_i].json, e.text);
    if (code == OK)
        ck_assert_uint_eq(c.n_entries, cases[_i].n);
}

static enum errc read_checkpoint(void *ctx)
{
    struct arena a;
    struct checkpoint c;
    (void)ctx;
    arena_init(&a, ARENA_BYTES);
    enum errc code = checkpoint_read(STR(CHECKPOINT), &a, &c, NULL);
    arena_done(&a);
    return code;
}

TEST(test_no_memory)
{
    ck_assert_uint_gt(fail_alloc_each(read_checkpoint, NULL), 0);
}

int main(void)
{
    TCase *t = unit_case("checkpoint");
    tcase_add_checked_fixture(t, set_up, tear_down);
    return unit_run();
}
