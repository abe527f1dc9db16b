/* Sorts indices in place without allocating: O(n log n) comparisons for every input. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Whether a comes before b. It must be a strict total order: of two different indices one comes
 * first. */
typedef bool sort_before_fn(const void *ctx, uint32_t a, uint32_t b);

void sort_by(uint32_t *items, uint32_t n, sort_before_fn *before, const void *ctx);
