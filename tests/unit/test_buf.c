/* Buffers: growth, ceilings, failures that stay, and lack of memory. */
#include "base/buf.h"

#include "base/mem.h"
#include "fail_alloc.h"
#include "unit.h"

#include <signal.h>

TEST(appends)
{
    struct buf b;
    buf_init(&b, 1000);
    buf_put(&b, STR("a"));
    buf_put(&b, STR(""));
    buf_put(&b, STR_NULL);
    buf_putc(&b, '\0');
    buf_put_u64(&b, 0);
    buf_putc(&b, ' ');
    buf_put_u64(&b, UINT64_MAX);
    buf_putc(&b, ' ');
    buf_put_i64(&b, INT64_MIN);
    buf_putc(&b, ' ');
    buf_put_i64(&b, INT64_MAX);
    buf_printf(&b, " %s=%d", "x", -7);
    const struct str expected =
        STR("a\0"
            "0 18446744073709551615 -9223372036854775808 9223372036854775807 x=-7");
    ck_assert(!buf_failed(&b));
    ck_assert(str_eq(buf_str(&b), expected));
    ck_assert_uint_eq(strlen(buf_cstr(&b) + 2), expected.n - 2);
    ck_assert_uint_eq(b.n, expected.n);
    buf_done(&b);
}

TEST(empty_is_not_absent)
{
    struct buf b;
    buf_init(&b, 10);
    ck_assert_ptr_nonnull(buf_str(&b).p);
    ck_assert_str_eq(buf_cstr(&b), "");
    buf_done(&b);
    ck_assert_ptr_nonnull(buf_str(&b).p);
}

/* Each call needs n bytes of room, and without it must leave the buf unchanged. */
static void put_ten(struct buf *b)
{
    buf_put(b, STR("0123456789"));
}

static void put_one(struct buf *b)
{
    buf_putc(b, 'x');
}

static void put_number(struct buf *b)
{
    buf_put_u64(b, 12345);
}

static void put_negative(struct buf *b)
{
    buf_put_i64(b, -12345);
}

static void put_formatted(struct buf *b)
{
    buf_printf(b, "%04d-%02d", 2026, 1);
}

static const struct {
    void (*put)(struct buf *b);
    size_t n;
} puts_table[] = {
    {put_ten, 10}, {put_one, 1}, {put_number, 5}, {put_negative, 6}, {put_formatted, 7},
};

TEST_EACH(holds_its_ceiling_and_drops_whole, COUNT_OF(puts_table))
{
    for (size_t max = 0; max < 30; max++) {
        struct buf b;
        size_t n = 0;
        buf_init(&b, max);
        for (puts_table[_i].put(&b); !buf_failed(&b); puts_table[_i].put(&b))
            n++;
        ck_assert_uint_eq(n, max / puts_table[_i].n);
        ck_assert_uint_eq(b.n, n * puts_table[_i].n);
        /* The failure stays: even bytes that would fit are refused. */
        buf_put(&b, STR("."));
        ck_assert_uint_eq(b.n, n * puts_table[_i].n);
        ck_assert_ptr_null(buf_cstr(&b));
        buf_clear(&b, SIZE_MAX);
        ck_assert(!buf_failed(&b) && b.n == 0);
        buf_done(&b);
    }
}

TEST(no_ceiling_overflows)
{
    struct buf b;
    buf_init(&b, SIZE_MAX);
    buf_put(&b, STR("12"));
    ck_assert(!buf_failed(&b));
    ck_assert(!buf_reserve(&b, SIZE_MAX - 2));
    buf_clear(&b, SIZE_MAX);
    ck_assert(!buf_reserve(&b, SIZE_MAX));
    buf_done(&b);
}

TEST(reserves)
{
    struct buf b;
    buf_init(&b, 5000);
    ck_assert(buf_reserve(&b, 5000));
    memset(b.p, 'r', 5000);
    b.n += 5000;
    ck_assert(buf_reserve(&b, 0));
    ck_assert_ptr_nonnull(buf_cstr(&b));
    ck_assert(!buf_reserve(&b, 1));
    buf_done(&b);
}

TEST(growth_is_geometric)
{
    struct buf b;
    buf_init(&b, 1000000);
    fail_alloc_arm(FAIL_NEVER, 0);
    for (size_t i = 0; i < 1000000; i++)
        buf_putc(&b, 'g');
    ck_assert(!buf_failed(&b));
    ck_assert_uint_le(fail_alloc_count(), 14);
    buf_done(&b);
}

TEST(clear_keeps_what_it_may)
{
    struct buf b;
    buf_init(&b, 100000);
    ck_assert(buf_reserve(&b, 999));
    size_t cap = b.cap;
    buf_clear(&b, cap);
    ck_assert_uint_eq(b.cap, cap);
    buf_clear(&b, cap - 1);
    ck_assert_uint_eq(b.cap, 0);
    buf_put(&b, STR("again"));
    ck_assert_str_is(buf_str(&b), "again");
    buf_done(&b);
}

static enum errc fill(void *ctx)
{
    (void)ctx;
    struct buf b;
    buf_init(&b, 100000);
    for (int i = 0; i < 1000; i++) {
        buf_printf(&b, "%d", i);
        buf_put_i64(&b, -i);
        buf_putc(&b, ',');
    }
    bool failed = buf_failed(&b);
    ck_assert(failed == (buf_cstr(&b) == NULL));
    buf_done(&b);
    return failed ? ERR_NOMEM : OK;
}

TEST(survives_a_lack_of_memory)
{
    ck_assert_uint_gt(fail_alloc_each(fill, NULL), 3);
}

TEST(tells_a_lack_of_memory_from_its_ceiling)
{
    struct buf b;
    buf_init(&b, 10);
    ck_assert_int_eq(buf_fault(&b), OK);
    buf_put(&b, STR("eleven byte"));
    ck_assert_int_eq(buf_fault(&b), ERR_LIMIT);
    buf_clear(&b, SIZE_MAX);
    ck_assert_int_eq(buf_fault(&b), OK);
    fail_alloc_arm(FAIL_ONCE, 1);
    buf_putc(&b, 'a');
    buf_put(&b, STR("eleven byte")); /* the first reason is kept */
    ck_assert_int_eq(buf_fault(&b), ERR_NOMEM);
    buf_done(&b);
}

/* Bytes from before the failure stay readable. */
TEST(keeps_its_bytes_without_memory)
{
    struct buf b;
    buf_init(&b, 100000);
    buf_put(&b, STR("before"));
    fail_alloc_arm(FAIL_ONCE, 1);
    ck_assert(!buf_reserve(&b, 50000));
    ck_assert_str_is(buf_str(&b), "before");
    ck_assert(buf_failed(&b));
    buf_done(&b);
}

/* Each way to drop its content leaves the caller's array usable, and frees nothing. */
TEST(on_an_array)
{
    char bytes[8];
    struct buf b = BUF_ON(bytes);
    fail_alloc_arm(FAIL_FROM_THEN_ON, 1);
    buf_put(&b, STR("1234567"));
    ck_assert_str_eq(buf_cstr(&b), "1234567");
    ck_assert_ptr_eq(b.p, bytes);
    buf_putc(&b, '8');
    ck_assert_int_eq(buf_fault(&b), ERR_LIMIT);
    ck_assert_str_is(buf_str(&b), "1234567");
    buf_clear(&b, SIZE_MAX);
    buf_put(&b, STR("abc"));
    buf_clear(&b, 0);
    buf_put(&b, STR("defg"));
    ck_assert_str_is(buf_str(&b), "defg");
    buf_done(&b);
    ck_assert_uint_eq(b.n, 0);
    buf_put(&b, STR("7654321"));
    ck_assert(!buf_failed(&b));
    ck_assert_int_eq(memcmp(bytes, "7654321", 7), 0);
    struct buf part = buf_on(bytes, 1);
    buf_putc(&part, 'x');
    ck_assert_int_eq(buf_fault(&part), ERR_LIMIT);
    ck_assert_uint_eq(fail_alloc_count(), 0);
    fail_alloc_disarm();
}
