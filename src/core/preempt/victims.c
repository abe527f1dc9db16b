/*
 * Chooses victims on an overlay of the node without the pods that go anyway. The overlay has its
 * own list of pods, so that the functions of fit.c do not find those pods either. For memory of one
 * card, each card is searched alone: evicting a pod on another card does not help, unless the
 * node's sum is short or pods of the other device plugin block the node. For several cards the
 * cheapest cards are combined.
 */
#include "core/preempt/victims.h"

#include "base/sort.h"
#include "core/state/swap.h"
#include "victims_search.h"

/* ---- candidates for eviction ---- */

/* A binary search: s->gone is sorted by address. */
static bool victims_is_given(const struct search *s, const struct pod *p)
{
    uint32_t low = 0;
    for (uint32_t high = s->n_gone; low < high;) {
        uint32_t middle = low + (high - low) / 2;
        if ((uintptr_t)s->gone[middle] < (uintptr_t)p)
            low = middle + 1;
        else
            high = middle;
    }
    return low < s->n_gone && s->gone[low] == p;
}

static bool victims_is_spared(const struct victims_question *q, const struct pod *p)
{
    for (size_t i = 0; i < q->n_spared; i++) {
        if (q->spared[i] == p)
            return true;
    }
    return false;
}

static bool victims_may_go(const struct victims_question *q, const struct pod *p)
{
    const struct request *r = q->evaluation->request;
    bool beside = r->affinity.n > 0 && str_eq(r->affinity, p->request->affinity) &&
                  str_eq(r->namespace, p->namespace);
    bool waits = node_is_guarded(q->node) && swap_is_like(p, r);
    return p != q->evaluation->self && p->state != POD_RESERVED &&
           p->request->priority < r->priority && !beside && !waits && !victims_is_spared(q, p);
}

static bool victims_read_budget_pod(const struct pod *p, struct arena *a, struct budget_pod *ret)
{
    struct label_view *labels = arena_array(a, labels_count(p->labels), sizeof(*labels));
    if (labels == NULL)
        return false;
    labels_view(p->labels, labels);
    *ret = (struct budget_pod){.namespace = p->namespace,
                               .name = p->name,
                               .labels = labels,
                               .n_labels = labels_count(p->labels)};
    return true;
}

static bool victims_has_budgets(const struct victims_question *q)
{
    return q->budgets != NULL && q->budgets->all.n > 0;
}

static bool victims_read_budgets(struct search *s, struct arena *a, struct victim *v)
{
    struct budgets *b = s->q->budgets;
    const struct step_budget *w = s->q->evaluation->step_budget;
    if (!victims_has_budgets(s->q) || (w != NULL && step_budget_is_spent(w)))
        return true;
    if (!victims_read_budget_pod(v->pod, a, &v->budget))
        return false;
    v->guarded = budgets_next_of(b, &v->budget, NULL) != NULL;
    if (!v->guarded)
        return true;
    search_count_given(s);
    v->violates = budgets_count(b, &v->budget);
    return true;
}

static bool victims_is_at_less(const void *ctx, uint32_t a, uint32_t b)
{
    const struct pod *const *given = ctx;
    return (uintptr_t)given[a] < (uintptr_t)given[b];
}

/* Copies q->given to s->gone without duplicates. */
static bool victims_read_given(struct search *s, struct arena *a)
{
    const struct victims_question *q = s->q;
    uint32_t n = (uint32_t)q->n_given;
    uint32_t *order = arena_array(a, n, sizeof(*order));
    s->gone = arena_array(a, n, sizeof(struct pod *));
    if (order == NULL || s->gone == NULL)
        return false;
    for (uint32_t i = 0; i < n; i++)
        order[i] = i;
    evaluation_count_steps(q->evaluation, n);
    sort_by(order, n, victims_is_at_less, q->given);
    for (uint32_t i = 0; i < n; i++) {
        const struct pod *p = q->given[order[i]];
        if (s->n_gone == 0 || s->gone[s->n_gone - 1] != p)
            s->gone[s->n_gone++] = p;
    }
    assert(s->n_gone <= n);
    s->given = arena_array(a, s->n_gone, sizeof(*s->given));
    if (s->given == NULL)
        return false;
    for (uint32_t i = 0; i < s->n_gone && victims_has_budgets(q); i++) {
        if (!victims_read_budget_pod(s->gone[i], a, &s->given[s->n_given++]))
            return false;
    }
    return true;
}

/* ---- order ---- */

static int32_t victims_name_cmp(const struct pod *a, const struct pod *b)
{
    int order = str_cmp(a->namespace, b->namespace);
    if (order == 0)
        order = str_cmp(a->name, b->name);
    return order != 0 ? order : str_cmp(a->uid, b->uid);
}

static bool victims_is_lower(const struct pod *a, const struct pod *b)
{
    return a->card != b->card ? a->card < b->card : victims_name_cmp(a, b) < 0;
}

static bool victims_is_dearer(const struct victim *a, const struct victim *b)
{
    const struct request *x = a->pod->request;
    const struct request *y = b->pod->request;
    if (a->violates != b->violates)
        return a->violates;
    if (x->priority != y->priority)
        return x->priority > y->priority;
    return x->mem != y->mem ? x->mem < y->mem : a->rank > b->rank;
}

static bool victims_is_twin(const struct victim *a, const struct victim *b)
{
    const struct request *x = a->pod->request;
    const struct request *y = b->pod->request;
    const struct pod_allocation *h = a->pod->allocation;
    const struct pod_allocation *k = b->pod->allocation;
    return !a->guarded && !b->guarded && h->n_shares == 1 && k->n_shares == 1 &&
           h->shares[0].card == k->shares[0].card && h->shares[0].mem == k->shares[0].mem &&
           h->shares[0].cores == k->shares[0].cores && h->shares[0].whole == k->shares[0].whole &&
           share_takers(&h->shares[0]) == share_takers(&k->shares[0]) &&
           x->priority == y->priority && x->mem == y->mem && x->percent == y->percent &&
           x->whole == y->whole && x->exclusive == y->exclusive && x->claims == y->claims &&
           str_eq(x->anti_affinity, y->anti_affinity) && str_eq(x->namespace, y->namespace);
}

static bool victims_rank_before(const void *ctx, uint32_t a, uint32_t b)
{
    const struct victim *all = ctx;
    return victims_is_lower(all[a].pod, all[b].pod);
}

static bool victims_dear_before(const void *ctx, uint32_t a, uint32_t b)
{
    const struct victim *all = ctx;
    return victims_is_dearer(&all[a], &all[b]);
}

/* Sorts s->all, the most important pod first, and fills by_rank. False: allocation failed. */
static bool victims_sort(struct search *s, struct arena *a)
{
    uint32_t *order = arena_array(a, s->n_all, sizeof(*order));
    struct victim *sorted = arena_array(a, s->n_all, sizeof(*sorted));
    s->by_rank = arena_array(a, s->n_all, sizeof(*s->by_rank));
    if (order == NULL || sorted == NULL || s->by_rank == NULL)
        return false;
    for (uint32_t i = 0; i < s->n_all; i++)
        order[i] = i;
    sort_by(order, s->n_all, victims_rank_before, s->all);
    for (uint32_t i = 0; i < s->n_all; i++)
        s->all[order[i]].rank = i;
    for (uint32_t i = 0; i < s->n_all; i++)
        order[i] = i;
    sort_by(order, s->n_all, victims_dear_before, s->all);
    for (uint32_t i = 0; i < s->n_all; i++) {
        sorted[i] = s->all[order[i]];
        s->by_rank[sorted[i].rank] = i;
    }
    s->all = sorted;
    for (uint32_t i = 1; i < s->n_all; i++)
        sorted[i].twin = victims_is_twin(&sorted[i - 1], &sorted[i]);
    return true;
}

/* Makes the overlay, the node without the pods that are gone, and lists the pods that may go. False
 * without memory. */
static bool victims_init_overlay(struct search *s, struct arena *a)
{
    const struct victims_question *q = s->q;
    struct pod *copies = arena_array(a, q->node->n_pods, sizeof(*copies));
    s->all = arena_array(a, q->node->n_pods, sizeof(*s->all));
    s->subset = arena_array(a, q->node->n_pods, sizeof(struct victim *));
    if (copies == NULL || s->all == NULL || s->subset == NULL || !victims_read_given(s, a))
        return false;
    evaluation_count_steps(q->evaluation, q->node->n_cards + 8 * (uint64_t)q->node->n_pods);
    overlay_init(&s->overlay, q->node);
    s->overlay.node.pods = NULL;
    s->overlay.node.kept_for = q->node->kept_for;
    for (const struct pod *p = q->node->pods; p != NULL; p = p->next) {
        if (p->deleting || victims_is_given(s, p)) {
            overlay_remove(&s->overlay, p);
            continue;
        }
        struct pod *copy = copies++;
        *copy = *p;
        copy->prev = NULL;
        pods_add(&s->overlay.node.pods, copy);
        if (!victims_may_go(q, p))
            continue;
        assert(s->n_all < q->node->n_pods);
        struct victim *v = &s->all[s->n_all++];
        *v = (struct victim){.pod = p, .copy = copy};
        if (!victims_read_budgets(s, a, v))
            return false;
    }
    return victims_sort(s, a);
}

/* ---- the choice ---- */

static void victims_subset_of_card(struct search *s, uint32_t card)
{
    s->n = 0;
    evaluation_count_steps(s->q->evaluation, s->n_all);
    for (uint32_t i = 0; i < s->n_all; i++) {
        if (pod_allocation_is_on(s->all[i].pod->allocation, card))
            s->subset[s->n++] = &s->all[i];
    }
}

static void victims_subset_of_node(struct search *s)
{
    s->n = 0;
    for (uint32_t i = 0; i < s->n_all; i++)
        s->subset[s->n++] = &s->all[i];
}

static void victims_forget(struct search *s)
{
    s->found = false;
    for (uint32_t i = 0; i < s->n_all; i++)
        s->all[i].best = false;
}

static void victims_search_cards(struct search *s)
{
    for (uint32_t i = 0; i < s->overlay.node.n_cards; i++) {
        victims_subset_of_card(s, i);
        if (s->n > 0)
            search_run(s);
    }
}

/* The cost of making room on one card. */
struct price {
    bool possible;
    bool taken;
    struct victims_cost cost;
};

static struct price victims_price_of(struct search *s, uint32_t card)
{
    s->card = card;
    victims_forget(s);
    victims_subset_of_card(s, card);
    if (search_fits(s))
        return (struct price){.possible = true, .cost = {.highest = INT32_MIN}};
    search_run(s);
    return (struct price){.possible = s->found, .cost = s->best};
}

/* Finds as many cards as the pod asks for, the cheapest first, and searches among the victims on
 * these cards together. */
static bool victims_search_cheapest(struct search *s, struct arena *a)
{
    uint32_t n = s->overlay.node.n_cards;
    struct price *prices = arena_array(a, n, sizeof(*prices));
    if (prices == NULL)
        return false;
    for (uint32_t i = 0; i < n; i++)
        prices[i] = victims_price_of(s, i);
    for (uint32_t wanted = request_cards(s->q->evaluation->request); wanted > 0; wanted--) {
        uint32_t best = n;
        for (uint32_t i = 0; i < n; i++) {
            bool open = prices[i].possible && !prices[i].taken;
            if (open && (best == n || victims_cost_cmp(&prices[i].cost, &prices[best].cost) < 0))
                best = i;
        }
        if (best == n)
            break;
        prices[best].taken = true;
        (void)victims_price_of(s, best);
        for (uint32_t i = 0; i < s->n_all; i++)
            s->all[i].cheap = s->all[i].cheap || s->all[i].best;
    }
    s->card = -1;
    victims_forget(s);
    s->n = 0;
    for (uint32_t i = 0; i < s->n_all; i++) {
        if (s->all[i].cheap)
            s->subset[s->n++] = &s->all[i];
    }
    search_run(s);
    return true;
}

/* Whether victims on other cards than the wanted one may be needed: for the node's sum, for the
 * other device plugin, or because kept room may move to another card. */
static bool victims_is_node_wide(const struct search *s)
{
    const struct request *r = s->q->evaluation->request;
    const struct node *n = &s->overlay.node;
    int64_t most = r->percent > 0 || r->whole ? MAX_OF(r->mem, n->largest) : r->mem;
    return n->kept_for != NULL || n->exclusive > 0 || request_cards(r) > 1 || request_may_part(r) ||
           request_by_container(r) || r->mem > node_free(n) || most > n->total - n->used;
}

/* Lets the next fit_place search as far as the first one could: each search leaves fewer looks, and
 * a set that made room would make none any more. Called a few times for a node. */
static void victims_refill(struct search *s)
{
    struct step_budget *w = s->q->evaluation->step_budget;
    if (w == NULL)
        return;
    s->spent += s->looks - w->looks;
    w->looks = s->looks;
}

/* Whether a search has ended for lack of looks: then a set may be missed that makes room. */
static bool victims_is_cut(const struct search *s)
{
    return s->q->evaluation->step_budget != NULL && s->q->evaluation->step_budget->cut;
}

/* Subtracts all that the search has taken. */
static void victims_settle(struct search *s)
{
    struct step_budget *w = s->q->evaluation->step_budget;
    victims_refill(s);
    if (w != NULL)
        w->looks -= MIN_OF(w->looks, s->spent);
}

/* Evaluates the pod on the overlay without all possible victims: only VERDICT_FITS makes a search
 * worth it. The overlay is restored. */
static enum verdict victims_place_without_all(struct search *s)
{
    struct placement there _uninitialized_;
    evaluation_count_steps(s->q->evaluation, 2 * (uint64_t)s->n_all);
    for (uint32_t i = 0; i < s->n_all; i++)
        search_take(s, &s->all[i]);
    victims_refill(s);
    enum verdict v = fit_place(&s->overlay.node, s->q->evaluation, &there);
    for (uint32_t i = 0; i < s->n_all; i++)
        search_give_back(s, &s->all[i]);
    return v;
}

/* Whether room may be there after fewer evictions: then gpu-manager may choose a card that the pod
 * may have. */
static bool victims_is_by_order(const struct search *s, enum verdict v)
{
    return s->uneven && (v == VERDICT_PLUGIN_ORDER || v == VERDICT_KEPT || v == VERDICT_QUOTA);
}

/* Searches among all pods. With gpu-manager first as elsewhere, which finds a set at once if all
 * pods together make room, and then for a cheaper one. */
static void victims_search_node(struct search *s)
{
    bool uneven = s->uneven;
    victims_subset_of_node(s);
    s->uneven = false;
    search_run(s);
    s->uneven = uneven;
    if (uneven)
        search_run(s);
}

/* s->found: there is a set. False: allocation failed. */
static bool victims_search_all(struct search *s, struct arena *a)
{
    bool several = request_cards(s->q->evaluation->request) > 1 &&
                   !request_by_container(s->q->evaluation->request);
    if (several && !victims_search_cheapest(s, a))
        return false;
    if (!several)
        victims_search_cards(s);
    victims_refill(s);
    if (!s->found || s->uneven || victims_is_node_wide(s))
        victims_search_node(s);
    assert(s->found || s->uneven || victims_is_cut(s));
    if (s->found)
        search_trim(s);
    return true;
}

static enum errc victims_tell(struct search *s, struct arena *a, struct victims *ret)
{
    uint32_t n = 0;
    victims_refill(s);
    ret->verdict = fit_place(&s->overlay.node, s->q->evaluation, &ret->there);
    assert(ret->verdict == VERDICT_FITS || victims_is_cut(s));
    if (ret->verdict != VERDICT_FITS)
        return OK;
    ret->card = ret->there.n == 0 ? -1 : (int32_t)ret->there.grants[0].card;
    ret->cost = s->best;
    ret->pods = arena_array(a, s->best.n, sizeof(struct pod *));
    if (ret->pods == NULL)
        return arena_fault(a);
    for (uint32_t rank = 0; rank < s->n_all; rank++) {
        const struct victim *v = &s->all[s->by_rank[rank]];
        if (v->best)
            ret->pods[n++] = v->pod;
    }
    assert(n == s->best.n);
    return OK;
}

static enum errc victims_choose_pods(struct search *s, struct arena *a, struct victims *ret)
{
    const struct victims_question *q = s->q;
    *ret = (struct victims){.card = -1, .cost = s->best};
    if (q->node == NULL || q->node->fault == NODE_ABSENT) {
        ret->verdict = VERDICT_UNKNOWN_NODE;
        return OK;
    }
    if (!victims_init_overlay(s, a))
        return arena_fault(a);
    if (search_fits(s))
        return victims_tell(s, a, ret);
    ret->verdict = victims_place_without_all(s);
    if (ret->verdict != VERDICT_FITS && !victims_is_by_order(s, ret->verdict))
        return OK;
    if (!victims_search_all(s, a))
        return arena_fault(a);
    if (s->found)
        return victims_tell(s, a, ret);
    if (ret->verdict == VERDICT_FITS) /* the search was cut */
        ret->verdict = VERDICT_NO_CARD_FREE;
    return OK;
}

enum errc victims_choose(const struct victims_question *q, struct arena *a, struct victims *ret)
{
    const struct evaluation *e = q->evaluation;
    struct search s = {.q = q,
                       .card = -1,
                       .best = {.highest = INT32_MIN},
                       .uneven = dialect_facts(e->request->dialect)->match == DIALECT_MATCH_ORDER,
                       .looks = e->step_budget == NULL ? 0 : e->step_budget->looks};
    uint64_t before = q->budgets == NULL ? 0 : q->budgets->looks;
    enum errc code = victims_choose_pods(&s, a, ret);
    victims_settle(&s);
    if (q->budgets != NULL)
        evaluation_count_steps(e, q->budgets->looks - before);
    return code;
}
