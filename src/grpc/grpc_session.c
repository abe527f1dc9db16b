/*
 * Moves bytes between a socket and nghttp2. nghttp2 hands out one frame after the other, so what
 * waits for a peer that does not read is in the owner's streams and in the socket, and bounded
 * there. One turn of the loop reads and writes a limited number of bytes.
 *
 * nghttp2 answers PING and SETTINGS by itself. Its own checks of headers are off, as kubelets
 * before 1.26 send the socket's path as :authority, which is no authority; server and client check
 * what they use.
 */
#include "grpc_session.h"

#include "base/mem.h"
#include "grpc/limit.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define READ_BYTES   ((size_t)65536)
#define WRITE_BYTES  (1 * MIB) /* in one turn */
#define WINDOW_BYTES (1 * MIB) /* what a peer may send before it is read */

/* ---- nghttp2's memory ---- */

static void *grpc_session_malloc(size_t size, void *user)
{
    (void)user;
    return mem_resize(NULL, MAX_OF(size, (size_t)1));
}

static void grpc_session_free(void *p, void *user)
{
    (void)user;
    mem_free(p);
}

static void *grpc_session_calloc(size_t n, size_t size, void *user)
{
    size_t all;
    (void)user;
    return __builtin_mul_overflow(n, size, &all) ? NULL : mem_alloc(MAX_OF(all, (size_t)1));
}

static void *grpc_session_realloc(void *p, size_t size, void *user)
{
    (void)user;
    return mem_resize(p, MAX_OF(size, (size_t)1));
}

/* ---- bytes ---- */

static bool grpc_session_end(struct grpc_session *s, const char *why)
{
    s->lost(s, why);
    return false;
}

/* False: the session is gone. */
static bool grpc_session_read(struct grpc_session *s)
{
    uint8_t bytes[READ_BYTES] _uninitialized_;
    ssize_t n = recv(s->fd.fd, bytes, sizeof(bytes), 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
    if (n < 0)
        return grpc_session_end(s, strerror(errno));
    if (n == 0)
        return grpc_session_end(s, "the peer closed the connection");
    ssize_t used = nghttp2_session_mem_recv(s->h2, bytes, (size_t)n);
    if (used < 0)
        return grpc_session_end(s, nghttp2_strerror((int)used));
    assert(used == n); /* no callback pauses */
    return true;
}

/* A timer instead of a check at each write: a peer that reads nothing causes no events. */
static void grpc_session_watch_stall(struct grpc_session *s)
{
    if (s->unsent == 0 && s->out_n == 0) {
        timer_cancel(&s->stall);
    } else if (!timer_armed(&s->stall)) {
        s->consumed_at_stall = s->consumed;
        s->written_at_stall = s->written;
        timer_arm(s->loop, &s->stall, LIMIT_GRPC_STALL_MS);
    }
}

static void grpc_session_stalled(struct timer *t)
{
    struct grpc_session *s = CONTAINER_OF(t, struct grpc_session, stall);
    bool moved =
        s->unsent > 0 ? s->consumed != s->consumed_at_stall : s->written != s->written_at_stall;
    if (moved)
        grpc_session_watch_stall(s);
    else
        (void)grpc_session_end(s, "the peer does not read");
}

/* The next frame; false if there is none, or after a failure, which is in ret_why. */
static bool grpc_session_frame(struct grpc_session *s, const char **ret_why)
{
    ssize_t n = nghttp2_session_mem_send(s->h2, &s->out);
    if (n < 0)
        *ret_why = nghttp2_strerror((int)n);
    if (n <= 0)
        return false;
    s->out_n = (size_t)n;
    return true;
}

static bool grpc_session_write(struct grpc_session *s)
{
    const char *why = s->fault;
    size_t left = WRITE_BYTES;
    bool blocked = false;
    while (why == NULL && left > 0 && !blocked && (s->out_n > 0 || grpc_session_frame(s, &why))) {
        ssize_t n = send(s->fd.fd, s->out, s->out_n, MSG_NOSIGNAL);
        blocked = n < 0 && (errno == EAGAIN || errno == EINTR);
        if (n < 0 && !blocked)
            why = strerror(errno);
        if (n < 0)
            continue;
        s->out += n;
        s->out_n -= (size_t)n;
        s->written += (size_t)n;
        left -= MIN_OF(left, (size_t)n);
    }
    if (why != NULL)
        return grpc_session_end(s, why);
    bool more = s->out_n > 0 || left == 0;
    if (!more && nghttp2_session_want_read(s->h2) == 0 && nghttp2_session_want_write(s->h2) == 0)
        return grpc_session_end(s, "the connection was ended");
    if (loop_fd_set(&s->fd, EPOLLIN | (more ? EPOLLOUT : 0)) != OK)
        return grpc_session_end(s, "out of memory");
    grpc_session_watch_stall(s);
    return true;
}

static void grpc_session_ready(struct loop_fd *f, uint32_t events)
{
    struct grpc_session *s = CONTAINER_OF(f, struct grpc_session, fd);
    if ((events & ~(uint32_t)EPOLLOUT) != 0 && !grpc_session_read(s))
        return;
    (void)grpc_session_write(s);
}

static void grpc_session_flush(struct deferred *d)
{
    (void)grpc_session_write(CONTAINER_OF(d, struct grpc_session, flush));
}

/* ---- life ---- */

static int grpc_session_make(struct grpc_session *s, bool server, nghttp2_option *option,
                             nghttp2_session_callbacks *cbs, void *ctx)
{
    nghttp2_mem mem = {NULL, grpc_session_malloc, grpc_session_free, grpc_session_calloc,
                       grpc_session_realloc};
    nghttp2_option_set_no_http_messaging(option, 1);
    return server ? nghttp2_session_server_new3(&s->h2, cbs, ctx, option, &mem)
                  : nghttp2_session_client_new3(&s->h2, cbs, ctx, option, &mem);
}

static int grpc_session_settle(struct grpc_session *s, bool server)
{
    const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, WINDOW_BYTES},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, LIMIT_GRPC_HEADERS},
        {server ? NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS : NGHTTP2_SETTINGS_ENABLE_PUSH,
         server ? LIMIT_GRPC_CALLS : 0},
    };
    int rc = nghttp2_submit_settings(s->h2, NGHTTP2_FLAG_NONE, settings, COUNT_OF(settings));
    if (rc == 0)
        rc = nghttp2_session_set_local_window_size(s->h2, NGHTTP2_FLAG_NONE, 0, WINDOW_BYTES);
    return rc;
}

enum errc grpc_session_start(struct grpc_session *s, struct loop *l, int fd, bool server,
                             void (*set)(nghttp2_session_callbacks *cbs), void *ctx,
                             struct err *reterr)
{
    nghttp2_session_callbacks *cbs = NULL;
    nghttp2_option *option = NULL;
    assert(s->h2 == NULL && s->lost != NULL);
    s->loop = l;
    s->fd = (struct loop_fd){.fd = fd, .events = EPOLLIN, .ready = grpc_session_ready};
    s->flush.run = grpc_session_flush;
    s->stall.fire = grpc_session_stalled;
    int rc = nghttp2_session_callbacks_new(&cbs);
    if (rc == 0)
        rc = nghttp2_option_new(&option);
    if (rc == 0) {
        set(cbs);
        rc = grpc_session_make(s, server, option, cbs, ctx);
    }
    nghttp2_option_del(option);
    nghttp2_session_callbacks_del(cbs);
    if (rc == 0)
        rc = grpc_session_settle(s, server);
    enum errc code =
        rc == 0 ? loop_fd_add(l, &s->fd, reterr)
                : err_set(reterr, ERR_NOMEM, "no HTTP/2 session: %s", nghttp2_strerror(rc));
    if (code == OK)
        grpc_session_wake(s);
    else
        grpc_session_stop(s);
    return code;
}

void grpc_session_stop(struct grpc_session *s)
{
    loop_fd_del(&s->fd);
    if (s->fd.fd >= 0)
        (void)close(s->fd.fd);
    s->fd.fd = -1;
    deferred_cancel(&s->flush);
    timer_cancel(&s->stall);
    nghttp2_session_del(s->h2);
    s->h2 = NULL;
    s->out_n = 0;
}

void grpc_session_wake(struct grpc_session *s)
{
    loop_defer(s->loop, &s->flush);
}

void grpc_session_submitted(struct grpc_session *s, int result)
{
    if (result != 0 && s->fault == NULL)
        s->fault = nghttp2_strerror(result);
    grpc_session_wake(s);
}
