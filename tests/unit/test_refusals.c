/* The table of refused pods that evictions may help: its order, its limit and lack of memory. */
#include "daemon/evict/refusals.h"

#include "daemon/limit.h"
#include "fail_alloc.h"
#include "unit.h"

#include <stdio.h>

static struct refusals table;

static void set_up(void)
{
    refusals_init(&table);
}

static void tear_down(void)
{
    fail_alloc_disarm();
    refusals_done(&table);
}

static struct refusal *note(const char *uid, int32_t priority, uint64_t now_ms)
{
    return refusals_note(&table, str_of(uid), priority, now_ms);
}

static const char *due(uint64_t now_ms)
{
    static char uid[REFUSAL_UID_BYTES + 1];
    const struct refusal *f = refusals_due(&table, 100, now_ms);
    if (f == NULL)
        return "";
    (void)snprintf(uid, sizeof(uid), "%.*s", STR_ARG(refusal_uid(f)));
    return uid;
}

TEST(it_counts_from_the_first_time)
{
    ck_assert_ptr_nonnull(note("a", 5, 10));
    ck_assert_str_eq(due(109), "");
    ck_assert_ptr_nonnull(note("a", 5, 90));
    ck_assert_str_eq(due(110), "a");
    refusals_get(&table, STR("a"))->not_before_ms = 200;
    ck_assert_str_eq(due(199), "");
    ck_assert_str_eq(due(200), "a");
    refusals_forget(&table, STR("a"));
    refusals_forget(&table, STR("a"));
    ck_assert_str_eq(due(200), "");
    ck_assert_ptr_nonnull(note("a", 5, 200));
    ck_assert_str_eq(due(299), "");
}

TEST(the_heaviest_comes_first_then_who_waits_longest)
{
    (void)note("late", 7, 3);
    (void)note("light", 5, 1);
    (void)note("early", 7, 2);
    ck_assert_str_eq(due(200), "early");
    refusals_forget(&table, STR("early"));
    ck_assert_str_eq(due(200), "late");
    refusals_forget(&table, STR("late"));
    ck_assert_str_eq(due(200), "light");
}

TEST(who_weighs_less_makes_room)
{
    char uid[16];
    for (unsigned i = 0; i < LIMIT_REFUSALS; i++) {
        (void)snprintf(uid, sizeof(uid), "u-%u", i);
        ck_assert_ptr_nonnull(note(uid, i == 3 || i == 5 ? 1 : 2, i));
    }
    ck_assert_ptr_null(note("x", 1, 1000));
    ck_assert_ptr_nonnull(note("u-3", 1, 1000)); /* it had room */
    ck_assert_ptr_nonnull(note("x", 2, 1000));
    ck_assert_ptr_null(refusals_get(&table, STR("u-5"))); /* the more recent of the two */
    ck_assert_uint_eq(refusals_get(&table, STR("x"))->since_ms, 1000);
    ck_assert_ptr_nonnull(note("y", 2, 1000));
    ck_assert_ptr_null(refusals_get(&table, STR("u-3")));
    ck_assert_ptr_null(note("z", 2, 1000));
}

TEST(a_uid_that_is_none)
{
    static char uid[REFUSAL_UID_BYTES + 2];
    memset(uid, 'u', sizeof(uid) - 1);
    ck_assert_ptr_null(note("", 1, 1));
    ck_assert_ptr_null(note(uid, 1, 1));
    uid[REFUSAL_UID_BYTES] = '\0';
    ck_assert_ptr_nonnull(note(uid, 1, 1));
}

static const char *nodes_of(const char *uid)
{
    static char text[256];
    struct buf out = BUF_ON(text);
    const struct refusal *f = refusals_get(&table, str_of(uid));
    struct str node;
    size_t cursor = 0;
    text[0] = '\0';
    while (refusal_next(buf_str(&f->nodes), &cursor, &node))
        buf_printf(&out, "%.*s,", STR_ARG(node));
    return text;
}

TEST(the_nodes_are_those_of_the_last_time)
{
    struct refusal *f = note("a", 1, 1);
    refusal_add(f, STR("n1"));
    refusal_add(f, STR("n2"));
    ck_assert_str_eq(nodes_of("a"), "n1,n2,");
    f = note("a", 1, 2);
    ck_assert_str_eq(nodes_of("a"), "");
    refusal_add(f, STR("n3"));
    ck_assert_str_eq(nodes_of("a"), "n3,");
    ck_assert_uint_eq(f->n_nodes, 1);
    for (unsigned i = 0; i < 2 * LIMIT_REFUSAL_NODES; i++)
        refusal_add(f, STR("n"));
    ck_assert_uint_eq(f->n_nodes, LIMIT_REFUSAL_NODES);
}

static enum errc fill(void *ctx)
{
    struct refusal *f = note("a", 1, 1);
    unsigned n = 0;
    (void)ctx;
    for (; n < LIMIT_REFUSAL_NODES; n++)
        refusal_add(f, STR("a-node-of-some-length"));
    return f->n_nodes == n ? OK : ERR_NOMEM;
}

static enum errc fill_anew(void *ctx)
{
    refusals_done(&table);
    refusals_init(&table);
    return fill(ctx);
}

/* Some nodes may be missing, but none is incomplete; the second time nothing is allocated. */
TEST(without_memory)
{
    ck_assert_uint_gt(fail_alloc_each(fill_anew, NULL), 0);
    fail_alloc_arm(FAIL_FROM_THEN_ON, 1);
    ck_assert_int_eq(fill(NULL), OK);
    refusals_forget(&table, STR("a"));
    ck_assert_int_eq(fill(NULL), OK);
    fail_alloc_disarm();
    ck_assert(!fail_alloc_hit());
}

int main(void)
{
    TCase *tc = unit_case("refusals");
    tcase_add_checked_fixture(tc, set_up, tear_down);
    return unit_run();
}
