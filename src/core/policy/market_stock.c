/*
 * Copies what a solve works on, so that the cluster may change meanwhile.
 *
 * Cards of several kinds are in one class if each shape needs the same of them: nothing
 * distinguishes them apart then.
 */
#include "market_stock.h"

#include "base/map.h"
#include "base/mem.h"
#include "base/sort.h"

#define CORE_WORTH 0.01 /* cards: what a core counts for in a shape's worth */

/* The part of the prices that is for an empty cluster, where all pods that come will leave. */
#define EMPTY_PART 0.03

/* What a step copies, and how many items it moves to sort them: each takes some 50 microseconds. */
#define NODES_A_STEP  64
#define COUNTS_A_STEP 512
#define MOVES_A_STEP  1024

#define FIRST_ITERATIONS 100
#define ITERATIONS       20

/* The shapes that were seen, and what each needs of a card of each kind. False: no shape that asks
 * for cards fits on a card. */
static bool market_stock_take_shapes(struct market_solve *s, const struct market *m)
{
    bool fits = false;
    for (uint32_t i = 0; i < m->shapes.n; i++) {
        const struct known_shape *k = &m->shapes.all[i];
        s->shapes[i] = (struct solve_shape){.index = i,
                                            .hash = k->hash,
                                            .cards = k->shape.cards,
                                            .share = k->weight / m->shapes.sum,
                                            .cores = (double)k->shape.cpu / 1000,
                                            .price = k->price};
        for (uint32_t kind = 0; kind < s->n_kinds; kind++) {
            uint32_t steps = market_kind_steps(&m->kinds[kind], &k->shape, NULL);
            s->copy.steps[kind][i] = (uint8_t)steps;
            fits = fits || (k->shape.cards > 0 && steps > 0);
        }
    }
    s->n_shapes = m->shapes.n;
    return fits;
}

/* How much of a card one pod fills: the mean over the kinds of cards where it fits, by the number
 * of their cards. A shape that fits nowhere is left out. */
static void market_stock_weigh_shapes(struct market_solve *s)
{
    struct solve_copy *c = &s->copy;
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->n_shapes; i++) {
        struct solve_shape x = s->shapes[i];
        double sum = 0;
        double cards = 0;
        for (uint32_t kind = 0; kind < s->n_kinds && x.cards > 0; kind++) {
            uint32_t steps = c->steps[kind][i];
            sum += (double)c->cards_of[kind] * steps / FULL;
            cards += steps > 0 ? (double)c->cards_of[kind] : 0;
        }
        if (x.cards > 0 && cards == 0)
            continue;
        x.filled = x.cards == 0 ? 0 : x.cards * sum / cards;
        x.worth = x.filled + CORE_WORTH * x.cores;
        x.price = x.price > 0 ? x.price : x.worth;
        for (uint32_t kind = 0; kind < s->n_kinds; kind++)
            c->steps[kind][n] = c->steps[kind][i];
        s->shapes[n++] = x;
        c->filled += x.share * x.filled;
    }
    s->n_shapes = n;
}

/* Finds the kinds of cards of which each shape needs the same, and moves their rows to the front.
 */
static void market_stock_group_kinds(struct market_solve *s)
{
    uint8_t(*steps)[SHAPES_MAX] = s->copy.steps;
    for (uint32_t kind = 0; kind < s->n_kinds; kind++) {
        uint32_t same = 0;
        while (same < s->n_classes && memcmp(steps[same], steps[kind], s->n_shapes) != 0)
            same++;
        s->class_of[kind] = (uint8_t)same;
        if (same == s->n_classes)
            memmove(steps[s->n_classes++], steps[kind], s->n_shapes);
    }
}

/* Shapes of several cards use wholly free ones: this understates those that ask for a part of each
 * card. */
static void market_stock_take_sizes(const struct market_solve *s, struct solve_class *c)
{
    bool has[FULL + 1] = {false};
    for (uint32_t j = 0; j < s->n_shapes; j++)
        has[s->shapes[j].cards == 1 ? c->steps[j] : 0] = true;
    for (uint32_t size = 1; size <= FULL; size++) {
        if (has[size])
            c->sizes[c->n_sizes++] = size;
    }
}

static bool market_stock_take_classes(struct market_solve *s)
{
    market_stock_group_kinds(s);
    s->classes = mem_alloc(s->n_classes * sizeof(*s->classes));
    for (uint32_t c = 0; s->classes != NULL && c < s->n_classes; c++) {
        memcpy(s->classes[c].steps, s->copy.steps[c], s->n_shapes);
        market_stock_take_sizes(s, &s->classes[c]);
    }
    return s->classes != NULL;
}

/* Adds a card to the items of the node that is being copied. Returns the number of its items. */
static uint32_t market_stock_add_card(struct solve_item *items, uint32_t n, struct solve_item x)
{
    uint32_t at = n;
    while (at > 0 && (items[at - 1].class > x.class ||
                      (items[at - 1].class == x.class && items[at - 1].left > x.left)))
        at--;
    if (at > 0 && items[at - 1].class == x.class && items[at - 1].left == x.left) {
        items[at - 1].count++;
        return n;
    }
    memmove(&items[at + 1], &items[at], (n - at) * sizeof(*items));
    items[at] = x;
    return n + 1;
}

/* empty: as if no pod were on the node. */
static uint32_t market_stock_copy_cards(const struct market_solve *s, const struct node *n,
                                        bool empty, struct solve_item *ret)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < n->n_cards; i++) {
        const struct card *c = &n->cards[i];
        uint8_t left = empty && card_usable(c) && c->total > 0 ? FULL : c->left;
        if (left > 0 && c->kind > 0 && c->kind <= s->n_kinds) /* a new kind waits for the next */
            count = market_stock_add_card(
                ret, count,
                (struct solve_item){.class = s->class_of[c->kind - 1], .left = left, .count = 1});
    }
    return count;
}

/* The entry of this stock in the table, or the empty one for it. */
static uint32_t *market_stock_find_stock(const struct market_solve *s, const struct solve_stock *x)
{
    uint32_t *table = s->copy.slots;
    size_t mask = s->copy.mask;
    uint64_t hash = (uint64_t)(x->cores * 1000) * UINT64_C(0x9e3779b97f4a7c15);
    for (uint32_t i = 0; i < x->n; i++) {
        const struct solve_item *it = &s->items[x->first + i];
        hash = (hash ^ ((uint64_t)it->class << 32 | (uint64_t)it->left << 16 | it->count)) *
               UINT64_C(0xbf58476d1ce4e5b9);
        hash ^= hash >> 31;
    }
    for (size_t at = (size_t)hash & mask;; at = (at + 1) & mask) {
        const struct solve_stock *y = table[at] == 0 ? NULL : &s->stocks[table[at] - 1];
        if (y == NULL || (y->n == x->n && y->cores == x->cores &&
                          memcmp(&s->items[y->first], &s->items[x->first],
                                 x->n * sizeof(struct solve_item)) == 0))
            return &table[at];
    }
}

/* How many cards of each class a node has, idle or not: they may become idle. */
static void market_stock_note_most(struct market_solve *s, const struct node *n)
{
    uint32_t counts[MARKET_KINDS] = {0};
    for (uint32_t i = 0; i < n->n_cards; i++) {
        if (n->cards[i].kind == 0 || n->cards[i].kind > s->n_kinds)
            continue;
        uint8_t class = s->class_of[n->cards[i].kind - 1];
        uint32_t *most = &s->classes[class].most;
        counts[class] += counts[class] < MARKET_FREE_MAX ? 1 : 0;
        *most = MAX_OF(*most, counts[class]);
    }
}

/* Equal idle parts are evaluated once. On an empty cluster there are few different ones. A node
 * whose cards are all in use has no items: pods that ask for no card can use its cores. */
static void market_stock_add_stock(struct market_solve *s, const struct node *n, bool empty)
{
    struct solve_copy *c = &s->copy;
    int64_t cpu = empty ? market_cores_of(n->host_total.cpu) : market_cores(n);
    struct solve_stock x = {.cores = (double)cpu / 1000, .first = c->items};
    x.n = market_stock_copy_cards(s, n, empty, &s->items[c->items]);
    if (x.n == 0 && n->n_cards == 0)
        return;
    uint32_t *at = market_stock_find_stock(s, &x);
    if (*at == 0) {
        s->stocks[s->n_stocks++] = x;
        *at = s->n_stocks;
        c->items += x.n;
    }
    struct solve_stock *found = &s->stocks[*at - 1];
    *(empty ? &found->empty : &found->now) += 1;
}

static bool market_stock_comes_before(const void *ctx, uint32_t a, uint32_t b)
{
    const struct market_solve *s = ctx;
    const struct solve_stock *x = &s->stocks[a];
    const struct solve_stock *y = &s->stocks[b];
    if (x->cores != y->cores)
        return x->cores < y->cores;
    if (x->n != y->n)
        return x->n < y->n;
    return memcmp(&s->items[x->first], &s->items[y->first], x->n * sizeof(*s->items)) < 0;
}

/* Whether there is room for what the node has: its cards may have changed since they were
 * counted. */
static bool market_stock_has_room(const struct market_solve *s, const struct node *n)
{
    const struct solve_copy *c = &s->copy;
    return c->items + 2 * (size_t)n->n_cards <= c->max_items && s->n_stocks + 2 <= c->max_stocks;
}

/* A node that comes or goes may move others in the map: some would be counted twice, or not. */
bool market_stock_copy(struct market_solve *s)
{
    struct solve_copy *c = &s->copy;
    for (unsigned i = 0; i < NODES_A_STEP; i++) {
        const struct node *n = c->nodes->moves == c->moves ? map_next(c->nodes, &c->cursor) : NULL;
        s->lost = c->nodes->moves != c->moves || (n != NULL && !market_stock_has_room(s, n));
        if (n == NULL || s->lost)
            return false;
        market_stock_note_most(s, n);
        market_stock_add_stock(s, n, false);
        if (c->with_empty)
            market_stock_add_stock(s, n, true);
    }
    return true;
}

/* The map has the nodes in an order that is drawn when the process starts, and sums of numbers with
 * fractions depend on the order. In an order of their own all processes find the same prices. */
bool market_stock_sort(struct market_solve *s)
{
    struct sort_job *job = &s->copy.sort;
    assert(job->items != NULL);
    for (; job->n < s->n_stocks; job->n++)
        job->items[job->n] = job->n;
    return sort_step(job, MOVES_A_STEP, market_stock_comes_before, s);
}

static void market_stock_count_idle(struct market_solve *s, const struct solve_stock *x)
{
    s->idle_cores += x->nodes * x->cores;
    for (uint32_t i = 0; i < x->n; i++) {
        const struct solve_item *it = &s->items[x->first + i];
        s->idle_cards += x->nodes * it->left * it->count / FULL;
    }
}

bool market_stock_weigh(struct market_solve *s)
{
    struct solve_copy *c = &s->copy;
    assert(c->sorted != NULL && c->sort.items != NULL && s->stocks != NULL);
    for (uint32_t i = 0; i < MOVES_A_STEP && s->at < s->n_stocks; i++) {
        struct solve_stock *x = &c->sorted[s->at];
        *x = s->stocks[c->sort.items[s->at++]];
        x->nodes = x->now * (1 - c->empty_part) + x->empty * c->empty_part;
        market_stock_count_idle(s, x);
    }
    if (s->at < s->n_stocks)
        return true;
    struct solve_stock *unsorted = s->stocks;
    s->stocks = c->sorted;
    c->sorted = unsorted;
    s->pods = s->idle_cards / c->filled;
    market_stock_end(s);
    return false;
}

void market_stock_end(struct market_solve *s)
{
    struct solve_copy *c = &s->copy;
    mem_free(c->steps);
    mem_free(c->slots);
    mem_free(c->sort.items);
    mem_free(c->sort.spare);
    mem_free(c->sorted);
    *c = (struct solve_copy){.nodes = NULL};
}

/* Room for what is idle. */
static bool market_stock_open(struct market_solve *s)
{
    struct solve_copy *c = &s->copy;
    size_t slots = 16;
    while (slots < 4 * c->nodes->n)
        slots *= 2;
    c->mask = slots - 1;
    c->cursor = 0;
    c->max_stocks = 2 * c->nodes->n + 2;
    c->max_items = 2 * (size_t)c->cards + 1;
    c->slots = mem_alloc(slots * sizeof(*c->slots));
    c->sort.items = mem_alloc(c->max_stocks * sizeof(*c->sort.items));
    c->sort.spare = mem_alloc(c->max_stocks * sizeof(*c->sort.spare));
    c->sorted = mem_alloc(c->max_stocks * sizeof(*c->sorted));
    s->stocks = mem_alloc(c->max_stocks * sizeof(*s->stocks));
    s->items = mem_alloc(c->max_items * sizeof(*s->items));
    return c->slots != NULL && c->sort.items != NULL && c->sort.spare != NULL &&
           c->sorted != NULL && s->stocks != NULL && s->items != NULL;
}

/* Counts the cards of some nodes, idle or not. */
bool market_stock_count(struct market_solve *s)
{
    struct solve_copy *c = &s->copy;
    for (unsigned i = 0; i < COUNTS_A_STEP; i++) {
        const struct node *n = c->nodes->moves == c->moves ? map_next(c->nodes, &c->cursor) : NULL;
        s->lost = c->nodes->moves != c->moves;
        if (n == NULL)
            return false;
        for (uint32_t k = 0; k < n->n_cards; k++) {
            if (n->cards[k].kind > 0)
                c->cards_of[n->cards[k].kind - 1]++;
        }
        c->cards += n->n_cards;
    }
    return true;
}

bool market_stock_prepare(struct market_solve *s)
{
    for (uint32_t kind = 0; kind < s->n_kinds; kind++)
        s->n_cards += s->copy.cards_of[kind];
    market_stock_weigh_shapes(s);
    return s->copy.filled > 0 && market_stock_take_classes(s) && market_stock_open(s);
}

bool market_stock_begin(struct market_solve *s, const struct market *m, const struct map *nodes)
{
    s->iterations = m->solved == 0 ? FIRST_ITERATIONS : ITERATIONS;
    s->core_price = m->core_price;
    s->n_kinds = m->n_kinds;
    s->copy = (struct solve_copy){.nodes = nodes,
                                  .moves = nodes->moves,
                                  .with_empty = m->turnover > 0,
                                  .empty_part = EMPTY_PART * m->turnover};
    s->shapes = mem_alloc((m->shapes.n + 1) * sizeof(*s->shapes));
    s->copy.steps = mem_alloc((m->n_kinds + 1) * sizeof(*s->copy.steps));
    return s->shapes != NULL && s->copy.steps != NULL && market_stock_take_shapes(s, m);
}
