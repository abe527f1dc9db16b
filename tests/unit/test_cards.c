/* The node annotation with the table of cards: reading, faults and lack of memory. */
#include "objects/cards.h"

#include "core/limit.h"
#include "fail_alloc.h"
#include "objects/kube.h"
#include "objects/limit.h"
#include "unit.h"

#include <stdio.h>

enum {
    FEW = 3
};

static const struct {
    const char *text;
    const char *fault; /* NULL: valid */
    size_t n;
    struct card_view cards[FEW];
} tables[] = {
    {"[{\"index\":0,\"memory\":16}]", NULL, 1, {{.mem = 16, .numa = -1}}},
    {" [ {\"memory\": \"16\", \"index\": 7, \"numa\": 1, \"model\": \"A\\u0031\", \"uuid\": \"G\","
     "\"profile\": \"1g\", \"health\": \"Unhealthy\", \"serial\": [1, {}]},\n"
     "{\"index\":3,\"memory\":\"1Ki\",\"numa\":-1,\"health\":\"healthy\",\"model\":null},"
     "{\"index\":1023,\"memory\":1,\"health\":false}] ",
     NULL,
     3,
     {{.index = 7, .mem = 16, .numa = 1, .unhealthy = true},
      {.index = 3, .mem = 1024, .numa = -1},
      {.index = 1023, .mem = 1, .numa = -1, .unhealthy = true}}},
    {"[{\"index\":0,\"memory\":16,\"health\":true},{\"index\":1,\"memory\":16,\"health\":null}]",
     NULL,
     2,
     {{.mem = 16, .numa = -1}, {.index = 1, .mem = 16, .numa = -1}}},
    {"", "", 0, {{0}}},
    {"x", "", 0, {{0}}},
    {"null", ": must be a list of cards", 0, {{0}}},
    {"{}", ": must be a list of cards", 0, {{0}}},
    {"[]", ": has no card", 0, {{0}}},
    {"[{\"memory\":16}]", "[0]: index is missing", 0, {{0}}},
    {"[{\"index\":0}]", "[0]: memory is missing", 0, {{0}}},
    {"[{\"index\":0,\"memory\":16},{\"index\":0,\"memory\":16}]",
     "[1]: index 0 is there twice",
     0,
     {{0}}},
    {"[{\"index\":1024,\"memory\":16}]", "[0].index: 1024 must be 0 to 1023", 0, {{0}}},
    {"[{\"index\":-1,\"memory\":16}]", "[0].index: -1 must be 0 to 1023", 0, {{0}}},
    {"[{\"index\":\"0\",\"memory\":16}]", "[0].index", 0, {{0}}},
    {"[{\"index\":0,\"memory\":0}]", "[0].memory: \"0\" is no size of a card", 0, {{0}}},
    {"[{\"index\":0,\"memory\":-1}]", "[0].memory: \"-1\" is no size of a card", 0, {{0}}},
    {"[{\"index\":0,\"memory\":1.5}]", "[0].memory: \"1.5\" is no size of a card", 0, {{0}}},
    {"[{\"index\":0,\"memory\":1099511627777}]",
     "[0].memory: \"1099511627777\" is no size of a card",
     0,
     {{0}}},
    {"[{\"index\":0,\"memory\":\"x\"}]", "[0].memory: \"x\" is not a quantity", 0, {{0}}},
    {"[{\"index\":0,\"memory\":null}]", "[0].memory: \"\" is not a quantity", 0, {{0}}},
    {"[{\"index\":0,\"memory\":16,\"numa\":-2}]", "[0].numa: -2 is no NUMA node", 0, {{0}}},
    {"[{\"index\":0,\"memory\":16,\"numa\":2147483648}]",
     "[0].numa: 2147483648 is no NUMA node",
     0,
     {{0}}},
    {"[{\"index\":0,\"memory\":16,\"health\":\"ill\"}]",
     "[0].health: \"ill\" must be Healthy or Unhealthy",
     0,
     {{0}}},
    {"[{\"index\":0,\"memory\":16}] x", "", 0, {{0}}},
};

TEST_EACH(reads_a_table_or_says_what_is_wrong, COUNT_OF(tables))
{
    struct arena a;
    struct node_view v = {.name = STR_NULL};
    arena_init(&a, MIB);
    ck_assert(cards_read(str_of(tables[_i].text), &a, &v));
    ck_assert(v.has_cards);
    ck_assert_uint_eq(v.n_cards, tables[_i].n);
    if (tables[_i].fault != NULL) {
        ck_assert_ptr_nonnull(v.cards_fault);
        ck_assert_msg(strncmp(v.cards_fault, "cardpack.io/cards", 17) == 0 &&
                          strstr(v.cards_fault, tables[_i].fault) != NULL,
                      "it says %s", v.cards_fault);
    } else {
        ck_assert_msg(v.cards_fault == NULL, "%s", v.cards_fault);
    }
    for (size_t i = 0; i < v.n_cards; i++) {
        const struct card_view *c = &v.cards[i];
        const struct card_view *e = &tables[_i].cards[i];
        ck_assert_uint_eq(c->index, e->index);
        ck_assert_int_eq(c->mem, e->mem);
        ck_assert_int_eq(c->numa, e->numa);
        ck_assert_int_eq(c->unhealthy, e->unhealthy);
        bool texts = _i == 1 && i == 0;
        ck_assert_str_is(c->model, texts ? "A1" : "");
        ck_assert_str_is(c->uuid, texts ? "G" : "");
        ck_assert_str_is(c->profile, texts ? "1g" : "");
    }
    arena_done(&a);
}

/* LIMIT_CARDS cards can be read, and a table with one index twice is refused. */
TEST(reads_as_many_as_may_be)
{
    static char text[64 * 1024];
    struct arena a;
    struct node_view v = {.name = STR_NULL};
    size_t n = (size_t)snprintf(text, sizeof(text), "[");
    for (int i = 0; i < LIMIT_CARDS; i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%s{\"index\":%d,\"memory\":1}",
                              i == 0 ? "" : ",", LIMIT_CARDS - 1 - i);
    arena_init(&a, MIB);
    (void)snprintf(text + n, sizeof(text) - n, "]");
    ck_assert(cards_read(str_of(text), &a, &v));
    ck_assert_uint_eq(v.n_cards, LIMIT_CARDS);
    (void)snprintf(text + n, sizeof(text) - n, ",{\"index\":5,\"memory\":1}]");
    ck_assert(cards_read(str_of(text), &a, &v));
    ck_assert_str_eq(v.cards_fault, "cardpack.io/cards: [1024]: index 5 is there twice");
    arena_done(&a);
}

static const char *const names[] = {"model", "uuid", "profile"};

TEST_EACH(a_name_has_a_ceiling, COUNT_OF(names))
{
    static char text[2 * LIMIT_CARD_NAME];
    static char name[LIMIT_CARD_NAME + 2];
    struct arena a;
    struct node_view v = {.name = STR_NULL};
    arena_init(&a, MIB);
    memset(name, 'a', LIMIT_CARD_NAME);
    (void)snprintf(text, sizeof(text), "[{\"index\":0,\"memory\":1,\"%s\":\"%s\"}]", names[_i],
                   name);
    ck_assert(cards_read(str_of(text), &a, &v) && v.cards_fault == NULL);
    name[LIMIT_CARD_NAME] = 'a';
    (void)snprintf(text, sizeof(text), "[{\"index\":0,\"memory\":1,\"%s\":\"%s\"}]", names[_i],
                   name);
    ck_assert(cards_read(str_of(text), &a, &v));
    ck_assert_ptr_nonnull(strstr(v.cards_fault, names[_i]));
    ck_assert_ptr_nonnull(strstr(v.cards_fault, "aaa...\" has 257 bytes: 256 at most"));
    arena_done(&a);
}

TEST(a_table_has_a_ceiling)
{
    static char text[LIMIT_CARDS_TEXT + 1];
    struct arena a;
    struct node_view v = {.name = STR_NULL};
    static const char table[] = "[{\"index\":0,\"memory\":1}]";
    arena_init(&a, MIB);
    memset(text, ' ', sizeof(text));
    memcpy(text, table, sizeof(table) - 1);
    ck_assert(cards_read((struct str){text, LIMIT_CARDS_TEXT}, &a, &v) && v.cards_fault == NULL);
    ck_assert(cards_read((struct str){text, LIMIT_CARDS_TEXT + 1}, &a, &v));
    ck_assert_str_eq(v.cards_fault, "cardpack.io/cards: has 262145 bytes: 262144 at most");
    arena_done(&a);
}

static const char node[] =
    "{\"metadata\":{\"name\":\"n\",\"annotations\":{\"cardpack.io/cards\":"
    "\"[{\\\"index\\\":0,\\\"memory\\\":16,\\\"model\\\":\\\"a\\\\u0041\\\"}]\"}}}";

/* Lack of memory is the reader's failure; the node's annotation is not at fault. */
static enum errc read_node(void *ctx)
{
    struct arena a;
    struct jread r;
    struct node_view v;
    (void)ctx;
    arena_init(&a, MIB);
    jread_init(&r, str_of(node), &a);
    kube_read_node(&r, &a, &v);
    enum errc code = jread_finish(&r, NULL);
    if (code == OK)
        ck_assert(v.cards_fault == NULL && v.n_cards == 1);
    arena_done(&a);
    return code;
}

TEST(want_of_memory_is_no_fault_of_the_node)
{
    ck_assert_uint_gt(fail_alloc_each(read_node, NULL), 0);
    /* The arena's ceiling, at every size. */
    for (size_t max = 0; max < 600; max++) {
        struct arena a;
        struct jread r;
        struct node_view v;
        arena_init(&a, max);
        jread_init(&r, str_of(node), &a);
        kube_read_node(&r, &a, &v);
        if (jread_finish(&r, NULL) == OK)
            ck_assert_msg(v.cards_fault == NULL && v.n_cards == 1, "with %zu bytes", max);
        arena_done(&a);
    }
}
