/* Insertion sort for few items, fastest for the eight cards of a node; heap sort for more. In
 * steps: merge sort, which moves each item once for each doubling of the runs. */
#include "base/sort.h"

#include "base/macro.h"

#include <stddef.h>

#define FEW 16

static void sort_insert_all(uint32_t *items, uint32_t n, sort_before_fn *before, const void *ctx)
{
    for (uint32_t i = 1; i < n; i++) {
        uint32_t item = items[i];
        uint32_t at = i;
        for (; at > 0 && before(ctx, item, items[at - 1]); at--)
            items[at] = items[at - 1];
        items[at] = item;
    }
}

/* Restores the heap of n items, with the last item on top, after the item at `at` has changed. */
static void sort_sift(uint32_t *items, size_t n, size_t at, sort_before_fn *before, const void *ctx)
{
    for (size_t child = 2 * at + 1; child < n; child = 2 * at + 1) {
        if (child + 1 < n && before(ctx, items[child], items[child + 1]))
            child++;
        if (!before(ctx, items[at], items[child]))
            return;
        uint32_t item = items[at];
        items[at] = items[child];
        items[child] = item;
        at = child;
    }
}

void sort_by(uint32_t *items, uint32_t n, sort_before_fn *before, const void *ctx)
{
    if (n <= FEW) {
        sort_insert_all(items, n, before, ctx);
        return;
    }
    for (size_t i = n / 2; i-- > 0;)
        sort_sift(items, n, i, before, ctx);
    for (size_t left = n - 1; left > 0; left--) {
        uint32_t item = items[0];
        items[0] = items[left];
        items[left] = item;
        sort_sift(items, left, 0, before, ctx);
    }
}

static void sort_merge_one(struct sort_job *job, sort_before_fn *before, const void *ctx)
{
    uint32_t base = job->out - job->out % (2 * job->width);
    uint32_t middle = MIN_OF(base + job->width, job->n);
    uint32_t end = MIN_OF(base + 2 * job->width, job->n);
    if (job->out == base) {
        job->left = base;
        job->right = middle;
    }
    bool take_left =
        job->left < middle &&
        (job->right == end || !before(ctx, job->items[job->right], job->items[job->left]));
    job->spare[job->out++] = take_left ? job->items[job->left++] : job->items[job->right++];
}

bool sort_step(struct sort_job *job, uint32_t moves, sort_before_fn *before, const void *ctx)
{
    job->width = MAX_OF(job->width, 1U);
    for (uint32_t i = 0; i < moves && job->width < job->n; i++) {
        sort_merge_one(job, before, ctx);
        if (job->out < job->n)
            continue;
        uint32_t *merged = job->spare;
        job->spare = job->items;
        job->items = merged;
        job->out = 0;
        job->width *= 2;
    }
    return job->width < job->n;
}
