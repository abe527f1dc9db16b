/* The choice of victims for a pod that asks for memory of one card. */
#include "core/preempt/victims.h"

#include "fail_alloc.h"
#include "victims_rig.h"

#define COUNT_MAX 8

/* One card's memory, on two cards of 16. */
static const struct {
    const char *why;
    struct actor pods[COUNT_MAX];
    int64_t mem;
    const char *victims;
    int card;
} table[] = {
    {"no pod is in the way", {{.uid = "a", .mem = "8", .card = 0}}, 16, "", 1},
    {"the card with one pod rather than with two",
     {{.uid = "a", .mem = "8", .card = 0},
      {.uid = "b", .mem = "8", .card = 0},
      {.uid = "c", .mem = "16", .card = 1}},
     16,
     "c",
     1},
    {"the lower priority rather than fewer",
     {{.uid = "a", .mem = "8", .card = 0},
      {.uid = "b", .mem = "8", .card = 0},
      {.uid = "c", .mem = "16", .card = 1, .priority = 1}},
     16,
     "a b",
     0},
    {"the highest priority counts, not the sum",
     {{.uid = "a", .mem = "8", .card = 0, .priority = 5},
      {.uid = "b", .mem = "8", .card = 0, .priority = 5},
      {.uid = "c", .mem = "16", .card = 1, .priority = 6}},
     16,
     "a b",
     0},
    {"fewer before the smaller sum",
     {{.uid = "a", .mem = "8", .card = 0, .priority = INT32_MIN},
      {.uid = "b", .mem = "8", .card = 0, .priority = 6},
      {.uid = "c", .mem = "16", .card = 1, .priority = 6}},
     16,
     "c",
     1},
    {"then the smaller sum",
     {{.uid = "a", .mem = "8", .card = 0, .priority = 6},
      {.uid = "b", .mem = "8", .card = 0, .priority = 3},
      {.uid = "c", .mem = "8", .card = 1, .priority = 6},
      {.uid = "d", .mem = "8", .card = 1, .priority = 4}},
     16,
     "a b",
     0},
    {"then the lower card",
     {{.uid = "a", .mem = "16", .card = 1}, {.uid = "b", .mem = "16", .card = 0}},
     16,
     "b",
     0},
    {"then the first name",
     {{.uid = "b", .mem = "8", .card = 0},
      {.uid = "a", .mem = "8", .card = 0},
      {.uid = "c", .mem = "16", .card = 1, .priority = 9}},
     8,
     "a",
     0},
    {"no more than needed",
     {{.uid = "a", .mem = "4", .card = 0},
      {.uid = "b", .mem = "5", .card = 0},
      {.uid = "c", .mem = "7", .card = 0},
      {.uid = "d", .mem = "16", .card = 1}},
     5,
     "b",
     0},
    {"one large pod rather than two small",
     {{.uid = "a", .mem = "3", .card = 0},
      {.uid = "b", .mem = "3", .card = 0},
      {.uid = "c", .mem = "10", .card = 0},
      {.uid = "d", .mem = "16", .card = 1, .priority = 100}},
     6,
     "c",
     0},
    {"equal priority stays",
     {{.uid = "a", .mem = "16", .card = 0, .priority = 100},
      {.uid = "b", .mem = "16", .card = 1, .priority = 101}},
     1,
     "no_card_free",
     -1},
    {"only pods of lower priority",
     {{.uid = "a", .mem = "8", .card = 0, .priority = 100},
      {.uid = "b", .mem = "8", .card = 0},
      {.uid = "c", .mem = "16", .card = 1, .priority = 100}},
     8,
     "b",
     0},
    {"a pod that is being deleted is no victim",
     {{.uid = "a", .mem = "16", .card = 0, .deleting = true}, {.uid = "b", .mem = "16", .card = 1}},
     16,
     "",
     0},
    {"no eviction helps",
     {{.uid = "a", .mem = "16", .card = 0}, {.uid = "b", .mem = "16", .card = 1}},
     17,
     "too_large",
     -1},
    {"a pod without a card is in the way of the sum",
     {{.uid = "a", .mem = "8", .card = 0, .priority = 50},
      {.uid = "b", .mem = "16", .card = -1},
      {.uid = "c", .mem = "8", .card = 1, .priority = 50}},
     8,
     "b",
     0},
    {"one of two cards",
     {{.uid = "a", .mem = "16", .card = 0, .other = 1, .priority = 3},
      {.uid = "b", .mem = "8", .card = 0},
      {.uid = "c", .mem = "8", .card = 1}},
     8,
     "b",
     0},
    {"and where it is cheaper, from both",
     {{.uid = "a", .mem = "16", .card = 0, .other = 1},
      {.uid = "b", .mem = "8", .card = 0, .priority = 2},
      {.uid = "c", .mem = "8", .card = 1, .priority = 2}},
     8,
     "a",
     0},
    {"the other plugin's pods",
     {{.uid = "a", .mem = NULL, .card = -1, .exclusive = "1"},
      {.uid = "b", .mem = NULL, .card = -1, .exclusive = "1"}},
     4,
     "a b",
     0},
};

TEST_EACH(one_card, COUNT_OF(table))
{
    struct victims_rig s;
    victims_rig_init(&s, "32", "2");
    for (size_t i = 0; i < COUNT_MAX && table[_i].pods[i].uid != NULL; i++)
        actor_apply(&s.rig, table[_i].pods[i]);
    want(&s, table[_i].mem);
    const char *got = choose(&s);
    ck_assert_msg(strcmp(got, table[_i].victims) == 0 && s.got.card == table[_i].card,
                  "%s: \"%s\" and card %d, not \"%s\" and %d", table[_i].why, got, s.got.card,
                  table[_i].victims, table[_i].card);
    victims_rig_done(&s);
}

TEST(budgets_come_before_priority)
{
    struct victims_rig s;
    victims_rig_init(&s, "32", "2");
    actor_apply(&s.rig, (struct actor){.uid = "a", .mem = "16", .card = 0, .app = "web"});
    actor_apply(&s.rig,
                (struct actor){.uid = "b", .mem = "8", .card = 1, .app = "job", .priority = 50});
    actor_apply(&s.rig,
                (struct actor){.uid = "c", .mem = "8", .card = 1, .app = "job", .priority = 60});
    want(&s, 16);
    ck_assert_str_eq(choose(&s), "a");
    budget_put(&s.budgets, "web", 0);
    ck_assert_str_eq(choose(&s), "b c");
    ck_assert_uint_eq(s.got.cost.violations, 0);
    ck_assert_int_eq(s.got.cost.highest, 60);
    budget_put(&s.budgets, "job", 1); /* two pods must go, and one may */
    ck_assert_str_eq(choose(&s), "a");
    ck_assert_uint_eq(s.got.cost.violations, 1);
    budget_put(&s.budgets, "job", 2);
    ck_assert_str_eq(choose(&s), "b c");
    budget_put(&s.budgets, "web", 1);
    ck_assert_str_eq(choose(&s), "a");
    victims_rig_done(&s);
}

TEST(who_goes_anyway_takes_his_part_of_a_budget)
{
    struct victims_rig s;
    victims_rig_init(&s, "48", "3");
    actor_apply(&s.rig, (struct actor){.uid = "a", .mem = "8", .card = 0, .app = "web"});
    actor_apply(&s.rig, (struct actor){.uid = "b", .mem = "8", .card = 0, .app = "web"});
    actor_apply(&s.rig,
                (struct actor){.uid = "c", .mem = "16", .card = 1, .app = "job", .priority = 7});
    actor_apply(&s.rig, (struct actor){.uid = "d", .mem = "16", .card = 2, .priority = 100});
    budget_put(&s.budgets, "web", 1);
    const struct pod *given[] = {cache_pod(&s.rig.cache, STR("a"))};
    want(&s, 8);
    s.q.given = given;
    s.q.n_given = 1;
    ck_assert_str_eq(choose(&s), "");
    ck_assert_int_eq(s.got.card, 0);
    want(&s, 16);
    ck_assert_str_eq(choose(&s), "c"); /* b would be the second eviction of web */
    s.q.n_given = 0;
    budget_put(&s.budgets, "web", 2);
    ck_assert_str_eq(choose(&s), "a b");
    victims_rig_done(&s);
}

TEST(labels_are_those_of_the_last_object)
{
    struct victims_rig s;
    victims_rig_init(&s, "32", "2");
    actor_apply(&s.rig, (struct actor){.uid = "a", .mem = "16", .card = 0});
    actor_apply(&s.rig, (struct actor){.uid = "b", .mem = "16", .card = 1, .priority = 1});
    budget_put(&s.budgets, "web", 0);
    want(&s, 16);
    ck_assert_str_eq(choose(&s), "a");
    actor_apply(&s.rig, (struct actor){.uid = "a", .mem = "16", .card = 0, .app = "web"});
    ck_assert_str_eq(choose(&s), "b");
    actor_apply(&s.rig, (struct actor){.uid = "a", .mem = "16", .card = 0, .app = "job"});
    ck_assert_str_eq(choose(&s), "a");
    victims_rig_done(&s);
}

/* A pod with a bind under way may be unknown to the scheduler, so it is no victim; and a pod is
 * never evicted for itself. */
TEST(who_is_being_bound_stays)
{
    struct victims_rig s;
    victims_rig_init(&s, "16", "1");
    ck_assert_int_eq(reserve(&s.rig, "a", "n", 8), OK);
    actor_apply(&s.rig, (struct actor){.uid = "b", .mem = "8", .card = 0});
    want(&s, 8);
    ck_assert_str_eq(choose(&s), "b");
    want(&s, 9);
    ck_assert_str_eq(choose(&s), "no_card_free");
    ck_assert_int_eq(rig_apply(&s.rig, &(struct cache_event){.type = CACHE_CONFIRM,
                                                             .holder = {.uid = STR("a")}}),
                     OK);
    ck_assert_str_eq(choose(&s), "a b");
    actor_apply(&s.rig, (struct actor){.uid = "new", .mem = "8", .card = 0});
    ck_assert_str_eq(choose(&s), "no_card_free");
    victims_rig_done(&s);
}

TEST(what_is_kept_for_others_is_taken)
{
    struct victims_rig s;
    victims_rig_init(&s, "32", "2");
    actor_apply(&s.rig, (struct actor){.uid = "a", .mem = "16", .card = 0});
    actor_apply(&s.rig, (struct actor){.uid = "b", .mem = "16", .card = 1, .priority = 1});
    want(&s, 16);
    ck_assert_str_eq(choose(&s), "a");
    nominate(&s.rig, "other", "16", 100);
    ck_assert_str_eq(choose(&s), "a b");
    nominate(&s.rig, "other", "16", 99);
    ck_assert_str_eq(choose(&s), "a");
    nominate(&s.rig, "other", "16", 100);
    actor_apply(&s.rig, (struct actor){.uid = "a", .mem = "16", .card = 0, .deleting = true});
    ck_assert_str_eq(choose(&s), "b"); /* a's card is the other one */
    nominate(&s.rig, "new", "16", 100);
    ck_assert_str_eq(choose(&s), "b");
    victims_rig_done(&s);
}

TEST(a_node_that_is_none)
{
    struct victims_rig s;
    victims_rig_init(&s, "16", "1");
    want(&s, 1);
    s.q.node = NULL;
    ck_assert_int_eq(victims_choose(&s.q, &s.arena, &s.got), OK);
    ck_assert_int_eq(s.got.verdict, VERDICT_UNKNOWN_NODE);
    actor_apply(&s.rig, (struct actor){.uid = "a", .mem = "16", .card = 0});
    node_gone(&s.rig, "n");
    ck_assert_str_eq(choose(&s), "unknown_node");
    node_set(&s.rig, "n", NULL, NULL, NULL);
    ck_assert_str_eq(choose(&s), "not_shared");
    victims_rig_done(&s);
}

/* Then another pod on the card, or another card; and at last none. */
TEST(who_is_spared_stays)
{
    static const char *const then[] = {"a", "b", "c", "no_card_free"};
    const struct pod *spared[COUNT_OF(then)];
    struct victims_rig s;
    victims_rig_init(&s, "32", "2");
    actor_apply(&s.rig, (struct actor){.uid = "a", .mem = "8", .card = 0});
    actor_apply(&s.rig, (struct actor){.uid = "b", .mem = "8", .card = 0});
    actor_apply(&s.rig, (struct actor){.uid = "c", .mem = "16", .card = 1, .priority = 9});
    want(&s, 8);
    s.q.spared = spared;
    for (size_t i = 0; i < COUNT_OF(then); i++) {
        ck_assert_str_eq(choose(&s), then[i]);
        if (s.got.verdict != VERDICT_FITS)
            break;
        ck_assert_uint_eq(s.got.there.n, 1);
        ck_assert_uint_eq(s.got.there.grants[0].card, i < 2 ? 0 : 1);
        ck_assert_int_eq(s.got.there.grants[0].mem, 8);
        spared[s.q.n_spared++] = pod_of(&s.rig, then[i]);
    }
    ck_assert_uint_eq(s.q.n_spared, 3);
    victims_rig_done(&s);
}

static enum errc scenario(void *ctx)
{
    struct victims_rig *s = ctx;
    arena_done(&s->arena);
    arena_init(&s->arena, MIB);
    return victims_choose(&s->q, &s->arena, &s->got);
}

TEST(without_memory)
{
    struct victims_rig s;
    victims_rig_init(&s, "32", "2");
    actor_apply(&s.rig, (struct actor){.uid = "a", .mem = "16", .card = 0, .app = "web"});
    actor_apply(&s.rig, (struct actor){.uid = "b", .mem = "16", .card = 1, .app = "web"});
    budget_put(&s.budgets, "web", 1);
    s.request.cards = 2;
    want(&s, 32);
    ck_assert_str_eq(choose(&s), "a b");
    ck_assert_uint_gt(fail_alloc_each(scenario, &s), 0);
    victims_rig_done(&s);
}
