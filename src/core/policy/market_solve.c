/*
 * Each iteration has four parts:
 * - tables: the values v and f of each class of cards at the current prices;
 * - stocks: for each distinct idle part of a node, which lambda is its minimum (softly). So each
 *   level of cards is counted at the lambda that it meets;
 * - supply: the derivative of all values by each price is how many pods of that shape are expected
 *   in the best filling. It is computed backwards through the recursions of Z and F;
 * - prices: a shape of which more is supplied than demanded becomes cheaper, and vice versa.
 *
 * The grid of lambda is the price of a core of pods without cards, plus 0 to RATE_SPAN.
 */
#include "market_solve.h"

#include "base/mem.h"
#include "market_stock.h"

#include <math.h>

#define TAU       0.02 /* cards: how soft the maximum is */
#define RATE_SPAN 0.4  /* cards per core */

#define STOCKS_A_STEP 64

/* See market.h. A larger one costs more in a cluster that fills up once than it gains. */
#define TURNOVER_LEAST 0.05

/* A price counts as at most so many TAU: exp() of more is infinite, and a price so far off is wrong
 * anyway. */
#define EXPONENT_MAX 600.0

void market_solve_free(struct market_solve *s)
{
    if (s == NULL)
        return;
    mem_free(s->shapes);
    mem_free(s->classes);
    mem_free(s->stocks);
    mem_free(s->items);
    market_stock_end(s);
    mem_free(s);
}

struct market_solve *market_solve_new(const struct market *m, const struct map *nodes)
{
    struct market_solve *s = mem_alloc(sizeof(*s));
    if (s == NULL || market_stock_begin(s, m, nodes))
        return s;
    market_solve_free(s);
    return NULL;
}

static void market_solve_set_rates(struct market_solve *s)
{
    for (unsigned l = 0; l < RATES; l++)
        s->rates[l] = s->core_price + RATE_SPAN * l / (RATES - 1);
}

/* (price - rate x cores) / tau at the first rate. */
static double market_solve_first_bid(const struct market_solve *s, const struct solve_shape *x)
{
    return MIN_OF((x->price - s->rates[0] * x->cores) / TAU, EXPONENT_MAX);
}

/* How much market_solve_first_bid would fall with each further rate: the rates are equally far
 * apart. */
static double market_solve_bid_step(const struct solve_shape *x)
{
    return RATE_SPAN / (RATES - 1) * x->cores / TAU;
}

/* exp((price - rate x cores) / tau) for each rate, multiplied by c->shrink[steps], as w is. */
static void market_solve_bids(const struct market_solve *s, const struct solve_class *c,
                              const struct solve_shape *x, uint32_t steps, by_rate ret)
{
    double at = exp(market_solve_first_bid(s, x));
    double ratio = exp(-market_solve_bid_step(x));
    for (unsigned l = 0; l < RATES; l++) {
        ret[l] = at * c->shrink[steps][l];
        at *= ratio;
    }
}

/* ln of the same without shrinking, less what the pod's cards are worth to pods with one card. */
static void market_solve_log_bids_of_several(const struct market_solve *s,
                                             const struct solve_class *c,
                                             const struct solve_shape *x, by_rate ret)
{
    for (unsigned l = 0; l < RATES; l++) {
        double log_bid = (x->price - s->rates[l] * x->cores - x->cards * c->part[FULL][l]) / TAU;
        ret[l] = MIN_OF(log_bid, EXPONENT_MAX);
    }
}

static void market_solve_bids_of_several(const struct market_solve *s, const struct solve_class *c,
                                         const struct solve_shape *x, by_rate ret)
{
    market_solve_log_bids_of_several(s, c, x, ret);
    for (unsigned l = 0; l < RATES; l++)
        ret[l] = exp(ret[l] - x->cards * c->growth[l]);
}

static void market_solve_add(by_rate to, const by_rate x)
{
    for (unsigned l = 0; l < RATES; l++)
        to[l] += x[l];
}

static void market_solve_add_product(by_rate to, const by_rate x, const by_rate y)
{
    for (unsigned l = 0; l < RATES; l++)
        to[l] += x[l] * y[l];
}

/* Whether the shape asks for several cards of this class, and so few that a node has them. */
static bool market_solve_is_several(const struct solve_class *c, const struct solve_shape *x,
                                    uint32_t j)
{
    return x->cards > 1 && x->cards <= c->most && c->steps[j] > 0;
}

/* No term of Z(r) grows faster than exp(growth) with each hundredth. */
static void market_solve_find_shrink(const struct market_solve *s, struct solve_class *c,
                                     by_rate growth)
{
    memset(growth, 0, sizeof(by_rate));
    for (uint32_t j = 0; j < s->n_shapes; j++) {
        if (s->shapes[j].cards != 1 || c->steps[j] == 0)
            continue;
        double bid = market_solve_first_bid(s, &s->shapes[j]);
        double step = market_solve_bid_step(&s->shapes[j]);
        for (unsigned l = 0; l < RATES; l++)
            growth[l] = MAX_OF(growth[l], (bid - l * step) / c->steps[j]);
    }
    for (uint32_t r = 0; r <= FULL; r++) {
        for (unsigned l = 0; l < RATES; l++)
            c->shrink[r][l] = exp(-(double)r * growth[l]);
    }
}

static void market_solve_value_parts(const struct market_solve *s, struct solve_class *c)
{
    by_rate growth;
    market_solve_find_shrink(s, c, growth);
    memset(c->w, 0, sizeof(c->w));
    for (uint32_t j = 0; j < s->n_shapes; j++) {
        by_rate bids;
        if (s->shapes[j].cards != 1 || c->steps[j] == 0)
            continue;
        market_solve_bids(s, c, &s->shapes[j], c->steps[j], bids);
        market_solve_add(c->w[c->steps[j]], bids);
    }
    for (uint32_t r = 0; r <= FULL; r++) {
        memcpy(c->z[r], c->shrink[r], sizeof(c->z[r]));
        for (uint32_t i = 0; i < c->n_sizes && c->sizes[i] <= r; i++)
            market_solve_add_product(c->z[r], c->w[c->sizes[i]], c->z[r - c->sizes[i]]);
        for (unsigned l = 0; l < RATES; l++)
            c->part[r][l] = TAU * (log(c->z[r][l]) + r * growth[l]);
    }
}

/* No term of F(k) grows faster than exp(growth) with each card. */
static void market_solve_find_growth(const struct market_solve *s, struct solve_class *c)
{
    memset(c->growth, 0, sizeof(c->growth));
    for (uint32_t j = 0; j < s->n_shapes; j++) {
        by_rate logs;
        if (!market_solve_is_several(c, &s->shapes[j], j))
            continue;
        market_solve_log_bids_of_several(s, c, &s->shapes[j], logs);
        for (unsigned l = 0; l < RATES; l++)
            c->growth[l] = MAX_OF(c->growth[l], logs[l] / s->shapes[j].cards);
    }
    for (unsigned l = 0; l < RATES; l++)
        c->one[l] = exp(-c->growth[l]);
}

static void market_solve_value_frees(const struct market_solve *s, struct solve_class *c)
{
    memset(c->e, 0, sizeof(c->e));
    memset(c->counts, 0, sizeof(c->counts));
    market_solve_find_growth(s, c);
    for (uint32_t j = 0; j < s->n_shapes; j++) {
        by_rate bids;
        if (!market_solve_is_several(c, &s->shapes[j], j))
            continue;
        market_solve_bids_of_several(s, c, &s->shapes[j], bids);
        market_solve_add(c->e[s->shapes[j].cards], bids);
        c->counts[s->shapes[j].cards] = true;
    }
    for (unsigned l = 0; l < RATES; l++)
        c->f[0][l] = 1;
    for (uint32_t k = 1; k <= c->most; k++) {
        memset(c->f[k], 0, sizeof(c->f[k]));
        market_solve_add_product(c->f[k], c->one, c->f[k - 1]);
        for (uint32_t n = 2; n <= k; n++) {
            if (c->counts[n])
                market_solve_add_product(c->f[k], c->e[n], c->f[k - n]);
        }
    }
    for (uint32_t k = 0; k <= c->most; k++) {
        for (unsigned l = 0; l < RATES; l++)
            c->free[k][l] = k * (c->part[FULL][l] + TAU * c->growth[l]) + TAU * log(c->f[k][l]);
    }
}

static void market_solve_tables(struct market_solve *s, struct solve_class *c)
{
    market_solve_value_parts(s, c);
    market_solve_value_frees(s, c);
    memset(c->parts_met, 0, sizeof(c->parts_met));
    memset(c->frees_met, 0, sizeof(c->frees_met));
}

/* How much a part of a node weighs that is e^-14 times as likely as the best: not at all. */
#define UNLIKELY 14.0

/* The probability of each rate: a soft minimum over the node's values. */
static void market_solve_weigh_rates(const struct market_solve *s, const struct solve_stock *x,
                                     by_rate ret)
{
    double least = HUGE_VAL;
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

static void market_solve_meet_stock(struct market_solve *s, const struct solve_stock *x)
{
    by_rate weights;
    if (x->n == 0)
        return;
    market_solve_weigh_rates(s, x, weights);
    for (uint32_t i = 0; i < x->n; i++) {
        const struct solve_item *it = &s->items[x->first + i];
        struct solve_class *c = &s->classes[it->class];
        uint32_t k = it->left == FULL ? MIN_OF((uint32_t)it->count, c->most) : 0;
        if (k > 0)
            market_solve_add(c->frees_met[k], weights);
        for (unsigned l = 0; l < RATES; l++)
            c->parts_met[it->left][l] += (it->count - k) * weights[l];
    }
}

static double market_solve_dot(const by_rate x, const by_rate y)
{
    double sum = 0;
    for (unsigned l = 0; l < RATES; l++)
        sum += x[l] * y[l];
    return sum;
}

/* The expected pods of several cards on the wholly free cards. The free cards that they leave are
 * for pods with one card: they are added to parts_met. */
static void market_solve_supply_several(struct market_solve *s, struct solve_class *c)
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
        market_solve_add_product(back[k - 1], back[k], c->one);
        for (uint32_t n = 2; n <= k; n++) {
            if (!c->counts[n])
                continue;
            market_solve_add_product(uses[n], back[k], c->f[k - n]);
            market_solve_add_product(back[k - n], back[k], c->e[n]);
        }
    }
    for (uint32_t j = 0; j < s->n_shapes; j++) {
        struct solve_shape *x = &s->shapes[j];
        by_rate bids;
        if (!market_solve_is_several(c, x, j))
            continue;
        market_solve_bids_of_several(s, c, x, bids);
        x->supply += market_solve_dot(bids, uses[x->cards]);
        for (unsigned l = 0; l < RATES; l++)
            c->parts_met[FULL][l] -= x->cards * bids[l] * uses[x->cards][l];
    }
    for (unsigned l = 0; l < RATES; l++)
        c->parts_met[FULL][l] = MAX_OF(c->parts_met[FULL][l], 0.0);
}

static void market_solve_supply_single(struct market_solve *s, struct solve_class *c)
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
            market_solve_add_product(uses[size], back[r], c->z[r - size]);
            market_solve_add_product(back[r - size], back[r], c->w[size]);
        }
    }
    for (uint32_t j = 0; j < s->n_shapes; j++) {
        by_rate bids;
        if (s->shapes[j].cards != 1 || c->steps[j] == 0)
            continue;
        market_solve_bids(s, c, &s->shapes[j], c->steps[j], bids);
        s->shapes[j].supply += market_solve_dot(bids, uses[c->steps[j]]);
    }
}

/* The steps become smaller with each iteration, so that the prices settle. */
static double market_solve_eta(const struct market_solve *s)
{
    return 1 / sqrt(1 + 0.05 * s->iteration);
}

static double market_solve_demand(const struct market_solve *s, const struct solve_shape *x)
{
    return s->pods * x->share * MIN_OF(1.1, sqrt(x->worth / x->price));
}

static double market_solve_clip(double x, double least, double most)
{
    return MIN_OF(MAX_OF(x, least), most);
}

static void market_solve_move_core_price(struct market_solve *s, double used)
{
    double wanted = 0;
    for (uint32_t j = 0; j < s->n_shapes; j++)
        wanted += s->shapes[j].cards == 0 ? s->pods * s->shapes[j].share * s->shapes[j].cores : 0;
    double left = s->idle_cores - used;
    double most = MAX_OF(MAX_OF(fabs(left), wanted), 1e-9);
    s->core_price *= exp(-market_solve_eta(s) * (left - wanted) / most);
    s->core_price = market_solve_clip(s->core_price, 1e-6, 1);
}

static void market_solve_move_prices(struct market_solve *s)
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
    double scale = paid > 0 ? market_solve_clip(asked / paid, 0.9, 1.1) : 1.1;
    for (uint32_t j = 0; j < s->n_shapes; j++) {
        struct solve_shape *x = &s->shapes[j];
        if (x->cards == 0)
            continue;
        double demand = market_solve_demand(s, x);
        double excess =
            market_solve_clip((x->supply - demand) / (demand + 0.5 + 0.0005 * s->pods), -1, 1);
        x->price =
            market_solve_clip((x->price - market_solve_eta(s) * TAU * x->cards * excess) * scale,
                              0.001 * x->worth, 6 * x->worth);
    }
    market_solve_move_core_price(s, used);
}

/* The prices are the means of the second half: single iterations swing around them. */
static void market_solve_sum_prices(struct market_solve *s)
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

static void market_solve_prices(struct market_solve *s)
{
    market_solve_move_prices(s);
    market_solve_sum_prices(s);
    for (uint32_t j = 0; j < s->n_shapes; j++)
        s->shapes[j].supply = 0;
    s->iteration++;
    market_solve_set_rates(s);
}

static void market_solve_enter(struct market_solve *s, enum solve_part part)
{
    s->part = part;
    s->at = 0;
}

/* After the last iteration the tables are computed once more, at the final prices. */
bool market_solve_step(struct market_solve *s)
{
    bool last = s->iteration == s->iterations;
    switch (s->part) {
    case PART_COUNT:
        if (!market_stock_count(s)) {
            s->nothing = !s->lost && !market_stock_prepare(s);
            market_solve_enter(s, PART_COPY);
        }
        return !s->lost && !s->nothing;
    case PART_COPY:
        if (!market_stock_copy(s))
            market_solve_enter(s, PART_SORT);
        return !s->lost;
    case PART_SORT:
        if (!market_stock_sort(s))
            market_solve_enter(s, PART_WEIGH);
        return true;
    case PART_WEIGH:
        if (!market_stock_weigh(s))
            market_solve_enter(s, PART_TABLES);
        return true;
    case PART_TABLES:
        if (s->iteration == 0 && s->at == 0)
            market_solve_set_rates(s);
        market_solve_tables(s, &s->classes[s->at++]);
        if (s->at == s->n_classes && !last)
            market_solve_enter(s, PART_STOCKS);
        return !last || s->at < s->n_classes;
    case PART_STOCKS:
        for (uint32_t i = 0; i < STOCKS_A_STEP && s->at < s->n_stocks; i++)
            market_solve_meet_stock(s, &s->stocks[s->at++]);
        if (s->at == s->n_stocks)
            market_solve_enter(s, PART_SUPPLY);
        return true;
    case PART_SUPPLY:
        market_solve_supply_several(s, &s->classes[s->at]);
        market_solve_supply_single(s, &s->classes[s->at++]);
        if (s->at == s->n_classes)
            market_solve_enter(s, PART_PRICES);
        return true;
    case PART_PRICES:
        market_solve_prices(s);
        market_solve_enter(s, PART_TABLES);
        return true;
    }
    return false;
}

/* A value of more than 2000 cards is cut: only requests that make no sense lead to one. */
int32_t market_solve_millionths(double cards)
{
    return (int32_t)lrint(1e6 * market_solve_clip(cards, -2000, 2000));
}

static void market_solve_round(const struct solve_class *c, struct market_values *ret)
{
    for (unsigned l = 0; l < RATES; l++) {
        for (uint32_t r = 0; r <= FULL; r++)
            ret->part[r][l] = market_solve_millionths(c->part[r][l]);
        for (uint32_t k = 0; k <= MARKET_FREE_MAX; k++) {
            uint32_t known = MIN_OF(k, c->most);
            ret->free[k][l] =
                market_solve_millionths(c->free[known][l] + (k - known) * c->part[FULL][l]);
        }
    }
}

static bool market_solve_has_several(const struct market_solve *s)
{
    for (uint32_t j = 0; j < s->n_shapes; j++) {
        if (s->shapes[j].cards > 1)
            return true;
    }
    return false;
}

static int32_t market_solve_drain(const struct market_solve *s, double turnover)
{
    bool counts = market_solve_has_several(s);
    return market_solve_millionths(MAX_OF(counts ? turnover : 0, TURNOVER_LEAST));
}

bool market_solve_publish(struct market_solve *s, struct market *m)
{
    struct market_values *values = mem_alloc(s->n_classes * sizeof(*values));
    if (values == NULL)
        return false;
    for (uint32_t c = 0; c < s->n_classes; c++)
        market_solve_round(&s->classes[c], &values[c]);
    mem_free(m->owned);
    m->owned = values;
    /* Kinds that came since the solve began get values with the next one. */
    for (uint32_t kind = 0; kind < m->n_kinds; kind++)
        m->kinds[kind].values = kind < s->n_kinds ? &values[s->class_of[kind]] : NULL;
    for (unsigned l = 0; l < RATES; l++)
        m->rates[l] = market_solve_millionths(s->rates[l]);
    for (uint32_t j = 0; j < s->n_shapes; j++) {
        const struct solve_shape *x = &s->shapes[j];
        if (x->index < m->shapes.n && m->shapes.all[x->index].hash == x->hash)
            m->shapes.all[x->index].price = x->price;
    }
    m->core_price = s->core_price;
    m->drain = market_solve_drain(s, m->turnover);
    market_solve_reserve(s, m);
    m->solved++;
    return true;
}
