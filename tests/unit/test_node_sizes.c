/* What a Node object says of its cards: tables, marks, limits, and which updates are changes. */
#include "asked.h"
#include "fail_alloc.h"

#include <stdio.h>

enum {
    FEW = 6
};

/* But the last digit. */
#define UUID "GPU-5a1f0c77-09ab-4cde-8f01-23456789abc"

#define NODE(...)                   \
    {                               \
        .name = S("n"), __VA_ARGS__ \
    }

/* A usable card: total; an unusable one: -total; no card at this index: 0. */
static const struct {
    struct node_view node;
    enum node_fault fault;
    uint32_t n_cards;
    int64_t cards[FEW];
    int64_t remainder;
    int64_t limit;
} tables[] = {
    {NODE(.mem = S("32"), .count = S("2")), NODE_OK, 2, {16, 16}, 0, 32},
    {NODE(.mem = S("33"), .count = S("2")), NODE_OK, 2, {16, 16}, 1, 33},
    /* The table counts, not the number in the capacity. */
    {NODE(.mem = S("24"), .count = S("4"), CARDS({.index = 0, .mem = 8}, {.index = 1, .mem = 16})),
     NODE_OK,
     2,
     {8, 16},
     0,
     24},
    {NODE(.mem = S("24"), CARDS({.index = 3, .mem = 8}, {.index = 1, .mem = 16})),
     NODE_OK,
     4,
     {0, 16, 0, 8},
     0,
     24},
    /* The table's sum is below the capacity, then above it. */
    {NODE(.mem = S("30"), CARDS({.index = 0, .mem = 8}, {.index = 1, .mem = 16})),
     NODE_OK,
     2,
     {8, 16},
     6,
     30},
    {NODE(.mem = S("20"), CARDS({.index = 0, .mem = 8}, {.index = 1, .mem = 16})),
     NODE_OK,
     2,
     {8, 16},
     -4,
     20},
    {NODE(.mem = S("24"),
          CARDS({.index = 0, .mem = 8}, {.index = 1, .mem = 16, .unhealthy = true})),
     NODE_OK,
     2,
     {8, -16},
     0,
     24},
    {NODE(.mem = S("48"), .count = S("3"), .cordoned = S("0, 7"), .exclusive_cards = S("2")),
     NODE_OK,
     3,
     {-16, 16, -16},
     0,
     48},
    /* An index without a card is no card, set aside or not. */
    {NODE(.mem = S("8"), .exclusive_cards = S("0"), CARDS({.index = 1, .mem = 8})),
     NODE_OK,
     2,
     {0, 8},
     0,
     8},
    {NODE(.mem = S("32"), .count = S("2"), .mem_allocatable = S("20")),
     NODE_OK,
     2,
     {16, 16},
     0,
     20},
    {NODE(.mem = S("32"), .count = S("2"), .has_cards = true,
          .cards_fault = "[0]: index is missing"),
     NODE_BAD_CARDS,
     0,
     {0},
     0,
     0},
    {NODE(.mem = S("32"), .has_cards = true), NODE_NO_CARDS, 0, {0}, 0, 0},
    {NODE(CARDS({.index = 0, .mem = 8})), NODE_NOT_SHARED, 0, {0}, 0, 0},
    {NODE(.mem = S("32"), .count = S("x"), CARDS({.index = 0, .mem = 8})),
     NODE_BAD_QUANTITY,
     0,
     {0},
     0,
     0},
    {NODE(.mem = S("8"), .mem_allocatable = S("x"), CARDS({.index = 0, .mem = 8})),
     NODE_BAD_QUANTITY,
     0,
     {0},
     0,
     0},
    /* Neither a card nor a sum of cards can be that large. */
    {NODE(.mem = S("1099511627776"), .count = S("1")),
     NODE_OK,
     1,
     {REQUEST_MEM_MAX},
     0,
     REQUEST_MEM_MAX},
    {NODE(.mem = S("1099511627777"), .count = S("1")), NODE_BAD_QUANTITY, 0, {0}, 0, 0},
    {NODE(.mem = S("9223372036854775807"), .count = S("1024")), NODE_BAD_QUANTITY, 0, {0}, 0, 0},
    {NODE(.mem = S("9223372036854775807"), CARDS({.index = 0, .mem = 8})),
     NODE_BAD_QUANTITY,
     0,
     {0},
     0,
     0},
};

TEST_EACH(reads_a_table, COUNT_OF(tables))
{
    struct rig r;
    rig_init(&r);
    set_node(&r, tables[_i].node);
    const struct node *n = node_of(&r, "n");
    ck_assert_int_eq(n->fault, tables[_i].fault);
    ck_assert_uint_eq(n->n_cards, tables[_i].n_cards);
    ck_assert_int_eq(n->limit, tables[_i].limit);
    if (n->fault == NODE_OK)
        ck_assert_int_eq(n->remainder, tables[_i].remainder);
    for (uint32_t i = 0; i < n->n_cards; i++) {
        int64_t said = tables[_i].cards[i];
        ck_assert_int_eq(n->cards[i].total, said < 0 ? -said : said);
        ck_assert(n->cards[i].absent == (said == 0));
        ck_assert(card_usable(&n->cards[i]) == (said > 0));
        ck_assert(node_has_card(n, i) == (said != 0));
        ck_assert(!n->cards[i].absent || !n->cards[i].aside);
    }
    rig_done(&r);
}

TEST(knows_its_cards)
{
    struct rig r;
    struct uuid_room room;
    rig_init(&r);
    set_node(&r, (struct node_view)NODE(.mem = S("24"), .model = S("T4"), .pool = S("blue"),
                                        CARDS({.index = 0,
                                               .mem = 8,
                                               .numa = 1,
                                               .model = S("A10"),
                                               .uuid = S("GPU-1"),
                                               .profile = S("1g.5gb")},
                                              {.index = 2, .mem = 16, .numa = -1})));
    const struct node *n = node_of(&r, "n");
    ck_assert_str_is(node_card_model(n, 0), "A10");
    ck_assert_str_is(node_card_uuid(n, 0, &room), "GPU-1");
    ck_assert_int_eq(node_card_numa(n, 0), 1);
    ck_assert_str_is(n->sizes->infos[0].profile, "1g.5gb");
    ck_assert_str_is(node_card_model(n, 2), "T4"); /* the label's model */
    ck_assert_uint_eq(node_card_uuid(n, 2, &room).n, 0);
    ck_assert_int_eq(node_card_numa(n, 2), -1);
    ck_assert_int_eq(node_card_numa(n, 1), -1); /* no card at this index */
    ck_assert_str_is(n->sizes->pool, "blue");
    set_node(&r, (struct node_view)NODE(.mem = S("24"), .count = S("1")));
    n = node_of(&r, "n");
    ck_assert_uint_eq(node_card_model(n, 0).n + node_card_uuid(n, 0, &room).n, 0);
    ck_assert_int_eq(node_card_numa(n, 0), -1);
    rig_done(&r);
}

static const struct {
    struct node_view node;
    enum policy placement;
    uint32_t max_pods;
    uint32_t exclusive;
    unsigned bad;
} labels[] = {
    {NODE(.mem = S("8"), .count = S("1")), POLICY_UNSET, 0, 0, 0},
    {NODE(.mem = S("8"), .count = S("1"), .placement = S("spread"), .max_pods = S("3"),
          .exclusive = S("2")),
     POLICY_SPREAD, 3, 2, 0},
    {NODE(.mem = S("8"), .count = S("1"), .placement = S("binpack"), .max_pods = S("0")),
     POLICY_BINPACK, 0, 0, 0},
    {NODE(.mem = S("8"), .count = S("1"), .placement = S("Spread"), .max_pods = S("-1"),
          .exclusive = S("x"), .cordoned = S("a"), .exclusive_cards = S("b,0")),
     POLICY_UNSET, 0, 0, 4},
    {NODE(.mem = S("8"), .count = S("1"), .max_pods = S("4294967296")), POLICY_UNSET, 0, 0, 1},
    {NODE(.mem = S("8"), .count = S("1"), .isolation = S("none")), POLICY_UNSET, 0, 0, 0},
    {NODE(.mem = S("8"), .count = S("1"), .isolation = S("Mps")), POLICY_UNSET, 0, 0, 1},
    {NODE(.mem = S("8"), .late = S("true"), CARDS({.index = 0, .mem = 8})), POLICY_UNSET, 0, 0, 0},
    {NODE(.mem = S("8"), .count = S("1"), .late = S("true")), POLICY_UNSET, 0, 0, 0},
    {NODE(.mem = S("8"), .count = S("1"), .late = S("True")), POLICY_UNSET, 0, 0, 1},
};

TEST_EACH(reads_its_labels, COUNT_OF(labels))
{
    struct rig r;
    rig_init(&r);
    set_node(&r, labels[_i].node);
    const struct node_sizes *s = node_of(&r, "n")->sizes;
    ck_assert_int_eq(s->placement, labels[_i].placement);
    ck_assert_uint_eq(s->max_pods, labels[_i].max_pods);
    ck_assert_uint_eq(s->exclusive, labels[_i].exclusive);
    ck_assert_uint_eq(s->bad_tokens, labels[_i].bad);
    ck_assert(s->late == (labels[_i].node.has_cards && str_eq(labels[_i].node.late, STR("true"))));
    rig_done(&r);
}

/* Each differs from the first in exactly one thing, and from each other one. */
static const struct node_view news[] = {
    NODE(.mem = S("24"), CARDS({.index = 0, .mem = 8}, {.index = 1, .mem = 16})),
    NODE(.mem = S("25"), CARDS({.index = 0, .mem = 8}, {.index = 1, .mem = 16})),
    NODE(.mem = S("24"), CARDS({.index = 0, .mem = 9}, {.index = 1, .mem = 15})),
    NODE(.mem = S("24"), CARDS({.index = 0, .mem = 8}, {.index = 2, .mem = 16})),
    NODE(.mem = S("24"), CARDS({.index = 0, .mem = 8, .unhealthy = true}, {.index = 1, .mem = 16})),
    NODE(.mem = S("24"), CARDS({.index = 0, .mem = 8, .numa = 1}, {.index = 1, .mem = 16})),
    NODE(.mem = S("24"), CARDS({.index = 0, .mem = 8, .model = S("A")}, {.index = 1, .mem = 16})),
    NODE(.mem = S("24"), CARDS({.index = 0, .mem = 8, .uuid = S("A")}, {.index = 1, .mem = 16})),
    NODE(.mem = S("24"),
         CARDS({.index = 0, .mem = 8, .uuid = S(UUID "a")}, {.index = 1, .mem = 16})),
    NODE(.mem = S("24"),
         CARDS({.index = 0, .mem = 8, .uuid = S(UUID "A")}, {.index = 1, .mem = 16})),
    NODE(.mem = S("24"),
         CARDS({.index = 0, .mem = 8}, {.index = 1, .mem = 16, .uuid = S(UUID "a")})),
    NODE(.mem = S("24"), CARDS({.index = 0, .mem = 8, .uuid = S(UUID "a")},
                               {.index = 1, .mem = 16, .uuid = S(UUID "b")})),
    NODE(.mem = S("24"), CARDS({.index = 0, .mem = 8, .uuid = S(UUID "b")},
                               {.index = 1, .mem = 16, .uuid = S(UUID "a")})),
    NODE(.mem = S("24"), CARDS({.index = 0, .mem = 8, .profile = S("A")}, {.index = 1, .mem = 16})),
    NODE(.mem = S("24"), CARDS({.index = 0, .mem = 8, .pci = 7}, {.index = 1, .mem = 16})),
    NODE(.mem = S("24"), .mem_allocatable = S("23"),
         CARDS({.index = 0, .mem = 8}, {.index = 1, .mem = 16})),
    NODE(.mem = S("24"), .cordoned = S("0"),
         CARDS({.index = 0, .mem = 8}, {.index = 1, .mem = 16})),
    NODE(.mem = S("24"), .exclusive_cards = S("0"),
         CARDS({.index = 0, .mem = 8}, {.index = 1, .mem = 16})),
    NODE(.mem = S("24"), .max_pods = S("1"),
         CARDS({.index = 0, .mem = 8}, {.index = 1, .mem = 16})),
    NODE(.mem = S("24"), .placement = S("spread"),
         CARDS({.index = 0, .mem = 8}, {.index = 1, .mem = 16})),
    NODE(.mem = S("24"), .exclusive = S("1"),
         CARDS({.index = 0, .mem = 8}, {.index = 1, .mem = 16})),
    NODE(.mem = S("24"), .model = S("A"), CARDS({.index = 0, .mem = 8}, {.index = 1, .mem = 16})),
    NODE(.mem = S("24"), .pool = S("A"), CARDS({.index = 0, .mem = 8}, {.index = 1, .mem = 16})),
    NODE(.mem = S("24"), .isolation = S("mps"),
         CARDS({.index = 0, .mem = 8}, {.index = 1, .mem = 16})),
    NODE(.mem = S("24"), .late = S("true"), CARDS({.index = 0, .mem = 8}, {.index = 1, .mem = 16})),
    NODE(.mem = S("24"), .has_cards = true, .cards_fault = "is bad"),
    NODE(.mem = S("24"), .has_cards = true, .cards_fault = "is worse"),
    NODE(.mem = S("24"), .count = S("1")),
    NODE(.mem = S("24"), .count = S("0")),
    NODE(.mem = S("24"), .count = S("x")),
};

TEST_EACH(only_news_change_anything, COUNT_OF(news))
{
    struct rig r;
    rig_init(&r);
    for (size_t i = 0; i < COUNT_OF(news); i++) {
        set_node(&r, news[_i]);
        ck_assert(r.fx.changed == (i == 0 || i - 1 != (size_t)_i));
        const struct card *cards = node_of(&r, "n")->cards;
        set_node(&r, news[i]);
        ck_assert_msg(r.fx.changed == (i != (size_t)_i), "%d and %zu", _i, i);
        ck_assert(r.fx.changed || node_of(&r, "n")->cards == cards);
    }
    rig_done(&r);
}

/* Pods keep their place when cards change; a pod whose card is gone waits for it. */
TEST(pods_outlive_their_cards)
{
    struct rig r;
    rig_init(&r);
    set_node(&r, (struct node_view)news[0]);
    set_pod(&r, (struct pod_view)PLAIN("a", "6", .idx = S("1"), .node = S("n")));
    set_pod(&r,
            (struct pod_view)PLAIN("h", "1", .percent = S("50"), .idx = S("0"), .node = S("n")));
    ck_assert_int_eq(card_used(&r, "n", 1), 6);
    ck_assert_int_eq(card_used(&r, "n", 0), 4);
    set_node(&r, (struct node_view)news[3]); /* cards 0 and 2 */
    ck_assert_int_eq(node_of(&r, "n")->unplaced, 6);
    set_node(&r, (struct node_view)news[2]); /* sizes 9 and 15 */
    ck_assert_int_eq(node_of(&r, "n")->unplaced, 0);
    ck_assert_int_eq(card_used(&r, "n", 0), 5); /* half of 9 */
    node_gone(&r, "n");
    ck_assert_int_eq(node_of(&r, "n")->unplaced, 7);
    set_node(&r, (struct node_view)news[0]);
    ck_assert_int_eq(card_used(&r, "n", 0), 4);
    pod_gone(&r, "a");
    pod_gone(&r, "h");
    ck_assert_int_eq(node_of(&r, "n")->used, 0);
    rig_done(&r);
}

/* Nodes of one kind share their description, until one of them changes. */
TEST_EACH(what_is_said_of_many_is_kept_once, 9)
{
    static const struct {
        struct node_view node;
        bool alike;
    } others[] = {
        {NODE(.mem = S("32"), .count = S("2"), .model = S("T4")), true},
        {NODE(.mem = S("33"), .count = S("2"), .model = S("T4")), false},
        {NODE(.mem = S("32"), .count = S("2"), .model = S("L4")), false},
        {NODE(.mem = S("32"), .count = S("2"), .pool = S("T4")), false},
        {NODE(.mem = S("32"), .count = S("2"), .model = S("T4"), .isolation = S("mig")), false},
        {NODE(.mem = S("32"), .count = S("2"), .model = S("T4"), .cordoned = S("1")), false},
        {NODE(.mem = S("32"), .count = S("2"), .model = S("T4"), .cordoned = S("x")), false},
        {NODE(.mem = S("32"), .count = S("2"), .model = S("T4"), .max_pods = S("3")), false},
        {NODE(.mem = S("32"), .count = S("2"), .model = S("T4"), .mem_allocatable = S("31")),
         false},
    };
    struct rig r;
    struct node_view other = others[_i].node;
    rig_init(&r);
    set_node(&r, others[0].node);
    other.name = STR("other");
    set_node(&r, others[0].node);
    set_node(&r, other);
    ck_assert_uint_eq(node_of(&r, "n")->sizes->n_cards, 2);
    ck_assert((node_of(&r, "n")->sizes == node_of(&r, "other")->sizes) == others[_i].alike);
    other.mem = STR("16");
    set_node(&r, other);
    ck_assert_int_eq(node_of(&r, "n")->total, 32);
    ck_assert_int_eq(node_of(&r, "other")->total, 16);
    rig_done(&r);
}

/* They have models, and UUIDs of their own. */
TEST(nodes_with_tables_share_all_but_the_uuids)
{
    const struct node_view views[] = {
        {.name = S("n"),
         .mem = S("24"),
         CARDS({.index = 0, .mem = 8, .model = S("T4"), .uuid = S(UUID "0")},
               {.index = 1, .mem = 16, .model = S("L4"), .uuid = S(UUID "1")})},
        {.name = S("other"),
         .mem = S("24"),
         CARDS({.index = 0, .mem = 8, .model = S("T4"), .uuid = S(UUID "2")},
               {.index = 1, .mem = 16, .model = S("L4"), .uuid = S("odd")})},
    };
    struct rig r;
    struct uuid_room room;
    rig_init(&r);
    set_node(&r, views[0]);
    set_node(&r, views[1]);
    const struct node *n = node_of(&r, "n");
    const struct node *other = node_of(&r, "other");
    ck_assert_ptr_eq(n->sizes, other->sizes);
    ck_assert_str_is(node_card_uuid(n, 1, &room), UUID "1");
    ck_assert_str_is(node_card_uuid(other, 0, &room), UUID "2");
    ck_assert_str_is(node_card_uuid(other, 1, &room), "odd");
    ck_assert_uint_eq(node_find_card(n, STR(UUID "1")), 1);
    ck_assert_uint_eq(node_find_card(other, STR("odd")), 1);
    ck_assert_uint_eq(node_find_card(n, STR(UUID "2")), INT32_MAX);
    ck_assert_uint_eq(node_find_card(n, STR("")), INT32_MAX);
    ck_assert(node_card_is_named(other, 1, STR("ODD")) && !node_card_is_named(n, 1, STR("ODD")));
    ck_assert(!node_card_is_named(n, 0, STR("")));
    node_gone(&r, "n");
    ck_assert_uint_eq(node_of(&r, "other")->sizes->n_cards, 2);
    rig_done(&r);
}

/* No memory: the node has its cards and their UUIDs as before. */
static enum errc change_uuids(void *ctx)
{
    struct node_view views[] = {
        NODE(.mem = S("8"), CARDS({.index = 0, .mem = 8, .uuid = S(UUID "0")})),
        NODE(.mem = S("16"), CARDS({.index = 0, .mem = 8, .uuid = S(UUID "1")},
                                   {.index = 1, .mem = 8, .uuid = S("odd")})),
    };
    struct cache c;
    struct effect fx;
    struct uuid_room room;
    enum errc code = OK;
    (void)ctx;
    cache_init(&c, (struct map_seed){1, 2});
    for (size_t i = 0; i < COUNT_OF(views) && code == OK; i++) {
        struct cache_event e = {.type = CACHE_NODE_SET, .node = views[i]};
        code = cache_apply(&c, &e, 1, &fx);
        const struct node *n = cache_node(&c, STR("n"));
        cache_check(&c);
        if (code == OK)
            ck_assert_str_is(node_card_uuid(n, (uint32_t)i, &room), i == 0 ? UUID "0" : "odd");
        else
            ck_assert(i == 0 || str_eq(node_card_uuid(n, 0, &room), STR(UUID "0")));
    }
    cache_done(&c);
    return code;
}

TEST(survives_lack_of_memory)
{
    ck_assert_uint_gt(fail_alloc_each(change_uuids, NULL), 4);
}

/* The largest charge of many pods fits the sums. */
TEST(no_charge_overflows)
{
    struct rig r;
    char uid[16];
    rig_init(&r);
    set_node(&r, (struct node_view)NODE(.mem = S("1125899906842624"), .count = S("1024")));
    for (unsigned i = 0; i < 200; i++) {
        (void)snprintf(uid, sizeof(uid), "p%u", i);
        struct pod_view v = PLAIN("", "1099511627776", WHOLE, .node = S("n"), .idx = S("7"));
        v.uid = str_of(uid);
        set_pod(&r, v);
    }
    ck_assert_int_eq(card_used(&r, "n", 7), 200 * REQUEST_MEM_MAX);
    ck_assert_int_eq(node_of(&r, "n")->used, 200 * REQUEST_MEM_MAX);
    rig_done(&r);
}
