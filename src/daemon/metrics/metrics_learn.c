/*
 * Writes what the policies with costs have learned. Models are what users wrote, of any length: a
 * label has a limited part of them. Two samples of one family must not have the same labels, so a
 * text that is not copied as it is ends with the hash of its shape.
 */
#include "base/sort.h"
#include "daemon/limit.h"
#include "daemon/metrics/metrics.h"
#include "daemon/service.h"

#define DECIMALS   6
#define SCALE      1e6
#define MODELS_MAX 100

/* In millionths; v is not negative. */
static int64_t metrics_learn_scale(double v)
{
    return (int64_t)(v * SCALE + 0.5);
}

static void metrics_learn_write_one(struct metrics_writer *w, bool known, const char *name,
                                    const char *help, double v)
{
    expo_family(&w->expo, EXPO_GAUGE, name, help);
    if (known)
        expo_fixed(&w->expo, NULL, 0, metrics_learn_scale(v), DECIMALS);
}

/* ---- shapes ---- */

struct frequent {
    const struct shapes *shapes;
    uint32_t n; /* to be shown */
    uint32_t order[SHAPES_MAX];
};

static bool metrics_learn_is_heavier(const void *ctx, uint32_t a, uint32_t b)
{
    const struct shapes *s = ctx;
    return s->all[a].weight != s->all[b].weight ? s->all[a].weight > s->all[b].weight : a < b;
}

static void metrics_learn_collect(const struct market *m, struct frequent *ret)
{
    const struct shapes *s = &m->shapes;
    ret->shapes = s;
    ret->n = m->solved == 0 ? 0 : MIN_OF(s->n, (uint32_t)LIMIT_METRICS_SHAPES);
    for (uint32_t i = 0; i < s->n; i++)
        ret->order[i] = i;
    sort_by(ret->order, s->n, metrics_learn_is_heavier, s);
}

/* The texts of a shape's labels. */
struct texts {
    char cpu[32];
    char cards[16];
    char share[64];
    char models[MODELS_MAX + 32];
};

static void metrics_learn_put_part(struct buf *to, const char *before, int64_t v, const char *after)
{
    if (v > 0)
        buf_printf(to, "%s%s%lld%s", to->n > 0 ? " + " : "", before, (long long)v, after);
}

/* What it asks of each of its cards: all that differs between two shapes is in it. */
static void metrics_learn_put_share(struct buf *to, const struct shape *x)
{
    if (x->whole)
        buf_put(to, STR("whole"));
    metrics_learn_put_part(to, "", x->mem, "");
    metrics_learn_put_part(to, "", x->percent, "%");
    metrics_learn_put_part(to, "compute ", x->cores, "%");
}

static bool metrics_learn_is_plain(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] < ' ' || s.p[i] > '~')
            return false;
    }
    return s.n <= MODELS_MAX;
}

static void metrics_learn_put_models(struct buf *to, const struct known_shape *k)
{
    struct str models = k->shape.models;
    bool plain = metrics_learn_is_plain(models);
    models.n = MIN_OF(models.n, (size_t)MODELS_MAX);
    buf_put(to, models);
    if (!plain)
        buf_printf(to, "\u2026%016llx", (unsigned long long)k->hash);
}

static void metrics_learn_label(const struct known_shape *k, struct texts *room,
                                struct expo_label labels[static 4])
{
    const struct shape *x = &k->shape;
    struct buf cpu = BUF_ON(room->cpu);
    struct buf cards = BUF_ON(room->cards);
    struct buf share = BUF_ON(room->share);
    struct buf models = BUF_ON(room->models);
    bool whole = x->cpu % 1000 == 0;
    buf_printf(&cpu, "%lld%s", (long long)(whole ? x->cpu / 1000 : x->cpu), whole ? "" : "m");
    buf_put_u64(&cards, x->cards);
    metrics_learn_put_share(&share, x);
    metrics_learn_put_models(&models, k);
    labels[0] = (struct expo_label){"cpu", buf_str(&cpu)};
    labels[1] = (struct expo_label){"cards", buf_str(&cards)};
    labels[2] = (struct expo_label){"share", buf_str(&share)};
    labels[3] = (struct expo_label){"models", buf_str(&models)};
}

/* Leaves out a shape of which `of` returns a negative number. */
static void metrics_learn_write_shapes(struct metrics_writer *w, const struct frequent *f,
                                       const char *name, const char *help,
                                       double (*of)(const struct shapes *s,
                                                    const struct known_shape *k))
{
    struct texts texts;
    struct expo_label labels[4];
    expo_family(&w->expo, EXPO_GAUGE, name, help);
    for (uint32_t i = 0; i < f->n; i++) {
        const struct known_shape *k = &f->shapes->all[f->order[i]];
        double v = of(f->shapes, k);
        if (v < 0)
            continue;
        metrics_learn_label(k, &texts, labels);
        expo_fixed(&w->expo, labels, COUNT_OF(labels), metrics_learn_scale(v), DECIMALS);
    }
}

/* Without a price: a shape that asks for no card, that fits on no card, or that is newer than the
 * latest lesson. */
static double metrics_learn_price_of(const struct shapes *s, const struct known_shape *k)
{
    (void)s;
    return k->price > 0 ? k->price : -1;
}

static double metrics_learn_weight_of(const struct shapes *s, const struct known_shape *k)
{
    return k->weight / s->sum;
}

void metrics_write_lessons(struct metrics_writer *w)
{
    const struct learn *l = &w->service->learn;
    const struct market *m = &w->service->cache.learned.market;
    struct frequent frequent;
    metrics_learn_collect(m, &frequent);
    metrics_learn_write_one(w, l->known, "cardpack_fragmentation_cards",
                            "Idle cards that the expected pods cannot use, a part of a card as "
                            "its part; without a series: not known yet.",
                            l->waste);
    metrics_learn_write_one(w, l->known, "cardpack_idle_value_cards",
                            "What is idle is worth as much as so many cards to the expected pods.",
                            l->value);
    expo_family(&w->expo, EXPO_COUNTER, "cardpack_lessons_total",
                "How often the policies with costs have learned from the pods that came.");
    expo_u64(&w->expo, NULL, 0, m->solved);
    metrics_learn_write_one(w, m->solved > 0, "cardpack_turnover_ratio",
                            "Pods that left for each pod that was placed, at most 1.", m->turnover);
    metrics_learn_write_shapes(w, &frequent, "cardpack_shape_price_cards",
                               "What a pod like this is worth, in cards, at the prices of the "
                               "latest lesson; the most frequent kinds of pods.",
                               metrics_learn_price_of);
    metrics_learn_write_shapes(w, &frequent, "cardpack_shape_weight_ratio",
                               "Part of the recent pods that are like this; the most frequent "
                               "kinds of pods.",
                               metrics_learn_weight_of);
}
