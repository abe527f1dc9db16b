/*
 * A depth-first search over the pods that stay, the most important pod first. Each pod is first
 * tried as staying, and later as going. So the first set that is found is kube-scheduler's own
 * choice, each state on the way has room for the new pod, and a set that costs more than the best
 * is dropped as soon as that is known.
 *
 * With gpu-manager, which chooses the cards itself, a state on the way may have no room although
 * one further on has it, and the other way round. There all sets are tried, the cheapest pods
 * first, and only whole sets are evaluated.
 *
 * Rejected: adding victims to an empty set, which shows only at the end whether there is room; and
 * comparing sums of sizes instead of calling fit_place, which checks more than memory.
 */
#include "victims_search.h"
#include "core/limit.h"

/* Tries for one subset: enough for all sets of twelve pods, if none could be ruled out. */
#define TRIES 4096

int victims_cost_cmp(const struct victims_cost *a, const struct victims_cost *b)
{
    if (a->violations != b->violations)
        return a->violations < b->violations ? -1 : 1;
    if (a->highest != b->highest)
        return a->highest < b->highest ? -1 : 1;
    if (a->n != b->n)
        return a->n < b->n ? -1 : 1;
    return a->sum < b->sum ? -1 : a->sum > b->sum ? 1 : 0;
}

void search_take(struct search *s, struct victim *v)
{
    pods_remove(&s->overlay.node.pods, v->copy);
    overlay_remove(&s->overlay, v->copy);
}

void search_give_back(struct search *s, struct victim *v)
{
    const struct pod *p = v->copy;
    pods_add(&s->overlay.node.pods, v->copy);
    overlay_charge(&s->overlay, p->request, p->allocation->shares, p->allocation->n_shares, 1);
}

bool search_fits(const struct search *s)
{
    struct placement there _uninitialized_;
    if (s->card >= 0)
        return fit_card(&s->overlay.node, s->q->evaluation, (uint32_t)s->card) == VERDICT_FITS;
    return fit_place(&s->overlay.node, s->q->evaluation, &there) == VERDICT_FITS;
}

void search_count_given(const struct search *s)
{
    struct budgets *b = s->q->budgets;
    budgets_count_begin(b);
    for (uint32_t i = 0; i < s->n_given; i++)
        (void)budgets_count(b, &s->given[i]);
}

/* The cost of the going pods among the first n of the subset, counted in that order. */
static struct victims_cost victims_search_cost_of(const struct search *s, uint32_t n)
{
    struct victims_cost cost = {.highest = INT32_MIN};
    assert(n <= s->n);
    struct budgets *b = s->q->budgets;
    bool counting = false;
    evaluation_count_steps(s->q->evaluation, n);
    for (uint32_t i = 0; i < n; i++) {
        const struct victim *v = s->subset[i];
        int32_t priority = v->pod->request->priority;
        if (!v->goes)
            continue;
        cost.highest = MAX_OF(cost.highest, priority);
        cost.n++;
        cost.sum += (uint64_t)((int64_t)priority - INT32_MIN);
        if (!v->guarded)
            continue;
        if (!counting)
            search_count_given(s);
        counting = true;
        cost.violations += budgets_count(b, &v->budget) ? 1 : 0;
    }
    return cost;
}

/* Whether the present set comes before the best set, which costs the same. */
static bool victims_search_comes_first(const struct search *s)
{
    const struct victim *first = NULL;
    for (uint32_t i = 0; i < s->n_all; i++) {
        const struct victim *v = &s->all[i];
        if (v->goes != v->best && (first == NULL || v->rank < first->rank))
            first = v;
    }
    return first != NULL && first->goes;
}

/* Whether only whole sets show whether there is room. On a card alone no order counts. */
static bool victims_search_is_uneven(const struct search *s)
{
    return s->uneven && s->card < 0;
}

static void victims_search_consider(struct search *s)
{
    assert(s->level == s->n);
    struct victims_cost cost = victims_search_cost_of(s, s->n);
    int order = s->found ? victims_cost_cmp(&cost, &s->best) : -1;
    if (order > 0 || (order == 0 && !victims_search_comes_first(s)))
        return;
    if (victims_search_is_uneven(s) && !search_fits(s))
        return;
    s->found = true;
    s->best = cost;
    for (uint32_t i = 0; i < s->n_all; i++)
        s->all[i].best = s->all[i].goes;
}

/* Steps so far, of the policy and of the budgets. */
static uint64_t victims_search_looks_of(const struct search *s)
{
    const struct step_budget *w = s->q->evaluation->step_budget;
    const struct budgets *b = s->q->budgets;
    return (w == NULL ? 0 : w->steps) + (b == NULL ? 0 : b->looks);
}

static void victims_search_charge(struct search *s, uint64_t steps)
{
    s->tries -= (unsigned)MIN_OF(s->tries, steps);
    *s->q->steps -= (unsigned)MIN_OF(*s->q->steps, steps);
}

static bool victims_search_is_tired(struct search *s)
{
    uint64_t looks = victims_search_looks_of(s);
    victims_search_charge(s, (looks - s->charged) / LIMIT_VICTIM_LOOKS);
    s->charged = looks - (looks - s->charged) % LIMIT_VICTIM_LOOKS;
    return s->tries == 0 || *s->q->steps == 0;
}

/* Lets the pod at the present level stay on the node, if there is room for it. If the level before
 * has an equal pod (its twin) that goes, this is not tried: exchanging the two makes no other set.
 */
static bool victims_search_keep_next(struct search *s)
{
    assert(s->level < s->n);
    struct victim *v = s->subset[s->level];
    if (v->twin && s->level > 0 && s->subset[s->level - 1]->goes)
        return false;
    victims_search_charge(s, 1);
    search_give_back(s, v);
    if (victims_search_is_uneven(s) || search_fits(s)) {
        s->level++;
        return true;
    }
    search_take(s, v);
    return false;
}

/* Lets the next pod go. False if the set then costs more than the best. */
static bool victims_search_drop_next(struct search *s)
{
    assert(s->level < s->n);
    s->subset[s->level++]->goes = true;
    if (!s->found)
        return true;
    struct victims_cost cost = victims_search_cost_of(s, s->level);
    return victims_cost_cmp(&cost, &s->best) <= 0;
}

/* Returns to the last pod that stays, and lets it go. False if there is none. */
static bool victims_search_turn_back(struct search *s)
{
    while (s->level > 0) {
        bool tired = victims_search_is_tired(s);
        struct victim *v = s->subset[--s->level];
        bool stayed = !v->goes;
        v->goes = false;
        if (stayed)
            search_take(s, v);
        if (stayed && !tired && victims_search_drop_next(s))
            return true;
        if (stayed && !tired)
            s->subset[--s->level]->goes = false;
    }
    return false;
}

void search_run(struct search *s)
{
    bool more = true;
    assert(s->n <= s->n_all);
    s->level = 0;
    s->tries = TRIES;
    s->charged = victims_search_looks_of(s);
    for (uint32_t i = 0; i < s->n; i++)
        search_take(s, s->subset[i]);
    bool hopeless = !victims_search_is_uneven(s) && !search_fits(s);
    while (more && !hopeless) {
        if (s->level < s->n) {
            more = victims_search_keep_next(s) || victims_search_drop_next(s) ||
                   victims_search_turn_back(s);
        } else {
            victims_search_consider(s);
            more = victims_search_turn_back(s);
        }
    }
    assert(s->level == 0);
    for (uint32_t i = 0; i < s->n; i++)
        search_give_back(s, s->subset[i]);
}

void search_trim(struct search *s)
{
    assert(s->found);
    s->n = 0;
    for (uint32_t i = 0; i < s->n_all; i++) {
        if (s->all[i].best)
            s->subset[s->n++] = &s->all[i];
    }
    for (uint32_t i = 0; i < s->n; i++)
        search_take(s, s->subset[i]);
    for (uint32_t i = 0; i < s->n; i++) {
        struct victim *v = s->subset[i];
        search_give_back(s, v);
        v->goes = v->best = !search_fits(s);
        if (v->best)
            search_take(s, v);
    }
    s->best = victims_search_cost_of(s, s->n);
}
