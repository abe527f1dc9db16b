/*
 * At its connection limit libmicrohttpd does not watch the listening socket. The acceptor watches
 * it then. When a client waits, it closes a connection that does no work (http_conn.c says which).
 *
 * accept also fails if the process or the system has no descriptor left. libmicrohttpd reports this
 * only in its log. Then:
 *   - If it has connections, it accepts nothing until one of them ends. So the acceptor makes room
 *     as it does at the limit.
 *   - If it has none, it leaves the listening socket in its epoll set. The set stays ready, and the
 *     loop would spin. So the acceptor stops watching the set for RETRY_MS, then accept is retried.
 *
 * Rejected: to look for a free descriptor in each turn. This costs two system calls and does not
 * detect a system-wide shortage.
 */
#include "http_accept.h"

#include <sys/epoll.h>

#define RETRY_MS 100

/* The start of both libmicrohttpd log lines that report a shortage of descriptors. */
#define NO_DESCRIPTOR STR("Hit process or system resource limit")

static void http_accept_connection_waits(struct loop_fd *f, uint32_t events)
{
    struct acceptor *a = CONTAINER_OF(f, struct acceptor, waiting);
    assert(!a->stopped);
    (void)events;
    if (conns_make_room(a->conns))
        *a->run_soon = true;
}

/* These two only wake the loop: each turn runs libmicrohttpd and then acceptor_turn. */
static void http_accept_set_ready(struct loop_fd *f, uint32_t events)
{
    (void)f;
    (void)events;
}

static void http_accept_looks_again(struct timer *t)
{
    (void)t;
}

enum errc acceptor_start(struct acceptor *a, int listen_fd, int set_fd, struct err *reterr)
{
    assert(a->conns != NULL && a->run_soon != NULL && a->max_connections > 0);
    a->waiting =
        (struct loop_fd){.fd = listen_fd, .events = EPOLLIN, .ready = http_accept_connection_waits};
    a->set = (struct loop_fd){.fd = set_fd, .events = EPOLLIN, .ready = http_accept_set_ready};
    a->look_again.fire = http_accept_looks_again;
    a->retry.fire = http_accept_looks_again;
    return loop_fd_add(a->conns->loop, &a->set, reterr);
}

void acceptor_heard(struct acceptor *a, const char *fmt)
{
    if (str_starts(str_of(fmt), NO_DESCRIPTOR))
        a->starved = true;
}

void acceptor_room(struct acceptor *a)
{
    a->starved = false;
    *a->run_soon = true;
}

/* True: no descriptor, and no connection to close. accept is retried later. */
static bool http_accept_pauses(struct acceptor *a)
{
    bool pause = a->starved && a->conns->n == 0 && !a->stopped;
    /* Keep the set in the loop without events: adding it again could fail. */
    enum errc code = loop_fd_set(&a->set, pause ? 0 : EPOLLIN);
    assert(code == OK);
    if (pause) {
        a->starved = false; /* libmicrohttpd retries whenever it runs */
        timer_arm(a->conns->loop, &a->retry, RETRY_MS);
    } else {
        timer_cancel(&a->retry);
    }
    return pause;
}

/* Watches for a waiting client while there is no room, but a connection can be closed. */
static void http_accept_watch_for_waiting(struct acceptor *a, uint64_t now_ms)
{
    bool room = a->conns->n < a->max_connections && !a->starved;
    if (a->stopped || room || conns_any(a->conns, CONN_CUT)) {
        loop_fd_del(&a->waiting);
        timer_cancel(&a->look_again);
        return;
    }
    struct loop *l = a->conns->loop;
    uint64_t room_ms = conns_room_ms(a->conns);
    assert(!timer_armed(&a->retry));
    if (room_ms > now_ms)
        loop_fd_del(&a->waiting);
    else if (a->waiting.loop == NULL && loop_fd_add(l, &a->waiting, NULL) != OK)
        room_ms = now_ms + a->conns->stall_ms; /* no memory: retry later */
    if (room_ms > now_ms && room_ms < UINT64_MAX)
        timer_arm(l, &a->look_again, room_ms - now_ms);
}

void acceptor_turn(struct acceptor *a, uint64_t now_ms)
{
    assert(a->set.loop != NULL);
    if (!http_accept_pauses(a))
        http_accept_watch_for_waiting(a, now_ms);
}

void acceptor_stop(struct acceptor *a)
{
    a->stopped = true;
    loop_fd_del(&a->waiting);
    timer_cancel(&a->look_again);
    timer_cancel(&a->retry);
}

void acceptor_end(struct acceptor *a)
{
    assert(a->stopped && a->waiting.loop == NULL && !timer_armed(&a->retry));
    loop_fd_del(&a->set);
}
