/* What a node is worth at the prices of the latest solve. */
#include "core/policy/market.h"

#include "base/map.h"
#include "base/mem.h"
#include "core/pattern.h"
#include "market_solve.h"
#include "market_stock.h"

/* So that its value fits into 32 bits: at most 1.4 cards a core. An unknown amount counts as so
 * much. */
#define CPU_MAX 1024000

/* Prices of fewer pods would be those of chance. */
#define FIRST_ARRIVALS 32

/* Pods that came since the latest solve, so that the prices are old: an eighth of all, and a part
 * of those that fit into what was idle, within these limits. In a small cluster 200 pods are a
 * large part of all that fit, so there the prices have to follow sooner; and a solve costs less. */
#define ARRIVALS_PART  8
#define IDLE_PART      16
#define ARRIVALS_MOST  ((uint64_t)200)
#define ARRIVALS_LEAST ((uint64_t)16) /* from 64 times as many cards on, else fewer */
#define ARRIVALS_FEW   ((uint64_t)4)

/* Before any solve the price of a core is low: most clusters have more cores than they need. */
#define FIRST_CORE_PRICE 0.001

/* See market.h: the free cards at which a pod costs as much more as it takes, and what a pod
 * without cards takes of a card, in hundredths. */
#define DRAIN_CARDS ((int64_t)8)
#define CPU_PARTS   10

/* Sums over the cards of a node, of which there may be LIMIT_CARDS. */
typedef int64_t by_lambda[MARKET_RATES];

void market_done(struct market *m)
{
    market_solve_free(m->solve);
    mem_free(m->owned);
    shapes_done(&m->shapes);
    *m = (struct market){.n_kinds = 0};
}

static bool market_is_kind(const struct market_kind *kind, struct str model, int64_t total)
{
    return kind->total == total && str_eq(kind->model, model);
}

/* A card's kind, as in card.kind: the index plus 1; 0: none. */
static uint8_t market_kind_of(struct market *m, struct str model, int64_t total)
{
    for (uint32_t i = 0; i < m->n_kinds; i++) {
        if (market_is_kind(&m->kinds[i], model, total))
            return (uint8_t)(i + 1);
    }
    if (model.n > MARKET_MODEL_MAX)
        return 0;
    if (m->n_kinds == MARKET_KINDS)
        return MARKET_KINDS;
    struct market_kind *kind = &m->kinds[m->n_kinds++];
    *kind = (struct market_kind){.model = {.p = kind->bytes, .n = model.n}, .total = total};
    if (model.n > 0)
        memcpy(kind->bytes, model.p, model.n);
    return (uint8_t)m->n_kinds;
}

void market_know(struct market *m, struct node *n)
{
    for (uint32_t i = 0; i < n->n_cards; i++) {
        bool same = i > 0 && n->sizes->infos == NULL && n->cards[i].total == n->cards[i - 1].total;
        n->cards[i].kind = same ? n->cards[i - 1].kind
                                : market_kind_of(m, node_card_model(n, i), n->cards[i].total);
    }
}

/* How many cards have each kind. Of the cards that share the last kind: the model and size that
 * more than half of them have, if there is one. */
struct kinds_count {
    uint32_t cards[MARKET_KINDS];
    struct str model;
    int64_t total;
    uint32_t votes; /* how many more cards have it than others; 0: it is none */
};

static void market_count_kinds(const struct market *m, const struct node *n, struct kinds_count *to)
{
    for (uint32_t i = 0; i < n->n_cards; i++) {
        const struct card *c = &n->cards[i];
        struct str model = node_card_model(n, i);
        if (c->kind == 0)
            continue;
        if (market_is_kind(&m->kinds[c->kind - 1], model, c->total)) {
            to->cards[c->kind - 1]++;
        } else if (to->votes == 0 || (c->total == to->total && str_eq(model, to->model))) {
            to->model = model;
            to->total = c->total;
            to->votes++;
        } else {
            to->votes--;
        }
    }
}

/* Moves the kinds that have cards to the front, and forgets the others. */
static void market_keep_kinds(struct market *m, const uint32_t *cards)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < m->n_kinds; i++) {
        if (cards[i] == 0)
            continue;
        m->reserved[kept] = m->reserved[i];
        m->kinds[kept] = m->kinds[i];
        m->kinds[kept].model.p = m->kinds[kept].bytes;
        kept++;
    }
    memset(&m->reserved[kept], 0, (m->n_kinds - kept) * sizeof(m->reserved[0]));
    m->n_kinds = kept;
}

bool market_free_kinds(struct market *m, const struct map *nodes)
{
    struct kinds_count count = {.votes = 0};
    uint32_t rarest = 0;
    size_t cursor = 0;
    if (m->n_kinds < MARKET_KINDS)
        return false;
    for (const struct node *n = map_next(nodes, &cursor); n != NULL; n = map_next(nodes, &cursor))
        market_count_kinds(m, n, &count);
    for (uint32_t i = 1; i < MARKET_KINDS; i++)
        rarest = count.cards[i] < count.cards[rarest] ? i : rarest;
    if (count.votes > 2 * count.cards[rarest])
        count.cards[rarest] = 0;
    market_keep_kinds(m, count.cards);
    if (m->n_kinds == MARKET_KINDS)
        return false;
    market_solve_free(m->solve);
    m->solve = NULL;
    if (count.votes > 0)
        (void)market_kind_of(m, count.model, count.total);
    cursor = 0;
    for (struct node *n = map_next(nodes, &cursor); n != NULL; n = map_next(nodes, &cursor)) {
        if (n->n_cards > 0 && n->sizes->dialect == DIALECT_OWN)
            market_know(m, n);
    }
    return true;
}

uint32_t market_kind_steps(const struct market_kind *kind, const struct shape *x,
                           struct step_budget *w)
{
    uint32_t steps = shape_steps(x, kind->total);
    bool allowed = x->models.n == 0 || step_budget_matches_model(w, x->models, kind->model);
    return allowed ? steps : 0;
}

int64_t market_cores_of(int64_t cpu)
{
    return MIN_OF(cpu, (int64_t)CPU_MAX);
}

int64_t market_cores(const struct node *n)
{
    return market_cores_of(node_host_left(n).cpu);
}

void market_ask(const struct market *m, const struct evaluation *e, struct market_ask *ret)
{
    struct shape x = shape_of(e->request);
    *ret = (struct market_ask){
        .market = m, .evaluation = e, .cpu = x.cpu, .cards = x.cards, .whole = x.whole};
    for (uint32_t kind = 0; kind < m->n_kinds; kind++)
        ret->steps[kind + 1] = (uint8_t)market_kind_steps(&m->kinds[kind], &x, e->step_budget);
}

static inline void market_add_scaled(by_lambda to, const int32_t x[static MARKET_RATES], int32_t n)
{
    if (n == 1) { /* nearly always: a product of 64 bits takes longer than all else */
        for (unsigned l = 0; l < MARKET_RATES; l++)
            to[l] += x[l];
        return;
    }
    if (n == -1) {
        for (unsigned l = 0; l < MARKET_RATES; l++)
            to[l] -= x[l];
        return;
    }
    for (unsigned l = 0; l < MARKET_RATES; l++)
        to[l] += (int64_t)n * x[l];
}

/* The cards of a node by what they are worth. Cards of one kind with as much left are alike. */
struct idle {
    uint32_t frees[MARKET_KINDS + 1]; /* wholly free cards, by kind */
    uint8_t kinds[MARKET_KINDS + 1];  /* that have wholly free cards */
    uint32_t n_kinds;
    int64_t n_free; /* wholly free cards of all kinds */
    by_lambda sum;  /* of the cards, without the CPU */
};

static const struct market_values *market_values_of(const struct market *m, const struct card *c)
{
    return c->kind == 0 ? NULL : m->kinds[c->kind - 1].values;
}

static void market_add_free(const struct market_values *v, uint32_t k, int32_t sign, by_lambda to)
{
    uint32_t known = MIN_OF(k, (uint32_t)MARKET_FREE_MAX);
    market_add_scaled(to, v->free[known], sign);
    if (k > known)
        market_add_scaled(to, v->part[SHAPE_STEPS], sign * (int32_t)(k - known));
}

static void market_look(const struct market *m, const struct node *n, struct idle *ret)
{
    memset(ret->frees, 0, sizeof(ret->frees));
    memset(ret->sum, 0, sizeof(ret->sum));
    ret->n_kinds = 0;
    ret->n_free = 0;
    for (uint32_t i = 0; i < n->n_cards; i++) {
        const struct card *c = &n->cards[i];
        const struct market_values *v = market_values_of(m, c);
        if (v == NULL || c->left == 0)
            continue;
        ret->n_free += c->left == SHAPE_STEPS ? 1 : 0;
        if (c->left < SHAPE_STEPS)
            market_add_scaled(ret->sum, v->part[c->left], 1);
        else if (ret->frees[c->kind]++ == 0)
            ret->kinds[ret->n_kinds++] = c->kind;
    }
    for (uint32_t i = 0; i < ret->n_kinds; i++) {
        uint8_t kind = ret->kinds[i];
        market_add_free(m->kinds[kind - 1].values, ret->frees[kind], 1, ret->sum);
    }
}

/* The least sum of the cards and the CPU. */
static int64_t market_total(const struct market *m, int64_t cpu, const by_lambda cards)
{
    int32_t whole = (int32_t)(cpu / 1000);
    int32_t rest = (int32_t)(cpu % 1000);
    int64_t least = INT64_MAX;
    for (unsigned l = 0; rest == 0 && l < MARKET_RATES; l++) /* no division: most often */
        least = MIN_OF(least, cards[l] + (int64_t)m->rates[l] * whole);
    for (unsigned l = 0; rest != 0 && l < MARKET_RATES; l++)
        least = MIN_OF(least, cards[l] + (int64_t)m->rates[l] * whole +
                                  (int64_t)m->rates[l] * rest / 1000);
    return least;
}

/* Moves a sum from the card as it is to the card with `steps` less. frees: the wholly free cards of
 * its kind before. */
static void market_shift(const struct market_values *v, const struct card *c, uint32_t frees,
                         uint32_t steps, by_lambda sum)
{
    if (c->left == SHAPE_STEPS) {
        assert(frees > 0);
        market_add_free(v, frees, -1, sum);
        market_add_free(v, frees - 1, 1, sum);
    } else {
        market_add_scaled(sum, v->part[c->left], -1);
    }
    market_add_scaled(sum, v->part[c->left > steps ? c->left - steps : 0], 1);
}

/* Takes a card's share out of the sum. The wholly free cards of its kind become one fewer. */
static void market_take(const struct market *m, struct idle *idle, const struct card *c,
                        uint32_t steps)
{
    const struct market_values *v = market_values_of(m, c);
    if (v == NULL)
        return;
    market_shift(v, c, idle->frees[c->kind], steps, idle->sum);
    idle->frees[c->kind] -= c->left == SHAPE_STEPS ? 1 : 0;
}

bool market_has_room(const struct market_ask *ask, const struct card *c)
{
    uint32_t steps = ask->steps[c->kind];
    if (steps == 0 || c->left + 1U < steps || (ask->whole && c->left < SHAPE_STEPS))
        return false;
    if (c->left >= steps)
        return true;
    struct share share = request_share(ask->evaluation->request);
    return share_charge(ask->evaluation->request, &share, c->total) <= card_free(c) &&
           !card_lacks_cores(c, ask->evaluation->request, share.cores, card_free_cores(c));
}

/* The cost of keeping the node's free cards from coming together. parts: hundredths of a card that
 * the pod takes. */
static int64_t market_drain(const struct market_ask *ask, const struct idle *idle, uint32_t parts)
{
    return ask->market->drain * idle->n_free * parts / (DRAIN_CARDS * SHAPE_STEPS);
}

static uint32_t market_parts(const struct market_ask *ask, const struct card *c)
{
    return c->left == SHAPE_STEPS ? SHAPE_STEPS : ask->steps[c->kind];
}

/* What the node loses with this card alone. */
static int64_t market_card_cost(const struct market_ask *ask, const struct idle *idle, int64_t now,
                                int64_t cpu, const struct card *c)
{
    const struct market_values *v = market_values_of(ask->market, c);
    by_lambda after;
    if (v == NULL)
        return 0;
    memcpy(after, idle->sum, sizeof(after));
    market_shift(v, c, idle->frees[c->kind], ask->steps[c->kind], after);
    return now - market_total(ask->market, cpu, after) +
           market_drain(ask, idle, market_parts(ask, c));
}

/* The costs of cards that were computed already: most cards of a node are alike. */
#define SEEN_MAX 16

struct seen {
    uint32_t n;
    uint16_t keys[SEEN_MAX];
    int64_t costs[SEEN_MAX];
};

static int64_t market_card_cost_once(const struct market_ask *ask, const struct idle *idle,
                                     int64_t now, int64_t cpu, const struct card *c,
                                     struct seen *seen)
{
    uint16_t key = (uint16_t)(c->kind << 8 | c->left);
    for (uint32_t i = 0; i < seen->n; i++) {
        if (seen->keys[i] == key)
            return seen->costs[i];
    }
    int64_t cost = market_card_cost(ask, idle, now, cpu, c);
    if (seen->n < SEEN_MAX) {
        seen->keys[seen->n] = key;
        seen->costs[seen->n++] = cost;
    }
    return cost;
}

/* market_cores with the pod. */
static int64_t market_cores_with(const struct market_ask *ask, const struct node *n)
{
    return market_cores_of(host_amount_sub(node_host_left(n).cpu, ask->cpu));
}

void market_order(const struct market_ask *ask, const struct node *n, int64_t *ret)
{
    struct idle idle _uninitialized_;
    struct seen seen = {.n = 0};
    int64_t cpu = market_cores_with(ask, n);
    evaluation_count_steps(ask->evaluation, 2 * (uint64_t)n->n_cards);
    market_look(ask->market, n, &idle);
    int64_t now = market_total(ask->market, market_cores(n), idle.sum);
    for (uint32_t i = 0; i < n->n_cards; i++)
        ret[i] = !market_has_room(ask, &n->cards[i])
                     ? MARKET_NO_COST
                     : market_card_cost_once(ask, &idle, now, cpu, &n->cards[i], &seen);
}

/* One card: the least cost of any. */
static int64_t market_cost_of_one(const struct market_ask *ask, const struct node *n)
{
    struct idle idle _uninitialized_;
    struct seen seen = {.n = 0};
    int64_t cpu = market_cores_with(ask, n);
    int64_t least = MARKET_NO_COST;
    market_look(ask->market, n, &idle);
    int64_t now = market_total(ask->market, market_cores(n), idle.sum);
    for (uint32_t i = 0; i < n->n_cards; i++) {
        if (market_has_room(ask, &n->cards[i]))
            least = MIN_OF(least, market_card_cost_once(ask, &idle, now, cpu, &n->cards[i], &seen));
    }
    return least;
}

/* The cards that cost least alone, one after the other. */
static int64_t market_cost_of_several(const struct market_ask *ask, const struct node *n)
{
    int64_t costs[LIMIT_CARDS] _uninitialized_;
    struct idle idle _uninitialized_;
    uint32_t parts = 0;
    if (ask->cards > 0)
        market_order(ask, n, costs);
    market_look(ask->market, n, &idle);
    int64_t now = market_total(ask->market, market_cores(n), idle.sum);
    for (uint32_t taken = 0; taken < ask->cards; taken++) {
        uint32_t best = 0;
        for (uint32_t i = 1; i < n->n_cards; i++)
            best = costs[i] < costs[best] ? i : best;
        if (n->n_cards == 0 || costs[best] == MARKET_NO_COST)
            return MARKET_NO_COST;
        costs[best] = MARKET_NO_COST;
        parts += market_parts(ask, &n->cards[best]);
        market_take(ask->market, &idle, &n->cards[best], ask->steps[n->cards[best].kind]);
    }
    parts = ask->cards > 0 ? parts : CPU_PARTS;
    return now - market_total(ask->market, market_cores_with(ask, n), idle.sum) +
           market_drain(ask, &idle, parts);
}

/* See market.reserve. */
static int64_t market_reserve(const struct market_ask *ask, const struct node *n)
{
    uint8_t kind = n->n_cards == 0 ? 0 : n->cards[0].kind;
    if (kind == 0)
        return 0;
    const struct market_reserved *r = &ask->market->reserved[kind - 1];
    bool kept = ask->cards < r->cards && n->n_cards >= r->cards &&
                market_cores_of(n->host_total.cpu) >= r->cpu;
    return kept ? ask->market->reserve : 0;
}

int64_t market_cost(const struct market_ask *ask, const struct node *n)
{
    if (ask->market->solved == 0)
        return MARKET_NO_COST;
    evaluation_count_steps(ask->evaluation, (uint64_t)n->n_cards * (2 + ask->cards / 8));
    int64_t cost = ask->cards == 1 ? market_cost_of_one(ask, n) : market_cost_of_several(ask, n);
    return cost == MARKET_NO_COST ? cost : cost + market_reserve(ask, n);
}

int64_t market_value(const struct market *m, const struct node *n)
{
    struct idle idle _uninitialized_;
    if (m->solved == 0)
        return 0;
    market_look(m, n, &idle);
    return market_total(m, market_cores(n), idle.sum);
}

uint64_t market_due(const struct market *m)
{
    uint64_t more = MIN_OF(m->solved_arrivals / ARRIVALS_PART, m->interval);
    return MAX_OF(m->solved_arrivals + more, (uint64_t)FIRST_ARRIVALS);
}

bool market_is_due(const struct market *m)
{
    return m->shapes.arrivals >= market_due(m);
}

static uint64_t market_interval(const struct market_solve *s)
{
    uint64_t least = MAX_OF(MIN_OF(s->n_cards / 64, ARRIVALS_LEAST), ARRIVALS_FEW);
    return MIN_OF(MAX_OF((uint64_t)s->pods / IDLE_PART, least), ARRIVALS_MOST);
}

bool market_begin(struct market *m, const struct map *nodes)
{
    market_solve_free(m->solve);
    if (m->solved == 0)
        m->core_price = FIRST_CORE_PRICE;
    m->turnover = m->placed > 0 ? MIN_OF(1.0, m->departed / m->placed) : 0;
    m->placed /= 2;
    m->departed /= 2;
    m->solve = market_solve_new(m, nodes);
    if (m->solve != NULL)
        m->solved_arrivals = m->shapes.arrivals;
    return m->solve != NULL;
}

bool market_step(struct market *m)
{
    if (m->solve == NULL || market_solve_step(m->solve))
        return m->solve != NULL;
    /* If no shape fits on a card that is there, the next solve waits for more pods. */
    if (m->solve->lost) {
        m->solved_arrivals = 0; /* it is due again */
    } else if (!m->solve->nothing) {
        m->interval = market_interval(m->solve);
        (void)market_solve_publish(m->solve, m);
    }
    market_solve_free(m->solve);
    m->solve = NULL;
    return false;
}
