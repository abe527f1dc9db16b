/*
 * Requests to a process, through routes_handle and http_server.h's two functions that handlers
 * call. A request's memory goes the moment it is answered, so who touches it later is caught.
 */
#include "net.h"
#include "oracle.h"

#include <stdlib.h>

#define ARENA_MAX (1 << 20)

static struct ask *asks; /* those on their way back, or whose process is not known yet */

static void list_add(struct ask **list, struct ask *a)
{
    while (*list != NULL)
        list = &(*list)->next;
    a->next = NULL;
    *list = a;
}

static void list_remove(struct ask **list, struct ask *a)
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
    list_remove(&asks, a);
    if (!a->left)
        a->done(a);
    ask_free(a);
}

/* The answer, or with status 0 the end of the connection. */
static void send_back(struct ask *a, unsigned status)
{
    if (status == 0)
        a->answer.n = 0;
    a->status = status;
    a->h.fire = on_back;
    list_add(&asks, a);
    plan(&a->h, net_latency());
}

static void on_arrival(struct happening *h)
{
    struct ask *a = CONTAINER_OF(h, struct ask, h);
    struct proc *p = a->proc;
    list_remove(&asks, a);
    if (!proc_runs(p)) {
        send_back(a, 0);
        return;
    }
    a->arrived = true;
    list_add(&p->asks, a);
    proc_wake(p);
}

void ask_send(struct ask *a, struct proc *p)
{
    a->proc = p;
    a->h.fire = on_arrival;
    list_add(&asks, a);
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
    a->request = (struct http_request){.method = a->kind == ASK_INSPECT ? STR("GET") : STR("POST"),
                                       .path = text_str(&a->path),
                                       .body = text_str(&a->body),
                                       .peer = STR("10.0.0.1:1"),
                                       .start_ms = loop_now_ms(p->loop),
                                       .arena = &a->arena,
                                       .answer = &a->out,
                                       .handler_data = NULL};
    routes_handle(&p->service, &a->request);
    return true;
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
    list_remove(&p->asks, a);
    memory_done(a);
    send_back(a, !proc_runs(p) ? 0 : whole ? status : 503);
    if (proc_runs(p))
        oracle_answered(a);
}

void http_request_header(struct http_request *r, const char *name, const char *value)
{
    (void)r;
    (void)name;
    (void)value;
}

/* Nobody opens the page here. */
struct str http_request_value(struct http_request *r, const char *name)
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

/* The process has died: what it has not answered it never will. */
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
