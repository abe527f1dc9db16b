/*
 * Implements loop.h on the simulation's clock. A turn has the order of src/io/loop.c: arrived data,
 * deferred work, then due timers. Between turns the process waits for an arrival or a timer. Each
 * process has its own monotonic clock (own start and rate) and a wall clock that jumps.
 */
#include "io/loop.h"

#include "proc.h"

#include <stdlib.h>

#define DEFER_ROUNDS 8
#define SIGNALS_MAX  4

struct signal {
    int signo;
    void (*fn)(void *ctx, int signo);
    void *ctx;
    bool pending;
};

struct loop {
    struct proc *proc;
    uint64_t offset_ms;
    int64_t drift_ppm;
    uint64_t now_ms;
    uint64_t wall_ns;
    uint64_t random;
    struct timer *timers; /* sorted, soonest first */
    uint64_t armed;
    struct list queue;
    struct list running;
    struct signal signals[SIGNALS_MAX];
    size_t n_signals;
    bool stopped;
};

static int64_t wall_skew_ns;

#define MILLION 1000000

static struct {
    bool stalls;
    unsigned in; /* calls of sim_turn_touch until the stall */
    uint64_t ahead_ms;
} turn;

void sim_turn_begin(struct loop *l)
{
    (void)l;
    turn.ahead_ms = 0;
    turn.stalls = fault(FAULT_STALL);
    if (turn.stalls)
        turn.in = draw(200);
}

void sim_turn_touch(void)
{
    if (!turn.stalls || turn.in-- > 0)
        return;
    turn.stalls = false;
    turn.ahead_ms = 1 + (draw(2) == 0 ? draw(5000) : draw(40000));
    trace("stalls", STR(""), (int64_t)turn.ahead_ms, 0);
}

uint64_t sim_turn_ahead_ms(void)
{
    return turn.ahead_ms;
}

uint64_t sim_turn_end(void)
{
    uint64_t ms = turn.ahead_ms;
    turn.ahead_ms = 0;
    turn.stalls = false;
    return ms;
}

/* What the process' clock shows at this world time. */
static uint64_t clock_at(const struct loop *l, uint64_t world_ms)
{
    return l->offset_ms + (uint64_t)((int64_t)world_ms * (MILLION + l->drift_ppm) / MILLION);
}

uint64_t sim_loop_really_ms(const struct proc *p, uint64_t ms)
{
    return ms * MILLION / (uint64_t)(MILLION + world.set.own[p->id].drift_ppm);
}

void sim_wall_jump(int64_t ns)
{
    wall_skew_ns = ns;
}

struct loop *sim_loop_new(struct proc *p)
{
    struct loop *l = sim_alloc(sizeof(*l));
    l->proc = p;
    l->offset_ms = 1000 + draw(1000000);
    l->drift_ppm = world.set.own[p->id].drift_ppm;
    l->random = random_next(&world.random);
    list_init(&l->queue);
    list_init(&l->running);
    sim_loop_sync(l);
    return l;
}

struct loop *loop_free(struct loop *l)
{
    while (l->timers != NULL)
        timer_cancel(l->timers);
    LIST_FOR_EACH (struct deferred, d, &l->queue, link)
        deferred_cancel(d);
    free(l);
    return NULL;
}

struct proc *sim_loop_proc(const struct loop *l)
{
    return l->proc;
}

void sim_loop_sync(struct loop *l)
{
    l->now_ms = clock_at(l, world.now_ms);
    l->wall_ns = SIM_EPOCH_NS + world.now_ms * 1000000 + (uint64_t)wall_skew_ns;
}

uint64_t sim_loop_due(const struct loop *l)
{
    if (!list_is_empty(&l->queue))
        return world.now_ms;
    if (l->timers == NULL || l->timers->due_ms == UINT64_MAX)
        return UINT64_MAX;
    uint64_t due_ms = MAX_OF(l->timers->due_ms, l->offset_ms);
    uint64_t at_ms = sim_loop_really_ms(l->proc, due_ms - l->offset_ms);
    while (clock_at(l, at_ms) < due_ms)
        at_ms++;
    return at_ms;
}

uint64_t loop_now_ms(const struct loop *l)
{
    sim_turn_touch();
    return l->now_ms;
}

uint64_t loop_clock_ns(const struct loop *l)
{
    return loop_clock_ms(l) * 1000000;
}

uint64_t loop_clock_ms(const struct loop *l)
{
    sim_turn_touch();
    return clock_at(l, world.now_ms + turn.ahead_ms);
}

uint64_t loop_wall_ns(const struct loop *l)
{
    return l->wall_ns;
}

uint64_t loop_random(struct loop *l)
{
    return random_next(&l->random);
}

void loop_stop(struct loop *l)
{
    l->stopped = true;
}

bool sim_loop_stopped(const struct loop *l)
{
    return l->stopped;
}

/* ---- signals ---- */

enum errc loop_signal(struct loop *l, int signo, void (*fn)(void *ctx, int signo), void *ctx,
                      struct err *reterr)
{
    (void)reterr;
    sim_check(l->n_signals < SIGNALS_MAX);
    l->signals[l->n_signals++] = (struct signal){.signo = signo, .fn = fn, .ctx = ctx};
    return OK;
}

void sim_loop_raise(struct loop *l, int signo)
{
    bool handled = false;
    for (size_t i = 0; i < l->n_signals; i++) {
        bool is = l->signals[i].signo == signo;
        l->signals[i].pending = l->signals[i].pending || is;
        handled = handled || is;
    }
    sim_check(handled);
}

void sim_loop_signals(struct loop *l)
{
    for (size_t i = 0; i < l->n_signals; i++) {
        struct signal *s = &l->signals[i];
        if (!s->pending)
            continue;
        s->pending = false;
        s->fn(s->ctx, s->signo);
    }
}

/* ---- timers ---- */

void timer_arm(struct loop *l, struct timer *t, uint64_t delay_ms)
{
    assert(t->fire != NULL && (t->loop == NULL || t->loop == l));
    timer_cancel(t);
    t->loop = l;
    t->due_ms = delay_ms > UINT64_MAX - l->now_ms ? UINT64_MAX : l->now_ms + delay_ms;
    t->order = l->armed++;
    struct timer *before = NULL;
    struct timer *after = l->timers;
    while (after != NULL && after->due_ms <= t->due_ms) {
        before = after;
        after = after->next;
    }
    t->prev = before;
    t->next = after;
    if (before != NULL)
        before->next = t;
    else
        l->timers = t;
    if (after != NULL)
        after->prev = t;
}

void timer_cancel(struct timer *t)
{
    struct loop *l = t->loop;
    if (l == NULL)
        return;
    t->loop = NULL;
    if (t->prev != NULL)
        t->prev->next = t->next;
    else
        l->timers = t->next;
    if (t->next != NULL)
        t->next->prev = t->prev;
}

void sim_loop_timers(struct loop *l)
{
    uint64_t youngest = l->armed;
    struct timer *t = NULL;
    while ((t = l->timers) != NULL && t->due_ms <= l->now_ms && t->order < youngest) {
        timer_cancel(t);
        t->fire(t);
    }
}

/* ---- deferred work ---- */

void loop_defer(struct loop *l, struct deferred *d)
{
    assert(d->run != NULL);
    if (d->loop != NULL)
        return;
    d->loop = l;
    list_push_back(&l->queue, &d->link);
}

void deferred_cancel(struct deferred *d)
{
    if (d->loop == NULL)
        return;
    list_remove(&d->link);
    d->loop = NULL;
}

void sim_loop_deferred(struct loop *l)
{
    for (int round = 0; round < DEFER_ROUNDS && !list_is_empty(&l->queue); round++) {
        list_move(&l->running, &l->queue);
        struct deferred *d = NULL;
        while ((d = LIST_FIRST(&l->running, struct deferred, link)) != NULL) {
            deferred_cancel(d);
            d->run(d);
        }
    }
}
