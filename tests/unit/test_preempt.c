/* The preempt verb's arguments and result: reading, writing and lack of memory. */
#include "extender/extender_preempt.h"

#include "fail_alloc.h"
#include "unit.h"
#include "wire.h"

#include <signal.h>

#define POD "\"Pod\":{\"metadata\":{\"name\":\"p\",\"uid\":\"pu\"}}"

struct reading {
    struct arena arena;
    struct preempt_args args;
    struct err err;
};

static enum errc begin(struct reading *x, struct str body)
{
    arena_init(&x->arena, 256 * MIB);
    x->err = ERR_INIT;
    return extender_preempt_read(body, &x->arena, &x->args, &x->err);
}

static void end(struct reading *x)
{
    arena_done(&x->arena);
}

/* Writes "node violations:uid,uid node ...". */
static void put_nodes(struct buf *out, const struct preempt_args *args)
{
    for (size_t i = 0; i < args->n; i++) {
        const struct node_victims *node = &args->nodes[i];
        buf_printf(out, "%s%.*s %lld:", i == 0 ? "" : " ", STR_ARG(node->node),
                   (long long)node->num_pdb_violations);
        for (size_t j = 0; j < node->n; j++)
            buf_printf(out, "%s%.*s", j == 0 ? "" : ",", STR_ARG(node->uids[j]));
    }
}

#define META(nodes)  "{" POD ",\"NodeNameToVictims\":null,\"NodeNameToMetaVictims\":{" nodes "}}"
#define WHOLE(nodes) "{" POD ",\"NodeNameToVictims\":{" nodes "}}"
#define UID(u)       "{\"UID\":\"" u "\"}"
#define OBJECT(u)    "{\"spec\":{\"uid\":1},\"metadata\":{\"name\":\"v\",\"uid\":\"" u "\"}}"

static const struct {
    const char *body;
    const char *nodes;
} good[] = {
    {META("\"a\":{\"Pods\":[" UID("1") "," UID("2") "],\"NumPDBViolations\":3}"), "a 3:1,2"},
    {WHOLE("\"a\":{\"Pods\":[" OBJECT("1") "," OBJECT("2") "],\"NumPDBViolations\":3}"), "a 3:1,2"},
    {META("\"a\":{\"Pods\":[" UID("1") "]},\"b\":{\"Pods\":[" UID("2") "," UID("3") "]}"),
     "a 0:1 b 0:2,3"},
    {META(""), ""},
    {WHOLE(""), ""},
    /* Nodes without victims, which the newest schedulers send, in all forms. */
    {META("\"a\":{\"Pods\":[],\"NumPDBViolations\":0},\"b\":{\"Pods\":null},\"c\":{},\"d\":null"),
     "a 0: b 0: c 0: d 0:"},
    {WHOLE("\"a\":{\"Pods\":[]},\"b\":{\"Pods\":null},\"c\":{},\"d\":null"), "a 0: b 0: c 0: d 0:"},
    {META("\"a\":{\"Pods\":[]},\"b\":{\"Pods\":[" UID("1") "]},\"c\":null"), "a 0: b 0:1 c 0:"},
    /* With both forms the UIDs count, in either order; null does not count. */
    {"{" POD ",\"NodeNameToVictims\":{\"x\":null},\"NodeNameToMetaVictims\":{\"a\":null}}", "a 0:"},
    {"{" POD ",\"NodeNameToMetaVictims\":{\"a\":null},\"NodeNameToVictims\":{\"x\":null}}", "a 0:"},
    {"{" POD ",\"NodeNameToMetaVictims\":{},\"NodeNameToVictims\":{\"x\":null}}", ""},
    {"{" POD ",\"NodeNameToMetaVictims\":null,\"NodeNameToVictims\":{\"x\":null}}", "x 0:"},
    /* Keys in any case, and escaped; keys of Kubernetes' own objects only as they are. */
    {"{\"pOD\":{\"metadata\":{\"name\":\"p\"}},\"nodenametometavictims\":{\"A\":{\"pods\":[{"
     "\"uid\":\"1\"},{\"Uid\":\"2\"}],\"numPdbViolations\":1}}}",
     "A 1:1,2"},
    {"{" POD ",\"nodeNameToVictims\":{\"a\":{\"PODS\":[" OBJECT("1") "]}}}", "a 0:1"},
    {META("\"\\u0061\":{\"P\\u006fds\":[" UID("\\u0031") "]}"), "a 0:1"},
    /* Of duplicate keys the last one counts; null clears the earlier value. */
    {META("\"a\":{\"Pods\":[" UID("1") "," UID("2") "],\"Pods\":[" UID("3") "]}"), "a 0:3"},
    {META("\"a\":{\"Pods\":[" UID("1") "],\"pods\":null},\"b\":{\"Pods\":[" UID("2") "]}"),
     "a 0: b 0:2"},
    {META("\"a\":{\"Pods\":[{\"UID\":\"1\",\"uid\":\"2\"}],\"NumPDBViolations\":1,"
          "\"NumPDBViolations\":null}"),
     "a 0:2"},
    {META("\"a\":{\"Pods\":[" UID("1") "],\"NumPDBViolations\":1},\"a\":{\"Pods\":[" UID("2") "]}"),
     "a 0:2"},
    {META("\"b\":{\"Pods\":[" UID("1") "]},\"a\":{\"Pods\":[" UID("2") "]},\"b\":{\"Pods\":[" UID(
         "3") "]},\"a\":{\"Pods\":[" UID("4") "]},\"b\":{\"Pods\":[" UID("5") "]}"),
     "a 0:4 b 0:5"},
    {"{" POD ",\"NodeNameToMetaVictims\":{\"x\":{\"Pods\":[" UID(
         "1") "]}},"
              "\"NodeNameToMetaVictims\":{\"a\":{\"Pods\":[" UID("2") "]}}}",
     "a 0:2"},
    {"{" POD ",\"NodeNameToMetaVictims\":{\"x\":null},\"nodenametometavictims\":null,"
     "\"NodeNameToVictims\":{\"a\":null}}",
     "a 0:"},
    /* Sorted by name. */
    {META(
         "\"c\":{\"Pods\":[" UID("3") "]},\"a\":{\"Pods\":[" UID("1") "," UID("0") "]},\"b\":null"),
     "a 0:1,0 b 0: c 0:3"},
    {META("\"n10\":null,\"n1\":null,\"n\":null,\"n2\":null,\"n10\":{\"Pods\":[" UID("1") "]}"),
     "n 0: n1 0: n10 0:1 n2 0:"},
    {" { " POD " , \"Unknown\" : [{\"Pod\":null}] , \"NodeNameToMetaVictims\" : { } } \n", ""},
    {META("\"a\":{\"NumPDBViolations\":-1,\"Pods\":[{\"Name\":{},\"UID\":\"1\"}],\"x\":[1]}"),
     "a -1:1"},
};

TEST_EACH(reads_arguments, COUNT_OF(good))
{
    struct reading x;
    struct buf nodes;
    ck_assert_ok(begin(&x, str_of(good[_i].body)), &x.err);
    buf_init(&nodes, 4096);
    put_nodes(&nodes, &x.args);
    ck_assert_str_is(buf_str(&nodes), good[_i].nodes);
    ck_assert_str_is(x.args.pod.name, "p");
    buf_done(&nodes);
    end(&x);
}

#define E "ExtenderPreemptionArgs: "

static const struct {
    const char *body;
    const char *error;
} bad[] = {
    {"", E "expected a value, got the end at offset 0"},
    {"null", E "must be a JSON object"},
    {"[]", E "must be a JSON object"},
    {"{\"NodeNameToMetaVictims\":{}}", E "Pod is absent"},
    {"{\"Pod\":null,\"NodeNameToMetaVictims\":{}}", E "Pod is absent"},
    {"{" POD ",\"pod\":null,\"NodeNameToMetaVictims\":{}}", E "Pod is absent"},
    {"{" POD "}", E "NodeNameToVictims and NodeNameToMetaVictims are both absent"},
    {"{" POD ",\"NodeNameToVictims\":null,\"NodeNameToMetaVictims\":null}",
     E "NodeNameToVictims and NodeNameToMetaVictims are both absent"},
    {"{" POD ",\"NodeNameToMetaVictims\":[]}",
     E "NodeNameToMetaVictims: expected an object, got a list at offset 68"},
    {META("\"a\":[]"), E "NodeNameToMetaVictims.a: expected an object, got a list at offset 98"},
    {META("\"a\":{\"Pods\":{}}"),
     E "NodeNameToMetaVictims.a.Pods: expected a list, got an object at offset 106"},
    {META("\"a\":{\"Pods\":[" UID("1") ",{\"UID\":2}]}"),
     E "NodeNameToMetaVictims.a.Pods[1].UID: expected a string, got a number at offset 126"},
    {META("\"a\":{\"Pods\":[" UID("1") ",{}]}"),
     E "NodeNameToMetaVictims.a.Pods[1]: a victim without UID"},
    {META("\"a\":{\"Pods\":[null]}"), E "NodeNameToMetaVictims.a.Pods[0]: a victim without UID"},
    {META("\"a\":{\"Pods\":[{\"UID\":\"1\",\"UID\":null}]}"),
     E "NodeNameToMetaVictims.a.Pods[0]: a victim without UID"},
    {META("\"a\":{\"Pods\":[{\"UID\":\"\"}]}"),
     E "NodeNameToMetaVictims.a.Pods[0]: a victim without UID"},
    {WHOLE("\"a\":{\"Pods\":[{\"metadata\":{\"name\":\"v\"}}]}"),
     E "NodeNameToVictims.a.Pods[0]: a victim without metadata.uid"},
    {WHOLE("\"a\":{\"Pods\":[{\"UID\":\"1\"}]}"),
     E "NodeNameToVictims.a.Pods[0]: a victim without metadata.uid"},
    {WHOLE("\"a\":{\"Pods\":[{\"metadata\":{\"UID\":\"1\"}}]}"),
     E "NodeNameToVictims.a.Pods[0]: a victim without metadata.uid"},
    {META("\"a\":{\"NumPDBViolations\":\"1\"}"),
     E "NodeNameToMetaVictims.a.NumPDBViolations: expected an integer, got a string at offset 118"},
    {META("\"\":{}"), E "NodeNameToMetaVictims[]: victims of a node without a name"},
    {META("") "x", E "expected the end, got 'x' at offset 96"},
};

TEST_EACH(names_what_is_wrong, COUNT_OF(bad))
{
    struct reading x;
    ck_assert_int_eq(begin(&x, str_of(bad[_i].body)), ERR_SYNTAX);
    ck_assert_str_eq(x.err.text, bad[_i].error);
    end(&x);
}

#define PER_NODE(i) ((i) % 5)

/* The step sets the order of the names. Each node has PER_NODE victims, whose UIDs name the
 * node. */
static void put_many(struct buf *out, unsigned n, unsigned step, const char *tag)
{
    buf_put(out, STR("\"NodeNameToMetaVictims\":{"));
    for (unsigned i = 0; i < n; i++) {
        unsigned node = (unsigned)((uint64_t)i * step % n);
        buf_printf(out, "%s\"n%05u\":{\"Pods\":[", i == 0 ? "" : ",", node);
        for (unsigned j = 0; j < PER_NODE(node); j++)
            buf_printf(out, "%s{\"UID\":\"%s%u\\u002d%u\"}", j == 0 ? "" : ",", tag, node, j);
        buf_printf(out, "],\"NumPDBViolations\":%u}", node);
    }
    buf_putc(out, '}');
}

static void check_many(const struct preempt_args *args, unsigned n)
{
    ck_assert_uint_eq(args->n, n);
    for (unsigned i = 0; i < n; i++) {
        char text[40];
        const struct node_victims *node = &args->nodes[i];
        (void)snprintf(text, sizeof(text), "n%05u", i);
        ck_assert_str_is(node->node, text);
        ck_assert_int_eq(node->num_pdb_violations, i);
        ck_assert_uint_eq(node->n, PER_NODE(i));
        for (unsigned j = 0; j < node->n; j++) {
            (void)snprintf(text, sizeof(text), "b%u-%u", i, j);
            ck_assert_str_is(node->uids[j], text);
        }
    }
}

/* Arrays grow while nodes point into them, in any order; a duplicate map starts again from
 * empty. */
TEST_EACH(keeps_the_victims_of_many_nodes_apart, 8)
{
    static const struct {
        unsigned n;
        unsigned step; /* relatively prime to n */
    } shapes[] = {{1, 1}, {2, 1}, {15, 1}, {16, 7}, {17, 5}, {33, 32}, {1000, 1}, {1000, 333}};

    for (size_t before = 0; before < COUNT_OF(shapes); before++) {
        struct reading x;
        struct buf body;
        buf_init(&body, 4 * MIB);
        buf_put(&body, STR("{" POD ","));
        put_many(&body, shapes[before].n, shapes[before].step, "a");
        buf_putc(&body, ',');
        put_many(&body, shapes[_i].n, shapes[_i].step, "b");
        buf_putc(&body, '}');
        ck_assert_ok(begin(&x, buf_str(&body)), &x.err);
        check_many(&x.args, shapes[_i].n);
        end(&x);
        buf_done(&body);
    }
}

/* Bodies that real schedulers sent. */
static const struct {
    const char *file;
    const char *nodes;
} captured[] = {
    {"kube-scheduler-1.36.3/preempt.json", "node-00000 0:d15d0d06-1640-4dda-b3f9-534449e9a932 "
                                           "node-00001 0:fc15eef9-bffe-462f-bac4-cdb831312a72 "
                                           "node-00002 0:8322508d-2a14-401d-8241-3033d65010ad"},
    {"kube-scheduler-1.36.3/preempt-nodes.json",
     "node-00000 0:e956661b-5e4c-42a2-b16d-7d5630170292 "
     "node-00001 0:2baf65e9-3bd7-43c8-bf83-f3502986f362 "
     "node-00002 0:51b4a185-0a6a-4d39-b4f5-970be5425737"},
};

TEST_EACH(reads_what_schedulers_send, COUNT_OF(captured))
{
    struct reading x;
    struct buf body;
    struct buf nodes;
    wire_load(&body, captured[_i].file);
    buf_init(&nodes, 4096);
    ck_assert_ok(begin(&x, buf_str(&body)), &x.err);
    put_nodes(&nodes, &x.args);
    ck_assert_str_is(buf_str(&nodes), captured[_i].nodes);
    ck_assert_str_is(x.args.pod.name, "hi-0");
    ck_assert_str_is(x.args.pod.namespace, "default");
    ck_assert_uint_eq(x.args.pod.n_containers, 1);
    buf_done(&nodes);
    buf_done(&body);
    end(&x);
}

#define ANSWER(nodes) "{\"NodeNameToMetaVictims\":{" nodes "}}"

static const struct {
    const char *body;
    const char *answer;
} answers[] = {
    {META("\"a\":{\"Pods\":[" UID("1") "," UID("2") "],\"NumPDBViolations\":3}"),
     ANSWER("\"a\":{\"Pods\":[" UID("1") "," UID("2") "],\"NumPDBViolations\":3}")},
    {WHOLE("\"b\":{\"Pods\":[" OBJECT("2") "]},\"a\":{\"Pods\":[" OBJECT("1") "]}"),
     ANSWER("\"a\":{\"Pods\":[" UID("1") "],\"NumPDBViolations\":0},\"b\":{\"Pods\":[" UID(
         "2") "],\"NumPDBViolations\":0}")},
    /* The list of victims is never empty. */
    {META("\"a\":{\"Pods\":[]},\"b\":{\"Pods\":[" UID("1") "]},\"c\":null"),
     ANSWER("\"b\":{\"Pods\":[" UID("1") "],\"NumPDBViolations\":0}")},
    {META("\"a\":{\"Pods\":[]}"), ANSWER("")},
    {META(""), ANSWER("")},
    {META("\"a\\\"\\n\":{\"Pods\":[" UID("\\u0000\\\\") "]}"),
     ANSWER("\"a\\\"\\n\":{\"Pods\":[" UID("\\u0000\\\\") "],\"NumPDBViolations\":0}")},
};

TEST_EACH(answers_in_uids, COUNT_OF(answers))
{
    struct reading x;
    struct buf out;
    ck_assert_ok(begin(&x, str_of(answers[_i].body)), &x.err);
    buf_init(&out, MIB);
    extender_preempt_write(&out, x.args.nodes, x.args.n);
    ck_assert(!buf_failed(&out));
    ck_assert_str_is(buf_str(&out), answers[_i].answer);
    buf_done(&out);
    end(&x);
}

/* The result for a captured body equals that body's part with UIDs. */
TEST(answers_the_captured_with_its_own_words)
{
    struct reading x;
    struct buf body;
    struct buf out;
    static const struct str key = STR("\"NodeNameToMetaVictims\":");
    wire_load(&body, "kube-scheduler-1.36.3/preempt.json");
    ck_assert_ok(begin(&x, buf_str(&body)), &x.err);
    buf_init(&out, MIB);
    extender_preempt_write(&out, x.args.nodes, x.args.n);
    const char *theirs = memmem(body.p, body.n, key.p, key.n);
    ck_assert_ptr_nonnull(theirs);
    struct str tail = {theirs, (size_t)(body.p + body.n - theirs)};
    ck_assert(str_eq(str_skip(buf_str(&out), 1), str_trim(tail)));
    buf_done(&out);
    buf_done(&body);
    end(&x);
}

START_TEST(no_absent_uid_is_written)
{
    struct buf out;
    struct str uid = STR_NULL;
    const struct node_victims node = {.node = STR("n"), .uids = &uid, .n = 1};
    buf_init(&out, MIB);
    extender_preempt_write(&out, &node, 1);
}

static enum errc read_and_answer(void *ctx)
{
    struct reading x;
    struct buf out;
    const struct buf *body = ctx;
    enum errc code = begin(&x, buf_str(body));
    buf_init(&out, MIB);
    if (code == OK)
        extender_preempt_write(&out, x.args.nodes, x.args.n);
    bool failed = buf_failed(&out);
    buf_done(&out);
    end(&x);
    return failed ? ERR_NOMEM : code;
}

TEST(survives_a_lack_of_memory)
{
    struct buf body;
    buf_init(&body, 4 * MIB);
    buf_put(&body, STR("{" POD ","));
    put_many(&body, 3000, 7, "b");
    buf_putc(&body, '}');
    ck_assert_uint_gt(fail_alloc_each(read_and_answer, &body), 5);
    buf_done(&body);
}

/* At every place where the arena may be full: in the UIDs, in the nodes, in the sort. */
TEST(no_room_is_an_error_of_its_own)
{
    struct buf body;
    size_t good_from = 0;
    buf_init(&body, 4 * MIB);
    buf_put(&body, STR("{" POD ","));
    put_many(&body, 300, 7, "b");
    buf_putc(&body, '}');
    for (size_t room = 0; room < 100000 && good_from == 0; room += 16) {
        struct reading x = {.err = ERR_INIT};
        arena_init(&x.arena, room);
        enum errc code = extender_preempt_read(buf_str(&body), &x.arena, &x.args, &x.err);
        if (code == OK) {
            check_many(&x.args, 300);
            good_from = room;
        } else {
            ck_assert_int_eq(code, ERR_LIMIT);
            ck_assert(str_starts(str_of(x.err.text), STR(E)));
        }
        end(&x);
    }
    ck_assert_uint_gt(good_from, 1000);
    buf_done(&body);
}

int main(void)
{
    TCase *tc = unit_case("preempt");
    tcase_add_test_raise_signal(tc, no_absent_uid_is_written, SIGABRT);
    return unit_run();
}
