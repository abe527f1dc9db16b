/* Compares a table of cards with jansson's tree; the resulting node must have consistent sums. */
#include "core/cache/cache.h"
#include "core/quantity.h"
#include "objects/cards.h"
#include "rules.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void same_or_none(struct str s, const json_t *value)
{
    check(str_eq(s, jansson_str(value)), "the same text as jansson's");
}

static void same_memory(int64_t mem, const json_t *value)
{
    struct quantity q;
    if (json_is_integer(value))
        check(json_integer_value(value) == mem, "the same number as jansson's");
    else if (json_is_string(value))
        check(quantity_parse(str_trim(jansson_str(value)), &q) == OK && q.value == mem,
              "the same quantity");
}

static void compare(const struct node_view *v, const json_t *json)
{
    check(json_is_array(json) && json_array_size(json) == v->n_cards, "as many cards");
    for (size_t i = 0; i < v->n_cards; i++) {
        const struct card_view *c = &v->cards[i];
        const json_t *card = json_array_get(json, i);
        const json_t *numa = json_object_get(card, "numa");
        check(json_integer_value(json_object_get(card, "index")) == c->index, "its index");
        same_memory(c->mem, json_object_get(card, "memory"));
        same_or_none(c->model, json_object_get(card, "model"));
        same_or_none(c->uuid, json_object_get(card, "uuid"));
        same_or_none(c->profile, json_object_get(card, "profile"));
        if (json_is_integer(numa))
            check(json_integer_value(numa) == c->numa, "its NUMA node");
    }
}

static void take_in(struct node_view v)
{
    struct cache cache;
    struct effect effect;
    v.name = STR("n");
    v.mem = STR("64");
    struct cache_event e = {.type = CACHE_NODE_SET, .node = v};
    cache_init(&cache, (struct map_seed){1, 2});
    check(cache_apply(&cache, &e, 0, &effect) == OK, "any table is taken in");
    cache_check(&cache);
    const struct node *n = cache_node(&cache, STR("n"));
    check((n->fault == NODE_OK) == (v.cards_fault == NULL), "with its cards");
    for (size_t i = 0; i < v.n_cards && n->fault == NODE_OK; i++) {
        const struct card_view *c = &v.cards[i];
        struct uuid_room room;
        check(str_eq(node_card_uuid(n, c->index, &room), c->uuid), "each with its UUID");
        check(node_card_is_named(n, c->index, c->uuid) == (c->uuid.n > 0), "and found by it");
        uint32_t found = node_find_card(n, c->uuid);
        check(c->uuid.n == 0 ? found == INT32_MAX
                             : str_eq(node_card_uuid(n, found, &room), c->uuid),
              "exactly");
    }
    cache_done(&cache);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = {(const char *)data, size};
    struct node_view v = {.name = STR_NULL};
    struct arena arena;
    arena_init(&arena, 4 * MIB);
    check(cards_read(text, &arena, &v), "a table of this length is readable");
    check(v.cards_fault == NULL || str_starts(str_of(v.cards_fault), STR("cardpack.io/cards")),
          "a fault names its annotation");
    check((v.cards_fault == NULL) == (v.n_cards > 0), "a table, or a fault");
    json_t *json = jansson_reads(text);
    if (json != NULL && v.cards_fault == NULL)
        compare(&v, json);
    json_decref(json);
    take_in(v);
    arena_done(&arena);
    return 0;
}
