/*
 * The client: one connection for new requests, and older ones, which the server has announced to
 * close (GOAWAY) while they still have requests. A stream outlives its request if that was canceled
 * or has ended early. on_done is called from deferred work only.
 */
#include "grpc/grpc_client.h"

#include "base/mem.h"
#include "grpc/limit.h"
#include "grpc_session.h"
#include "grpc_socket.h"
#include "grpc_text.h"

#define USER_AGENT      "cardpack/" CARDPACK_VERSION
#define HEADER_OVERHEAD 32
#define HTTP_DIGITS     3

struct grpc_client {
    struct loop *loop;
    struct sockaddr_un address;
    struct list conns;
    struct grpc_client_conn *current; /* for new requests; NULL: connect first */
    struct list done;                 /* requests that wait for on_done */
    struct deferred work;
    bool calling;
};

struct grpc_client_conn {
    struct grpc_client *client;
    struct grpc_session session;
    struct list streams;
    struct list_link link;
};

struct grpc_stream {
    struct grpc_client_conn *conn;
    struct grpc_request *request; /* NULL: canceled, or ended */
    int32_t id;
    struct buf out; /* the framed message */
    size_t sent;
    struct timer deadline;

    size_t head_bytes;
    uint64_t http_status;
    bool content_type;
    bool has_status;
    uint64_t status;
    struct buf text; /* grpc-message, decoded */
    struct grpc_inbox in;
    struct list_link link;
};

/* ---- the end of a request ---- */

static void grpc_client_drop_stream(struct grpc_stream *s)
{
    timer_cancel(&s->deadline);
    s->conn->session.unsent -= s->out.n - s->sent;
    list_remove(&s->link);
    grpc_inbox_done(&s->in);
    buf_done(&s->out);
    buf_done(&s->text);
    mem_free(s);
}

/* on_done comes at the end of the turn. */
static void grpc_client_finish(struct grpc_request *r, enum errc code, const char *why)
{
    struct grpc_client *c = r->client;
    struct grpc_stream *s = r->stream;
    if (s != NULL) {
        timer_cancel(&s->deadline);
        s->request = NULL;
    }
    r->stream = NULL;
    r->result = code;
    if (code != OK)
        (void)err_set(&r->err, code, "%s on %s: %s", r->path, c->address.sun_path, why);
    list_push_back(&c->done, &r->link);
    loop_defer(c->loop, &c->work);
}

static void grpc_client_reset(struct grpc_stream *s)
{
    struct grpc_session *h = &s->conn->session;
    grpc_session_submitted(
        h, nghttp2_submit_rst_stream(h->h2, NGHTTP2_FLAG_NONE, s->id, NGHTTP2_CANCEL));
}

/* Ends the request before its stream has ended. */
static void grpc_client_abort(struct grpc_stream *s, enum errc code, const char *why)
{
    grpc_client_finish(s->request, code, why);
    grpc_client_reset(s);
}

static void grpc_client_deadline(struct timer *t)
{
    grpc_client_abort(CONTAINER_OF(t, struct grpc_stream, deadline), ERR_TIMEOUT,
                      "no answer within the deadline");
}

/* The server has answered with a status. */
static void grpc_client_answered(struct grpc_stream *s)
{
    struct grpc_request *r = s->request;
    struct err e = ERR_INIT;
    r->answered = true;
    r->status = s->status > GRPC_UNAUTHENTICATED ? GRPC_UNKNOWN : (enum grpc_status)s->status;
    if (r->status != GRPC_OK) {
        struct str text = buf_str(&s->text);
        (void)err_set(&e, grpc_status_errc(r->status), "%s%s%.*s", grpc_status_name(r->status),
                      text.n > 0 ? ": " : "", STR_ARG(text));
    } else if (grpc_inbox_end(&s->in, &e) == GRPC_OK) {
        r->reply = s->in.message;
        r->reply.account = NULL;
        buf_init(&s->in.message, 0);
    }
    grpc_client_finish(r, e.code, e.text);
}

static void grpc_client_no_answer(struct grpc_stream *s)
{
    char why[64];
    struct buf text = BUF_ON(why);
    enum errc code = ERR_SYNTAX;
    if (s->http_status != 200) {
        buf_printf(&text, "HTTP status %u instead of a gRPC answer", (unsigned)s->http_status);
        code = s->http_status >= 500 || s->http_status == 429 ? ERR_UNAVAILABLE : ERR_SYNTAX;
    } else if (!s->content_type) {
        buf_put(&text, STR("an answer that is not gRPC"));
    } else {
        buf_put(&text, STR("an answer without grpc-status"));
    }
    grpc_client_finish(s->request, code, buf_cstr(&text));
}

/* The server has ended its side of the stream. */
static void grpc_client_stream_ends(struct grpc_stream *s)
{
    if (s->has_status && s->http_status == 200 && s->content_type)
        grpc_client_answered(s);
    else
        grpc_client_no_answer(s);
}

/* ---- nghttp2's callbacks ---- */

static struct grpc_stream *grpc_client_stream(nghttp2_session *h2, int32_t id)
{
    struct grpc_stream *s = nghttp2_session_get_stream_user_data(h2, id);
    return s == NULL || s->request == NULL ? NULL : s;
}

static void grpc_client_take_header(struct grpc_stream *s, struct str name, struct str value)
{
    if (str_eq(name, STR(":status"))) {
        if (value.n != HTTP_DIGITS || !str_to_u64(value, 999, &s->http_status))
            s->http_status = 0;
    } else if (str_eq(name, STR("content-type"))) {
        s->content_type = grpc_text_is_content_type(value);
    } else if (str_eq(name, STR("grpc-status"))) {
        s->has_status = str_to_u64(value, UINT32_MAX, &s->status);
    } else if (str_eq(name, STR("grpc-message"))) {
        buf_clear(&s->text, LIMIT_GRPC_TEXT);
        grpc_text_decode(&s->text, str_head(value, LIMIT_GRPC_TEXT));
    }
}

static int grpc_client_on_header(nghttp2_session *h2, const nghttp2_frame *frame,
                                 const uint8_t *name, size_t name_n, const uint8_t *value,
                                 size_t value_n, uint8_t flags, void *ctx)
{
    struct grpc_stream *s = grpc_client_stream(h2, frame->hd.stream_id);
    (void)flags;
    (void)ctx;
    if (s == NULL || frame->hd.type != NGHTTP2_HEADERS)
        return 0;
    s->head_bytes += name_n + value_n + HEADER_OVERHEAD;
    if (s->head_bytes > LIMIT_GRPC_HEADERS)
        grpc_client_abort(s, ERR_LIMIT, "the headers of the answer are too large");
    else
        grpc_client_take_header(s, (struct str){(const char *)name, name_n},
                                (struct str){(const char *)value, value_n});
    return 0;
}

static int grpc_client_on_data(nghttp2_session *h2, uint8_t flags, int32_t stream,
                               const uint8_t *bytes, size_t n, void *ctx)
{
    struct grpc_stream *s = grpc_client_stream(h2, stream);
    struct err e = ERR_INIT;
    (void)flags;
    (void)ctx;
    if (s == NULL || s->http_status != 200 || !s->content_type)
        return 0; /* the body of an error of HTTP */
    if (grpc_inbox_feed(&s->in, (struct str){(const char *)bytes, n}, &e) != GRPC_OK)
        grpc_client_abort(s, e.code, e.text);
    return 0;
}

static int grpc_client_on_frame(nghttp2_session *h2, const nghttp2_frame *frame, void *ctx)
{
    struct grpc_client_conn *c = ctx;
    bool may_end = frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA;
    if (frame->hd.type == NGHTTP2_GOAWAY && c->client->current == c)
        c->client->current = NULL;
    if (!may_end || (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) == 0)
        return 0;
    struct grpc_stream *s = grpc_client_stream(h2, frame->hd.stream_id);
    if (s == NULL)
        return 0;
    bool open = s->sent < s->out.n;
    grpc_client_stream_ends(s);
    if (open)
        grpc_client_reset(s); /* the server has answered before it read the message */
    return 0;
}

static int grpc_client_on_close(nghttp2_session *h2, int32_t id, uint32_t code, void *ctx)
{
    struct grpc_stream *s = nghttp2_session_get_stream_user_data(h2, id);
    char why[96];
    struct buf text = BUF_ON(why);
    (void)ctx;
    if (s == NULL)
        return 0;
    buf_printf(&text, "the server reset the request (%s)", nghttp2_http2_strerror(code));
    if (s->request != NULL)
        grpc_client_finish(s->request, ERR_UNAVAILABLE, buf_cstr(&text));
    grpc_client_drop_stream(s);
    return 0;
}

static void grpc_client_set(nghttp2_session_callbacks *cbs)
{
    nghttp2_session_callbacks_set_on_header_callback(cbs, grpc_client_on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cbs, grpc_client_on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(cbs, grpc_client_on_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(cbs, grpc_client_on_close);
}

static ssize_t grpc_client_take(nghttp2_session *h2, int32_t stream, uint8_t *to, size_t max,
                                uint32_t *flags, nghttp2_data_source *source, void *ctx)
{
    struct grpc_stream *s = source->ptr;
    size_t n = MIN_OF(max, s->out.n - s->sent);
    (void)h2;
    (void)stream;
    (void)ctx;
    memcpy(to, s->out.p + s->sent, n);
    s->sent += n;
    s->conn->session.unsent -= n;
    s->conn->session.consumed += n;
    if (s->sent == s->out.n)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)n;
}

/* ---- the connection ---- */

static void grpc_client_lost(struct grpc_session *session, const char *cause)
{
    struct grpc_client_conn *c = CONTAINER_OF(session, struct grpc_client_conn, session);
    char why[128];
    struct buf text = BUF_ON(why);
    buf_printf(&text, "the connection was lost: %.80s", cause);
    if (c->client->current == c)
        c->client->current = NULL;
    grpc_session_stop(session);
    LIST_FOR_EACH (struct grpc_stream, s, &c->streams, link) {
        if (s->request != NULL)
            grpc_client_finish(s->request, ERR_UNAVAILABLE, buf_cstr(&text));
        grpc_client_drop_stream(s);
    }
    list_remove(&c->link);
    mem_free(c);
}

static enum errc grpc_client_connect(struct grpc_client *client, struct err *reterr)
{
    int fd = -1;
    if (client->current != NULL)
        return OK;
    struct grpc_client_conn *c = mem_alloc(sizeof(*c));
    if (c == NULL)
        return err_set(reterr, ERR_NOMEM, "no memory for a connection");
    c->client = client;
    c->session.lost = grpc_client_lost;
    list_init(&c->streams);
    enum errc code = grpc_socket_connect(&client->address, &fd, reterr);
    if (code == OK)
        code = grpc_session_start(&c->session, client->loop, fd, false, grpc_client_set, c, reterr);
    if (code != OK) {
        mem_free(c);
        return code;
    }
    list_push_back(&client->conns, &c->link);
    client->current = c;
    return OK;
}

/* ---- requests ---- */

/* A header; it is copied by nghttp2. */
static nghttp2_nv grpc_client_header(struct str name, struct str value)
{
    return (nghttp2_nv){grpc_bytes(name.p), grpc_bytes(value.p), name.n, value.n,
                        NGHTTP2_NV_FLAG_NONE};
}

static int32_t grpc_client_submit(struct grpc_stream *s, const char *path, uint64_t timeout_ms)
{
    char digits[32];
    struct buf timeout = BUF_ON(digits);
    grpc_text_put_timeout(&timeout, timeout_ms);
    const nghttp2_nv head[] = {
        grpc_client_header(STR(":method"), STR("POST")),
        grpc_client_header(STR(":scheme"), STR("http")),
        grpc_client_header(STR(":path"), str_of(path)),
        grpc_client_header(STR(":authority"), STR("localhost")),
        grpc_client_header(STR("content-type"), STR("application/grpc")),
        grpc_client_header(STR("user-agent"), STR(USER_AGENT)),
        grpc_client_header(STR("te"), STR("trailers")),
        grpc_client_header(STR("grpc-timeout"), buf_str(&timeout)),
    };
    nghttp2_data_provider provider = {.source = {.ptr = s}, .read_callback = grpc_client_take};
    return nghttp2_submit_request(s->conn->session.h2, NULL, head, COUNT_OF(head), &provider, s);
}

static enum errc grpc_client_open(struct grpc_client_conn *c, struct grpc_request *r,
                                  struct err *reterr)
{
    struct grpc_stream *s = mem_alloc(sizeof(*s));
    if (s == NULL)
        return err_set(reterr, ERR_NOMEM, "no memory for a request");
    uint64_t timeout_ms = r->timeout_ms == 0 ? LIMIT_GRPC_REQUEST_MS : r->timeout_ms;
    s->conn = c;
    s->deadline.fire = grpc_client_deadline;
    buf_init(&s->text, LIMIT_GRPC_TEXT);
    buf_init(&s->out, GRPC_PREFIX_BYTES + r->message.n);
    grpc_inbox_init(&s->in, r->max_reply == 0 ? LIMIT_GRPC_REPLY : r->max_reply, NULL);
    list_push_back(&c->streams, &s->link);
    grpc_text_put_message(&s->out, r->message);
    c->session.unsent += s->out.n;
    s->id = buf_failed(&s->out) ? NGHTTP2_ERR_NOMEM : grpc_client_submit(s, r->path, timeout_ms);
    if (s->id < 0) {
        int id = s->id;
        grpc_client_drop_stream(s);
        return err_set(reterr, id == NGHTTP2_ERR_NOMEM ? ERR_NOMEM : ERR_UNAVAILABLE,
                       "cannot send the request: %s", nghttp2_strerror(id));
    }
    s->request = r;
    r->stream = s;
    timer_arm(c->client->loop, &s->deadline, timeout_ms);
    grpc_session_wake(&c->session);
    return OK;
}

void grpc_request_start(struct grpc_client *c, struct grpc_request *r)
{
    struct err e = ERR_INIT;
    assert(r->client == NULL && r->on_done != NULL);
    buf_done(&r->reply);
    r->client = c;
    r->stream = NULL;
    r->answered = false;
    r->status = GRPC_OK;
    r->err = ERR_INIT;
    enum errc code = grpc_client_connect(c, &e);
    if (code == OK)
        code = grpc_client_open(c->current, r, &e);
    if (code != OK)
        grpc_client_finish(r, code, e.text);
}

void grpc_request_cancel(struct grpc_request *r)
{
    struct grpc_stream *s = r->stream;
    if (r->client == NULL)
        return;
    if (s != NULL) {
        timer_cancel(&s->deadline);
        s->request = NULL;
        grpc_client_reset(s);
    } else {
        list_remove(&r->link);
    }
    r->stream = NULL;
    r->client = NULL;
}

void grpc_request_done(struct grpc_request *r)
{
    assert(r->client == NULL);
    buf_done(&r->reply);
}

static void grpc_client_work(struct deferred *d)
{
    struct grpc_client *c = CONTAINER_OF(d, struct grpc_client, work);
    struct list done;
    list_init(&done);
    /* A request that on_done starts again, and that fails at once, waits for the next round. */
    list_move(&done, &c->done);
    c->calling = true;
    while (!list_is_empty(&done)) {
        struct grpc_request *r = LIST_FIRST(&done, struct grpc_request, link);
        list_remove(&r->link);
        r->client = NULL;
        r->on_done(r);
    }
    c->calling = false;
}

enum errc grpc_client_new(struct loop *l, const char *socket, struct grpc_client **ret,
                          struct err *reterr)
{
    struct sockaddr_un address;
    enum errc code = grpc_socket_address(socket, &address, reterr);
    if (code != OK)
        return code;
    struct grpc_client *c = mem_alloc(sizeof(*c));
    if (c == NULL)
        return err_set(reterr, ERR_NOMEM, "no memory for a gRPC client");
    c->loop = l;
    c->address = address;
    c->work.run = grpc_client_work;
    list_init(&c->conns);
    list_init(&c->done);
    *ret = c;
    return OK;
}

static void grpc_client_end_conn(struct grpc_client_conn *c)
{
    LIST_FOR_EACH (struct grpc_stream, s, &c->streams, link) {
        if (s->request != NULL)
            grpc_request_cancel(s->request);
    }
    grpc_client_lost(&c->session, "the client has ended");
}

struct grpc_client *grpc_client_free(struct grpc_client *c)
{
    if (c == NULL)
        return NULL;
    assert(!c->calling);
    while (!list_is_empty(&c->done))
        grpc_request_cancel(LIST_FIRST(&c->done, struct grpc_request, link));
    while (!list_is_empty(&c->conns))
        grpc_client_end_conn(LIST_FIRST(&c->conns, struct grpc_client_conn, link));
    deferred_cancel(&c->work);
    mem_free(c);
    return NULL;
}
