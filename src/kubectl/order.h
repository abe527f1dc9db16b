/* The order of a table's rows for --sort-by. */
#pragma once

#include "base/arena.h"
#include "kubectl/args.h"

struct order_row {
    int64_t key;     /* the largest first */
    struct str text; /* of equal keys: in ascending order */
    size_t at;       /* of equal texts: the row's index, as before */
};

/* n rows with their indices, for the caller to fill. NULL: the arena failed. */
struct order_row *order_rows(struct arena *a, size_t n);
void order_sort(struct order_row *rows, size_t n);

/* Whether the rows of the command's table can be sorted by that column. */
bool order_has(enum kubectl_command c, enum kubectl_sort by);

/* "used": as --sort-by names it; KUBECTL_SORT_NONE has no name. */
const char *order_name(enum kubectl_sort by);
