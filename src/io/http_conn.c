/*
 * libmicrohttpd's timeout is one of inactivity, so a byte every second would live for ever. Hence a
 * timer a connection: request_ms for a whole request, idle_ms between requests. It shuts the socket
 * down and lets libmicrohttpd find out; the descriptor is not ours to close.
 *
 * At its limit of connections libmicrohttpd just stops accepting, and a thousand that say nothing
 * would lock everybody out. So one is cut when somebody waits and there is no room. In this order:
 * who never had a request; who stalls within one, and then who does not take its answer; a stream,
 * which a page asks for again by itself; who rests between two requests. A kept connection is
 * likely kube-scheduler's, which knows how to come again, but loses the request that it sends in
 * that moment: hence last. One that a handler is busy with is never cut. Nor is one that has just
 * sent something which nobody has read: at a rush several are accepted before the first is read.
 */
#include "http_conn.h"

#include "log.h"
#include "mem.h"

#include <linux/tcp.h> /* the C library's has no tcpi_bytes_acked */
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>

static void deadline_fire(struct timer *t);

void conns_init(struct conns *t, struct loop *l)
{
    t->loop = l;
    for (size_t i = 0; i < CONN_STATES; i++)
        t->rings[i].next = t->rings[i].prev = &t->rings[i];
    t->awake.next = t->awake.prev = &t->awake;
}

static struct conn *oldest(const struct conns *t, enum conn_state state)
{
    struct conn_link *first = t->rings[state].next;
    return first == &t->rings[state] ? NULL : CONTAINER_OF(first, struct conn, link);
}

bool conns_any(const struct conns *t, enum conn_state state)
{
    return oldest(t, state) != NULL;
}

static void enter(struct conn *c, enum conn_state state)
{
    c->state = state;
    c->since_ms = loop_now_ms(c->table->loop);
    link_add(&c->table->rings[state], &c->link);
}

/* False: it was cut, and is for libmicrohttpd to bury. */
static bool move(struct conn *c, enum conn_state state)
{
    if (c->state == CONN_CUT)
        return false;
    link_del(&c->link);
    enter(c, state);
    return true;
}

static void arm(struct conn *c, uint64_t ms)
{
    timer_arm(c->table->loop, &c->deadline, ms);
}

static uint64_t acknowledged(const struct conn *c)
{
    struct tcp_info info = {.tcpi_bytes_acked = 0};
    socklen_t n = sizeof(info);
    return getsockopt(c->fd, IPPROTO_TCP, TCP_INFO, &info, &n) == 0 ? info.tcpi_bytes_acked : 0;
}

/* Its request, or its answer, is due, and sooner where nothing moves while others wait for the
 * end. */
static void arm_due(struct conn *c)
{
    uint64_t now = loop_now_ms(c->table->loop);
    uint64_t left = c->due_ms > now ? c->due_ms - now : 0;
    if (c->table->draining && c->state == CONN_SENDING)
        c->acked = acknowledged(c);
    arm(c, c->table->draining ? MIN_OF(left, c->table->stall_ms) : left);
}

static void cut(struct conn *c, const char *why)
{
    if (!move(c, CONN_CUT))
        return;
    log_debug("a connection is cut", kv_int("fd", c->fd), kv_cstr("why", why));
    timer_cancel(&c->deadline);
    (void)shutdown(c->fd, SHUT_RDWR);
}

static void deadline_fire(struct timer *t)
{
    struct conn *c = CONTAINER_OF(t, struct conn, deadline);
    bool due = loop_now_ms(c->table->loop) >= c->due_ms;
    if (c->state == CONN_SENDING && !due && acknowledged(c) != c->acked)
        arm_due(c);
    else
        cut(c, "too slow");
}

struct conn *conn_open(struct conns *t, int fd)
{
    struct conn *c = mem_alloc(sizeof(*c));
    if (c == NULL)
        return NULL;
    c->table = t;
    c->fd = fd;
    c->deadline.fire = deadline_fire;
    c->gone = (struct loop_fd){.fd = fd, .events = EPOLLRDHUP};
    c->due_ms = loop_now_ms(t->loop) + t->request_ms;
    t->n++;
    enter(c, CONN_FRESH);
    arm_due(c);
    return c;
}

void conn_close(struct conn *c)
{
    if (c == NULL)
        return;
    timer_cancel(&c->deadline);
    loop_fd_del(&c->gone);
    tls_peer_end(&c->tls);
    link_del(&c->link);
    c->table->n--;
    mem_free(c);
}

void conn_reads(struct conn *c)
{
    if (c->state == CONN_KEPT) /* the first request's time counts from the accept */
        c->due_ms = loop_now_ms(c->table->loop) + c->table->request_ms;
    if (move(c, CONN_READING))
        arm_due(c);
}

void conn_heard(struct conn *c)
{
    if (c->table->draining && c->state == CONN_READING)
        arm_due(c);
}

void conn_handed(struct conn *c)
{
    if (move(c, CONN_BUSY))
        timer_cancel(&c->deadline);
}

void conn_sends(struct conn *c)
{
    if (!move(c, CONN_SENDING))
        return;
    c->due_ms = loop_now_ms(c->table->loop) + c->table->idle_ms;
    arm_due(c);
}

void conn_streams(struct conn *c, bool rests)
{
    loop_fd_del(&c->gone);
    if (c->state != CONN_STREAM && !move(c, CONN_STREAM))
        return;
    if (!rests) {
        arm(c, c->table->draining ? c->table->stall_ms : c->table->idle_ms);
        return;
    }
    timer_cancel(&c->deadline);
    /* Without memory for it the next portion finds out. */
    (void)!loop_fd_add(c->table->loop, &c->gone, NULL);
}

void conn_ends(struct conn *c)
{
    cut(c, "the end");
}

void conn_rests(struct conn *c)
{
    /* A stream's answer has begun without saying that it is the last. */
    bool last = c->table->draining && c->state == CONN_STREAM;
    if (move(c, CONN_KEPT))
        arm(c, c->table->idle_ms);
    if (last)
        cut(c, "the end");
}

static bool has_unread(const struct conn *c)
{
    char byte;
    return recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

/* The longest in that state that has nothing to say. */
static struct conn *silent(const struct conns *t, enum conn_state state)
{
    const struct conn_link *ring = &t->rings[state];
    for (struct conn_link *l = ring->next; l != ring; l = l->next) {
        struct conn *c = CONTAINER_OF(l, struct conn, link);
        if (!has_unread(c))
            return c;
    }
    return NULL;
}

static uint64_t stalls_ms(const struct conns *t, enum conn_state state)
{
    const struct conn *c = oldest(t, state);
    return c == NULL ? UINT64_MAX : c->since_ms + t->stall_ms;
}

uint64_t conns_room_ms(const struct conns *t)
{
    if (conns_any(t, CONN_FRESH) || conns_any(t, CONN_STREAM) || conns_any(t, CONN_KEPT))
        return loop_now_ms(t->loop);
    return MIN_OF(stalls_ms(t, CONN_READING), stalls_ms(t, CONN_SENDING));
}

bool conns_make_room(struct conns *t)
{
    uint64_t now = loop_now_ms(t->loop);
    struct conn *c = silent(t, CONN_FRESH);
    if (c == NULL && stalls_ms(t, CONN_READING) <= now)
        c = oldest(t, CONN_READING);
    if (c == NULL && stalls_ms(t, CONN_SENDING) <= now)
        c = oldest(t, CONN_SENDING);
    if (c == NULL)
        c = oldest(t, CONN_STREAM);
    if (c == NULL)
        c = silent(t, CONN_KEPT);
    if (c != NULL)
        cut(c, "to make room");
    return c != NULL;
}

void conns_end_kept(struct conns *t)
{
    struct conn *c;
    while ((c = silent(t, CONN_KEPT)) != NULL)
        cut(c, "the end");
}

void conns_drain(struct conns *t)
{
    struct conn *c;
    t->draining = true;
    while ((c = silent(t, CONN_FRESH)) != NULL)
        cut(c, "the end");
    conns_end_kept(t);

    static const enum conn_state due[] = {CONN_READING, CONN_SENDING};

    for (size_t i = 0; i < COUNT_OF(due); i++) {
        const struct conn_link *ring = &t->rings[due[i]];
        for (struct conn_link *l = ring->next; l != ring; l = l->next)
            arm_due(CONTAINER_OF(l, struct conn, link));
    }
}
