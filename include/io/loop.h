/*
 * The event loop: one thread, one epoll set, timers, signals, deferred work. There are no locks
 * because there is nobody to lock out. A turn is:
 *
 *     timers that are due -> wait -> ready descriptors -> hooks' check -> deferred work
 *
 * Time is read once a turn, so everything in a turn agrees on "now".
 *
 * Memory rules: a loop_fd, timer or deferred is embedded in its owner. After loop_fd_del,
 * timer_cancel or deferred_cancel returns, its callback is never called again, and the owner may be
 * freed from any callback but its own hook's. The same header serves the simulation, which replaces
 * loop.c and http_client.c with seeded ones.
 */
#pragma once

#include "err.h"

struct loop;

/* SIGPIPE is ignored from then on, which both libraries rely on. */
enum errc loop_new(struct loop **ret, struct err *reterr) _must_use_;

/* Last of all: timers and deferred work are forgotten, descriptors and hooks must be gone. */
struct loop *loop_free(struct loop *l); /* returns NULL */

/*
 * Turns until loop_stop, which ends the turn it is called in as usual (or, called before, lets none
 * begin). May be called again. What is under way then is the owners' to cancel.
 */
enum errc loop_run(struct loop *l, struct err *reterr) _must_use_;
void loop_stop(struct loop *l);

uint64_t loop_now_ms(const struct loop *l);   /* since boot, sleep included; of this turn */
uint64_t loop_clock_ms(const struct loop *l); /* the same at this very moment, for a lease */
uint64_t loop_clock_ns(const struct loop *l); /* likewise; for how long something took */
uint64_t loop_wall_ns(const struct loop *l);  /* Unix time, of this turn */

/* A number that differs between processes and calls: jitter, hash seeds. Seeded in simulation. */
uint64_t loop_random(struct loop *l);

struct loop_fd {
    int fd;
    uint32_t events; /* EPOLLIN | EPOLLOUT, level-triggered */
    void (*ready)(struct loop_fd *f, uint32_t events);
    struct loop *loop; /* NULL while not added */
};

enum errc loop_fd_add(struct loop *l, struct loop_fd *f, struct err *reterr) _must_use_;
enum errc loop_fd_set(struct loop_fd *f, uint32_t events) _must_use_;
void loop_fd_del(struct loop_fd *f); /* before the descriptor is closed; also when not added */

struct timer {
    uint64_t due_ms;
    void (*fire)(struct timer *t);
    struct loop *loop; /* NULL while not armed */
    uint64_t order;    /* among those of the same millisecond: armed first, fired first */
    struct timer *child;
    struct timer *next;
    struct timer *prev;
};

/*
 * Fires once, not before the next turn; arming an armed timer moves it. Nothing is allocated, so it
 * can't fail: a deadline is always kept.
 */
void timer_arm(struct loop *l, struct timer *t, uint64_t delay_ms);
void timer_cancel(struct timer *t);

static inline bool timer_armed(const struct timer *t)
{
    return t->loop != NULL;
}

/* Work for the end of this turn, outside of any library's callback. */
struct deferred {
    void (*run)(struct deferred *d);
    struct loop *loop; /* NULL while not queued */
    struct deferred *next;
    struct deferred *prev;
};

void loop_defer(struct loop *l, struct deferred *d); /* queued already: nothing */
void deferred_cancel(struct deferred *d);

/* A library with its own idea of time and work: libmicrohttpd, libcurl. */
struct loop_hook {
    /* The latest time of the next turn, UINT64_MAX for "whenever". Called before each wait. */
    uint64_t (*prepare)(struct loop_hook *h, uint64_t now_ms);
    /* After each wait, whatever woke it. */
    void (*check)(struct loop_hook *h, uint64_t now_ms);
    struct loop_hook *next;
};

/* Checked in the order added: the client before the server, so that an answer leaves in its turn.
 */
void loop_hook_add(struct loop *l, struct loop_hook *h);
void loop_hook_del(struct loop *l, struct loop_hook *h);

/* The signal is blocked, for good, and delivered as a call in the loop. One handler a signal. */
enum errc loop_signal(struct loop *l, int signo, void (*fn)(void *ctx, int signo), void *ctx,
                      struct err *reterr) _must_use_;
