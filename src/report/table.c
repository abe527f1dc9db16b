/*
 * Formats tables for a terminal. The width tables cover what names contain: the wide blocks of
 * Unicode's EastAsianWidth and the combining marks. libc's wcwidth needs a locale, and cardpack
 * sets none: some locales write numbers with a decimal comma.
 */
#include "report/table.h"
#include "report/limit.h"

#include <stdio.h>

struct range {
    uint32_t from;
    uint32_t to;
};

static const struct range wide[] = {
    {0x1100, 0x115f},   {0x231a, 0x231b},   {0x2329, 0x232a},   {0x23e9, 0x23ec},
    {0x2614, 0x2615},   {0x2648, 0x2653},   {0x26a1, 0x26a1},   {0x26bd, 0x26be},
    {0x2705, 0x2705},   {0x274c, 0x274c},   {0x2795, 0x2797},   {0x2b1b, 0x2b1c},
    {0x2b50, 0x2b50},   {0x2e80, 0x303e},   {0x3041, 0x33ff},   {0x3400, 0x4dbf},
    {0x4e00, 0x9fff},   {0xa000, 0xa4cf},   {0xa960, 0xa97f},   {0xac00, 0xd7a3},
    {0xf900, 0xfaff},   {0xfe30, 0xfe6f},   {0xff00, 0xff60},   {0xffe0, 0xffe6},
    {0x1f004, 0x1f004}, {0x1f0cf, 0x1f0cf}, {0x1f18e, 0x1f19a}, {0x1f200, 0x1f320},
    {0x1f32d, 0x1f335}, {0x1f337, 0x1f37c}, {0x1f37e, 0x1f393}, {0x1f3a0, 0x1f3ca},
    {0x1f3e0, 0x1f3f0}, {0x1f3f8, 0x1f43e}, {0x1f440, 0x1f440}, {0x1f442, 0x1f4fc},
    {0x1f4ff, 0x1f53d}, {0x1f5fb, 0x1f64f}, {0x1f680, 0x1f6c5}, {0x1f6eb, 0x1f6ec},
    {0x1f7e0, 0x1f7eb}, {0x1f90c, 0x1f9ff}, {0x1fa70, 0x1faff}, {0x20000, 0x3fffd},
};

static const struct range zero[] = {
    {0x0300, 0x036f}, {0x0483, 0x0489}, {0x0591, 0x05bd}, {0x0610, 0x061a}, {0x064b, 0x065f},
    {0x0900, 0x0902}, {0x093c, 0x093c}, {0x0941, 0x0948}, {0x0e31, 0x0e31}, {0x0e34, 0x0e3a},
    {0x0e47, 0x0e4e}, {0x1ab0, 0x1aff}, {0x1dc0, 0x1dff}, {0x200b, 0x200d}, {0x20d0, 0x20ff},
    {0x302a, 0x302d}, {0x3099, 0x309a}, {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f}, {0xe0100, 0xe01ef},
};

static bool is_in(const struct range *ranges, size_t n, uint32_t rune)
{
    for (size_t i = 0; i < n && ranges[i].from <= rune; i++) {
        if (rune <= ranges[i].to)
            return true;
    }
    return false;
}

void text_put_printable(struct buf *out, struct str s)
{
    while (s.n > 0) {
        uint32_t rune = 0;
        size_t n = str_utf8(s, &rune);
        if (n == 0)
            buf_put(out, STR("\xef\xbf\xbd"));
        else if (str_is_unprintable(rune))
            buf_printf(out, rune > 0xff ? "\\u%04x" : "\\x%02x", rune);
        else
            buf_put(out, (struct str){s.p, n});
        s = str_skip(s, n == 0 ? 1 : n);
    }
}

struct str text_printable(struct str s, struct arena *a)
{
    struct buf b;
    bool plain = true;
    for (size_t i = 0; plain && i < s.n; i++)
        plain = s.p[i] >= 0x20 && s.p[i] < 0x7f;
    if (plain)
        return arena_dup(a, s);
    buf_init(&b, 6 * s.n + 1);
    text_put_printable(&b, s);
    return arena_keep(a, &b);
}

size_t text_width(struct str printable)
{
    size_t width = 0;
    while (printable.n > 0) {
        uint32_t rune = 0;
        size_t n = str_utf8(printable, &rune);
        if (is_in(wide, COUNT_OF(wide), rune))
            width += 2;
        else if (!is_in(zero, COUNT_OF(zero), rune))
            width++;
        printable = str_skip(printable, MAX_OF(n, (size_t)1));
    }
    return width;
}

void table_init(struct table *t, struct arena *a)
{
    *t = (struct table){.arena = a};
}

static struct table_cell cell_of(struct table *t, struct str text, enum tint tint)
{
    struct str printable = text_printable(text, t->arena);
    return (struct table_cell){.text = printable, .tint = tint, .width = text_width(printable)};
}

void table_column(struct table *t, struct str head, bool right)
{
    assert(t->n == 0 && t->n_columns < COUNT_OF(t->heads));
    t->right[t->n_columns] = right;
    t->heads[t->n_columns++] = cell_of(t, head, TINT_HEAD);
}

void table_cell(struct table *t, struct str text, enum tint tint)
{
    struct table_cell *cells = arena_grow(t->arena, t->cells, t->n, &t->cap, sizeof(*t->cells));
    if (cells == NULL)
        return;
    t->cells = cells;
    cells[t->n++] = cell_of(t, text, tint);
}

void table_printf(struct table *t, enum tint tint, const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    table_cell(t, str_of(text), tint);
}

void tint_begin(struct buf *out, enum tint tint, bool color)
{
    static const char *const codes[] = {
        [TINT_NONE] = "",         [TINT_HEAD] = "\033[1m", [TINT_GOOD] = "\033[32m",
        [TINT_WARN] = "\033[33m", [TINT_BAD] = "\033[31m", [TINT_DIM] = "\033[2m",
    };
    if (color)
        buf_put(out, str_of(codes[tint]));
}

void tint_end(struct buf *out, enum tint tint, bool color)
{
    if (color && tint != TINT_NONE)
        buf_put(out, STR("\033[0m"));
}

static void put_spaces(struct buf *out, size_t n)
{
    while (n-- > 0)
        buf_putc(out, ' ');
}

/* Writes spaces only before a cell with text, so that no line ends with spaces. */
static void put_row(const struct table *t, const struct table_cell *row, const size_t *widths,
                    bool color, struct buf *out)
{
    size_t owed = 0;
    for (size_t i = 0; i < t->n_columns; i++) {
        const struct table_cell *c = &row[i];
        size_t pad = widths[i] - c->width;
        if (c->text.n > 0) {
            put_spaces(out, owed + (t->right[i] ? pad : 0));
            tint_begin(out, c->tint, color);
            buf_put(out, c->text);
            tint_end(out, c->tint, color);
            owed = t->right[i] ? 3 : pad + 3;
        } else {
            owed += widths[i] + 3;
        }
    }
    buf_putc(out, '\n');
}

void table_write(const struct table *t, bool heads, bool color, struct buf *out)
{
    size_t widths[LIMIT_TABLE_COLUMNS] = {0};
    if (arena_failed(t->arena) || t->n_columns == 0)
        return;
    assert(t->n % t->n_columns == 0);
    for (size_t i = 0; heads && i < t->n_columns; i++)
        widths[i] = t->heads[i].width;
    for (size_t i = 0; i < t->n; i++) {
        size_t column = i % t->n_columns;
        widths[column] = MAX_OF(widths[column], t->cells[i].width);
    }
    if (heads)
        put_row(t, t->heads, widths, color, out);
    for (size_t i = 0; i < t->n; i += t->n_columns)
        put_row(t, t->cells + i, widths, color, out);
}
