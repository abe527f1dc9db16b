/*
 * Starts a bind: looks up the pod by UID in the cache, or by a GET, since the watch may not have
 * shown it yet; reserves its card in memory, so that no other pod gets the card; and starts the op.
 */
#include "daemon/bind/bind.h"

#include "base/log.h"
#include "base/mem.h"
#include "codec/extender.h"
#include "core/fit.h"
#include "daemon/bind/bind_op.h"
#include "report/reason.h"

#include <stdio.h>

static void bind_refuse(struct bind_op *op, const struct request *request, enum verdict verdict)
{
    char bytes[1024];
    char reason_bytes[512];
    struct buf text = BUF_ON(bytes);
    struct buf scratch = BUF_ON(reason_bytes);
    const struct node *n = cache_node(op->binder->cache, op->node);
    struct request asked;
    request_load(&asked, request);
    asked.work = op->binder->work;
    cache_resolve(op->binder->cache, op->uid, &asked);
    struct str reason = reason_node(&scratch, op->node, n, &asked, verdict);
    buf_printf(&text, "node %.*s can't hold pod %.*s/%.*s, which asks for ", STR_ARG(op->node),
               STR_ARG(op->namespace), STR_ARG(op->name));
    reason_request(&text, request);
    buf_printf(&text, ": %.*s", STR_ARG(reason));
    if (verdict != VERDICT_QUOTA && verdict != VERDICT_QUOTA_DENIED)
        reason_cards(&text, n, &asked);
    op->outcome = OUTCOME_REFUSED;
    bind_op_finish(op, buf_str(&text));
}

/* Releases the reservation: there is no memory for the Binding's annotations. */
static void bind_give_back(struct bind_op *op)
{
    struct effect effect;
    struct cache_event e = {.type = CACHE_CANCEL, .settle = {.uid = op->uid}};
    enum errc code = cache_apply(op->binder->cache, &e, 0, &effect);
    assert(code == OK);
    op->reserved = false;
    bind_op_finish(op, STR("cardpack is out of memory"));
}

/* Reserves a card in memory and queues the op for its node. */
static void bind_reserve(struct bind_op *op, const struct request *request)
{
    struct binder *b = op->binder;
    struct effect effect;
    struct request counted;
    request_load(&counted, request);
    counted.work = b->work;
    work_begin(b->work, 1);
    struct cache_event e = {.type = CACHE_RESERVE,
                            .reserve = {.uid = op->uid,
                                        .namespace = op->namespace,
                                        .name = op->name,
                                        .node = op->node,
                                        .request = &counted}};
    op->binding.mem = request->mem;
    op->call.term = b->backend->term(b->backend);
    if (op->call.term == 0) {
        bind_op_finish(op, STR("cardpack has just become unready"));
        return;
    }
    if (request_wants(request)) {
        enum errc code = cache_apply(b->cache, &e, loop_wall_ns(b->loop), &effect);
        if (code == ERR_UNAVAILABLE) {
            bind_refuse(op, request, effect.verdict);
            return;
        }
        if (code != OK) {
            bind_op_finish(op, str_of(code == ERR_CONFLICT ? "the pod already holds a card"
                                                           : "cardpack is out of memory"));
            return;
        }
        op->reserved = true;
        if (!bind_op_hold(op, effect.pod, effect.card_total, effect.assume_ns)) {
            bind_give_back(op);
            return;
        }
    }
    bind_op_start(op);
}

/* Whether the pod that a GET returned is the requested one and may still be bound. */
static enum errc bind_check_found(const struct bind_op *op, const struct pod_view *pod,
                                  struct request *ret, struct err *reterr)
{
    if (!str_eq(pod->uid, op->uid))
        return err_set(
            reterr, ERR_CONFLICT,
            "The pod %.*s in ns %.*s's uid is %.*s, and it's not equal with expected %.*s",
            STR_ARG(op->name), STR_ARG(op->namespace), STR_ARG(pod->uid), STR_ARG(op->uid));
    if (pod_view_terminal(pod))
        return err_set(reterr, ERR_CONFLICT, "the pod has ended");
    if (pod_view_bound(pod) && !str_eq(pod->node, op->node))
        return err_set(reterr, ERR_CONFLICT, "the pod is bound to node \"%.*s\"",
                       STR_ARG(pod->node));
    return request_read(pod, ret, reterr);
}

/*
 * Repeats the GET once after a 401: the token was probably rotated, and the API client has read the
 * new one by now.
 */
static bool bind_look_up_again(struct bind_op *op)
{
    struct backend *backend = op->binder->backend;
    if (op->call.get != GET_FAILED || !op->call.unauthorized || op->reread)
        return false;
    op->reread = true;
    backend->get(backend, &op->call, op->namespace, op->name);
    return true;
}

/* Handles the answer to the GET of a pod that the watch has not shown yet. */
static void bind_looked_up(struct backend_call *c)
{
    struct bind_op *op = CONTAINER_OF(c, struct bind_op, call);
    struct request request = {.mem = 0};
    if (bind_look_up_again(op))
        return;
    struct err e = c->err;
    if (c->get == GET_FAILED && c->unauthorized)
        (void)err_wrap(&e, "the API server refuses cardpack's credentials, also after they were "
                           "read again");
    if (c->get == GET_GONE)
        (void)err_set(&e, ERR_NOTFOUND, "the pod does not exist");
    else if (c->get == GET_FOUND)
        e.code = bind_check_found(op, &c->pod, &request, &e);
    op->met = c->get == GET_FOUND && str_eq(c->pod.uid, op->uid);
    if (c->get != GET_FOUND || e.code != OK) {
        (void)err_wrap(&e, "can't bind pod %.*s/%.*s to node %.*s", STR_ARG(op->namespace),
                       STR_ARG(op->name), STR_ARG(op->node));
        bind_op_finish(op, str_of(e.text));
        return;
    }
    if (pod_view_bound(&c->pod)) {
        bind_op_finish(op, STR(""));
        return;
    }
    op->said_allocation = c->pod.said_allocation;
    op->said_cores = c->pod.said_cores;
    bind_reserve(op, &request);
}

static struct bind_op *bind_find(const struct binder *b, struct str uid)
{
    LIST_FOR_EACH (struct bind_op, op, &b->ops, link) {
        if (str_eq(op->uid, uid))
            return op;
    }
    return NULL;
}

static void bind_begin(struct binder *b, struct http_request *r, const struct bind_args *args,
                       const struct pod *known)
{
    struct bind_op *op = bind_op_new(b, args);
    if (op == NULL || bind_op_join(op, r) != OK) {
        bind_op_respond(r, STR("cardpack is out of memory"));
        if (op != NULL)
            bind_op_abandon(op);
        return;
    }
    op->met = known != NULL;
    if (known != NULL && request_wants(known->request)) {
        op->said_allocation = known->said_allocation;
        op->said_cores = known->said_cores;
        bind_reserve(op, known->request);
        return;
    }
    op->call.done = bind_looked_up;
    b->counts->lookups++;
    b->backend->get(b->backend, &op->call, op->namespace, op->name);
}

/* Whether the pod of the cache is the requested one and may still be bound. */
static bool bind_known_allows(const struct pod *p, const struct bind_args *args, struct err *reterr)
{
    if (!str_eq(p->name, args->name) || !str_eq(p->namespace, args->namespace)) {
        (void)err_set(reterr, ERR_CONFLICT,
                      "PodUID %.*s is that of pod %.*s/%.*s, not of %.*s/%.*s", STR_ARG(p->uid),
                      STR_ARG(p->namespace), STR_ARG(p->name), STR_ARG(args->namespace),
                      STR_ARG(args->name));
        return false;
    }
    if (!pod_holds(p))
        return true;
    if (!str_eq(p->node->name, args->node))
        (void)err_set(
            reterr, ERR_CONFLICT, "pod %.*s/%.*s is bound to node \"%.*s\", not to \"%.*s\"",
            STR_ARG(p->namespace), STR_ARG(p->name), STR_ARG(p->node->name), STR_ARG(args->node));
    return false;
}

static void bind_join(struct bind_op *op, struct http_request *r, const struct bind_args *args)
{
    struct err e = ERR_INIT;
    if (!str_eq(op->node, args->node) || !str_eq(op->name, args->name) ||
        !str_eq(op->namespace, args->namespace))
        (void)err_set(&e, ERR_CONFLICT,
                      "pod %.*s/%.*s is being bound to node \"%.*s\", and the "
                      "outcome is not certain yet",
                      STR_ARG(op->namespace), STR_ARG(op->name), STR_ARG(op->node));
    else if (bind_op_join(op, r) != OK)
        (void)err_set(&e, ERR_NOMEM, "cardpack is out of memory");
    if (e.code == OK)
        return;
    if (op->met)
        bind_op_tell(op->binder, &(struct event_subject){op->namespace, op->name, op->uid},
                     str_of(e.text));
    r->outcome = e.code == ERR_NOMEM ? OUTCOME_ERROR : OUTCOME_REFUSED;
    bind_op_respond(r, str_of(e.text));
}

void bind_handle(struct binder *b, struct http_request *r)
{
    struct bind_args args;
    struct str missing;
    struct err e = ERR_INIT;
    if (extender_read_bind(r->body, r->arena, &args, &e) != OK) {
        log_warn("bad bind request", kv_str("peer", r->peer), kv_cstr("error", e.text));
        bind_op_respond(r, str_of(e.text));
        return;
    }
    if (!b->backend->ready(b->backend, &missing)) {
        (void)err_set(&e, ERR_UNAVAILABLE, "cardpack is not ready: %.*s", STR_ARG(missing));
        bind_op_respond(r, str_of(e.text));
        return;
    }
    struct bind_op *op = bind_find(b, args.uid);
    if (op != NULL) {
        bind_join(op, r, &args);
        return;
    }
    const struct pod *known = cache_pod(b->cache, args.uid);
    if (known != NULL && !bind_known_allows(known, &args, &e)) {
        if (e.code != OK)
            bind_op_tell(b, &(struct event_subject){known->namespace, known->name, known->uid},
                         str_of(e.text));
        r->outcome = e.code == OK ? OUTCOME_OK : OUTCOME_REFUSED;
        bind_op_respond(r, str_of(e.text)); /* empty if the pod is bound to this node already */
        return;
    }
    bind_begin(b, r, &args, known);
}

enum errc bind_new(const struct bind_settings *s, struct binder **ret, struct err *reterr)
{
    struct binder *b = mem_alloc(sizeof(*b));
    if (b == NULL)
        return err_set(reterr, ERR_NOMEM, "no memory for the binder");
    *b = (struct binder){.loop = s->loop,
                         .cache = s->cache,
                         .backend = s->backend,
                         .events = s->events,
                         .timeout_ms = s->timeout_ms};
    b->counts = s->counts == NULL ? &b->own : s->counts;
    b->work = s->work == NULL ? &b->own_work : s->work;
    list_init(&b->ops);
    list_init(&b->ended);
    b->reap.run = bind_op_reap;
    *ret = b;
    return OK;
}

struct binder *bind_free(struct binder *b)
{
    if (b == NULL)
        return NULL;
    LIST_FOR_EACH (struct bind_op, op, &b->ops, link)
        bind_op_abandon(op);
    assert(b->n_ops == 0);
    deferred_cancel(&b->reap);
    bind_op_reap(&b->reap);
    mem_free(b);
    return NULL;
}

size_t bind_active(const struct binder *b)
{
    return b->n_ops;
}

void bind_look(const struct binder *b, struct bind_load *ret)
{
    *ret = (struct bind_load){.ops = b->n_ops, .oldest_ms = loop_now_ms(b->loop)};
    LIST_FOR_EACH (const struct bind_op, op, &b->ops, link) {
        ret->waiting += op->started && op->machine.phase == BIND_QUEUED ? 1 : 0;
        ret->in_doubt += op->started && op->machine.in_doubt ? 1 : 0;
        if (!op->reserved)
            continue;
        ret->reserved++;
        ret->oldest_ms = MIN_OF(ret->oldest_ms, op->start_ms);
    }
}
