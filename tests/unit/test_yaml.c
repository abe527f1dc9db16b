/* YAML to JSON: documents, anchors, tags, limits and refusals. */
#include "json/yaml.h"

#include "unit.h"
#include "json/limit.h"

#include <jansson.h>

#define MAX_OUT ((size_t)1 << 20)

static struct str read_text(struct buf *out, const char *text, bool lines)
{
    struct err err = ERR_INIT;
    buf_init(out, MAX_OUT);
    if (lines)
        ck_assert_ok(yaml_to_json_lines(str_of(text), out, &err), &err);
    else
        ck_assert_ok(yaml_to_json(str_of(text), out, &err), &err);
    return buf_str(out);
}

static const struct {
    const char *yaml, *json;
} goods[] = {
    {"", "null"},
    {"# nothing\n", "null"},
    {"---\n", "null"},
    {"--- # nothing\n...\n", "null"},
    {"a", "\"a\""},
    {"a: 1", "{\"a\":1}"},
    {"\xef\xbb\xbf"
     "a: 1",
     "{\"a\":1}"},
    {"a:\n", "{\"a\":null}"},
    {"- a\n- [b, c]\n- {d: e}\n-\n", "[\"a\",[\"b\",\"c\"],{\"d\":\"e\"},null]"},
    {"a:\n  b:\n  - c: 1\n    d: 2\n", "{\"a\":{\"b\":[{\"c\":1,\"d\":2}]}}"},
    {"a: {}\nb: []\n", "{\"a\":{},\"b\":[]}"},
    {"n: 8\nq: '8'\nd: \"8\"\nb: |\n  8\n", "{\"n\":8,\"q\":\"8\",\"d\":\"8\",\"b\":\"8\\n\"}"},
    {"a: 'true'\nb: \"null\"\nc: ''\n", "{\"a\":\"true\",\"b\":\"null\",\"c\":\"\"}"},
    {"a: yes\nb: off\n", "{\"a\":\"yes\",\"b\":\"off\"}"},
    {"8: a\ntrue: b\n0x10: c\n'8.0': d\n",
     "{\"8\":\"a\",\"true\":\"b\",\"16\":\"c\",\"8.0\":\"d\"}"},
    {"'<<': a\n", "{\"<<\":\"a\"}"},
    {"a: <<\n", "{\"a\":\"<<\"}"},
    {"? a\n: b\n", "{\"a\":\"b\"}"},
    {"a: \"\\u00e4\\n\"\n", "{\"a\":\"\xc3\xa4\\n\"}"},
    {"a: >-\n  b\n  c\n", "{\"a\":\"b c\"}"},
    /* Tags of the core schema. */
    {"a: !!str 8\nb: !!int '8'\nc: !!float 1\nd: !!bool \"true\"\ne: !!null ''\nf: ! 8\n",
     "{\"a\":\"8\",\"b\":8,\"c\":1,\"d\":true,\"e\":null,\"f\":\"8\"}"},
    {"a: !!map {}\nb: !!seq []\n", "{\"a\":{},\"b\":[]}"},
    {"!!str 8: a\n", "{\"8\":\"a\"}"},
    /* Anchors. */
    {"a: &x [1, 2]\nb: *x\nc: *x\n", "{\"a\":[1,2],\"b\":[1,2],\"c\":[1,2]}"},
    {"- &x a\n- *x\n- &x 3\n- *x\n", "[\"a\",\"a\",3,3]"},
    {"- &x [&x 1, *x]\n- *x\n", "[[1,1],1]"},
    {"- &x\n- *x\n", "[null,null]"},
    {"[&x {a: &y {b: c}}, *y, *x]", "[{\"a\":{\"b\":\"c\"}},{\"b\":\"c\"},{\"a\":{\"b\":\"c\"}}]"},
    /* JSON is copied unchanged. */
    {" {\"a\": 1,\n\"a\":2}\n", " {\"a\": 1,\n\"a\":2}\n"},
    {"[\"a\", 1.5e3, null]", "[\"a\",1.5e3,null]"},
};

TEST_EACH(good, COUNT_OF(goods))
{
    struct buf out;
    ck_assert_str_is(read_text(&out, goods[_i].yaml, false), goods[_i].json);
    json_error_t why;
    json_t *parsed = json_loadb(out.p, out.n, JSON_DECODE_ANY, &why);
    ck_assert_msg(parsed != NULL, "%s", why.text);
    json_decref(parsed);
    buf_done(&out);
}

static const struct {
    const char *yaml;
    enum errc code;
    const char *text;
} bads[] = {
    {"a: 1\nb: [\n", ERR_SYNTAX,
     "line 3, column 1: did not find expected node content while parsing a flow node"},
    {"a: 1\n b: 2\n", ERR_SYNTAX,
     "line 2, column 3: mapping values are not allowed in this context"},
    {"a: 1\n\tb: 2\n", ERR_SYNTAX,
     "line 2, column 1: found a tab character that violates indentation while scanning a plain "
     "scalar"},
    {"a: b\nc: \xff\n", ERR_SYNTAX, "line 2, column 4: invalid leading UTF-8 octet"},
    {"a: b\nc: \x01\n", ERR_SYNTAX, "line 2, column 4: control characters are not allowed"},
    {"a: 1\nb: 2\n\"a\": 3\n", ERR_SYNTAX,
     "line 3, column 1: the key \"a\" is there already, on line 1"},
    {"x: {b: 1, a: 2, c: 3, a: 4}", ERR_SYNTAX,
     "line 1, column 23: the key \"a\" is there already, on line 1"},
    {"8: a\n'8': b\n", ERR_SYNTAX, "line 2, column 1: the key \"8\" is there already, on line 1"},
    {"a: &x {b: 1}\nc:\n  <<: *x\n", ERR_SYNTAX,
     "line 3, column 3: the merge key \"<<\" is not supported; spell the fields out"},
    {"[a]: b\n", ERR_SYNTAX, "line 1, column 1: a key must be a scalar"},
    {"? {a: b}\n: c\n", ERR_SYNTAX, "line 1, column 3: a key must be a scalar"},
    {"~: b\n", ERR_SYNTAX, "line 1, column 1: a key cannot be null"},
    {"?\n: b\n", ERR_SYNTAX, "line 1, column 2: a key cannot be null"},
    {"&x a: 1\n", ERR_SYNTAX, "line 1, column 1: a key cannot have an anchor"},
    {"- &x a\n- *x : b\n", ERR_SYNTAX, "line 2, column 3: a key cannot be an alias"},
    {"a: *x\n", ERR_SYNTAX, "line 1, column 4: unknown alias (an unquoted \"*\" begins one)"},
    {"a: &x [*x]\n", ERR_SYNTAX, "line 1, column 8: an alias within its own anchor"},
    {"a: !x b\n", ERR_SYNTAX,
     "line 1, column 4: a tag that is not supported here (an unquoted \"!\" begins one)"},
    {"a: !x []\n", ERR_SYNTAX, "line 1, column 4: a tag that is not supported here"},
    {"a: !!map []\n", ERR_SYNTAX, "line 1, column 4: a tag that is not supported here"},
    {"a: !!binary aGk=\n", ERR_SYNTAX,
     "line 1, column 4: a tag that is not supported here (an unquoted \"!\" begins one)"},
    {"a: !!int x\n", ERR_SYNTAX, "line 1, column 4: a value that is not what its tag says"},
    {"a: !!int 1.5\n", ERR_SYNTAX, "line 1, column 4: a value that is not what its tag says"},
    {"a: .inf\n", ERR_RANGE, "line 1, column 4: a number that JSON does not have"},
    {"a: !!float .nan\n", ERR_RANGE, "line 1, column 4: a number that JSON does not have"},
    {"a: 1\n---\nb: 2\n", ERR_SYNTAX,
     "line 2, column 1: a second document; there must be one only"},
};

TEST_EACH(bad, COUNT_OF(bads))
{
    struct err err = ERR_INIT;
    struct buf out;
    buf_init(&out, MAX_OUT);
    enum errc code = yaml_to_json(str_of(bads[_i].yaml), &out, &err);
    ck_assert_str_eq(err.text, bads[_i].text);
    ck_assert_int_eq(code, bads[_i].code);
    ck_assert_int_eq(err.code, bads[_i].code);
    ck_assert_int_eq(yaml_to_json(str_of(bads[_i].yaml), &out, NULL), bads[_i].code);
    buf_done(&out);
}

static const struct {
    const char *text, *lines;
} many[] = {
    {"", ""},
    {"---\n---\n", ""},
    {"a: 1\n---\nb: 2\n", "{\"a\":1}\n{\"b\":2}\n"},
    {"---\n---\na: 1\n---\n# nothing\n---\nb\n...\n", "{\"a\":1}\n\"b\"\n"},
    {"a: &x 1\n---\nb: &x 2\nc: *x\n", "{\"a\":1}\n{\"b\":2,\"c\":2}\n"},
    {"{\n  \"a b\": [1, \"\\\" {\"]\n}\n", "{\"a b\":[1,\"\\\" {\"]}\n"},
    {"{\"a\":1} {\"b\":\t2}\n\n{}", "{\"a\":1}\n{\"b\":2}\n{}\n"},
};

TEST_EACH(lines, COUNT_OF(many))
{
    struct buf out;
    ck_assert_str_is(read_text(&out, many[_i].text, true), many[_i].lines);
    buf_done(&out);
}

static const struct {
    const char *text, *error;
} bad_many[] = {
    {"a: 1\n---\nb: *x\n", "line 3, column 4: unknown alias (an unquoted \"*\" begins one)"},
    {"a: &x 1\n---\nb: *x\n", "line 3, column 4: unknown alias (an unquoted \"*\" begins one)"},
    {"{\"a\":[1}", "the JSON ends before its last brace"},
    {"{\"a\":\"", "the JSON ends before its last brace"},
    {"{} x", "expected a JSON object at offset 3"},
    {"{}}", "expected a JSON object at offset 2"},
    {"{} \"a\"", "expected a JSON object at offset 4"},
};

TEST_EACH(bad_lines, COUNT_OF(bad_many))
{
    struct err err = ERR_INIT;
    struct buf out;
    buf_init(&out, MAX_OUT);
    ck_assert_int_eq(yaml_to_json_lines(str_of(bad_many[_i].text), &out, &err), ERR_SYNTAX);
    ck_assert_str_eq(err.text, bad_many[_i].error);
    buf_done(&out);
}

/* Writes open n times, "1", close n times. */
static void put_nested(struct buf *b, size_t n, const char *open, const char *close)
{
    for (size_t i = 0; i < n; i++)
        buf_put(b, str_of(open));
    buf_putc(b, '1');
    for (size_t i = 0; i < n; i++)
        buf_put(b, str_of(close));
}

static const struct {
    size_t n;
    const char *open, *close;
    enum errc code;
} depths[] = {
    {LIMIT_JSON_DEPTH, "[", "]", OK},
    {LIMIT_JSON_DEPTH, "- ", "", OK},
    {LIMIT_JSON_DEPTH + 1, "[", "]", ERR_LIMIT},
    {LIMIT_JSON_DEPTH + 1, "- ", "", ERR_LIMIT},
    {LIMIT_JSON_DEPTH, "[{a: ", "}]", ERR_LIMIT},
    {500000, "[", "", ERR_LIMIT},
    {500000, "- ", "", ERR_LIMIT},
    {500000, "[\n", "", ERR_LIMIT},
    {200000, "[{a: ", "}]", ERR_LIMIT},
    {200000, "? ", "", ERR_SYNTAX},
};

TEST_EACH(depth, COUNT_OF(depths))
{
    struct buf text;
    struct buf out;
    buf_init(&text, 4 * MAX_OUT);
    buf_init(&out, 4 * MAX_OUT);
    put_nested(&text, depths[_i].n, depths[_i].open, depths[_i].close);
    ck_assert_int_eq(yaml_to_json(buf_str(&text), &out, NULL), depths[_i].code);
    buf_done(&text);
    buf_done(&out);
}

/* Nesting that only aliases add up to. */
TEST(depth_through_aliases)
{
    struct err err = ERR_INIT;
    struct buf text;
    struct buf out;
    buf_init(&text, MAX_OUT);
    buf_init(&out, MAX_OUT);
    buf_put(&text, STR("a: &a "));
    put_nested(&text, 30, "[", "]");
    buf_put(&text, STR("\nb: &b "));
    put_nested(&text, 30, "[", ", *a]");
    buf_put(&text, STR("\nc: [[*b]]\n"));
    ck_assert_ok(yaml_to_json(buf_str(&text), &out, &err), &err);
    buf_clear(&out, 0);
    buf_put(&text, STR("d: [[[[*b]]]]\n"));
    ck_assert_int_eq(yaml_to_json(buf_str(&text), &out, &err), ERR_LIMIT);
    ck_assert_str_eq(err.text, "line 4, column 8: nested deeper than 64 levels");
    buf_done(&text);
    buf_done(&out);
}

TEST(laughs)
{
    struct err err = ERR_INIT;
    struct buf text;
    struct buf out;
    buf_init(&text, MAX_OUT);
    buf_init(&out, MAX_OUT);
    buf_put(&text, STR("a0: &a0 lol\n"));
    for (int i = 1; i < 30; i++) {
        buf_printf(&text, "a%d: &a%d [", i, i);
        for (int k = 0; k < 10; k++)
            buf_printf(&text, "*a%d,", i - 1);
        buf_put(&text, STR("]\n"));
    }
    ck_assert_int_eq(yaml_to_json(buf_str(&text), &out, &err), ERR_LIMIT);
    ck_assert_str_eq(err.text, "the text, as JSON, does not fit into 1048576 bytes");
    ck_assert_uint_le(out.cap, MAX_OUT + 1);
    buf_done(&text);
    buf_done(&out);
}

/* The work is linear in keys and anchors; otherwise this takes minutes. */
TEST(many_keys_and_anchors)
{
    struct err err = ERR_INIT;
    struct buf text;
    struct buf out;
    buf_init(&text, 8 * MAX_OUT);
    buf_init(&out, 8 * MAX_OUT);
    for (int i = 0; i < 50000; i++)
        buf_printf(&text, "k%d: &a%d %d\n", i, i, i);
    for (int i = 0; i < 50000; i++)
        buf_printf(&text, "l%d: *a%d\n", i, 49999 - i);
    ck_assert_ok(yaml_to_json(buf_str(&text), &out, &err), &err);
    ck_assert(str_ends(buf_str(&out), STR(",\"l49998\":1,\"l49999\":0}")));
    buf_put(&text, STR("k777: again\n"));
    ck_assert_int_eq(yaml_to_json(buf_str(&text), &out, &err), ERR_SYNTAX);
    ck_assert_str_eq(err.text,
                     "line 100001, column 1: the key \"k777\" is there already, on line 778");
    buf_done(&text);
    buf_done(&out);
}

TEST(too_many_anchors)
{
    struct err err = ERR_INIT;
    struct buf text;
    struct buf out;
    buf_init(&text, 8 * MAX_OUT);
    buf_init(&out, 8 * MAX_OUT);
    for (int i = 0; i < 400000; i++)
        buf_printf(&text, "- &a%d 1\n", i);
    ck_assert_int_eq(yaml_to_json(buf_str(&text), &out, &err), ERR_LIMIT);
    ck_assert(str_ends(str_of(err.text), STR(": too many anchors")));
    buf_done(&text);
    buf_done(&out);
}

TEST(json_over_the_ceiling)
{
    struct buf out;
    buf_init(&out, 4);
    ck_assert_int_eq(yaml_to_json(STR("{\"a\":1}"), &out, NULL), ERR_LIMIT);
    buf_clear(&out, 0);
    ck_assert_int_eq(yaml_to_json_lines(STR("{\"a\":1}"), &out, NULL), ERR_LIMIT);
    buf_clear(&out, 0);
    ck_assert_int_eq(yaml_to_json(STR("a: 1"), &out, NULL), ERR_LIMIT);
    buf_done(&out);
}
