/*
 * Reads the annotation cardpack.io/cards. A bad table is not an error of the caller: the Node
 * object is valid. So the failure becomes the text cards_fault, and only lack of memory is an
 * error.
 */
#include "objects/cards.h"

#include "core/dialect/gpushare.h"
#include "core/dra/dra.h"
#include "core/limit.h"
#include "core/quantity.h"
#include "core/request/request.h"
#include "objects/limit.h"
#include "json/jread.h"

struct table {
    struct card_view *items;
    size_t n;
    size_t cap;
};

static int64_t cards_read_memory(struct jread *r)
{
    struct quantity q;
    struct str text = jread_text(r);
    if (jread_failed(r))
        return 0;
    if (text.p == NULL || quantity_parse(str_trim(text), &q) != OK)
        jread_fail(r, ERR_SYNTAX, "\"%.*s\" is not a quantity", STR_ARG(text));
    else if (!q.whole || q.value <= 0 || q.value > REQUEST_MEM_MAX)
        jread_fail(r, ERR_RANGE, "\"%.*s\" is no size of a card", STR_ARG(text));
    else
        return q.value;
    return 0;
}

static uint32_t cards_read_index(struct jread *r)
{
    int64_t index = jread_i64(r);
    if (index >= 0 && index < LIMIT_CARDS)
        return (uint32_t)index;
    jread_fail(r, ERR_RANGE, "%lld must be 0 to %d", (long long)index, LIMIT_CARDS - 1);
    return 0;
}

static int32_t cards_read_numa(struct jread *r)
{
    int64_t numa = jread_i64(r);
    if (numa >= -1 && numa <= INT32_MAX)
        return (int32_t)numa;
    jread_fail(r, ERR_RANGE, "%lld is no NUMA node", (long long)numa);
    return -1;
}

static bool cards_read_unhealthy(struct jread *r)
{
    enum jtype type = jread_type(r);
    if (type == JTYPE_BOOL)
        return !jread_bool(r);
    struct str text = jread_str(r);
    bool healthy = text.p == NULL || str_eq_nocase(text, STR("Healthy"));
    if (!healthy && !str_eq_nocase(text, STR("Unhealthy")))
        jread_fail(r, ERR_SYNTAX, "\"%.*s\" must be Healthy or Unhealthy", STR_ARG(text));
    return !healthy;
}

static struct str cards_read_name(struct jread *r)
{
    struct str name = jread_str(r);
    if (name.n <= LIMIT_CARD_NAME)
        return name;
    jread_fail(r, ERR_RANGE, "\"%.*s...\" has %zu bytes: %zu at most", 64, name.p, name.n,
               LIMIT_CARD_NAME);
    return STR_NULL;
}

/* Only for joining DRA's devices to the card: an address that can't be read is unknown. */
static uint64_t cards_read_pci(struct jread *r)
{
    if (jread_type(r) == JTYPE_STRING)
        return dra_pci(jread_str(r));
    jread_skip(r);
    return 0;
}

static struct card_view cards_read_card(struct jread *r)
{
    struct card_view c = {.numa = -1};
    bool has_index = false;
    struct str key;
    jread_object (r, key) {
        if (str_eq(key, STR("index"))) {
            c.index = cards_read_index(r);
            has_index = true;
        } else if (str_eq(key, STR("memory"))) {
            c.mem = cards_read_memory(r);
        } else if (str_eq(key, STR("model"))) {
            c.model = cards_read_name(r);
        } else if (str_eq(key, STR("uuid"))) {
            c.uuid = cards_read_name(r);
        } else if (str_eq(key, STR("pci"))) {
            c.pci = cards_read_pci(r);
        } else if (str_eq(key, STR("profile"))) {
            c.profile = cards_read_name(r);
        } else if (str_eq(key, STR("numa"))) {
            c.numa = cards_read_numa(r);
        } else if (str_eq(key, STR("health"))) {
            c.unhealthy = cards_read_unhealthy(r);
        } else {
            jread_skip(r);
        }
    }
    if (!has_index)
        jread_fail(r, ERR_SYNTAX, "index is missing");
    else if (c.mem == 0)
        jread_fail(r, ERR_SYNTAX, "memory is missing");
    return c;
}

static void cards_read_table(struct jread *r, struct arena *a, struct str text, struct table *t)
{
    struct card_set {
        uint64_t words[LIMIT_CARDS / 64];
    } seen = {{0}};

    if (text.n > LIMIT_CARDS_TEXT)
        jread_fail(r, ERR_RANGE, "has %zu bytes: %zu at most", text.n, LIMIT_CARDS_TEXT);
    else if (jread_type(r) != JTYPE_ARRAY)
        jread_fail(r, ERR_SYNTAX, "must be a list of cards");
    jread_array (r) {
        struct card_view c = cards_read_card(r);
        uint64_t bit = (uint64_t)1 << (c.index % 64);
        if (!jread_failed(r) && (seen.words[c.index / 64] & bit) != 0)
            jread_fail(r, ERR_SYNTAX, "index %u is there twice", c.index);
        seen.words[c.index / 64] |= bit;
        struct card_view *grown = arena_grow(a, t->items, t->n, &t->cap, sizeof(c));
        if (grown == NULL) {
            jread_fail(r, arena_fault(a), "no room for the cards");
            continue;
        }
        t->items = grown;
        t->items[t->n++] = c;
    }
    if (!jread_failed(r) && t->n == 0)
        jread_fail(r, ERR_SYNTAX, "has no card");
}

bool cards_read(struct str text, struct arena *a, struct node_view *ret)
{
    struct jread r;
    struct err e = ERR_INIT;
    struct table t = {.n = 0};
    ret->has_cards = true;
    ret->cards = NULL;
    ret->n_cards = 0;
    ret->cards_fault = NULL;
    jread_init(&r, text, a);
    cards_read_table(&r, a, text, &t);
    if (jread_finish(&r, &e) != OK) {
        (void)err_wrap(&e, "%.*s", STR_ARG(CARDPACK_ANNOTATION_CARDS));
        struct str copy = arena_dup(a, (struct str){e.text, strlen(e.text) + 1});
        ret->cards_fault = copy.p == NULL ? "cardpack.io/cards can't be read" : copy.p;
        return !arena_failed(a);
    }
    ret->cards = t.items;
    ret->n_cards = t.n;
    return true;
}
