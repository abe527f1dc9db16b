/* The memory budget that bufs, arenas and other allocations share. */
#include "base/mem_budget.h"

#include "base/arena.h"
#include "seeded.h"

#define ACCOUNTS 8
#define BUDGET   ((size_t)300000)
#define FREE     ((size_t)20000)

TEST(the_first_bytes_are_free_and_the_rest_is_bounded)
{
    struct mem_budget b = {.max = 100};
    struct mem_account a = {.used = 0};
    struct mem_account other = {.used = 0};
    ck_assert(mem_account_join(&a, &b, 50));
    ck_assert(mem_account_join(&other, &b, 50));
    ck_assert(mem_account_take(&a, 50));
    ck_assert_uint_eq(b.used, 0);
    ck_assert(!mem_account_counts(&a));
    ck_assert(mem_account_take(&a, 100));
    ck_assert_uint_eq(b.used, 100);
    ck_assert(mem_account_counts(&a));
    ck_assert(!a.refused);
    ck_assert(!mem_account_take(&a, 1));
    ck_assert(a.refused);
    ck_assert(mem_account_take(&other, 50));
    ck_assert(!mem_account_take(&other, 1));
    mem_account_give(&a, 120);
    ck_assert_uint_eq(b.used, 0);
    ck_assert_uint_eq(a.used, 30);
    ck_assert(mem_account_take(&other, 100));
    ck_assert(!mem_account_take(&other, SIZE_MAX));
    ck_assert_uint_eq(b.used, 100);
    mem_account_leave(&other);
    mem_account_leave(&other);
    ck_assert_uint_eq(b.used, 0);
    ck_assert_uint_eq(other.used, 150);
    b.max = 99; /* of 150 bytes only 50 are left: 100 do not fit */
    ck_assert(!mem_account_join(&other, &b, 50));
    ck_assert_uint_eq(b.used, 0);
    mem_account_give(&other, 150);
    ck_assert(mem_account_join(&other, &b, 50));
}

TEST(without_a_budget_nothing_is_refused)
{
    struct mem_account a = {.used = 0};
    ck_assert(mem_account_take(NULL, SIZE_MAX));
    mem_account_give(NULL, SIZE_MAX);
    ck_assert(mem_account_join(&a, NULL, 10));
    ck_assert(mem_account_take(&a, SIZE_MAX));
    ck_assert(!mem_account_counts(&a));
}

/* What is needed fits, though twice as much does not. */
TEST(a_buf_takes_what_it_needs_where_no_more_fits)
{
    struct mem_budget b = {.max = 1000};
    struct mem_account a = {.used = 0};
    struct buf text;
    ck_assert(mem_account_join(&a, &b, 0));
    buf_init(&text, 100000);
    text.account = &a;
    for (int i = 0; i < 900; i++)
        buf_putc(&text, 'x');
    ck_assert(!buf_failed(&text));
    ck_assert(!a.refused);
    ck_assert_uint_le(b.used, 1000);
    for (int i = 0; i < 100; i++)
        buf_putc(&text, 'x');
    ck_assert(buf_failed(&text));
    ck_assert_int_eq(buf_fault(&text), ERR_NOMEM);
    ck_assert(a.refused);
    buf_done(&text);
    ck_assert_uint_eq(b.used, 0);
    ck_assert_ptr_eq(text.account, &a);
}

struct one {
    struct mem_account account;
    struct buf buf;
    struct arena arena;
};

static size_t memory_of(const struct one *o)
{
    return o->buf.cap + o->arena.held;
}

static void step(struct one *o, struct mem_budget *b, uint64_t *seed)
{
    switch (seeded_draw(seed, 9)) {
    case 0:
    case 1:
    case 2:
        (void)!buf_reserve(&o->buf, seeded_draw(seed, 60000));
        break;
    case 3:
    case 4:
        (void)!arena_alloc(&o->arena, seeded_draw(seed, 60000));
        break;
    case 5:
        buf_clear(&o->buf, seeded_draw(seed, 40000));
        arena_reset(&o->arena);
        break;
    case 6:
        buf_done(&o->buf);
        break;
    case 7:
        arena_done(&o->arena);
        break;
    default:
        mem_account_leave(&o->account);
        if (!mem_account_join(&o->account, b, FREE)) {
            buf_done(&o->buf);
            arena_done(&o->arena);
            ck_assert(mem_account_join(&o->account, b, FREE));
        }
        break;
    }
}

/* For any history of bufs and arenas, the count equals the memory in use, and never exceeds the
 * budget. */
TEST_EACH(what_is_counted_is_what_there_is, 10)
{
    uint64_t seed = (uint64_t)_i + 1;
    struct mem_budget b = {.max = BUDGET};
    struct one all[ACCOUNTS] = {0};
    size_t refused = 0;
    for (size_t i = 0; i < ACCOUNTS; i++) {
        ck_assert(mem_account_join(&all[i].account, &b, FREE));
        buf_init(&all[i].buf, 200000);
        arena_init(&all[i].arena, 200000);
        all[i].buf.account = all[i].arena.account = &all[i].account;
    }
    for (int round = 0; round < 5000; round++) {
        size_t counted = 0;
        step(&all[seeded_draw(&seed, ACCOUNTS)], &b, &seed);
        for (size_t i = 0; i < ACCOUNTS; i++) {
            size_t has = memory_of(&all[i]);
            ck_assert_uint_eq(all[i].account.used, has);
            counted += has > FREE ? has - FREE : 0;
            refused += all[i].account.refused ? 1 : 0;
        }
        ck_assert_uint_eq(b.used, counted);
        ck_assert_uint_le(b.used, b.max);
    }
    ck_assert_uint_gt(refused, 0);
    for (size_t i = 0; i < ACCOUNTS; i++) {
        buf_done(&all[i].buf);
        arena_done(&all[i].arena);
    }
    ck_assert_uint_eq(b.used, 0);
}
