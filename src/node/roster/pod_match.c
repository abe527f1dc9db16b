/* Finds the pod and container that an Allocate is for, among those that wait for as much. */
#include "node/roster/pod_match.h"

#include "node/roster/exchange.h"

/* The container that the pod would get these devices for; NULL: the pod does not wait for them. */
static const struct roster_container *pod_match_waiting(const struct roster_pod *p,
                                                        const struct pod_match_call *call,
                                                        struct card_list *cards)
{
    const struct roster_container *c = roster_next(p);
    if (c == NULL || c->demand->mem != call->n || p->released)
        return NULL;
    if (call->uid.p != NULL && !str_eq(p->uid, call->uid))
        return NULL;
    roster_cards_of(p, c->demand, &p->plan, cards);
    return cards->n > 0 ? c : NULL;
}

/* Whether p's cards have room for all of p, beside what containers really have. */
static bool pod_match_has_room(const struct roster *r, const struct roster_pod *p)
{
    for (uint32_t i = 0; i < p->plan.n; i++) {
        uint32_t card = p->plan.grants[i].card;
        if (roster_charge(r, p, &p->plan, card) + roster_started_on(r, card, p) >
            roster_total(r, card))
            return false;
    }
    return true;
}

/* The pod with the newest devices is next, if it still waits for some. Another one that has only
 * some is next if the kubelet, or this program, has started since; otherwise its admission failed.
 * One whose devices are lost comes last: the kubelet asks for it only when a container starts
 * again.
 */
static int pod_match_rank(const struct roster *r, const struct roster_pod *p)
{
    bool started = roster_has_started(r, p);
    assert(p != NULL);
    if (p == r->last && started)
        return 0;
    if (p->lost)
        return 6;
    if (p->spent)
        return 5;
    if (p->backlog || r->last == NULL)
        return started ? 1 : 2;
    return started ? 4 : 3;
}

/* Whether a comes before b (negative) or after it (positive); 0: the order is not known. */
static int pod_match_order(const struct roster *r, const struct roster_pod *a,
                           const struct roster_pod *b)
{
    int rank = pod_match_rank(r, a) - pod_match_rank(r, b);
    if (rank != 0)
        return rank;
    if (a->backlog)
        return a->created_s < b->created_s ? -1 : a->created_s > b->created_s;
    return a->seen < b->seen ? -1 : a->seen > b->seen;
}

/* How many pods wait for as much on the same cards, and come neither before nor after p. */
static unsigned pod_match_company(const struct roster *r, const struct pod_match_call *call,
                                  const struct roster_pod *p, const struct card_list *cards)
{
    unsigned n = 0;
    for (size_t i = 0; i < r->n_pods; i++) {
        struct card_list other;
        if (pod_match_order(r, p, r->pods[i]) == 0 &&
            pod_match_waiting(r->pods[i], call, &other) != NULL && card_list_equal(cards, &other))
            n++;
    }
    return n;
}

/* Whether p is a better guess than the best so far. */
static bool pod_match_is_better(const struct roster *r, const struct pod_match_call *call,
                                const struct roster_pod *p, const struct card_list *cards,
                                const struct pod_match *best)
{
    int order = pod_match_order(r, p, best->pod);
    if (order != 0)
        return order < 0;
    unsigned mine = pod_match_company(r, call, p, cards);
    unsigned others = pod_match_company(r, call, best->pod, &best->cards);
    if (mine != others)
        return mine > others;
    return p->seen < best->pod->seen;
}

static enum errc pod_match_fail(const struct pod_match_call *call, const struct roster_pod *full,
                                struct err *reterr)
{
    if (full != NULL)
        return err_set(reterr, ERR_CONFLICT,
                       "no room on the card of pod %.*s/%.*s for %lld units: containers of other "
                       "pods have it",
                       STR_ARG(full->namespace), STR_ARG(full->name), (long long)call->n);
    if (call->uid.p != NULL)
        return err_set(reterr, ERR_NOTFOUND,
                       "the pod with UID %.*s has no container that waits for %lld units",
                       STR_ARG(call->uid), (long long)call->n);
    return err_set(reterr, ERR_NOTFOUND,
                   "no pod on this node waits for %lld units with a card in its annotations",
                   (long long)call->n);
}

enum errc pod_match_find(const struct roster *r, const struct pod_match_call *call,
                         struct pod_match *ret, struct err *reterr)
{
    const struct roster_pod *full = NULL;
    ret->pod = NULL;
    for (size_t i = 0; i < r->n_pods; i++) {
        struct card_list cards;
        struct roster_pod *p = r->pods[i];
        const struct roster_container *c = pod_match_waiting(p, call, &cards);
        if (c == NULL || (ret->pod != NULL && !pod_match_is_better(r, call, p, &cards, ret)))
            continue;
        if (!pod_match_has_room(r, p) || exchange_is_misfit(p)) {
            full = p;
            if (p == r->last)
                break; /* it is for this pod: no other one's cards */
            continue;
        }
        *ret = (struct pod_match){.pod = p, .container = c, .cards = cards};
    }
    if (full != NULL && full == r->last)
        ret->pod = NULL;
    return ret->pod == NULL ? pod_match_fail(call, full, reterr) : OK;
}

void pod_match_store(struct roster *r, const struct pod_match *c)
{
    r->guess =
        (struct roster_guess){.pod = c->pod, .n = c->container->demand->mem, .cards = c->cards};
    r->guessed = c->pod;
}
