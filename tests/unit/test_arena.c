/* The arena: alignment, arrays that grow, the ceiling, reset and lack of memory. */
#include "base/arena.h"

#include "base/limit.h"
#include "fail_alloc.h"
#include "unit.h"

#define BIG (MIB)

static bool is_all(const unsigned char *bytes, unsigned char value, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (bytes[i] != value)
            return false;
    }
    return true;
}

static void use(struct arena *a, size_t total, size_t piece)
{
    for (size_t n = 0; n < total && arena_alloc(a, piece) != NULL;)
        n += piece;
    ck_assert(!arena_failed(a));
}

TEST(gives_zeroed_aligned_memory)
{
    struct arena a;
    arena_init(&a, BIG);
    for (int round = 0; round < 3; round++) {
        for (size_t size = 0; size < 2000; size += 7) {
            unsigned char *p = arena_alloc(&a, size);
            ck_assert_ptr_nonnull(p);
            ck_assert_uint_eq((uintptr_t)p % 16, 0);
            ck_assert(is_all(p, 0, size));
            if (size > 0)
                memset(p, 0xff, size);
        }
        arena_reset(&a);
    }
    arena_done(&a);
}

/* Bytes written to one allocation must survive all later allocations. */
TEST(allocations_do_not_overlap)
{
    enum {
        N = 300
    };

    struct arena a;
    unsigned char *blocks[N];
    arena_init(&a, 32 * MIB);
    for (size_t i = 0; i < N; i++) {
        size_t size = (i * 997) % 60000 + 1;
        blocks[i] = arena_alloc(&a, size);
        ck_assert_ptr_nonnull(blocks[i]);
        memset(blocks[i], (int)(i % 251), size);
    }
    for (size_t i = 0; i < N; i++) {
        size_t size = (i * 997) % 60000 + 1;
        ck_assert(is_all(blocks[i], (unsigned char)(i % 251), size));
    }
    arena_done(&a);
}

static const struct {
    size_t max;
    size_t fits; /* how many allocations of `size` fit */
    size_t size;
} ceilings[] = {
    {0, 0, 0},
    {0, 0, 1},
    {15, 0, 1},
    {16, 1, 0},
    {16, 1, 16},
    {16, 0, 17},
    {64, 4, 16},
    {64, 2, 17},
    {64, 1, 64},
    {64, 0, 65},
    {5 * MIB, 1, 5 * MIB},
    {SIZE_MAX, 0, SIZE_MAX},
    {SIZE_MAX, 0, SIZE_MAX - 15},
    {SIZE_MAX, 0, SIZE_MAX - 64},
    {SIZE_MAX, 0, (size_t)PTRDIFF_MAX + 1},
};

TEST_EACH(holds_its_ceiling, COUNT_OF(ceilings))
{
    struct arena a;
    arena_init(&a, ceilings[_i].max);
    size_t n = 0;
    while (arena_alloc(&a, ceilings[_i].size) != NULL)
        n++;
    ck_assert_uint_eq(n, ceilings[_i].fits);
    ck_assert(arena_failed(&a));
    arena_done(&a);
}

TEST(failure_sticks_until_reset)
{
    struct arena a;
    size_t cap = 0;
    arena_init(&a, 64);
    ck_assert_ptr_null(arena_alloc(&a, 65));
    ck_assert_ptr_null(arena_alloc(&a, 1));
    ck_assert_ptr_null(arena_array(&a, 1, 1));
    ck_assert_ptr_null(arena_grow(&a, NULL, 0, &cap, 1));
    ck_assert_uint_eq(cap, 0);
    ck_assert_ptr_null(arena_dup(&a, STR("x")).p);
    ck_assert(arena_failed(&a));
    arena_reset(&a);
    ck_assert(!arena_failed(&a));
    ck_assert_ptr_nonnull(arena_alloc(&a, 64));
    ck_assert_ptr_null(arena_alloc(&a, 0));
    arena_done(&a);
}

TEST(array_checks_the_product)
{
    struct arena a;
    arena_init(&a, BIG);
    ck_assert_ptr_nonnull(arena_array(&a, 0, 8));
    ck_assert_ptr_nonnull(arena_array(&a, 1000, 8));
    ck_assert(!arena_failed(&a));
    ck_assert_ptr_null(arena_array(&a, SIZE_MAX / 8 + 2, 8));
    ck_assert(arena_failed(&a));
    arena_done(&a);
}

TEST(grows_an_array)
{
    struct arena a;
    uint32_t *numbers = NULL;
    size_t cap = 0;
    arena_init(&a, BIG);
    for (uint32_t i = 0; i < 10000; i++) {
        numbers = arena_grow(&a, numbers, i, &cap, sizeof(*numbers));
        ck_assert_ptr_nonnull(numbers);
        ck_assert_uint_lt(i, cap);
        numbers[i] = i;
    }
    for (uint32_t i = 0; i < 10000; i++)
        ck_assert_uint_eq(numbers[i], i);
    arena_done(&a);
}

/* Growing an array must not overwrite allocations made since, nor touch the old copy of an array
 * that was moved. */
TEST(grows_among_others)
{
    struct arena a;
    uint32_t *numbers[2] = {NULL, NULL};
    size_t cap[2] = {0, 0};
    arena_init(&a, BIG);
    for (uint32_t i = 0; i < 3000; i++) {
        for (size_t k = 0; k < 2; k++) {
            numbers[k] = arena_grow(&a, numbers[k], i, &cap[k], sizeof(*numbers[k]));
            ck_assert_ptr_nonnull(numbers[k]);
            numbers[k][i] = i + (uint32_t)k;
        }
        char *other = i % 7 == 0 ? arena_alloc(&a, 3) : NULL;
        if (other != NULL)
            ck_assert(other[0] == 0 && other[1] == 0 && other[2] == 0);
        if (other != NULL)
            memset(other, 0xff, 3);
    }
    for (uint32_t i = 0; i < 3000; i++)
        ck_assert(numbers[0][i] == i && numbers[1][i] == i + 1);
    arena_done(&a);
}

/* The last array grows without a copy, so reading a long list costs no repeated copies. */
TEST(the_last_array_grows_where_it_stands)
{
    struct arena a;
    size_t cap = 0;
    arena_init(&a, 64 * MIB);
    use(&a, 500000, 4096);
    arena_reset(&a);
    char *first = arena_grow(&a, NULL, 0, &cap, 16);
    char *array = first;
    while (cap < 16384) {
        array = arena_grow(&a, array, cap, &cap, 16);
        ck_assert_ptr_eq(array, first);
    }
    memset(array, 0xff, cap * 16);
    ck_assert_uint_eq(a.used, cap * 16);
    ck_assert_ptr_nonnull(arena_alloc(&a, 1));
    ck_assert_ptr_ne(arena_grow(&a, array, cap, &cap, 16), first);
    arena_done(&a);
}

/* The chunk has more room than the ceiling allows. */
TEST(an_array_does_not_grow_past_the_ceiling)
{
    struct arena a;
    size_t cap = 0;
    arena_init(&a, 1000);
    char *array = arena_grow(&a, NULL, 0, &cap, 16);
    while (array != NULL && cap < 4096)
        array = arena_grow(&a, array, cap, &cap, 16);
    ck_assert_ptr_null(array);
    ck_assert_uint_le(cap * 16, 1000);
    ck_assert(arena_failed(&a));
    arena_done(&a);
}

TEST(dup_keeps_absent_and_empty_apart)
{
    struct arena a;
    char source[] = "text";
    arena_init(&a, BIG);
    ck_assert_ptr_null(arena_dup(&a, STR_NULL).p);
    struct str empty = arena_dup(&a, STR(""));
    ck_assert_ptr_nonnull(empty.p);
    ck_assert_uint_eq(empty.n, 0);
    struct str copy = arena_dup(&a, str_of(source));
    source[0] = 'n';
    ck_assert_str_is(copy, "text");
    arena_done(&a);
}

/* The second run of the same work reuses the arena's memory: it allocates nothing. */
TEST(steady_state_allocates_nothing)
{
    struct arena a;
    arena_init(&a, 256 * MIB);
    for (int round = 0; round < 2; round++) {
        use(&a, 300000, 48);
        arena_reset(&a);
    }
    fail_alloc_arm(FAIL_NEVER, 0);
    for (int round = 0; round < 5; round++) {
        use(&a, 300000, 48);
        arena_reset(&a);
        use(&a, 100, 10);
        arena_reset(&a);
    }
    ck_assert_uint_eq(fail_alloc_count(), 0);
    arena_done(&a);
}

/* A reset frees the memory of one large request. */
TEST(keeps_little_over_a_reset)
{
    const size_t pieces[] = {64, 100000, 20 * MIB};
    struct arena a;
    arena_init(&a, 256 * MIB);
    for (size_t i = 0; i < COUNT_OF(pieces); i++) {
        use(&a, 20 * MIB, pieces[i]);
        ck_assert_uint_ge(a.held, 20 * MIB);
        arena_reset(&a);
        ck_assert_uint_le(a.held, LIMIT_KEEP_BYTES);
    }
    arena_done(&a);
    ck_assert_uint_eq(a.held, 0);
}

static enum errc fill(void *ctx)
{
    (void)ctx;
    struct arena a;
    arena_init(&a, BIG);
    uint64_t *numbers = NULL;
    size_t cap = 0;
    struct str last = STR_NULL;
    for (size_t i = 0; i < 3000; i++) {
        numbers = arena_grow(&a, numbers, i, &cap, sizeof(*numbers));
        if (numbers != NULL)
            numbers[i] = i;
        last = arena_dup(&a, STR("a name that is not short"));
    }
    bool failed = arena_failed(&a);
    ck_assert(failed == (last.p == NULL));
    arena_done(&a);
    return failed ? ERR_NOMEM : OK;
}

TEST(survives_a_lack_of_memory)
{
    ck_assert_uint_gt(fail_alloc_each(fill, NULL), 2);
}

TEST(tells_a_lack_of_memory_from_its_ceiling)
{
    struct arena a;
    arena_init(&a, BIG);
    ck_assert_int_eq(arena_fault(&a), OK);
    ck_assert_ptr_null(arena_alloc(&a, BIG + 1));
    ck_assert_int_eq(arena_fault(&a), ERR_LIMIT);
    arena_reset(&a);
    ck_assert_int_eq(arena_fault(&a), OK);
    fail_alloc_arm(FAIL_ONCE, 1);
    ck_assert_ptr_null(arena_alloc(&a, 8));
    ck_assert_ptr_null(arena_alloc(&a, BIG + 1)); /* the first reason is kept */
    ck_assert_int_eq(arena_fault(&a), ERR_NOMEM);
    arena_done(&a);
}

TEST(is_usable_after_a_lack_of_memory)
{
    struct arena a;
    arena_init(&a, BIG);
    fail_alloc_arm(FAIL_ONCE, 1);
    ck_assert_ptr_null(arena_alloc(&a, 8));
    ck_assert_ptr_null(arena_alloc(&a, 8));
    arena_reset(&a);
    ck_assert_ptr_nonnull(arena_alloc(&a, 8));
    arena_done(&a);
}
