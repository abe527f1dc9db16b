/* Formats tables for a terminal. */
#include "report/table.h"
#include "report/limit.h"

#include <stdio.h>

struct str text_printable(struct str s, struct arena *a)
{
    struct buf b;
    bool plain = true;
    for (size_t i = 0; plain && i < s.n; i++)
        plain = s.p[i] >= 0x20 && s.p[i] < 0x7f;
    if (plain)
        return arena_dup(a, s);
    buf_init(&b, 6 * s.n + 1);
    buf_put_printable(&b, s);
    return arena_keep(a, &b);
}

size_t text_width(struct str printable)
{
    size_t width = 0;
    for (size_t i = 0; i < printable.n; i++)
        width +=
            ((unsigned char)printable.p[i] & 0xc0) != 0x80 ? 1 : 0; /* not within a character */
    return width;
}

void table_init(struct table *t, struct arena *a)
{
    *t = (struct table){.arena = a};
}

static struct table_cell table_cell_of(struct table *t, struct str text, enum tint tint)
{
    struct str printable = text_printable(text, t->arena);
    return (struct table_cell){.text = printable, .tint = tint, .width = text_width(printable)};
}

void table_column(struct table *t, struct str head, bool right)
{
    assert(t->n == 0 && t->n_columns < COUNT_OF(t->heads));
    t->right[t->n_columns] = right;
    t->heads[t->n_columns++] = table_cell_of(t, head, TINT_HEAD);
}

void table_cell(struct table *t, struct str text, enum tint tint)
{
    struct table_cell *cells = arena_grow(t->arena, t->cells, t->n, &t->cap, sizeof(*t->cells));
    if (cells == NULL)
        return;
    t->cells = cells;
    cells[t->n++] = table_cell_of(t, text, tint);
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

static void table_put_spaces(struct buf *out, size_t n)
{
    while (n-- > 0)
        buf_putc(out, ' ');
}

/* Writes spaces only before a cell with text, so that no line ends with spaces. */
static void table_put_row(const struct table *t, const struct table_cell *row, const size_t *widths,
                          bool color, struct buf *out)
{
    size_t owed = 0;
    for (size_t i = 0; i < t->n_columns; i++) {
        const struct table_cell *c = &row[i];
        size_t pad = widths[i] - c->width;
        if (c->text.n > 0) {
            table_put_spaces(out, owed + (t->right[i] ? pad : 0));
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
        table_put_row(t, t->heads, widths, color, out);
    for (size_t i = 0; i < t->n; i += t->n_columns)
        table_put_row(t, t->cells + i, widths, color, out);
}
