/* A heap with the greatest kept item first: a smaller item replaces it. */
#include "daemon/page/ui_least.h"

#include <stdlib.h>

/* Restores the heap order from `at` down. */
static void ui_least_sift(struct ui_least *l, size_t at)
{
    const void **heap = l->items;
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= l->n)
            return;
        if (child + 1 < l->n && l->order(&heap[child + 1], &heap[child]) > 0)
            child++;
        if (l->order(&heap[child], &heap[at]) <= 0)
            return;
        const void *item = heap[at];
        heap[at] = heap[child];
        heap[child] = item;
        at = child;
    }
}

void ui_least_add(struct ui_least *l, const void *item)
{
    assert(l->max > 0);
    l->total++;
    if (l->n < l->max) {
        l->items[l->n++] = item;
        for (size_t i = l->n / 2; l->n == l->max && i-- > 0;)
            ui_least_sift(l, i);
    } else if (l->order(&item, &l->items[0]) < 0) {
        l->items[0] = item;
        ui_least_sift(l, 0);
    }
}

void ui_least_sort(struct ui_least *l)
{
    if (l->n > 1)
        qsort((void *)l->items, l->n, sizeof(*l->items), l->order);
}
