/* Arrivals and departures in the order of time: the pods that run are a heap by the end of their
 * life. */
#include "sim/churn.h"

#include "base/mem.h"

#define WARM_UP  3.0
#define MEASURED 4.0

struct life {
    double end;
    struct world_pod pod;
};

struct churn {
    const struct sim_workload *workload;
    struct world world;
    struct rng rng;
    struct life *lives; /* a heap, the earliest end first */
    size_t n;
    size_t cap;
    double now;
    double gap; /* mean time between two arrivals */
    int64_t arrived_mem;
    int64_t rejected_mem;
    double area; /* allocated card memory times time, while it is measured */
};

static void churn_swap(struct life *a, struct life *b)
{
    struct life t = *a;
    *a = *b;
    *b = t;
}

static enum errc churn_push(struct churn *c, struct life life, struct err *e)
{
    if (c->n == c->cap) {
        size_t cap = MAX_OF(2 * c->cap, (size_t)1024);
        struct life *grown = mem_resize(c->lives, cap * sizeof(*grown));
        if (grown == NULL)
            return err_set(e, ERR_NOMEM, "out of memory");
        c->lives = grown;
        c->cap = cap;
    }
    size_t at = c->n++;
    c->lives[at] = life;
    for (; at > 0 && c->lives[at].end < c->lives[(at - 1) / 2].end; at = (at - 1) / 2)
        churn_swap(&c->lives[at], &c->lives[(at - 1) / 2]);
    return OK;
}

static struct life churn_pop(struct churn *c)
{
    struct life top = c->lives[0];
    c->lives[0] = c->lives[--c->n];
    for (size_t at = 0; 2 * at + 1 < c->n;) {
        size_t child = 2 * at + 1;
        if (child + 1 < c->n && c->lives[child + 1].end < c->lives[child].end)
            child++;
        if (c->lives[at].end <= c->lives[child].end)
            break;
        churn_swap(&c->lives[at], &c->lives[child]);
        at = child;
    }
    return top;
}

static bool churn_measures(const struct churn *c)
{
    return c->now >= WARM_UP;
}

/* Time passes. */
static void churn_move(struct churn *c, double to)
{
    double from = MAX_OF(c->now, WARM_UP);
    if (to > from)
        c->area += (to - from) * (double)c->world.allocated;
    c->now = to;
}

static enum errc churn_depart(struct churn *c, double until, struct err *e)
{
    enum errc code = OK;
    while (code == OK && c->n > 0 && c->lives[0].end <= until) {
        struct life life = churn_pop(c);
        churn_move(c, life.end);
        code = world_leave(&c->world, &life.pod, e);
    }
    if (code == OK)
        churn_move(c, until);
    return code;
}

static enum errc churn_arrive(struct churn *c, struct churn_result *ret, struct err *e)
{
    const struct sim_workload *w = c->workload;
    uint32_t shape = w->pods[rng_below(&c->rng, w->n_pods)];
    double life = rng_exponential(&c->rng, 1);
    struct world_pod pod;
    bool placed = false;
    enum errc code = world_arrive(&c->world, shape, &placed, &pod, e);
    if (code == OK && placed)
        code = churn_push(c, (struct life){.end = c->now + life, .pod = pod}, e);
    if (!churn_measures(c))
        return code;
    ret->arrived++;
    ret->rejected += placed ? 0 : 1;
    c->arrived_mem += w->shapes[shape].mem;
    c->rejected_mem += placed ? 0 : w->shapes[shape].mem;
    return code;
}

static enum errc churn_open(struct churn *c, const struct churn_settings *s, struct err *e)
{
    double mem = 0;
    c->workload = s->world.workload;
    for (uint32_t i = 0; i < c->workload->n_pods; i++)
        mem += (double)c->workload->shapes[c->workload->pods[i]].mem;
    if (mem <= 0)
        return err_set(e, ERR_RANGE, "no pod asks for a card");
    double mean = mem / c->workload->n_pods;
    c->gap = mean / (s->load * (double)c->workload->capacity);
    rng_init(&c->rng, s->world.seed, RNG_ARRIVALS);
    return OK;
}

enum errc churn_run(const struct churn_settings *s, struct churn_result *ret, struct err *reterr)
{
    struct churn c = {.n = 0};
    double end = WARM_UP + MEASURED;
    *ret = (struct churn_result){.arrived = 0};
    enum errc code = world_init(&c.world, &s->world, reterr);
    if (code == OK)
        code = churn_open(&c, s, reterr);
    while (code == OK && c.now < end) {
        double next = c.now + rng_exponential(&c.rng, c.gap);
        code = churn_depart(&c, MIN_OF(next, end), reterr);
        if (code == OK && next < end)
            code = churn_arrive(&c, ret, reterr);
    }
    if (c.arrived_mem > 0)
        ret->rejected_percent = 100.0 * (double)c.rejected_mem / (double)c.arrived_mem;
    ret->allocated_percent = 100.0 * c.area / (MEASURED * (double)s->world.workload->capacity);
    mem_free(c.lives);
    world_done(&c.world);
    return code;
}
