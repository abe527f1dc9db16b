/* Compares the output with cardpack's own YAML reader, and so with libyaml. */
#include "json/jprint.h"

#include "unit.h"
#include "json/jread.h"
#include "json/jwrite.h"
#include "json/limit.h"
#include "json/yaml.h"

#include <stdio.h>

static struct arena arena;
static struct buf out;
static struct buf back;
static struct err err;

static void setup(void)
{
    arena_init(&arena, MIB);
    buf_init(&out, MIB);
    buf_init(&back, MIB);
}

static void teardown(void)
{
    buf_done(&out);
    buf_done(&back);
    arena_done(&arena);
}

static const char *const documents[] = {
    "{}",
    "[]",
    "null",
    "-7",
    "\"text\"",
    "{\"a\":[]}",
    "{\"a\":{\"b\":{}}}",
    "[[],[[1,2],[]],{\"a\":[{\"b\":1,\"c\":[2]},{}]}]",
    "{\"nodes\":[{\"name\":\"n1\",\"devs\":[{\"id\":0,\"pods\":[]},{\"id\":-1}]}],\"n\":null}",
    "[true,false,1.5e3]",
    "{\"true\":1,\"1\":2,\"a: b\":3,\"\":4,\"- x\":5}",
};

/* Reading back gives the same, in either form. */
TEST_EACH(round_trip, COUNT_OF(documents))
{
    struct str document = str_of(documents[_i]);
    ck_assert_ok(jprint_yaml(document, &arena, &out, &err), &err);
    ck_assert_ok(yaml_to_json(buf_str(&out), &back, &err), &err);
    ck_assert_str_is(str_trim(buf_str(&back)), documents[_i]);
    buf_clear(&out, 0);
    ck_assert_ok(jprint_json(document, &arena, &out, &err), &err);
    struct buf lines;
    buf_init(&lines, MIB);
    if (documents[_i][0] == '{') { /* the reader takes this for JSON */
        ck_assert_ok(yaml_to_json_lines(buf_str(&out), &lines, &err), &err);
        lines.n--; /* the newline */
        ck_assert_str_is(buf_str(&lines), documents[_i]);
    }
    buf_done(&lines);
}

/* Strings that some YAML readers take for null, a number, a date or a structure; and non-ASCII. */
static const char *const strings[] = {
    "",
    "null",
    "Null",
    "~",
    "true",
    "yes",
    "No",
    "on",
    "y",
    "1",
    "-1",
    "0x1f",
    "1e3",
    ".5",
    ".inf",
    ".nan",
    "-.inf",
    "1_000",
    "1:30",
    "=",
    "<<",
    "- a",
    "a: b",
    "a #b",
    "#a",
    " a",
    "a ",
    "{a",
    "[a",
    "*a",
    "&a",
    "!a",
    "%a",
    "@a",
    "`a",
    "|",
    ">",
    "a\nb",
    "\t",
    "\"",
    "\\",
    "'",
    "2026-11-22",
    "e5",
    "NVIDIA A100-SXM4-40GB",
    "0 of 16 free, 8 asked",
    "n\xc3\xb6",
    "\xf0\x9f\x9a\x80",
    "\x7f",
    "\xc2\x85",
    "\xc2\x9b",
    "\xe2\x80\xa8",
    "\xef\xbb\xbf",
    "a\xe2\x80\xae\xd8\x9c", /* NOLINT(misc-misleading-bidirectional) */
    "a\xf3\xa0\x81\x81\"\\\n",
    "\x1b[2J",
    "a,b",
};

/* Except line feeds, the output has no character that could control a terminal. */
static void check_printable(void)
{
    struct str rest = buf_str(&out);
    while (rest.n > 0) {
        uint32_t rune = 0;
        size_t n = str_utf8(rest, &rune);
        ck_assert_uint_gt(n, 0);
        ck_assert_msg(rune == '\n' || !str_is_unprintable(rune), "U+%04X is printed", rune);
        rest = str_skip(rest, n);
    }
}

TEST_EACH(string, COUNT_OF(strings))
{
    char text[64];
    struct jwrite w;
    struct buf json = BUF_ON(text);
    jwrite_init(&w, &json);
    jwrite_array_begin(&w);
    jwrite_str(&w, str_of(strings[_i]));
    jwrite_array_end(&w);
    ck_assert_ok(jprint_yaml(buf_str(&json), &arena, &out, &err), &err);
    ck_assert_ok(yaml_to_json(buf_str(&out), &back, &err), &err);
    ck_assert(str_eq(buf_str(&back), buf_str(&json)));
    check_printable();
    struct jread r;
    buf_clear(&out, SIZE_MAX);
    ck_assert_ok(jprint_json(buf_str(&json), &arena, &out, &err), &err);
    check_printable();
    jread_init(&r, buf_str(&out), &arena);
    jread_array (&r)
        ck_assert(str_eq(jread_str(&r), str_of(strings[_i])));
    ck_assert_ok(jread_finish(&r, &err), &err);
}

TEST(forms)
{
    static const char document[] = "{\"a\":[{\"b\":1,\"c\":[]},2],\"d e\":\"x: y\"}";
    ck_assert_ok(jprint_yaml(str_of(document), &arena, &out, &err), &err);
    ck_assert_str_is(buf_str(&out), "a:\n  - b: 1\n    c: []\n  - 2\nd e: \"x: y\"\n");
    buf_clear(&out, 0);
    ck_assert_ok(jprint_json(str_of(document), &arena, &out, &err), &err);
    ck_assert_str_is(buf_str(&out), "{\n    \"a\": [\n        {\n            \"b\": 1,\n"
                                    "            \"c\": []\n        },\n        2\n    ],\n"
                                    "    \"d e\": \"x: y\"\n}\n");
}

TEST(broken)
{
    ck_assert_int_eq(jprint_yaml(STR("{\"a\":"), &arena, &out, &err), ERR_SYNTAX);
    ck_assert_int_eq(jprint_json(STR("[1,]"), &arena, &out, &err), ERR_SYNTAX);
    struct buf small;
    buf_init(&small, 4);
    ck_assert_int_eq(jprint_json(STR("[1,2,3]"), &arena, &small, &err), ERR_LIMIT);
    buf_done(&small);
}

/* As deep as the reader allows, and one level more. */
TEST(deep)
{
    char text[2 * (LIMIT_JSON_DEPTH + 1) + 1];
    for (size_t depth = LIMIT_JSON_DEPTH; depth <= LIMIT_JSON_DEPTH + 1; depth++) {
        memset(text, '[', depth);
        memset(text + depth, ']', depth);
        buf_clear(&out, 0);
        enum errc code = jprint_yaml((struct str){text, 2 * depth}, &arena, &out, &err);
        ck_assert_int_eq(code == OK, depth == LIMIT_JSON_DEPTH);
    }
}

int main(void)
{
    TCase *t = unit_case("jprint");
    tcase_add_checked_fixture(t, setup, teardown);
    return unit_run();
}
