/*
 * libcurl tells which sockets to watch and when to be called at the latest; we tell it what became
 * ready. What finished is collected in multi_run alone, outside of any library callback, so that
 * its consequences may start and cancel whatever they like.
 *
 * libcurl announces and withdraws a socket once a request, so the objects that watch them are
 * recycled. It withdraws a socket before it closes it (Curl_multi_closed), which is the order that
 * loop_fd_del asks for.
 *
 * An error of the multi itself leaves all its transfers in doubt: each counts as stuck, and it is
 * never run again. libcurl 7.88.1 leaves a socket's entry in its table without the table of its
 * transfers when there is no memory for that (singlesocket, Curl_hash_add failing); the next
 * transfer on that socket, or the same one run again, divides by zero in trhash. Taking transfers
 * out and closing connections is safe.
 */
#include "multi.h"

#include "log.h"
#include "mem.h"

#include <sys/epoll.h>

#define CONNECTIONS_KEPT 128L

struct multi_socket {
    struct loop_fd fd;
    struct multi *multi;
    struct multi_socket *next; /* in spare */
};

static void act(struct multi *m, curl_socket_t fd, int what)
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

/* libcurl may withdraw the socket meanwhile: what is needed afterwards is copied before. */
static void socket_ready(struct loop_fd *f, uint32_t events)
{
    struct multi *m = CONTAINER_OF(f, struct multi_socket, fd)->multi;
    int what = 0;
    if ((events & EPOLLIN) != 0)
        what |= CURL_CSELECT_IN;
    if ((events & EPOLLOUT) != 0)
        what |= CURL_CSELECT_OUT;
    if ((events & (EPOLLERR | EPOLLHUP)) != 0)
        what |= CURL_CSELECT_ERR;
    act(m, f->fd, what);
}

static void socket_forget(struct multi_socket *s)
{
    loop_fd_del(&s->fd);
    s->next = s->multi->spare;
    s->multi->spare = s;
}

static enum errc socket_watch(struct multi *m, curl_socket_t fd, uint32_t events)
{
    struct multi_socket *s = m->spare;
    if (s != NULL)
        m->spare = s->next;
    else
        s = mem_alloc(sizeof(*s));
    if (s == NULL)
        return ERR_NOMEM;
    *s = (struct multi_socket){.fd = {.fd = fd, .events = events, .ready = socket_ready},
                               .multi = m};
    enum errc code = loop_fd_add(m->loop, &s->fd, NULL);
    if (code == OK && curl_multi_assign(m->curl, fd, s) != CURLM_OK)
        code = ERR_INTERNAL;
    if (code != OK)
        socket_forget(s);
    return code;
}

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *cls, void *socket)
{
    struct multi *m = cls;
    struct multi_socket *s = socket;
    if (what == CURL_POLL_REMOVE) {
        if (s != NULL)
            socket_forget(s);
        return 0;
    }
    uint32_t events = 0;
    if (what == CURL_POLL_IN || what == CURL_POLL_INOUT)
        events |= EPOLLIN;
    if (what == CURL_POLL_OUT || what == CURL_POLL_INOUT)
        events |= EPOLLOUT;
    enum errc code = s == NULL ? socket_watch(m, fd, events) : loop_fd_set(&s->fd, events);
    /* An error here would make libcurl refuse everything from now on: one transfer is enough. */
    if (code != OK)
        m->stuck(m, easy);
    return 0;
}

static int on_timer(CURLM *curl, long ms, void *cls)
{
    struct multi *m = cls;
    (void)curl;
    m->due_ms = ms < 0 || m->broken ? UINT64_MAX : loop_now_ms(m->loop) + (uint64_t)ms;
    return 0;
}

enum errc multi_init(struct multi *m, struct loop *l)
{
    *m = (struct multi){.curl = curl_multi_init(), .loop = l, .due_ms = UINT64_MAX};
    if (m->curl == NULL)
        return ERR_NOMEM;
    if (curl_multi_setopt(m->curl, CURLMOPT_SOCKETFUNCTION, on_socket) == CURLM_OK &&
        curl_multi_setopt(m->curl, CURLMOPT_SOCKETDATA, m) == CURLM_OK &&
        curl_multi_setopt(m->curl, CURLMOPT_TIMERFUNCTION, on_timer) == CURLM_OK &&
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
    while (m->spare != NULL) {
        struct multi_socket *s = m->spare;
        m->spare = s->next;
        mem_free(s);
    }
    m->curl = NULL;
}

enum errc multi_add(struct multi *m, CURL *easy)
{
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

static void collect(struct multi *m)
{
    int left = 0;
    const CURLMsg *message;
    while ((message = curl_multi_info_read(m->curl, &left)) != NULL) {
        /* The message dies with the handle's removal. */
        CURL *easy = message->easy_handle;
        CURLcode result = message->data.result;
        if (message->msg == CURLMSG_DONE)
            m->finished(m, easy, result);
    }
}

void multi_run(struct multi *m, uint64_t now_ms)
{
    if (m->due_ms <= now_ms) {
        m->due_ms = UINT64_MAX; /* libcurl may set it again in there */
        act(m, CURL_SOCKET_TIMEOUT, 0);
    }
    collect(m);
}
