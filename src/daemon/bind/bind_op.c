/*
 * Carries out what bind_step decides: posts, reads, pauses, confirms and releases. Gives each
 * node's turn to one op at a time.
 */
#include "daemon/bind/bind_op.h"

#include "base/log.h"
#include "base/mem.h"
#include "codec/allocation.h"
#include "codec/limit.h"
#include "core/fit.h"

#include <stdio.h>

/* Limit for one call to the API server; the whole bind has the binder's timeout_ms. */
#define CALL_TIMEOUT_MS 10000

#define TURN_CHECK_MS 20

static void bind_op_act(struct bind_op *op, struct bind_output out);

static void bind_op_step(struct bind_op *op, struct bind_input in)
{
    in.random = loop_random(op->binder->loop);
    bind_op_act(op, bind_step(&op->machine, &in, loop_now_ms(op->binder->loop)));
}

void bind_op_respond(struct http_request *r, struct str error)
{
    if (r->outcome == OUTCOME_UNSAID)
        r->outcome = error.n == 0 ? OUTCOME_OK : OUTCOME_ERROR;
    extender_write_bind(r->answer, error);
    http_request_respond(r, 200, "application/json");
}

void bind_op_tell(struct binder *b, const struct event_subject *pod, struct str error)
{
    events_post(b->events, pod, EVENT_WARNING, STR("FailedBinding"), error);
}

static void bind_op_answer_waiters(struct bind_op *op, struct str error)
{
    struct bind_waiter *w = op->waiters;
    op->waiters = NULL;
    timer_cancel(&op->deadline);
    while (w != NULL) {
        struct bind_waiter *next = w->next; /* the answer frees w */
        w->request->outcome = op->outcome;
        bind_op_respond(w->request, error);
        w = next;
    }
}

/* An op without waiting requests lets the next op of its node pass. */
static bool bind_op_occupies_node(const struct bind_op *op)
{
    return op->waiters != NULL && op->started && op->machine.phase != BIND_QUEUED;
}

static bool bind_op_waits_for_node(const struct bind_op *op)
{
    return op->waiters != NULL && op->started && op->machine.phase == BIND_QUEUED;
}

/* Gives the turn to the oldest waiting op of the node, if no other op has it. */
static void bind_op_node_turn(struct binder *b, struct str node)
{
    struct bind_op *oldest = NULL;
    LIST_FOR_EACH (struct bind_op, op, &b->ops, link) {
        if (!str_eq(op->node, node))
            continue;
        if (bind_op_occupies_node(op))
            return;
        if (oldest == NULL && bind_op_waits_for_node(op))
            oldest = op;
    }
    if (oldest != NULL)
        bind_op_step(oldest, (struct bind_input){.type = BIND_IN_TURN});
}

static void bind_op_free(struct bind_op *op)
{
    assert(op->waiters == NULL && !list_is_linked(&op->link));
    assert(!timer_armed(&op->wake) && !timer_armed(&op->deadline));
    backend_call_done(&op->call);
    buf_done(&op->texts);
    mem_free(op);
}

void bind_op_reap(struct deferred *d)
{
    struct binder *b = CONTAINER_OF(d, struct binder, reap);
    LIST_FOR_EACH (struct bind_op, op, &b->ended, link) {
        list_remove(&op->link);
        bind_op_free(op);
    }
}

static void bind_op_unlink(struct bind_op *op)
{
    assert(op->binder->n_ops > 0);
    timer_cancel(&op->wake);
    timer_cancel(&op->deadline);
    list_remove(&op->link);
    op->binder->n_ops--;
}

/*
 * Removes the op from every list and timer at once; frees it at the end of the turn, when no
 * callback uses it.
 */
static void bind_op_end(struct bind_op *op)
{
    struct binder *b = op->binder;
    assert(op->waiters == NULL);
    bind_op_unlink(op);
    list_push_back(&b->ended, &op->link);
    bind_op_node_turn(b, op->node);
    loop_defer(b->loop, &b->reap);
}

void bind_op_finish(struct bind_op *op, struct str error)
{
    const struct event_subject pod = {op->namespace, op->name, op->uid};
    if (error.n > 0)
        log_warn("bind failed", kv_str("namespace", op->namespace), kv_str("pod", op->name),
                 kv_str("node", op->node), kv_str("error", error));
    if (error.n > 0 && op->met)
        bind_op_tell(op->binder, &pod, error);
    bind_op_answer_waiters(op, error);
    bind_op_end(op);
}

static void bind_op_succeed(struct bind_op *op)
{
    log_info("bound", kv_str("namespace", op->namespace), kv_str("pod", op->name),
             kv_str("node", op->node), kv_str("card", op->binding.idx),
             kv_int("mem", op->binding.mem), kv_uint("writes", op->writes),
             kv_uint("took_ms", loop_now_ms(op->binder->loop) - op->start_ms));
    bind_op_answer_waiters(op, STR(""));
    bind_op_end(op);
}

static enum errc bind_op_confirm(struct bind_op *op, bool read_back)
{
    struct effect effect;
    if (!op->reserved)
        return OK;
    struct cache_event e = {.type = CACHE_CONFIRM,
                            .settle = {.uid = op->uid, .read_back = read_back}};
    /*
     * The read shows that the pod has ended: pass on the object, which releases the card. The watch
     * may have shown the end long ago and will not show it again.
     */
    if (read_back && pod_view_terminal(&op->call.pod))
        e = (struct cache_event){.type = CACHE_POD_READ, .pod = op->call.pod};
    return cache_apply(op->binder->cache, &e, 0, &effect);
}

/*
 * Releases the card. If a read showed that another client bound the pod, the cards of the pod's
 * annotations are held instead. False: that read may be older than what the watch showed of the
 * pod, and contradicts it.
 */
static bool bind_op_cancel(struct bind_op *op)
{
    struct effect effect;
    if (!op->reserved)
        return true;
    bool found = op->call.get == GET_FOUND && str_eq(op->call.pod.uid, op->uid);
    if (found && pod_view_bound(&op->call.pod)) {
        struct cache_event seen = {.type = CACHE_POD_READ, .pod = op->call.pod};
        enum errc taken =
            cache_apply(op->binder->cache, &seen, loop_wall_ns(op->binder->loop), &effect);
        if (taken == OK || taken == ERR_CONFLICT)
            return taken == OK;
    }
    struct cache_event e = {.type = CACHE_CANCEL, .settle = {.uid = op->uid}};
    enum errc code = cache_apply(op->binder->cache, &e, 0, &effect);
    assert(code == OK);
    return true;
}

static enum bind_seen bind_op_compare(const struct bind_op *op)
{
    const struct pod_view *pod = &op->call.pod;
    if (op->call.get == GET_FAILED)
        return SEEN_NOTHING;
    if (op->call.get == GET_GONE || !str_eq(pod->uid, op->uid))
        return SEEN_GONE;
    if (!pod_view_bound(pod))
        return SEEN_UNBOUND;
    if (!str_eq(pod->node, op->node))
        return SEEN_ELSEWHERE;
    return op->binding.idx.n == 0 || str_eq(pod->idx, op->binding.idx) ? SEEN_AS_ASKED : SEEN_HERE;
}

static void bind_op_canceled(struct bind_op *op)
{
    assert(op->machine.phase == BIND_OVER);
    enum bind_seen seen = op->call.get == GET_FAILED ? SEEN_NOTHING : bind_op_compare(op);
    if (!bind_op_cancel(op)) {
        bind_op_act(op, bind_step_verify(&op->machine, loop_now_ms(op->binder->loop)));
        return;
    }
    if (seen == SEEN_HERE) {
        log_warn("another client bound the pod to the node", kv_str("namespace", op->namespace),
                 kv_str("pod", op->name), kv_str("node", op->node));
        bind_op_succeed(op);
        return;
    }
    if (seen == SEEN_ELSEWHERE)
        (void)err_set(&op->why, ERR_CONFLICT, "the pod is bound to node \"%.*s\"",
                      STR_ARG(op->call.pod.node));
    else if (seen == SEEN_GONE)
        (void)err_set(&op->why, ERR_NOTFOUND, "the pod is gone");
    else if (op->why.code == OK)
        (void)err_set(&op->why, ERR_TIMEOUT, "the binds to this node before it took too long");
    (void)err_wrap(&op->why, "can't bind pod %.*s/%.*s to node %.*s", STR_ARG(op->namespace),
                   STR_ARG(op->name), STR_ARG(op->node));
    bind_op_finish(op, str_of(op->why.text));
}

/*
 * Whether the answer of the API server is enough to confirm. It is not for a pod that the watch has
 * never shown: the pod may have ended during its look-up, and an API server before 1.27 then binds
 * the next pod of the same name. Only a read can tell.
 */
static bool bind_op_is_proven(const struct bind_op *op, bool read_back)
{
    const struct pod *p = cache_pod(op->binder->cache, op->uid);
    return read_back || !op->reserved || p == NULL || p->seen;
}

static void bind_op_confirmed(struct bind_op *op, bool read_back)
{
    assert(op->machine.phase == BIND_OVER);
    if (!bind_op_is_proven(op, read_back) || bind_op_confirm(op, read_back) == ERR_CONFLICT) {
        bind_op_act(op, bind_step_verify(&op->machine, loop_now_ms(op->binder->loop)));
        return;
    }
    bind_op_succeed(op);
}

static void bind_op_in_doubt(struct bind_op *op)
{
    assert(op->started && op->waiters != NULL);
    char text[512];
    int n = snprintf(text, sizeof(text),
                     "whether pod %.*s/%.*s is bound to node %.*s is not known yet, its card stays "
                     "reserved: %s",
                     STR_ARG(op->namespace), STR_ARG(op->name), STR_ARG(op->node), op->why.text);
    op->binder->counts->doubts++;
    op->outcome = OUTCOME_IN_DOUBT;
    log_warn("bind is in doubt", kv_str("namespace", op->namespace), kv_str("pod", op->name),
             kv_str("node", op->node), kv_cstr("error", op->why.text));
    bind_op_answer_waiters(op, (struct str){text, MIN_OF((size_t)MAX_OF(n, 0), sizeof(text) - 1)});
    op->outcome = OUTCOME_UNSAID;
    bind_op_node_turn(op->binder, op->node);
}

/* Ends the op without a read if the watch has shown the pod bound meanwhile. */
static bool bind_op_observed(struct bind_op *op)
{
    const struct pod *p = cache_pod(op->binder->cache, op->uid);
    if (!op->reserved || p == NULL || p->state != POD_BOUND)
        return false;
    if (str_eq(p->node->name, op->node)) {
        bind_op_succeed(op);
        return true;
    }
    (void)err_set(&op->why, ERR_CONFLICT,
                  "pod %.*s/%.*s was bound to another node while it was being bound",
                  STR_ARG(op->namespace), STR_ARG(op->name));
    bind_op_finish(op, str_of(op->why.text));
    return true;
}

/*
 * Evaluates the reservation again before each send: the node may have changed while the op waited
 * for its turn or for a retry. Also renews ASSUME_TIME, so that a resent Binding is younger than
 * those that the node got meanwhile. If an earlier copy takes effect after all, it names the same
 * card. ERR_NOTFOUND: the pod holds no card for this bind any more.
 */
static enum errc bind_op_renew(struct bind_op *op)
{
    char bytes[512];
    struct buf scratch = BUF_ON(bytes);
    struct effect effect;
    struct cache_event e = {.type = CACHE_RENEW, .settle = {.uid = op->uid}};
    enum errc code = cache_apply(op->binder->cache, &e, loop_wall_ns(op->binder->loop), &effect);
    if (code == OK) {
        op->binding.card_total = effect.card_total;
        op->binding.assume_ns = effect.assume_ns;
    }
    if (code != ERR_UNAVAILABLE)
        return code;
    struct str reason =
        fit_reason(cache_node(op->binder->cache, op->node), effect.verdict, op->node, &scratch);
    (void)err_set(&op->why, ERR_UNAVAILABLE, "the node has changed since the pod was placed: %.*s",
                  STR_ARG(reason));
    return code;
}

static void bind_op_post(struct bind_op *op)
{
    struct backend *backend = op->binder->backend;
    assert(op->machine.phase == BIND_POSTING && !timer_armed(&op->wake));
    bool may_send = backend->term(backend) == op->call.term; /* else the backend refuses it */
    enum errc code = op->reserved && may_send ? bind_op_renew(op) : OK;
    if (code == ERR_UNAVAILABLE) {
        bind_op_step(
            op, (struct bind_input){.type = BIND_IN_POSTED, .post = POST_REFUSED, .unsent = true});
        return;
    }
    /*
     * The watch has shown that the pod is bound or gone. An API server before 1.27 would apply a
     * Binding now to the next pod of that name, for which no card is reserved.
     */
    if (code == ERR_NOTFOUND) {
        if (!bind_op_observed(op))
            bind_op_step(op, (struct bind_input){.type = BIND_IN_POSTED, .post = POST_ASSIGNED});
        return;
    }
    op->writes++;
    op->sent_ns = loop_clock_ns(op->binder->loop);
    op->call.get = GET_FAILED; /* no read since this Binding */
    op->call.unsent = false;
    backend->post(backend, &op->call, &op->binding);
}

static void bind_op_act(struct bind_op *op, struct bind_output out)
{
    struct binder *b = op->binder;
    if (out.answer && op->waiters != NULL)
        bind_op_in_doubt(op);
    switch (out.action) {
    case BIND_DO_REFRESH_POST:
        b->backend->refresh(b->backend);
        bind_op_post(op);
        return;
    case BIND_DO_POST:
        bind_op_post(op);
        return;
    case BIND_DO_READ:
        b->backend->get(b->backend, &op->call, op->namespace, op->name);
        return;
    case BIND_DO_PAUSE:
        timer_arm(b->loop, &op->wake, out.pause_ms);
        return;
    case BIND_DO_CONFIRM:
        bind_op_confirmed(op, out.read_back);
        return;
    case BIND_DO_CANCEL:
        bind_op_canceled(op);
        return;
    }
}

static enum bind_input_type bind_op_input_of(const struct bind_op *op)
{
    return op->machine.phase == BIND_POSTING ? BIND_IN_POSTED : BIND_IN_READ;
}

/*
 * Whether another op has the node's turn. An op loses its turn when it is answered in doubt; a
 * repeated request makes it active again.
 */
static bool bind_op_node_is_taken(const struct bind_op *op)
{
    LIST_FOR_EACH (const struct bind_op, o, &op->binder->ops, link) {
        if (o != op && o->started && o->machine.phase == BIND_POSTING && str_eq(o->node, op->node))
            return true;
    }
    return false;
}

static void bind_op_wake(struct timer *t)
{
    struct bind_op *op = CONTAINER_OF(t, struct bind_op, wake);
    if (bind_op_observed(op))
        return;
    if (!op->machine.read_next && bind_op_node_is_taken(op))
        timer_arm(op->binder->loop, t, TURN_CHECK_MS);
    else
        bind_op_step(op, (struct bind_input){.type = BIND_IN_WAKE});
}

static void bind_op_deadline(struct timer *t)
{
    struct bind_op *op = CONTAINER_OF(t, struct bind_op, deadline);
    struct binder *b = op->binder;
    if (op->why.code == OK)
        (void)err_set(&op->why, ERR_TIMEOUT, "the API server has not answered in time");
    b->backend->cancel(&op->call);
    timer_cancel(&op->wake);
    if (!op->started) {
        bind_op_finish(op, str_of(op->why.text));
        return;
    }
    bind_op_step(op, (struct bind_input){.type = BIND_IN_DEADLINE});
}

static void bind_op_count(const struct bind_op *op, const struct bind_input *in)
{
    struct bind_counts *c = op->binder->counts;
    if (in->type == BIND_IN_READ) {
        c->reads[in->seen]++;
        return;
    }
    c->posts[in->post]++;
    expo_observe(&c->post, loop_clock_ns(op->binder->loop) - op->sent_ns);
}

static void bind_op_called(struct backend_call *c)
{
    struct bind_op *op = CONTAINER_OF(c, struct bind_op, call);
    struct bind_input in = {.type = bind_op_input_of(op), .retry_after_ms = c->retry_after_ms};
    if (in.type == BIND_IN_POSTED) {
        in.post = c->post;
        in.unsent = c->unsent;
    } else {
        in.seen = bind_op_compare(op);
    }
    bind_op_count(op, &in);
    if (c->err.code != OK)
        op->why = c->err;
    if (in.type == BIND_IN_READ && in.seen == SEEN_GONE)
        (void)err_set(&op->why, ERR_NOTFOUND, "the pod is gone");
    bind_op_step(op, in);
}

struct bind_op *bind_op_new(struct binder *b, const struct bind_args *args)
{
    struct bind_op *op =
        mem_alloc(sizeof(*op) + args->uid.n + args->namespace.n + args->name.n + args->node.n);
    if (op == NULL)
        return NULL;
    char *at = (char *)(op + 1);
    op->uid = str_store(&at, args->uid);
    op->namespace = str_store(&at, args->namespace);
    op->name = str_store(&at, args->name);
    op->node = str_store(&at, args->node);
    op->binding = (struct binding){
        .namespace = op->namespace, .name = op->name, .uid = op->uid, .node = op->node};
    op->binder = b;
    if (backend_call_init(&op->call, b->backend) != OK) {
        mem_free(op);
        return NULL;
    }
    buf_init(&op->texts, LIMIT_ALLOCATION_BYTES);
    list_push_back(&b->ops, &op->link);
    b->n_ops++;
    op->start_ms = loop_now_ms(b->loop);
    op->wake.fire = bind_op_wake;
    op->deadline.fire = bind_op_deadline;
    op->call.timeout_ms = CALL_TIMEOUT_MS;
    return op;
}

enum errc bind_op_join(struct bind_op *op, struct http_request *r)
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

/*
 * Whether a container has cores. Init containers are not counted: they use the cores of the cards
 * of the other containers, and the annotation does not name them.
 */
static bool bind_op_grants_cores(const struct holding *h)
{
    for (uint32_t i = 0; i < h->n_grants; i++) {
        if (h->grants[i].cores > 0)
            return true;
    }
    return false;
}

bool bind_op_hold(struct bind_op *op, const struct pod *p, int64_t card_total, uint64_t assume_ns)
{
    struct binding *b = &op->binding;
    const struct holding *h = p->holding;
    assert(h != NULL && op->texts.n == 0);
    b->card_total = card_total;
    b->assume_ns = assume_ns;
    allocation_write_index(&op->texts, h);
    size_t allocation = op->texts.n;
    if (h->n_shares > 0 && !request_plain(p->request))
        allocation_write(&op->texts, h, ALLOCATION_OF_MEM);
    else if (op->said_allocation)
        allocation_write_plain(&op->texts, p->request, (uint32_t)MAX_OF(p->card, 0));
    size_t cores = op->texts.n;
    if (op->said_cores || bind_op_grants_cores(h))
        allocation_write(&op->texts, h, ALLOCATION_OF_CORES);
    if (buf_failed(&op->texts))
        return false;
    b->idx = (struct str){op->texts.p, allocation};
    b->allocation = (struct str){op->texts.p + allocation, cores - allocation};
    b->cores = (struct str){op->texts.p + cores, op->texts.n - cores};
    return true;
}

void bind_op_start(struct bind_op *op)
{
    assert(!op->started && timer_armed(&op->deadline));
    bind_step_init(&op->machine, op->deadline.due_ms);
    op->call.done = bind_op_called;
    op->started = true;
    /*
     * Moves the op to the list's end: other ops may have reserved during its look-up, and the list
     * is in order of ASSUME_TIME.
     */
    list_remove(&op->link);
    list_push_back(&op->binder->ops, &op->link);
    bind_op_node_turn(op->binder, op->node);
}

void bind_op_abandon(struct bind_op *op)
{
    op->binder->backend->cancel(&op->call);
    bind_op_answer_waiters(op, STR("cardpack is shutting down"));
    bind_op_unlink(op);
    bind_op_free(op);
}
