/*
 * Requests to a process: replaces http_server.h with a server of the simulation. It frees a
 * request's memory as soon as the request is answered, so that a sanitizer catches a later access.
 */
#include "base/mem.h"
#include "net.h"
#include "oracle.h"

#include <stdlib.h>

#define ARENA_MAX (1 << 20)

/* One for each process; its port identifies it. */
struct http_server {
    struct proc *proc;
    struct http_server_settings settings;
    bool drains;
    struct deferred drained;
    void (*done)(void *ctx);
    void *done_ctx;
};

static struct ask *asks; /* answers on their way back, and requests without a process yet */

static void asks_add(struct ask **list, struct ask *a)
{
    while (*list != NULL)
        list = &(*list)->next;
    a->next = NULL;
    *list = a;
}

static void asks_remove(struct ask **list, struct ask *a)
{
    while (*list != a)
        list = &(*list)->next;
    *list = a->next;
}

static void ask_free(struct ask *a)
{
    unplan(&a->h);
    text_done(&a->path);
    text_done(&a->body);
    text_done(&a->answer);
    free(a);
}

struct ask *ask_new(enum ask_kind kind, const char *path, void (*done)(struct ask *a), void *owner)
{
    struct ask *a = sim_alloc(sizeof(*a));
    a->kind = kind;
    a->done = done;
    a->owner = owner;
    text_z(&a->path, path);
    return a;
}

static void on_back(struct happening *h)
{
    struct ask *a = CONTAINER_OF(h, struct ask, h);
    asks_remove(&asks, a);
    if (!a->left)
        a->done(a);
    ask_free(a);
}

/* Sends the answer; with status 0, the end of the connection. */
static void send_back(struct ask *a, unsigned status)
{
    if (status == 0)
        a->answer.n = 0;
    a->status = status;
    a->h.fire = on_back;
    asks_add(&asks, a);
    plan(&a->h, sim_turn_ahead_ms() + net_latency());
}

static void on_arrival(struct happening *h)
{
    struct ask *a = CONTAINER_OF(h, struct ask, h);
    struct proc *p = a->proc;
    asks_remove(&asks, a);
    if (!proc_runs(p) || p->daemon.parts.server->drains) {
        send_back(a, 0);
        return;
    }
    a->arrived = true;
    asks_add(&p->asks, a);
    proc_wake(p);
}

void ask_send(struct ask *a, struct proc *p)
{
    a->proc = p;
    a->h.fire = on_arrival;
    asks_add(&asks, a);
    plan(&a->h, net_latency());
}

void ask_leave(struct ask *a)
{
    a->left = true;
}

static void memory_done(struct ask *a)
{
    if (!a->handled)
        return;
    arena_done(&a->arena);
    buf_done(&a->out);
    memset(&a->request, 0x5a, sizeof(a->request));
}

bool ask_deliver(struct proc *p)
{
    struct ask *a = p->asks;
    while (a != NULL && a->handled)
        a = a->next;
    if (a == NULL)
        return false;
    a->handled = true;
    arena_init(&a->arena, ARENA_MAX);
    buf_init(&a->out, ARENA_MAX);
    bool gets = a->kind == ASK_INSPECT || a->kind == ASK_OTHER_GET;
    a->request = (struct http_request){.method = gets ? STR("GET") : STR("POST"),
                                       .path = text_str(&a->path),
                                       .body = text_str(&a->body),
                                       .peer = STR("10.0.0.1:1"),
                                       .start_ms = loop_now_ms(p->loop),
                                       .arena = &a->arena,
                                       .answer = &a->out};
    const struct http_server_settings *s = &p->daemon.parts.server->settings;
    sim_check(a->body.n <= s->max_body);
    s->handle(s->ctx, &a->request);
    return true;
}

/* ---- http_server.h ---- */

static void on_drained(struct deferred *d)
{
    struct http_server *s = CONTAINER_OF(d, struct http_server, drained);
    s->done(s->done_ctx);
}

enum errc http_server_new(struct loop *l, const struct http_server_settings *s,
                          struct http_server **ret, struct err *reterr)
{
    struct http_server *server = mem_alloc(sizeof(*server));
    if (server == NULL)
        return err_set(reterr, ERR_NOMEM, "no memory for an HTTP server");
    *server = (struct http_server){
        .proc = sim_loop_proc(l), .settings = *s, .drained = {.run = on_drained}};
    *ret = server;
    return OK;
}

/* Requests that are not answered yet never get an answer. */
struct http_server *http_server_free(struct http_server *s)
{
    if (s == NULL)
        return NULL;
    deferred_cancel(&s->drained);
    asks_drop(s->proc);
    mem_free(s);
    return NULL;
}

uint16_t http_server_port(const struct http_server *s)
{
    return s->settings.port;
}

size_t http_server_active(const struct http_server *s)
{
    size_t n = 0;
    for (const struct ask *a = s->proc->asks; a != NULL; a = a->next)
        n += a->handled ? 1 : 0;
    return n;
}

static void drain_on(struct http_server *s)
{
    if (s->drains && s->proc->asks == NULL)
        loop_defer(s->proc->loop, &s->drained);
}

void http_server_drain(struct http_server *s, void (*done)(void *ctx), void *ctx)
{
    s->drains = true;
    s->done = done;
    s->done_ctx = ctx;
    drain_on(s);
}

void http_server_end_streams(struct http_server *s)
{
    (void)s;
}

void http_request_respond(struct http_request *r, unsigned status, const char *content_type)
{
    struct ask *a = CONTAINER_OF(r, struct ask, request);
    (void)content_type;
    sim_check(a->handled && !a->answered);
    a->answered = true;
    bool whole = !buf_failed(&a->out);
    text_put(&a->answer, whole ? buf_str(&a->out) : STR("out of memory\n"));
    struct proc *p = a->proc;
    struct http_server *s = p->daemon.parts.server;
    s->settings.answered(s->settings.ctx, r, whole ? status : 503);
    asks_remove(&p->asks, a);
    memory_done(a);
    send_back(a, !proc_runs(p) ? 0 : whole ? status : 503);
    if (!proc_runs(p))
        return;
    oracle_answered(a);
    drain_on(s);
}

void http_request_header(struct http_request *r, const char *name, const char *value)
{
    (void)r;
    (void)name;
    (void)value;
}

/* No browser opens the page in the simulation. */
struct str http_request_value(struct http_request *r, const char *name)
{
    (void)r;
    (void)name;
    return STR_NULL;
}

/* The simulation's requests have no query. */
struct str http_request_parameter(struct http_request *r, const char *name)
{
    (void)r;
    (void)name;
    return STR_NULL;
}

void http_request_stream(struct http_request *r, unsigned status, const char *content_type,
                         struct http_stream *st)
{
    http_request_respond(r, status, content_type);
    st->gone(st);
}

void http_stream_wake(struct http_stream *st)
{
    (void)st;
}

/* The process has died: its unanswered requests never get an answer. */
void asks_drop(struct proc *p)
{
    while (p->asks != NULL) {
        struct ask *a = p->asks;
        sim_check(!a->answered);
        p->asks = a->next;
        memory_done(a);
        send_back(a, 0);
    }
}

void asks_forget_all(void)
{
    while (asks != NULL) {
        struct ask *a = asks;
        asks = a->next;
        ask_free(a);
    }
}
