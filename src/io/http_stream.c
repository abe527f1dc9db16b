/*
 * Answers without a known end. libmicrohttpd asks for bytes when the socket accepts some. While
 * there are none, the connection is suspended. libmicrohttpd does not watch the peer then, so our
 * own loop does.
 *
 * fill is called only after the kernel has accepted the whole portion before. So a stream holds one
 * portion even if its client does not read. If the client does not read for the time that an answer
 * may take, the connection is closed, as for any other answer.
 */
#include "http_conn.h"
#include "http_request.h"
#include "io/limit.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define BLOCK_BYTES (16 * KIB) /* what libmicrohttpd asks for in one call */
#define KEEP_BYTES  (4 * KIB)  /* of a portion's buffer, while the stream sleeps */

static struct conn *http_stream_conn_of(const struct exchange *r)
{
    return MHD_get_connection_info(r->mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

static void http_stream_resume(struct exchange *r)
{
    if (r->mhd == NULL || !r->suspended)
        return;
    assert(r->stream != NULL && r->state == SENDING);
    conn_streams(http_stream_conn_of(r), false);
    r->suspended = false;
    MHD_resume_connection(r->mhd);
    r->set->run_soon = true;
}

static void http_stream_peer_gone(struct loop_fd *f, uint32_t events)
{
    struct conn *c = CONTAINER_OF(f, struct conn, gone);
    struct exchange *r = c->stream;
    (void)events;
    assert(r != NULL && r->stream != NULL);
    r->stream->ended = true;
    http_stream_resume(r);
}

static void http_stream_rest(struct exchange *r)
{
    struct conn *c = http_stream_conn_of(r);
    assert(!r->suspended && r->stream->sent == r->stream->out.n);
    MHD_suspend_connection(r->mhd);
    r->suspended = true;
    c->stream = r;
    c->gone.ready = http_stream_peer_gone;
    conn_streams(c, true);
}

static ssize_t http_stream_read_stream(void *cls, uint64_t at, char *bytes, size_t max)
{
    struct exchange *r = cls;
    struct http_stream *st = r->stream;
    (void)at;
    assert(st->request == r && st->sent <= st->out.n);
    if (st->sent == st->out.n) {
        buf_clear(&st->out, KEEP_BYTES);
        st->sent = 0;
        if (!st->ended)
            st->fill(st, &st->out);
        if (buf_failed(&st->out))
            return MHD_CONTENT_READER_END_WITH_ERROR;
        if (st->out.n == 0 && st->ended)
            return MHD_CONTENT_READER_END_OF_STREAM;
    }
    if (st->out.n == 0 && http_stream_conn_of(r)->state == CONN_CUT)
        return MHD_CONTENT_READER_END_WITH_ERROR; /* cut to make room: no wake would follow */
    if (st->out.n == 0) {
        http_stream_rest(r);
        return 0;
    }
    size_t n = MIN_OF(max, st->out.n - st->sent);
    memcpy(bytes, st->out.p + st->sent, n);
    st->sent += n;
    conn_streams(http_stream_conn_of(r), false);
    return (ssize_t)n;
}

/*
 * A peer that has vanished acknowledges nothing. Without this timeout, small heartbeats would need
 * hours to fill the kernel's send buffer.
 */
static void http_stream_expect_answers(int fd)
{
    int ms = LIMIT_STREAM_UNHEARD_MS;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof(ms));
}

struct MHD_Response *stream_response(struct exchange *r)
{
    assert(r->stream != NULL && r->stream->request == r);
    http_stream_expect_answers(http_stream_conn_of(r)->fd);
    return MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK_BYTES, http_stream_read_stream,
                                             r, exchange_response_gone);
}

void http_request_stream(struct http_request *r, unsigned status, const char *content_type,
                         struct http_stream *st)
{
    struct exchange *own = CONTAINER_OF(r, struct exchange, pub);
    assert(st->fill != NULL && st->gone != NULL && own->stream == NULL);
    assert(r->answer->n == 0);
    st->request = own;
    st->sent = 0;
    st->ended = own->set->closing;
    buf_init(&st->out, LIMIT_OBJECT_BYTES);
    st->out.account = &own->account;
    own->stream = st;
    http_request_respond(r, status, content_type);
}

void stream_gone(struct http_stream *st)
{
    assert(st->request != NULL && st->out.account == NULL);
    buf_done(&st->out);
    st->request = NULL;
    st->gone(st);
}

void http_stream_wake(struct http_stream *st)
{
    if (st->request != NULL)
        http_stream_resume(st->request);
}

void http_stream_end(struct http_stream *st)
{
    st->ended = true;
    http_stream_wake(st);
}

void streams_end(struct exchange_set *s, bool (*these)(void *ctx, struct exchange *r), void *ctx)
{
    LIST_FOR_EACH (struct exchange, r, &s->streams, link) {
        assert(r->stream != NULL && r->state >= ANSWERED);
        if (these != NULL && !these(ctx, r))
            continue;
        /* The peer may never read the portion that is being sent. */
        if (r->mhd != NULL && r->state == SENDING && !r->suspended)
            conn_ends(http_stream_conn_of(r));
        http_stream_end(r->stream);
    }
}
