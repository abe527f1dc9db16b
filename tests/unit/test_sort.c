/* The sort: same result as libc's, and a bounded number of comparisons. */
#include "base/sort.h"

#include "unit.h"

#include <stdlib.h>

enum {
    MOST = 3000
};

struct keys {
    uint32_t of[MOST];
    unsigned *asked; /* counts comparisons */
};

static bool before(const void *ctx, uint32_t a, uint32_t b)
{
    const struct keys *k = ctx;
    ++*k->asked;
    return k->of[a] != k->of[b] ? k->of[a] < k->of[b] : a < b;
}

static int by_number(const void *a, const void *b)
{
    const uint64_t *x = a;
    const uint64_t *y = b;
    return *x < *y ? -1 : *x > *y ? 1 : 0;
}

static const uint32_t lengths[] = {0, 1, 2, 3, 7, 16, 17, 18, 100, 1024, MOST};

/* Sorts in steps of `moves` items and one large step. */
static void sort_some(uint32_t *items, uint32_t n, struct keys *k, uint32_t moves)
{
    static uint32_t a[MOST];
    static uint32_t b[MOST];
    struct sort_job job = {.items = a, .spare = b, .n = n};
    memcpy(a, items, n * sizeof(*items));
    for (unsigned i = 0; i < 100; i++)
        (void)sort_step(&job, moves, before, k);
    while (sort_step(&job, UINT32_MAX, before, k)) {
    }
    memcpy(items, job.items, n * sizeof(*items));
}

/* Same result as libc's qsort, for few and many different keys, in any order, ascending and
 * descending; with a bounded number of comparisons. */
TEST_EACH(sorts_as_libc, COUNT_OF(lengths))
{
    static struct keys k;
    static uint32_t items[MOST];
    static uint64_t expected[MOST];
    uint32_t n = lengths[_i];
    for (unsigned way = 0; way < 4; way++) {
        uint32_t seed = 1;
        for (uint32_t i = 0; i < n; i++) {
            seed = seed * 1664525 + 1013904223;
            k.of[i] = way == 0 ? i : way == 1 ? n - i : way == 2 ? seed >> 16 : seed >> 30;
            items[i] = i;
            expected[i] = (uint64_t)k.of[i] << 32 | i;
        }
        unsigned asked = 0;
        k.asked = &asked;
        sort_some(items, n, &k, way + 1);
        ck_assert_uint_le(asked, (uint64_t)n * 12);
        qsort(expected, n, sizeof(expected[0]), by_number);
        for (uint32_t i = 0; i < n; i++)
            ck_assert_uint_eq(items[i], (uint32_t)expected[i]);
        for (uint32_t i = 0; i < n; i++)
            items[i] = i;
        asked = 0;
        sort_by(items, n, before, &k);
        for (uint32_t i = 0; i < n; i++)
            ck_assert_uint_eq(items[i], (uint32_t)expected[i]);
        ck_assert_uint_le(asked, n <= 16 ? 120 : 2 * n * 12);
    }
}
