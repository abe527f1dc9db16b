/* The memo's bounds: rows and bytes, and what a search without steps leaves. */
#include "evaluate_world.h"

#include "report/evaluate.h"
#include "report/limit.h"

#define MANY 3000

struct setting {
    struct cache cache;
    struct evaluation_memo memo;
    struct arena arena;
    struct step_budget step_budget;
};

static void open_setting(struct setting *s, unsigned nodes)
{
    char name[16];
    struct effect fx;
    *s = (struct setting){.memo = {.n_rows = 0}};
    cache_init(&s->cache, (struct map_seed){1, 2});
    arena_init(&s->arena, 16 * MIB);
    for (unsigned i = 0; i < nodes; i++) {
        int n = snprintf(name, sizeof(name), "n%u", i);
        struct cache_event e = {
            .type = CACHE_NODE_SET,
            .node = {.name = {name, (size_t)n}, .mem = STR("32"), .count = STR("2")}};
        ck_assert_int_eq(cache_apply(&s->cache, &e, 1, &fx), OK);
    }
}

static void close_setting(struct setting *s)
{
    evaluation_memo_done(&s->memo);
    arena_done(&s->arena);
    cache_done(&s->cache);
}

/* Asks about nodes n0 and n1 for a pod of this percentage. */
static void ask(struct setting *s, const char *percent)
{
    struct container_view c = {.name = STR("c"), .mem = STR("1")};
    struct str names[] = {STR("n0"), STR("n1")};
    struct candidates j;
    struct err e = ERR_INIT;
    const struct filter_args args = {.pod = {.uid = STR("u"),
                                             .namespace = STR("ns"),
                                             .percent = str_of(percent),
                                             .containers = &c,
                                             .n_containers = 1,
                                             .n_mains = 1},
                                     .names = names,
                                     .n = COUNT_OF(names),
                                     .by_name = true};
    arena_reset(&s->arena);
    ck_assert_ok(evaluate(&s->cache, &s->memo, &s->step_budget, &args, &s->arena, false, &j, &e),
                 &e);
    ck_assert_uint_eq(j.counts[VERDICT_FITS], COUNT_OF(names));
}

static void ask_all(struct setting *s)
{
    char percent[8];
    for (int i = 1; i <= 100; i++) {
        (void)snprintf(percent, sizeof(percent), "%d", i);
        ask(s, percent);
        ck_assert_uint_le(s->memo.bytes, LIMIT_JUDGE_BYTES);
        ck_assert_uint_le(s->memo.n_rows, EVALUATION_ROWS);
    }
}

/* The least recently used shape goes first. */
TEST(rows_are_bounded)
{
    struct setting s;
    open_setting(&s, 2);
    ask_all(&s);
    ck_assert_uint_eq(s.memo.n_rows, EVALUATION_ROWS);
    ask(&s, "100");
    uint64_t fresh = s.step_budget.steps;
    ask(&s, "37"); /* of the last 64 */
    ck_assert_uint_eq(s.step_budget.steps, fresh);
    ask(&s, "1");
    ck_assert_uint_gt(s.step_budget.steps, fresh);
    close_setting(&s);
}

TEST(bytes_are_bounded)
{
    struct setting s;
    open_setting(&s, 3 * MANY);
    ask_all(&s);
    ck_assert_uint_gt(s.memo.n_rows, 10);
    ck_assert_uint_lt(s.memo.n_rows, EVALUATION_ROWS);
    ck_assert_uint_gt(s.memo.bytes, LIMIT_JUDGE_BYTES / 2);
    close_setting(&s);
}

/* Without room for one row nothing is remembered. */
TEST(a_large_cluster_has_no_memo)
{
    struct setting s;
    open_setting(&s, 100 * MANY);
    ask(&s, "50");
    ck_assert_uint_eq(s.memo.n_rows, 0);
    ck_assert_uint_eq(s.memo.bytes, 0);
    close_setting(&s);
}

/* A slot is reused, and its new node is evaluated. */
TEST(a_reused_slot_is_another_node)
{
    struct setting s;
    struct effect fx;
    open_setting(&s, 2);
    uint32_t slot = cache_node(&s.cache, STR("n1"))->slot;
    ask(&s, "50");
    struct cache_event gone = {.type = CACHE_NODE_GONE, .node = {.name = STR("n1")}};
    ck_assert_int_eq(cache_apply(&s.cache, &gone, 1, &fx), OK);
    struct cache_event other = {.type = CACHE_NODE_SET, .node = {.name = STR("n9")}};
    ck_assert_int_eq(cache_apply(&s.cache, &other, 1, &fx), OK);
    ck_assert_uint_eq(cache_node(&s.cache, STR("n9"))->slot, slot);
    struct evaluation_row *row = s.memo.rows[0];
    ck_assert_ptr_null(evaluate_row_get(row, cache_node(&s.cache, STR("n9"))));
    ck_assert_ptr_nonnull(evaluate_row_get(row, cache_node(&s.cache, STR("n0"))));
    close_setting(&s);
}

int main(void)
{
    TCase *tc = unit_case("evaluation_memo");
    tcase_set_timeout(tc, 0);
    return unit_run();
}
