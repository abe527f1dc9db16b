/*
 * The server: its socket, its connections, and the requests that arrive on them. nghttp2's
 * callbacks only collect; handle and gone are called from deferred work, so that the owner may do
 * anything with a call but is never called from within nghttp2.
 */
#include "grpc/grpc_server.h"

#include "base/mem.h"
#include "grpc/limit.h"
#include "grpc_call.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define RETRY_MS        100
#define HEADER_OVERHEAD 32 /* of a pair in a header list: RFC 9113, 6.5.2 */

/* ---- headers of a request ---- */

static const struct grpc_method *grpc_server_method(const struct grpc_server *s, struct str path)
{
    for (size_t i = 0; i < s->settings.n_methods; i++) {
        if (str_eq(path, str_of(s->settings.methods[i].path)))
            return &s->settings.methods[i];
    }
    return NULL;
}

static void grpc_server_bad(struct grpc_call *c, enum grpc_status status, const char *why)
{
    if (c->bad == NULL) {
        c->bad = why;
        c->bad_status = status;
    }
}

static void grpc_server_take_header(struct grpc_call *c, struct str name, struct str value)
{
    if (str_eq(name, STR(":path"))) {
        c->method = grpc_server_method(c->server, value);
    } else if (str_eq(name, STR(":method"))) {
        c->post = str_eq(value, STR("POST"));
    } else if (str_eq(name, STR("content-type"))) {
        c->content_type = grpc_text_is_content_type(value);
    } else if (str_eq(name, STR("grpc-timeout"))) {
        if (!grpc_text_read_timeout(value, &c->timeout_ms))
            grpc_server_bad(c, GRPC_INTERNAL, "grpc-timeout is not a number and a unit");
    } else if (str_eq(name, STR("grpc-encoding")) && !str_eq(value, STR("identity"))) {
        grpc_server_bad(c, GRPC_UNIMPLEMENTED, "compressed messages are not supported");
    }
}

/* What nghttp2 does not check, as :authority may be a path: see grpc_session.c. */
static bool grpc_server_is_header(struct grpc_call *c, struct str name, struct str value)
{
    static const struct str pseudo[] = {STR(":method"), STR(":scheme"), STR(":path"),
                                        STR(":authority")};
    bool known = name.n > 0 && name.p[0] != ':';
    for (size_t i = 0; i < COUNT_OF(pseudo) && !known; i++)
        known = str_eq(name, pseudo[i]) && !c->regular; /* these come first */
    c->regular = c->regular || name.n == 0 || name.p[0] != ':';
    return known && nghttp2_check_header_name((const uint8_t *)name.p, name.n) != 0 &&
           nghttp2_check_header_value((const uint8_t *)value.p, value.n) != 0;
}

static int grpc_server_on_header(nghttp2_session *h2, const nghttp2_frame *frame,
                                 const uint8_t *name, size_t name_n, const uint8_t *value,
                                 size_t value_n, uint8_t flags, void *ctx)
{
    struct grpc_call *c = nghttp2_session_get_stream_user_data(h2, frame->hd.stream_id);
    struct str key = {(const char *)name, name_n};
    struct str text = {(const char *)value, value_n};
    (void)flags;
    (void)ctx;
    if (c == NULL || c->state != CALL_COMING || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
        return 0; /* trailers say nothing */
    c->head_bytes += name_n + value_n + HEADER_OVERHEAD;
    if (c->head_bytes > LIMIT_GRPC_HEADERS)
        grpc_server_bad(c, GRPC_RESOURCE_EXHAUSTED, "the headers are too large");
    else if (!grpc_server_is_header(c, key, text))
        c->malformed = true;
    else
        grpc_server_take_header(c, key, text);
    return 0;
}

static int grpc_server_on_begin_headers(nghttp2_session *h2, const nghttp2_frame *frame, void *ctx)
{
    struct grpc_conn *conn = ctx;
    if (frame->headers.cat != NGHTTP2_HCAT_REQUEST)
        return 0;
    struct grpc_call *c = grpc_call_new(conn, frame->hd.stream_id);
    if (c == NULL)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    (void)nghttp2_session_set_stream_user_data(h2, frame->hd.stream_id, c);
    list_remove(&conn->link);
    list_push_back(&conn->server->conns, &conn->link);
    return 0;
}

/* An answer of HTTP alone, for what is no gRPC client. */
static void grpc_server_answer_http(struct grpc_call *c, const char *code)
{
    nghttp2_nv head = {grpc_bytes(":status"), grpc_bytes(code), sizeof(":status") - 1, 3,
                       NGHTTP2_NV_FLAG_NONE};
    struct grpc_session *s = &c->conn->session;
    grpc_session_submitted(s, nghttp2_submit_response(s->h2, c->stream, &head, 1, NULL));
    c->started = c->finished = c->cut = true;
}

static void grpc_server_reset(struct grpc_call *c, uint32_t code)
{
    struct grpc_session *s = &c->conn->session;
    grpc_session_submitted(s, nghttp2_submit_rst_stream(s->h2, NGHTTP2_FLAG_NONE, c->stream, code));
}

static void grpc_server_check_head(struct grpc_call *c)
{
    if (c->malformed) {
        grpc_server_reset(c, NGHTTP2_PROTOCOL_ERROR);
    } else if (!c->post || !c->content_type) {
        grpc_server_answer_http(c, c->post ? "415" : "405");
    } else if (c->bad != NULL) {
        grpc_call_refuse(c, c->bad_status, str_of(c->bad));
    } else if (c->method == NULL) {
        grpc_call_refuse(c, GRPC_UNIMPLEMENTED, STR("unknown method"));
    } else if (c->timeout_ms != UINT64_MAX) {
        timer_arm(c->server->loop, &c->deadline, c->timeout_ms);
    }
    if (c->malformed || !c->post || !c->content_type)
        c->state = CALL_ENDED;
}

/* ---- bodies of requests ---- */

static int grpc_server_on_data(nghttp2_session *h2, uint8_t flags, int32_t stream,
                               const uint8_t *bytes, size_t n, void *ctx)
{
    struct grpc_call *c = nghttp2_session_get_stream_user_data(h2, stream);
    struct err e = ERR_INIT;
    (void)flags;
    (void)ctx;
    if (c == NULL || c->state != CALL_COMING)
        return 0;
    enum grpc_status status = grpc_inbox_feed(&c->in, (struct str){(const char *)bytes, n}, &e);
    if (status != GRPC_OK)
        grpc_call_refuse(c, status, str_of(e.text));
    return 0;
}

static void grpc_server_request_ends(struct grpc_call *c)
{
    struct err e = ERR_INIT;
    enum grpc_status status = grpc_inbox_end(&c->in, &e);
    if (status == GRPC_OK)
        grpc_call_is_ready(c);
    else
        grpc_call_refuse(c, status, str_of(e.text));
}

static int grpc_server_on_frame(nghttp2_session *h2, const nghttp2_frame *frame, void *ctx)
{
    (void)ctx;
    if (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA)
        return 0;
    struct grpc_call *c = nghttp2_session_get_stream_user_data(h2, frame->hd.stream_id);
    if (c == NULL || c->state != CALL_COMING)
        return 0;
    if (frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST)
        grpc_server_check_head(c);
    if (c->state == CALL_COMING && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0)
        grpc_server_request_ends(c);
    return 0;
}

static int grpc_server_on_close(nghttp2_session *h2, int32_t stream, uint32_t code, void *ctx)
{
    struct grpc_call *c = nghttp2_session_get_stream_user_data(h2, stream);
    (void)code;
    (void)ctx;
    if (c != NULL)
        grpc_call_closed(c);
    return 0;
}

/* nghttp2 sends a RST_STREAM before an answer that waits; so it is submitted behind it. */
static int grpc_server_on_sent(nghttp2_session *h2, const nghttp2_frame *frame, void *ctx)
{
    struct grpc_call *c = nghttp2_session_get_stream_user_data(h2, frame->hd.stream_id);
    (void)ctx;
    if (c != NULL && c->cut && frame->hd.type == NGHTTP2_HEADERS) {
        c->cut = false;
        grpc_server_reset(c, NGHTTP2_NO_ERROR);
    }
    return 0;
}

static void grpc_server_set(nghttp2_session_callbacks *cbs)
{
    nghttp2_session_callbacks_set_on_begin_headers_callback(cbs, grpc_server_on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(cbs, grpc_server_on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cbs, grpc_server_on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(cbs, grpc_server_on_frame);
    nghttp2_session_callbacks_set_on_frame_send_callback(cbs, grpc_server_on_sent);
    nghttp2_session_callbacks_set_on_stream_close_callback(cbs, grpc_server_on_close);
}

/* ---- connections ---- */

static void grpc_server_accept_again(struct grpc_server *s)
{
    if (loop_fd_set(&s->listener, EPOLLIN) != OK)
        timer_arm(s->loop, &s->retry, RETRY_MS);
}

static void grpc_server_end_conn(struct grpc_conn *c)
{
    grpc_session_stop(&c->session);
    LIST_FOR_EACH (struct grpc_call, call, &c->calls, link)
        grpc_call_closed(call);
    list_remove(&c->link);
    c->server->n_conns--;
    mem_free(c);
}

static void grpc_server_lost(struct grpc_session *session, const char *why)
{
    (void)why; /* the client of the connection says what it asked for */
    grpc_server_end_conn(CONTAINER_OF(session, struct grpc_conn, session));
}

/* Ends the connection without calls whose last call is the oldest; false: all have calls. */
static bool grpc_server_make_room(struct grpc_server *s)
{
    LIST_FOR_EACH (struct grpc_conn, c, &s->conns, link) {
        if (list_is_empty(&c->calls)) {
            grpc_server_end_conn(c);
            return true;
        }
    }
    return false;
}

static void grpc_server_adopt(struct grpc_server *s, int fd)
{
    bool room = s->n_conns < LIMIT_GRPC_CONNECTIONS || grpc_server_make_room(s);
    struct grpc_conn *c = room ? mem_alloc(sizeof(*c)) : NULL;
    if (c == NULL) {
        (void)close(fd);
        return;
    }
    *c = (struct grpc_conn){.server = s, .session = {.lost = grpc_server_lost}};
    list_init(&c->calls);
    if (grpc_session_start(&c->session, s->loop, fd, true, grpc_server_set, c, NULL) != OK) {
        mem_free(c);
        return;
    }
    list_push_back(&s->conns, &c->link);
    s->n_conns++;
}

static void grpc_server_accept(struct loop_fd *f, uint32_t events)
{
    struct grpc_server *s = CONTAINER_OF(f, struct grpc_server, listener);
    (void)events;
    struct sockaddr from;
    socklen_t from_size = sizeof(from);
    int fd = accept4(f->fd, &from, &from_size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
        grpc_server_adopt(s, fd);
        return;
    }
    bool shortage = errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS;
    if (!shortage || (s->n_conns > 0 && grpc_server_make_room(s)))
        return;
    /* The listening socket stays ready: the loop would spin. */
    if (loop_fd_set(&s->listener, 0) == OK)
        timer_arm(s->loop, &s->retry, RETRY_MS);
}

static void grpc_server_retry(struct timer *t)
{
    grpc_server_accept_again(CONTAINER_OF(t, struct grpc_server, retry));
}

/* ---- the owner ---- */

static void grpc_server_handle(struct grpc_server *s, struct grpc_call *c)
{
    list_remove(&c->queue);
    c->state = CALL_HELD;
    c->method->handle(s->settings.ctx, c, buf_str(&c->in.message));
    grpc_inbox_done(&c->in);
}

static void grpc_server_tell_gone(struct grpc_server *s, struct grpc_call *c)
{
    list_remove(&c->queue);
    s->settings.gone(s->settings.ctx, c);
    c->state = CALL_ENDED;
    grpc_call_drop(c);
}

static void grpc_server_work(struct deferred *d)
{
    struct grpc_server *s = CONTAINER_OF(d, struct grpc_server, work);
    s->calling = true;
    /* gone first: the owner forgets an old stream before it gets a new one. */
    while (!list_is_empty(&s->lost))
        grpc_server_tell_gone(s, LIST_FIRST(&s->lost, struct grpc_call, queue));
    while (!list_is_empty(&s->ready))
        grpc_server_handle(s, LIST_FIRST(&s->ready, struct grpc_call, queue));
    s->calling = false;
}

enum errc grpc_server_new(struct loop *l, const struct grpc_server_settings *settings,
                          struct grpc_server **ret, struct err *reterr)
{
    int fd = -1;
    struct grpc_server *s = mem_alloc(sizeof(*s));
    if (s == NULL)
        return err_set(reterr, ERR_NOMEM, "no memory for a gRPC server");
    s->loop = l;
    s->settings = *settings;
    s->settings.socket = NULL;
    if (s->settings.max_message == 0)
        s->settings.max_message = LIMIT_GRPC_MESSAGE;
    if (s->settings.max_unsent == 0)
        s->settings.max_unsent = LIMIT_GRPC_UNSENT;
    s->work.run = grpc_server_work;
    s->retry.fire = grpc_server_retry;
    s->received.max = LIMIT_GRPC_RECEIVED;
    s->unsent.max = LIMIT_GRPC_UNSENT_ALL;
    bool joined = mem_account_join(&s->received_account, &s->received, 0) &&
                  mem_account_join(&s->unsent_account, &s->unsent, 0);
    assert(joined);
    list_init(&s->conns);
    list_init(&s->ready);
    list_init(&s->lost);
    enum errc code = grpc_socket_listen(settings->socket, &s->file, &fd, reterr);
    s->listener = (struct loop_fd){.fd = fd, .events = EPOLLIN, .ready = grpc_server_accept};
    if (code == OK)
        code = loop_fd_add(l, &s->listener, reterr);
    if (code != OK)
        (void)grpc_server_free(s);
    else
        *ret = s;
    return code;
}

void grpc_server_hang_up(struct grpc_server *s)
{
    assert(!s->calling);
    while (!list_is_empty(&s->conns))
        grpc_server_end_conn(LIST_FIRST(&s->conns, struct grpc_conn, link));
    assert(list_is_empty(&s->ready));
    deferred_cancel(&s->work);
    grpc_server_work(&s->work);
}

static void grpc_server_forget(struct list *calls)
{
    LIST_FOR_EACH (struct grpc_call, c, calls, queue) {
        list_remove(&c->queue);
        c->state = CALL_ENDED;
        grpc_call_drop(c);
    }
}

struct grpc_server *grpc_server_free(struct grpc_server *s)
{
    if (s == NULL)
        return NULL;
    assert(!s->calling);
    s->settings.gone = NULL;
    grpc_server_forget(&s->lost);
    while (!list_is_empty(&s->conns))
        grpc_server_end_conn(LIST_FIRST(&s->conns, struct grpc_conn, link));
    assert(list_is_empty(&s->ready) && list_is_empty(&s->lost));
    deferred_cancel(&s->work);
    timer_cancel(&s->retry);
    loop_fd_del(&s->listener);
    if (s->listener.fd >= 0) {
        grpc_socket_remove(&s->file);
        (void)close(s->listener.fd);
    }
    mem_free(s);
    return NULL;
}

bool grpc_server_is_reachable(const struct grpc_server *s)
{
    return grpc_socket_is_there(&s->file);
}
