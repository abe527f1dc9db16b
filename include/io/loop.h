/*
 * The event loop: one thread, one epoll set, timers, signals, deferred work. It needs no locks
 * because one thread runs it; gpu/gpu_thread, the only other thread, wakes it by an eventfd. A turn
 * is:
 *
 *     timers that are due -> wait -> ready descriptors -> hooks' check -> deferred work
 *
 * The loop reads the time once a turn, so all callbacks of a turn see the same "now".
 *
 * Memory rules: the owner embeds a loop_fd, timer or deferred. After loop_fd_del, timer_cancel or
 * deferred_cancel returns, the loop does not call its callback again. Any callback may free the
 * owner, except the callback of the owner's own hook. The simulation uses the same header and
 * replaces loop.c and http_client.c with seeded versions.
 */
#pragma once

#include "base/err.h"
#include "base/list.h"

struct loop;

/* From this call on SIGPIPE is ignored; libcurl and libmicrohttpd rely on it. */
enum errc loop_new(struct loop **ret, struct err *reterr) _must_use_;

/* Call it last. It drops timers and deferred work; descriptors and hooks must be removed before. */
struct loop *loop_free(struct loop *l); /* returns NULL */

/*
 * Runs turns until loop_stop. A turn that calls loop_stop still completes; a loop_stop before
 * loop_run prevents the first turn. May be called again. Owners must cancel their pending work
 * themselves.
 */
enum errc loop_run(struct loop *l, struct err *reterr) _must_use_;
void loop_stop(struct loop *l);

uint64_t loop_now_ms(const struct loop *l); /* since boot, sleep included; the same for one turn */
uint64_t loop_clock_ms(const struct loop *l); /* the same clock, read now: for a Lease */
uint64_t loop_clock_ns(const struct loop *l); /* the same clock, read now: to measure durations */
uint64_t loop_wall_ns(const struct loop *l);  /* Unix time; the same for one turn */

/*
 * Random, different in each process and call: for jitter and hash seeds. The simulation seeds it.
 */
uint64_t loop_random(struct loop *l);

struct loop_fd {
    int fd;
    uint32_t events; /* EPOLLIN, EPOLLOUT and EPOLLRDHUP, level-triggered */
    void (*ready)(struct loop_fd *f, uint32_t events);
    struct loop *loop; /* NULL while not added */
};

enum errc loop_fd_add(struct loop *l, struct loop_fd *f, struct err *reterr) _must_use_;
enum errc loop_fd_set(struct loop_fd *f, uint32_t events) _must_use_;
void loop_fd_del(struct loop_fd *f); /* call it before close(); allowed if not added */

struct timer {
    uint64_t due_ms;
    void (*fire)(struct timer *t);
    struct loop *loop; /* NULL while not armed */
    uint64_t order;    /* timers of one millisecond fire in the order of arming */
    struct timer *child;
    struct timer *next;
    struct timer *prev;
};

/*
 * Fires once, not before the next turn. Arming an armed timer moves it. It allocates nothing and
 * cannot fail, so a deadline is never lost.
 */
void timer_arm(struct loop *l, struct timer *t, uint64_t delay_ms);
void timer_cancel(struct timer *t);

static inline bool timer_armed(const struct timer *t)
{
    return t->loop != NULL;
}

/* Work for the end of this turn, outside of any library callback. */
struct deferred {
    void (*run)(struct deferred *d);
    struct loop *loop; /* NULL while not queued */
    struct list_link link;
};

void loop_defer(struct loop *l, struct deferred *d); /* if already queued: does nothing */
void deferred_cancel(struct deferred *d);

/* A library with its own timeouts and its own work: libmicrohttpd, libcurl. */
struct loop_hook {
    /* Returns the latest time for the next turn; UINT64_MAX: no limit. Called before each wait. */
    uint64_t (*prepare)(struct loop_hook *h, uint64_t now_ms);
    /* Called after each wait, for any wake-up. */
    void (*check)(struct loop_hook *h, uint64_t now_ms);
    struct list_link link;
};

/*
 * The loop calls hooks in the order of loop_hook_add. Add the client before the server, so that an
 * answer is sent in the same turn.
 */
void loop_hook_add(struct loop *l, struct loop_hook *h);
void loop_hook_del(struct loop *l, struct loop_hook *h);

/* Blocks the signal for good; the loop calls fn instead. One handler for each signal. */
enum errc loop_signal(struct loop *l, int signo, void (*fn)(void *ctx, int signo), void *ctx,
                      struct err *reterr) _must_use_;
