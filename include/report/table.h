/*
 * A table as kubectl prints it: columns as wide as their widest cell, three spaces between them, no
 * space at the end of a line. Each character counts as one column, as in kubectl's own tables.
 * Text comes from users, so control characters are shown escaped ("\x1b") and bytes that are not
 * UTF-8 as U+FFFD.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "report/limit.h"

enum tint {
    TINT_NONE,
    TINT_HEAD,
    TINT_GOOD,
    TINT_WARN,
    TINT_BAD,
    TINT_DIM,
};

struct table_cell {
    struct str text; /* safe to print on a terminal */
    enum tint tint;
    size_t width;
};

struct table {
    struct arena *arena;
    struct table_cell heads[LIMIT_TABLE_COLUMNS];
    bool right[LIMIT_TABLE_COLUMNS];
    size_t n_columns;
    struct table_cell *cells; /* row by row */
    size_t n;
    size_t cap;
};

void table_init(struct table *t, struct arena *a);

/* Add all columns before the first cell. */
void table_column(struct table *t, struct str head, bool right);

/* Adds the next cell, from left to right. Out of memory: the arena's failure is set. */
void table_cell(struct table *t, struct str text, enum tint tint);
void table_printf(struct table *t, enum tint tint, const char *fmt, ...) _printf_(3, 4);

void table_write(const struct table *t, bool heads, bool color, struct buf *out);

/* Tints, escapes and widths for a line of text outside of a table. */
void tint_begin(struct buf *out, enum tint tint, bool color);
void tint_end(struct buf *out, enum tint tint, bool color);
struct str text_printable(struct str s, struct arena *a);
size_t text_width(struct str printable); /* in characters */
