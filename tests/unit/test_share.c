/* What a container may use of its cards: by its amount, a percentage or whole cards, on one card
 * and on several. */
#include "node/roster/share.h"

#include "unit.h"

static struct roster r;

static void set_up(void)
{
    const struct roster_card cards[] = {{0, 40}, {1, 80}, {2, 80}};
    roster_init(&r);
    roster_set_cards(&r, cards, COUNT_OF(cards));
}

static void tear_down(void)
{
    roster_done(&r);
}

struct ask {
    const char *name;
    const char *percent; /* NULL: none, as count */
    const char *count;
    bool whole;
    const char *mems[2]; /* of the containers "a" and "b"; NULL: there is none */
    const char *cores;   /* of each */
    struct card_list has;
    int64_t units[2];
    uint32_t share_cores;
};

static const struct ask asks[] = {
    {"an amount", NULL, NULL, false, {"8", NULL}, NULL, {1, {0}}, {8, 0}, 0},
    {"compute, too", NULL, NULL, false, {"8", NULL}, "30", {1, {0}}, {8, 0}, 30},
    {"two containers", NULL, NULL, false, {"8", "3"}, "30", {1, {1}}, {8, 3}, 30},
    {"an equal part of each card", NULL, "2", false, {"32", NULL}, "50", {2, {0, 1}}, {16, 0}, 25},
    {"of three", NULL, "3", false, {"9", NULL}, NULL, {3, {0, 1, 2}}, {3, 0}, 0},
    {"a whole card", NULL, NULL, true, {"1", NULL}, NULL, {1, {1}}, {80, 0}, 0},
    {"the smallest of the whole cards",
     NULL,
     "2",
     true,
     {"2", NULL},
     NULL,
     {2, {0, 1}},
     {40, 0},
     0},
    {"a whole card for both", NULL, NULL, true, {"1", "1"}, NULL, {1, {0}}, {40, 40}, 0},
    {"a percentage", "25", NULL, false, {"1", NULL}, NULL, {1, {1}}, {20, 0}, 0},
    {"of it a part", "33", NULL, false, {"1", NULL}, NULL, {1, {0}}, {14, 0}, 0},
    {"less than the amount", "10", NULL, false, {"9", NULL}, NULL, {1, {0}}, {9, 0}, 0},
    {"on two cards of two sizes", "50", "2", false, {"2", NULL}, NULL, {2, {0, 1}}, {20, 0}, 0},
    /* it counts for the pod as a whole, so each container has what it asks for */
    {"for two containers", "50", NULL, false, {"4", "2"}, NULL, {1, {1}}, {4, 2}, 0},
};

/* The pod "p" with the containers "a" and "b". */
static struct roster_pod *pod_of(const struct ask *q, const struct grant_view *grants, size_t n)
{
    struct container_view containers[2];
    struct pod_view v = {.uid = STR("p"),
                         .namespace = STR("ns"),
                         .name = STR("p"),
                         .node = STR("n"),
                         .phase = STR("Pending"),
                         .percent = q->percent == NULL ? STR_NULL : str_of(q->percent),
                         .count_label = q->count == NULL ? STR_NULL : str_of(q->count),
                         .whole_label = q->whole ? STR("require-whole-device") : STR_NULL,
                         .former.allocation = n > 0,
                         .has_allocation = n > 0,
                         .grants = grants,
                         .n_grants = n,
                         .containers = containers};
    for (uint32_t i = 0; i < 2 && q->mems[i] != NULL; i++) {
        containers[i] = (struct container_view){
            .name = i == 0 ? STR("a") : STR("b"),
            .mem = str_of(q->mems[i]),
            .cores = q->cores == NULL ? STR_NULL : str_of(q->cores),
            .index = i,
        };
        v.n_mains = i + 1;
        v.n_containers = i + 1;
    }
    ck_assert_int_eq(roster_set(&r, &v, 1), OK);
    return roster_find(&r, STR("p"));
}

/* The checkpoint: the pod's containers have these cards. */
static void give(const struct roster_pod *p, const struct card_list *has)
{
    roster_truth_begin(&r);
    for (uint32_t i = 0; i < p->n_containers; i++)
        ck_assert(roster_truth(&r, p->uid, p->containers[i].name, has, false));
    roster_truth_end(&r, true);
}

TEST_EACH(by_the_request, COUNT_OF(asks))
{
    const struct ask *q = &asks[_i];
    const struct roster_pod *p = pod_of(q, NULL, 0);
    struct card_share share;
    give(p, &q->has);
    for (uint32_t i = 0; i < 2 && q->mems[i] != NULL; i++) {
        ck_assert(share_find(&r, p, i == 0 ? STR("a") : STR("b"), &share));
        ck_assert(card_list_equal(&share.cards, &q->has));
        ck_assert_msg(share.units == q->units[i], "%s: %lld", q->name, (long long)share.units);
        ck_assert_uint_eq(share.cores, q->share_cores);
    }
    ck_assert(!share_find(&r, p, STR("c"), &share));
}

/* The size of a card is not known yet: a limit would be too small, and none is ever raised. */
TEST_EACH(a_card_of_unknown_size, 3)
{
    static const struct card_list has[] = {{1, {3}}, {2, {0, 3}}, {2, {3, 7}}};
    const struct roster_card more[] = {{0, 40}, {3, 20}, {7, 30}};
    struct card_share share;
    struct roster_pod *p = pod_of(
        &(struct ask){.mems = {"2", NULL}, .whole = true, .count = _i == 0 ? NULL : "2"}, NULL, 0);
    give(p, &has[_i]);
    ck_assert(!share_find(&r, p, STR("a"), &share));
    roster_set_cards(&r, more, COUNT_OF(more));
    ck_assert(share_find(&r, p, STR("a"), &share));
    ck_assert_int_eq(share.units, 20);
}

/* Without the checkpoint the annotations say which cards; it counts more than they do. */
TEST(by_the_annotations)
{
    const struct grant_view grants[] = {{0, 0, 4}, {0, 1, 4}};
    const struct card_list has = {2, {1, 2}};
    const struct card_list none = {.n = 0};
    struct card_share share;
    struct roster_pod *p =
        pod_of(&(struct ask){.mems = {"8", NULL}, .count = "2"}, grants, COUNT_OF(grants));
    ck_assert(share_find(&r, p, STR("a"), &share));
    ck_assert(card_list_equal(&share.cards, &(struct card_list){2, {0, 1}}));
    ck_assert_int_eq(share.units, 4);
    give(p, &has);
    ck_assert(share_find(&r, p, STR("a"), &share));
    ck_assert(card_list_equal(&share.cards, &has));
    /* late binding: it has devices, and no cards yet */
    give(p, &none);
    ck_assert(share_find(&r, p, STR("a"), &share));
    ck_assert(card_list_equal(&share.cards, &(struct card_list){2, {0, 1}}));
}

TEST(without_cards)
{
    struct card_share share;
    const struct roster_pod *p = pod_of(&asks[0], NULL, 0);
    ck_assert(share_find(&r, p, STR("a"), &share));
    ck_assert_uint_eq(share.cards.n, 0);
    ck_assert_int_eq(share.units, 0);
}

/* The scheduler refuses such a request; a limit that is too small would be wrong nevertheless. */
TEST(a_part_that_does_not_divide)
{
    const struct card_list cards = {2, {1, 2}};
    const struct demand d = {.mem = 7, .cores = 5};
    struct card_share share;
    share_of(&r, pod_of(&asks[0], NULL, 0), &d, &cards, &share);
    ck_assert_int_eq(share.units, 4);
    ck_assert_uint_eq(share.cores, 3);
}

int main(void)
{
    TCase *c = unit_case("share");
    tcase_add_checked_fixture(c, set_up, tear_down);
    return unit_run();
}
