/* The extender protocol's arguments and results: reading, writing, limits and lack of memory. */
#include "extender/extender.h"

#include "core/request/request.h"
#include "fail_alloc.h"
#include "unit.h"
#include "wire.h"

#include <limits.h>
#include <stdio.h>

#define POD "\"Pod\":{\"metadata\":{\"name\":\"p\"}}"

struct reading {
    struct arena arena;
    struct filter_args args;
    struct err err;
};

static enum errc read_filter(struct reading *x, struct str body)
{
    arena_init(&x->arena, 256 * MIB);
    x->err = ERR_INIT;
    return extender_read_filter(body, &x->arena, &x->args, &x->err);
}

static void end(struct reading *x)
{
    arena_done(&x->arena);
}

/* The names with spaces between; a NULL name would print as (null). */
static const struct {
    const char *body;
    bool by_name;
    const char *names;
} good[] = {
    {"{" POD ",\"Nodes\":null,\"NodeNames\":[\"a\",\"b\"]}", true, "a b"},
    {"{" POD ",\"NodeNames\":[]}", true, ""},
    {"{" POD ",\"Nodes\":{},\"NodeNames\":null}", false, ""},
    {"{" POD ",\"Nodes\":{\"metadata\":{},\"items\":null}}", false, ""},
    {"{" POD ",\"Nodes\":{\"metadata\":{},\"items\":[]}}", false, ""},
    {"{" POD ",\"Nodes\":{\"items\":[{\"metadata\":{\"name\":\"a\"}}]},\"NodeNames\":null}", false,
     "a"},
    /* NodeNames counts before Nodes, in either order. */
    {"{" POD ",\"Nodes\":{\"items\":[{\"metadata\":{\"name\":\"x\"}}]},\"NodeNames\":[\"a\"]}",
     true, "a"},
    {"{" POD ",\"NodeNames\":[\"a\"],\"Nodes\":{\"items\":[{\"metadata\":{\"name\":\"x\"}}]}}",
     true, "a"},
    {"{" POD ",\"NodeNames\":[],\"Nodes\":{\"items\":[{\"metadata\":{\"name\":\"x\"}}]}}", true,
     ""},
    /* Keys in any case, as Go's decoder accepts; schedulers before 1.17 sent lower-case keys. */
    {"{\"pod\":{\"metadata\":{\"name\":\"p\"}},\"nodenames\":[\"a\"]}", true, "a"},
    {"{\"POD\":{\"metadata\":{\"name\":\"p\"}},\"nodeNames\":[\"a\"]}", true, "a"},
    {"{\"pOd\":{\"metadata\":{\"name\":\"p\"}},\"nodes\":{\"Items\":[{\"metadata\":{\"name\":\"a\"}"
     "}]}}",
     false, "a"},
    /* Escapes as Go writes them, in keys and values. */
    {"{\"\\u0050od\":{\"metadata\":{\"name\":\"\\u0070\"}},\"NodeNames\":["
     "\"\\u003ca\\u003e\\u0026\"]"
     "}",
     true, "<a>&"},
    /* null for a string is the empty string. */
    {"{" POD ",\"NodeNames\":[\"a\",null,\"\"]}", true, "a  "},
    /* Of duplicate keys the last one counts; null clears the earlier value. */
    {"{" POD ",\"NodeNames\":[\"x\"],\"NodeNames\":[\"a\"]}", true, "a"},
    {"{" POD ",\"NodeNames\":[\"x\"],\"nodenames\":null,\"Nodes\":{\"items\":[{\"metadata\":{"
     "\"name\":\"a\"}}]}}",
     false, "a"},
    {"{" POD ",\"NodeNames\":[\"a\"],\"Nodes\":null}", true, "a"},
    {"{" POD ",\"Nodes\":{\"items\":[{\"metadata\":{\"name\":\"x\"}}],\"items\":[{\"metadata\":{"
     "\"name\":\"a\"}}]}}",
     false, "a"},
    {"{" POD ",\"Nodes\":{\"items\":[{\"metadata\":{\"name\":\"x\"}}]},\"Nodes\":{\"items\":[{"
     "\"metadata\":{\"name\":\"a\"}}]}}",
     false, "a"},
    {"{" POD ",\"Unknown\":[1,{\"Pod\":null}],\"NodeNames\":[\"a\"]}", true, "a"},
    {" { " POD " , \"NodeNames\" : [ \"a\" , \"b\" ] } \n", true, "a b"},
};

TEST_EACH(reads_filter_arguments, COUNT_OF(good))
{
    struct reading x;
    struct buf names;
    ck_assert_ok(read_filter(&x, str_of(good[_i].body)), &x.err);
    buf_init(&names, 4096);
    for (size_t i = 0; i < x.args.n; i++) {
        struct str name = x.args.names[i];
        buf_put(&names, i == 0 ? STR("") : STR(" "));
        buf_put(&names, name.p == NULL ? STR("(null)") : name);
    }
    ck_assert_str_is(buf_str(&names), good[_i].names);
    ck_assert_int_eq(x.args.by_name, good[_i].by_name);
    ck_assert_str_is(x.args.pod.name, "p");
    buf_done(&names);
    end(&x);
}

static const struct {
    const char *body;
    const char *error;
} bad[] = {
    {"", "ExtenderArgs: expected a value, got the end at offset 0"},
    {"null", "ExtenderArgs: must be a JSON object"},
    {"[]", "ExtenderArgs: must be a JSON object"},
    {"{}", "ExtenderArgs: arg or pod is nil"},
    {"{\"Pod\":null,\"NodeNames\":[\"a\"]}", "ExtenderArgs: arg or pod is nil"},
    {"{" POD ",\"pod\":null,\"NodeNames\":[\"a\"]}", "ExtenderArgs: arg or pod is nil"},
    {"{" POD "}", "ExtenderArgs: cannot get node names: Nodes and NodeNames are both absent"},
    {"{" POD ",\"Nodes\":null,\"NodeNames\":null}",
     "ExtenderArgs: cannot get node names: Nodes and NodeNames are both absent"},
    {"{" POD ",\"Nodes\":{},\"Nodes\":null}",
     "ExtenderArgs: cannot get node names: Nodes and NodeNames are both absent"},
    {"{" POD ",\"NodeNames\":\"a\"}",
     "ExtenderArgs: NodeNames: expected a list, got a string at offset 45"},
    {"{" POD ",\"NodeNames\":[\"a\",1]}",
     "ExtenderArgs: NodeNames[1]: expected a string, got a number at offset 50"},
    {"{" POD ",\"Nodes\":{\"items\":[{\"metadata\":{}}]}}",
     "ExtenderArgs: Nodes.items[0]: a Node without metadata.name"},
    {"{" POD ",\"Nodes\":{\"items\":[null]}}",
     "ExtenderArgs: Nodes.items[0]: a Node without metadata.name"},
    {"{" POD ",\"NodeNames\":[\"a\"]",
     "ExtenderArgs: expected ',' or '}', got the end at offset 50"},
    {"{" POD ",\"NodeNames\":[\"a\"]} x", "ExtenderArgs: expected the end, got 'x' at offset 52"},
    {"{" POD ",\"NodeNames\":[\"a\xff\"]}",
     "ExtenderArgs: NodeNames[0]: invalid UTF-8 at offset 48"},
};

TEST_EACH(names_what_is_wrong, COUNT_OF(bad))
{
    struct reading x;
    ck_assert_int_eq(read_filter(&x, str_of(bad[_i].body)), ERR_SYNTAX);
    ck_assert_str_eq(x.err.text, bad[_i].error);
    end(&x);
}

static void put_items(struct buf *out, const char *prefix, unsigned n)
{
    buf_put(out, STR("\"items\":["));
    for (unsigned i = 0; i < n; i++)
        buf_printf(out, "%s{\"metadata\":{\"name\":\"%s%u\"}}", i == 0 ? "" : ",", prefix, i);
    buf_put(out, STR("]"));
}

/* A duplicate list replaces the first one entirely; its length must not remain. */
TEST(a_doubled_list_starts_over)
{
    static const unsigned lengths[] = {0, 1, 15, 16, 17, 40, 1000};
    for (size_t i = 0; i < COUNT_OF(lengths); i++) {
        for (size_t j = 0; j < COUNT_OF(lengths); j++) {
            struct reading x;
            struct buf body;
            buf_init(&body, MIB);
            buf_put(&body, STR("{" POD ",\"Nodes\":{"));
            put_items(&body, "x", lengths[i]);
            buf_putc(&body, ',');
            put_items(&body, "a", lengths[j]);
            buf_put(&body, STR("},\"Nodes\":{"));
            put_items(&body, "b", lengths[j]);
            buf_put(&body, STR("}}"));
            ck_assert_ok(read_filter(&x, buf_str(&body)), &x.err);
            ck_assert_uint_eq(x.args.n, lengths[j]);
            for (size_t k = 0; k < x.args.n; k++)
                ck_assert(str_starts(x.args.names[k], STR("b")));
            end(&x);
            buf_done(&body);
        }
    }
}

static enum offer offer_by_name(struct str name)
{
    if (str_starts(name, STR("fit")))
        return OFFER_FITS;
    if (str_starts(name, STR("enough")))
        return OFFER_LEFT_OUT;
    return str_starts(name, STR("never")) ? OFFER_UNRESOLVABLE : OFFER_REFUSED;
}

static struct str reason_by_name(void *ctx, size_t i, bool *ret_common)
{
    const struct filter_args *args = ctx;
    enum offer offer = offer_by_name(args->names[i]);
    ck_assert(offer == OFFER_REFUSED || offer == OFFER_UNRESOLVABLE);
    if (str_eq(args->names[i], STR("never-%")))
        return STR("\"5%\" of %d");
    *ret_common = true;
    return offer == OFFER_UNRESOLVABLE ? STR("no GPU, \"sorry\"")
                                       : STR("Insufficient GPU Memory in one device");
}

static void answer(struct filter_args *args, struct buf *out)
{
    static unsigned char offers[4096];
    static unsigned char kinds[4096];
    ck_assert_uint_le(args->n, sizeof(offers));
    for (size_t i = 0; i < args->n; i++) {
        offers[i] = (unsigned char)offer_by_name(args->names[i]);
        kinds[i] = str_eq(args->names[i], STR("never-%")) ? UCHAR_MAX : offers[i];
    }
    extender_write_filter(out, args, offers, kinds, reason_by_name, args);
}

static const struct {
    const char *body;
    const char *answer;
} answers[] = {
    {"{" POD ",\"NodeNames\":[\"fit-1\",\"full\",\"never\",\"fit-2\"]}",
     "{\"Nodes\":null,\"NodeNames\":[\"fit-1\",\"fit-2\"],\"FailedNodes\":{\"full\":\"Insufficient "
     "GPU Memory in one device\",\"never\":\"no GPU, \\\"sorry\\\"\"},"
     "\"FailedAndUnresolvableNodes\":{\"never\":\"no GPU, \\\"sorry\\\"\"},\"Error\":\"\"}"},
    /* kube-scheduler would take a percent sign in a reason for a verb of a format. */
    {"{" POD ",\"NodeNames\":[\"never-%\"]}",
     "{\"Nodes\":null,\"NodeNames\":[],\"FailedNodes\":{\"never-%\":\"\\\"5 percent\\\" of "
     " percentd\"},\"FailedAndUnresolvableNodes\":{\"never-%\":\"\\\"5 percent\\\" of  percentd\"},"
     "\"Error\":\"\"}"},
    /* Left out: neither feasible nor failed. */
    {"{" POD ",\"NodeNames\":[\"enough-1\",\"fit-1\",\"enough-2\",\"full\"]}",
     "{\"Nodes\":null,\"NodeNames\":[\"fit-1\"],\"FailedNodes\":{\"full\":\"Insufficient GPU "
     "Memory in one device\"},\"FailedAndUnresolvableNodes\":{},\"Error\":\"\"}"},
    {"{" POD ",\"Nodes\":{\"items\":[{\"metadata\":{\"name\":\"enough\"}},"
     "{\"metadata\":{\"name\":\"fit\"}}]}}",
     "{\"Nodes\":{\"metadata\":{},\"items\":[{\"metadata\":{\"name\":\"fit\"}}]},"
     "\"NodeNames\":null,\"FailedNodes\":{},\"FailedAndUnresolvableNodes\":{},\"Error\":\"\"}"},
    /* Names come in runs, which end at a name that is left out, refused, escaped, null or separated
     * by spaces. */
    {"{" POD ",\"NodeNames\":[\"fit-1\",\"fit-2\",\"full\",\"fit-3\",\"fit\\u0034\",\"fit-5\", "
     "\"fit-6\",\"fit-7\",\"enough\",\"fit-8\",\"fit-\xc3\xa9\"]}",
     "{\"Nodes\":null,\"NodeNames\":[\"fit-1\",\"fit-2\",\"fit-3\",\"fit4\",\"fit-5\",\"fit-6\","
     "\"fit-7\",\"fit-8\",\"fit-\xc3\xa9\"],\"FailedNodes\":{\"full\":\"Insufficient GPU Memory in "
     "one device\"},\"FailedAndUnresolvableNodes\":{},\"Error\":\"\"}"},
    {"{" POD ",\"NodeNames\":[]}",
     "{\"Nodes\":null,\"NodeNames\":[],\"FailedNodes\":{},\"FailedAndUnresolvableNodes\":{},"
     "\"Error\":\"\"}"},
    {"{" POD ",\"NodeNames\":[null,\"fit\"]}",
     "{\"Nodes\":null,\"NodeNames\":[\"fit\"],\"FailedNodes\":{\"\":\"Insufficient GPU Memory in "
     "one "
     "device\"},\"FailedAndUnresolvableNodes\":{},\"Error\":\"\"}"},
    /* Whole objects are returned byte by byte. */
    {"{" POD ",\"Nodes\":{\"items\":[ {\"spec\": {} ,\"metadata\":{\"name\":\"fit\"},\"x\":1e5} ,"
     "{\"metadata\":{\"name\":\"full\"}}]}}",
     "{\"Nodes\":{\"metadata\":{},\"items\":[{\"spec\": {} ,\"metadata\":{\"name\":\"fit\"},"
     "\"x\":1e5}]},\"NodeNames\":null,\"FailedNodes\":{\"full\":\"Insufficient GPU Memory in one "
     "device\"},\"FailedAndUnresolvableNodes\":{},\"Error\":\"\"}"},
    {"{" POD ",\"Nodes\":{\"items\":null}}",
     "{\"Nodes\":{\"metadata\":{},\"items\":[]},\"NodeNames\":null,\"FailedNodes\":{},"
     "\"FailedAndUnresolvableNodes\":{},\"Error\":\"\"}"},
};

TEST_EACH(answers_in_the_form_of_the_question, COUNT_OF(answers))
{
    struct reading x;
    struct buf out;
    ck_assert_ok(read_filter(&x, str_of(answers[_i].body)), &x.err);
    buf_init(&out, MIB);
    answer(&x.args, &out);
    ck_assert(!buf_failed(&out));
    ck_assert_str_is(buf_str(&out), answers[_i].answer);
    buf_done(&out);
    end(&x);
}

/* One reason is far longer than the others. */
static struct str reason_of_kind(void *ctx, size_t i, bool *ret_common)
{
    static char text[400];
    const unsigned char *kinds = ctx;
    memset(text, 'x', sizeof(text));
    *ret_common = true;
    return kinds[i] == 1 ? (struct str){text, sizeof(text)} : STR("full");
}

/* An answer that fits below the ceiling and in the budget is written, and one byte less is too
 * little. */
TEST(an_answer_needs_room_for_its_bytes_alone)
{
    static unsigned char offers[2000];
    static unsigned char kinds[2000];
    struct reading x;
    struct buf body;
    struct buf whole;
    struct buf out;
    buf_init(&body, MIB);
    buf_put(&body, STR("{" POD ",\"NodeNames\":["));
    for (unsigned i = 0; i < sizeof(kinds); i++) {
        buf_printf(&body, "%s\"node-%u\"", i == 0 ? "" : ",", i);
        offers[i] = OFFER_REFUSED;
        kinds[i] = i == 0 ? 1 : 2;
    }
    buf_put(&body, STR("]}"));
    ck_assert_ok(read_filter(&x, buf_str(&body)), &x.err);
    buf_init(&whole, MIB);
    extender_write_filter(&whole, &x.args, offers, kinds, reason_of_kind, kinds);
    for (unsigned i = 0; i < 4; i++) {
        bool little = i % 2 == 1;
        struct mem_budget budget = {.max = i < 2 ? MIB : whole.n + 1 - (little ? 1 : 0)};
        struct mem_account account = {.used = 0};
        ck_assert(mem_account_join(&account, &budget, 0));
        buf_init(&out, i < 2 ? whole.n - (little ? 1 : 0) : MIB);
        out.account = &account;
        extender_write_filter(&out, &x.args, offers, kinds, reason_of_kind, kinds);
        ck_assert_msg(buf_failed(&out) == little, "%u", i);
        ck_assert(little || str_eq(buf_str(&out), buf_str(&whole)));
        ck_assert_uint_le(out.n, whole.n);
        buf_done(&out);
        mem_account_leave(&account);
    }
    buf_done(&whole);
    buf_done(&body);
    end(&x);
}

static const struct {
    const char *body;
    const char *list;
} priorities[] = {
    {"{" POD ",\"NodeNames\":[\"b\",\"a\",\"b\"]}",
     "[{\"Host\":\"b\",\"Score\":10},{\"Host\":\"a\",\"Score\":9},{\"Host\":\"b\",\"Score\":8}]"},
    {"{" POD ",\"Nodes\":{\"items\":[{\"metadata\":{\"name\":\"x\"},\"spec\":{}}]}}",
     "[{\"Host\":\"x\",\"Score\":10}]"},
    {"{" POD ",\"NodeNames\":[null,\"\\u0022\"]}",
     "[{\"Host\":\"\",\"Score\":10},{\"Host\":\"\\\"\",\"Score\":9}]"},
    {"{" POD ",\"NodeNames\":[]}", "[]"},
};

TEST_EACH(scores_every_candidate_in_a_bare_list, COUNT_OF(priorities))
{
    static const unsigned char scores[] = {10, 9, 8};
    struct reading x;
    struct buf out;
    ck_assert_ok(read_filter(&x, str_of(priorities[_i].body)), &x.err);
    buf_init(&out, 4096);
    extender_write_priorities(&out, &x.args, scores);
    ck_assert_str_is(buf_str(&out), priorities[_i].list);
    buf_clear(&out, SIZE_MAX);
    extender_write_no_priorities(&out);
    ck_assert_str_is(buf_str(&out), "[]");
    buf_done(&out);
    end(&x);
}

TEST(writes_errors)
{
    struct buf out;
    buf_init(&out, 4096);
    extender_write_filter_error(&out, STR("a \"b\" <c>"));
    ck_assert_str_is(buf_str(&out),
                     "{\"Nodes\":null,\"NodeNames\":null,\"FailedNodes\":null,"
                     "\"FailedAndUnresolvableNodes\":null,\"Error\":\"a \\\"b\\\" <c>\"}");
    buf_clear(&out, 0);
    extender_write_bind(&out, STR(""));
    ck_assert_str_is(buf_str(&out), "{\"Error\":\"\"}");
    buf_clear(&out, 0);
    extender_write_bind(&out, STR("no\n"));
    ck_assert_str_is(buf_str(&out), "{\"Error\":\"no\\\\x0a\"}");
    buf_clear(&out, 0);
    extender_write_bind(&out, STR("\"\x1b[2J\xc2\x9b%\xe2\x80\xae\xe2\x80\xac\xc3\xa4\x7f\xff\""));
    ck_assert_str_is(buf_str(&out), "{\"Error\":\"\\\"\\\\x1b[2J\\\\x9b percent\\\\u202e\\\\u202c"
                                    "\xc3\xa4\\\\x7f\xef\xbf\xbd\\\"\"}");
    buf_clear(&out, 0);
    extender_write_bind(&out, STR("%25% \"%\"\n%"));
    ck_assert_str_is(buf_str(&out),
                     "{\"Error\":\" percent25 percent \\\" percent\\\"\\\\x0a percent\"}");
    buf_clear(&out, 0);
    extender_write_filter_error(&out, STR("100%"));
    ck_assert_str_is(buf_str(&out),
                     "{\"Nodes\":null,\"NodeNames\":null,\"FailedNodes\":null,"
                     "\"FailedAndUnresolvableNodes\":null,\"Error\":\"100 percent\"}");
    buf_done(&out);
}

/* "name namespace uid node", or the error. */
static const struct {
    const char *body;
    const char *result;
} binds[] = {
    {"{\"PodName\":\"p\",\"PodNamespace\":\"ns\",\"PodUID\":\"u\",\"Node\":\"n\"}", "p ns u n"},
    {"{\"podName\":\"p\",\"podNamespace\":\"ns\",\"podUID\":\"u\",\"node\":\"n\"}", "p ns u n"},
    {"{\"PODNAME\":\"p\",\"podnamespace\":\"ns\",\"poduid\":\"u\",\"NODE\":\"n\",\"x\":[]}",
     "p ns u n"},
    {"{\"PodName\":\"x\",\"PodName\":\"\\u0070\",\"PodNamespace\":\"ns\",\"PodUID\":\"u\",\"Node\":"
     "\"n\"}",
     "p ns u n"},
    {"{\"PodName\":\"p\",\"PodNamespace\":\"ns\",\"PodUID\":\"u\"}",
     "ExtenderBindingArgs: Node is empty"},
    {"{\"PodName\":\"p\",\"PodNamespace\":\"ns\",\"PodUID\":null,\"Node\":\"n\"}",
     "ExtenderBindingArgs: PodUID is empty"},
    {"{\"PodName\":\"p\",\"PodNamespace\":\"\",\"PodUID\":\"u\",\"Node\":\"n\"}",
     "ExtenderBindingArgs: PodNamespace is empty"},
    {"{}", "ExtenderBindingArgs: PodName is empty"},
    {"null", "ExtenderBindingArgs: must be a JSON object"},
    {"{\"PodName\":1}",
     "ExtenderBindingArgs: PodName: expected a string, got a number at offset 11"},
    {"", "ExtenderBindingArgs: expected a value, got the end at offset 0"},
};

TEST_EACH(reads_bind_arguments, COUNT_OF(binds))
{
    struct arena arena;
    struct bind_args b;
    struct err e = ERR_INIT;
    char text[300];
    arena_init(&arena, MIB);
    enum errc code = extender_read_bind(str_of(binds[_i].body), &arena, &b, &e);
    if (code == OK)
        (void)snprintf(text, sizeof(text), "%.*s %.*s %.*s %.*s", STR_ARG(b.name),
                       STR_ARG(b.namespace), STR_ARG(b.uid), STR_ARG(b.node));
    else
        (void)snprintf(text, sizeof(text), "%s", e.text);
    ck_assert_str_eq(text, binds[_i].result);
    arena_done(&arena);
}

/* Bodies that real schedulers sent; the answers are in tests/golden/routes. */
static const struct {
    const char *file;
    const char *pod; /* namespace/name uid */
    int64_t mem;
    bool by_name;
    const char *names;
} captured[] = {
    {"kube-scheduler-1.20.2/filter.json", "default/q0 4f1d5926-3c7b-402d-ba45-afc578644881", 4,
     true, "n0 n1"},
    {"kube-scheduler-1.20.2/prioritize.json", "default/q0 4f1d5926-3c7b-402d-ba45-afc578644881", 4,
     true, "n0 n1"},
    {"kube-scheduler-1.36.3/filter.json", "default/low-0 d15d0d06-1640-4dda-b3f9-534449e9a932", 16,
     true, "node-00000"},
    {"kube-scheduler-1.36.3/prioritize.json", "default/low-1 fc15eef9-bffe-462f-bac4-cdb831312a72",
     16, true, "node-00000 node-00001"},
    {"kube-scheduler-1.36.3/filter-nodes.json",
     "default/ext-0 330fae4d-4e00-4741-a6b3-f73b96786285", 16, false,
     "node-00000 node-00002 node-00001"},
    {"kube-scheduler-1.36.3/prioritize-nodes.json",
     "default/ext-0 330fae4d-4e00-4741-a6b3-f73b96786285", 16, false,
     "node-00000 node-00002 node-00001"},
};

TEST_EACH(reads_what_schedulers_send, COUNT_OF(captured))
{
    struct reading x;
    struct buf body;
    struct buf text;
    struct request request;
    wire_load(&body, captured[_i].file);
    buf_init(&text, 4096);
    ck_assert_ok(read_filter(&x, buf_str(&body)), &x.err);
    const struct pod_view *pod = &x.args.pod;
    buf_printf(&text, "%.*s/%.*s %.*s", STR_ARG(pod->namespace), STR_ARG(pod->name),
               STR_ARG(pod->uid));
    ck_assert_str_is(buf_str(&text), captured[_i].pod);
    ck_assert_ok(request_read(pod, &request, &x.err), &x.err);
    ck_assert_int_eq(request.mem, captured[_i].mem);
    ck_assert_str_is(pod->phase, "Pending");
    ck_assert(!pod_view_bound(pod));
    ck_assert_int_eq(x.args.by_name, captured[_i].by_name);
    buf_clear(&text, 0);
    for (size_t i = 0; i < x.args.n; i++)
        buf_printf(&text, "%s%.*s", i == 0 ? "" : " ", STR_ARG(x.args.names[i]));
    ck_assert_str_is(buf_str(&text), captured[_i].names);
    end(&x);
    buf_done(&text);
    buf_done(&body);
}

TEST_EACH(reads_the_bindings_that_schedulers_send, 2)
{
    static const char *const files[] = {"kube-scheduler-1.20.2/bind.json",
                                        "kube-scheduler-1.36.3/bind.json"};
    static const char *const nodes[] = {"n1", "node-00000"};
    struct arena arena;
    struct bind_args b;
    struct buf body;
    struct err e = ERR_INIT;
    wire_load(&body, files[_i]);
    arena_init(&arena, MIB);
    ck_assert_ok(extender_read_bind(buf_str(&body), &arena, &b, &e), &e);
    ck_assert_str_is(b.namespace, "default");
    ck_assert_str_is(b.node, nodes[_i]);
    ck_assert_uint_eq(b.uid.n, 36);
    arena_done(&arena);
    buf_done(&body);
}

static enum errc read_and_answer(void *ctx)
{
    struct reading x;
    struct buf out;
    const struct buf *body = ctx;
    enum errc code = read_filter(&x, buf_str(body));
    buf_init(&out, MIB);
    if (code == OK)
        answer(&x.args, &out);
    bool failed = code == ERR_LIMIT || buf_failed(&out);
    buf_done(&out);
    end(&x);
    return failed ? ERR_NOMEM : code;
}

TEST(survives_a_lack_of_memory)
{
    struct buf body;
    buf_init(&body, MIB);
    buf_put(&body, STR("{" POD ",\"NodeNames\":["));
    for (unsigned i = 0; i < 3000; i++)
        buf_printf(&body, "%s\"%s\\u002d%u\"", i == 0 ? "" : ",", i % 2 == 0 ? "fit" : "no", i);
    buf_put(&body, STR("]}"));
    ck_assert_uint_gt(fail_alloc_each(read_and_answer, &body), 5);
    buf_done(&body);
}

TEST(no_room_is_an_error_of_its_own)
{
    struct arena arena;
    struct filter_args args;
    struct err e = ERR_INIT;
    struct buf body;
    buf_init(&body, MIB);
    buf_put(&body, STR("{" POD ",\"NodeNames\":["));
    for (unsigned i = 0; i < 3000; i++)
        buf_printf(&body, "%s\"n%u\"", i == 0 ? "" : ",", i);
    buf_put(&body, STR("]}"));
    arena_init(&arena, 10000);
    ck_assert_int_eq(extender_read_filter(buf_str(&body), &arena, &args, &e), ERR_LIMIT);
    ck_assert_msg(strstr(e.text, "no room for the nodes of one request") != NULL, "%s", e.text);
    arena_done(&arena);
    buf_done(&body);
}
