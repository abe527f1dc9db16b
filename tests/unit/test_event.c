/* jansson reads what event.h writes; where the form matters, bytes are compared. */
#include "objects/event.h"

#include "fail_alloc.h"
#include "unit.h"

#include <jansson.h>

static struct buf out;
static struct jwrite w;

static void set_up(void)
{
    buf_init(&out, (size_t)65536);
    jwrite_init(&w, &out);
}

static void tear_down(void)
{
    buf_done(&out);
}

static const struct kube_event bound = {
    .pod = {STR("team-a"), STR("train-0"), STR("8f3c-1")},
    .level = EVENT_WARNING,
    .reason = STR("FailedBinding"),
    .message = STR("no \"card\"\nhas \xe2\x82\xac 8"),
    .first_ns = UINT64_C(1795199998765432100),
    .last_ns = UINT64_C(1795200059999999999),
    .count = 3,
};

static json_t *written(void)
{
    json_error_t error;
    ck_assert(!buf_failed(&out));
    json_t *root = json_loadb(out.p, out.n, JSON_REJECT_DUPLICATES, &error);
    ck_assert_msg(root != NULL, "%s in %.*s", error.text, (int)out.n, out.p);
    return root;
}

static const char *text(const json_t *object, const char *key)
{
    const char *s = json_string_value(json_object_get(object, key));
    ck_assert_msg(s != NULL, "no string %s", key);
    return s;
}

TEST(a_new_one)
{
    event_write(&w, &bound);
    json_t *root = written();
    ck_assert_str_eq(text(root, "apiVersion"), "v1");
    ck_assert_str_eq(text(root, "kind"), "Event");
    const json_t *metadata = json_object_get(root, "metadata");
    ck_assert_str_eq(text(metadata, "namespace"), "team-a");
    ck_assert_str_eq(text(metadata, "name"), "train-0.18e9d4e33331fd24");
    const json_t *pod = json_object_get(root, "involvedObject");
    ck_assert_str_eq(text(pod, "apiVersion"), "v1");
    ck_assert_str_eq(text(pod, "kind"), "Pod");
    ck_assert_str_eq(text(pod, "namespace"), "team-a");
    ck_assert_str_eq(text(pod, "name"), "train-0");
    ck_assert_str_eq(text(pod, "uid"), "8f3c-1");
    ck_assert_str_eq(text(json_object_get(root, "source"), "component"), "cardpack");
    ck_assert_str_eq(text(root, "reportingComponent"), "cardpack");
    ck_assert_str_eq(text(root, "type"), "Warning");
    ck_assert_str_eq(text(root, "reason"), "FailedBinding");
    ck_assert_str_eq(text(root, "message"), "no \"card\"\nhas \xe2\x82\xac 8");
    ck_assert_str_eq(text(root, "firstTimestamp"), "2026-11-20T18:39:58Z");
    ck_assert_str_eq(text(root, "lastTimestamp"), "2026-11-20T18:40:59Z");
    ck_assert_int_eq(json_integer_value(json_object_get(root, "count")), 3);
    ck_assert_ptr_null(json_object_get(root, "eventTime"));
    json_decref(root);
}

TEST(a_normal_one)
{
    struct kube_event e = bound;
    e.level = EVENT_NORMAL;
    event_write(&w, &e);
    json_t *root = written();
    ck_assert_str_eq(text(root, "type"), "Normal");
    json_decref(root);
}

/* kubectl describe node looks in the namespace default, for the node's name as UID. */
TEST(one_of_a_node)
{
    struct kube_event e = bound;
    e.pod = (struct event_subject){STR_NULL, STR("gpu-7"), STR("gpu-7")};
    e.component = STR("cardpack-node");
    ck_assert(event_fits(&e.pod, e.reason));
    event_write(&w, &e);
    json_t *root = written();
    const json_t *metadata = json_object_get(root, "metadata");
    ck_assert_str_eq(text(metadata, "namespace"), "default");
    ck_assert_str_eq(text(metadata, "name"), "gpu-7.18e9d4e33331fd24");
    const json_t *node = json_object_get(root, "involvedObject");
    ck_assert_str_eq(text(node, "kind"), "Node");
    ck_assert_str_eq(text(node, "name"), "gpu-7");
    ck_assert_str_eq(text(node, "uid"), "gpu-7");
    ck_assert_ptr_null(json_object_get(node, "namespace"));
    ck_assert_str_eq(text(json_object_get(root, "source"), "component"), "cardpack-node");
    ck_assert_str_eq(text(root, "reportingComponent"), "cardpack-node");
    json_decref(root);
}

TEST(one_that_came_again)
{
    event_write_repeat(&w, &bound);
    ck_assert_str_is(buf_str(&out), "{\"count\":3,\"lastTimestamp\":\"2026-11-20T18:40:59Z\","
                                    "\"message\":\"no \\\"card\\\"\\nhas \xe2\x82\xac 8\"}");
}

/* The API server's field is an int32. */
TEST(a_count_beyond_its_field)
{
    struct kube_event e = bound;
    e.count = UINT64_MAX;
    event_write_repeat(&w, &e);
    ck_assert(str_starts(buf_str(&out), STR("{\"count\":2147483647,")));
    buf_clear(&out, SIZE_MAX);
    jwrite_init(&w, &out);
    event_write(&w, &e);
    ck_assert(str_ends(buf_str(&out), STR("\"count\":2147483647}")));
}

/* A name has at most 253 bytes; after a cut it must still be a DNS name. */
TEST(a_long_pod_name)
{
    char name[EVENT_NAME_BYTES];
    memset(name, 'a', sizeof(name));
    event_put_name(&out, (struct str){name, sizeof(name)}, UINT64_MAX);
    ck_assert_uint_eq(out.n, EVENT_NAME_BYTES);
    ck_assert(str_ends(buf_str(&out), STR("aa.ffffffffffffffff")));
    name[235] = '.';
    name[234] = '-';
    buf_clear(&out, SIZE_MAX);
    event_put_name(&out, (struct str){name, sizeof(name)}, UINT64_MAX);
    ck_assert_uint_eq(out.n, EVENT_NAME_BYTES - 2);
    ck_assert(str_ends(buf_str(&out), STR("aa.ffffffffffffffff")));
    buf_clear(&out, SIZE_MAX);
    event_put_name(&out, (struct str){name, 236}, 1); /* fits without a cut */
    ck_assert_uint_eq(out.n, 238);
}

static const struct {
    size_t plain; /* letters, then characters of three bytes */
    size_t wide;
    bool combined;
    size_t n;
} messages[] = {
    {0, 0, false, 0},      {1024, 0, false, 1024}, {1025, 0, false, 1024},   {0, 341, false, 1023},
    {0, 342, false, 1023}, {1, 341, false, 1024},  {2, 400, false, 1022},    {0, 0, true, 32},
    {992, 0, true, 1024},  {993, 0, true, 1024},   {0, 400, true, 32 + 990},
};

TEST_EACH(a_message_is_cut, COUNT_OF(messages))
{
    struct buf text;
    buf_init(&text, 8192);
    for (size_t i = 0; i < messages[_i].plain; i++)
        buf_putc(&text, 'x');
    for (size_t i = 0; i < messages[_i].wide; i++)
        buf_put(&text, STR("\xe2\x82\xac"));
    event_put_message(&out, buf_str(&text), messages[_i].combined);
    ck_assert_uint_eq(out.n, messages[_i].n);
    struct str said = buf_str(&out);
    if (messages[_i].combined) {
        ck_assert(str_starts(said, STR("(combined from similar events): ")));
        said = str_skip(said, 32);
    }
    ck_assert(str_starts(buf_str(&text), said));
    buf_done(&text);
}

/* kubectl describe would show them to a terminal as they are. */
TEST(a_message_is_printable)
{
    struct buf text;
    event_put_message(
        &out, STR("\x1b[2J \xc2\x9b \xe2\x80\xae\xe2\x80\xac \xe2\x81\xa6\xe2\x81\xa9 \xc3\xa4"),
        false);
    ck_assert_str_is(buf_str(&out), "\\x1b[2J \\x9b \\u202e\\u202c \\u2066\\u2069 \xc3\xa4");
    buf_init(&text, 8192);
    for (size_t i = 0; i < 500; i++)
        buf_put(&text, STR("\xc2\x9b"));
    buf_clear(&out, SIZE_MAX);
    event_put_message(&out, buf_str(&text), true);
    ck_assert_uint_eq(out.n, 32 + 992);
    ck_assert(str_ends(buf_str(&out), STR("\\x9b\\x9b")));
    buf_done(&text);
}

static char long_text[EVENT_NAME_BYTES + 1];

#define LONG(n) ((struct str){long_text, (n)})

static const struct {
    struct event_subject pod;
    struct str reason;
    bool fits;
} subjects[] = {
    {{STR("ns"), STR("p"), STR("u")}, STR("R"), true},
    {{STR(""), STR("p"), STR("u")}, STR("R"), false},
    {{STR("ns"), STR(""), STR("u")}, STR("R"), false},
    {{STR("ns"), STR("p"), STR("")}, STR("R"), false},
    {{STR("ns"), STR("p"), STR("u")}, STR(""), false},
    {{LONG(63), LONG(253), LONG(128)}, LONG(128), true},
    {{LONG(64), STR("p"), STR("u")}, STR("R"), false},
    {{STR("ns"), LONG(254), STR("u")}, STR("R"), false},
    {{STR("ns"), STR("p"), LONG(129)}, STR("R"), false},
    {{STR("ns"), STR("p"), STR("u")}, LONG(129), false},
};

TEST_EACH(what_fits, COUNT_OF(subjects))
{
    ck_assert(event_fits(&subjects[_i].pod, subjects[_i].reason) == subjects[_i].fits);
}

static enum errc write_both(void *ctx)
{
    (void)ctx;
    struct buf b;
    struct jwrite into;
    buf_init(&b, (size_t)65536);
    jwrite_init(&into, &b);
    event_write(&into, &bound);
    event_write_repeat(&into, &bound);
    enum errc code = buf_fault(&b);
    buf_done(&b);
    return code;
}

TEST(without_memory)
{
    ck_assert_uint_gt(fail_alloc_each(write_both, NULL), 1);
}

int main(void)
{
    TCase *tc = unit_case("all");
    tcase_add_checked_fixture(tc, set_up, tear_down);
    return unit_run();
}
