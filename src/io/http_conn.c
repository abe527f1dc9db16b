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

static void http_conn_deadline_fire(struct timer *t);

void conns_init(struct conns *t, struct loop *l)
{
    t->loop = l;
    for (size_t i = 0; i < CONN_STATES; i++)
        list_init(&t->in[i]);
    list_init(&t->awake);
    list_init(&t->ended);
}

static struct conn *http_conn_oldest(const struct conns *t, enum conn_state state)
{
    return LIST_FIRST(&t->in[state], struct conn, link);
}

bool conns_any(const struct conns *t, enum conn_state state)
{
    return http_conn_oldest(t, state) != NULL;
}

static void http_conn_enter(struct conn *c, enum conn_state state)
{
    assert((unsigned)state < CONN_STATES);
    c->state = state;
    c->since_ms = loop_now_ms(c->table->loop);
    list_push_back(&c->table->in[state], &c->link);
}

/* False: the connection was cut; libmicrohttpd will close it. */
static bool http_conn_move(struct conn *c, enum conn_state state)
{
    if (c->state == CONN_CUT)
        return false;
    list_remove(&c->link);
    http_conn_enter(c, state);
    return true;
}

static void http_conn_arm(struct conn *c, uint64_t ms)
{
    timer_arm(c->table->loop, &c->deadline, ms);
}

static uint64_t http_conn_acknowledged(const struct conn *c)
{
    struct tcp_info info = {.tcpi_bytes_acked = 0};
    socklen_t n = sizeof(info);
    return getsockopt(c->fd, IPPROTO_TCP, TCP_INFO, &info, &n) == 0 ? info.tcpi_bytes_acked : 0;
}

/*
 * Arms the deadline of a request or an answer. While the server drains, the deadline is at most
 * stall_ms without progress.
 */
static void http_conn_arm_due(struct conn *c)
{
    assert(c->state != CONN_CUT);
    uint64_t now = loop_now_ms(c->table->loop);
    uint64_t left = c->due_ms > now ? c->due_ms - now : 0;
    if (c->table->draining && c->state == CONN_SENDING)
        c->acked = http_conn_acknowledged(c);
    http_conn_arm(c, c->table->draining ? MIN_OF(left, c->table->stall_ms) : left);
}

static void http_conn_cut(struct conn *c, const char *why)
{
    if (!http_conn_move(c, CONN_CUT))
        return;
    log_debug("a connection is cut", kv_int("fd", c->fd), kv_cstr("why", why));
    timer_cancel(&c->deadline);
    (void)shutdown(c->fd, SHUT_RDWR);
}

static void http_conn_deadline_fire(struct timer *t)
{
    struct conn *c = CONTAINER_OF(t, struct conn, deadline);
    assert(c->state != CONN_CUT && c->state != CONN_BUSY);
    bool due = loop_now_ms(c->table->loop) >= c->due_ms;
    if (c->state == CONN_SENDING && !due && http_conn_acknowledged(c) != c->acked)
        http_conn_arm_due(c);
    else
        http_conn_cut(c, "too slow");
}

static void http_conn_peer_ended(struct loop_fd *f, uint32_t events)
{
    struct conn *c = CONTAINER_OF(f, struct conn, gone);
    assert(c->watch);
    (void)events;
    loop_fd_del(f); /* else every turn reports it again */
    list_push_back(&c->table->ended, &c->ended);
}

static void http_conn_watch_end(struct conn *c)
{
    if (!c->watch || c->gone.loop != NULL || list_is_linked(&c->ended))
        return;
    c->gone.ready = http_conn_peer_ended;
    /* If the add fails for want of memory, the deadline ends the connection. */
    (void)!loop_fd_add(c->table->loop, &c->gone, NULL);
}

struct conn *conn_open(struct conns *t, int fd, bool watch)
{
    assert(fd >= 0 && t->request_ms > 0 && t->idle_ms > 0 && t->stall_ms > 0);
    struct conn *c = mem_alloc(sizeof(*c));
    if (c == NULL)
        return NULL;
    c->table = t;
    c->fd = fd;
    c->deadline.fire = http_conn_deadline_fire;
    c->gone = (struct loop_fd){.fd = fd, .events = EPOLLRDHUP};
    c->due_ms = loop_now_ms(t->loop) + t->request_ms;
    t->n++;
    http_conn_enter(c, CONN_FRESH);
    http_conn_arm_due(c);
    c->watch = watch;
    http_conn_watch_end(c);
    return c;
}

void conn_close(struct conn *c)
{
    if (c == NULL)
        return;
    assert(c->table->n > 0);
    assert(c->parked.loop == NULL && !list_is_linked(&c->awake)); /* after handshake_end */
    timer_cancel(&c->deadline);
    loop_fd_del(&c->gone);
    tls_peer_end(&c->tls);
    list_remove(&c->link);
    if (list_is_linked(&c->ended))
        list_remove(&c->ended);
    c->table->n--;
    mem_free(c);
}

void conn_reads(struct conn *c, const struct mem_account *a)
{
    assert(a != NULL);
    c->account = a;
    c->moved_ms = loop_now_ms(c->table->loop);
    if (c->state == CONN_KEPT) /* a first request's time starts at the accept */
        c->due_ms = loop_now_ms(c->table->loop) + c->table->request_ms;
    if (http_conn_move(c, CONN_READING))
        http_conn_arm_due(c);
}

void conn_heard(struct conn *c)
{
    assert(c->account != NULL);
    c->moved_ms = loop_now_ms(c->table->loop);
    if (c->table->draining && c->state == CONN_READING)
        http_conn_arm_due(c);
}

void conn_handed(struct conn *c)
{
    assert(c->account != NULL);
    if (http_conn_move(c, CONN_BUSY))
        timer_cancel(&c->deadline);
}

void conn_sends(struct conn *c)
{
    assert(c->state == CONN_BUSY || c->state == CONN_CUT);
    if (!http_conn_move(c, CONN_SENDING))
        return;
    c->moved_ms = loop_now_ms(c->table->loop);
    c->moved = 0;
    c->due_ms = c->moved_ms + c->table->idle_ms;
    http_conn_arm_due(c);
}

void conn_streams(struct conn *c, bool rests)
{
    assert(c->state == CONN_SENDING || c->state == CONN_STREAM || c->state == CONN_CUT);
    loop_fd_del(&c->gone);
    if (c->state != CONN_STREAM && !http_conn_move(c, CONN_STREAM))
        return;
    if (!rests) {
        http_conn_arm(c, c->table->draining ? c->table->stall_ms : c->table->idle_ms);
        return;
    }
    timer_cancel(&c->deadline);
    /* If the add fails for want of memory, sending the next portion detects the end. */
    (void)!loop_fd_add(c->table->loop, &c->gone, NULL);
}

void conn_ends(struct conn *c)
{
    http_conn_cut(c, "the end");
}

void conn_rests(struct conn *c)
{
    /* The headers of this stream's answer were sent without "Connection: close". */
    bool last = c->table->draining && c->state == CONN_STREAM;
    c->account = NULL;
    if (http_conn_move(c, CONN_KEPT))
        http_conn_arm(c, c->table->idle_ms);
    http_conn_watch_end(c); /* a stream removes this watch */
    if (last)
        http_conn_cut(c, "the end");
}

static bool http_conn_has_unread(const struct conn *c)
{
    char byte;
    return recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

/* The oldest connection in that state without unread bytes. */
static struct conn *http_conn_silent(const struct conns *t, enum conn_state state)
{
    LIST_FOR_EACH (struct conn, c, &t->in[state], link) {
        if (!http_conn_has_unread(c))
            return c;
    }
    return NULL;
}

void conns_end_cut_off(struct conns *t)
{
    LIST_FOR_EACH (struct conn, c, &t->ended, ended) {
        bool asks = c->state == CONN_BUSY || c->state == CONN_SENDING || c->state == CONN_STREAM;
        if (!asks && !http_conn_has_unread(c))
            http_conn_cut(c, "its peer has ended");
    }
}

/* Whether no byte has moved for stall_ms. Answer bytes are only measured in this call. */
static bool http_conn_has_stalled(struct conn *c)
{
    assert(c->state == CONN_READING || c->state == CONN_SENDING);
    uint64_t now = loop_now_ms(c->table->loop);
    uint64_t moved = c->state == CONN_READING ? c->moved : http_conn_acknowledged(c);
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
        LIST_FOR_EACH (struct conn, c, &t->in[states[i]], link) {
            if (c->account != NULL && mem_account_counts(c->account) && http_conn_has_stalled(c))
                http_conn_cut(c, "it has stalled, and others want its memory");
        }
    }
}

static uint64_t http_conn_stalls_ms(const struct conns *t, enum conn_state state)
{
    const struct conn *c = http_conn_oldest(t, state);
    return c == NULL ? UINT64_MAX : c->since_ms + t->stall_ms;
}

uint64_t conns_room_ms(const struct conns *t)
{
    if (conns_any(t, CONN_FRESH) || conns_any(t, CONN_STREAM) || conns_any(t, CONN_KEPT))
        return loop_now_ms(t->loop);
    return MIN_OF(http_conn_stalls_ms(t, CONN_READING), http_conn_stalls_ms(t, CONN_SENDING));
}

bool conns_make_room(struct conns *t)
{
    uint64_t now = loop_now_ms(t->loop);
    struct conn *c = http_conn_silent(t, CONN_FRESH);
    if (c == NULL && http_conn_stalls_ms(t, CONN_READING) <= now)
        c = http_conn_oldest(t, CONN_READING);
    if (c == NULL && http_conn_stalls_ms(t, CONN_SENDING) <= now)
        c = http_conn_oldest(t, CONN_SENDING);
    if (c == NULL)
        c = http_conn_oldest(t, CONN_STREAM);
    if (c == NULL)
        c = http_conn_silent(t, CONN_KEPT);
    if (c != NULL)
        http_conn_cut(c, "to make room");
    return c != NULL;
}

void conns_end_kept(struct conns *t)
{
    struct conn *c;
    assert(t->draining);
    while ((c = http_conn_silent(t, CONN_KEPT)) != NULL)
        http_conn_cut(c, "the end");
}

void conns_drain(struct conns *t)
{
    t->draining = true;
    struct conn *fresh;
    while ((fresh = http_conn_silent(t, CONN_FRESH)) != NULL)
        http_conn_cut(fresh, "the end");
    conns_end_kept(t);

    static const enum conn_state due[] = {CONN_READING, CONN_SENDING};

    for (size_t i = 0; i < COUNT_OF(due); i++) {
        LIST_FOR_EACH (struct conn, c, &t->in[due[i]], link)
            http_conn_arm_due(c);
    }
}
