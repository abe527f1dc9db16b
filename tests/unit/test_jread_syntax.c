/* Which bytes are JSON, which depth is allowed, and what strings mean. */
#include "json/jread.h"
#include "json/jskim.h"

#include "unit.h"
#include "json/limit.h"

#include <stdio.h>

#define ARENA_MAX MIB

/* Reads the next value, of any shape. The reader bounds the recursion. */
static void read_value(struct jread *r)
{
    struct str key;
    switch (jread_type(r)) {
    case JTYPE_NONE:
        break;
    case JTYPE_BOOL:
        (void)jread_bool(r);
        break;
    case JTYPE_NULL:
    case JTYPE_NUMBER:
    case JTYPE_STRING:
        (void)jread_text(r);
        break;
    case JTYPE_ARRAY:
        jread_array (r)
            read_value(r);
        break;
    case JTYPE_OBJECT:
        jread_object (r, key)
            read_value(r);
        break;
    }
}

/* Ends a whole document with `take`; the copy on the heap lets ASan see an over-read. */
static enum errc take_text(struct str text, void (*take)(struct jread *r), struct err *e)
{
    struct jread r;
    struct arena arena;
    arena_init(&arena, ARENA_MAX);
    char *copy = malloc(MAX_OF(text.n, (size_t)1));
    ck_assert_ptr_nonnull(copy);
    if (text.n > 0)
        memcpy(copy, text.p, text.n);
    jread_init(&r, (struct str){copy, text.n}, &arena);
    take(&r);
    enum errc code = jread_finish(&r, e);
    free(copy);
    arena_done(&arena);
    return code;
}

static enum errc read_text(struct str text, struct err *e)
{
    return take_text(text, read_value, e);
}

static enum errc skip_text(struct str text, struct err *e)
{
    return take_text(text, jread_skip, e);
}

static const char *const good[] = {
    "[[]   ]",
    "[\"\"]",
    "[]",
    "[\"a\"]",
    "[false]",
    "[null, 1, \"1\", {}]",
    "[null]",
    "[1\n]",
    " [1]",
    "[1,null,null,null,2]",
    "[2] ",
    "[123e65]",
    "[0e+1]",
    "[0e1]",
    "[ 4]",
    "[-0.000000000000000000000000000000000000000000000000000000000000000000000000000001]",
    "[20e1]",
    "[-0]",
    "[-123]",
    "[-1]",
    "[1E22]",
    "[1E-2]",
    "[1E+2]",
    "[123e45]",
    "[123.456e78]",
    "[1e-2]",
    "[1e+2]",
    "[123]",
    "[123.456789]",
    "[100000000000000000000000]",
    "[0.4e00669999999999999999999999999999999999]",
    "{\"asd\":\"sdf\", \"dfg\":\"fgh\"}",
    "{\"asd\":\"sdf\"}",
    "{\"a\":\"b\",\"a\":\"c\"}",
    "{}",
    "{\"\":0}",
    "{\"min\": -1.0e+28, \"max\": 1.0e+28}",
    "{\"a\":[]}",
    "{\"\\u043f\":\"\\u041F\"}",
    "{\n\"a\": \"b\"\n}",
    "[\"\\u0060\\u012a\\u12AB\"]",
    "[\"\\uD801\\udc37\"]",
    "[\"\\ud83d\\ude39\\ud83d\\udc8d\"]",
    "[\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"]",
    "[\"\\\\u0000\"]",
    "[\"a\\u0000b\"]",
    "{\"\\u0000\":1}",
    "[\"a/*b*/c/*d//e\"]",
    "[\"\\uDBFF\\uDFFF\"]",
    "[\"\\uFFFF\"]",
    "[\"\xf4\x8f\xbf\xbf\"]",
    "[\"\xef\xbf\xbf\"]",
    "[\"\x7f\"]",
    "[\"\xc2\x80\"]",
    "[\"\xe2\x80\xa8\xe2\x80\xa9\"]",
    "false",
    "42",
    "-0.1",
    "null",
    "\"asd\"",
    "true",
    "\"\"",
    "[\"a\"]\n",
    "[true]",
    "\t\r\n []\t\r\n ",
};

TEST_EACH(accepts, COUNT_OF(good))
{
    struct err e = ERR_INIT;
    ck_assert_ok(read_text(str_of(good[_i]), &e), &e);
    ck_assert_ok(skip_text(str_of(good[_i]), &e), &e);
    struct str text = str_of(good[_i]);
    const char *behind = jskim_value(text.p, text.p + text.n);
    ck_assert_ptr_nonnull(behind);
    ck_assert_uint_eq(str_trim(str_of(behind)).n, 0);
}

static const struct {
    const char *text;
    const char *why; /* the whole message */
} bad[] = {
    {"", "expected a value, got the end at offset 0"},
    {" \n", "expected a value, got the end at offset 2"},
    {"[1 true]", "expected ',' or ']', got a boolean at offset 3"},
    {"[\"\": 1]", "expected ',' or ']', got ':' at offset 3"},
    {"[\"\"],", "expected the end, got ',' at offset 4"},
    {"[,1]", "[0]: expected a value, got ',' at offset 1"},
    {"[1,,2]", "[1]: expected a value, got ',' at offset 3"},
    {"[\"x\"]]", "expected the end, got ']' at offset 5"},
    {"[\"\",]", "[1]: expected a value, got ']' at offset 4"},
    {"[\"x\"", "expected ',' or ']', got the end at offset 4"},
    {"[x", "[0]: expected a value, got 'x' at offset 1"},
    {"[-]", "[0]: a malformed number at offset 1"},
    {"[\"a\",\n4\n,1,", "[3]: expected a value, got the end at offset 11"},
    {"[1,\n1\n,1", "expected ',' or ']', got the end at offset 8"},
    {"[{}", "expected ',' or ']', got the end at offset 3"},
    {"[fals]", "[0]: expected false at offset 1"},
    {"[nul]", "[0]: expected null at offset 1"},
    {"[tru]", "[0]: expected true at offset 1"},
    {"nul", "expected null at offset 0"},
    {"nulll", "expected the end, got 'l' at offset 4"},
    {"[True]", "[0]: expected a value, got 'T' at offset 1"},
    {"[++1234]", "[0]: expected a value, got '+' at offset 1"},
    {"[+1]", "[0]: expected a value, got '+' at offset 1"},
    {"[-01]", "[0]: a malformed number at offset 1"},
    {"[-1.0.]", "expected ',' or ']', got '.' at offset 5"},
    {"[-2.]", "[0]: a malformed number at offset 1"},
    {"[.2e-3]", "[0]: expected a value, got '.' at offset 1"},
    {"[0.1.2]", "expected ',' or ']', got '.' at offset 4"},
    {"[0.e1]", "[0]: a malformed number at offset 1"},
    {"[0e+]", "[0]: a malformed number at offset 1"},
    {"[0e]", "[0]: a malformed number at offset 1"},
    {"[0E", "[0]: a malformed number at offset 1"},
    {"[1eE2]", "[0]: a malformed number at offset 1"},
    {"[1 000.0]", "expected ',' or ']', got a number at offset 3"},
    {"[012]", "[0]: a malformed number at offset 1"},
    {"[00]", "[0]: a malformed number at offset 1"},
    {"[0x1]", "expected ',' or ']', got 'x' at offset 2"},
    {"[1a]", "expected ',' or ']', got 'a' at offset 2"},
    {"[NaN]", "[0]: expected a value, got 'N' at offset 1"},
    {"[Infinity]", "[0]: expected a value, got 'I' at offset 1"},
    {"[-Infinity]", "[0]: a malformed number at offset 1"},
    {"[\xef\xbc\x91]", "[0]: expected a value, got byte 0xef at offset 1"},
    {"[\x0c]", "[0]: expected a value, got byte 0x0c at offset 1"},
    {"-", "a malformed number at offset 0"},
    {"0123", "a malformed number at offset 0"},
    {"{\"x\", null}", "x: expected ':', got ',' at offset 4"},
    {"{\"x\"::\"b\"}", "x: expected a value, got ':' at offset 5"},
    {"{\"a\":\"a\" 123}", "expected ',' or '}', got a number at offset 9"},
    {"{key: 'value'}", "expected a member's name, got 'k' at offset 1"},
    {"{\"a\" b}", "a: expected ':', got 'b' at offset 5"},
    {"{:\"b\"}", "expected a member's name, got ':' at offset 1"},
    {"{\"a\"", "a: expected ':', got the end at offset 4"},
    {"{\"a\":", "a: expected a value, got the end at offset 5"},
    {"{1:1}", "expected a member's name, got a number at offset 1"},
    {"{null:1}", "expected a member's name, got null at offset 1"},
    {"{\"id\":0,}", "expected a member's name, got '}' at offset 8"},
    {"{\"id\":0,,}", "expected a member's name, got ',' at offset 8"},
    {"{'a':0}", "expected a member's name, got ''' at offset 1"},
    {"{\"a\":\"b\"}/**/", "expected the end, got '/' at offset 9"},
    {"{\"a\":\"b\"}#", "expected the end, got '#' at offset 9"},
    {"{\"a\":/*c*/1}", "a: expected a value, got '/' at offset 5"},
    {"{\"a\":true} \"x\"", "expected the end, got a string at offset 11"},
    {"{]", "expected a member's name, got ']' at offset 1"},
    {"[}", "[0]: expected a value, got '}' at offset 1"},
    {"[1}", "expected ',' or ']', got '}' at offset 2"},
    {"{\"a\":1]", "expected ',' or '}', got ']' at offset 6"},
    {"[\"\\uD800\\u\"]", "[0]: an escape that is not allowed at offset 2"},
    {"[\"\\uD800\\u1\"]", "[0]: an escape that is not allowed at offset 2"},
    {"[\"\\uD800\"]", "[0]: an escape that is not allowed at offset 2"},
    {"[\"\\uD800abcdef\"]", "[0]: an escape that is not allowed at offset 2"},
    {"[\"\\uD800\\u0041\"]", "[0]: an escape that is not allowed at offset 2"},
    {"[\"\\uD800\\uD800\"]", "[0]: an escape that is not allowed at offset 2"},
    {"[\"\\uDC00\"]", "[0]: an escape that is not allowed at offset 2"},
    {"[\"\\uDC00\\uDC00\"]", "[0]: an escape that is not allowed at offset 2"},
    {"[\"\\uDFFF\\uD800\"]", "[0]: an escape that is not allowed at offset 2"},
    {"[\"\\u00A\"]", "[0]: an escape that is not allowed at offset 2"},
    {"[\"\\u00g0\"]", "[0]: an escape that is not allowed at offset 2"},
    {"[\"\\u-001\"]", "[0]: an escape that is not allowed at offset 2"},
    {"[\"\\u+001\"]", "[0]: an escape that is not allowed at offset 2"},
    {"[\"\\x00\"]", "[0]: an escape that is not allowed at offset 2"},
    {"[\"\\a\"]", "[0]: an escape that is not allowed at offset 2"},
    {"[\"\\'\"]", "[0]: an escape that is not allowed at offset 2"},
    {"[\"\\U0041\"]", "[0]: an escape that is not allowed at offset 2"},
    {"[\"\\", "[0]: an escape that is not allowed at offset 2"},
    {"[\"\\\"]", "[0]: a string without an end at offset 5"},
    {"[\"a\x1f\"]", "[0]: a raw control character in a string at offset 3"},
    {"[\"\n\"]", "[0]: a raw control character in a string at offset 2"},
    {"[\"\t\"]", "[0]: a raw control character in a string at offset 2"},
    {"[\"a", "[0]: a string without an end at offset 3"},
    {"\"", "a string without an end at offset 1"},
    {"[\"\x80\"]", "[0]: invalid UTF-8 at offset 2"},
    {"[\"\xc0\xaf\"]", "[0]: invalid UTF-8 at offset 2"},
    {"[\"\xc1\xbf\"]", "[0]: invalid UTF-8 at offset 2"},
    {"[\"\xe0\x80\xaf\"]", "[0]: invalid UTF-8 at offset 2"},
    {"[\"\xe0\x9f\xbf\"]", "[0]: invalid UTF-8 at offset 2"},
    {"[\"\xed\xa0\x80\"]", "[0]: invalid UTF-8 at offset 2"},
    {"[\"\xf0\x8f\xbf\xbf\"]", "[0]: invalid UTF-8 at offset 2"},
    {"[\"\xf4\x90\x80\x80\"]", "[0]: invalid UTF-8 at offset 2"},
    {"[\"\xf5\x80\x80\x80\"]", "[0]: invalid UTF-8 at offset 2"},
    {"[\"\xfe\"]", "[0]: invalid UTF-8 at offset 2"},
    {"[\"\xc3\"]", "[0]: invalid UTF-8 at offset 2"},
    {"[\"\xe2\x82\"]", "[0]: invalid UTF-8 at offset 2"},
    {"[\"\xe2\x82", "[0]: invalid UTF-8 at offset 2"},
    {"\xef\xbb\xbf{}", "expected a value, got byte 0xef at offset 0"},
    {"{\"\xff\":1}", "invalid UTF-8 at offset 2"},
    {"{\"a\":1,\"\\q\":1}", "an escape that is not allowed at offset 8"},
    {"<html>", "expected a value, got '<' at offset 0"},
    {"[\xe2\x81\xa0]", "[0]: expected a value, got byte 0xe2 at offset 1"},
};

TEST_EACH(refuses, COUNT_OF(bad))
{
    struct err e = ERR_INIT;
    ck_assert_int_eq(read_text(str_of(bad[_i].text), &e), ERR_SYNTAX);
    ck_assert_str_eq(e.text, bad[_i].why);
}

/* A raw NUL is refused like any other misplaced byte. */
TEST(refuses_nul)
{
    struct err e = ERR_INIT;
    ck_assert_int_eq(read_text(STR("null\0"), &e), ERR_SYNTAX);
    ck_assert_str_eq(e.text, "expected the end, got byte 0x00 at offset 4");
    ck_assert_int_eq(read_text(STR("\"a\0b\""), &e), ERR_SYNTAX);
    ck_assert_int_eq(read_text(STR("\0"), &e), ERR_SYNTAX);
    ck_assert_int_eq(read_text(STR("[1\0]"), &e), ERR_SYNTAX);
    ck_assert_int_eq(read_text(STR_NULL, &e), ERR_SYNTAX);
}

static const struct {
    const char *text;
    struct str value;
} strings[] = {
    {"\"\"", STR("")},
    {"\"plain\"", STR("plain")},
    {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", STR("\"\\/\b\f\n\r\t")},
    {"\"a\\u0041b\"", STR("aAb")},
    {"\"\\u007f\\u0080\\u07ff\\u0800\\uffff\"",
     STR("\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80\xef\xbf\xbf")},
    {"\"\\ud7ff\\ue000\"", STR("\xed\x9f\xbf\xee\x80\x80")},
    {"\"\\ud800\\udc00 \\uDBFF\\uDFFF\"", STR("\xf0\x90\x80\x80 \xf4\x8f\xbf\xbf")},
    {"\"gr\xc3\xbc\xc3\x9f \xe4\xb8\xad \xf0\x9f\x98\x80\"",
     STR("gr\xc3\xbc\xc3\x9f \xe4\xb8\xad \xf0\x9f\x98\x80")},
    {"\"ends in an escape\\n\"", STR("ends in an escape\n")},
    {"null", {NULL, 0}},
};

TEST_EACH(reads_strings, COUNT_OF(strings))
{
    struct arena arena;
    struct jread r;
    struct err e = ERR_INIT;
    arena_init(&arena, ARENA_MAX);
    jread_init(&r, str_of(strings[_i].text), &arena);
    struct str got = jread_str(&r);
    ck_assert_ok(jread_finish(&r, &e), &e);
    ck_assert(str_eq(got, strings[_i].value));
    ck_assert((got.p == NULL) == (strings[_i].value.p == NULL));
    arena_done(&arena);
}

/* Odd bytes at each place of strings of each length, around the width of a vector. */
TEST(odd_bytes_at_every_place)
{
    static const struct {
        const char *bytes;
        const char *meaning; /* NULL: refused */
    } odd[] = {
        {"\\n", "\n"},  {"\\u00e9", "\xc3\xa9"}, {"\xc3\xa9", "\xc3\xa9"},         {"\x01", NULL},
        {"\x1f", NULL}, {"\x80", NULL},          {"\xe2\x82\xac", "\xe2\x82\xac"}, {"\\z", NULL},
        {"\xc3", NULL},
    };
    struct arena arena;
    arena_init(&arena, ARENA_MAX);
    for (size_t n = 0; n < 70; n++) {
        for (size_t at = 0; at <= n; at++) {
            char plain[80];
            memset(plain, 'x', sizeof(plain));
            size_t which = (n + at) % COUNT_OF(odd);
            char text[100];
            char want[100];
            (void)snprintf(text, sizeof(text), "\"%.*s%s%.*s\"", (int)at, plain, odd[which].bytes,
                           (int)(n - at), plain);
            struct str doc = str_of(text);
            char *copy = malloc(doc.n);
            ck_assert_ptr_nonnull(copy);
            memcpy(copy, text, doc.n);
            struct jread r;
            jread_init(&r, (struct str){copy, doc.n}, &arena);
            struct str got = jread_str(&r);
            enum errc code = jread_finish(&r, NULL);
            if (odd[which].meaning == NULL) {
                ck_assert_int_eq(code, ERR_SYNTAX);
            } else {
                ck_assert_int_eq(code, OK);
                (void)snprintf(want, sizeof(want), "%.*s%s%.*s", (int)at, plain, odd[which].meaning,
                               (int)(n - at), plain);
                ck_assert_str_is(got, want);
            }
            free(copy);
            arena_reset(&arena);
        }
    }
    arena_done(&arena);
}

/* The character at u, or an impossible one; *ret_len: its length, 0 if it has none. */
static uint32_t naive_decode(const unsigned char *u, size_t n, size_t *ret_len)
{
    static const unsigned char masks[] = {0, 0x80, 0xe0, 0xf0, 0xf8};
    static const unsigned char marks[] = {0, 0x00, 0xc0, 0xe0, 0xf0};
    uint32_t c = 0;
    size_t len = 1;
    while (len <= 4 && (u[0] & masks[len]) != marks[len])
        len++;
    *ret_len = len <= 4 && len <= n ? len : 0;
    for (size_t k = 0; k < *ret_len; k++) {
        if (k > 0 && (u[k] & 0xc0) != 0x80)
            return UINT32_MAX;
        c = k == 0 ? (unsigned char)(u[0] & ~masks[len]) : (c << 6) | (u[k] & 0x3fU);
    }
    return c;
}

/* Decodes first and checks the number after: another method than the reader's table. */
static bool naive_utf8(const unsigned char *u, size_t n)
{
    static const uint32_t least[] = {UINT32_MAX, 0, 0x80, 0x800, 0x10000};
    size_t len = 0;
    for (size_t i = 0; i < n; i += len) {
        uint32_t c = naive_decode(u + i, n - i, &len);
        if (c < least[len] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
            return false;
    }
    return true;
}

static void check_utf8(const unsigned char *bytes, size_t n)
{
    char text[8] = "\"";
    memcpy(text + 1, bytes, n);
    text[n + 1] = '"';
    struct jread r;
    jread_init(&r, (struct str){text, n + 2}, NULL);
    (void)jread_str(&r);
    bool accepted = jread_finish(&r, NULL) == OK;
    ck_assert_msg(accepted == naive_utf8(bytes, n), "%02x %02x %02x %02x (%zu)", bytes[0], bytes[1],
                  bytes[2], bytes[3], n);
}

/* All pairs of bytes; for longer sequences, all pairs before the limits of a continuation byte. */
TEST(utf8_is_exact)
{
    static const unsigned char edges[] = {0x23, 0x7f, 0x80, 0xbf, 0xc0, 0xff};
    for (unsigned a = 0x80; a < 0x100; a++) {
        for (unsigned b = 0x23; b < 0x100; b++) {
            if (b == '\\')
                continue;
            unsigned char bytes[4] = {(unsigned char)a, (unsigned char)b, 0, 0};
            check_utf8(bytes, 2);
            for (size_t i = 0; a >= 0xe0 && i < COUNT_OF(edges); i++) {
                bytes[2] = edges[i];
                check_utf8(bytes, 3);
                for (size_t k = 0; a >= 0xf0 && k < COUNT_OF(edges); k++) {
                    bytes[3] = edges[k];
                    check_utf8(bytes, 4);
                }
            }
        }
    }
}

static void nest(char *text, size_t size, unsigned depth, bool objects)
{
    size_t n = 0;
    for (unsigned i = 0; i < depth; i++)
        n += (size_t)snprintf(text + n, size - n, "%s", objects ? "{\"k\":" : "[");
    n += (size_t)snprintf(text + n, size - n, "1");
    for (unsigned i = 0; i < depth; i++)
        n += (size_t)snprintf(text + n, size - n, "%s", objects ? "}" : "]");
}

static unsigned descend(struct jread *r)
{
    unsigned depth = 0;
    struct str key;
    switch (jread_type(r)) {
    case JTYPE_ARRAY:
        jread_array (r)
            depth = 1 + descend(r);
        return depth;
    case JTYPE_OBJECT:
        jread_object (r, key)
            depth = 1 + descend(r);
        return depth;
    case JTYPE_NONE:
    case JTYPE_NULL:
    case JTYPE_BOOL:
    case JTYPE_NUMBER:
    case JTYPE_STRING:
        break;
    }
    jread_skip(r);
    return 0;
}

TEST_EACH(nesting_is_limited, 2)
{
    bool objects = _i == 1;
    char text[8192];
    struct err e = ERR_INIT;
    struct jread r;

    nest(text, sizeof(text), LIMIT_JSON_DEPTH, objects);
    ck_assert_ok(read_text(str_of(text), &e), &e);
    jread_init(&r, str_of(text), NULL);
    ck_assert_uint_eq(descend(&r), LIMIT_JSON_DEPTH);
    ck_assert_ok(jread_finish(&r, &e), &e);

    nest(text, sizeof(text), LIMIT_JSON_DEPTH + 1, objects);
    ck_assert_int_eq(read_text(str_of(text), &e), ERR_LIMIT);
    ck_assert_ptr_nonnull(strstr(e.text, objects ? "nested deeper than 64 at offset 320"
                                                 : "nested deeper than 64 at offset 64"));
    jread_init(&r, str_of(text), NULL);
    (void)descend(&r);
    ck_assert_int_eq(jread_finish(&r, NULL), ERR_LIMIT);
}

/* What an API server stores in a place that the reader does not need. */
static const char *const skippable[] = {
    "{\"f:\xff\xfe\":{}}",
    "\"\\ud800\"",
    "\"\\q\\\"]\"",
    "\"a\nb\x01\"",
    "{\"}\":\"]\",\"\\\\\":[\"{\"]}",
    "[1 2,,{:}]",
    "nul",
    "01",
};

TEST_EACH(skips_any_bytes, COUNT_OF(skippable))
{
    char text[256];
    struct err e = ERR_INIT;
    struct jread r;
    struct str key;
    int64_t behind = 0;
    (void)snprintf(text, sizeof(text), "{\"odd\":%s , \"n\" : 7}", skippable[_i]);
    jread_init(&r, str_of(text), NULL);
    jread_object (&r, key) {
        if (str_eq(key, STR("n")))
            behind = jread_i64(&r);
        else
            jread_skip(&r);
    }
    ck_assert_ok(jread_finish(&r, &e), &e);
    ck_assert_int_eq(behind, 7);
}

static const struct {
    const char *text;
    const char *why;
} endless[] = {
    {"", "expected a value, got the end at offset 0"},
    {" ]", "expected a value, got ']' at offset 1"},
    {"\"a", "a value without an end at offset 0"},
    {"\"a\\", "a value without an end at offset 0"},
    {"\"a\\\"", "a value without an end at offset 0"},
    {"[[]", "a value without an end at offset 0"},
    {"{\"}\"", "a value without an end at offset 0"},
    {"[\"]", "a value without an end at offset 0"},
};

TEST_EACH(skips_only_a_value_with_an_end, COUNT_OF(endless))
{
    struct err e = ERR_INIT;
    ck_assert_int_eq(skip_text(str_of(endless[_i].text), &e), ERR_SYNTAX);
    ck_assert_str_eq(e.text, endless[_i].why);
}

TEST(skips_any_depth)
{
    const size_t depth = 100000;
    struct err e = ERR_INIT;
    char *text = malloc(2 * depth);
    ck_assert_ptr_nonnull(text);
    memset(text, '[', depth);
    memset(text + depth, ']', depth);
    ck_assert_ok(skip_text((struct str){text, 2 * depth}, &e), &e);
    ck_assert_int_eq(skip_text((struct str){text, 2 * depth - 1}, &e), ERR_SYNTAX);
    free(text);
}
