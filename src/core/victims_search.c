/*
 * Depth first over who stays, the most important first: whoever can stay does, and is tried without
 * later. So the first set that is found is kube-scheduler's own, every state on the way has room
 * for the pod, and a set that costs more than the best is left as soon as that is known.
 *
 * Rejected: growing sets from nothing, which says only at the end whether there is room; and a sum
 * of sizes in place of the policy, which knows of more than memory.
 */
#include "victims_search.h"

/* For one pool: all sets of twelve pods, if none could be ruled out. */
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
    struct pod *p = v->copy;
    if (p->prev != NULL)
        p->prev->next = p->next;
    else
        s->draft.node.pods = p->next;
    if (p->next != NULL)
        p->next->prev = p->prev;
    draft_remove(&s->draft, p);
}

void search_give_back(struct search *s, struct victim *v)
{
    struct pod *p = v->copy;
    p->prev = NULL;
    p->next = s->draft.node.pods;
    if (p->next != NULL)
        p->next->prev = p;
    s->draft.node.pods = p;
    draft_charge(&s->draft, p->request, p->holding->shares, p->holding->n_shares, 1);
}

bool search_fits(const struct search *s)
{
    struct placement there _uninitialized_;
    if (s->card >= 0)
        return policy_card(&s->draft.node, s->q->request, (uint32_t)s->card) == VERDICT_FITS;
    return policy_place(&s->draft.node, s->q->request, &there) == VERDICT_FITS;
}

/* Of those of the first n in the pool that go, counted in that order. */
static struct victims_cost cost_of(const struct search *s, uint32_t n)
{
    struct victims_cost cost = {.highest = INT32_MIN};
    struct budgets *b = s->q->budgets;
    bool counting = false;
    for (uint32_t i = 0; i < n; i++) {
        const struct victim *v = s->pool[i];
        int32_t priority = v->pod->request->priority;
        if (!v->goes)
            continue;
        cost.highest = MAX_OF(cost.highest, priority);
        cost.n++;
        cost.sum += (uint64_t)((int64_t)priority - INT32_MIN);
        if (!v->guarded)
            continue;
        if (!counting)
            budgets_count_begin(b);
        for (uint32_t g = 0; !counting && g < s->n_given; g++)
            (void)budgets_count(b, &s->given[g]);
        counting = true;
        cost.violations += budgets_count(b, &v->budget) ? 1 : 0;
    }
    return cost;
}

/* Whether what goes comes before the best set, which costs the same. */
static bool comes_first(const struct search *s)
{
    const struct victim *first = NULL;
    for (uint32_t i = 0; i < s->n_all; i++) {
        const struct victim *v = &s->all[i];
        if (v->goes != v->best && (first == NULL || v->rank < first->rank))
            first = v;
    }
    return first != NULL && first->goes;
}

static void consider(struct search *s)
{
    struct victims_cost cost = cost_of(s, s->n);
    int order = s->found ? victims_cost_cmp(&cost, &s->best) : -1;
    if (order > 0 || (order == 0 && !comes_first(s)))
        return;
    s->found = true;
    s->best = cost;
    for (uint32_t i = 0; i < s->n_all; i++)
        s->all[i].best = s->all[i].goes;
}

/* The next one stays, if there is room. Where its twin goes it is left: the other way round is the
 * same. */
static bool keep_next(struct search *s)
{
    struct victim *v = s->pool[s->level];
    if (v->twin && s->level > 0 && s->pool[s->level - 1]->goes)
        return false;
    s->tries -= MIN_OF(s->tries, 1U);
    *s->q->steps -= MIN_OF(*s->q->steps, 1U);
    search_give_back(s, v);
    if (search_fits(s)) {
        s->level++;
        return true;
    }
    search_take(s, v);
    return false;
}

/* The next one goes; false where that is too much. */
static bool drop_next(struct search *s)
{
    s->pool[s->level++]->goes = true;
    if (!s->found)
        return true;
    struct victims_cost cost = cost_of(s, s->level);
    return victims_cost_cmp(&cost, &s->best) <= 0;
}

/* Back to the last one that stayed and need not; false where there is none. */
static bool turn_back(struct search *s)
{
    bool tired = s->tries == 0 || *s->q->steps == 0;
    while (s->level > 0) {
        struct victim *v = s->pool[--s->level];
        bool stayed = !v->goes;
        v->goes = false;
        if (stayed)
            search_take(s, v);
        if (stayed && !tired && drop_next(s))
            return true;
        if (stayed && !tired)
            s->pool[--s->level]->goes = false;
    }
    return false;
}

void search_run(struct search *s)
{
    bool more = true;
    s->level = 0;
    s->tries = TRIES;
    for (uint32_t i = 0; i < s->n; i++)
        search_take(s, s->pool[i]);
    bool hopeless = !search_fits(s);
    while (more && !hopeless) {
        if (s->level < s->n) {
            more = keep_next(s) || drop_next(s) || turn_back(s);
        } else {
            consider(s);
            more = turn_back(s);
        }
    }
    for (uint32_t i = 0; i < s->n; i++)
        search_give_back(s, s->pool[i]);
}

void search_trim(struct search *s)
{
    s->n = 0;
    for (uint32_t i = 0; i < s->n_all; i++) {
        if (s->all[i].best)
            s->pool[s->n++] = &s->all[i];
    }
    for (uint32_t i = 0; i < s->n; i++)
        search_take(s, s->pool[i]);
    for (uint32_t i = 0; i < s->n; i++) {
        struct victim *v = s->pool[i];
        search_give_back(s, v);
        v->goes = v->best = !search_fits(s);
        if (v->best)
            search_take(s, v);
    }
    s->best = cost_of(s, s->n);
}
