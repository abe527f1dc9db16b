/*
 * Connects libcurl's multi-socket interface to the loop. libcurl says which sockets to watch and
 * the latest time of its next call; the loop passes the sockets that are ready. Only multi_run
 * collects finished transfers, outside any library callback, so that their callbacks may start and
 * cancel calls.
 *
 * libcurl adds and removes a socket for each request, so the watching objects are reused. It
 * removes a socket before it closes it (Curl_multi_closed), as loop_fd_del requires.
 *
 * After an error of the multi itself, the results of all its transfers are unknown: each counts as
 * stuck, and the multi is not run again. Reason: when libcurl 7.88.1 has no memory for the table of
 * a socket's transfers, it leaves the socket's entry without that table (singlesocket, when
 * Curl_hash_add fails). The next transfer on that socket, or another run of the same one, then
 * divides by zero in trhash. To remove transfers and to close connections is safe.
 */
#include "multi.h"

#include "base/log.h"
#include "base/mem.h"

#include <sys/epoll.h>

#define CONNECTIONS_KEPT 128L

struct multi_socket {
    struct loop_fd fd;
    struct multi *multi;
    struct list_link link; /* in spare */
};

static void multi_act(struct multi *m, curl_socket_t fd, int what)
{
    int running = 0;
    if (m->broken)
        return;
    CURLMcode code = curl_multi_socket_action(m->curl, fd, what, &running);
    if (code == CURLM_OK)
        return;
    log_debug("libcurl is stuck", kv_cstr("error", curl_multi_strerror(code)));
    m->broken = true;
    m->due_ms = UINT64_MAX;
    m->stuck(m, NULL);
}

/* libcurl may remove the socket in multi_act(): copy what is needed later. */
static void multi_socket_ready(struct loop_fd *f, uint32_t events)
{
    struct multi *m = CONTAINER_OF(f, struct multi_socket, fd)->multi;
    assert(m != NULL && f->loop == m->loop);
    int what = 0;
    if ((events & EPOLLIN) != 0)
        what |= CURL_CSELECT_IN;
    if ((events & EPOLLOUT) != 0)
        what |= CURL_CSELECT_OUT;
    if ((events & (EPOLLERR | EPOLLHUP)) != 0)
        what |= CURL_CSELECT_ERR;
    multi_act(m, f->fd, what);
}

static void multi_socket_forget(struct multi_socket *s)
{
    loop_fd_del(&s->fd);
    list_push_front(&s->multi->spare, &s->link);
}

static enum errc multi_socket_watch(struct multi *m, curl_socket_t fd, uint32_t events)
{
    struct multi_socket *s = LIST_FIRST(&m->spare, struct multi_socket, link);
    if (s != NULL)
        list_remove(&s->link);
    else
        s = mem_alloc(sizeof(*s));
    if (s == NULL)
        return ERR_NOMEM;
    *s = (struct multi_socket){.fd = {.fd = fd, .events = events, .ready = multi_socket_ready},
                               .multi = m};
    enum errc code = loop_fd_add(m->loop, &s->fd, NULL);
    if (code == OK && curl_multi_assign(m->curl, fd, s) != CURLM_OK)
        code = ERR_INTERNAL;
    if (code != OK)
        multi_socket_forget(s);
    return code;
}

static int multi_on_socket(CURL *easy, curl_socket_t fd, int what, void *cls, void *socket)
{
    struct multi *m = cls;
    struct multi_socket *s = socket;
    if (what == CURL_POLL_REMOVE) {
        if (s != NULL)
            multi_socket_forget(s);
        return 0;
    }
    assert(s == NULL || s->multi == m);
    uint32_t events = 0;
    if (what == CURL_POLL_IN || what == CURL_POLL_INOUT)
        events |= EPOLLIN;
    if (what == CURL_POLL_OUT || what == CURL_POLL_INOUT)
        events |= EPOLLOUT;
    enum errc code = s == NULL ? multi_socket_watch(m, fd, events) : loop_fd_set(&s->fd, events);
    /* Do not return the error: libcurl would then refuse every transfer. Fail this one only. */
    if (code != OK)
        m->stuck(m, easy);
    return 0;
}

static int multi_on_timer(CURLM *curl, long ms, void *cls)
{
    struct multi *m = cls;
    (void)curl;
    m->due_ms = ms < 0 || m->broken ? UINT64_MAX : loop_now_ms(m->loop) + (uint64_t)ms;
    return 0;
}

enum errc multi_init(struct multi *m, struct loop *l)
{
    *m = (struct multi){.curl = curl_multi_init(), .loop = l, .due_ms = UINT64_MAX};
    list_init(&m->spare);
    if (m->curl == NULL)
        return ERR_NOMEM;
    if (curl_multi_setopt(m->curl, CURLMOPT_SOCKETFUNCTION, multi_on_socket) == CURLM_OK &&
        curl_multi_setopt(m->curl, CURLMOPT_SOCKETDATA, m) == CURLM_OK &&
        curl_multi_setopt(m->curl, CURLMOPT_TIMERFUNCTION, multi_on_timer) == CURLM_OK &&
        curl_multi_setopt(m->curl, CURLMOPT_TIMERDATA, m) == CURLM_OK &&
        curl_multi_setopt(m->curl, CURLMOPT_MAXCONNECTS, CONNECTIONS_KEPT) == CURLM_OK &&
        curl_multi_setopt(m->curl, CURLMOPT_PIPELINING, CURLPIPE_NOTHING) == CURLM_OK)
        return OK;
    multi_done(m);
    return ERR_INTERNAL;
}

void multi_done(struct multi *m)
{
    assert(m->n == 0);
    CURLMcode code = curl_multi_cleanup(m->curl);
    assert(code == CURLM_OK);
    LIST_FOR_EACH (struct multi_socket, s, &m->spare, link)
        mem_free(s);
    m->curl = NULL;
}

enum errc multi_add(struct multi *m, CURL *easy)
{
    assert(!m->broken && m->finished != NULL && m->stuck != NULL);
    CURLMcode code = curl_multi_add_handle(m->curl, easy);
    if (code != CURLM_OK)
        return code == CURLM_OUT_OF_MEMORY ? ERR_NOMEM : ERR_INTERNAL;
    m->n++;
    return OK;
}

void multi_del(struct multi *m, CURL *easy)
{
    CURLMcode code = curl_multi_remove_handle(m->curl, easy);
    assert(code == CURLM_OK && m->n > 0);
    m->n--;
}

static void multi_collect(struct multi *m)
{
    int left = 0;
    const CURLMsg *message;
    while ((message = curl_multi_info_read(m->curl, &left)) != NULL) {
        /* Removing the handle frees the message. */
        CURL *easy = message->easy_handle;
        CURLcode result = message->data.result;
        assert(m->n > 0);
        if (message->msg == CURLMSG_DONE)
            m->finished(m, easy, result);
    }
}

void multi_run(struct multi *m, uint64_t now_ms)
{
    if (m->due_ms <= now_ms) {
        m->due_ms = UINT64_MAX; /* libcurl may set it again in multi_act() */
        multi_act(m, CURL_SOCKET_TIMEOUT, 0);
    }
    multi_collect(m);
}
