/* What is left of a card is computed from the place that the pod would get, as after its bind. */
#include "report/cost_write.h"

#include "core/limit.h"

#define MILLION INT64_C(1000000)

/* The last two digits that a sentence has of a cost. */
#define CENT (MILLION / 100)

/* ---- numbers ---- */

/* In millionths of a card; for fgd what is missing of the best score. Less is better. */
static int64_t cost_write_of(const struct score *s, const struct node *n)
{
    if (s->policy == POLICY_BID_PRICE)
        return market_cost(&s->ask, n);
    return 100 - (int64_t)fgd_score(&s->learned->fgd, &s->ask, n);
}

static void cost_write_put_number(struct jwrite *w, const struct score *s, int64_t cost)
{
    char bytes[48];
    struct buf text = BUF_ON(bytes);
    if (s->policy == POLICY_FGD) {
        jwrite_i64_at(w, STR("score"), 100 - cost);
        return;
    }
    uint64_t size = cost < 0 ? 0 - (uint64_t)cost : (uint64_t)cost;
    buf_printf(&text, "%s%llu.%06llu", cost < 0 ? "-" : "", (unsigned long long)(size / MILLION),
               (unsigned long long)(size % MILLION));
    jwrite_raw_at(w, STR("cost"), buf_str(&text));
}

/* "0.81": rounded to the nearest. */
static void cost_write_put_cards(struct buf *to, int64_t cost)
{
    uint64_t size = cost < 0 ? 0 - (uint64_t)cost : (uint64_t)cost;
    uint64_t cents = (size + CENT / 2) / CENT;
    buf_printf(to, "%s%llu.%02llu", cost < 0 && cents > 0 ? "-" : "",
               (unsigned long long)(cents / 100), (unsigned long long)(cents % 100));
}

/* "costs 0.81 cards, 0.14 more than n1" */
static void cost_write_put_cost(struct buf *to, int64_t cost, int64_t more, struct str best)
{
    buf_put(to, STR("costs "));
    cost_write_put_cards(to, cost);
    buf_put(to, STR(" cards"));
    if (best.p == NULL)
        return;
    if (more == 0) {
        buf_printf(to, ", as much as %.*s", STR_ARG(best));
        return;
    }
    buf_put(to, STR(", "));
    if (more < CENT / 2)
        buf_put(to, STR("less than 0.01"));
    else
        cost_write_put_cards(to, more);
    buf_printf(to, " more than %.*s", STR_ARG(best));
}

/* "scores 62 of 100, 8 less than n1" */
static void cost_write_put_score(struct buf *to, int64_t cost, int64_t more, struct str best)
{
    buf_printf(to, "scores %lld of 100", (long long)(100 - cost));
    if (best.p != NULL && more == 0)
        buf_printf(to, ", as much as %.*s", STR_ARG(best));
    else if (best.p != NULL)
        buf_printf(to, ", %lld less than %.*s", (long long)more, STR_ARG(best));
}

/* ---- what would be left ---- */

/* The node with the pod, as far as the expected pods see it. */
struct rest {
    int64_t cpu;
    uint8_t left[LIMIT_CARDS]; /* hundredths of each card */
    uint32_t n;                /* cards that the pod takes a part of */
    uint32_t card;             /* the one of them that has most left */
    uint32_t least;            /* hundredths that are left of any of them */
};

static void cost_write_compute_rest(const struct score *s, const struct node *n,
                                    const struct placement *place, struct rest *ret)
{
    struct share shares[REQUEST_GRANTS_MAX];
    ret->cpu = MAX_OF(node_host_left(n).cpu - s->ask.cpu, (int64_t)0);
    ret->n = shares_of(s->request, place->grants, place->n, false, shares);
    ret->card = shares[0].card;
    ret->least = SHAPE_STEPS;
    for (uint32_t i = 0; i < n->n_cards; i++)
        ret->left[i] = n->cards[i].left;
    for (uint32_t i = 0; i < ret->n; i++) {
        struct card c = n->cards[shares[i].card];
        c.used += share_charge(s->request, &shares[i], c.total);
        c.cores += shares[i].cores;
        c.pods++;
        c.wholes += s->request->whole ? 1 : 0;
        ret->left[shares[i].card] = card_left(&c);
        ret->least = MIN_OF(ret->least, (uint32_t)card_left(&c));
    }
    for (uint32_t i = 0; i < ret->n; i++)
        ret->card = ret->left[shares[i].card] > ret->left[ret->card] ? shares[i].card : ret->card;
}

/* Whether a pod of this shape fits on the node, and one of its cards can be that card. */
static bool cost_write_uses(const struct fgd_shape *x, const struct node *n,
                            const struct rest *rest)
{
    uint32_t fit = 0;
    uint32_t own = x->steps[n->cards[rest->card].kind];
    if (x->cards == 0 || x->cpu > rest->cpu || own == 0 || rest->left[rest->card] < own)
        return false;
    for (uint32_t i = 0; i < n->n_cards; i++) {
        uint32_t steps = x->steps[n->cards[i].kind];
        fit += steps > 0 && rest->left[i] >= steps ? 1 : 0;
    }
    return fit >= x->cards;
}

/* ", which no expected pod can use" */
static void cost_write_put_use(struct buf *to, const struct fgd *f, const struct node *n,
                               const struct rest *rest)
{
    double all = 0;
    double use = 0;
    for (uint32_t i = 0; i < f->n; i++) {
        all += f->all[i].cards > 0 ? f->all[i].share : 0;
        use += cost_write_uses(&f->all[i], n, rest) ? f->all[i].share : 0; /* in the same order */
    }
    if (all <= 0)
        return;
    unsigned percent = (unsigned)(100 * use / all + 0.5);
    if (use <= 0)
        buf_put(to, STR(", which no expected pod can use"));
    else if (use >= all)
        buf_put(to, STR(", which every expected pod can use"));
    else if (percent == 0)
        buf_put(to, STR(", which less than 1 % of the expected pods can use"));
    else
        buf_printf(to, ", which %u %% of the expected pods can use", percent);
}

/* "card 1 would have 19 % left" */
static void cost_write_put_rest(struct buf *to, const struct score *s, const struct node *n,
                                const struct rest *rest)
{
    uint32_t most = rest->left[rest->card];
    if (rest->n > 1)
        buf_printf(to, ": its %u cards", rest->n);
    else
        buf_printf(to, ": card %u%s", rest->card,
                   n->cards[rest->card].left == SHAPE_STEPS ? ", free until now," : "");
    if (most == 0) {
        buf_put(to, STR(" would be full"));
        return;
    }
    if (rest->least < most)
        buf_printf(to, " would have %u to %u %% left", rest->least, most);
    else
        buf_printf(to, " would have %u %% left", most);
    cost_write_put_use(to, &s->learned->fgd, n, rest);
}

static void cost_write_put_why(struct jwrite *w, const struct cost_write *c, const struct node *n,
                               int64_t cost, const struct placement *place)
{
    char bytes[1024];
    struct buf text = BUF_ON(bytes);
    struct rest rest;
    struct str best = n == c->best ? STR_NULL : c->best->name;
    int64_t more = cost - cost_write_of(c->score, c->best);
    if (c->score->policy == POLICY_FGD)
        cost_write_put_score(&text, cost, more, best);
    else
        cost_write_put_cost(&text, cost, more, best);
    cost_write_compute_rest(c->score, n, place, &rest);
    cost_write_put_rest(&text, c->score, n, &rest);
    jwrite_str_at(w, STR("why"), buf_str(&text));
}

void cost_write(struct jwrite *w, const struct cost_write *c, const struct node *n,
                const struct placement *place)
{
    int64_t cost = cost_write_of(c->score, n);
    if (cost == MARKET_NO_COST)
        return;
    cost_write_put_number(w, c->score, cost);
    if (place != NULL && place->n > 0)
        cost_write_put_why(w, c, n, cost, place);
}
