/* CDI specs: the bytes, and what is read back. */
#include "kubelet/cdi.h"

#include "base/limit.h"
#include "unit.h"

static const struct str envs[] = {STR("A=1"), STR("B=x=\"y\"")};
static const struct plugin_node nodes[] = {{STR("/dev/nvidia0"), STR("/dev/nvidia0"), STR("rw")}};
static const struct cdi_device device = {.kind = STR("cardpack.io/alloc"),
                                         .name = STR("a1"),
                                         .envs = envs,
                                         .n_envs = COUNT_OF(envs),
                                         .nodes = nodes,
                                         .n_nodes = COUNT_OF(nodes)};

TEST(test_write)
{
    char bytes[512];
    struct buf out = BUF_ON(bytes);
    cdi_write(&out, &device);
    ck_assert_str_is(buf_str(&out),
                     "{\"cdiVersion\":\"0.3.0\",\"kind\":\"cardpack.io/alloc\",\"devices\":["
                     "{\"name\":\"a1\",\"containerEdits\":{\"env\":[\"A=1\",\"B=x=\\\"y\\\"\"],"
                     "\"deviceNodes\":[{\"path\":\"/dev/nvidia0\",\"permissions\":\"rw\"}]}}]}");
    struct cdi_device bare = {.kind = STR("a.b/c"), .name = STR("d"), .envs = envs, .n_envs = 1};
    buf_clear(&out, SIZE_MAX);
    cdi_write(&out, &bare);
    ck_assert_str_is(buf_str(&out), "{\"cdiVersion\":\"0.3.0\",\"kind\":\"a.b/c\",\"devices\":["
                                    "{\"name\":\"d\",\"containerEdits\":{\"env\":[\"A=1\"]}}]}");
}

/* No type: that needs a newer version of CDI. */
TEST(test_mounts)
{
    static const struct plugin_mount mounts[] = {
        {.container_path = STR("/c"), .host_path = STR("/h")},
        {.container_path = STR("/d"), .host_path = STR("/d"), .read_only = true}};
    char bytes[512];
    struct buf out = BUF_ON(bytes);
    struct cdi_device d = {.kind = STR("a.b/c"),
                           .name = STR("d"),
                           .envs = envs,
                           .n_envs = 1,
                           .mounts = mounts,
                           .n_mounts = COUNT_OF(mounts)};
    cdi_write(&out, &d);
    ck_assert_str_is(buf_str(&out),
                     "{\"cdiVersion\":\"0.3.0\",\"kind\":\"a.b/c\",\"devices\":["
                     "{\"name\":\"d\",\"containerEdits\":{\"env\":[\"A=1\"],\"mounts\":["
                     "{\"hostPath\":\"/h\",\"containerPath\":\"/c\","
                     "\"options\":[\"rw\",\"nosuid\",\"nodev\",\"bind\"]},"
                     "{\"hostPath\":\"/d\",\"containerPath\":\"/d\","
                     "\"options\":[\"ro\",\"nosuid\",\"nodev\",\"bind\"]}]}}]}");
}

TEST(test_read)
{
    char bytes[512];
    struct buf out = BUF_ON(bytes);
    struct arena a;
    struct err e = ERR_INIT;
    struct str found;
    arena_init(&a, KIB);
    cdi_write(&out, &device);
    ck_assert_ok(cdi_read_env(buf_str(&out), &a, STR("a1"), STR("B"), &found, &e), &e);
    ck_assert_str_is(found, "x=\"y\"");
    ck_assert_ok(cdi_read_env(buf_str(&out), &a, STR("a1"), STR("C"), &found, &e), &e);
    ck_assert_ptr_null(found.p);
    arena_done(&a);
}

static const struct {
    const char *json;
    enum errc code;
} others[] = {
    {"", ERR_SYNTAX},
    {"{}", ERR_SYNTAX},
    {"{\"devices\":[]}", ERR_SYNTAX},
    {"{\"devices\":[{\"name\":\"a2\"}]}", ERR_SYNTAX},
    {"{\"devices\":[{\"name\":\"a1\"},{\"name\":\"a1\"}]}", ERR_SYNTAX},
    {"{\"devices\":[{\"name\":\"a1\",\"containerEdits\":{\"env\":[\"A=1\"]}}]", ERR_SYNTAX},
    {"{\"devices\":[{\"name\":\"a1\",\"containerEdits\":{\"env\":[\"A\",null]}}]}", OK},
    {"{\"devices\":[{\"name\":\"a1\"}],\"kind\":7}", OK},
};

TEST_EACH(test_others, COUNT_OF(others))
{
    struct arena a;
    struct err e = ERR_INIT;
    struct str found = STR("?");
    arena_init(&a, KIB);
    ck_assert_int_eq(cdi_read_env(str_of(others[_i].json), &a, STR("a1"), STR("A"), &found, &e),
                     others[_i].code);
    ck_assert(others[_i].code == OK ? found.p == NULL : str_eq(found, STR("?")));
    arena_done(&a);
}
