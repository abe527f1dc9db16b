/* Sorts rows, and has the columns by which each command sorts. */
#include "kubectl/order.h"

#include <stdlib.h>

static const struct {
    const char *name;
    unsigned commands;
} columns[KUBECTL_SORTS] = {
    [KUBECTL_SORT_NAME] = {"name", 1U << KUBECTL_TOP | 1U << KUBECTL_PODS},
    [KUBECTL_SORT_NODE] = {"node", 1U << KUBECTL_CARDS | 1U << KUBECTL_PODS},
    [KUBECTL_SORT_USED] = {"used", 1U << KUBECTL_TOP | 1U << KUBECTL_CARDS},
    [KUBECTL_SORT_FREE] = {"free", 1U << KUBECTL_TOP | 1U << KUBECTL_CARDS},
    [KUBECTL_SORT_PODS] = {"pods", 1U << KUBECTL_TOP | 1U << KUBECTL_CARDS},
    [KUBECTL_SORT_MEMORY] = {"memory", 1U << KUBECTL_PODS},
    [KUBECTL_SORT_AGE] = {"age", 1U << KUBECTL_PODS},
};

struct order_row *order_rows(struct arena *a, size_t n)
{
    struct order_row *rows = arena_array(a, MAX_OF(n, (size_t)1), sizeof(*rows));
    for (size_t i = 0; rows != NULL && i < n; i++)
        rows[i] = (struct order_row){.at = i};
    return rows;
}

static int order_compare(const void *a, const void *b)
{
    const struct order_row *x = a;
    const struct order_row *y = b;
    if (x->key != y->key)
        return x->key > y->key ? -1 : 1;
    int c = str_cmp(x->text, y->text);
    return c != 0 ? c : x->at < y->at ? -1 : 1;
}

void order_sort(struct order_row *rows, size_t n)
{
    if (n > 1)
        qsort(rows, n, sizeof(*rows), order_compare);
}

bool order_has(enum kubectl_command c, enum kubectl_sort by)
{
    return by == KUBECTL_SORT_NONE || (columns[by].commands >> c & 1) != 0;
}

const char *order_name(enum kubectl_sort by)
{
    return columns[by].name;
}
