/* Strings: comparison, cutting, numbers, prefixes and UTF-8. */
#include "base/str.h"

#include "unit.h"

#include <stdlib.h>

static int sign(int x)
{
    return (x > 0) - (x < 0);
}

/* The bytes of a literal, NULs included. */
#define B(lit)               \
    {                        \
        lit, sizeof(lit) - 1 \
    }

static const struct {
    struct str a, b;
    int order;
    bool nocase; /* equal apart from the case of ASCII letters */
} pairs[] = {
    {B(""), B(""), 0, true},
    {{NULL, 0}, B(""), 0, true},
    {B("a"), B(""), 1, false},
    {B("a"), B("b"), -1, false},
    {B("ab"), B("a"), 1, false},
    {B("a\0b"), B("a\0c"), -1, false},
    {B("a\0b"), B("a"), 1, false},
    {B("\xff"), B("a"), 1, false},
    {B("NodeNames"), B("nodenames"), -1, true},
    {B("AZ"), B("az"), -1, true},
    {B("@"), B("`"), -1, false}, /* they differ in the bit that tells A from a */
    {B("["), B("{"), -1, false},
    {B("\xc3\x84"), B("\xc3\xa4"), -1, false}, /* Ä and ä: not ASCII */
    {B("K"), B("\xe2\x84\xaa"), -1, false},    /* the Kelvin sign, which Go folds to k */
};

TEST_EACH(compares, COUNT_OF(pairs))
{
    struct str a = pairs[_i].a;
    struct str b = pairs[_i].b;
    ck_assert_int_eq(sign(str_cmp(a, b)), pairs[_i].order);
    ck_assert_int_eq(sign(str_cmp(b, a)), -pairs[_i].order);
    ck_assert(str_eq(a, b) == (pairs[_i].order == 0));
    ck_assert(str_eq_nocase(a, b) == pairs[_i].nocase);
    ck_assert(str_eq_nocase(b, a) == pairs[_i].nocase);
}

static const struct {
    const char *s, *part;
    bool starts, ends;
} parts[] = {
    {"", "", true, true},          {"a", "", true, true},        {"", "a", false, false},
    {"abcab", "ab", true, true},   {"abc", "bc", false, true},   {"abc", "abc", true, true},
    {"abc", "abcd", false, false}, {"abc", "ABC", false, false},
};

TEST_EACH(starts_and_ends, COUNT_OF(parts))
{
    struct str s = str_of(parts[_i].s);
    struct str part = str_of(parts[_i].part);
    ck_assert(str_starts(s, part) == parts[_i].starts);
    ck_assert(str_ends(s, part) == parts[_i].ends);
}

TEST(absent_is_not_empty)
{
    ck_assert_ptr_null(str_of(NULL).p);
    ck_assert_ptr_nonnull(str_of("").p);
    ck_assert_ptr_null(str_skip(STR_NULL, 3).p);
    ck_assert_ptr_null(str_trim(STR_NULL).p);
    ck_assert(str_starts(STR_NULL, STR_NULL) && str_ends(STR_NULL, STR("")));
}

TEST(skips)
{
    ck_assert_str_is(str_skip(STR("abc"), 0), "abc");
    ck_assert_str_is(str_skip(STR("abc"), 2), "c");
    ck_assert_str_is(str_skip(STR("abc"), 3), "");
    ck_assert_str_is(str_skip(STR("abc"), SIZE_MAX), "");
}

TEST(trims)
{
    ck_assert_str_is(str_trim(STR(" \t\r\n\v\fa b\n")), "a b");
    ck_assert_str_is(str_trim(STR("   ")), "");
    ck_assert_str_is(str_trim(STR("")), "");
    ck_assert_str_is(str_trim(STR("\xc2\xa0x")), "\xc2\xa0x");
}

static const struct {
    const char *s, *head, *tail; /* tail NULL: no separator */
} cuts[] = {
    {"", "", NULL}, {"abc", "abc", NULL}, {"a/b", "a", "b"}, {"a/b/c", "a", "b/c"},
    {"/", "", ""},  {"a/", "a", ""},      {"/b", "", "b"},
};

TEST_EACH(is_cut, COUNT_OF(cuts))
{
    struct str head;
    struct str tail;
    bool found = str_cut(str_of(cuts[_i].s), '/', &head, &tail);
    ck_assert(found == (cuts[_i].tail != NULL));
    ck_assert_str_is(head, cuts[_i].head);
    if (found) {
        ck_assert_ptr_nonnull(tail.p);
        ck_assert_str_is(tail, cuts[_i].tail);
    } else {
        ck_assert_ptr_null(tail.p);
    }
}

static const struct {
    struct str s;
    uint64_t max;
    uint64_t value;
    bool ok;
} u64s[] = {
    {B("0"), 0, 0, true},
    {B("1"), 0, 0, false},
    {B("007"), 7, 7, true},
    {B("8"), 7, 0, false},
    {B("18446744073709551615"), UINT64_MAX, UINT64_MAX, true},
    {B("18446744073709551616"), UINT64_MAX, 0, false},
    {B("99999999999999999999"), UINT64_MAX, 0, false},
    {B("000000000000000000000000000001"), 1, 1, true},
    {B(""), 9, 0, false},
    {{NULL, 0}, 9, 0, false},
    {B("+1"), 9, 0, false},
    {B("-1"), 9, 0, false},
    {B(" 1"), 9, 0, false},
    {B("1 "), 9, 0, false},
    {B("1\0"), 9, 0, false},
    {B("1e0"), 9, 0, false},
    {B("0x1"), 9, 0, false},
    {B("\xd9\xa1"), 9, 0, false}, /* an Arabic-Indic 1 */
};

TEST_EACH(reads_u64, COUNT_OF(u64s))
{
    uint64_t value = 4711;
    ck_assert(str_to_u64(u64s[_i].s, u64s[_i].max, &value) == u64s[_i].ok);
    ck_assert_uint_eq(value, u64s[_i].ok ? u64s[_i].value : 4711);
}

static const struct {
    const char *s;
    int64_t value;
    bool ok;
} i64s[] = {
    {"0", 0, true},
    {"-0", 0, true},
    {"-1", -1, true},
    {"9223372036854775807", INT64_MAX, true},
    {"9223372036854775808", 0, false},
    {"-9223372036854775808", INT64_MIN, true},
    {"-9223372036854775809", 0, false},
    {"", 0, false},
    {"-", 0, false},
    {"--1", 0, false},
    {"+1", 0, false},
    {"- 1", 0, false},
};

TEST_EACH(reads_i64, COUNT_OF(i64s))
{
    int64_t value = 4711;
    ck_assert(str_to_i64(str_of(i64s[_i].s), &value) == i64s[_i].ok);
    ck_assert_int_eq(value, i64s[_i].ok ? i64s[_i].value : 4711);
}

static const struct {
    struct str s;
    size_t n; /* bytes of the first character; 0: not valid */
    uint32_t rune;
} characters[] = {
    {B(""), 0, 0},
    {{NULL, 0}, 0, 0},
    {B("ab"), 1, 'a'},
    {B("\0"), 1, 0},
    {B("\x7f"), 1, 0x7f},
    {B("\xc2\x80x"), 2, 0x80},
    {B("\xdf\xbf"), 2, 0x7ff},
    {B("\xe0\xa0\x80"), 3, 0x800},
    {B("\xed\x9f\xbf"), 3, 0xd7ff},
    {B("\xee\x80\x80"), 3, 0xe000},
    {B("\xef\xbf\xbf"), 3, 0xffff},
    {B("\xf0\x90\x80\x80"), 4, 0x10000},
    {B("\xf4\x8f\xbf\xbf"), 4, 0x10ffff},
    {B("\x80"), 0, 0},             /* begins within a character */
    {B("\xc0\x80"), 0, 0},         /* overlong form of NUL */
    {B("\xc1\xbf"), 0, 0},         /* overlong form of DEL */
    {B("\xe0\x9f\xbf"), 0, 0},     /* overlong form of U+7FF */
    {B("\xf0\x8f\xbf\xbf"), 0, 0}, /* overlong form of U+FFFF */
    {B("\xed\xa0\x80"), 0, 0},     /* a surrogate */
    {B("\xed\xbf\xbf"), 0, 0},     /* a surrogate */
    {B("\xf4\x90\x80\x80"), 0, 0}, /* above U+10FFFF */
    {B("\xf5\x80\x80\x80"), 0, 0}, /* above U+10FFFF */
    {B("\xff"), 0, 0},             /* no byte of UTF-8 */
    {B("\xc2"), 0, 0},             /* cut */
    {{"\xc2\x80", 1}, 0, 0},       /* continues after the end */
    {{"\xe2\x82\xac", 2}, 0, 0},   /* the same */
    {B("\xe2\x82"), 0, 0},         /* cut */
    {B("\xf0\x9f\x98"), 0, 0},     /* cut */
    {B("\xc2x"), 0, 0},            /* not continued */
    {B("\xe2\x82\xc2"), 0, 0},     /* not continued */
};

TEST_EACH(reads_utf8, COUNT_OF(characters))
{
    uint32_t rune = 4711;
    ck_assert_uint_eq(str_utf8(characters[_i].s, &rune), characters[_i].n);
    ck_assert_uint_eq(rune, characters[_i].n > 0 ? characters[_i].rune : 4711);
}

/* Of any length: neither a byte too few nor too many, in either string. */
TEST(copies_short_strings)
{
    for (size_t n = 0; n <= 100; n++) {
        char *from = malloc(n);
        char to[102];
        ck_assert(from != NULL || n == 0);
        for (size_t i = 0; i < n; i++)
            from[i] = (char)(i + 1);
        memset(to, '.', sizeof(to));
        ck_assert_ptr_eq(str_copy(to + 1, (struct str){from, n}), to + 1 + n);
        ck_assert(to[0] == '.' && to[n + 1] == '.');
        if (n > 0)
            ck_assert_mem_eq(to + 1, from, n);
        free(from);
    }
}

TEST(stores_one_behind_the_other)
{
    char room[8] = "........";
    char *at = room;
    struct str a = str_store(&at, STR("ab"));
    struct str none = str_store(&at, STR_NULL);
    struct str empty = str_store(&at, STR(""));
    struct str b = str_store(&at, STR("c\0d"));
    ck_assert_ptr_eq(a.p, room);
    ck_assert_str_is(a, "ab");
    ck_assert_ptr_null(none.p);
    ck_assert(empty.p != NULL && empty.n == 0);
    ck_assert(b.p == room + 2 && str_eq(b, STR("c\0d")));
    ck_assert_ptr_eq(at, room + 5);
    ck_assert_mem_eq(room, "abc\0d...", 8);
}

static const struct {
    const char *s;
    size_t max;
    const char *head;
} heads[] = {
    {"abc", 3, "abc"},
    {"abc", 2, "ab"},
    {"abc", 0, ""},
    {"", 0, ""},
    {"a\xe2\x82\xac", 4, "a\xe2\x82\xac"},
    {"a\xe2\x82\xac", 3, "a"},
    {"a\xe2\x82\xac", 2, "a"},
    {"a\xe2\x82\xac", 1, "a"},
    {"\xe2\x82\xac\xe2\x82\xac", 3, "\xe2\x82\xac"},
    {"\xf0\x9f\x98\x80", 3, ""},
    {"\x80\x80\x80", 2, ""},
};

TEST_EACH(cuts_between_characters, COUNT_OF(heads))
{
    ck_assert_str_is(str_head(str_of(heads[_i].s), heads[_i].max), heads[_i].head);
}
