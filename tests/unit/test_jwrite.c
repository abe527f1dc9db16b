/* The JSON writer: escapes, ceilings and misuse. */
#include "json/jwrite.h"

#include "unit.h"
#include "json/jread.h"

static struct buf out;
static struct jwrite w;

static void setup(void)
{
    buf_init(&out, MIB);
    jwrite_init(&w, &out);
}

static void teardown(void)
{
    buf_done(&out);
}

TEST(writes_compactly)
{
    jwrite_object_begin(&w);
    jwrite_key(&w, STR("a"));
    jwrite_array_begin(&w);
    jwrite_array_end(&w);
    jwrite_key(&w, STR("b"));
    jwrite_array_begin(&w);
    jwrite_i64(&w, 1);
    jwrite_str(&w, STR("x"));
    jwrite_object_begin(&w);
    jwrite_object_end(&w);
    jwrite_object_begin(&w);
    jwrite_key(&w, STR(""));
    jwrite_null(&w);
    jwrite_object_end(&w);
    jwrite_bool(&w, true);
    jwrite_bool(&w, false);
    jwrite_array_end(&w);
    jwrite_key(&w, STR("c"));
    jwrite_raw(&w, STR("{\"raw\": 1}"));
    jwrite_key(&w, STR("d"));
    jwrite_str(&w, STR_NULL);
    jwrite_object_end(&w);
    ck_assert_str_is(buf_str(&out), "{\"a\":[],\"b\":[1,\"x\",{},{\"\":null},true,false],"
                                    "\"c\":{\"raw\": 1},\"d\":null}");
}

TEST(writes_members)
{
    jwrite_object_begin(&w);
    jwrite_str_at(&w, STR("a\""), STR("x"));
    jwrite_i64_at(&w, STR("b"), -1);
    jwrite_object_at(&w, STR("c"));
    jwrite_u64_at(&w, STR("d"), UINT64_MAX);
    jwrite_bool_at(&w, STR("e"), true);
    jwrite_object_end(&w);
    jwrite_array_at(&w, STR("f"));
    jwrite_array_end(&w);
    jwrite_raw_at(&w, STR("g"), STR("[ ]"));
    jwrite_object_end(&w);
    ck_assert_str_is(buf_str(&out), "{\"a\\\"\":\"x\",\"b\":-1,\"c\":{\"d\":18446744073709551615,"
                                    "\"e\":true},\"f\":[],\"g\":[ ]}");
}

TEST(writes_extremes)
{
    jwrite_array_begin(&w);
    jwrite_i64(&w, INT64_MIN);
    jwrite_i64(&w, INT64_MAX);
    jwrite_i64(&w, -1);
    jwrite_u64(&w, UINT64_MAX);
    jwrite_u64(&w, 0);
    jwrite_array_end(&w);
    ck_assert_str_is(buf_str(&out), "[-9223372036854775808,9223372036854775807,-1,"
                                    "18446744073709551615,0]");
}

static const struct {
    struct str in;
    const char *want;
} strings[] = {
    {STR(""), "\"\""},
    {STR("plain"), "\"plain\""},
    {STR("a\"b\\c/d"), "\"a\\\"b\\\\c/d\""},
    {STR("\b\f\n\r\t"), "\"\\b\\f\\n\\r\\t\""},
    {STR("\0\x01\x1f\x7f"), "\"\\u0000\\u0001\\u001f\\u007f\""},
    {STR("gr\xc3\xbc\xc3\x9f"), "\"gr\xc3\xbc\xc3\x9f\""},
    {STR("\xf0\x9f\x98\x80"), "\"\xf0\x9f\x98\x80\""},
    {STR("a\xc2\x9b"
         "2J\xc2\xa0"),
     "\"a\\u009b2J\xc2\xa0\""}, /* it would clear the screen */
    {STR("\xe2\x80\xae\xe2\x80\xac"), "\"\\u202e\\u202c\""},
    {STR("\xe2\x81\xa6\xe2\x81\xa9"), "\"\\u2066\\u2069\""},
    {STR("\xf3\xa0\x81\x81x"), "\"\\udb40\\udc41x\""},
    {STR("\xff"), "\"\xef\xbf\xbd\""},
    {STR("a\xc3"), "\"a\xef\xbf\xbd\""},
    {STR("\xed\xa0\x80"), "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
    {STR("\xe2\x82x"), "\"\xef\xbf\xbd\xef\xbf\xbdx\""},
    {STR("sixteen bytes or more\nand more of them \xe2\x82\xac"),
     "\"sixteen bytes or more\\nand more of them \xe2\x82\xac\""},
};

TEST_EACH(escapes, COUNT_OF(strings))
{
    jwrite_str(&w, strings[_i].in);
    ck_assert_str_is(buf_str(&out), strings[_i].want);
}

static const struct {
    struct str in;
    const char *want;
} replacements[] = {
    {STR(""), "\"\""},
    {STR("a"), "\"a\""},
    {STR("%"), "\"<\\n>\""},
    {STR("%%a%"), "\"<\\n><\\n>a<\\n>\""},
    {STR("\"%\""), "\"\\\"<\\n>\\\"\""},
    {STR("\xe2\x82%\x82"), "\"\xef\xbf\xbd\xef\xbf\xbd<\\n>\xef\xbf\xbd\""},
};

TEST_EACH(replaces_a_character, COUNT_OF(replacements))
{
    jwrite_array_begin(&w);
    jwrite_null(&w);
    jwrite_str_replacing(&w, replacements[_i].in, '%', STR("<\n>"));
    jwrite_array_end(&w);
    const struct str text = buf_str(&out);
    ck_assert(str_starts(text, STR("[null,")));
    ck_assert_str_is(((struct str){text.p + 6, text.n - 7}), replacements[_i].want);
}

/* Every byte at every place around a vector's width is read back, if a reader accepts it. */
TEST(reads_back)
{
    struct arena arena;
    arena_init(&arena, MIB);
    for (unsigned c = 1; c < 0x80; c++) {
        for (size_t n = 1; n < 36; n++) {
            char text[40];
            memset(text, 'x', sizeof(text));
            text[c % n] = (char)c;
            struct str s = {text, n};
            struct err e = ERR_INIT;
            struct jread r;
            struct str key = STR_NULL;
            buf_clear(&out, SIZE_MAX);
            arena_reset(&arena);
            jwrite_init(&w, &out);
            jwrite_object_begin(&w);
            jwrite_key(&w, s);
            jwrite_str(&w, s);
            jwrite_object_end(&w);
            jread_init(&r, buf_str(&out), &arena);
            jread_object (&r, key) {
                ck_assert(str_eq(key, s));
                ck_assert(str_eq(jread_str(&r), s));
            }
            ck_assert_ok(jread_finish(&r, &e), &e);
        }
    }
    arena_done(&arena);
}

/* For every ceiling, the buf never exceeds it and the failure stays. */
TEST_EACH(ceiling_is_kept, 24)
{
    struct buf small;
    buf_init(&small, (size_t)_i);
    jwrite_init(&w, &small);
    jwrite_array_begin(&w);
    jwrite_str(&w, STR("12345"));
    jwrite_str(&w, STR("\n2345"));
    jwrite_array_end(&w);
    ck_assert_uint_le(small.n, (size_t)_i);
    ck_assert(buf_failed(&small) == (_i < 18));
    if (!buf_failed(&small))
        ck_assert_str_is(buf_str(&small), "[\"12345\",\"\\n2345\"]");
    buf_done(&small);
}

int main(void)
{
    TCase *t = unit_case("jwrite");
    tcase_add_checked_fixture(t, setup, teardown);
    return unit_run();
}
