/*
 * Implements http_client.h in the simulation. A flight's bytes arrive at a planned time. The
 * process gets them in its own turn: a paused process gets them when it wakes, before its timers
 * run, as with sockets.
 */
#include "net.h"

#include "base/mem.h"
#include "daemon/bind/bind.h"
#include "daemon/bind/bind_op.h"
#include "oracle.h"
#include "server.h"

#include <stdlib.h>

struct http_client {
    struct loop *loop;
};

struct flight *flights;

uint64_t net_latency(void)
{
    return fault(FAULT_SLOW) ? 100 + draw(3000) : draw(4);
}

/* ---- flights ---- */

static void flight_free(struct flight *f)
{
    unplan(&f->h);
    if (f->prev != NULL)
        f->prev->next = f->next;
    else
        flights = f->next;
    if (f->next != NULL)
        f->next->prev = f->prev;
    text_done(&f->path);
    text_done(&f->body);
    text_done(&f->reply);
    free(f->marks);
    free(f);
}

/* The caller has cancelled the call or is gone. A request on its way to the server still
 * arrives. */
static void flight_leave(struct flight *f)
{
    timer_cancel(&f->total);
    timer_cancel(&f->quiet);
    deferred_cancel(&f->fail);
    f->call = NULL;
    f->proc = NULL;
    if (f->stage != FLIGHT_SENT)
        flight_free(f);
}

static void flight_land(struct flight *f, enum http_outcome outcome, enum errc code)
{
    struct http_call *call = f->call;
    call->client = NULL;
    call->transfer = NULL;
    call->outcome = outcome;
    call->status = outcome == HTTP_ANSWERED ? f->status : 0;
    call->retry_after_ms = outcome == HTTP_ANSWERED ? f->retry_after_ms : 0;
    if (outcome != HTTP_ANSWERED && call->err.code == OK)
        (void)err_set(&call->err, code, "%s: no whole answer", call->method);
    trace("landed", text_str(&f->path), (int64_t)outcome, call->status);
    flight_leave(f);
    call->on_done(call);
}

static void flight_fail(struct deferred *d)
{
    struct flight *f = CONTAINER_OF(d, struct flight, fail);
    flight_land(f, f->fail_outcome, f->fail_code);
}

static void fail_later(struct flight *f, enum http_outcome outcome, enum errc code)
{
    f->fail_outcome = outcome;
    f->fail_code = code;
    loop_defer(f->proc->loop, &f->fail);
}

static void on_total(struct timer *t)
{
    fail_later(CONTAINER_OF(t, struct flight, total), HTTP_UNKNOWN, ERR_TIMEOUT);
}

static void on_quiet(struct timer *t)
{
    struct flight *f = CONTAINER_OF(t, struct flight, quiet);
    uint64_t silence_ms = loop_now_ms(f->proc->loop) - f->heard_ms;
    if (silence_ms >= f->call->quiet_ms)
        fail_later(f, HTTP_UNKNOWN, ERR_TIMEOUT);
    else
        timer_arm(f->proc->loop, t, f->call->quiet_ms - silence_ms);
}

void flight_mark(struct flight *f, unsigned kind, unsigned slot, uint64_t rv)
{
    if (f->n_marks == f->cap_marks) {
        f->cap_marks = f->cap_marks == 0 ? 16 : f->cap_marks * 2;
        f->marks = sim_resize(f->marks, f->cap_marks * sizeof(*f->marks));
    }
    f->marks[f->n_marks++] = (struct mark){.end = f->reply.n, .kind = kind, .slot = slot, .rv = rv};
}

/* ---- what arrives ---- */

void flight_over(struct flight *f, enum http_outcome outcome)
{
    f->stage = FLIGHT_OVER;
    f->outcome = outcome;
    unplan(&f->h);
    if (f->call == NULL)
        flight_free(f);
    else
        proc_wake(f->proc);
}

void flight_arrived(struct flight *f, size_t bytes)
{
    f->arrived += bytes;
    f->heard = true;
    if (f->proc != NULL)
        proc_wake(f->proc);
}

static void on_bytes(struct happening *h)
{
    struct flight *f = CONTAINER_OF(h, struct flight, h);
    size_t left = f->reply.n - f->arrived;
    size_t part = left > 1 && fault(FAULT_TORN) ? 1 + draw((unsigned)left) : left;
    flight_arrived(f, part);
    if (part < left)
        plan(&f->h, net_latency());
    else
        flight_over(f, f->outcome);
}

void flight_answer(struct flight *f, unsigned status, uint64_t delay_ms)
{
    f->stage = FLIGHT_ANSWERING;
    f->outcome = HTTP_ANSWERED;
    f->status = status;
    f->h.fire = on_bytes;
    plan(&f->h, delay_ms);
    if (f->call == NULL)
        flight_free(f);
}

static void on_break(struct happening *h)
{
    struct flight *f = CONTAINER_OF(h, struct flight, h);
    flight_over(f, f->outcome);
}

void flight_break(struct flight *f, enum http_outcome outcome, uint64_t delay_ms)
{
    if (f->stage == FLIGHT_OVER)
        return;
    f->stage = FLIGHT_WAITING;
    f->outcome = outcome;
    f->h.fire = on_break;
    plan(&f->h, delay_ms);
    if (f->call == NULL)
        flight_free(f);
}

/* ---- the process' turn ---- */

/* Whether the process counts as told by this mark. A GET tells it only of the pod that is being
 * bound; if the watch contradicts that pod, only a later GET counts. */
static bool counts(const struct flight *f, const struct mark *m)
{
    const struct name *uid = &store.pods[m->slot].uid;
    const struct pod *p = cache_pod(&f->proc->daemon.service.cache, name_str(uid));
    return !m->of_get || (p != NULL && p->state == POD_RESERVED && !p->missing &&
                          strcmp(uid->z, f->asked.z) == 0);
}

static void note_told(struct flight *f)
{
    size_t kept = 0;
    for (size_t i = 0; i < f->n_marks; i++) {
        const struct mark *m = &f->marks[i];
        uint64_t *told = &f->proc->told[m->kind][m->slot];
        if (m->end > f->consumed)
            f->marks[kept++] = *m;
        else if (counts(f, m))
            *told = MAX_OF(*told, m->rv);
    }
    f->n_marks = kept;
}

static void hand_over(struct flight *f)
{
    struct str chunk = {f->reply.p + f->consumed, f->arrived - f->consumed};
    struct http_call *call = f->call;
    f->consumed = f->arrived;
    if (call->on_chunk == NULL || f->status != 200) {
        buf_put(&call->reply, chunk);
    } else if (call->on_chunk(call, chunk, &call->err) != OK) {
        fail_later(f, HTTP_REFUSED, call->err.code);
        return;
    }
    note_told(f);
}

static void flight_send(struct flight *f);

static bool flight_deliver(struct flight *f)
{
    if (f->fail.loop != NULL)
        return false;
    if (f->connected) {
        flight_send(f);
        return true;
    }
    if (f->heard) {
        f->heard = false;
        f->heard_ms = loop_now_ms(f->proc->loop);
    }
    if (f->consumed < f->arrived) {
        hand_over(f);
        return true;
    }
    if (f->stage != FLIGHT_OVER)
        return false;
    flight_land(f, f->outcome, f->outcome == HTTP_ANSWERED ? OK : ERR_UNAVAILABLE);
    return true;
}

bool flights_deliver(struct proc *p)
{
    for (struct flight *f = flights; f != NULL; f = f->next) {
        if (f->proc == p && flight_deliver(f))
            return true;
    }
    return false;
}

void flights_drop(struct proc *p)
{
    struct flight *next = NULL;
    for (struct flight *f = flights; f != NULL; f = next) {
        next = f->next;
        if (f->proc == p)
            flight_leave(f);
    }
}

void flights_forget_all(void)
{
    while (flights != NULL)
        flight_free(flights);
}

/* ---- http_client.h ---- */

static void on_arrival(struct happening *h)
{
    server_arrive(CONTAINER_OF(h, struct flight, h));
}

/* Sends the request, in the process' own turn. */
static void flight_send(struct flight *f)
{
    f->connected = false;
    if (f->call->may_send != NULL && !f->call->may_send(f->call)) {
        fail_later(f, HTTP_NOT_SENT, ERR_CANCELED);
        return;
    }
    f->stage = FLIGHT_SENT;
    f->sent_ms = world.now_ms + sim_turn_ahead_ms();
    if (f->node != NULL)
        oracle_sent(f->proc, f->sent_ms);
    f->h.fire = on_arrival;
    plan(&f->h, sim_turn_ahead_ms() + net_latency());
}

static void on_connected(struct happening *h)
{
    struct flight *f = CONTAINER_OF(h, struct flight, h);
    f->connected = true;
    proc_wake(f->proc);
}

enum errc http_client_new(struct loop *l, const struct http_client_settings *s,
                          struct http_client **ret, struct err *reterr)
{
    struct http_client *c = mem_alloc(sizeof(*c));
    (void)s;
    if (c == NULL)
        return err_set(reterr, ERR_NOMEM, "no memory for an HTTP client");
    c->loop = l;
    *ret = c;
    return OK;
}

struct http_client *http_client_free(struct http_client *c)
{
    if (c != NULL)
        flights_drop(sim_loop_proc(c->loop));
    mem_free(c);
    return NULL;
}

void http_client_forget_connections(struct http_client *c)
{
    (void)c;
}

/* The bind that made this call, or NULL. */
static const struct bind_op *asked_by(const struct proc *p, const struct http_call *call)
{
    const struct binder *b = p->daemon.service.binder;
    if (b == NULL)
        return NULL;
    LIST_FOR_EACH (const struct bind_op, op, bind_ops(b), link) {
        if (kube_backend_request(op->call.task) == call)
            return op;
    }
    return NULL;
}

/* Whether the node was absent after that version. If so, it is a new node: its process may not know
 * the old one's history. */
static bool was_away(unsigned node, uint64_t since)
{
    for (size_t i = history_size(); i > 0 && history_at(i - 1)->rv > since; i--) {
        const struct change *c = history_at(i - 1);
        if (c->kind == CACHE_NODES && c->slot == node && !c->new.any.exists)
            return true;
    }
    return false;
}

/* The device plugin tells pods of one size apart by ASSUME_TIME alone. So a process sends one
 * Binding at a time for a node, each with a later ASSUME_TIME, and its pod is reserved when it is
 * sent. */
static void check_turns(struct flight *f, const struct bind_op *op)
{
    unsigned node = store_find_node(op->node);
    uint64_t ns = op->binding.assume_ns;
    sim_check(node != MAX_NODES);
    f->node = &store.nodes[node].name;
    for (const struct flight *g = flights; g != NULL; g = g->next)
        sim_check(g == f || g->proc != f->proc || g->node != f->node);
    const struct pod *pod = cache_pod(&f->proc->daemon.service.cache, op->uid);
    sim_check(!op->reserved || (pod != NULL && pod->state == POD_RESERVED));
    if (op->binding.idx.n == 0)
        return;
    struct assumed *last = &f->proc->assumed[node];
    sim_check(ns > last->ns || (ns == last->ns && str_eq(name_str(&last->uid), op->uid)) ||
              was_away(node, last->rv));
    *last = (struct assumed){
        .ns = ns, .uid = name_from(op->uid), .rv = f->proc->told[CACHE_NODES][node]};
}

void http_call_start(struct http_client *c, struct http_call *call)
{
    struct proc *p = sim_loop_proc(c->loop);
    struct flight *f = sim_alloc(sizeof(*f));
    struct str path = call->url;
    assert(call->client == NULL && call->method != NULL && call->on_done != NULL);
    assert(!call->bulk || memmem(path.p, path.n, "watch=true", 10) == NULL); /* it would last */
    bool there = str_starts(path, SIM_SERVER);
    path = str_skip(path, SIM_SERVER.n);
    bool nowhere = !there || !str_starts(path, STR("/")); /* no URL, for lack of memory */
    call->client = c;
    call->transfer = f;
    call->outcome = HTTP_NOT_SENT;
    call->status = 0;
    call->retry_after_ms = 0;
    call->err = ERR_INIT;
    buf_clear(&call->reply, SIZE_MAX);
    call->reply.max = call->max_reply > 0 ? call->max_reply : (size_t)1 << 24;
    f->proc = p;
    f->sender = p->id;
    f->incarnation = p->incarnation;
    f->call = call;
    sim_turn_touch();
    f->total.fire = on_total;
    f->quiet.fire = on_quiet;
    f->fail.run = flight_fail;
    f->sent_ms = world.now_ms;
    f->heard_ms = loop_now_ms(c->loop);
    memcpy(f->method, call->method, MIN_OF(strlen(call->method), sizeof(f->method) - 1));
    text_put(&f->path, path);
    text_put(&f->body, call->body);
    f->bearer = name_from(call->bearer);
    f->next = flights;
    if (flights != NULL)
        flights->prev = f;
    flights = f;
    const struct bind_op *op = asked_by(p, call);
    if (op != NULL)
        f->asked = name_from(op->uid);
    if (op != NULL && strcmp(f->method, "POST") == 0)
        check_turns(f, op);
    if (call->timeout_ms > 0)
        timer_arm(c->loop, &f->total, call->timeout_ms);
    if (call->quiet_ms > 0)
        timer_arm(c->loop, &f->quiet, call->quiet_ms);
    trace(call->method, path, p->id, (int64_t)call->body.n);
    f->h.fire = on_connected;
    if (nowhere)
        flight_break(f, HTTP_NOT_SENT, 0);
    else if (draw(8) == 0)
        plan(&f->h, sim_turn_ahead_ms() + net_latency());
    else
        flight_send(f);
}

void http_call_cancel(struct http_call *call)
{
    if (call->client == NULL)
        return;
    struct flight *f = call->transfer;
    call->client = NULL;
    call->transfer = NULL;
    flight_leave(f);
}

void http_call_done(struct http_call *call)
{
    assert(call->client == NULL);
    buf_done(&call->reply);
}
