/*
 * Answers the requests; reserves, renews, confirms and releases the card by events to the cache;
 * writes the pod's annotations.
 */
#include "daemon/bind/bind_op.h"

#include "base/log.h"
#include "base/mem.h"
#include "core/limit.h"
#include "core/place/fit.h"
#include "core/state/vgpu.h"
#include "daemon/bind/bind.h"
#include "daemon/outcome.h"
#include "objects/allocation.h"
#include "objects/limit.h"
#include "objects/seats.h"
#include "report/reason.h"

#include <stdio.h>

/* In another term the lock is another replica's matter. */
static bool bind_op_may_lock(struct node_lock *l)
{
    const struct bind_op *op = CONTAINER_OF(l, struct bind_op, lock);
    struct backend *backend = op->call.backend;
    return l->releases || backend->term(backend) == op->call.term;
}

struct bind_op *bind_op_new(const struct bind_args *args, struct backend *backend)
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
    if (backend_call_init(&op->call, backend) != OK) {
        mem_free(op);
        return NULL;
    }
    buf_init(&op->texts, LIMIT_ALLOCATION_BYTES);
    node_lock_init(&op->lock);
    op->lock.node = op->node;
    op->lock.namespace = op->namespace;
    op->lock.name = op->name;
    op->lock.may = bind_op_may_lock;
    return op;
}

void bind_op_free(struct bind_op *op)
{
    assert(op->waiters == NULL && !list_is_linked(&op->link));
    assert(!timer_armed(&op->wake) && !timer_armed(&op->deadline));
    backend_call_done(&op->call);
    node_lock_done(&op->lock);
    buf_done(&op->texts);
    mem_free(op);
}

/* ---- the requests ---- */

void bind_op_respond(struct http_request *r, struct str error)
{
    if (r->outcome == OUTCOME_UNSAID)
        r->outcome = error.n == 0 ? OUTCOME_OK : OUTCOME_ERROR;
    extender_write_bind(r->answer, error);
    http_request_respond(r, 200, "application/json");
}

/* "12 of 16 on card 2" for each card */
static void bind_op_put_shares(struct buf *out, const struct pod *p)
{
    for (uint32_t i = 0; i < p->allocation->n_shares; i++) {
        const struct share *s = &p->allocation->shares[i];
        if (!node_has_card(p->node, s->card))
            continue;
        int64_t total = p->node->cards[s->card].total;
        buf_printf(out, "%s%lld of %lld on card %u", i == 0 ? ": " : ", ",
                   (long long)share_charge(p->request, s, total), (long long)total, s->card);
    }
}

void bind_op_tell_place(const struct bind_op *op, struct events *events, const struct pod *p)
{
    char bytes[EVENT_MESSAGE_BYTES + 1];
    struct buf text = BUF_ON(bytes);
    const struct event_subject pod = {op->namespace, op->name, op->uid};
    buf_printf(&text, "Placed on node %.*s", STR_ARG(op->node));
    if (p != NULL && p->node != NULL && p->allocation != NULL && str_eq(p->node->name, op->node))
        bind_op_put_shares(&text, p);
    events_post(events, &pod, EVENT_NORMAL, STR("Placed"), buf_str(&text));
}

void bind_op_answer(struct bind_op *op, struct str error)
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

void bind_op_answer_in_doubt(struct bind_op *op)
{
    char text[512];
    int n = snprintf(text, sizeof(text),
                     "whether pod %.*s/%.*s is bound to node %.*s is not known yet, its card stays "
                     "reserved: %s",
                     STR_ARG(op->namespace), STR_ARG(op->name), STR_ARG(op->node), op->why.text);
    op->outcome = OUTCOME_IN_DOUBT;
    log_warn("bind is in doubt", kv_str("namespace", op->namespace), kv_str("pod", op->name),
             kv_str("node", op->node), kv_cstr("error", op->why.text));
    bind_op_answer(op, (struct str){text, MIN_OF((size_t)MAX_OF(n, 0), sizeof(text) - 1)});
    op->outcome = OUTCOME_UNSAID;
}

void bind_op_log_bound(const struct bind_op *op, uint64_t now_ms)
{
    log_info("bound", kv_str("namespace", op->namespace), kv_str("pod", op->name),
             kv_str("node", op->node), kv_str("card", op->binding.idx),
             kv_int("mem", op->binding.mem), kv_uint("writes", op->writes),
             kv_uint("took_ms", now_ms - op->start_ms));
}

/* ---- the pod and its card ---- */

enum errc bind_op_check_known(const struct pod *p, const struct bind_args *args, struct err *reterr)
{
    if (!str_eq(p->name, args->name) || !str_eq(p->namespace, args->namespace))
        return err_set(reterr, ERR_CONFLICT,
                       "PodUID %.*s is that of pod %.*s/%.*s, not of %.*s/%.*s", STR_ARG(p->uid),
                       STR_ARG(p->namespace), STR_ARG(p->name), STR_ARG(args->namespace),
                       STR_ARG(args->name));
    if (pod_holds(p) && !str_eq(p->node->name, args->node))
        return err_set(
            reterr, ERR_CONFLICT, "pod %.*s/%.*s is bound to node \"%.*s\", not to \"%.*s\"",
            STR_ARG(p->namespace), STR_ARG(p->name), STR_ARG(p->node->name), STR_ARG(args->node));
    return OK;
}

bool bind_op_needs_pod(const struct request *r)
{
    return dialect_names_containers(r->dialect) || dialect_has_uuids(r->dialect);
}

enum errc bind_op_check(const struct bind_op *op, struct request *ret, struct err *reterr)
{
    const struct pod_view *pod = &op->call.pod;
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
 * Whether a container has cores. Init containers are not counted: they use the cores of the cards
 * of the other containers, and the annotation does not name them.
 */
static bool bind_op_grants_cores(const struct pod_allocation *h)
{
    for (uint32_t i = 0; i < h->n_grants; i++) {
        if (h->grants[i].cores > 0)
            return true;
    }
    return false;
}

/* The same for a dialect other than gpushare's. */
static bool bind_op_annotate_other(struct bind_op *op, const struct pod *p)
{
    struct binding *b = &op->binding;
    if (dialect_has_uuids(b->dialect)) {
        vgpu_write_pod(pod_list(p), p->request, &op->call.pod, &op->texts);
        b->idx = buf_str(&op->texts);
        return !buf_failed(&op->texts);
    }
    if (dialect_facts(b->dialect)->seat.p == NULL) {
        allocation_write_index(&op->texts, p->allocation);
        b->idx = buf_str(&op->texts);
        return !buf_failed(&op->texts);
    }
    b->n_seats = seats_write(p->allocation, p->request, &op->call.pod, &op->texts, op->seats);
    b->seats = op->seats;
    b->idx = b->n_seats > 0 ? op->seats[0].cards : STR_NULL;
    return b->n_seats > 0;
}

/* HAMi's family writes the texts twice. */
static_assert(LIMIT_ANNOTATIONS_BYTES + 2 * LIMIT_ALLOCATION_BYTES + 16 * KIB <=
                  LIMIT_ANNOTATIONS_API_BYTES,
              "no room for the annotations of a Binding, and for a few others");

/* Completes op->binding for the cards that p holds. False: allocation failed. */
static bool bind_op_annotate(struct bind_op *op, const struct pod *p)
{
    struct binding *b = &op->binding;
    const struct pod_allocation *h = p->allocation;
    assert(h != NULL && op->texts.n == 0);
    b->dialect = p->request->dialect;
    if (b->dialect != DIALECT_OWN && request_shares(p->request))
        return bind_op_annotate_other(op, p);
    allocation_write_index(&op->texts, h);
    size_t allocation = op->texts.n;
    if (h->n_shares > 0 && !request_plain(p->request))
        allocation_write(&op->texts, h, ALLOCATION_OF_MEM);
    else if (op->former.allocation)
        allocation_write_plain(&op->texts, p->request, (uint32_t)MAX_OF(p->card, 0));
    size_t cores = op->texts.n;
    if (op->former.cores || bind_op_grants_cores(h))
        allocation_write(&op->texts, h, ALLOCATION_OF_CORES);
    if (buf_failed(&op->texts))
        return false;
    b->idx = (struct str){op->texts.p, allocation};
    b->allocation = (struct str){op->texts.p + allocation, cores - allocation};
    b->cores = (struct str){op->texts.p + cores, op->texts.n - cores};
    b->vacated = op->former.vacated;
    return true;
}

static void bind_op_say_refused(const struct bind_op *op, const struct cache *cache,
                                const struct request *asked, struct step_budget *step_budget,
                                enum verdict verdict, struct buf *why)
{
    struct evaluation e;
    char bytes[512];
    struct buf scratch = BUF_ON(bytes);
    const struct node *n = cache_node(cache, op->node);
    cache_evaluation(cache, op->uid, asked, &e);
    e.step_budget = step_budget;
    struct str reason = reason_node(&scratch, op->node, n, &e, verdict);
    buf_printf(why, "node %.*s can't hold pod %.*s/%.*s, which asks for ", STR_ARG(op->node),
               STR_ARG(op->namespace), STR_ARG(op->name));
    reason_request(why, asked, e.devices);
    buf_printf(why, ": %.*s", STR_ARG(reason));
    if (verdict != VERDICT_QUOTA && verdict != VERDICT_QUOTA_DENIED)
        reason_cards(why, n, &e);
}

enum errc bind_op_reserve(struct bind_op *op, struct cache *cache, const struct request *request,
                          struct step_budget *step_budget, uint64_t now_ns, struct buf *why)
{
    struct effect effect;
    struct cache_event reserve = {.type = CACHE_RESERVE,
                                  .reserve = {.uid = op->uid,
                                              .namespace = op->namespace,
                                              .name = op->name,
                                              .node = op->node,
                                              .request = request,
                                              .step_budget = step_budget,
                                              .version = op->binding.version}};
    enum errc code = cache_apply(cache, &reserve, now_ns, &effect);
    if (code == ERR_UNAVAILABLE) {
        bind_op_say_refused(op, cache, request, step_budget, effect.verdict, why);
        return code;
    }
    if (code != OK) {
        buf_put(why, code == ERR_CONFLICT ? STR("the pod already holds a card")
                                          : STR("cardpack is out of memory"));
        return code;
    }
    op->reserved = true;
    op->binding.card_total = effect.card_total;
    op->binding.assume_ns = effect.assume_ns;
    if (bind_op_annotate(op, effect.pod))
        return OK;
    struct cache_event cancel = {.type = CACHE_CANCEL, .holder = {.uid = op->uid}};
    code = cache_apply(cache, &cancel, 0, &effect);
    assert(code == OK);
    op->reserved = false;
    buf_put(why, STR("cardpack is out of memory"));
    return ERR_NOMEM;
}

static void bind_op_say_edited(struct bind_op *op)
{
    (void)err_set(&op->why, ERR_CONFLICT,
                  "the request of pod %.*s/%.*s was changed while the pod was being bound",
                  STR_ARG(op->namespace), STR_ARG(op->name));
}

bool bind_op_is_edited(struct bind_op *op, const struct cache *cache)
{
    struct request now;
    struct err e = ERR_INIT;
    const struct pod *p = cache_pod(cache, op->uid);
    bool same =
        request_read(&op->call.pod, &now, &e) == OK &&
        (op->reserved ? p != NULL && request_alike(p->request, &now) : !request_wants(&now));
    if (same)
        op->binding.version = op->call.pod.version;
    else
        bind_op_say_edited(op);
    return !same;
}

enum errc bind_op_renew(struct bind_op *op, struct cache *cache, uint64_t now_ns)
{
    char bytes[512];
    struct buf scratch = BUF_ON(bytes);
    struct effect effect;
    struct cache_event e = {.type = CACHE_RENEW, .holder = {.uid = op->uid}};
    enum errc code = cache_apply(cache, &e, now_ns, &effect);
    if (code == OK) {
        op->binding.card_total = effect.card_total;
        op->binding.assume_ns = effect.assume_ns;
        op->binding.version = MAX_OF(op->binding.version, effect.version);
    }
    if (code == ERR_CONFLICT) {
        bind_op_say_edited(op);
        return ERR_UNAVAILABLE;
    }
    if (code != ERR_UNAVAILABLE)
        return code;
    struct str reason = fit_reason(cache_node(cache, op->node), effect.verdict, op->node, &scratch);
    (void)err_set(&op->why, ERR_UNAVAILABLE, "the node has changed since the pod was placed: %.*s",
                  STR_ARG(reason));
    return code;
}

/* Whether the pod has the cards of our Binding. */
static bool bind_op_is_there(const struct bind_op *op)
{
    const struct pod_view *pod = &op->call.pod;
    const struct binding *b = &op->binding;
    if (b->idx.n == 0)
        return true;
    return b->n_seats > 0 ? seats_are_there(pod, b->dialect, b->seats, b->n_seats)
                          : str_eq(pod->said[b->dialect].idx, b->idx);
}

enum bind_seen bind_op_compare(const struct bind_op *op)
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
    return bind_op_is_there(op) ? SEEN_AS_ASKED : SEEN_HERE;
}

bool bind_op_confirm(struct bind_op *op, struct cache *cache, bool read_back)
{
    struct effect effect;
    if (!op->reserved)
        return true;
    /*
     * The answer to the Binding is no proof for a pod that the watch has never shown: the pod may
     * have ended during its look-up, and an API server before 1.27 then binds the next pod of the
     * same name. Only a read can show that.
     */
    const struct pod *p = cache_pod(cache, op->uid);
    if (!read_back && p != NULL && !p->seen)
        return false;
    struct cache_event e = {.type = CACHE_CONFIRM,
                            .holder = {.uid = op->uid, .read_back = read_back}};
    /*
     * The read shows that the pod has ended: pass on the object, which releases the card. The watch
     * may have shown the end long ago and will not show it again.
     */
    if (read_back && pod_view_terminal(&op->call.pod))
        e = (struct cache_event){.type = CACHE_POD_READ, .pod = op->call.pod};
    return cache_apply(cache, &e, 0, &effect) != ERR_CONFLICT;
}

bool bind_op_release(struct bind_op *op, struct cache *cache, uint64_t now_ns)
{
    struct effect effect;
    if (!op->reserved)
        return true;
    enum bind_seen seen = bind_op_compare(op);
    if (seen == SEEN_AS_ASKED || seen == SEEN_HERE || seen == SEEN_ELSEWHERE) {
        struct cache_event read = {.type = CACHE_POD_READ, .pod = op->call.pod};
        enum errc taken = cache_apply(cache, &read, now_ns, &effect);
        if (taken == OK || taken == ERR_CONFLICT)
            return taken == OK;
    }
    struct cache_event e = {.type = CACHE_CANCEL, .holder = {.uid = op->uid}};
    enum errc code = cache_apply(cache, &e, 0, &effect);
    assert(code == OK);
    return true;
}

enum errc bind_op_say_busy(const struct bind_op *op, struct err *reterr)
{
    return err_set(reterr, ERR_CONFLICT,
                   "pod %.*s/%.*s is being bound to node \"%.*s\", and the "
                   "outcome is not certain yet",
                   STR_ARG(op->namespace), STR_ARG(op->name), STR_ARG(op->node));
}

void bind_op_count(const struct bind_op *op, struct bind_load *ret)
{
    ret->waiting += op->started && op->machine.phase == BIND_QUEUED ? 1 : 0;
    ret->in_doubt += op->started && op->machine.in_doubt ? 1 : 0;
    if (!op->reserved)
        return;
    ret->reserved++;
    ret->oldest_ms = MIN_OF(ret->oldest_ms, op->start_ms);
}

void bind_op_say_elsewhere(struct bind_op *op)
{
    (void)err_set(&op->why, ERR_CONFLICT,
                  "pod %.*s/%.*s was bound to another node while it was being bound",
                  STR_ARG(op->namespace), STR_ARG(op->name));
}

void bind_op_say_canceled(struct bind_op *op, enum bind_seen seen)
{
    if (seen == SEEN_ELSEWHERE)
        (void)err_set(&op->why, ERR_CONFLICT, "the pod is bound to node \"%.*s\"",
                      STR_ARG(op->call.pod.node));
    else if (seen == SEEN_GONE)
        (void)err_set(&op->why, ERR_NOTFOUND, "the pod is gone");
    else if (op->why.code == OK)
        (void)err_set(&op->why, ERR_TIMEOUT, "the binds to this node before it took too long");
    (void)err_wrap(&op->why, "can't bind pod %.*s/%.*s to node %.*s", STR_ARG(op->namespace),
                   STR_ARG(op->name), STR_ARG(op->node));
}

/* ---- the lock of the node ---- */

bool bind_op_needs_lock(const struct bind_op *op)
{
    return op->reserved && op->lock.api != NULL &&
           dialect_facts(op->binding.dialect)->lock.p != NULL;
}

void bind_op_stop_locking(struct bind_op *op, uint64_t now_ms)
{
    struct bind_input unsent = {.type = BIND_IN_POSTED, .post = POST_NOT_SENT};
    node_lock_cancel(&op->lock);
    op->locking = false;
    (void)bind_step(&op->machine, &unsent, now_ms);
}
