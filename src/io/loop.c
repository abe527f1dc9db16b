/*
 * One epoll set, a heap of timers, one signalfd, a queue of deferred work and a list of hooks. The
 * loop reads the turn's time once, right after the wait. It reads the clock again to compute the
 * next wait, so that slow callbacks do not prolong that wait.
 *
 * Timers run before the wait, not right after it. After a pause of the whole process, bytes that
 * have arrived in the sockets are therefore read before a silence timer fires.
 *
 * A callback may do anything, and may delete other descriptors that are ready in this turn.
 * loop_fd_del removes the descriptor from the current batch, timers and deferred work unlink
 * themselves, and loop_hook_del corrects the walk over the hooks. Deferred work that defers again
 * gets at most DEFER_ROUNDS rounds a turn, so it cannot starve descriptors.
 *
 * Timers of the same millisecond fire in the order of arming. A timer that is armed while timers
 * run has a higher order than all timers of that turn, so it waits for the next turn. This alone
 * ensures "not before the next turn".
 *
 * The heap is a pairing heap with its links inside the timers, so arming cannot fail. Otherwise
 * twenty callers would need to handle a deadline that is missing for want of memory, and no test
 * would cover them. The first version was a binary heap in an array. A timer wheel would pay for a
 * million timers; here each connection has a few.
 */
#include "io/loop.h"

#include "base/mem.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#define BATCH        128
#define DEFER_ROUNDS 8
#define RANDOM_COUNT 16
#define SIGNAL_COUNT 65

struct loop {
    int epoll_fd;
    uint64_t now_ms;
    uint64_t wall_ns;
    bool stop;

    struct epoll_event batch[BATCH]; /* of this turn; data.ptr is a loop_fd, NULL when deleted */
    int batch_n;

    struct timer *timers; /* root of a pairing heap */
    uint64_t armed;       /* timers armed so far */

    struct list queue;   /* of deferred work */
    struct list running; /* the current round */

    struct list hooks;
    struct loop_hook *walk; /* the hook after the one being called */

    struct loop_fd signals;
    sigset_t signal_set;

    struct {
        void (*fn)(void *ctx, int signo);
        void *ctx;
    } handlers[SIGNAL_COUNT];

    uint64_t random[RANDOM_COUNT];
    size_t random_left;
};

/* ---- time ---- */

/* CLOCK_MONOTONIC stops while the machine sleeps; a Lease does not. */
static uint64_t loop_read_clock_ns(void)
{
    struct timespec t;
    int r = clock_gettime(CLOCK_BOOTTIME, &t);
    assert(r == 0);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static uint64_t loop_read_clock_ms(void)
{
    return loop_read_clock_ns() / 1000000;
}

static void loop_time_update(struct loop *l)
{
    struct timespec t;
    int r = clock_gettime(CLOCK_REALTIME, &t);
    assert(r == 0);
    l->wall_ns = (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
    /* A virtual machine's clock may go back by a little. */
    l->now_ms = MAX_OF(l->now_ms, loop_read_clock_ms());
}

uint64_t loop_now_ms(const struct loop *l)
{
    return l->now_ms;
}

uint64_t loop_clock_ms(const struct loop *l)
{
    (void)l;
    return loop_read_clock_ms();
}

uint64_t loop_clock_ns(const struct loop *l)
{
    (void)l;
    return loop_read_clock_ns();
}

uint64_t loop_wall_ns(const struct loop *l)
{
    return l->wall_ns;
}

/* From the kernel: clients can observe the jitter, and must not guess hash seeds from it. */
uint64_t loop_random(struct loop *l)
{
    if (l->random_left == 0) {
        ssize_t n;
        do
            n = getrandom(l->random, sizeof(l->random), 0);
        while (n < 0 && errno == EINTR);
        assert(n == (ssize_t)sizeof(l->random)); /* the kernel never returns less up to 256 bytes */
        l->random_left = RANDOM_COUNT;
    }
    assert(l->random_left <= RANDOM_COUNT);
    return l->random[--l->random_left];
}

/* ---- descriptors ---- */

static enum errc loop_fd_control(const struct loop *l, int op, struct loop_fd *f)
{
    struct epoll_event ev = {.events = f->events, .data = {.ptr = f}};
    if (epoll_ctl(l->epoll_fd, op, f->fd, &ev) == 0)
        return OK;
    return errno == ENOMEM || errno == ENOSPC ? ERR_NOMEM : ERR_INTERNAL;
}

enum errc loop_fd_add(struct loop *l, struct loop_fd *f, struct err *reterr)
{
    assert(f->loop == NULL && f->ready != NULL);
    enum errc code = loop_fd_control(l, EPOLL_CTL_ADD, f);
    if (code != OK)
        return err_set(reterr, code, "cannot watch descriptor %d: %s", f->fd, strerror(errno));
    f->loop = l;
    return OK;
}

enum errc loop_fd_set(struct loop_fd *f, uint32_t events)
{
    assert(f->loop != NULL);
    if (f->events == events)
        return OK;
    f->events = events;
    return loop_fd_control(f->loop, EPOLL_CTL_MOD, f);
}

void loop_fd_del(struct loop_fd *f)
{
    struct loop *l = f->loop;
    if (l == NULL)
        return;
    f->loop = NULL;
    int r = epoll_ctl(l->epoll_fd, EPOLL_CTL_DEL, f->fd, NULL);
    assert(r == 0 || errno == ENOENT ||
           errno == EBADF); /* closed already: the kernel has removed it */
    for (int i = 0; i < l->batch_n; i++)
        if (l->batch[i].data.ptr == f)
            l->batch[i].data.ptr = NULL;
}

static void loop_fds_run(struct loop *l)
{
    for (int i = 0; i < l->batch_n; i++) {
        struct loop_fd *f = l->batch[i].data.ptr;
        if (f == NULL)
            continue;
        assert(f->loop == l);
        /* An earlier callback may have removed events that this descriptor waits for. */
        uint32_t events = l->batch[i].events & (f->events | EPOLLERR | EPOLLHUP);
        if (events != 0)
            f->ready(f, events);
    }
    l->batch_n = 0;
}

/* ---- timers ---- */

static bool loop_timer_before(const struct timer *a, const struct timer *b)
{
    return a->due_ms != b->due_ms ? a->due_ms < b->due_ms : a->order < b->order;
}

/* The later of the two roots becomes the first child of the other. */
static struct timer *loop_heap_meld(struct timer *a, struct timer *b)
{
    if (a == NULL || b == NULL)
        return a == NULL ? b : a;
    if (loop_timer_before(b, a)) {
        struct timer *swap = a;
        a = b;
        b = swap;
    }
    assert(a != b);
    b->next = a->child;
    if (b->next != NULL)
        b->next->prev = b;
    b->prev = a;
    a->child = b;
    return a;
}

/* Makes one heap of siblings: melds pairs from the left, then melds the pairs from the right. */
static struct timer *loop_heap_meld_all(struct timer *first)
{
    struct timer *pairs = NULL;
    while (first != NULL) {
        struct timer *a = first;
        struct timer *b = a->next;
        first = b == NULL ? NULL : b->next;
        struct timer *pair = loop_heap_meld(a, b);
        pair->next = pairs;
        pairs = pair;
    }
    struct timer *root = NULL;
    while (pairs != NULL) {
        struct timer *next = pairs->next;
        pairs->next = NULL;
        root = loop_heap_meld(root, pairs);
        pairs = next;
    }
    return root;
}

void timer_arm(struct loop *l, struct timer *t, uint64_t delay_ms)
{
    assert(t->fire != NULL && (t->loop == NULL || t->loop == l));
    timer_cancel(t);
    t->loop = l;
    t->due_ms = delay_ms > UINT64_MAX - l->now_ms ? UINT64_MAX : l->now_ms + delay_ms;
    t->order = l->armed++;
    t->child = t->next = t->prev = NULL;
    l->timers = loop_heap_meld(l->timers, t);
}

void timer_cancel(struct timer *t)
{
    struct loop *l = t->loop;
    if (l == NULL)
        return;
    t->loop = NULL;
    struct timer *below = loop_heap_meld_all(t->child);
    if (l->timers == t) {
        assert(t->next == NULL);
        l->timers = below;
        return;
    }
    assert(t->prev != NULL && (t->prev->child == t || t->prev->next == t));
    assert(t->next == NULL || t->next->prev == t);
    if (t->prev->child == t)
        t->prev->child = t->next;
    else
        t->prev->next = t->next;
    if (t->next != NULL)
        t->next->prev = t->prev;
    l->timers = loop_heap_meld(l->timers, below);
}

static void loop_timers_run(struct loop *l)
{
    uint64_t youngest = l->armed;
    struct timer *t;
    while ((t = l->timers) != NULL && t->due_ms <= l->now_ms && t->order < youngest) {
        assert(t->loop == l);
        timer_cancel(t);
        t->fire(t);
    }
}

/* ---- deferred work ---- */

void loop_defer(struct loop *l, struct deferred *d)
{
    assert(d->run != NULL);
    assert(d->loop == NULL || d->loop == l);
    if (d->loop != NULL)
        return;
    d->loop = l;
    list_push_back(&l->queue, &d->link);
}

void deferred_cancel(struct deferred *d)
{
    assert((d->loop != NULL) == list_is_linked(&d->link));
    if (d->loop == NULL)
        return;
    list_remove(&d->link);
    d->loop = NULL;
}

static void loop_deferred_run(struct loop *l)
{
    for (int round = 0; round < DEFER_ROUNDS && !list_is_empty(&l->queue); round++) {
        list_move(&l->running, &l->queue);
        struct deferred *d;
        while ((d = LIST_FIRST(&l->running, struct deferred, link)) != NULL) {
            deferred_cancel(d);
            d->run(d);
        }
    }
}

/* ---- hooks ---- */

void loop_hook_add(struct loop *l, struct loop_hook *h)
{
    assert(h->prepare != NULL && h->check != NULL);
    list_push_back(&l->hooks, &h->link);
}

static struct loop_hook *loop_hook_after(const struct loop *l, const struct loop_hook *h)
{
    return LIST_NEXT(&l->hooks, h, struct loop_hook, link);
}

void loop_hook_del(struct loop *l, struct loop_hook *h)
{
    if (!list_is_linked(&h->link))
        return;
    if (l->walk == h)
        l->walk = loop_hook_after(l, h);
    list_remove(&h->link);
}

static struct loop_hook *loop_hook_first(const struct loop *l)
{
    return LIST_FIRST(&l->hooks, struct loop_hook, link);
}

static uint64_t loop_hooks_prepare(struct loop *l, uint64_t now_ms)
{
    uint64_t due = UINT64_MAX;
    for (struct loop_hook *h = loop_hook_first(l); h != NULL; h = l->walk) {
        l->walk = loop_hook_after(l, h);
        uint64_t at = h->prepare(h, now_ms);
        due = MIN_OF(due, at);
    }
    return due;
}

static void loop_hooks_check(struct loop *l)
{
    for (struct loop_hook *h = loop_hook_first(l); h != NULL; h = l->walk) {
        l->walk = loop_hook_after(l, h);
        h->check(h, l->now_ms);
    }
}

/* ---- signals ---- */

static void loop_signals_ready(struct loop_fd *f, uint32_t events)
{
    struct loop *l = CONTAINER_OF(f, struct loop, signals);
    (void)events;
    /*
     * Read one signal a turn: the handler may free objects of the loop. The descriptor stays ready
     * for the next.
     */
    struct signalfd_siginfo info;
    if (read(f->fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
        return;
    assert(info.ssi_signo < SIGNAL_COUNT && l->handlers[info.ssi_signo].fn != NULL);
    l->handlers[info.ssi_signo].fn(l->handlers[info.ssi_signo].ctx, (int)info.ssi_signo);
}

enum errc loop_signal(struct loop *l, int signo, void (*fn)(void *ctx, int signo), void *ctx,
                      struct err *reterr)
{
    assert(signo > 0 && signo < SIGNAL_COUNT && fn != NULL && l->handlers[signo].fn == NULL);
    sigset_t set = l->signal_set;
    if (sigaddset(&set, signo) != 0 || sigprocmask(SIG_BLOCK, &set, NULL) != 0)
        return err_set(reterr, ERR_INTERNAL, "cannot block signal %d: %s", signo, strerror(errno));
    int fd = signalfd(l->signals.fd, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    if (fd < 0)
        return err_set(reterr, ERR_UNAVAILABLE, "signalfd: %s", strerror(errno));
    l->signals.fd = fd;
    l->signal_set = set;
    l->handlers[signo].fn = fn;
    l->handlers[signo].ctx = ctx;
    return l->signals.loop != NULL ? OK : loop_fd_add(l, &l->signals, reterr);
}

/* ---- the loop ---- */

enum errc loop_new(struct loop **ret, struct err *reterr)
{
    struct loop *l = mem_alloc(sizeof(*l));
    if (l == NULL)
        return err_set(reterr, ERR_NOMEM, "no memory for the event loop");
    l->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (l->epoll_fd < 0) {
        mem_free(l);
        return err_set(reterr, ERR_UNAVAILABLE, "epoll_create1: %s", strerror(errno));
    }
    l->signals = (struct loop_fd){.fd = -1, .events = EPOLLIN, .ready = loop_signals_ready};
    (void)sigemptyset(&l->signal_set);
    /* A peer that closes must cause an error of one write, not the end of the process. */
    (void)signal(SIGPIPE, SIG_IGN);
    list_init(&l->queue);
    list_init(&l->running);
    list_init(&l->hooks);
    loop_time_update(l);
    *ret = l;
    return OK;
}

struct loop *loop_free(struct loop *l)
{
    if (l == NULL)
        return NULL;
    assert(list_is_empty(&l->hooks) && list_is_empty(&l->running));
    /* Unlink the rest: otherwise a later cancel by its owner would use freed memory. */
    while (l->timers != NULL)
        timer_cancel(l->timers);
    LIST_FOR_EACH (struct deferred, d, &l->queue, link)
        deferred_cancel(d);
    loop_fd_del(&l->signals);
    if (l->signals.fd >= 0)
        (void)close(l->signals.fd);
    (void)close(l->epoll_fd);
    mem_free(l);
    return NULL;
}

void loop_stop(struct loop *l)
{
    l->stop = true;
}

/* Milliseconds for epoll_wait; -1: no limit. */
static int loop_wait_ms(struct loop *l)
{
    uint64_t now = loop_read_clock_ms();
    uint64_t due = loop_hooks_prepare(l, now);
    if (l->timers != NULL)
        due = MIN_OF(due, l->timers->due_ms);
    if (!list_is_empty(&l->queue) || due <= now)
        return 0;
    if (due == UINT64_MAX)
        return -1;
    return (int)MIN_OF(due - now, (uint64_t)INT_MAX);
}

enum errc loop_run(struct loop *l, struct err *reterr)
{
    assert(l->batch_n == 0 && list_is_empty(&l->running)); /* not inside a callback */
    while (!l->stop) {
        loop_timers_run(l);
        if (l->stop)
            break;
        int n = epoll_wait(l->epoll_fd, l->batch, BATCH, loop_wait_ms(l));
        if (n < 0 && errno != EINTR)
            return err_set(reterr, ERR_INTERNAL, "epoll_wait: %s", strerror(errno));
        l->batch_n = MAX_OF(n, 0);
        loop_time_update(l);
        loop_fds_run(l);
        loop_hooks_check(l);
        loop_deferred_run(l);
    }
    l->stop = false;
    return OK;
}
