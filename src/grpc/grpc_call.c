/*
 * A call: its answer is kept in a buf, from which nghttp2 takes a frame when the client's windows
 * allow one. The owner's calls only append and wake; the bytes leave at the end of the turn.
 *
 * A call has two ends: that of the owner (state) and that of the stream (conn). It is freed when
 * both have ended.
 */
#include "grpc_call.h"

#include "base/mem.h"
#include "grpc/limit.h"

#define SMALL ((size_t)4096) /* a buf of this size is kept while a stream has nothing to send */

#define PAIR(name, value)                                                         \
    {                                                                             \
        grpc_bytes(name), grpc_bytes(value), sizeof(name) - 1, sizeof(value) - 1, \
            NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE          \
    }

/* ---- life ---- */

static void grpc_call_queue(struct grpc_call *c, enum grpc_call_state state, struct list *to)
{
    if (list_is_linked(&c->queue))
        list_remove(&c->queue);
    c->state = state;
    list_push_back(to, &c->queue);
    loop_defer(c->server->loop, &c->server->work);
}

static void grpc_call_forget_out(struct grpc_call *c)
{
    if (c->conn != NULL)
        c->conn->session.unsent -= c->out.n - c->sent;
    buf_clear(&c->out, 0);
    c->sent = 0;
}

void grpc_call_drop(struct grpc_call *c)
{
    if (c->state != CALL_ENDED || c->conn != NULL)
        return;
    assert(!list_is_linked(&c->queue) && !list_is_linked(&c->link));
    timer_cancel(&c->deadline);
    grpc_inbox_done(&c->in);
    buf_done(&c->out);
    buf_done(&c->text);
    mem_free(c);
}

/* The owner has ended it, or never had it. */
static void grpc_call_ended(struct grpc_call *c)
{
    if (list_is_linked(&c->queue))
        list_remove(&c->queue);
    timer_cancel(&c->deadline);
    c->state = CALL_ENDED;
    if (!c->server->calling) /* handle may still read the message */
        grpc_inbox_done(&c->in);
}

static void grpc_call_lose(struct grpc_call *c)
{
    timer_cancel(&c->deadline);
    if (c->state == CALL_HELD && c->server->settings.gone != NULL)
        grpc_call_queue(c, CALL_LOST, &c->server->lost);
    else if (c->state != CALL_LOST)
        grpc_call_ended(c);
}

void grpc_call_closed(struct grpc_call *c)
{
    grpc_call_forget_out(c);
    list_remove(&c->link);
    c->conn = NULL;
    grpc_call_lose(c);
    grpc_call_drop(c);
}

static void grpc_call_reset(struct grpc_call *c, uint32_t code)
{
    struct grpc_session *s = &c->conn->session;
    grpc_session_submitted(s, nghttp2_submit_rst_stream(s->h2, NGHTTP2_FLAG_NONE, c->stream, code));
}

static void grpc_call_deadline(struct timer *t);

struct grpc_call *grpc_call_new(struct grpc_conn *conn, int32_t stream)
{
    struct grpc_call *c = mem_alloc(sizeof(*c));
    if (c == NULL)
        return NULL;
    struct grpc_server *s = conn->server;
    *c = (struct grpc_call){.server = s, .conn = conn, .stream = stream, .timeout_ms = UINT64_MAX};
    c->deadline.fire = grpc_call_deadline;
    grpc_inbox_init(&c->in, s->settings.max_message, &s->received_account);
    buf_init(&c->out, s->settings.max_unsent);
    c->out.account = &s->unsent_account;
    buf_init(&c->text, 3 * LIMIT_GRPC_TEXT);
    list_push_back(&conn->calls, &c->link);
    return c;
}

void grpc_call_is_ready(struct grpc_call *c)
{
    assert(c->state == CALL_COMING);
    grpc_call_queue(c, CALL_READY, &c->server->ready);
}

/* ---- the answer ---- */

static ssize_t grpc_call_finish(struct grpc_call *c, nghttp2_session *h2, uint32_t *flags)
{
    char digits[16];
    struct buf status = BUF_ON(digits);
    buf_put_u64(&status, c->status);
    nghttp2_nv trailers[] = {
        {grpc_bytes("grpc-status"), grpc_bytes(status.p), sizeof("grpc-status") - 1, status.n,
         NGHTTP2_NV_FLAG_NONE},
        {grpc_bytes("grpc-message"), grpc_bytes(c->text.p), sizeof("grpc-message") - 1, c->text.n,
         NGHTTP2_NV_FLAG_NONE},
    };
    if (nghttp2_submit_trailer(h2, c->stream, trailers, c->text.n > 0 ? 2 : 1) != 0)
        return NGHTTP2_ERR_CALLBACK_FAILURE;
    *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
    return 0;
}

/* nghttp2 asks for the next bytes of DATA. */
static ssize_t grpc_call_take(nghttp2_session *h2, int32_t stream, uint8_t *to, size_t max,
                              uint32_t *flags, nghttp2_data_source *source, void *ctx)
{
    struct grpc_call *c = source->ptr;
    struct grpc_session *s = &c->conn->session;
    size_t n = MIN_OF(max, c->out.n - c->sent);
    (void)stream;
    (void)ctx;
    if (n == 0 && !c->finished) {
        c->waiting = true;
        return NGHTTP2_ERR_DEFERRED;
    }
    if (n > 0)
        memcpy(to, c->out.p + c->sent, n);
    c->sent += n;
    s->unsent -= n;
    s->consumed += n;
    if (c->sent < c->out.n)
        return (ssize_t)n;
    buf_clear(&c->out, SMALL);
    c->sent = 0;
    if (c->finished && grpc_call_finish(c, h2, flags) != 0)
        return NGHTTP2_ERR_CALLBACK_FAILURE;
    return (ssize_t)n;
}

static void grpc_call_start(struct grpc_call *c)
{
    const nghttp2_nv head[] = {PAIR(":status", "200"), PAIR("content-type", "application/grpc")};
    nghttp2_data_provider provider = {.source = {.ptr = c}, .read_callback = grpc_call_take};
    struct grpc_session *s = &c->conn->session;
    if (!c->started)
        grpc_session_submitted(
            s, nghttp2_submit_response(s->h2, c->stream, head, COUNT_OF(head), &provider));
    c->started = true;
}

static void grpc_call_go_on(struct grpc_call *c)
{
    struct grpc_session *s = &c->conn->session;
    if (c->waiting)
        grpc_session_submitted(s, nghttp2_session_resume_data(s->h2, c->stream));
    c->waiting = false;
}

/* Drops what nghttp2 has, if that is the larger part, and appends a message. */
static bool grpc_call_append(struct grpc_call *c, struct str message)
{
    if (c->sent > c->out.n / 2) {
        memmove(c->out.p, c->out.p + c->sent, c->out.n - c->sent);
        c->out.n -= c->sent;
        c->sent = 0;
    }
    size_t before = c->out.n;
    grpc_text_put_message(&c->out, message);
    if (buf_failed(&c->out))
        return false;
    c->conn->session.unsent += c->out.n - before;
    return true;
}

/* The status of a call in one HEADERS frame, without a message. */
static void grpc_call_answer_status(struct grpc_call *c)
{
    char digits[16];
    struct buf status = BUF_ON(digits);
    struct grpc_session *s = &c->conn->session;
    buf_put_u64(&status, c->status);
    nghttp2_nv head[] = {
        PAIR(":status", "200"),
        PAIR("content-type", "application/grpc"),
        {grpc_bytes("grpc-status"), grpc_bytes(status.p), sizeof("grpc-status") - 1, status.n,
         NGHTTP2_NV_FLAG_NONE},
        {grpc_bytes("grpc-message"), grpc_bytes(c->text.p), sizeof("grpc-message") - 1, c->text.n,
         NGHTTP2_NV_FLAG_NONE},
    };
    size_t n = COUNT_OF(head) - (c->text.n > 0 ? 0 : 1);
    grpc_session_submitted(s, nghttp2_submit_response(s->h2, c->stream, head, n, NULL));
    c->started = true;
}

/* Ends the stream with a status, behind the messages that wait. */
static void grpc_call_finish_with(struct grpc_call *c, enum grpc_status status, struct str text)
{
    if (c->conn == NULL)
        return;
    c->status = status;
    grpc_text_encode(&c->text, str_head(text, LIMIT_GRPC_TEXT));
    c->finished = true;
    if (c->started)
        grpc_call_go_on(c);
    else if (c->out.n == 0)
        grpc_call_answer_status(c);
    else
        grpc_call_start(c);
}

void grpc_call_refuse(struct grpc_call *c, enum grpc_status status, struct str text)
{
    bool open = c->state == CALL_COMING;
    grpc_call_finish_with(c, status, text);
    grpc_call_ended(c);
    c->cut = open;
}

static void grpc_call_deadline(struct timer *t)
{
    struct grpc_call *c = CONTAINER_OF(t, struct grpc_call, deadline);
    struct str text = STR("the deadline of the call has passed");
    assert(c->conn != NULL);
    if (c->state == CALL_COMING || c->state == CALL_READY) {
        grpc_call_refuse(c, GRPC_DEADLINE_EXCEEDED, text);
        return;
    }
    grpc_call_finish_with(c, GRPC_DEADLINE_EXCEEDED, text);
    grpc_call_lose(c);
}

/* ---- what the owner calls ---- */

void grpc_call_send(struct grpc_call *c, struct str message)
{
    if (c->state != CALL_HELD)
        return;
    if (grpc_call_append(c, message)) {
        grpc_call_start(c);
        grpc_call_go_on(c);
        return;
    }
    grpc_call_forget_out(c);
    grpc_call_reset(c, NGHTTP2_ENHANCE_YOUR_CALM);
    grpc_call_lose(c);
}

void grpc_call_reply(struct grpc_call *c, struct str message)
{
    if (c->state != CALL_HELD)
        return;
    if (!grpc_call_append(c, message)) {
        struct str why = buf_fault(&c->out) == ERR_LIMIT ? STR("the reply is too large")
                                                         : STR("no memory for the reply");
        grpc_call_forget_out(c);
        grpc_call_finish_with(c, GRPC_RESOURCE_EXHAUSTED, why);
    } else {
        grpc_call_start(c);
        grpc_call_finish_with(c, GRPC_OK, STR(""));
    }
    grpc_call_ended(c);
}

void grpc_call_end(struct grpc_call *c)
{
    grpc_call_fail(c, GRPC_OK, STR(""));
}

void grpc_call_fail(struct grpc_call *c, enum grpc_status status, struct str text)
{
    if (c->state != CALL_HELD)
        return;
    grpc_call_finish_with(c, status, text);
    grpc_call_ended(c);
}

size_t grpc_call_unsent(const struct grpc_call *c)
{
    return c->out.n - c->sent;
}

void *grpc_call_data(const struct grpc_call *c)
{
    return c->data;
}

void grpc_call_set_data(struct grpc_call *c, void *data)
{
    c->data = data;
}

const char *grpc_call_path(const struct grpc_call *c)
{
    return c->method->path;
}
