/*
 * Each iteration has four parts:
 * - tables: the values v and f of each class of cards at the current prices;
 * - stocks: for each distinct idle part of a node, which lambda is its minimum (softly). So each
 *   level of cards is counted at the lambda that it meets;
 * - supply: the derivative of all values by each price is how many pods of that shape are expected
 *   in the best filling. It is computed backwards through the recursions of Z and F;
 * - prices: a shape of which more is supplied than demanded becomes cheaper, and vice versa.
 *
 * Cards of several kinds are in one class if each shape needs the same of them: nothing tells them
 * apart then. The grid of lambda is the price of a core of pods without cards, plus 0 to
 * RATE_SPAN.
 */
#include "market_solve.h"

#include "base/map.h"
#include "base/mem.h"
#include "base/sort.h"
#include "core/pattern.h"

#include <math.h>

#define RATES MARKET_RATES
#define FULL  SHAPE_STEPS

#define TAU        0.02 /* cards: how soft the maximum is */
#define RATE_SPAN  0.4  /* cards per core */
#define CORE_WORTH 0.01 /* cards: what a core counts for in a shape's worth */

/* The part of the prices that is for an empty cluster, where all pods that come will leave. */
#define EMPTY_PART 0.03

#define FIRST_ITERATIONS 100
#define ITERATIONS       20

#define STOCKS_A_STEP 64

/* A price counts as at most so many TAU: exp() of more is infinite, and a price so far off is wrong
 * anyway. */
#define EXPONENT_MAX 600.0

struct solve_shape {
    uint32_t index; /* in shapes.all */
    uint64_t hash;  /* there, when the solve began */
    uint32_t cards;
    double share;  /* of all pods */
    double cores;  /* CPU */
    double filled; /* cards that one pod fills */
    double worth;
    double price;
    double sum;    /* of the prices of the later iterations */
    double supply; /* expected pods */
};

typedef double by_rate[RATES];

/* One kind of cards, or several that no shape tells apart. */
struct solve_class {
    uint8_t steps[SHAPES_MAX]; /* by solve_shape: hundredths on each card; 0: it does not fit */
    uint32_t sizes[FULL];      /* the different ones of shapes with one card */
    uint32_t n_sizes;
    uint32_t most;            /* cards on one node, at most MARKET_FREE_MAX */
    by_rate shrink[FULL + 1]; /* Z(r) would overflow: w and z are multiplied by this */
    by_rate w[FULL + 1];
    by_rate z[FULL + 1];
    by_rate part[FULL + 1]; /* v */
    by_rate growth; /* F(k) would overflow: f and e are divided by exp(growth) for each card */
    by_rate one;    /* what a card without a pod of several cards counts */
    bool counts[MARKET_FREE_MAX + 1]; /* of cards, for which shapes ask */
    by_rate e[MARKET_FREE_MAX + 1];
    by_rate f[MARKET_FREE_MAX + 1]; /* F */
    by_rate free[MARKET_FREE_MAX + 1];
    by_rate parts_met[FULL + 1];
    by_rate frees_met[MARKET_FREE_MAX + 1];
};

/* Some cards of a node with the same class and as much left. */
struct solve_item {
    uint8_t class;
    uint8_t left; /* hundredths; FULL: wholly free */
    uint16_t count;
};

/* What is idle on a node, or on several equal ones, now or without their pods. */
struct solve_stock {
    double nodes;
    double cores;
    uint32_t now;   /* nodes where this is idle */
    uint32_t empty; /* nodes where this would be idle without pods */
    uint32_t first; /* item */
    uint32_t n;
};

enum solve_part {
    PART_TABLES,
    PART_STOCKS,
    PART_SUPPLY,
    PART_PRICES
};

struct market_solve {
    struct solve_shape *shapes;
    uint32_t n_shapes;
    struct solve_class *classes;
    uint32_t n_classes;
    uint8_t class_of[MARKET_KINDS];
    uint32_t n_kinds;
    struct solve_stock *stocks;
    uint32_t n_stocks;
    struct solve_item *items;
    double idle_cards;
    double idle_cores;
    double pods; /* that would come if they filled what is idle */
    double core_price;
    double core_sum;
    double rates[RATES];
    uint32_t iteration;
    uint32_t iterations;
    enum solve_part part;
    uint32_t at; /* in the part */
};

void market_solve_free(struct market_solve *s)
{
    if (s == NULL)
        return;
    mem_free(s->shapes);
    mem_free(s->classes);
    mem_free(s->stocks);
    mem_free(s->items);
    mem_free(s);
}

/* The shapes that were seen, and how much of a card one pod fills: the mean over the kinds of cards
 * where it fits, by the number of their cards. A shape that fits nowhere is left out. */
static void solve_take_shapes(struct market_solve *s, const struct market *m,
                              const uint64_t *cards_of)
{
    for (uint32_t i = 0; i < m->shapes.n; i++) {
        const struct known_shape *k = &m->shapes.all[i];
        struct solve_shape *x = &s->shapes[s->n_shapes];
        double sum = 0;
        double cards = 0;
        *x = (struct solve_shape){.index = i,
                                  .hash = k->hash,
                                  .cards = k->shape.cards,
                                  .share = k->weight / m->shapes.sum,
                                  .cores = (double)k->shape.cpu / 1000};
        for (uint32_t kind = 0; kind < m->n_kinds && x->cards > 0; kind++) {
            uint32_t steps = market_kind_steps(&m->kinds[kind], &k->shape);
            sum += (double)cards_of[kind] * steps / FULL;
            cards += steps > 0 ? (double)cards_of[kind] : 0;
        }
        if (x->cards > 0 && cards == 0)
            continue;
        x->filled = x->cards == 0 ? 0 : x->cards * sum / cards;
        x->worth = x->filled + CORE_WORTH * x->cores;
        x->price = k->price > 0 ? k->price : x->worth;
        s->n_shapes++;
    }
}

/* Finds the kinds of cards of which each shape needs the same. steps: one row for each kind. */
static void solve_group_kinds(struct market_solve *s, const struct market *m,
                              uint8_t (*steps)[SHAPES_MAX])
{
    for (uint32_t kind = 0; kind < m->n_kinds; kind++) {
        uint8_t *row = steps[s->n_classes];
        for (uint32_t j = 0; j < s->n_shapes; j++)
            row[j] = (uint8_t)market_kind_steps(&m->kinds[kind],
                                                &m->shapes.all[s->shapes[j].index].shape);
        uint32_t same = 0;
        while (memcmp(steps[same], row, s->n_shapes) != 0)
            same++;
        s->class_of[kind] = (uint8_t)same;
        s->n_classes += same == s->n_classes ? 1 : 0;
    }
}

/* Shapes of several cards use wholly free ones: this understates those that ask for a part of each
 * card. */
static void solve_take_sizes(const struct market_solve *s, struct solve_class *c)
{
    bool has[FULL + 1] = {false};
    for (uint32_t j = 0; j < s->n_shapes; j++)
        has[s->shapes[j].cards == 1 ? c->steps[j] : 0] = true;
    for (uint32_t size = 1; size <= FULL; size++) {
        if (has[size])
            c->sizes[c->n_sizes++] = size;
    }
}

static bool solve_take_classes(struct market_solve *s, const struct market *m)
{
    uint8_t(*steps)[SHAPES_MAX] = mem_alloc((m->n_kinds + 1) * sizeof(*steps));
    if (steps == NULL)
        return false;
    solve_group_kinds(s, m, steps);
    s->classes = mem_alloc(s->n_classes * sizeof(*s->classes));
    for (uint32_t c = 0; s->classes != NULL && c < s->n_classes; c++) {
        memcpy(s->classes[c].steps, steps[c], sizeof(steps[c]));
        solve_take_sizes(s, &s->classes[c]);
    }
    mem_free(steps);
    return s->classes != NULL;
}

/* Adds a card to the items of the node that is being copied. Returns the number of its items. */
static uint32_t solve_add_card(struct solve_item *items, uint32_t n, struct solve_item x)
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
static uint32_t solve_copy_cards(const struct market_solve *s, const struct node *n, bool empty,
                                 struct solve_item *ret)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < n->n_cards; i++) {
        const struct card *c = &n->cards[i];
        uint8_t left = empty && card_usable(c) && c->total > 0 ? FULL : c->left;
        if (left > 0 && c->kind > 0)
            count = solve_add_card(
                ret, count,
                (struct solve_item){.class = s->class_of[c->kind - 1], .left = left, .count = 1});
    }
    return count;
}

/* The entry of this stock in a table of numbers plus 1, or the empty one for it. */
static uint32_t *solve_find_stock(const struct market_solve *s, uint32_t *table, size_t mask,
                                  const struct solve_stock *x)
{
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
static void solve_note_most(struct market_solve *s, const struct node *n)
{
    uint32_t counts[MARKET_KINDS] = {0};
    for (uint32_t i = 0; i < n->n_cards; i++) {
        if (n->cards[i].kind == 0)
            continue;
        uint8_t class = s->class_of[n->cards[i].kind - 1];
        uint32_t *most = &s->classes[class].most;
        counts[class] += counts[class] < MARKET_FREE_MAX ? 1 : 0;
        *most = MAX_OF(*most, counts[class]);
    }
}

static void solve_count_idle(struct market_solve *s, const struct solve_stock *x)
{
    s->idle_cores += x->nodes * x->cores;
    for (uint32_t i = 0; i < x->n; i++) {
        const struct solve_item *it = &s->items[x->first + i];
        s->idle_cards += x->nodes * it->left * it->count / FULL;
    }
}

/* A table that finds equal stocks: numbers plus 1. */
struct stock_index {
    uint32_t *slots;
    size_t mask;
    uint32_t end; /* of the items */
};

/* Equal idle parts are evaluated once. On an empty cluster there are few different ones. */
static void solve_add_stock(struct market_solve *s, struct stock_index *index, const struct node *n,
                            bool empty)
{
    int64_t cpu = empty ? market_cores_of(n->host_total.cpu) : market_cores(n);
    struct solve_stock x = {.cores = (double)cpu / 1000, .first = index->end};
    x.n = solve_copy_cards(s, n, empty, &s->items[index->end]);
    if (x.n == 0)
        return;
    uint32_t *at = solve_find_stock(s, index->slots, index->mask, &x);
    if (*at == 0) {
        s->stocks[s->n_stocks++] = x;
        *at = s->n_stocks;
        index->end += x.n;
    }
    struct solve_stock *found = &s->stocks[*at - 1];
    *(empty ? &found->empty : &found->now) += 1;
}

static bool solve_comes_before(const void *ctx, uint32_t a, uint32_t b)
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

/* The map has the nodes in an order that is drawn when the process starts, and sums of numbers with
 * fractions depend on the order. In an order of their own all processes find the same prices. */
static bool solve_sort_stocks(struct market_solve *s)
{
    uint32_t *order = mem_alloc((s->n_stocks + 1) * sizeof(*order));
    struct solve_stock *sorted = mem_alloc((s->n_stocks + 1) * sizeof(*sorted));
    bool there = order != NULL && sorted != NULL;
    for (uint32_t i = 0; there && i < s->n_stocks; i++)
        order[i] = i;
    if (there)
        sort_by(order, s->n_stocks, solve_comes_before, s);
    for (uint32_t i = 0; there && i < s->n_stocks; i++)
        sorted[i] = s->stocks[order[i]];
    mem_free(order);
    mem_free(there ? s->stocks : sorted);
    s->stocks = there ? sorted : s->stocks;
    return there;
}

static void solve_fill_stocks(struct market_solve *s, const struct map *nodes, bool with_empty,
                              struct stock_index *index)
{
    size_t cursor = 0;
    for (const struct node *n = map_next(nodes, &cursor); n != NULL; n = map_next(nodes, &cursor)) {
        solve_note_most(s, n);
        solve_add_stock(s, index, n, false);
        if (with_empty)
            solve_add_stock(s, index, n, true);
    }
}

static void solve_weigh_stocks(struct market_solve *s, double turnover)
{
    double empty = EMPTY_PART * turnover;
    for (uint32_t i = 0; i < s->n_stocks; i++) {
        struct solve_stock *x = &s->stocks[i];
        x->nodes = x->now * (1 - empty) + x->empty * empty;
        solve_count_idle(s, x);
    }
}

static bool solve_take_stocks(struct market_solve *s, const struct map *nodes, double turnover)
{
    size_t cards = 0;
    size_t slots = 16;
    size_t cursor = 0;
    for (const struct node *n = map_next(nodes, &cursor); n != NULL; n = map_next(nodes, &cursor))
        cards += n->n_cards;
    while (slots < 4 * nodes->n)
        slots *= 2;
    struct stock_index index = {.slots = mem_alloc(slots * sizeof(*index.slots)),
                                .mask = slots - 1};
    s->stocks = mem_alloc((2 * nodes->n + 1) * sizeof(*s->stocks));
    s->items = mem_alloc((2 * cards + 1) * sizeof(*s->items));
    bool there = index.slots != NULL && s->stocks != NULL && s->items != NULL;
    if (there)
        solve_fill_stocks(s, nodes, turnover > 0, &index);
    mem_free(index.slots);
    if (!there || !solve_sort_stocks(s))
        return false;
    solve_weigh_stocks(s, turnover);
    return true;
}

/* How many cards there are of each kind, idle or not. */
static void solve_count_kinds(const struct map *nodes, uint64_t ret[static MARKET_KINDS])
{
    size_t cursor = 0;
    memset(ret, 0, MARKET_KINDS * sizeof(*ret));
    for (const struct node *n = map_next(nodes, &cursor); n != NULL; n = map_next(nodes, &cursor)) {
        for (uint32_t i = 0; i < n->n_cards; i++) {
            if (n->cards[i].kind > 0)
                ret[n->cards[i].kind - 1]++;
        }
    }
}

static bool solve_init(struct market_solve *s, const struct market *m, const struct map *nodes)
{
    uint64_t cards_of[MARKET_KINDS];
    double filled = 0;
    s->iterations = m->solved == 0 ? FIRST_ITERATIONS : ITERATIONS;
    s->core_price = m->core_price;
    s->n_kinds = m->n_kinds;
    s->shapes = mem_alloc((m->shapes.n + 1) * sizeof(*s->shapes));
    if (s->shapes == NULL)
        return false;
    solve_count_kinds(nodes, cards_of);
    solve_take_shapes(s, m, cards_of);
    for (uint32_t j = 0; j < s->n_shapes; j++)
        filled += s->shapes[j].share * s->shapes[j].filled;
    if (filled <= 0 || !solve_take_classes(s, m) || !solve_take_stocks(s, nodes, m->turnover))
        return false;
    s->pods = s->idle_cards / filled;
    return true;
}

struct market_solve *market_solve_new(const struct market *m, const struct map *nodes)
{
    struct market_solve *s = mem_alloc(sizeof(*s));
    if (s == NULL || solve_init(s, m, nodes))
        return s;
    market_solve_free(s);
    return NULL;
}

static void solve_set_rates(struct market_solve *s)
{
    for (unsigned l = 0; l < RATES; l++)
        s->rates[l] = s->core_price + RATE_SPAN * l / (RATES - 1);
}

/* (price - rate x cores) / tau at the first rate. */
static double solve_first_bid(const struct market_solve *s, const struct solve_shape *x)
{
    return MIN_OF((x->price - s->rates[0] * x->cores) / TAU, EXPONENT_MAX);
}

/* So much less it is with each rate: they are equally far apart. */
static double solve_bid_step(const struct solve_shape *x)
{
    return RATE_SPAN / (RATES - 1) * x->cores / TAU;
}

/* exp((price - rate x cores) / tau) for each rate, shrunk as w. */
static void solve_bids(const struct market_solve *s, const struct solve_class *c,
                       const struct solve_shape *x, uint32_t steps, by_rate ret)
{
    double at = exp(solve_first_bid(s, x));
    double ratio = exp(-solve_bid_step(x));
    for (unsigned l = 0; l < RATES; l++) {
        ret[l] = at * c->shrink[steps][l];
        at *= ratio;
    }
}

/* ln of the same without shrinking, less what the pod's cards are worth to pods with one card. */
static void solve_log_bids_of_several(const struct market_solve *s, const struct solve_class *c,
                                      const struct solve_shape *x, by_rate ret)
{
    for (unsigned l = 0; l < RATES; l++) {
        double log_bid = (x->price - s->rates[l] * x->cores - x->cards * c->part[FULL][l]) / TAU;
        ret[l] = MIN_OF(log_bid, EXPONENT_MAX);
    }
}

static void solve_bids_of_several(const struct market_solve *s, const struct solve_class *c,
                                  const struct solve_shape *x, by_rate ret)
{
    solve_log_bids_of_several(s, c, x, ret);
    for (unsigned l = 0; l < RATES; l++)
        ret[l] = exp(ret[l] - x->cards * c->growth[l]);
}

static void solve_add(by_rate to, const by_rate x)
{
    for (unsigned l = 0; l < RATES; l++)
        to[l] += x[l];
}

static void solve_add_product(by_rate to, const by_rate x, const by_rate y)
{
    for (unsigned l = 0; l < RATES; l++)
        to[l] += x[l] * y[l];
}

/* Whether the shape asks for several cards of this class, and so few that a node has them. */
static bool solve_is_several(const struct solve_class *c, const struct solve_shape *x, uint32_t j)
{
    return x->cards > 1 && x->cards <= c->most && c->steps[j] > 0;
}

/* No term of Z(r) grows faster than exp(growth) with each hundredth. */
static void solve_find_shrink(const struct market_solve *s, struct solve_class *c, by_rate growth)
{
    memset(growth, 0, sizeof(by_rate));
    for (uint32_t j = 0; j < s->n_shapes; j++) {
        if (s->shapes[j].cards != 1 || c->steps[j] == 0)
            continue;
        double bid = solve_first_bid(s, &s->shapes[j]);
        double step = solve_bid_step(&s->shapes[j]);
        for (unsigned l = 0; l < RATES; l++)
            growth[l] = MAX_OF(growth[l], (bid - l * step) / c->steps[j]);
    }
    for (uint32_t r = 0; r <= FULL; r++) {
        for (unsigned l = 0; l < RATES; l++)
            c->shrink[r][l] = exp(-(double)r * growth[l]);
    }
}

static void solve_value_parts(const struct market_solve *s, struct solve_class *c)
{
    by_rate growth;
    solve_find_shrink(s, c, growth);
    memset(c->w, 0, sizeof(c->w));
    for (uint32_t j = 0; j < s->n_shapes; j++) {
        by_rate bids;
        if (s->shapes[j].cards != 1 || c->steps[j] == 0)
            continue;
        solve_bids(s, c, &s->shapes[j], c->steps[j], bids);
        solve_add(c->w[c->steps[j]], bids);
    }
    for (uint32_t r = 0; r <= FULL; r++) {
        memcpy(c->z[r], c->shrink[r], sizeof(c->z[r]));
        for (uint32_t i = 0; i < c->n_sizes && c->sizes[i] <= r; i++)
            solve_add_product(c->z[r], c->w[c->sizes[i]], c->z[r - c->sizes[i]]);
        for (unsigned l = 0; l < RATES; l++)
            c->part[r][l] = TAU * (log(c->z[r][l]) + r * growth[l]);
    }
}

/* No term of F(k) grows faster than exp(growth) with each card. */
static void solve_find_growth(const struct market_solve *s, struct solve_class *c)
{
    memset(c->growth, 0, sizeof(c->growth));
    for (uint32_t j = 0; j < s->n_shapes; j++) {
        by_rate logs;
        if (!solve_is_several(c, &s->shapes[j], j))
            continue;
        solve_log_bids_of_several(s, c, &s->shapes[j], logs);
        for (unsigned l = 0; l < RATES; l++)
            c->growth[l] = MAX_OF(c->growth[l], logs[l] / s->shapes[j].cards);
    }
    for (unsigned l = 0; l < RATES; l++)
        c->one[l] = exp(-c->growth[l]);
}

static void solve_value_frees(const struct market_solve *s, struct solve_class *c)
{
    memset(c->e, 0, sizeof(c->e));
    memset(c->counts, 0, sizeof(c->counts));
    solve_find_growth(s, c);
    for (uint32_t j = 0; j < s->n_shapes; j++) {
        by_rate bids;
        if (!solve_is_several(c, &s->shapes[j], j))
            continue;
        solve_bids_of_several(s, c, &s->shapes[j], bids);
        solve_add(c->e[s->shapes[j].cards], bids);
        c->counts[s->shapes[j].cards] = true;
    }
    for (unsigned l = 0; l < RATES; l++)
        c->f[0][l] = 1;
    for (uint32_t k = 1; k <= c->most; k++) {
        memset(c->f[k], 0, sizeof(c->f[k]));
        solve_add_product(c->f[k], c->one, c->f[k - 1]);
        for (uint32_t n = 2; n <= k; n++) {
            if (c->counts[n])
                solve_add_product(c->f[k], c->e[n], c->f[k - n]);
        }
    }
    for (uint32_t k = 0; k <= c->most; k++) {
        for (unsigned l = 0; l < RATES; l++)
            c->free[k][l] = k * (c->part[FULL][l] + TAU * c->growth[l]) + TAU * log(c->f[k][l]);
    }
}

static void solve_tables(struct market_solve *s, struct solve_class *c)
{
    solve_value_parts(s, c);
    solve_value_frees(s, c);
    memset(c->parts_met, 0, sizeof(c->parts_met));
    memset(c->frees_met, 0, sizeof(c->frees_met));
}

/* How much a part of a node weighs that is e^-14 times as likely as the best: not at all. */
#define UNLIKELY 14.0

/* The probability of each rate: a soft minimum over the node's values. */
static void solve_weigh_rates(const struct market_solve *s, const struct solve_stock *x,
                              by_rate ret)
{
    double least = INFINITY;
    double sum = 0;
    for (unsigned l = 0; l < RATES; l++)
        ret[l] = s->rates[l] * x->cores;
    for (uint32_t i = 0; i < x->n; i++) {
        const struct solve_item *it = &s->items[x->first + i];
        const struct solve_class *c = &s->classes[it->class];
        uint32_t k = MIN_OF((uint32_t)it->count, c->most);
        uint32_t rest = it->left == FULL ? it->count - k : it->count;
        for (unsigned l = 0; l < RATES; l++)
            ret[l] += rest * c->part[it->left][l] + (it->left == FULL ? c->free[k][l] : 0);
    }
    for (unsigned l = 0; l < RATES; l++)
        least = MIN_OF(least, ret[l]);
    for (unsigned l = 0; l < RATES; l++) {
        double off = (ret[l] - least) / TAU;
        ret[l] = off > UNLIKELY ? 0 : exp(-off);
        sum += ret[l];
    }
    for (unsigned l = 0; l < RATES; l++)
        ret[l] *= x->nodes / sum;
}

static void solve_meet_stock(struct market_solve *s, const struct solve_stock *x)
{
    by_rate weights;
    solve_weigh_rates(s, x, weights);
    for (uint32_t i = 0; i < x->n; i++) {
        const struct solve_item *it = &s->items[x->first + i];
        struct solve_class *c = &s->classes[it->class];
        uint32_t k = it->left == FULL ? MIN_OF((uint32_t)it->count, c->most) : 0;
        if (k > 0)
            solve_add(c->frees_met[k], weights);
        for (unsigned l = 0; l < RATES; l++)
            c->parts_met[it->left][l] += (it->count - k) * weights[l];
    }
}

static double solve_dot(const by_rate x, const by_rate y)
{
    double sum = 0;
    for (unsigned l = 0; l < RATES; l++)
        sum += x[l] * y[l];
    return sum;
}

/* The expected pods of several cards on the wholly free cards. The free cards that they leave are
 * for pods with one card: they are added to parts_met. */
static void solve_supply_several(struct market_solve *s, struct solve_class *c)
{
    by_rate back[MARKET_FREE_MAX + 1] = {{0}};
    by_rate uses[MARKET_FREE_MAX + 1] = {{0}};
    for (uint32_t k = 0; k <= c->most; k++) {
        for (unsigned l = 0; l < RATES; l++) {
            back[k][l] = c->frees_met[k][l] / c->f[k][l];
            c->parts_met[FULL][l] += k * c->frees_met[k][l];
        }
    }
    for (uint32_t k = c->most; k > 0; k--) {
        solve_add_product(back[k - 1], back[k], c->one);
        for (uint32_t n = 2; n <= k; n++) {
            if (!c->counts[n])
                continue;
            solve_add_product(uses[n], back[k], c->f[k - n]);
            solve_add_product(back[k - n], back[k], c->e[n]);
        }
    }
    for (uint32_t j = 0; j < s->n_shapes; j++) {
        struct solve_shape *x = &s->shapes[j];
        by_rate bids;
        if (!solve_is_several(c, x, j))
            continue;
        solve_bids_of_several(s, c, x, bids);
        x->supply += solve_dot(bids, uses[x->cards]);
        for (unsigned l = 0; l < RATES; l++)
            c->parts_met[FULL][l] -= x->cards * bids[l] * uses[x->cards][l];
    }
    for (unsigned l = 0; l < RATES; l++)
        c->parts_met[FULL][l] = MAX_OF(c->parts_met[FULL][l], 0.0);
}

static void solve_supply_single(struct market_solve *s, struct solve_class *c)
{
    by_rate uses[FULL + 1] = {{0}};
    by_rate *back = c->parts_met;
    for (uint32_t r = 0; r <= FULL; r++) {
        for (unsigned l = 0; l < RATES; l++)
            back[r][l] /= c->z[r][l];
    }
    for (uint32_t r = FULL; r > 0; r--) {
        for (uint32_t i = 0; i < c->n_sizes && c->sizes[i] <= r; i++) {
            uint32_t size = c->sizes[i];
            solve_add_product(uses[size], back[r], c->z[r - size]);
            solve_add_product(back[r - size], back[r], c->w[size]);
        }
    }
    for (uint32_t j = 0; j < s->n_shapes; j++) {
        by_rate bids;
        if (s->shapes[j].cards != 1 || c->steps[j] == 0)
            continue;
        solve_bids(s, c, &s->shapes[j], c->steps[j], bids);
        s->shapes[j].supply += solve_dot(bids, uses[c->steps[j]]);
    }
}

/* The steps become smaller with each iteration, so that the prices settle. */
static double solve_eta(const struct market_solve *s)
{
    return 1 / sqrt(1 + 0.05 * s->iteration);
}

static double solve_demand(const struct market_solve *s, const struct solve_shape *x)
{
    return s->pods * x->share * MIN_OF(1.1, sqrt(x->worth / x->price));
}

static double solve_clip(double x, double least, double most)
{
    return MIN_OF(MAX_OF(x, least), most);
}

static void solve_move_core_price(struct market_solve *s, double used)
{
    double wanted = 0;
    for (uint32_t j = 0; j < s->n_shapes; j++)
        wanted += s->shapes[j].cards == 0 ? s->pods * s->shapes[j].share * s->shapes[j].cores : 0;
    double left = s->idle_cores - used;
    double most = MAX_OF(MAX_OF(fabs(left), wanted), 1e-9);
    s->core_price *= exp(-solve_eta(s) * (left - wanted) / most);
    s->core_price = solve_clip(s->core_price, 1e-6, 1);
}

static void solve_move_prices(struct market_solve *s)
{
    double asked = 0;
    double paid = 0;
    double used = 0;
    for (uint32_t j = 0; j < s->n_shapes; j++) {
        const struct solve_shape *x = &s->shapes[j];
        if (x->cards == 0)
            continue;
        asked += s->pods * x->share * x->worth;
        paid += x->price * x->supply;
        used += x->supply * x->cores;
    }
    double scale = paid > 0 ? solve_clip(asked / paid, 0.9, 1.1) : 1.1;
    for (uint32_t j = 0; j < s->n_shapes; j++) {
        struct solve_shape *x = &s->shapes[j];
        if (x->cards == 0)
            continue;
        double demand = solve_demand(s, x);
        double excess = solve_clip((x->supply - demand) / (demand + 0.5 + 0.0005 * s->pods), -1, 1);
        x->price = solve_clip((x->price - solve_eta(s) * TAU * x->cards * excess) * scale,
                              0.001 * x->worth, 6 * x->worth);
    }
    solve_move_core_price(s, used);
}

/* The prices are the means of the second half: single iterations swing around them. */
static void solve_sum_prices(struct market_solve *s)
{
    uint32_t count = s->iterations - s->iterations / 2;
    bool last = s->iteration + 1 == s->iterations;
    if (s->iteration < s->iterations / 2)
        return;
    s->core_sum += s->core_price;
    s->core_price = last ? s->core_sum / count : s->core_price;
    for (uint32_t j = 0; j < s->n_shapes; j++) {
        struct solve_shape *x = &s->shapes[j];
        x->sum += x->price;
        x->price = last ? x->sum / count : x->price;
    }
}

static void solve_prices(struct market_solve *s)
{
    solve_move_prices(s);
    solve_sum_prices(s);
    for (uint32_t j = 0; j < s->n_shapes; j++)
        s->shapes[j].supply = 0;
    s->iteration++;
    solve_set_rates(s);
}

static void solve_enter(struct market_solve *s, enum solve_part part)
{
    s->part = part;
    s->at = 0;
}

/* After the last iteration the tables are computed once more, at the final prices. */
bool market_solve_step(struct market_solve *s)
{
    bool last = s->iteration == s->iterations;
    switch (s->part) {
    case PART_TABLES:
        if (s->iteration == 0 && s->at == 0)
            solve_set_rates(s);
        solve_tables(s, &s->classes[s->at++]);
        if (s->at == s->n_classes && !last)
            solve_enter(s, PART_STOCKS);
        return !last || s->at < s->n_classes;
    case PART_STOCKS:
        for (uint32_t i = 0; i < STOCKS_A_STEP && s->at < s->n_stocks; i++)
            solve_meet_stock(s, &s->stocks[s->at++]);
        if (s->at == s->n_stocks)
            solve_enter(s, PART_SUPPLY);
        return true;
    case PART_SUPPLY:
        solve_supply_several(s, &s->classes[s->at]);
        solve_supply_single(s, &s->classes[s->at++]);
        if (s->at == s->n_classes)
            solve_enter(s, PART_PRICES);
        return true;
    case PART_PRICES:
        solve_prices(s);
        solve_enter(s, PART_TABLES);
        return true;
    }
    return false;
}

/* A value of more than 2000 cards is cut: only requests that make no sense lead to one. */
static int32_t solve_millionths(double cards)
{
    return (int32_t)lrint(1e6 * solve_clip(cards, -2000, 2000));
}

static void solve_round(const struct solve_class *c, struct market_values *ret)
{
    for (unsigned l = 0; l < RATES; l++) {
        for (uint32_t r = 0; r <= FULL; r++)
            ret->part[r][l] = solve_millionths(c->part[r][l]);
        for (uint32_t k = 0; k <= MARKET_FREE_MAX; k++) {
            uint32_t known = MIN_OF(k, c->most);
            ret->free[k][l] = solve_millionths(c->free[known][l] + (k - known) * c->part[FULL][l]);
        }
    }
}

static bool solve_has_several(const struct market_solve *s)
{
    for (uint32_t j = 0; j < s->n_shapes; j++) {
        if (s->shapes[j].cards > 1)
            return true;
    }
    return false;
}

bool market_solve_publish(struct market_solve *s, struct market *m)
{
    struct market_values *values = mem_alloc(s->n_classes * sizeof(*values));
    if (values == NULL)
        return false;
    for (uint32_t c = 0; c < s->n_classes; c++)
        solve_round(&s->classes[c], &values[c]);
    mem_free(m->owned);
    m->owned = values;
    m->n_owned = s->n_classes;
    /* Kinds that came since the solve began get values with the next one. */
    for (uint32_t kind = 0; kind < m->n_kinds; kind++)
        m->kinds[kind].values = kind < s->n_kinds ? &values[s->class_of[kind]] : NULL;
    for (unsigned l = 0; l < RATES; l++)
        m->rates[l] = solve_millionths(s->rates[l]);
    for (uint32_t j = 0; j < s->n_shapes; j++) {
        const struct solve_shape *x = &s->shapes[j];
        if (x->index < m->shapes.n && m->shapes.all[x->index].hash == x->hash)
            m->shapes.all[x->index].price = x->price;
    }
    m->core_price = s->core_price;
    m->drain = solve_has_several(s) ? solve_millionths(m->turnover) : 0;
    m->solved++;
    return true;
}
