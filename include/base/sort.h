/* Sorts indices in place without allocating: O(n log n) comparisons for every input. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Whether a comes before b. It must be a strict total order: of two different indices one comes
 * first. */
typedef bool sort_before_fn(const void *ctx, uint32_t a, uint32_t b);

/* The same as a job in steps, with room for n items beside them, and in an order of its own. */
struct sort_job {
    uint32_t *items; /* n of them; in the end sorted, here or where `spare` was */
    uint32_t *spare;
    uint32_t n;
    uint32_t width; /* of the runs that are sorted; zeros are a job that has not begun */
    uint32_t left;  /* next items of the two runs that are being merged into `spare` */
    uint32_t right;
    uint32_t out;
};

/* Moves at most `moves` items. True: there is more to do. */
bool sort_step(struct sort_job *job, uint32_t moves, sort_before_fn *before, const void *ctx);

void sort_by(uint32_t *items, uint32_t n, sort_before_fn *before, const void *ctx);
