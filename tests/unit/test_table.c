/* Tables for terminals: the width of text, unsafe characters, colours and limits. */
#include "report/table.h"

#include "unit.h"

static struct arena arena;
static struct buf out;

static void setup(void)
{
    arena_init(&arena, MIB);
    buf_init(&out, MIB);
}

static void teardown(void)
{
    buf_done(&out);
    arena_done(&arena);
}

/* U+202E reverses what follows; as an array, because a string would reverse this line. */
static const char turned[] = {'a', '\xe2', '\x80', '\xae', 'b', '\0'};

static const struct {
    const char *text;
    const char *shown;
    size_t width;
} texts[] = {
    {"node-1", "node-1", 6},
    {"", "", 0},
    {"Gr\xc3\xb6\xc3\x9f", "Gr\xc3\xb6\xc3\x9f", 4},
    {"\xf0\x9f\x9a\x80x", "\xf0\x9f\x9a\x80x", 2}, /* four bytes */
    {"a\033[2Jb", "a\\x1b[2Jb", 9},                /* it would clear the screen */
    {"a\xc2\x9b"
     "2Jb",
     "a\\x9b2Jb", 8},       /* the same in one character */
    {"a\nb", "a\\x0ab", 6}, /* it would begin a line */
    {turned, "a\\u202eb", 8},
    {"a\xd8\x9c\xef\xbb\xbf\xe2\x80\x8b", "a\\u061c\\ufeff\\u200b", 19}, /* invisible */
    {"a\xf3\xa0\x81\x81", "a\\ue0041", 8},                               /* a tag character */
    {"a\xc2\x85", "a\\x85", 5},
    {"\xff", "\xef\xbf\xbd", 1}, /* not UTF-8 */
    {"\xe2\x82", "\xef\xbf\xbd\xef\xbf\xbd", 2},
};

TEST_EACH(printable, COUNT_OF(texts))
{
    struct str shown = text_printable(str_of(texts[_i].text), &arena);
    ck_assert_str_is(shown, texts[_i].shown);
    ck_assert_uint_eq(text_width(shown), texts[_i].width);
}

static void fill(struct table *t)
{
    table_init(t, &arena);
    table_column(t, STR("NAME"), false);
    table_column(t, STR("FREE"), true);
    table_column(t, STR("STATE"), false);
    table_cell(t, STR("n\xc3\xb6"), TINT_NONE);
    table_printf(t, TINT_GOOD, "%d", 16);
    table_cell(t, STR("ok"), TINT_NONE);
    table_cell(t, STR("n"), TINT_NONE);
    table_printf(t, TINT_BAD, "%d", 12345);
    table_cell(t, STR(""), TINT_BAD);
}

/* Columns are aligned by characters, not by bytes; no line ends with spaces. */
TEST(aligned)
{
    struct table t;
    fill(&t);
    table_write(&t, true, false, &out);
    ck_assert_str_is(buf_str(&out), "NAME    FREE   STATE\n"
                                    "n\xc3\xb6        16   ok\n"
                                    "n      12345\n");
}

TEST(without_heads)
{
    struct table t;
    fill(&t);
    table_write(&t, false, false, &out);
    ck_assert_str_is(buf_str(&out), "n\xc3\xb6      16   ok\n"
                                    "n    12345\n");
}

/* Colours have no width: without their codes the text is the same. */
TEST(colored)
{
    struct table t;
    fill(&t);
    table_write(&t, true, true, &out);
    ck_assert_str_is(buf_str(&out),
                     "\033[1mNAME\033[0m    \033[1mFREE\033[0m   \033[1mSTATE\033[0m\n"
                     "n\xc3\xb6        \033[32m16\033[0m   ok\n"
                     "n      \033[31m12345\033[0m\n");
}

/* When the arena is full the caller sees it, and no half table is printed. */
TEST(too_large)
{
    struct arena small;
    struct table t;
    arena_init(&small, 256);
    table_init(&t, &small);
    table_column(&t, STR("NAME"), false);
    for (int i = 0; i < 64; i++)
        table_cell(&t, STR("node"), TINT_NONE);
    ck_assert(arena_failed(&small));
    table_write(&t, true, false, &out);
    ck_assert_uint_eq(out.n, 0);
    arena_done(&small);
}

int main(void)
{
    TCase *t = unit_case("table");
    tcase_add_checked_fixture(t, setup, teardown);
    return unit_run();
}
