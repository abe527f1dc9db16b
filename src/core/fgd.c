/* The reference for the placement figures: its scores are whole numbers, as the paper's, because
 * the ties that they make are part of its result. */
#include "core/fgd.h"

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
        to->steps[kind + 1] = (uint8_t)market_kind_steps(&m->kinds[kind], &k->shape);
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
    f->all = all;
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
    uint8_t left[LIMIT_CARDS];
    uint8_t kinds[LIMIT_CARDS];
};

static void fgd_look(const struct node *n, struct idle *ret)
{
    ret->cpu = node_host_left(n).cpu;
    ret->n = n->n_cards;
    for (uint32_t i = 0; i < n->n_cards; i++) {
        ret->left[i] = n->cards[i].left;
        ret->kinds[i] = n->cards[i].kind;
    }
}

/* Hundredths of idle cards that are of no use to the shape. */
static uint32_t fgd_waste_for(const struct fgd_shape *x, const struct idle *idle, uint32_t all)
{
    uint32_t fit = 0;
    uint32_t small = 0;
    if (x->cards == 0 || x->cpu > idle->cpu)
        return all;
    for (uint32_t i = 0; i < idle->n; i++) {
        uint32_t steps = x->steps[idle->kinds[i]];
        bool fits = steps > 0 && idle->left[i] >= steps;
        fit += fits ? 1 : 0;
        small += fits ? 0 : idle->left[i];
    }
    return fit >= x->cards ? small : all;
}

static double fgd_waste_of(const struct fgd *f, const struct idle *idle)
{
    uint32_t all = 0;
    double sum = 0;
    for (uint32_t i = 0; i < idle->n; i++)
        all += idle->left[i];
    for (uint32_t i = 0; i < f->n; i++)
        sum += f->all[i].share * fgd_waste_for(&f->all[i], idle, all);
    return sum / SHAPE_STEPS;
}

double fgd_waste(const struct fgd *f, const struct node *n)
{
    struct idle idle _uninitialized_;
    fgd_look(n, &idle);
    return fgd_waste_of(f, &idle);
}

static uint32_t fgd_sigmoid(double gain)
{
    return (uint32_t)(SCORE_MAX / (1 + exp(-gain)));
}

/* The score with the pod on this card. */
static uint32_t fgd_score_card(const struct fgd *f, const struct market_ask *ask, struct idle *idle,
                               double before, uint32_t card)
{
    uint8_t left = idle->left[card];
    uint32_t steps = ask->steps[idle->kinds[card]];
    idle->left[card] = (uint8_t)(left > steps ? left - steps : 0);
    double after = fgd_waste_of(f, idle);
    idle->left[card] = left;
    return fgd_sigmoid(before - after);
}

void fgd_order(const struct fgd *f, const struct market_ask *ask, const struct node *n,
               int64_t *ret)
{
    struct idle idle _uninitialized_;
    int64_t by_level[SHAPE_STEPS + 1];
    fgd_look(n, &idle);
    double before = fgd_waste_of(f, &idle);
    idle.cpu = MAX_OF(idle.cpu - ask->cpu, (int64_t)0);
    for (uint32_t r = 0; r <= SHAPE_STEPS; r++)
        by_level[r] = -1;
    for (uint32_t i = 0; i < idle.n; i++) {
        bool alike = n->sizes->infos == NULL;
        int64_t *known = &by_level[idle.left[i]];
        ret[i] = MARKET_NO_COST;
        if (!market_has_room(ask, &n->cards[i]))
            continue;
        if (!alike || *known < 0)
            *known = SCORE_MAX - (int64_t)fgd_score_card(f, ask, &idle, before, i);
        ret[i] = ask->cards > 1 ? 0 : *known;
    }
}

uint32_t fgd_score(const struct fgd *f, const struct market_ask *ask, const struct node *n)
{
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
    fgd_look(n, &idle);
    double before = fgd_waste_of(f, &idle);
    idle.cpu = MAX_OF(idle.cpu - ask->cpu, (int64_t)0);
    for (uint32_t i = 0; i < idle.n && taken < ask->cards; i++) {
        if (!market_has_room(ask, &n->cards[i]))
            continue;
        uint32_t steps = ask->steps[idle.kinds[i]];
        idle.left[i] = (uint8_t)(idle.left[i] > steps ? idle.left[i] - steps : 0);
        taken++;
    }
    return fgd_sigmoid(before - fgd_waste_of(f, &idle));
}
