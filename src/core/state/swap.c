/*
 * gpushare's plugin compares the amount of one container with the sum of a pod's containers,
 * without init containers. So pods with one container are alike if their sizes are equal, and a pod
 * with several containers may get the card of a pod whose sum equals one of its containers.
 *
 * When a container asks, the plugin acknowledges one pod, perhaps another pod than the container's
 * own. As long as the number of pods that still have to ask equals the number of pods not yet
 * acknowledged, the latter show on which cards the former are. That ends when a pod starts that was
 * not acknowledged, or when a pod asks twice. Then an acknowledged pod may still have to ask, and
 * it waits until it starts.
 */
#include "core/state/swap.h"

/* The sum that gpushare's plugin compares with. 0: the plugin never takes the pod. */
static int64_t swap_total_of(const struct request *r)
{
    int64_t sum = r->n_demands == 0 ? r->mem : 0;
    for (uint32_t i = 0; i < r->n_demands; i++)
        sum += r->demands[i].kind == CONTAINER_MAIN ? r->demands[i].mem : 0;
    return sum;
}

static uint32_t swap_count_asking(const struct request *r)
{
    uint32_t n = r->n_demands == 0 && r->mem > 0 ? 1 : 0;
    if (dialect_facts(r->dialect)->match == DIALECT_MATCH_IDS)
        return 0;
    for (uint32_t i = 0; i < r->n_demands; i++)
        n += r->demands[i].mem > 0 ? 1 : 0;
    return n;
}

/* Whether a container of r asks for exactly `total`. */
static bool swap_asks_for(const struct request *r, int64_t total)
{
    bool asks = r->n_demands == 0 && r->mem == total;
    for (uint32_t i = 0; i < r->n_demands; i++)
        asks = asks || r->demands[i].mem == total;
    return asks && total > 0;
}

/* Whether the plugin may answer a call of a container of `asking` with the cards of `taken`. */
static bool swap_takes(const struct request *asking, const struct request *taken)
{
    enum dialect_match match = dialect_facts(asking->dialect)->match;
    if (asking->dialect != taken->dialect || match == DIALECT_MATCH_IDS)
        return false;
    if (match == DIALECT_MATCH_ORDER || match == DIALECT_MATCH_LOCK)
        return true;
    if (match == DIALECT_MATCH_SUM)
        return swap_asks_for(asking, swap_total_of(taken));
    for (uint32_t i = 0; i < taken->n_demands; i++) {
        if (swap_asks_for(asking, taken->demands[i].mem))
            return true;
    }
    return false;
}

static bool swap_is_alike(const struct request *a, const struct request *b)
{
    return swap_takes(a, b) || swap_takes(b, a);
}

static bool swap_is_here(const struct node *n, const struct pod *p, const struct evaluation *e)
{
    return p != e->self && !(n->vacated && p->deleting);
}

/* Whether a container of p may have taken the acknowledgment of another pod: p started without
 * being acknowledged, or asks more than once, or may have been acknowledged for another pod's
 * container. */
static bool swap_may_take(const struct pod *p)
{
    return (!pod_starts(p) && p->ack != POD_ACK_SERVED) || p->start == POD_STARTING_UNSURE ||
           swap_count_asking(p->request) > 1;
}

/* taken: a pod like r may have taken the acknowledgment of another pod. */
static bool swap_waits_for(const struct pod *p, const struct request *r, bool taken)
{
    if (!pod_starts(p))
        return false;
    bool may_ask = p->ack != POD_ACK_SERVED || p->start == POD_STARTING_UNSURE || taken ||
                   swap_count_asking(p->request) > 1;
    return (pod_awaits(p) && swap_takes(r, p->request)) || (may_ask && swap_takes(p->request, r));
}

bool swap_is_like(const struct pod *p, const struct request *r)
{
    return swap_waits_for(p, r, false);
}

static bool swap_is_taken(const struct node *n, const struct evaluation *e)
{
    for (const struct pod *p = n->pods; p != NULL; p = p->next) {
        if (swap_may_take(p) && swap_is_here(n, p, e) && swap_is_alike(p->request, e->request))
            return true;
    }
    return false;
}

static void swap_add_card(struct swap *s, const struct pod *p)
{
    const struct pod_allocation *h = p->allocation;
    assert(h != NULL && s->cards != SWAP_NONE);
    if (h->n_shares != 1 || (s->cards == SWAP_ONE && s->card != h->shares[0].card))
        s->cards = SWAP_NONE;
    else if (s->cards == SWAP_ANY)
        *s = (struct swap){.cards = SWAP_ONE, .card = h->shares[0].card};
}

/* Whether a pod waits that the plugin has not acknowledged. */
static bool swap_is_busy(const struct node *n, const struct evaluation *e)
{
    for (const struct pod *p = n->pods; p != NULL; p = p->next) {
        if (pod_starts(p) && p->ack != POD_ACK_SERVED && swap_is_here(n, p, e) &&
            p->request->dialect == e->request->dialect)
            return true;
    }
    return false;
}

bool swap_is_one_at_a_time(const struct request *r)
{
    enum dialect_match match = dialect_facts(r->dialect)->match;
    return match == DIALECT_MATCH_ORDER || match == DIALECT_MATCH_LOCK;
}

/* A node with one card has no card to swap, but the plugin may need to know which pod waits. */
void swap_find(const struct node *n, const struct evaluation *e, struct swap *ret)
{
    const struct request *r = e->request;
    *ret = (struct swap){.cards = SWAP_ANY};
    if (n->n_starting == 0)
        return;
    if (swap_is_one_at_a_time(r)) {
        ret->cards = swap_is_busy(n, e) ? SWAP_NONE : SWAP_ANY;
        return;
    }
    if (n->n_cards < 2 || swap_count_asking(r) == 0)
        return;
    bool taken = swap_is_taken(n, e);
    for (const struct pod *p = n->pods; p != NULL && ret->cards != SWAP_NONE; p = p->next) {
        if (swap_is_here(n, p, e) && swap_waits_for(p, r, taken))
            swap_add_card(ret, p);
    }
    if (ret->cards == SWAP_ONE && request_cards(r) > 1)
        ret->cards = SWAP_NONE;
}

bool swap_allows_all(const struct swap *s, const struct placement *there)
{
    for (uint32_t i = 0; i < there->n; i++) {
        if (!swap_allows(s, there->grants[i].card))
            return false;
    }
    return true;
}

void swap_note_end(struct node *n, const struct pod *p)
{
    bool bound = p->state == POD_BOUND || p->state == POD_CONFIRMED;
    if (!bound || (p->ack == POD_ACK_SERVED && !swap_may_take(p)))
        return;
    assert(p->node == n);
    for (struct pod *q = n->pods; q != NULL; q = q->next) {
        if (q != p && pod_starts(q) && q->ack == POD_ACK_SERVED &&
            swap_is_alike(p->request, q->request))
            q->start = POD_STARTING_UNSURE;
    }
}
