/*
 * The path of a bind. The sections of this file are in the order of time:
 *
 *     bind_handle      takes a request: it joins the bind of its pod, or begins one
 *     bind_looked_up   has the answer to a GET, if the watch has not shown the pod yet
 *     bind_reserve     reserves a card in the cache, so that no other pod gets it
 *     bind_give_turn   lets one bind of each node go on at a time
 *     bind_advance     asks bind_step for the next action, and takes it: post, read, pause, or end
 *     bind_posted, bind_was_read, bind_woken, bind_deadline
 *                      have the result, and give it to bind_advance
 *     bind_end         answers the requests, and gives the turn to the next bind of the node
 */
#include "daemon/bind/bind.h"

#include "base/log.h"
#include "base/mem.h"
#include "daemon/bind/bind_op.h"
#include "daemon/bind/unlock.h"
#include "daemon/outcome.h"

/* Limit for one call to the API server; the whole bind has the binder's timeout_ms. */
#define CALL_TIMEOUT_MS 10000

#define TURN_CHECK_MS 20

struct binder {
    struct loop *loop;
    struct cache *cache;
    struct backend *backend;
    struct events *events;
    struct kube_api *api; /* NULL: no locks */
    bool placed_events;
    uint64_t timeout_ms;
    struct list ops;
    size_t n_ops;
    struct bind_counts own; /* used if the settings have no counts */
    struct bind_counts *counts;
    struct step_budget own_step_budget;
    struct step_budget *step_budget;
    struct unlocker unlocker;
    struct list ended;
    struct deferred reap; /* frees the ops in `ended` */
};

static void bind_looked_up(struct backend_call *c);
static void bind_reserve(struct bind_op *op, const struct request *request);
static void bind_give_turn(struct binder *b, struct str node);
static void bind_advance(struct bind_op *op, struct bind_input in);
static void bind_posted(struct backend_call *c);
static void bind_was_read(struct backend_call *c);
static void bind_woken(struct timer *t);
static void bind_deadline(struct timer *t);
static void bind_end(struct bind_op *op, struct str error);
static void bind_abandon(struct bind_op *op);
static void bind_locked(struct node_lock *l);

/* ---- requests ---- */

/* Posts a Warning event that says why the pod is not bound. The pod must exist. */
static void bind_tell(struct binder *b, const struct event_subject *pod, struct str error)
{
    events_post(b->events, pod, EVENT_WARNING, STR("FailedBinding"), error);
}

/* Answers r when the op ends, or at the deadline, which this call sets again. */
static enum errc bind_wait(struct bind_op *op, struct http_request *r)
{
    struct bind_waiter *w = arena_alloc(r->arena, sizeof(*w));
    if (w == NULL)
        return ERR_NOMEM;
    w->request = r;
    w->next = op->waiters;
    op->waiters = w;
    timer_arm(op->binder->loop, &op->deadline, op->binder->timeout_ms);
    op->machine.deadline_ms = op->deadline.due_ms;
    /* Resets the back-off: a pause longer than the timeout would outlast every repeated request. */
    op->machine.failures = 0;
    if (op->started && op->machine.phase == BIND_PAUSED && op->machine.read_next)
        timer_arm(op->binder->loop, &op->wake, 0);
    return OK;
}

/* A request for a pod whose bind is under way. */
static void bind_join(struct bind_op *op, struct http_request *r, const struct bind_args *args)
{
    struct err e = ERR_INIT;
    if (!str_eq(op->node, args->node) || !str_eq(op->name, args->name) ||
        !str_eq(op->namespace, args->namespace))
        (void)bind_op_say_busy(op, &e);
    else if (bind_wait(op, r) != OK)
        (void)err_set(&e, ERR_NOMEM, "cardpack is out of memory");
    if (e.code == OK)
        return;
    if (op->met)
        bind_tell(op->binder, &(struct event_subject){op->namespace, op->name, op->uid},
                  str_of(e.text));
    r->outcome = e.code == ERR_NOMEM ? OUTCOME_ERROR : OUTCOME_REFUSED;
    bind_op_respond(r, str_of(e.text));
}

/* `done` gets the answer. */
static void bind_get(struct bind_op *op, void (*done)(struct backend_call *c))
{
    struct backend *backend = op->binder->backend;
    op->call.done = done;
    backend->get(backend, &op->call, op->namespace, op->name);
}

/* known: the pod in the cache; NULL: the watch has not shown it yet. */
static void bind_begin(struct binder *b, struct http_request *r, const struct bind_args *args,
                       const struct pod *known)
{
    struct bind_op *op = bind_op_new(args, b->backend);
    if (op == NULL) {
        bind_op_respond(r, STR("cardpack is out of memory"));
        return;
    }
    op->binder = b;
    op->start_ms = loop_now_ms(b->loop);
    op->wake.fire = bind_woken;
    op->deadline.fire = bind_deadline;
    op->call.timeout_ms = CALL_TIMEOUT_MS;
    op->lock.api = b->api;
    op->lock.done = bind_locked;
    list_push_back(&b->ops, &op->link);
    b->n_ops++;
    if (bind_wait(op, r) != OK) {
        bind_op_respond(r, STR("cardpack is out of memory"));
        bind_abandon(op);
        return;
    }
    op->met = known != NULL;
    if (known != NULL && !bind_op_needs_pod(known->request) && request_wants(known->request)) {
        op->former = known->former;
        op->binding.version = known->version;
        bind_reserve(op, known->request);
        return;
    }
    b->counts->lookups++;
    bind_get(op, bind_looked_up);
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
    LIST_FOR_EACH (struct bind_op, op, &b->ops, link) {
        if (str_eq(op->uid, args.uid)) {
            bind_join(op, r, &args);
            return;
        }
    }
    const struct pod *known = cache_pod(b->cache, args.uid);
    if (known != NULL && bind_op_check_known(known, &args, &e) != OK) {
        bind_tell(b, &(struct event_subject){known->namespace, known->name, known->uid},
                  str_of(e.text));
        r->outcome = OUTCOME_REFUSED;
        bind_op_respond(r, str_of(e.text));
        return;
    }
    if (known != NULL && pod_holds(known)) {
        bind_op_respond(r, STR("")); /* it is bound to this node already */
        return;
    }
    bind_begin(b, r, &args, known);
}

/* ---- the pod, if the watch has not shown it, and its card ---- */

static void bind_looked_up(struct backend_call *c)
{
    struct bind_op *op = CONTAINER_OF(c, struct bind_op, call);
    struct request request = {.mem = 0};
    struct err e = c->err;
    if (c->get == GET_FAILED && c->unauthorized && !op->reread) {
        /* The token was probably rotated, and the API client has read the new one by now. */
        op->reread = true;
        bind_get(op, bind_looked_up);
        return;
    }
    if (c->get == GET_FAILED && c->unauthorized)
        (void)err_wrap(&e, "the API server refuses cardpack's credentials, also after they were "
                           "read again");
    if (c->get == GET_GONE)
        (void)err_set(&e, ERR_NOTFOUND, "the pod does not exist");
    else if (c->get == GET_FOUND)
        e.code = bind_op_check(op, &request, &e);
    op->met = c->get == GET_FOUND && str_eq(c->pod.uid, op->uid);
    if (c->get != GET_FOUND || e.code != OK) {
        (void)err_wrap(&e, "can't bind pod %.*s/%.*s to node %.*s", STR_ARG(op->namespace),
                       STR_ARG(op->name), STR_ARG(op->node));
        bind_end(op, str_of(e.text));
        return;
    }
    if (pod_view_bound(&c->pod)) {
        bind_end(op, STR(""));
        return;
    }
    op->former = c->pod.former;
    op->binding.version = c->pod.version;
    bind_reserve(op, &request);
}

/* Reserves a card in the cache, if the pod asks for one, and queues the op for its node. */
static void bind_reserve(struct bind_op *op, const struct request *request)
{
    struct binder *b = op->binder;
    char bytes[1024];
    struct buf why = BUF_ON(bytes);
    step_budget_begin(b->step_budget, 1);
    op->binding.mem = request->mem;
    op->call.term = b->backend->term(b->backend);
    if (op->call.term == 0) {
        bind_end(op, STR("cardpack has just become unready"));
        return;
    }
    if (request_wants(request)) {
        enum errc code =
            bind_op_reserve(op, b->cache, request, b->step_budget, loop_wall_ns(b->loop), &why);
        if (code != OK) {
            op->outcome = code == ERR_UNAVAILABLE ? OUTCOME_REFUSED : OUTCOME_UNSAID;
            bind_end(op, buf_str(&why));
            return;
        }
    }
    assert(!op->started && timer_armed(&op->deadline));
    bind_step_init(&op->machine, op->deadline.due_ms);
    op->started = true;
    /*
     * Moves the op to the list's end: other ops may have reserved during its look-up, and the list
     * is in order of ASSUME_TIME.
     */
    list_remove(&op->link);
    list_push_back(&b->ops, &op->link);
    bind_give_turn(b, op->node);
}

/* ---- the Binding, up to a certain end ---- */

/*
 * Gives the turn to the oldest waiting op of the node, if no other op has it. An op without waiting
 * requests lets the next op of its node pass.
 */
static void bind_give_turn(struct binder *b, struct str node)
{
    struct bind_op *oldest = NULL;
    LIST_FOR_EACH (struct bind_op, op, &b->ops, link) {
        if (!op->started || op->waiters == NULL || !str_eq(op->node, node))
            continue;
        if (op->machine.phase != BIND_QUEUED)
            return;
        if (oldest == NULL)
            oldest = op;
    }
    if (oldest != NULL)
        bind_advance(oldest, (struct bind_input){.type = BIND_IN_TURN});
}

static void bind_succeed(struct bind_op *op)
{
    bind_op_log_bound(op, loop_now_ms(op->binder->loop));
    if (op->binder->placed_events)
        bind_op_tell_place(op, op->binder->events, cache_pod(op->binder->cache, op->uid));
    bind_end(op, STR(""));
}

/* Ends the op without a read if the watch has shown the pod bound meanwhile. */
static bool bind_observed(struct bind_op *op)
{
    const struct pod *p = cache_pod(op->binder->cache, op->uid);
    if (!op->reserved || p == NULL || p->state != POD_BOUND)
        return false;
    if (str_eq(p->node->name, op->node)) {
        bind_succeed(op);
        return true;
    }
    bind_op_say_elsewhere(op);
    bind_end(op, str_of(op->why.text));
    return true;
}

/* locked: the node's lock has just been taken for this Binding. */
static void bind_post(struct bind_op *op, bool locked)
{
    struct binder *b = op->binder;
    assert(op->machine.phase == BIND_POSTING && !timer_armed(&op->wake));
    /* In another term the backend refuses the Binding. */
    bool may_send = b->backend->term(b->backend) == op->call.term;
    enum errc code =
        op->reserved && may_send ? bind_op_renew(op, b->cache, loop_wall_ns(b->loop)) : OK;
    if (code == ERR_UNAVAILABLE) {
        bind_advance(
            op, (struct bind_input){.type = BIND_IN_POSTED, .post = POST_REFUSED, .unsent = true});
        return;
    }
    /*
     * The watch has shown that the pod is bound or gone. An API server before 1.27 would apply a
     * Binding now to the next pod of that name, for which no card is reserved.
     */
    if (code == ERR_NOTFOUND) {
        if (!bind_observed(op))
            bind_advance(op, (struct bind_input){.type = BIND_IN_POSTED, .post = POST_ASSIGNED});
        return;
    }
    if (may_send && !locked && bind_op_needs_lock(op)) {
        op->locking = true;
        op->lock.dialect = op->binding.dialect;
        node_lock_take(&op->lock, loop_wall_ns(b->loop));
        return;
    }
    op->writes++;
    op->sent_ns = loop_clock_ns(b->loop);
    op->call.get = GET_FAILED; /* no read since this Binding */
    op->call.unsent = false;
    op->call.done = bind_posted;
    b->backend->post(b->backend, &op->call, &op->binding);
}

/* Without the lock the Binding waits as if unsendable. Without the right, or while the lock keeps
 * all pods away, it is not sent at all. */
static void bind_locked(struct node_lock *l)
{
    struct bind_op *op = CONTAINER_OF(l, struct bind_op, lock);
    assert(op->locking && op->machine.phase == BIND_POSTING);
    op->locking = false;
    if (l->result == NODE_LOCK_TAKEN) {
        bind_post(op, true);
        return;
    }
    const struct node *n = cache_node(op->binder->cache, op->node);
    bool locked = l->result == NODE_LOCK_HELD && n != NULL && n->locked;
    bool denied = locked || l->err.code == ERR_DENIED;
    op->why = l->err;
    bind_advance(op, (struct bind_input){.type = BIND_IN_POSTED,
                                         .post = denied ? POST_REFUSED : POST_NOT_SENT,
                                         .unsent = denied});
}

/* Answers the requests, because the deadline has come; the op goes on. */
static void bind_answer_in_doubt(struct bind_op *op)
{
    assert(op->started && op->waiters != NULL);
    op->binder->counts->doubts++;
    bind_op_answer_in_doubt(op);
    bind_give_turn(op->binder, op->node);
}

/* The card is released: this bind did not bind the pod. */
static void bind_canceled(struct bind_op *op)
{
    enum bind_seen seen = bind_op_compare(op);
    if (seen == SEEN_HERE) {
        log_warn("another client bound the pod to the node", kv_str("namespace", op->namespace),
                 kv_str("pod", op->name), kv_str("node", op->node));
        bind_succeed(op);
        return;
    }
    bind_op_say_canceled(op, seen);
    bind_end(op, str_of(op->why.text));
}

/* Asks the machine for the next action, and takes it. */
static void bind_advance(struct bind_op *op, struct bind_input in)
{
    struct binder *b = op->binder;
    in.random = loop_random(b->loop);
    struct bind_output out = bind_step(&op->machine, &in, loop_now_ms(b->loop));
    if (out.answer && op->waiters != NULL)
        bind_answer_in_doubt(op);
    switch (out.action) {
    case BIND_DO_REFRESH_POST:
        b->backend->refresh(b->backend);
        bind_post(op, false);
        return;
    case BIND_DO_POST:
        bind_post(op, false);
        return;
    case BIND_DO_READ:
        bind_get(op, bind_was_read);
        return;
    case BIND_DO_PAUSE:
        timer_arm(b->loop, &op->wake, out.pause_ms);
        return;
    case BIND_DO_CONFIRM:
        assert(op->machine.phase == BIND_OVER);
        if (bind_op_confirm(op, b->cache, out.read_back))
            bind_succeed(op);
        else
            bind_advance(op, (struct bind_input){.type = BIND_IN_UNPROVEN});
        return;
    case BIND_DO_CANCEL:
        assert(op->machine.phase == BIND_OVER);
        if (bind_op_release(op, b->cache, loop_wall_ns(b->loop)))
            bind_canceled(op);
        else
            bind_advance(op, (struct bind_input){.type = BIND_IN_UNPROVEN});
        return;
    }
}

/* ---- the results of the actions ---- */

/* The API server has answered the Binding, or no answer came. */
static void bind_posted(struct backend_call *c)
{
    struct bind_op *op = CONTAINER_OF(c, struct bind_op, call);
    struct bind_counts *counts = op->binder->counts;
    counts->posts[c->post]++;
    expo_observe(&counts->post, loop_clock_ns(op->binder->loop) - op->sent_ns);
    if (c->err.code != OK)
        op->why = c->err;
    bind_advance(op, (struct bind_input){.type = BIND_IN_POSTED,
                                         .post = c->post,
                                         .unsent = c->unsent,
                                         .retry_after_ms = c->retry_after_ms});
}

/* The same for the GET of the pod after a Binding. */
static void bind_was_read(struct backend_call *c)
{
    struct bind_op *op = CONTAINER_OF(c, struct bind_op, call);
    enum bind_seen seen = bind_op_compare(op);
    op->binder->counts->reads[seen]++;
    if (c->err.code != OK)
        op->why = c->err;
    if (seen == SEEN_GONE)
        (void)err_set(&op->why, ERR_NOTFOUND, "the pod is gone");
    bool edited = seen == SEEN_UNBOUND && bind_op_is_edited(op, op->binder->cache);
    bind_advance(op, (struct bind_input){.type = BIND_IN_READ,
                                         .seen = seen,
                                         .edited = edited,
                                         .retry_after_ms = c->retry_after_ms});
}

/*
 * The pause is over. Another op may have the node's turn now: an op loses it when it is answered in
 * doubt, and a repeated request makes it active again.
 */
static void bind_woken(struct timer *t)
{
    struct bind_op *op = CONTAINER_OF(t, struct bind_op, wake);
    bool taken = false;
    if (bind_observed(op))
        return;
    LIST_FOR_EACH (const struct bind_op, o, &op->binder->ops, link)
        taken = taken || (o != op && o->started && o->machine.phase == BIND_POSTING &&
                          str_eq(o->node, op->node));
    if (!op->machine.read_next && taken)
        timer_arm(op->binder->loop, t, TURN_CHECK_MS);
    else
        bind_advance(op, (struct bind_input){.type = BIND_IN_WAKE});
}

/* The requests must be answered now. */
static void bind_deadline(struct timer *t)
{
    struct bind_op *op = CONTAINER_OF(t, struct bind_op, deadline);
    if (op->why.code == OK)
        (void)err_set(&op->why, ERR_TIMEOUT, "the API server has not answered in time");
    op->binder->backend->cancel(&op->call);
    timer_cancel(&op->wake);
    if (op->locking)
        bind_op_stop_locking(op, loop_now_ms(op->binder->loop));
    if (!op->started) {
        bind_end(op, str_of(op->why.text));
        return;
    }
    bind_advance(op, (struct bind_input){.type = BIND_IN_DEADLINE});
}

/* ---- the end ---- */

static void bind_unlink(struct bind_op *op)
{
    assert(op->binder->n_ops > 0);
    timer_cancel(&op->wake);
    timer_cancel(&op->deadline);
    list_remove(&op->link);
    op->binder->n_ops--;
}

/* Answers the op's requests, cancels its call and frees it at once. */
static void bind_abandon(struct bind_op *op)
{
    op->binder->backend->cancel(&op->call);
    bind_op_answer(op, STR("cardpack is shutting down"));
    bind_unlink(op);
    bind_op_free(op);
}

/* The op is freed at the end of the loop's turn. */
static void bind_retire(struct bind_op *op)
{
    list_push_back(&op->binder->ended, &op->link);
    loop_defer(op->binder->loop, &op->binder->reap);
}

/*
 * Answers all waiting requests with `error`, "" for success, and ends the op, which must not hold a
 * reservation any more. Removes it from every list and timer at once; it is freed at the end of
 * the loop's turn, when no callback uses it.
 */
static void bind_end(struct bind_op *op, struct str error)
{
    struct binder *b = op->binder;
    if (error.n > 0)
        log_warn("bind failed", kv_str("namespace", op->namespace), kv_str("pod", op->name),
                 kv_str("node", op->node), kv_str("error", error));
    if (error.n > 0 && op->met)
        bind_tell(b, &(struct event_subject){op->namespace, op->name, op->uid}, error);
    bind_op_answer(op, error);
    assert(op->waiters == NULL);
    bind_unlink(op);
    if (op->lock.tried)
        unlock_begin(&b->unlocker, op, error.n > 0);
    else
        bind_retire(op);
    bind_give_turn(b, op->node);
}

static void bind_reap(struct deferred *d)
{
    struct binder *b = CONTAINER_OF(d, struct binder, reap);
    LIST_FOR_EACH (struct bind_op, op, &b->ended, link) {
        list_remove(&op->link);
        bind_op_free(op);
    }
}

/* ---- the binder ---- */

enum errc bind_new(const struct bind_settings *s, struct binder **ret, struct err *reterr)
{
    struct binder *b = mem_alloc(sizeof(*b));
    if (b == NULL)
        return err_set(reterr, ERR_NOMEM, "no memory for the binder");
    *b = (struct binder){.loop = s->loop,
                         .cache = s->cache,
                         .backend = s->backend,
                         .events = s->events,
                         .api = s->api,
                         .placed_events = s->placed_events,
                         .timeout_ms = s->timeout_ms};
    b->counts = s->counts == NULL ? &b->own : s->counts;
    b->step_budget = s->step_budget == NULL ? &b->own_step_budget : s->step_budget;
    list_init(&b->ops);
    b->unlocker = (struct unlocker){.loop = s->loop, .cache = s->cache, .ended = bind_retire};
    list_init(&b->unlocker.ops);
    list_init(&b->ended);
    b->reap.run = bind_reap;
    *ret = b;
    return OK;
}

struct binder *bind_free(struct binder *b)
{
    if (b == NULL)
        return NULL;
    LIST_FOR_EACH (struct bind_op, op, &b->ops, link)
        bind_abandon(op);
    assert(b->n_ops == 0);
    unlock_done(&b->unlocker);
    deferred_cancel(&b->reap);
    bind_reap(&b->reap);
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
    LIST_FOR_EACH (const struct bind_op, op, &b->ops, link)
        bind_op_count(op, ret);
}

const struct list *bind_ops(const struct binder *b)
{
    return &b->ops;
}
