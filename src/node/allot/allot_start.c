/*
 * PreStartContainer: whether a container may start, and with late binding which cards it gets. The
 * checkpoint says whose devices they are.
 */
#include "base/log.h"
#include "node/allot/allot_state.h"
#include "node/isolation/mps_daemon.h"
#include "json/base64.h"

#define MISFIT_MS UINT64_C(2000) /* what waiting does not change is refused after this time */
/* The runtime, which watches the folder, has read a new CDI spec. Until then it does not know the
 * device, and the kubelet tries again; but a spec that is written anew it knows with the old text.
 */
#define SEEN_MS   UINT64_C(20)
#define REREAD_MS UINT64_C(1000)

static enum errc allot_start_bind_one(struct allot *a, struct ask *k, const struct pod_match *c,
                                      struct str id)
{
    bool written = false;
    bool known = specs_find(&a->specs, id) != NULL;
    k->stuck = false;
    if (c->cards.n == 0)
        return err_set(&k->why, ERR_UNAVAILABLE, "the annotations name no card for container %.*s",
                       STR_ARG(c->container->name));
    enum errc code = allot_check_mps(a, c, &k->why);
    if (code == OK)
        code = allot_write(a, c, id, &k->why);
    if (code != OK)
        return code;
    code = specs_put(&a->specs, id, &c->cards, buf_str(&a->reply), &written, &k->why);
    k->stuck = code != OK;
    if (code != OK || !written)
        return code;
    allot_log(true, c);
    k->bound_ms = loop_now_ms(a->s.loop);
    k->seen_ms = MAX_OF(k->seen_ms, known ? REREAD_MS : SEEN_MS);
    return OK;
}

/* Late binding. The devices of an init container can be those of another container, so they do not
 * say which one starts: all of the pod's containers that have no spec get one. */
static enum errc allot_start_bind(struct allot *a, struct ask *k, struct roster_pod *p,
                                  struct roster_container *c, struct str id)
{
    struct pod_match given = {.pod = p, .container = c, .cards = c->has};
    if (!a->specs.loaded) /* what was written before this program started is not known */
        return specs_load(&a->specs, &k->why) == OK ? ERR_UNAVAILABLE : k->why.code;
    if (c->has.n == 0)
        roster_cards_of(p, c->demand, &p->said, &given.cards);
    enum errc code = allot_start_bind_one(a, k, &given, id);
    if (code == OK)
        c->has = given.cards;
    return code;
}

/* Without late binding a container that starts again gets what the kubelet has kept. */
static enum errc allot_start_check_kept(struct allot *a, struct ask *k, const struct roster_pod *p,
                                        const struct checkpoint_entry *e, const struct card_list *l)
{
    const struct gpu_card *cards[REQUEST_CARDS_MAX];
    struct str kept = STR("");
    arena_reset(&a->arena);
    if (e->answer.p != NULL && base64_decode(e->answer, &a->arena, &kept) == ERR_NOMEM)
        return err_set(&k->why, ERR_NOMEM, "no memory for an answer");
    for (uint32_t i = 0; i < l->n; i++) {
        cards[i] = a->s.card(a->s.ctx, l->cards[i]);
        if (cards[i] == NULL || cards[i]->missing)
            return err_set(&k->why, ERR_UNAVAILABLE,
                           "card %u is not on this node now: if it does not come back, delete pod "
                           "%.*s/%.*s",
                           l->cards[i], STR_ARG(p->namespace), STR_ARG(p->name));
    }
    bool mps = l->n > 0 && a->means == ISOLATION_MPS;
    const char *stale = answer_find_stale(kept, cards, l->n, mps ? a->s.mps_dir : STR_NULL);
    return stale == NULL
               ? OK
               : err_set(&k->why, ERR_RANGE,
                         "container %.*s of pod %.*s/%.*s can't start, because %s: "
                         "delete the pod",
                         STR_ARG(e->container), STR_ARG(p->namespace), STR_ARG(p->name), stale);
}

/* Asked at each start: what allot_set_means says may be seconds old, and without its daemon CUDA
 * runs as if there were no MPS, with no limit (nvidia-cuda-mps-control(1)). */
static enum errc allot_start_check_mps(const struct allot *a, const struct card_list *l,
                                       struct err *e)
{
    char why[GPU_REASON_BYTES];
    for (uint32_t i = 0; a->means == ISOLATION_MPS && i < l->n; i++) {
        const struct gpu_card *c = a->s.card(a->s.ctx, l->cards[i]);
        if (c != NULL && !mps_daemon_serves(a->s.mps_dir, c, why))
            return err_set(e, ERR_UNAVAILABLE, "card %u would not be limited for the container: %s",
                           c->index, why);
    }
    return OK;
}

/* Whether the container of this entry may be the one that starts. */
static bool allot_start_is_of(const struct ask *k, const struct checkpoint_entry *e)
{
    for (size_t i = 0; i < e->n_ids; i++) {
        if (str_eq(e->ids[i], str_of(k->device)))
            return true;
    }
    return false;
}

static enum errc allot_start_check(struct allot *a, struct ask *k, struct roster_pod *p)
{
    enum errc code = OK;
    for (size_t i = 0; i < a->checkpoint.now.n_entries && code == OK; i++) {
        const struct checkpoint_entry *e = &a->checkpoint.now.entries[i];
        const struct card_list *has = &a->checkpoint.cards[i];
        struct str id = a->checkpoint.ids[i];
        if (!str_eq(e->resource, a->resource) || !str_eq(e->pod_uid, p->uid))
            continue;
        bool starts = allot_start_is_of(k, e);
        struct roster_container *c = id.p == NULL ? NULL : roster_container(p, e->container);
        if (c != NULL && (starts || c->has.n == 0)) {
            code = allot_start_bind(a, k, p, c, id);
            has = &c->has;
        } else if (id.p == NULL && starts) {
            code = allot_start_check_kept(a, k, p, e, has);
        }
        if (code == OK && starts)
            code = allot_start_check_mps(a, has, &k->why);
    }
    return code;
}

static enum errc allot_start_is_allowed(struct allot *a, struct ask *k)
{
    if (!a->listed)
        return err_set(&k->why, ERR_UNAVAILABLE, "the pods of this node are not listed yet");
    (void)allot_refresh(a, false, &k->why);
    if (a->planless || !a->checkpoint.loaded)
        return k->why.code;
    const struct checkpoint_entry *e = checkpoint_file_owner(&a->checkpoint, str_of(k->device));
    if (e == NULL)
        return err_set(&k->why, ERR_NOTFOUND, "the kubelet's checkpoint does not have device %s",
                       k->device);
    struct roster_pod *p = roster_find(&a->roster, e->pod_uid);
    if (p == NULL)
        return err_set(&k->why, ERR_NOTFOUND, "the API server has not shown the pod with UID %.*s",
                       STR_ARG(e->pod_uid));
    k->why = (struct err)ERR_INIT;
    roster_ask(p, e->container);
    if (exchange_may_start(&a->roster, p))
        return allot_start_check(a, k, p);
    if (exchange_is_misfit(p) && p->refused)
        return err_set(
            &k->why, ERR_RANGE,
            "the API server refuses to write the cards of pod %.*s/%.*s, see its events: "
            "delete the pod",
            STR_ARG(p->namespace), STR_ARG(p->name));
    if (exchange_is_misfit(p) && p->lost)
        return err_set(&k->why, ERR_RANGE,
                       "the kubelet has lost the devices of pod %.*s/%.*s while it ran, and has "
                       "given it others of another card: delete the pod",
                       STR_ARG(p->namespace), STR_ARG(p->name));
    if (exchange_is_misfit(p) && roster_is_bound(p))
        return err_set(&k->why, ERR_RANGE,
                       "the annotations of pod %.*s/%.*s were changed after its start, and name "
                       "other cards than its containers have: set them back, or delete the pod",
                       STR_ARG(p->namespace), STR_ARG(p->name));
    if (exchange_is_misfit(p))
        return err_set(&k->why, ERR_RANGE,
                       "pod %.*s/%.*s has the cards of another pod, because the kubelet does not "
                       "say for which pod it asks, and no exchange is possible: delete the pod",
                       STR_ARG(p->namespace), STR_ARG(p->name));
    if (exchange_is_crowded(&a->roster, p))
        return err_set(&k->why, ERR_CONFLICT,
                       "the card of pod %.*s/%.*s has no room for it beside other pods: it waits "
                       "until one of them ends",
                       STR_ARG(p->namespace), STR_ARG(p->name));
    if (p->doubt)
        return err_set(&k->why, ERR_UNAVAILABLE,
                       "a change of the cards of pod %.*s/%.*s that was sent before may still come",
                       STR_ARG(p->namespace), STR_ARG(p->name));
    return err_set(&k->why, ERR_UNAVAILABLE,
                   "the cards of pod %.*s/%.*s are not in its annotations yet%s%s",
                   STR_ARG(p->namespace), STR_ARG(p->name), a->patcher.last.code == OK ? "" : ": ",
                   a->patcher.last.code == OK ? "" : a->patcher.last.text);
}

/* Whether the runtime may not have read a spec that was written for this call. */
static bool allot_start_is_unread(const struct allot *a, const struct ask *k)
{
    return k->bound_ms > 0 && loop_now_ms(a->s.loop) - k->bound_ms < k->seen_ms;
}

void allot_try_start(struct allot *a, struct ask *k)
{
    if (allot_start_is_unread(a, k))
        return; /* at each tick until then no spec is read, and no daemon of MPS is asked */
    enum errc code = allot_start_is_allowed(a, k);
    if (code == OK && allot_start_is_unread(a, k))
        return;
    if (code == OK) {
        a->counts.started++;
        grpc_call_reply(k->call, STR(""));
        allot_drop(k);
        return;
    }
    /* What waiting does not change is refused soon, and the kubelet shows why. */
    if (allot_age(a, k) >= (code == ERR_RANGE || k->stuck ? MISFIT_MS : ALLOT_START_MS))
        allot_refuse(a, k);
}
