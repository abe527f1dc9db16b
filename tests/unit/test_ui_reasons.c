/* Why filter refused pods, as the page keeps and shows it. */
#include "daemon/page/ui_reasons.h"

#include "daemon/page/ui_write.h"
#include "fit_fixture.h"
#include "json/jwrite.h"

#include <stdio.h>

static struct ui_reasons reasons;
static struct step_budget step_budget;

static struct str name_of(char text[static 32], unsigned i)
{
    int n = snprintf(text, 32, "p-%u", i);
    return (struct str){text, (size_t)n};
}

TEST(reasons_have_a_ceiling)
{
    char text[32];
    struct shortfall shortfalls[VERDICT_COUNT] = {{.free = 0}};
    struct candidates j = {.counts = {[VERDICT_NO_CORES] = 2}, .shortfalls = shortfalls};
    ui_reasons_init(&reasons, (struct map_seed){1, 2});
    for (unsigned i = 0; i < LIMIT_UI_REASONS + 10; i++)
        ui_reasons_note(&reasons, name_of(text, i), &j);
    ck_assert_uint_eq(reasons.n, LIMIT_UI_REASONS);
    ck_assert_ptr_null(ui_reasons_get(&reasons, STR("p-9")));
    const struct ui_reason *one = ui_reasons_get(&reasons, STR("p-10"));
    ck_assert_ptr_nonnull(one);
    ck_assert_uint_eq(one->counts[VERDICT_NO_CORES], 2);
    uint64_t version = reasons.version;
    ui_reasons_note(&reasons, STR("p-10"), &j); /* the same again is no change */
    ck_assert_uint_eq(reasons.version, version);
    /* A repeated note becomes the latest. */
    j.counts[VERDICT_MODEL] = 5;
    ui_reasons_note(&reasons, STR("p-10"), &j);
    ck_assert_uint_eq(reasons.version, version + 1);
    shortfalls[VERDICT_NO_CORES].cores = 30; /* a figure that the page shows has changed */
    ui_reasons_note(&reasons, STR("p-10"), &j);
    ck_assert_uint_eq(reasons.version, version + 2);
    ui_reasons_note(&reasons, STR("another"), &j);
    ck_assert_ptr_nonnull(ui_reasons_get(&reasons, STR("p-10")));
    ck_assert_ptr_null(ui_reasons_get(&reasons, STR("p-11")));
    ui_reasons_forget(&reasons, STR("p-10"));
    ck_assert_ptr_null(ui_reasons_get(&reasons, STR("p-10")));
}

#define TWO_MODELS                                                       \
    NODE(.mem = S("40"), CARDS({.index = 0, .mem = 8, .model = S("T4")}, \
                               {.index = 1, .mem = 32, .model = S("A100")}))

/* The figures are those of the cards that the pod may use, as in filter's answer. If some of them
 * are feasible, but too few, the figure of the others would explain nothing. */
static const struct {
    struct node_view node;
    struct pod_view pods[FIXTURE_PODS];
    struct pod_view ask;
    const char *because;
} rows[] = {
    {TWO_MODELS,
     {PLAIN("a", "3", AT(0))},
     PLAIN("ask", "7", .card_model = S("T4")),
     "{\"no_card_free\":{\"nodes\":1,\"text\":\"7 asked, the most that is free on a card: 5\"}}"},
    {TWO_MODELS,
     {NO_POD},
     PLAIN("ask", "9", .card_model = S("T4")),
     "{\"too_large\":{\"nodes\":1,\"text\":\"9 asked, the largest card has 8\"}}"},
    {TWO_MODELS,
     {PLAIN("a", "3", AT(0))},
     PLAIN("ask", "14", .count_label = S("2")),
     "{\"no_card_free\":{\"nodes\":1}}"},
    {TWO_CARDS,
     {POD("a", CONTAINERS(1, MAIN_CORES(0, "1", "80")), AT(0))},
     POD("ask", .count_label = S("2"), CONTAINERS(1, MAIN_CORES(0, "2", "60"))),
     "{\"no_cores\":{\"nodes\":1}}"},
};

TEST_EACH(figures_are_of_the_cards_that_the_pod_may_use, COUNT_OF(rows))
{
    char bytes[2048];
    char wanted[256];
    struct buf out = BUF_ON(bytes);
    struct rig r;
    struct arena arena;
    struct jwrite w;
    struct candidates j;
    struct err e = ERR_INIT;
    const struct str name = STR("n");
    struct filter_args args = {.pod = rows[_i].ask, .has_pod = true, .names = &name, .n = 1};
    arena_init(&arena, 1 << 20);
    ui_reasons_init(&reasons, (struct map_seed){1, 2});
    fit_fixture_open(&r, &rows[_i].node, rows[_i].pods, POLICY_UNSET);
    set_pod(&r, rows[_i].ask);
    ck_assert_ok(evaluate(&r.cache, NULL, &step_budget, &args, &arena, false, &j, &e), &e);
    ui_reasons_filtered(&reasons, args.pod.uid, &j);
    jwrite_init(&w, &out);
    ui_write_pending(&w, &r.cache, &reasons);
    (void)snprintf(wanted, sizeof(wanted), "\"because\":%s}]", rows[_i].because);
    ck_assert_msg(strstr(buf_cstr(&out), wanted) != NULL, "%s in %s", wanted, buf_cstr(&out));
    arena_done(&arena);
    rig_done(&r);
}
