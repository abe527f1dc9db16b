/* Reads the Node object into one block: the cards, what a table adds to them, and all texts behind.
 * A block is made for every event and freed if the table has an equal one: that is simpler than to
 * compare a Node object with a parsed block. */
#include "base/mem.h"
#include "core/limit.h"
#include "core/quantity.h"
#include "core/state/node.h"

/* Reads a quantity of a node's status: 0 if absent, -1 if not usable. */
static int64_t node_sizes_read_capacity(struct str text, int64_t max)
{
    struct quantity q;
    if (text.n == 0)
        return 0;
    if (quantity_parse(str_trim(text), &q) != OK || q.value < 0 || !q.whole || q.saturated ||
        q.value > max)
        return -1;
    return q.value;
}

unsigned card_set_read(struct card_set *set, struct str list)
{
    unsigned bad = 0;
    struct str rest = list;
    if (list.n > LIMIT_CARD_LIST_BYTES) {
        memset(set, 0xff, sizeof(*set));
        return 1;
    }
    while (rest.n > 0) {
        struct str token;
        uint64_t index = 0;
        (void)str_cut(rest, ',', &token, &rest);
        token = str_trim(token);
        if (str_to_u64(token, LIMIT_CARDS - 1, &index))
            card_set_add(set, (uint32_t)index);
        else if (token.n > 0)
            bad++;
    }
    return bad;
}

/* The largest total of a node: sums of charges are a few times this, far below what an int64_t
 * holds. */
#define TOTAL_MAX (REQUEST_MEM_MAX * LIMIT_CARDS)

static size_t node_sizes_texts_of(const struct node_view *v)
{
    size_t n = v->model.n + v->pool.n + (v->cards_fault == NULL ? 0 : strlen(v->cards_fault));
    for (size_t i = 0; i < v->n_cards; i++)
        n += v->cards[i].model.n + v->cards[i].profile.n;
    return n;
}

/* Returns the fault, and the number of cards. uuids: only the table says how much memory there
 * is. */
static enum node_fault node_sizes_check(const struct node_view *v, int64_t total, int64_t limit,
                                        int64_t count, bool uuids, uint32_t *ret_cards)
{
    *ret_cards = 0;
    if (total < 0 || count < 0 || limit < 0)
        return NODE_BAD_QUANTITY;
    if (total == 0 && !(uuids && v->cards_fault != NULL))
        return NODE_NOT_SHARED;
    if (v->cards_fault != NULL)
        return NODE_BAD_CARDS;
    for (size_t i = 0; i < v->n_cards; i++)
        *ret_cards = MAX_OF(*ret_cards, v->cards[i].index + 1);
    if (!v->has_cards)
        *ret_cards = (uint32_t)count;
    if (*ret_cards > 0 && !v->has_cards && total / *ret_cards > REQUEST_MEM_MAX) {
        *ret_cards = 0;
        return NODE_BAD_QUANTITY;
    }
    return *ret_cards == 0 ? NODE_NO_CARDS : NODE_OK;
}

static void node_sizes_fill_from_table(struct node_sizes *s, const struct node_view *v, char **at)
{
    s->remainder = s->total;
    for (uint32_t i = 0; i < s->n_cards; i++) {
        s->cards[i].absent = true;
        s->infos[i].numa = -1;
    }
    for (size_t i = 0; i < v->n_cards; i++) {
        const struct card_view *c = &v->cards[i];
        assert(c->index < s->n_cards);
        s->cards[c->index].absent = false;
        s->cards[c->index].total = c->mem;
        s->cards[c->index].withheld = c->withheld;
        s->cards[c->index].unhealthy = c->unhealthy;
        s->cards[c->index].cordoned = c->cordoned;
        s->infos[c->index] = (struct card_info){.model = str_store(at, c->model),
                                                .profile = str_store(at, c->profile),
                                                .pci = c->pci,
                                                .numa = c->numa,
                                                .max_pods = c->max_pods};
        s->remainder -= c->mem;
    }
}

/* Divides the memory among the number of cards that the node reports. The remainder belongs to no
 * card. */
static void node_sizes_split_evenly(struct node_sizes *s)
{
    for (uint32_t i = 0; i < s->n_cards; i++)
        s->cards[i].total = s->total / s->n_cards;
    s->remainder = s->n_cards == 0 ? 0 : s->total % s->n_cards;
}

static void node_sizes_mark(struct node_sizes *s, const struct node_view *v)
{
    struct card_set cordoned = {{0}};
    struct card_set aside = {{0}};
    struct card_set ill = {{0}};
    struct card_set given = {{0}};
    bool all = str_eq(v->dra, STR("true"));
    s->bad_tokens = card_set_read(&cordoned, v->cordoned);
    s->bad_tokens += card_set_read(&aside, v->exclusive_cards);
    s->bad_tokens += card_set_read(&ill, v->unhealthy[s->dialect]);
    s->bad_tokens += card_set_read(&given, v->dra_cards);
    s->bad_tokens += v->dra.n > 0 && !all && !str_eq(v->dra, STR("false")) ? 1 : 0;
    for (uint32_t i = 0; i < s->n_cards; i++) {
        s->cards[i].cordoned = s->cards[i].cordoned || card_set_has(&cordoned, i);
        s->cards[i].aside = card_set_has(&aside, i) && !s->cards[i].absent;
        s->cards[i].given = (all || card_set_has(&given, i)) && !s->cards[i].absent;
        s->cards[i].unhealthy = s->cards[i].unhealthy || card_set_has(&ill, i);
    }
}

/* See node_offers. */
static unsigned node_sizes_read_offers(const struct node_view *v)
{
    unsigned offers = v->exclusive.p == NULL ? 0 : OFFERS_EXCLUSIVE;
    if (v->unreadable)
        return OFFERS_ALL;
    for (unsigned d = 0; d < DIALECT_COUNT; d++)
        offers |= v->of[d].mem.p != NULL || v->of[d].count.p != NULL ? DIALECT_BIT(d) : 0;
    return offers | (v->has_renamed ? OFFERS_RENAMED : 0);
}

static void node_sizes_read_labels(struct node_sizes *s, const struct node_view *v)
{
    uint64_t max_pods = 0;
    s->placement = POLICY_UNSET;
    s->bad_tokens += v->placement.n > 0 && !policy_parse(v->placement, &s->placement) ? 1 : 0;
    if (str_to_u64(v->max_pods, UINT32_MAX, &max_pods))
        s->max_pods = (uint32_t)max_pods;
    else
        s->bad_tokens += v->max_pods.n > 0 ? 1 : 0;
    s->isolation = ISOLATION_UNKNOWN;
    s->bad_tokens += v->isolation.n > 0 && !isolation_parse(v->isolation, &s->isolation) ? 1 : 0;
    /* Only beside the table, which cardpack-node writes with it: who gives the node back to
     * gpushare's plugin removes the table. */
    bool late = str_eq(v->late, STR("true"));
    s->late = late && v->has_cards;
    s->bad_tokens += v->late.n > 0 && !late ? 1 : 0;
    int64_t exclusive = node_sizes_read_capacity(v->exclusive, UINT32_MAX);
    s->exclusive = (uint32_t)MAX_OF(exclusive, 0);
    s->renamed = v->renamed;
    s->offers = node_sizes_read_offers(v);
}

static bool node_sizes_has(struct str amount)
{
    return node_sizes_read_capacity(amount, TOTAL_MAX) != 0;
}

/* Whether the node has the plugin of the dialect; alive: it has something allocatable. */
static bool node_sizes_is(const struct node_view *v, enum dialect d, bool alive)
{
    const struct capacity_view *of = &v->of[d];
    bool uuids = dialect_has_uuids(d);
    struct str left = uuids ? of->count_allocatable : of->mem_allocatable;
    if (uuids && !of->has_cards)
        return false;
    return node_sizes_has(uuids ? of->count : of->mem) &&
           (!alive || left.p == NULL || node_sizes_has(left));
}

/* Which dialect the node has: its label says it, or else its resources. A plugin that is gone
 * leaves its resource behind with 0 allocatable, so a dialect with an amount comes before one with
 * 0. False: the label names no dialect that is in use. */
static bool node_sizes_find_dialect(const struct node_view *v, enum dialect *ret)
{
    *ret = DIALECT_OWN;
    if (v->dialect.p != NULL)
        return dialect_parse(str_trim(v->dialect), ret) && dialect_is_used(*ret);
    for (unsigned pass = 0; pass < 2; pass++) {
        for (enum dialect d = 0; d < DIALECT_COUNT; d++) {
            if (!dialect_is_used(d) || !node_sizes_is(v, d, pass == 0))
                continue;
            *ret = d;
            return true;
        }
    }
    return dialect_is_used(DIALECT_OWN);
}

/* How many cards: as a resource, or by the compute of all of them. */
static int64_t node_sizes_read_count(const struct node_view *v, enum dialect d)
{
    const struct capacity_view *of = &v->of[d];
    if (dialect_has_uuids(d))
        return 0; /* the table says it */
    if (dialect_facts(d)->count.p != NULL)
        return node_sizes_read_capacity(of->count, LIMIT_CARDS);
    int64_t cores = node_sizes_read_capacity(of->count, (int64_t)LIMIT_CARDS * REQUEST_CORES_MAX);
    return cores % REQUEST_CORES_MAX != 0 ? -1 : cores / REQUEST_CORES_MAX;
}

/* With UUIDs only the table says how much memory there is; without any parts of cards nothing of
 * it is given out. */
static int64_t node_sizes_read_total(const struct node_view *v, enum dialect d)
{
    const struct capacity_view *of = &v->of[d];
    int64_t total = 0;
    if (!dialect_has_uuids(d))
        return node_sizes_read_capacity(of->mem, TOTAL_MAX);
    if (!of->has_cards || !node_sizes_has(of->count))
        return 0;
    for (size_t i = 0; i < of->n_cards; i++)
        total += of->cards[i].mem;
    return total;
}

static int64_t node_sizes_read_limit(const struct node_view *v, enum dialect d, int64_t total)
{
    const struct capacity_view *of = &v->of[d];
    struct str left = dialect_has_uuids(d) ? of->count_allocatable : of->mem_allocatable;
    if (left.p == NULL)
        return total;
    return dialect_has_uuids(d) ? (node_sizes_has(left) ? total : 0)
                                : node_sizes_read_capacity(left, TOTAL_MAX);
}

/* *ret_texts: where the block's texts are. */
static struct node_sizes *node_sizes_make(const struct node_view *v, enum dialect dialect,
                                          bool spoken, struct str *ret_texts)
{
    uint32_t n_cards = 0;
    int64_t total = spoken ? node_sizes_read_total(v, dialect) : 0;
    int64_t count = node_sizes_read_count(v, dialect);
    int64_t limit = node_sizes_read_limit(v, dialect, total);
    enum node_fault fault =
        node_sizes_check(v, total, limit, count, dialect_has_uuids(dialect), &n_cards);
    bool table = fault == NODE_OK && v->has_cards;
    size_t texts_n = node_sizes_texts_of(v);
    assert(n_cards <= LIMIT_CARDS && (n_cards > 0) == (fault == NODE_OK));
    struct node_sizes *s = mem_alloc(sizeof(*s) + n_cards * sizeof(struct card) +
                                     (table ? n_cards : 0) * sizeof(struct card_info) + texts_n);
    if (s == NULL)
        return NULL;
    s->fault = fault;
    s->dialect = dialect;
    s->n_cards = n_cards;
    s->total = MAX_OF(total, 0);
    s->limit = fault == NODE_OK ? MIN_OF(s->total, limit) : 0;
    s->cards = (struct card *)(s + 1);
    s->infos = table ? (struct card_info *)(s->cards + n_cards) : NULL;
    char *at = (char *)(s->cards + n_cards) + (table ? n_cards : 0) * sizeof(struct card_info);
    const char *texts = at;
    if (table)
        node_sizes_fill_from_table(s, v, &at);
    else
        node_sizes_split_evenly(s);
    s->model = str_store(&at, v->model);
    s->pool = str_store(&at, v->pool);
    s->cards_fault = str_store(&at, str_of(v->cards_fault));
    node_sizes_mark(s, v);
    node_sizes_read_labels(s, v);
    s->bad_tokens += spoken || v->dialect.p == NULL ? 0 : 1;
    *ret_texts = (struct str){texts, (size_t)(at - texts)};
    assert(ret_texts->n <= texts_n);
    return s;
}

static bool node_sizes_infos_equal(const struct node_sizes *a, const struct node_sizes *b)
{
    if ((a->infos == NULL) != (b->infos == NULL))
        return false;
    for (uint32_t i = 0; a->infos != NULL && i < a->n_cards; i++) {
        const struct card_info *x = &a->infos[i];
        const struct card_info *y = &b->infos[i];
        if (!str_eq(x->model, y->model) || !str_eq(x->profile, y->profile) || x->numa != y->numa ||
            x->pci != y->pci || x->max_pods != y->max_pods)
            return false;
    }
    return true;
}

static bool node_sizes_cards_equal(const struct node_sizes *a, const struct node_sizes *b)
{
    for (uint32_t i = 0; i < a->n_cards; i++) {
        const struct card *x = &a->cards[i];
        const struct card *y = &b->cards[i];
        if (x->total != y->total || x->withheld != y->withheld || x->absent != y->absent ||
            x->unhealthy != y->unhealthy || x->cordoned != y->cordoned || x->aside != y->aside ||
            x->given != y->given)
            return false;
    }
    return node_sizes_infos_equal(a, b);
}

bool node_sizes_equal(const struct node_sizes *a, const struct node_sizes *b)
{
    return a->fault == b->fault && a->total == b->total && a->limit == b->limit &&
           a->remainder == b->remainder && a->n_cards == b->n_cards && a->max_pods == b->max_pods &&
           a->exclusive == b->exclusive && a->renamed == b->renamed && a->offers == b->offers &&
           a->placement == b->placement && a->late == b->late && a->isolation == b->isolation &&
           a->dialect == b->dialect && str_eq(a->model, b->model) && str_eq(a->pool, b->pool) &&
           str_eq(a->cards_fault, b->cards_fault) && node_sizes_cards_equal(a, b);
}

/* The bytes of the cards can be hashed: the memory was zeroed, so the padding is zero. */
static uint64_t node_sizes_hash_of(struct map_seed seed, const struct node_sizes *s,
                                   struct str texts)
{
    struct str cards = {(const char *)s->cards, s->n_cards * sizeof(s->cards[0])};
    const uint64_t words[] = {
        siphash13(seed, cards),
        siphash13(seed, texts),
        (uint64_t)s->total,
        (uint64_t)s->limit,
        (uint64_t)s->exclusive << 32 | s->max_pods,
        (uint64_t)s->offers << 32 | s->renamed,
        (uint64_t)s->fault << 32 | (uint64_t)s->dialect << 40 | (uint64_t)s->late << 24 |
            (uint64_t)s->isolation << 16 | (uint64_t)s->placement,
    };
    return siphash13(seed, (struct str){(const char *)words, sizeof(words)});
}

static bool node_sizes_is_like(const struct interned *thing, const void *like)
{
    const struct node_sizes *s = (const struct node_sizes *)(const void *)thing;
    const struct node_sizes *other = like;
    return s->bad_tokens == other->bad_tokens && node_sizes_equal(s, other);
}

struct node_sizes *node_sizes_take(struct intern_table *table, const struct node_view *view)
{
    struct str texts;
    struct node_view own = *view;
    enum dialect dialect = DIALECT_OWN;
    bool spoken = node_sizes_find_dialect(view, &dialect);
    if (dialect != DIALECT_OWN) {
        /* cardpack-node's table may be left: its memory is in another unit. */
        const struct capacity_view *of = &view->of[dialect];
        own.has_cards = of->has_cards;
        own.cards_fault = of->cards_fault;
        own.cards = of->cards;
        own.n_cards = of->n_cards;
    }
    struct node_sizes *s = node_sizes_make(&own, dialect, spoken, &texts);
    if (s == NULL)
        return NULL;
    struct interned *kept = intern_keep(
        table, &s->interned, node_sizes_hash_of(table->seed, s, texts), node_sizes_is_like);
    return kept == NULL ? NULL : CONTAINER_OF(kept, struct node_sizes, interned);
}

void node_sizes_list_uuids(const struct node_sizes *s, const struct node_view *view,
                           struct str ret[static LIMIT_CARDS])
{
    bool own = s->dialect == DIALECT_OWN;
    const struct card_view *cards = own ? view->cards : view->of[s->dialect].cards;
    size_t n = own ? view->n_cards : view->of[s->dialect].n_cards;
    memset(ret, 0, s->n_cards * sizeof(ret[0]));
    for (size_t i = 0; i < n && s->infos != NULL; i++)
        ret[cards[i].index] = cards[i].uuid;
}

void node_sizes_give(struct intern_table *table, struct node_sizes *s)
{
    if (s != NULL)
        intern_give(table, &s->interned);
}

struct str node_card_model(const struct node *n, uint32_t card)
{
    assert(card < n->n_cards);
    if (n->sizes->infos != NULL && n->sizes->infos[card].model.n > 0)
        return n->sizes->infos[card].model;
    return n->sizes->model;
}

struct str node_card_uuid(const struct node *n, uint32_t card, struct uuid_room *room)
{
    assert(card < n->n_cards);
    return n->uuids == NULL ? STR_NULL : uuids_get(n->uuids, n->n_cards, card, room);
}

bool node_card_is_named(const struct node *n, uint32_t card, struct str uuid)
{
    struct uuid_room room _uninitialized_;
    return uuid.n > 0 && str_eq_nocase(node_card_uuid(n, card, &room), uuid);
}

uint32_t node_find_card(const struct node *n, struct str uuid)
{
    uint32_t card = n->uuids == NULL ? n->n_cards : uuids_find(n->uuids, n->n_cards, uuid);
    return card < n->n_cards ? card : INT32_MAX;
}

uint32_t node_card_max_pods(const struct node *n, uint32_t card)
{
    assert(card < n->n_cards);
    uint32_t all = n->sizes->max_pods;
    uint32_t own = n->sizes->infos == NULL ? 0 : n->sizes->infos[card].max_pods;
    return all == 0 || (own > 0 && own < all) ? own : all;
}

int32_t node_card_numa(const struct node *n, uint32_t card)
{
    assert(card < n->n_cards);
    return n->sizes->infos == NULL ? -1 : n->sizes->infos[card].numa;
}
