/* The reference for the placement figures: its scores are whole numbers, as the paper's, because
 * the ties that they make are part of its result. */
#include "core/policy/fgd.h"

#include "base/mem.h"
#include "base/sort.h"
#include "market_stock.h"

#include <math.h>

/* The expected pods are so much of all pods. */
#define EXPECTED 0.95

/* In the paper the exponent is a difference of thousandths of a card, divided by 1000. */
#define SCORE_MAX 100

void fgd_done(struct fgd *f)
{
    mem_free(f->all);
    *f = (struct fgd){.n = 0};
}

static bool fgd_is_heavier(const void *ctx, uint32_t a, uint32_t b)
{
    const struct shapes *s = ctx;
    return s->all[a].weight != s->all[b].weight ? s->all[a].weight > s->all[b].weight : a < b;
}

static void fgd_take(struct fgd_shape *to, const struct market *m, const struct known_shape *k)
{
    *to = (struct fgd_shape){
        .cpu = k->shape.cpu, .cards = k->shape.cards, .share = k->weight / m->shapes.sum};
    for (uint32_t kind = 0; kind < m->n_kinds; kind++)
        to->steps[kind + 1] = (uint8_t)market_kind_steps(&m->kinds[kind], &k->shape, NULL);
}

void fgd_learn(struct fgd *f, const struct market *m)
{
    uint32_t order[SHAPES_MAX];
    const struct shapes *s = &m->shapes;
    double sum = 0;
    if (s->n == 0)
        return;
    struct fgd_shape *all = mem_alloc(s->n * sizeof(*all));
    if (all == NULL)
        return;
    fgd_done(f);
    *f = (struct fgd){.all = all, .arrivals = s->arrivals, .n_kinds = m->n_kinds};
    for (uint32_t i = 0; i < s->n; i++)
        order[i] = i;
    sort_by(order, s->n, fgd_is_heavier, s);
    for (uint32_t i = 0; i < s->n && sum < EXPECTED; i++) {
        fgd_take(&f->all[f->n], m, &s->all[order[i]]);
        sum += f->all[f->n++].share;
    }
    for (uint32_t i = 0; i < f->n; i++)
        f->all[i].share /= sum;
}

/* What is idle on a node: hundredths of each card, and the CPU. */
struct idle {
    int64_t cpu;
    uint32_t n;
    uint32_t all; /* hundredths of all cards */
    uint8_t left[LIMIT_CARDS];
    uint8_t kinds[LIMIT_CARDS];
};

/* What the idle cards are to a shape. */
struct fgd_use {
    uint32_t fit;   /* cards with room for it */
    uint32_t small; /* hundredths of the others */
};

static void fgd_look(const struct node *n, struct idle *ret)
{
    ret->cpu = node_host_left(n).cpu;
    ret->n = n->n_cards;
    ret->all = 0;
    for (uint32_t i = 0; i < n->n_cards; i++) {
        ret->left[i] = n->cards[i].left;
        ret->kinds[i] = n->cards[i].kind;
        ret->all += ret->left[i];
    }
}

/* How a card with so much left counts. steps: what the shape needs of it; 0: it can't use it. */
static inline struct fgd_use fgd_use_of(uint32_t left, uint32_t steps)
{
    bool fits = steps > 0 && left >= steps;
    return (struct fgd_use){.fit = fits ? 1 : 0, .small = fits ? 0 : left};
}

static void fgd_count(const struct fgd *f, const struct idle *idle,
                      struct fgd_use ret[static SHAPES_MAX])
{
    for (uint32_t k = 0; k < f->n; k++) {
        const struct fgd_shape *x = &f->all[k];
        struct fgd_use sum = {.fit = 0};
        for (uint32_t i = 0; i < idle->n; i++) {
            struct fgd_use one = fgd_use_of(idle->left[i], x->steps[idle->kinds[i]]);
            sum.fit += one.fit;
            sum.small += one.small;
        }
        ret[k] = sum;
    }
}

/* Hundredths of the idle cards, `all` together, that are of no use to the shape. */
static inline uint32_t fgd_waste_for(const struct fgd_shape *x, struct fgd_use use, int64_t cpu,
                                     uint32_t all)
{
    return x->cards > 0 && x->cpu <= cpu && use.fit >= x->cards ? use.small : all;
}

static double fgd_waste_of(const struct fgd *f, const struct idle *idle, const struct fgd_use *uses)
{
    double sum = 0;
    for (uint32_t k = 0; k < f->n; k++)
        sum += f->all[k].share * fgd_waste_for(&f->all[k], uses[k], idle->cpu, idle->all);
    return sum / SHAPE_STEPS;
}

/* The same with so much less on one card. */
static double fgd_waste_with(const struct fgd *f, const struct idle *idle,
                             const struct fgd_use *uses, uint32_t card, uint32_t less)
{
    uint32_t kind = idle->kinds[card];
    uint32_t left = idle->left[card];
    double sum = 0;
    for (uint32_t k = 0; k < f->n; k++) {
        const struct fgd_shape *x = &f->all[k];
        struct fgd_use before = fgd_use_of(left, x->steps[kind]);
        struct fgd_use after = fgd_use_of(left - less, x->steps[kind]);
        struct fgd_use use = {.fit = uses[k].fit - before.fit + after.fit,
                              .small = uses[k].small - before.small + after.small};
        sum += x->share * fgd_waste_for(x, use, idle->cpu, idle->all - less);
    }
    return sum / SHAPE_STEPS;
}

double fgd_waste(const struct fgd *f, const struct node *n)
{
    struct fgd_use uses[SHAPES_MAX] _uninitialized_;
    struct idle idle _uninitialized_;
    fgd_look(n, &idle);
    fgd_count(f, &idle, uses);
    return fgd_waste_of(f, &idle, uses);
}

static uint32_t fgd_sigmoid(double gain)
{
    return (uint32_t)(SCORE_MAX / (1 + exp(-gain)));
}

static int64_t fgd_cpu_with(const struct idle *idle, const struct market_ask *ask)
{
    return MAX_OF(idle->cpu - ask->cpu, (int64_t)0);
}

/* Each card is compared with each shape twice or three times. */
static uint64_t fgd_steps_of(const struct fgd *f, const struct node *n)
{
    return (uint64_t)n->n_cards * (1 + f->n / 4);
}

void fgd_order(const struct fgd *f, const struct market_ask *ask, const struct node *n,
               int64_t *ret)
{
    struct fgd_use uses[SHAPES_MAX] _uninitialized_;
    struct idle idle _uninitialized_;
    uint8_t by_level[SHAPE_STEPS + 1]; /* the score of cards with so much left */
    bool alike = n->sizes->infos == NULL;
    fgd_look(n, &idle);
    fgd_count(f, &idle, uses);
    double before = fgd_waste_of(f, &idle, uses);
    idle.cpu = fgd_cpu_with(&idle, ask);
    memset(by_level, UINT8_MAX, sizeof(by_level));
    evaluation_count_steps(ask->evaluation, fgd_steps_of(f, n));
    for (uint32_t i = 0; i < n->n_cards; i++) {
        uint8_t *known = &by_level[idle.left[i]];
        uint32_t less = MIN_OF((uint32_t)idle.left[i], ask->steps[idle.kinds[i]]);
        ret[i] = MARKET_NO_COST;
        if (!market_has_room(ask, &n->cards[i]))
            continue;
        if (!alike || *known == UINT8_MAX)
            *known = (uint8_t)fgd_sigmoid(before - fgd_waste_with(f, &idle, uses, i, less));
        ret[i] = ask->cards > 1 ? 0 : SCORE_MAX - *known;
    }
}

uint32_t fgd_score(const struct fgd *f, const struct market_ask *ask, const struct node *n)
{
    struct fgd_use uses[SHAPES_MAX] _uninitialized_;
    struct idle idle _uninitialized_;
    uint32_t taken = 0;
    if (ask->cards == 1 && !ask->whole) {
        int64_t costs[LIMIT_CARDS] _uninitialized_;
        int64_t least = SCORE_MAX;
        fgd_order(f, ask, n, costs);
        for (uint32_t i = 0; i < n->n_cards; i++)
            least = MIN_OF(least, costs[i]);
        return (uint32_t)(SCORE_MAX - least);
    }
    evaluation_count_steps(ask->evaluation, fgd_steps_of(f, n));
    fgd_look(n, &idle);
    fgd_count(f, &idle, uses);
    double before = fgd_waste_of(f, &idle, uses);
    idle.cpu = fgd_cpu_with(&idle, ask);
    for (uint32_t i = 0; i < idle.n && taken < ask->cards; i++) {
        if (!market_has_room(ask, &n->cards[i]))
            continue;
        uint32_t less = MIN_OF((uint32_t)idle.left[i], ask->steps[idle.kinds[i]]);
        idle.left[i] = (uint8_t)(idle.left[i] - less);
        idle.all -= less;
        taken++;
    }
    fgd_count(f, &idle, uses);
    return fgd_sigmoid(before - fgd_waste_of(f, &idle, uses));
}
