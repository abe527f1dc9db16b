/* Keeps the least few of many items, in fixed memory: for the page's lists, which have a limit. */
#pragma once

#include "base/macro.h"

struct ui_least {
    const void **items; /* room for `max` items; the caller's */
    size_t max;
    int (*order)(const void *a, const void *b); /* of two pointers into `items`, as for qsort */
    size_t n;
    size_t total; /* all items that were added */
};

void ui_least_add(struct ui_least *l, const void *item);

/* Sorts the kept items. Then nothing more may be added. */
void ui_least_sort(struct ui_least *l);
