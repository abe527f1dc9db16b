/*
 * Connects libmicrohttpd in external-epoll mode to the loop. Its epoll set is one descriptor of the
 * loop, and each turn calls MHD_run once. Three things must limit the wait, because no descriptor
 * reports them:
 *   - libmicrohttpd's own next run (MHD_get_timeout, relative milliseconds). Its sockets are
 *     edge-triggered: a pipelined request that is already in a buffer causes no event.
 *   - A resumed connection: MHD_get_timeout of 0.9.75 ignores it, and MHD_USE_ITC has no effect in
 *     this mode.
 *   - A closed connection: at its limit libmicrohttpd does not watch the listening socket, and
 *     watches it again only after its next run.
 *
 * While a handler has a request, the connection is suspended. libmicrohttpd does not watch the peer
 * then: it notices a closed connection when it sends the answer.
 *
 * http_conn.c keeps the deadlines and closes connections to make room. http_accept.c says when: at
 * the connection limit, and when accept finds no descriptor.
 */
#include "io/http_server.h"

#include "base/log.h"
#include "base/mem.h"
#include "http_accept.h"
#include "http_conn.h"
#include "http_handshake.h"
#include "http_request.h"
#include "io/limit.h"

#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define CONN_MEMORY_BYTES \
    (64 * KIB) /* libmicrohttpd's, for each connection; it zeroes them for each request */
#define FREE_TURNS   100
#define FREE_TURN_MS 10
#define ACCEPT_TURNS 100
#define NS_PER_S     1000000000
#define TURN_NS      5000000 /* after this time in a turn, requests that may wait do wait */

struct http_server {
    struct loop *loop;
    struct http_server_settings settings; /* its address is not valid any more */
    struct MHD_Daemon *daemon;
    struct timer recheck; /* checks the clients of streams again */
    struct loop_hook hook;
    uint16_t port;
    struct conns conns;
    struct acceptor acceptor;
    struct exchange_set requests;
    struct http_server_counts own; /* used if the settings have no counts */
    struct http_server_counts *counts;

    uint64_t turn;    /* number of MHD_run calls that the loop has made */
    uint64_t turn_ns; /* when this turn began */
    bool freeing;
    void (*drained)(void *ctx); /* NULL if not draining, and after the call */
    void *drained_ctx;
    struct deferred tell_drained;
};

/* ---- libmicrohttpd's callbacks ---- */

static void http_server_on_refused_handshake(struct tls_peer *p, const char *fault)
{
    struct conn *c = CONTAINER_OF(p, struct conn, tls);
    struct http_server *s = CONTAINER_OF(c->table, struct http_server, conns);
    char text[ADDRESS_TEXT_BYTES];
    listener_peer(c->fd, text);
    s->counts->handshakes++;
    if (s->settings.refused != NULL)
        s->settings.refused(s->settings.admit_ctx, str_of(text), fault);
}

static void http_server_on_connection(void *cls, struct MHD_Connection *mhd, void **socket_context,
                                      enum MHD_ConnectionNotificationCode code)
{
    struct http_server *s = cls;
    struct conn *c = *socket_context;
    if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
        if (c != NULL)
            handshake_end(c);
        conn_close(c);
        s->counts->open = s->conns.n;
        acceptor_room(&s->acceptor);
        return;
    }
    /* NULL if allocation failed: then the handshake fails, or http_server_on_first_line drops the
     * first request. */
    c = conn_open(&s->conns,
                  MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd,
                  s->settings.tls == NULL);
    *socket_context = c;
    s->counts->connections++;
    s->counts->open = s->conns.n;
    if (c == NULL || s->settings.tls == NULL)
        return;
    c->tls.refused = http_server_on_refused_handshake;
    tls_peer_begin(&c->tls, s->settings.tls,
                   MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_GNUTLS_SESSION)->tls_session);
    handshake_begin(c, mhd);
}

static struct conn *http_server_conn_of(struct MHD_Connection *mhd)
{
    return MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

/* Called with the request line: libmicrohttpd's first notice of a request. */
static void *http_server_on_first_line(void *cls, const char *uri, struct MHD_Connection *mhd)
{
    struct http_server *s = cls;
    struct conn *c = http_server_conn_of(mhd);
    struct exchange *r = c == NULL ? NULL : exchange_new(&s->requests, mhd);
    if (r == NULL)
        return NULL;
    r->pub.start_ms = loop_now_ms(s->loop);
    r->pub.start_ns = loop_clock_ns(s->loop);
    http_head_begin(&r->head, uri);
    /* A decoded NUL would end the path early and drop the rest of it. */
    r->nul_in_path = strstr(uri, "%00") != NULL;
    conn_reads(c, &r->account);
    return r;
}

static void http_server_on_completed(void *cls, struct MHD_Connection *mhd, void **context,
                                     enum MHD_RequestTerminationCode code)
{
    struct exchange *r = *context;
    (void)cls;
    (void)code;
    if (r == NULL)
        return;
    *context = NULL;
    conn_rests(http_server_conn_of(mhd));
    exchange_let_go(r, HELD_BY_LIBRARY);
}

static void http_server_handle(struct http_server *s, struct exchange *r, const char *method,
                               const char *path)
{
    const struct http_server_settings *set = &s->settings;
    bool whole = exchange_hand_over(r, method, path);
    assert(r->state == HANDLING);
    if (s->freeing) {
        exchange_respond_text(r, MHD_HTTP_SERVICE_UNAVAILABLE, "shutting down\n");
    } else if (r->refused != 0) {
        s->counts->not_admitted++;
        exchange_respond_refusal(r);
    } else if (r->nul_in_path) {
        exchange_respond_text(r, MHD_HTTP_BAD_REQUEST, "the path contains a NUL\n");
    } else if (!whole) {
        exchange_respond_text(r, MHD_HTTP_SERVICE_UNAVAILABLE, "no memory for the request\n");
    } else if (r->received > set->max_body) {
        set->too_large(set->ctx, &r->pub, r->received);
        assert(r->state == ANSWERED);
    } else {
        set->handle(set->ctx, &r->pub);
    }
}

/*
 * Within one MHD_run libmicrohttpd processes all requests in all connections' buffers. A hundred
 * expensive requests must not delay a scheduler verb. So each connection gets one request a turn.
 * After TURN_NS, requests that may wait do wait. Waiting requests continue in their order of
 * arrival, one a turn.
 */
static bool http_server_must_wait(const struct http_server *s, const struct exchange *r,
                                  const char *method, const char *path)
{
    const struct http_server_settings *set = &s->settings;
    if (r->waited || s->freeing)
        return false;
    assert(!r->waits && !r->suspended);
    if (http_server_conn_of(r->mhd)->served_in == s->turn)
        return true;
    return set->may_wait != NULL && loop_clock_ns(s->loop) - s->turn_ns > TURN_NS &&
           set->may_wait(set->ctx, method, path);
}

/* Returns the status of a refusal; 0: the request is served. */
static unsigned http_server_refusal_of(struct http_server *s, struct exchange *r)
{
    const struct http_server_settings *set = &s->settings;
    if (MHD_get_connection_values(r->mhd, MHD_HEADER_KIND, NULL, NULL) > LIMIT_HEADERS)
        return MHD_HTTP_REQUEST_HEADER_FIELDS_TOO_LARGE;
    if (set->admit == NULL)
        return 0;
    struct http_caller caller = {
        .peer = r->pub.peer,
        .authorization = str_of(
            MHD_lookup_connection_value(r->mhd, MHD_HEADER_KIND, MHD_HTTP_HEADER_AUTHORIZATION)),
        .certificate_fault = tls_peer_fault(&http_server_conn_of(r->mhd)->tls, loop_now_ms(s->loop),
                                            (int64_t)(loop_wall_ns(s->loop) / NS_PER_S)),
    };
    return set->admit(set->admit_ctx, &caller);
}

/*
 * Called when all headers are received. In a bad head the end of the body is unknown, so the server
 * answers at once and reads no more.
 */
static enum MHD_Result http_server_begin(struct http_server *s, struct exchange *r,
                                         const char *path, const char *method, const char *version)
{
    const char *fault = http_head_fault(&r->head, r->mhd, method, version);
    r->state = READING;
    if (fault == NULL) {
        r->refused = http_server_refusal_of(s, r);
        return MHD_YES;
    }
    log_debug("a request with an invalid head", kv_str("peer", r->pub.peer), kv_cstr("why", fault));
    conn_handed(http_server_conn_of(r->mhd));
    (void)exchange_hand_over(r, method, path);
    exchange_respond_bad(r, fault);
    conn_sends(http_server_conn_of(r->mhd));
    return exchange_send(r);
}

static enum MHD_Result http_server_on_access(void *cls, struct MHD_Connection *mhd,
                                             const char *path, const char *method,
                                             const char *version, const char *upload,
                                             size_t *upload_n, void **context)
{
    struct http_server *s = cls;
    struct exchange *r = *context;
    if (r == NULL)
        return MHD_NO;
    if (r->state == STARTED)
        return http_server_begin(s, r, path, method, version);
    if (*upload_n > 0) {
        conn_heard(http_server_conn_of(mhd));
        if (!exchange_add_body(r, (struct str){upload, *upload_n}))
            return MHD_NO;
        *upload_n = 0;
        return MHD_YES;
    }
    if (r->state == READING) {
        conn_handed(http_server_conn_of(mhd));
        if (http_server_must_wait(s, r, method, path)) {
            exchange_wait(r);
            return MHD_YES;
        }
        http_server_conn_of(mhd)->served_in = s->turn;
        http_server_handle(s, r, method, path);
    }
    if (r->state == ANSWERED) {
        conn_sends(http_server_conn_of(mhd));
        return exchange_send(r);
    }
    assert(r->state == HANDLING && !r->suspended);
    MHD_suspend_connection(mhd);
    r->suspended = true;
    return MHD_YES;
}

static void __attribute__((format(printf, 2, 0)))
http_server_on_log(void *cls, const char *fmt, va_list args)
{
    struct http_server *s = cls;
    acceptor_heard(&s->acceptor, fmt);
    if (!log_enabled(LOG_LEVEL_DEBUG))
        return;
    char text[256];
    (void)vsnprintf(text, sizeof(text), fmt, args);
    log_debug("libmicrohttpd", kv_str("text", str_trim(str_of(text))));
}

/* ---- the loop's callbacks ---- */

static uint64_t http_server_prepare(struct loop_hook *h, uint64_t now_ms)
{
    struct http_server *s = CONTAINER_OF(h, struct http_server, hook);
    MHD_UNSIGNED_LONG_LONG relative_ms = 0;
    if (s->requests.run_soon)
        return now_ms;
    if (MHD_get_timeout(s->daemon, &relative_ms) != MHD_YES)
        return UINT64_MAX;
    return relative_ms > UINT64_MAX - now_ms ? UINT64_MAX : now_ms + relative_ms;
}

static bool http_server_is_refused(void *server, struct exchange *r)
{
    return r->mhd != NULL && http_server_refusal_of(server, r) != 0;
}

static void http_server_recheck_streams(struct timer *t)
{
    struct http_server *s = CONTAINER_OF(t, struct http_server, recheck);
    streams_end(&s->requests, http_server_is_refused, s);
}

/* A stream sends no further request at which the server would check its certificate again. */
static void http_server_watch_streams(struct http_server *s)
{
    if (list_is_empty(&s->requests.streams))
        timer_cancel(&s->recheck);
    else if (s->settings.admit != NULL && !timer_armed(&s->recheck))
        timer_arm(s->loop, &s->recheck, s->settings.recheck_ms);
}

static void http_server_check(struct loop_hook *h, uint64_t now_ms)
{
    struct http_server *s = CONTAINER_OF(h, struct http_server, hook);
    s->turn++;
    assert(!s->freeing);
    s->turn_ns = loop_clock_ns(s->loop);
    s->requests.run_soon = false; /* before MHD_run, which may set it again */
    (void)exchange_resume_first(&s->requests);
    (void)MHD_run(s->daemon);
    s->requests.run_soon = s->requests.run_soon || !list_is_empty(&s->requests.waiting);
    conns_end_cut_off(&s->conns);
    if (s->requests.refuses) {
        s->requests.refuses = false;
        conns_end_stalled(&s->conns);
    }
    handshakes_park(&s->conns);
    acceptor_turn(&s->acceptor, now_ms);
    http_server_watch_streams(s);
    if (s->conns.draining)
        conns_end_kept(&s->conns);
    if (s->drained != NULL && s->requests.live == 0)
        loop_defer(s->loop, &s->tell_drained);
}

static void http_server_tell_drained(struct deferred *d)
{
    struct http_server *s = CONTAINER_OF(d, struct http_server, tell_drained);
    void (*drained)(void *ctx) = s->drained;
    if (drained == NULL || s->requests.live > 0)
        return;
    assert(s->conns.draining && s->acceptor.stopped);
    s->drained = NULL;
    drained(s->drained_ctx);
}

/* ---- life ---- */

static struct MHD_Daemon *http_server_daemon_start(struct http_server *s, int fd)
{
    struct MHD_OptionItem tls[] = {
        {MHD_OPTION_HTTPS_CERT_CALLBACK, 0, tls_no_certificate()},
        {MHD_OPTION_END, 0, NULL},
    };
    unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG;
    if (s->settings.tls != NULL)
        flags |= MHD_USE_TLS;
    /* These go through "...": each value must have exactly the right type. */
    return MHD_start_daemon(
        flags, s->port, NULL, NULL, http_server_on_access, s, MHD_OPTION_EXTERNAL_LOGGER,
        http_server_on_log, s, MHD_OPTION_NOTIFY_COMPLETED, http_server_on_completed, s,
        MHD_OPTION_NOTIFY_CONNECTION, http_server_on_connection, s, MHD_OPTION_URI_LOG_CALLBACK,
        http_server_on_first_line, s, MHD_OPTION_LISTEN_SOCKET, (MHD_socket)fd,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)s->settings.max_connections,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)s->settings.idle_seconds,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONN_MEMORY_BYTES, MHD_OPTION_STRICT_FOR_CLIENT,
        http_head_strictness(), MHD_OPTION_ARRAY, s->settings.tls != NULL ? tls : tls + 1,
        MHD_OPTION_END);
}

enum errc http_server_new(struct loop *l, const struct http_server_settings *set,
                          struct http_server **ret, struct err *reterr)
{
    assert(set->handle != NULL && set->too_large != NULL && set->max_connections > 0);
    assert(set->admit == NULL || set->recheck_ms > 0);
    assert(set->request_timeout_ms > 0 && set->idle_seconds > 0 && set->stall_ms > 0);
    int fd = -1;
    enum errc code = listener_open(set->address, set->port, &fd, reterr);
    if (code != OK)
        return code;
    struct http_server *s = mem_alloc(sizeof(*s));
    if (s == NULL) {
        (void)close(fd);
        return err_set(reterr, ERR_NOMEM, "no memory for a server");
    }
    s->loop = l;
    s->settings = *set;
    s->port = listener_port(fd);
    s->turn = 1; /* served_in is 0 for a new connection */
    s->counts = set->counts == NULL ? &s->own : set->counts;
    exchange_set_init(&s->requests, set->max_body);
    s->requests.counts = s->counts;
    s->requests.memory = set->memory;
    s->requests.no_memory = set->no_memory;
    s->requests.answered = set->answered;
    s->requests.ctx = set->ctx;
    s->conns =
        (struct conns){.request_ms = set->request_timeout_ms,
                       .idle_ms = set->idle_seconds * UINT64_C(1000) + set->request_timeout_ms,
                       .stall_ms = set->stall_ms};
    conns_init(&s->conns, l);
    s->acceptor = (struct acceptor){.conns = &s->conns,
                                    .max_connections = set->max_connections,
                                    .run_soon = &s->requests.run_soon};
    s->recheck.fire = http_server_recheck_streams;
    s->tell_drained.run = http_server_tell_drained;
    s->hook = (struct loop_hook){.prepare = http_server_prepare, .check = http_server_check};
    s->daemon = http_server_daemon_start(s, fd);
    if (s->daemon == NULL) {
        (void)close(fd);
        mem_free(s);
        return err_set(reterr, ERR_UNAVAILABLE, "libmicrohttpd does not start");
    }
    code =
        acceptor_start(&s->acceptor, fd,
                       MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd, reterr);
    if (code != OK) {
        MHD_stop_daemon(s->daemon);
        mem_free(s);
        return code;
    }
    loop_hook_add(l, &s->hook);
    *ret = s;
    return OK;
}

uint16_t http_server_port(const struct http_server *s)
{
    return s->port;
}

size_t http_server_active(const struct http_server *s)
{
    return s->requests.active;
}

/* Accepts the connections in the backlog: their clients may have sent requests. */
static void http_server_take_those_in_line(struct http_server *s)
{
    struct pollfd p = {.fd = s->acceptor.waiting.fd, .events = POLLIN};
    for (int turn = 0; turn < ACCEPT_TURNS && poll(&p, 1, 0) > 0; turn++)
        (void)MHD_run(s->daemon);
}

static void http_server_stop_listening(struct http_server *s)
{
    if (s->acceptor.stopped)
        return;
    s->requests.closing = true;
    http_server_take_those_in_line(s);
    acceptor_stop(&s->acceptor);
    MHD_socket fd = MHD_quiesce_daemon(s->daemon);
    if (fd != MHD_INVALID_SOCKET)
        (void)close(fd);
}

void http_server_end_streams(struct http_server *s)
{
    streams_end(&s->requests, NULL, NULL);
}

void http_server_drain(struct http_server *s, void (*done)(void *ctx), void *ctx)
{
    assert(s->drained == NULL && done != NULL);
    assert(!s->freeing);
    http_server_stop_listening(s);
    conns_drain(&s->conns);
    streams_end(&s->requests, NULL, NULL);
    s->requests.run_soon = true;
    s->drained = done;
    s->drained_ctx = ctx;
    loop_defer(s->loop, &s->tell_drained);
}

struct http_server *http_server_free(struct http_server *s)
{
    if (s == NULL)
        return NULL;
    s->freeing = true;
    http_server_stop_listening(s);
    LIST_FOR_EACH (struct exchange, r, &s->requests.handling, link)
        exchange_respond_text(r, MHD_HTTP_SERVICE_UNAVAILABLE, "shutting down\n");
    streams_end(&s->requests, NULL, NULL);
    while (exchange_resume_first(&s->requests))
        ;
    assert(s->requests.active == 0 && list_is_empty(&s->requests.handling));
    handshakes_unpark(&s->conns);
    /* Run at least once: MHD_stop_daemon allows no suspended connection. */
    struct pollfd p = {.fd = s->acceptor.set.fd, .events = POLLIN};
    for (int turn = 0; turn < FREE_TURNS; turn++) {
        (void)MHD_run(s->daemon);
        if (s->requests.unsent == 0)
            break;
        (void)poll(&p, 1, FREE_TURN_MS);
    }
    timer_cancel(&s->recheck);
    acceptor_end(&s->acceptor);
    loop_hook_del(s->loop, &s->hook);
    deferred_cancel(&s->tell_drained);
    MHD_stop_daemon(s->daemon);
    assert(s->conns.n == 0);
    exchange_set_done(&s->requests);
    mem_free(s);
    return NULL;
}
