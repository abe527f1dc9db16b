/* Nodes in the cache: what status and annotations make of them. */
#include "core/state/node.h"

#include "cache_rig.h"
#include "core/limit.h"

/* A Node's status, and the resulting node. */
static const struct {
    const char *mem;
    const char *count;
    const char *allocatable;
    enum node_fault fault;
    int64_t total;
    int64_t limit;
    uint32_t n_cards;
    int64_t card;
    int64_t remainder;
} sizes[] = {
    {"32", "2", "32", NODE_OK, 32, 32, 2, 16, 0},
    {"32", "2", NULL, NODE_OK, 32, 32, 2, 16, 0},
    {"25", "2", "25", NODE_OK, 25, 25, 2, 12, 1},
    {"16k", "1", "16k", NODE_OK, 16000, 16000, 1, 16000, 0},
    {"65104", "4", "65104", NODE_OK, 65104, 65104, 4, 16276, 0},
    {" 32 ", " 2 ", " 16 ", NODE_OK, 32, 16, 2, 16, 0},
    {"1e3", "1e1", "100k", NODE_OK, 1000, 1000, 10, 100, 0},
    {"1", "2", "1", NODE_OK, 1, 1, 2, 0, 1},
    {"2000m", "1000m", "2000m", NODE_OK, 2, 2, 1, 2, 0},
    {"4096", "1024", "0", NODE_OK, 4096, 0, 1024, 4, 0},
    {NULL, NULL, NULL, NODE_NOT_SHARED, 0, 0, 0, 0, 0},
    {"0", "2", "0", NODE_NOT_SHARED, 0, 0, 0, 0, 0},
    {"", "2", "", NODE_NOT_SHARED, 0, 0, 0, 0, 0},
    {NULL, "2", NULL, NODE_NOT_SHARED, 0, 0, 0, 0, 0},
    {"32", NULL, "32", NODE_NO_CARDS, 32, 0, 0, 0, 0},
    {"32", "0", "32", NODE_NO_CARDS, 32, 0, 0, 0, 0},
    {"x", "2", "32", NODE_BAD_QUANTITY, 0, 0, 0, 0, 0},
    {"32", "x", "32", NODE_BAD_QUANTITY, 32, 0, 0, 0, 0},
    {"32", "2", "x", NODE_BAD_QUANTITY, 32, 0, 0, 0, 0},
    {"-32", "2", "32", NODE_BAD_QUANTITY, 0, 0, 0, 0, 0},
    {"32", "-2", "32", NODE_BAD_QUANTITY, 32, 0, 0, 0, 0},
    {"32", "2", "-1", NODE_BAD_QUANTITY, 32, 0, 0, 0, 0},
    {"32.5", "2", "32", NODE_BAD_QUANTITY, 0, 0, 0, 0, 0},
    {"32", "1.5", "32", NODE_BAD_QUANTITY, 32, 0, 0, 0, 0},
    {"32", "1025", "32", NODE_BAD_QUANTITY, 32, 0, 0, 0, 0},
    {"100E", "1", "32", NODE_BAD_QUANTITY, 0, 0, 0, 0, 0},
    {"32", "1", "100E", NODE_BAD_QUANTITY, 32, 0, 0, 0, 0},
};

TEST_EACH(reads_its_sizes, COUNT_OF(sizes))
{
    struct rig r;
    rig_init(&r);
    node_set(&r, "n", sizes[_i].mem, sizes[_i].count, sizes[_i].allocatable);
    const struct node *n = node_of(&r, "n");
    ck_assert_int_eq(n->fault, sizes[_i].fault);
    ck_assert_int_eq(n->total, sizes[_i].total);
    ck_assert_int_eq(n->limit, sizes[_i].limit);
    ck_assert_uint_eq(n->n_cards, sizes[_i].n_cards);
    ck_assert_int_eq(n->remainder, sizes[_i].remainder);
    ck_assert_int_eq(n->largest, sizes[_i].card);
    ck_assert_int_eq(n->most_free, sizes[_i].card);
    for (uint32_t i = 0; i < n->n_cards; i++)
        ck_assert_int_eq(n->cards[i].total, sizes[_i].card);
    rig_done(&r);
}

static const struct {
    const char *gpus;
    unsigned bits; /* of the first four cards */
    unsigned bad;
} lists[] = {
    {"0,2", 5, 0},
    {" 0 ,\t2\n", 5, 0},
    {"", 0, 0},
    {" ", 0, 0},
    {",", 0, 0},
    {"0,,2,", 5, 0},
    {"3", 8, 0},
    {"03", 8, 0},
    {"2,2,2", 4, 0},
    {"x", 0, 1},
    {"0,x,2", 5, 1},
    {"0;2", 0, 1},
    {"-1", 0, 1},
    {"+1", 0, 1},
    {"1.0", 0, 1},
    {"0x1", 0, 1},
    {"1 2", 0, 1},
    {"1024,1", 2, 1},
    {"99999999999999999999", 0, 1},
    {"1023", 0, 0}, /* an index without a card is no error: the card may come later */
};

TEST_EACH(reads_the_unhealthy_cards, COUNT_OF(lists))
{
    struct rig r;
    rig_init(&r);
    node_set(&r, "n", "64", "4", NULL);
    health_set(&r, "n", lists[_i].gpus);
    ck_assert_uint_eq(r.fx.bad_tokens, lists[_i].bad);
    const struct node *n = node_of(&r, "n");
    for (uint32_t i = 0; i < 4; i++)
        ck_assert_uint_eq(n->cards[i].unhealthy, lists[_i].bits >> i & 1);
    rig_done(&r);
}

TEST(a_ceiling_of_cards_can_be_unhealthy)
{
    struct rig r;
    rig_init(&r);
    node_set(&r, "n", "1024", "1024", NULL);
    health_set(&r, "n", "0,63,64,1023");
    const struct node *n = node_of(&r, "n");
    for (uint32_t i = 0; i < LIMIT_CARDS; i++)
        ck_assert_int_eq(n->cards[i].unhealthy, i == 0 || i == 63 || i == 64 || i == 1023);
    ck_assert_int_eq(card_free(&n->cards[1023]), 0);
    ck_assert_int_eq(card_free(&n->cards[1022]), 1);
    rig_done(&r);
}

/* "0,0,...": longer than any list that names each card once. */
TEST(a_list_that_is_too_long_names_every_card)
{
    static char text[LIMIT_CARD_LIST_BYTES + 3];
    struct rig r;
    rig_init(&r);
    for (size_t i = 0; i + 1 < sizeof(text); i++)
        text[i] = i % 2 == 0 ? '0' : ',';
    text[LIMIT_CARD_LIST_BYTES] = '\0';
    node_set(&r, "n", "32", "4", NULL);
    health_set(&r, "n", text);
    const struct node *n = node_of(&r, "n");
    ck_assert(r.fx.bad_tokens == 0 && n->cards[0].unhealthy && !n->cards[1].unhealthy);
    text[LIMIT_CARD_LIST_BYTES] = '0';
    health_set(&r, "n", text);
    ck_assert_uint_eq(r.fx.bad_tokens, 1);
    for (uint32_t i = 0; i < 4; i++)
        ck_assert(n->cards[i].unhealthy);
    rig_done(&r);
}

/* Most updates of a Node are heartbeats. */
TEST(an_update_that_changes_nothing_costs_nothing)
{
    struct rig r;
    rig_init(&r);
    node_set(&r, "n", "32", "2", "32");
    ck_assert(r.fx.changed);
    const struct card *cards = node_of(&r, "n")->cards;
    node_set(&r, "n", "32", "2", "32");
    ck_assert(!r.fx.changed);
    ck_assert_ptr_eq(node_of(&r, "n")->cards, cards);
    node_set(&r, "n", "32", "2", "31");
    ck_assert(r.fx.changed);
    health_set(&r, "n", "1");
    ck_assert(r.fx.changed);
    health_set(&r, "n", " 1");
    ck_assert(!r.fx.changed);
    health_gone(&r, "n");
    ck_assert(r.fx.changed);
    health_gone(&r, "n");
    ck_assert(!r.fx.changed);
    node_gone(&r, "n");
    ck_assert(r.fx.changed);
    node_gone(&r, "n");
    ck_assert(!r.fx.changed);
    rig_done(&r);
}

TEST(the_smallest_changes_are_changes)
{
    struct rig r;
    rig_init(&r);
    node_set(&r, "n", "32", "2", NULL);
    node_set(&r, "n", "33", "2", NULL); /* only the remainder */
    ck_assert(r.fx.changed);
    ck_assert_int_eq(node_of(&r, "n")->remainder, 1);
    node_set(&r, "n", "33", "3", NULL);
    ck_assert(r.fx.changed);
    ck_assert_int_eq(node_of(&r, "n")->largest, 11);
    node_set(&r, "n", "33", NULL, NULL);
    ck_assert(r.fx.changed);
    node_set(&r, "n", "x", NULL, NULL);
    ck_assert(r.fx.changed);
    rig_done(&r);
}

TEST(free_memory_never_goes_below_nothing)
{
    struct card c = {.total = 16, .used = 20};
    struct node n = {.limit = 32, .counted = INT64_MAX};
    ck_assert_int_eq(card_free(&c), 0);
    ck_assert_int_eq(node_free(&n), 0);
    c.used = 4;
    n.counted = 4;
    ck_assert_int_eq(card_free(&c), 12);
    ck_assert_int_eq(node_free(&n), 28);
    c.unhealthy = true;
    ck_assert_int_eq(card_free(&c), 0);
}
