/*
 * Deadlines of the connections, and the choice of the connection to close when there is no room.
 *
 * libmicrohttpd's timeout is for inactivity: a client that sends a byte every second would keep its
 * connection for ever. So each connection has a timer: request_ms for a whole request, idle_ms
 * between requests. The timer only shuts the socket down; libmicrohttpd notices that and closes the
 * descriptor, which it owns.
 *
 * At its connection limit libmicrohttpd just stops accepting, so a thousand silent connections
 * would block all clients. So a connection is closed when a client waits and there is no room. The
 * order is: a connection without any request; one that stalls in a request; one that does not read
 * its answer; a stream, because a web page reconnects by itself; one that is idle between two
 * requests. An idle kept-alive connection is last because it is probably kube-scheduler's.
 * kube-scheduler reconnects, but it loses a request that it sends at that moment. A connection
 * whose request is in a handler is never closed. A new or idle connection with unread bytes is not
 * closed either: in a rush libmicrohttpd accepts several connections before it reads the first.
 */
#include "http_conn.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/mem_budget.h"

#include <linux/tcp.h> /* netinet/tcp.h of the C library lacks tcpi_bytes_acked */
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
    t->ended.next = t->ended.prev = &t->ended;
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

/* False: the connection was cut; libmicrohttpd will close it. */
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

/*
 * Arms the deadline of a request or an answer. While the server drains, the deadline is at most
 * stall_ms without progress.
 */
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

static void peer_ended(struct loop_fd *f, uint32_t events)
{
    struct conn *c = CONTAINER_OF(f, struct conn, gone);
    (void)events;
    loop_fd_del(f); /* else every turn reports it again */
    link_add(&c->table->ended, &c->ended);
}

static void watch_end(struct conn *c)
{
    if (!c->watch || c->gone.loop != NULL || c->ended.next != NULL)
        return;
    c->gone.ready = peer_ended;
    /* If the add fails for want of memory, the deadline ends the connection. */
    (void)!loop_fd_add(c->table->loop, &c->gone, NULL);
}

struct conn *conn_open(struct conns *t, int fd, bool watch)
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
    c->watch = watch;
    watch_end(c);
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
    if (c->ended.next != NULL)
        link_del(&c->ended);
    c->table->n--;
    mem_free(c);
}

void conn_reads(struct conn *c, const struct mem_account *a)
{
    c->account = a;
    c->moved_ms = loop_now_ms(c->table->loop);
    if (c->state == CONN_KEPT) /* a first request's time starts at the accept */
        c->due_ms = loop_now_ms(c->table->loop) + c->table->request_ms;
    if (move(c, CONN_READING))
        arm_due(c);
}

void conn_heard(struct conn *c)
{
    c->moved_ms = loop_now_ms(c->table->loop);
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
    c->moved_ms = loop_now_ms(c->table->loop);
    c->moved = 0;
    c->due_ms = c->moved_ms + c->table->idle_ms;
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
    /* If the add fails for want of memory, sending the next portion detects the end. */
    (void)!loop_fd_add(c->table->loop, &c->gone, NULL);
}

void conn_ends(struct conn *c)
{
    cut(c, "the end");
}

void conn_rests(struct conn *c)
{
    /* The headers of this stream's answer were sent without "Connection: close". */
    bool last = c->table->draining && c->state == CONN_STREAM;
    c->account = NULL;
    if (move(c, CONN_KEPT))
        arm(c, c->table->idle_ms);
    watch_end(c); /* a stream removes this watch */
    if (last)
        cut(c, "the end");
}

static bool has_unread(const struct conn *c)
{
    char byte;
    return recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

/* The oldest connection in that state without unread bytes. */
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

void conns_end_cut_off(struct conns *t)
{
    struct conn_link *next;
    for (struct conn_link *l = t->ended.next; l != &t->ended; l = next) {
        struct conn *c = CONTAINER_OF(l, struct conn, ended);
        bool asks = c->state == CONN_BUSY || c->state == CONN_SENDING || c->state == CONN_STREAM;
        next = l->next;
        if (!asks && !has_unread(c))
            cut(c, "its peer has ended");
    }
}

/* Whether no byte has moved for stall_ms. Answer bytes are only measured in this call. */
static bool has_stalled(struct conn *c)
{
    uint64_t now = loop_now_ms(c->table->loop);
    uint64_t moved = c->state == CONN_READING ? c->moved : acknowledged(c);
    if (moved != c->moved) {
        c->moved = moved;
        c->moved_ms = now;
    }
    return now >= c->moved_ms + c->table->stall_ms;
}

void conns_end_stalled(struct conns *t)
{
    static const enum conn_state states[] = {CONN_READING, CONN_SENDING};

    for (size_t i = 0; i < COUNT_OF(states); i++) {
        const struct conn_link *ring = &t->rings[states[i]];
        struct conn_link *next;
        for (struct conn_link *l = ring->next; l != ring; l = next) {
            struct conn *c = CONTAINER_OF(l, struct conn, link);
            next = l->next;
            if (c->account != NULL && mem_account_counts(c->account) && has_stalled(c))
                cut(c, "it has stalled, and others want its memory");
        }
    }
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
