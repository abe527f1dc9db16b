/*
 * loop.h on the world's clock. A turn is as in src/io/loop.c: what has arrived, deferred work, then
 * timers that are due; between turns the process waits until something arrives or a timer is due.
 * Each process has a monotonic clock with a start of its own, and a wall clock that jumps.
 */
#include "loop.h"

#include "proc.h"

#include <stdlib.h>

#define DEFER_ROUNDS 8

struct loop {
    struct proc *proc;
    uint64_t offset_ms;
    uint64_t now_ms;
    uint64_t wall_ns;
    uint64_t random;
    struct timer *timers; /* soonest first */
    uint64_t armed;
    struct deferred queue;
    struct deferred running;
};

static int64_t wall_skew_ns;

void sim_wall_jump(int64_t ns)
{
    wall_skew_ns = ns;
}

static void ring_init(struct deferred *ring)
{
    ring->next = ring->prev = ring;
}

static bool ring_empty(const struct deferred *ring)
{
    return ring->next == ring;
}

struct loop *sim_loop_new(struct proc *p)
{
    struct loop *l = sim_alloc(sizeof(*l));
    l->proc = p;
    l->offset_ms = 1000 + draw(1000000);
    l->random = random_next(&world.random);
    ring_init(&l->queue);
    ring_init(&l->running);
    sim_loop_sync(l);
    return l;
}

struct loop *loop_free(struct loop *l)
{
    while (l->timers != NULL)
        timer_cancel(l->timers);
    while (!ring_empty(&l->queue))
        deferred_cancel(l->queue.next);
    free(l);
    return NULL;
}

struct proc *sim_loop_proc(const struct loop *l)
{
    return l->proc;
}

void sim_loop_sync(struct loop *l)
{
    l->now_ms = world.now_ms + l->offset_ms;
    l->wall_ns = SIM_EPOCH_NS + world.now_ms * 1000000 + (uint64_t)wall_skew_ns;
}

uint64_t sim_loop_due(const struct loop *l)
{
    if (!ring_empty(&l->queue))
        return world.now_ms;
    if (l->timers == NULL || l->timers->due_ms == UINT64_MAX)
        return UINT64_MAX;
    return MAX_OF(l->timers->due_ms, l->offset_ms) - l->offset_ms;
}

uint64_t loop_now_ms(const struct loop *l)
{
    return l->now_ms;
}

uint64_t loop_clock_ns(const struct loop *l)
{
    return loop_clock_ms(l) * 1000000;
}

uint64_t loop_clock_ms(const struct loop *l)
{
    return world.now_ms + l->offset_ms;
}

uint64_t loop_wall_ns(const struct loop *l)
{
    return l->wall_ns;
}

uint64_t loop_random(struct loop *l)
{
    return random_next(&l->random);
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
    d->next = &l->queue;
    d->prev = l->queue.prev;
    d->prev->next = d;
    l->queue.prev = d;
}

void deferred_cancel(struct deferred *d)
{
    if (d->loop == NULL)
        return;
    d->prev->next = d->next;
    d->next->prev = d->prev;
    d->loop = NULL;
}

void sim_loop_deferred(struct loop *l)
{
    for (int round = 0; round < DEFER_ROUNDS && !ring_empty(&l->queue); round++) {
        l->running.next = l->queue.next;
        l->running.prev = l->queue.prev;
        l->running.next->prev = &l->running;
        l->running.prev->next = &l->running;
        ring_init(&l->queue);
        while (!ring_empty(&l->running)) {
            struct deferred *d = l->running.next;
            deferred_cancel(d);
            d->run(d);
        }
    }
}
