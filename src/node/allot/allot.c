/*
 * The calls that wait are tried again after each change: of a pod, of a card, by an answer to a
 * PATCH, and by a timer, which sees the checkpoint's changes and the deadlines.
 */
#include "node/allot/allot.h"

#include "base/log.h"
#include "base/mem.h"
#include "grpc/limit.h"
#include "node/allot/allot_state.h"
#include "node/isolation/mps_daemon.h"

#define TICK_MS   UINT64_C(20)
#define UNSEEN_MS UINT64_C(1000) /* the watch shows a pod of the checkpoint within this time */
#define RELIST_MS \
    UINT64_C(300) /* then the pods are listed, for an Allocate that no pod waits for */
#define REPLY_MAX ((size_t)LIMIT_GRPC_MESSAGE)

static void allot_step(struct allot *a);

/* ---- the state ---- */

static void allot_changed(void *ctx)
{
    allot_step(ctx);
}

bool allot_refresh(struct allot *a, bool after_allocate, struct err *e)
{
    struct err unread = ERR_INIT;
    if (!a->listed) /* the first checkpoint says which pods may run: they must be known */
        return (void)err_set(e, ERR_UNAVAILABLE, "the pods of this node are not listed yet"), false;
    if (checkpoint_file_load(&a->checkpoint, e) != OK)
        return false;
    if (specs_load(&a->specs, &unread) != OK) /* the pods that need them wait: see allot_start.c */
        log_debug("the CDI specs can't be read", kv_cstr("error", unread.text));
    /* First what users have edited: the checkpoint may not say any more what the pods have. */
    a->planless = !exchange_plan(&a->roster);
    bool all = !a->planless && checkpoint_file_apply(&a->checkpoint, &a->roster, after_allocate);
    a->planless = a->planless || !exchange_plan(&a->roster);
    if (a->planless)
        return (void)err_set(e, ERR_NOMEM, "no memory for the pods' cards"), false;
    if (!all)
        (void)err_set(e, ERR_NOTFOUND,
                      "the kubelet's checkpoint has a pod that the API server has not shown");
    return all;
}

uint64_t allot_age(const struct allot *a, const struct ask *k)
{
    return loop_now_ms(a->s.loop) - k->since_ms;
}

void allot_drop(struct ask *k)
{
    list_remove(&k->link);
    mem_free(k->device);
    mem_free(k->owner);
    mem_free(k);
}

void allot_refuse(struct allot *a, struct ask *k)
{
    if (k->start) {
        log_warn("a container may not start yet", kv_int("devices", k->n),
                 kv_cstr("error", k->why.text));
        a->counts.held++;
    } else {
        log_warn("no card for a container", kv_int("devices", k->n), kv_cstr("error", k->why.text));
        a->counts.refused++;
    }
    grpc_call_fail(k->call, grpc_status_of(k->why.code), str_of(k->why.text));
    allot_drop(k);
}

/* ---- Allocate ---- */

/* ERR_UNAVAILABLE: a card is not there. */
static enum errc allot_describe(const struct allot *a, const struct card_list *l,
                                const struct gpu_card *cards[REQUEST_CARDS_MAX], struct err *e)
{
    for (uint32_t i = 0; i < l->n; i++) {
        cards[i] = a->s.card(a->s.ctx, l->cards[i]);
        if (cards[i] == NULL || cards[i]->missing || roster_total(&a->roster, l->cards[i]) == 0)
            return err_set(e, ERR_UNAVAILABLE,
                           "card %u, which the pod's annotations name, is not "
                           "on this node",
                           l->cards[i]);
    }
    return OK;
}

enum errc allot_write(struct allot *a, const struct pod_match *c, struct str id, struct err *e)
{
    const struct gpu_card *cards[REQUEST_CARDS_MAX];
    int64_t totals[REQUEST_CARDS_MAX];
    struct card_share share;
    share_of(&a->roster, c->pod, c->container->demand, &c->cards, &share);
    const struct answer_settings settings = {.disable_cgpu = a->disable_cgpu,
                                             .device_nodes = a->s.device_nodes,
                                             .limits = a->means == ISOLATION_DRIVER_LIMITS,
                                             .mps_dir = a->means == ISOLATION_MPS ? a->s.mps_dir
                                                                                  : STR_NULL,
                                             .unit = {a->s.unit_bytes}};
    const struct answer_want want = {.cards = cards,
                                     .n_cards = c->cards.n,
                                     .dev_total = totals,
                                     .container_units = c->container->demand->mem,
                                     .pod_units = c->pod->request->lasting_mem,
                                     .limit_units = share.units,
                                     .cores = share.cores};
    enum errc code = allot_describe(a, &c->cards, cards, e);
    if (code != OK)
        return code;
    for (uint32_t i = 0; i < c->cards.n; i++)
        totals[i] = roster_total(&a->roster, c->cards.cards[i]);
    buf_clear(&a->reply, MIB);
    code = id.p == NULL ? answer_write(&a->reply, &settings, &want, e)
                        : answer_write_spec(&a->reply, &settings, &want, id, e);
    if (code == OK && buf_failed(&a->reply))
        code = err_set(e, buf_fault(&a->reply), "no memory for the answer");
    return code;
}

enum errc allot_check_mps(const struct allot *a, const struct pod_match *c, struct err *e)
{
    if (!isolation_serves(a->means, c->cards.n))
        return err_set(e, ERR_DENIED,
                       "container %.*s has %u cards, and MPS serves a process with one: without "
                       "MPS it would take its cards from all others",
                       STR_ARG(c->container->name), c->cards.n);
    if (a->means == ISOLATION_MPS && c->container->has.n == 0 &&
        roster_given_on(&a->roster, c->cards.cards[0]) >= MPS_CLIENTS_MAX)
        return err_set(e, ERR_LIMIT, "card %u has %d containers, the most that MPS serves",
                       c->cards.cards[0], MPS_CLIENTS_MAX);
    return OK;
}

void allot_log(bool late, const struct pod_match *c)
{
    log_info("a container gets its cards", kv_str("namespace", c->pod->namespace),
             kv_str("pod", c->pod->name), kv_str("container", c->container->name),
             kv_int("devices", c->container->demand->mem), kv_uint("card", c->cards.cards[0]),
             kv_uint("cards", c->cards.n), kv_bool("late", late));
}

static void allot_answer(struct allot *a, struct ask *k, const struct pod_match *c)
{
    if (allot_check_mps(a, c, &k->why) != OK || allot_write(a, c, STR_NULL, &k->why) != OK) {
        allot_refuse(a, k);
        return;
    }
    allot_log(false, c);
    pod_match_store(&a->roster, c);
    a->counts.allocated++;
    grpc_call_reply(k->call, buf_str(&a->reply));
    allot_drop(k);
}

/* Lists the pods, if the watch may lag behind the kubelet's. */
static void allot_relist(struct allot *a, struct ask *k)
{
    if (k->relisted || a->listing || allot_age(a, k) < RELIST_MS)
        return;
    k->relisted = true;
    a->listing = true;
    a->s.relist(a->s.ctx);
}

/* The UID of the pod that the call must be for; absent: not known. If that pod waits for nothing,
 * it has ended, because the kubelet has taken its devices back: the watch will show the end. */
static struct str allot_owner(const struct allot *a, const struct ask *k)
{
    if (k->owner == NULL)
        return STR_NULL;
    const struct roster_pod *p = roster_find(&a->roster, str_of(k->owner));
    return p == NULL || roster_next(p) == NULL ? STR_NULL : p->uid;
}

static enum errc allot_match(const struct allot *a, struct ask *k, struct pod_match *ret)
{
    const struct pod_match_call call = {.n = k->n, .uid = allot_owner(a, k)};
    return pod_match_find(&a->roster, &call, ret, &k->why);
}

static void allot_try_allocate(struct allot *a, struct ask *k)
{
    struct pod_match match;
    bool late = allot_age(a, k) >= ALLOT_MATCH_MS;
    k->why = (struct err)ERR_INIT;
    if (!a->listed || (a->listing && !k->relisted && !late)) {
        (void)err_set(&k->why, ERR_UNAVAILABLE, "the pods of this node are not listed yet");
    } else if (!allot_refresh(a, true, &k->why)) {
        if (a->checkpoint.loaded && a->roster.unseen && allot_age(a, k) >= UNSEEN_MS)
            checkpoint_file_forget(&a->checkpoint, &a->roster);
    } else if (allot_match(a, k, &match) == OK) {
        if (!match.pod->lost || (k->relisted && !a->listing)) {
            allot_answer(a, k, &match);
            return;
        }
        /* A container of this pod may run, so the call may be for another pod that the watch has
         * not shown yet. */
        (void)err_set(&k->why, ERR_UNAVAILABLE, "the pods of this node could not be listed");
    }
    allot_relist(a, k);
    if (late)
        allot_refuse(a, k);
}

/* For whom it is, the checkpoint says at the container's start. */
static void allot_answer_late(struct allot *a, struct grpc_call *call,
                              const struct allocate_container *q)
{
    char id[SPECS_ID_BYTES + 1];
    struct err e = ERR_INIT;
    (void)allot_refresh(a, true, &e); /* a guess before this one may be void */
    specs_make_id(loop_random(a->s.loop), loop_random(a->s.loop), id);
    buf_clear(&a->reply, MIB);
    answer_write_late(&a->reply, str_of(id));
    if (buf_failed(&a->reply)) {
        a->counts.refused++;
        grpc_call_fail(call, GRPC_RESOURCE_EXHAUSTED, STR("no memory"));
        return;
    }
    log_info("a container gets its cards when it starts", kv_uint("devices", q->n_ids),
             kv_cstr("cdi", id));
    a->counts.allocated++;
    grpc_call_reply(call, buf_str(&a->reply));
}

/* ---- turns ---- */

/* Removes specs that are not needed any more, when the checkpoint has changed. */
static void allot_sweep(struct allot *a)
{
    struct err e = ERR_INIT;
    bool seen = checkpoint_file_load(&a->checkpoint, &e) != OK || specs_load(&a->specs, &e) != OK ||
                file_stamp_eq(a->swept_stamp, a->checkpoint.stamp);
    if (seen && a->swept)
        return;
    a->swept = late_binding_sweep(&a->specs, &a->checkpoint);
    a->swept_stamp = a->checkpoint.stamp;
}

/* Lists the pods, if no PATCH from before can be on its way any more. */
static void allot_settle(struct allot *a)
{
    if (!a->patcher.passed || a->listing || !a->listed || !exchange_is_unsettled(&a->roster))
        return;
    a->settling = true;
    a->listing = true;
    a->s.relist(a->s.ctx);
}

static void allot_step(struct allot *a)
{
    struct list_link *next = NULL;
    for (struct list_link *x = list_first(&a->asks); x != NULL; x = next) {
        struct ask *k = CONTAINER_OF(x, struct ask, link);
        next = list_next(&a->asks, x);
        if (k->start && !a->listed)
            allot_relist(a, k); /* a pod could not be kept */
        if (k->start)
            allot_try_start(a, k);
        else
            allot_try_allocate(a, k);
    }
    if (a->listed && exchange_plan(&a->roster)) {
        late_binding_log_edits(&a->roster);
        pod_patcher_step(&a->patcher);
    }
    allot_settle(a);
    allot_sweep(a);
    if (!list_is_empty(&a->asks) || !a->swept)
        timer_arm(a->s.loop, &a->tick, TICK_MS);
}

static void allot_on_tick(struct timer *t)
{
    allot_step(CONTAINER_OF(t, struct allot, tick));
}

/* ---- the kubelet's calls ---- */

static char *allot_copy(struct str s)
{
    char *z = mem_alloc(s.n + 1);
    if (z == NULL)
        return NULL;
    if (s.n > 0)
        memcpy(z, s.p, s.n);
    z[s.n] = '\0';
    return z;
}

/* The device may be another plugin's: a container that this one started is started again. */
static struct ask *allot_ask(struct allot *a, struct grpc_call *call,
                             const struct allocate_container *q)
{
    if (q->n_ids == 0) {
        grpc_call_fail(call, GRPC_INVALID_ARGUMENT, STR("no device"));
        return NULL;
    }
    struct ask *k = mem_alloc(sizeof(*k));
    char *device = allot_copy(q->ids[0]);
    if (k == NULL || device == NULL) {
        mem_free(device);
        mem_free(k);
        grpc_call_fail(call, GRPC_RESOURCE_EXHAUSTED, STR("no memory"));
        return NULL;
    }
    *k = (struct ask){.call = call, .n = (int64_t)q->n_ids, .since_ms = loop_now_ms(a->s.loop)};
    k->device = device;
    k->why = (struct err)ERR_INIT;
    list_push_back(&a->asks, &k->link);
    return k;
}

/* Devices that a pod has already name it: a container gets those of its pod's init containers. */
static bool allot_find_owner(struct allot *a, struct ask *k, const struct allocate_container *q)
{
    struct err e = ERR_INIT;
    const struct checkpoint_entry *owner = NULL;
    if (checkpoint_file_load(&a->checkpoint, &e) != OK)
        return true; /* it is read again */
    for (size_t i = 0; i < q->n_ids && owner == NULL; i++)
        owner = checkpoint_file_owner(&a->checkpoint, q->ids[i]);
    if (owner == NULL || roster_find(&a->roster, owner->pod_uid) == NULL)
        return true; /* the kubelet has taken them back from a pod that has ended */
    k->owner = allot_copy(owner->pod_uid);
    return k->owner != NULL;
}

void allot_allocate(struct allot *a, struct grpc_call *call, const struct allocate_request *q)
{
    if (q->n_containers != 1) {
        grpc_call_fail(call, GRPC_INVALID_ARGUMENT,
                       STR("an Allocate is for one container at a time"));
        return;
    }
    if (a->late && q->containers[0].n_ids > 0) {
        allot_answer_late(a, call, &q->containers[0]);
        return;
    }
    struct ask *k = allot_ask(a, call, &q->containers[0]);
    if (k == NULL)
        return;
    if (!allot_find_owner(a, k, &q->containers[0])) {
        (void)err_set(&k->why, ERR_NOMEM, "no memory");
        allot_refuse(a, k);
        return;
    }
    allot_step(a);
}

void allot_pre_start(struct allot *a, struct grpc_call *call, const struct allocate_container *ids)
{
    struct ask *k = allot_ask(a, call, ids);
    if (k == NULL)
        return;
    k->start = true;
    allot_step(a);
}

/* What a container with so many devices will probably get; none if that is not known. */
static size_t allot_wish(struct allot *a, int64_t n, struct device_wish wishes[REQUEST_CARDS_MAX])
{
    struct pod_match match;
    struct err e = ERR_INIT;
    const struct pod_match_call call = {.n = n, .uid = STR_NULL};
    (void)allot_refresh(a, true, &e);
    if (pod_match_find(&a->roster, &call, &match, &e) != OK)
        return 0;
    for (uint32_t i = 0; i < match.cards.n; i++)
        wishes[i] = (struct device_wish){match.cards.cards[i], n / match.cards.n};
    return match.cards.n;
}

void allot_preferred(struct allot *a, struct grpc_call *call, const struct preferred_request *q)
{
    struct device_wish wishes[REQUEST_CARDS_MAX];
    struct allocate_container chosen = {.n_ids = 0};
    struct err e = ERR_INIT;
    if (q->n_containers != 1) {
        grpc_call_fail(call, GRPC_INVALID_ARGUMENT, STR("a preference is for one container"));
        return;
    }
    size_t n = allot_wish(a, q->containers[0].size, wishes);
    arena_reset(&a->arena);
    buf_clear(&a->reply, MIB);
    if (devices_prefer(&q->containers[0], wishes, n, &a->arena, &chosen) == OK)
        preferred_response_write(&a->reply, &chosen, 1);
    else
        (void)err_set(&e, ERR_NOMEM, "no memory for the devices");
    if (e.code != OK || buf_failed(&a->reply))
        grpc_call_fail(call, GRPC_RESOURCE_EXHAUSTED, STR("no memory"));
    else
        grpc_call_reply(call, buf_str(&a->reply));
}

void allot_gone(struct allot *a, struct grpc_call *call)
{
    for (struct list_link *x = list_first(&a->asks); x != NULL; x = list_next(&a->asks, x)) {
        struct ask *k = CONTAINER_OF(x, struct ask, link);
        if (k->call == call) {
            allot_drop(k);
            return;
        }
    }
}

/* Not only when the kubelet asks: another plugin may have given pods other cards than annotated. */
static void allot_read_checkpoint(struct allot *a)
{
    struct err e = ERR_INIT;
    if (a->listed && a->roster.n_cards > 0)
        (void)allot_refresh(a, false, &e); /* the next call of the kubelet gets the error */
}

/* After its start the kubelet asks for all pods that wait. Those that have ended must be gone. */
void allot_registered(struct allot *a, bool kubelet_restarted)
{
    if (!kubelet_restarted)
        return;
    allot_read_checkpoint(a); /* whether it has lost its checkpoint */
    roster_mark_backlog(&a->roster);
    a->listing = true;
    a->s.relist(a->s.ctx);
}

/* ---- the pods and the cards ---- */

void allot_list_begin(struct allot *a)
{
    roster_list_begin(&a->roster);
    a->settles = a->settles || a->settling;
    a->settling = false;
    a->listing = true;
    a->unkept = false;
}

void allot_list_end(struct allot *a)
{
    roster_list_end(&a->roster);
    a->listed = !a->unkept;
    a->listing = false;
    if (a->settles && a->patcher.passed) /* no PATCH has lost its answer since the list began */
        roster_settle(&a->roster);
    a->settles = false;
    if (a->unkept)
        timer_arm(a->s.loop, &a->again, ALLOT_AGAIN_MS);
    allot_read_checkpoint(a);
    allot_step(a);
}

static void allot_on_again(struct timer *t)
{
    struct allot *a = CONTAINER_OF(t, struct allot, again);
    if (a->listed || a->listing)
        return;
    a->listing = true;
    a->s.relist(a->s.ctx);
}

void allot_set_pod(struct allot *a, const struct pod_view *view, uint64_t version)
{
    enum errc code = roster_set(&a->roster, view, version);
    if (code != OK) {
        log_warn("a pod can't be kept", kv_str("namespace", view->namespace),
                 kv_str("pod", view->name),
                 kv_cstr("error", code == ERR_LIMIT ? "too many pods" : "no memory"));
        a->listed = false; /* its cards are not known: the next list tries again */
        a->unkept = true;
        if (!a->listing)
            timer_arm(a->s.loop, &a->again, ALLOT_AGAIN_MS);
    }
    if (pod_view_terminal(view))
        checkpoint_file_forget_pod(&a->checkpoint, view->uid);
    if (a->listed && !a->listing)
        allot_step(a);
}

void allot_remove_pod(struct allot *a, struct str uid)
{
    roster_remove(&a->roster, uid);
    checkpoint_file_forget_pod(&a->checkpoint, uid);
    if (a->listed && !a->listing)
        allot_step(a);
}

void allot_set_offer(struct allot *a, const struct offer *o)
{
    struct roster_card cards[ROSTER_CARDS_MAX];
    size_t n = MIN_OF(o->n, ROSTER_CARDS_MAX);
    for (size_t i = 0; i < n; i++)
        cards[i] = (struct roster_card){.index = o->items[i].index, .total = o->items[i].units};
    roster_set_cards(&a->roster, cards, n);
    allot_read_checkpoint(a);
    allot_step(a);
}

void allot_set_cgpu(struct allot *a, bool disable)
{
    a->disable_cgpu = disable;
}

void allot_set_means(struct allot *a, enum isolation means)
{
    a->means = means;
}

void allot_set_late(struct allot *a, bool late)
{
    a->late = late;
}

/* ---- life ---- */

enum errc allot_new(const struct allot_settings *s, struct allot **ret, struct err *reterr)
{
    struct allot *a = mem_alloc(sizeof(*a) + s->checkpoint.n + s->resource.n + s->cdi_dir.n + 2);
    if (a == NULL)
        return err_set(reterr, ERR_NOMEM, "no memory for the pods' cards");
    *a = (struct allot){.s = *s, .swept = true};
    char *at = (char *)(a + 1);
    a->resource = str_store(&at, s->resource);
    a->path = str_store(&at, s->checkpoint);
    *at++ = '\0';
    a->cdi_dir = str_store(&at, s->cdi_dir);
    *at = '\0';
    roster_init(&a->roster);
    specs_init(&a->specs, a->cdi_dir);
    checkpoint_file_init(&a->checkpoint, a->path, a->resource, &a->specs);
    pod_patcher_init(&a->patcher, s->loop, s->api, s->events, &a->roster, allot_changed, a);
    list_init(&a->asks);
    a->tick.fire = allot_on_tick;
    a->again.fire = allot_on_again;
    buf_init(&a->reply, REPLY_MAX);
    arena_init(&a->arena, REPLY_MAX);
    *ret = a;
    return OK;
}

struct allot *allot_free(struct allot *a)
{
    if (a == NULL)
        return NULL;
    timer_cancel(&a->tick);
    timer_cancel(&a->again);
    while (!list_is_empty(&a->asks))
        allot_drop(CONTAINER_OF(list_first(&a->asks), struct ask, link));
    pod_patcher_done(&a->patcher);
    checkpoint_file_done(&a->checkpoint);
    specs_done(&a->specs);
    roster_done(&a->roster);
    buf_done(&a->reply);
    arena_done(&a->arena);
    mem_free(a);
    return NULL;
}
