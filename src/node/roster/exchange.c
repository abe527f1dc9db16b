/* Makes the annotations of pods say what their containers have. */
#include "node/roster/exchange.h"

static bool exchange_is_wish_equal(const struct request *x, const struct request *y)
{
    bool grouped = x->affinity.n > 0 || x->anti_affinity.n > 0;
    return str_eq(x->models, y->models) && str_eq(x->uuids, y->uuids) &&
           str_eq(x->affinity, y->affinity) && str_eq(x->anti_affinity, y->anti_affinity) &&
           (!grouped || str_eq(x->namespace, y->namespace));
}

/* Whether one can take the cards of the other. */
static bool exchange_is_alike(const struct request *x, const struct request *y)
{
    if (x->n_demands != y->n_demands || x->mem != y->mem || x->cores != y->cores ||
        x->lasting_mem != y->lasting_mem || x->cards != y->cards || x->percent != y->percent ||
        x->whole != y->whole || !exchange_is_wish_equal(x, y))
        return false;
    for (uint32_t i = 0; i < x->n_demands; i++) {
        const struct demand *a = &x->demands[i];
        const struct demand *b = &y->demands[i];
        if (a->mem != b->mem || a->cores != b->cores || a->kind != b->kind || a->index != b->index)
            return false;
    }
    return true;
}

/* Whether the grants are the same but for the cards. */
static bool exchange_is_shaped_alike(const struct grant_list *a, const struct grant_list *b)
{
    if (a->n != b->n)
        return false;
    for (uint32_t i = 0; i < a->n; i++) {
        if (a->grants[i].container != b->grants[i].container ||
            a->grants[i].mem != b->grants[i].mem)
            return false;
    }
    return true;
}

/* Whether the plan gives all containers the cards that they have. */
static bool exchange_agrees(const struct roster_pod *p, const struct grant_list *plan)
{
    for (uint32_t i = 0; i < p->n_containers; i++) {
        if (roster_is_off(p, &p->containers[i], plan))
            return false;
    }
    return true;
}

/* Its cards are known, or its annotations can't change: it takes part in no exchange. */
static bool exchange_is_apart(const struct roster_pod *p)
{
    return p->held || p->lost || p->refused || roster_is_bound(p);
}

/* Whether another pod may not get the plan of p: p's containers have those cards. */
static bool exchange_is_fixed(const struct roster *r, const struct roster_pod *p)
{
    if (exchange_is_apart(p))
        return true;
    if (roster_is_open(p) && r->guess.pod != p)
        return p->released || p->allowed;
    return p->released || (roster_has_started(r, p) && exchange_agrees(p, &p->plan));
}

/* How well p suits to give its cards. After a restart the pods with a mark belong to an exchange
 * that has begun. */
static int exchange_rank(const struct roster *r, const struct roster_pod *p)
{
    return p == r->guessed ? 2 : p->marked;
}

static bool exchange_is_there(const struct roster *r, const struct grant_list *there)
{
    for (uint32_t i = 0; i < there->n; i++) {
        if (roster_total(r, there->grants[i].card) == 0)
            return false;
    }
    return true;
}

/* The pod that exchanges cards with q: it is planned on the cards that q has. If several are, the
 * one that q's devices were meant for comes first. NULL: none, or q is planned on a card that is
 * not there. */
static struct roster_pod *exchange_partner(const struct roster *r, const struct roster_pod *q)
{
    struct roster_pod *found = NULL;
    if (!exchange_is_there(r, &q->plan))
        return NULL;
    for (size_t i = 0; i < r->n_pods; i++) {
        struct roster_pod *p = r->pods[i];
        if (p == q || exchange_is_fixed(r, p) || !exchange_is_alike(p->request, q->request) ||
            !exchange_is_shaped_alike(&p->plan, &q->plan) || !exchange_agrees(q, &p->plan))
            continue;
        if (found == NULL || exchange_rank(r, p) > exchange_rank(r, found))
            found = p;
    }
    return found;
}

/* The permutation of cards that moves `from` to `to` and changes no other card than these. */
static uint32_t exchange_map(const struct card_list *from, const struct card_list *to,
                             uint32_t card)
{
    uint32_t at = 0;
    if (card_list_find(from, card, &at))
        return to->cards[at];
    while (card_list_find(to, card, &at))
        card = from->cards[at];
    return card;
}

/* The plan on the cards that the pod's containers have; the containers without devices follow. */
static bool exchange_follow(const struct roster_pod *p, struct grant_list *there)
{
    if (there->n == 0)
        return false;
    memcpy(there->grants, p->plan.grants, there->n * sizeof(there->grants[0]));
    for (uint32_t i = 0; i < p->n_containers; i++) {
        const struct roster_container *c = &p->containers[i];
        struct card_list from;
        roster_cards_of(p, c->demand, there, &from);
        if (!roster_is_off(p, c, there))
            continue;
        if (from.n != c->has.n)
            return false;
        for (uint32_t k = 0; k < there->n; k++)
            there->grants[k].card = exchange_map(&from, &c->has, there->grants[k].card);
    }
    return exchange_agrees(p, there);
}

/* What annotations that can't be read, or name another number of cards, should have named. */
static bool exchange_rebuild(const struct roster_pod *p, struct grant_list *there)
{
    uint32_t wanted = request_cards(p->request);
    bool some_last = request_lasting(p->request) > 0;
    there->n = 0;
    for (uint32_t i = 0; i < p->n_containers; i++) {
        const struct roster_container *c = &p->containers[i];
        if (!c->given || c->has.n != wanted)
            return false;
        for (uint32_t k = 0; k < wanted && (c->demand->kind != CONTAINER_INIT || !some_last); k++) {
            assert(there->n < REQUEST_GRANTS_MAX);
            there->grants[there->n++] =
                (struct grant){.mem = c->demand->mem / wanted,
                               .card = c->has.cards[k],
                               .container = c->demand->index,
                               .cores = (uint16_t)(c->demand->cores / wanted)};
        }
    }
    return there->n > 0 && exchange_agrees(p, there);
}

/* Moves the plan onto the cards that the pod's containers have. If that is not possible, the pod
 * stays a misfit. False: no memory. */
static bool exchange_move_alone(struct roster_pod *p)
{
    struct grant grants[REQUEST_GRANTS_MAX] _uninitialized_;
    struct grant_list there = {grants, p->plan.n};
    if (!exchange_follow(p, &there) && !exchange_rebuild(p, &there))
        return true;
    p->alone = true;
    return grant_list_set(&p->plan, grants, there.n);
}

static void exchange_swap_plans(struct roster_pod *a, struct roster_pod *b)
{
    struct grant_list plan = a->plan;
    a->plan = b->plan;
    b->plan = plan;
    a->alone = b->alone = false;
}

/* What the pods on a card are to hold of it, whether they have devices or not. */
static int64_t exchange_planned_on(const struct roster *r, uint32_t card)
{
    int64_t sum = 0;
    for (size_t i = 0; i < r->n_pods; i++)
        sum += roster_holds(r, r->pods[i], card, true);
    return sum;
}

static bool exchange_is_overbooked(const struct roster *r, const struct card_list *cards)
{
    for (uint32_t i = 0; i < cards->n; i++) {
        if (exchange_planned_on(r, cards->cards[i]) > roster_total(r, cards->cards[i]))
            return true;
    }
    return false;
}

static void exchange_cards_of(const struct grant_list *l, struct card_list *ret)
{
    ret->n = 0;
    for (uint32_t i = 0; i < l->n; i++)
        card_list_add(ret, l->grants[i].card);
}

/* Whether its plan must stay, right or not. */
static bool exchange_is_settled(const struct roster *r, const struct roster_pod *p)
{
    return exchange_is_apart(p) || (roster_has_started(r, p) && (!roster_is_open(p) || p->allowed));
}

/* Whether the cards have room for the plan of p besides what all pods are to hold. */
static bool exchange_is_free(const struct roster *r, const struct roster_pod *p,
                             const struct grant_list *there)
{
    for (uint32_t i = 0; i < there->n; i++) {
        uint32_t card = there->grants[i].card;
        int64_t others = exchange_planned_on(r, card) - roster_charge(r, p, &p->plan, card);
        if (others + roster_charge(r, p, there, card) > roster_total(r, card))
            return false;
    }
    return true;
}

/* Sets the plan of p to the cards that q has left, if more is planned on p's present cards than
 * they have. */
static bool exchange_fill(struct roster *r, struct roster_pod *p, const struct roster_pod *q)
{
    struct grant grants[REQUEST_GRANTS_MAX] _uninitialized_;
    struct card_list from;
    exchange_cards_of(&p->plan, &from);
    if (from.n != q->vacated.n || !exchange_is_overbooked(r, &from))
        return true;
    for (uint32_t k = 0; k < p->plan.n; k++) {
        grants[k] = p->plan.grants[k];
        grants[k].card = exchange_map(&from, &q->vacated, grants[k].card);
    }
    struct grant_list there = {grants, p->plan.n};
    return !exchange_is_free(r, p, &there) || grant_list_set(&p->plan, grants, there.n);
}

/*
 * After a restart: q has left its cards, and the pod that was to get them still waits on q's, or,
 * if several exchanges have met, on those of another pod.
 */
static bool exchange_go_on(struct roster *r, const struct roster_pod *q, bool on_its_cards)
{
    for (size_t i = 0; q->vacated.n > 0 && i < r->n_pods; i++) {
        struct roster_pod *p = r->pods[i];
        if (p == q || p->released || exchange_is_settled(r, p) ||
            !exchange_is_alike(p->request, q->request) ||
            !exchange_is_shaped_alike(&p->plan, &q->plan) ||
            (on_its_cards && !grant_list_equal(&p->plan, &q->plan)))
            continue;
        if (!exchange_fill(r, p, q))
            return false;
    }
    return true;
}

static bool exchange_is_planned_elsewhere(const struct roster_pod *p)
{
    return !grant_list_equal(&p->said, &p->plan);
}

/* Its plan has to be written. */
static bool exchange_is_due(const struct roster_pod *p)
{
    return exchange_is_planned_elsewhere(p) || (p->unclear && !p->refused && p->plan.n > 0);
}

static bool exchange_stay(struct roster_pod *p)
{
    p->alone = false;
    return grant_list_set(&p->plan, p->said.grants, p->said.n);
}

/* Whether containers of the pod are known to run. Not if only an agent before this one may have
 * allowed them to start. */
static bool exchange_is_running(const struct roster_pod *p)
{
    return (p->allowed && !p->unsure) || roster_is_bound(p);
}

/* If more is planned on the card than it has, pods that are to move to it alone stay where they
 * are, as misfits, the newest pod first. Pods that already run on the card do not. */
static bool exchange_make_room(struct roster *r, uint32_t card)
{
    while (exchange_planned_on(r, card) > roster_total(r, card)) {
        struct roster_pod *newest = NULL;
        for (size_t i = 0; i < r->n_pods; i++) {
            struct roster_pod *p = r->pods[i];
            if (p->alone && !p->busy && !exchange_is_running(p) &&
                exchange_is_planned_elsewhere(p) && grant_list_has(&p->plan, card) &&
                (newest == NULL || p->seen > newest->seen))
                newest = p;
        }
        if (newest == NULL)
            break;
        if (!exchange_stay(newest))
            return false;
    }
    return true;
}

/* The pod that is to get the cards of p and has not moved; one that waits, if there is one. */
static struct roster_pod *exchange_heir(const struct roster *r, const struct roster_pod *p)
{
    struct roster_pod *found = NULL;
    for (size_t i = 0; i < r->n_pods; i++) {
        struct roster_pod *q = r->pods[i];
        if (q == p || exchange_is_running(q) || !exchange_is_planned_elsewhere(q) ||
            !exchange_is_alike(q->request, p->request) || !grant_list_equal(&q->plan, &p->said))
            continue;
        if (found == NULL || exchange_agrees(q, &p->plan))
            found = q;
    }
    return found;
}

/* If the API server refuses the plan of p, p gives up its plan. The pod that was to get the cards
 * of p gets that plan instead; if its containers already have the cards of p, that pod is a misfit.
 */
static bool exchange_replan_refused(struct roster *r)
{
    for (size_t i = 0; i < r->n_pods; i++) {
        struct roster_pod *p = r->pods[i];
        struct roster_pod *q = NULL;
        if (!p->refused || !exchange_is_planned_elsewhere(p))
            continue;
        q = exchange_heir(r, p);
        if (q != NULL)
            exchange_swap_plans(p, q);
        else if (!exchange_stay(p))
            return false;
    }
    return true;
}

/* From the moment that both agree, what a pod has is known. */
static void exchange_hold(struct roster *r)
{
    for (size_t i = 0; i < r->n_pods; i++) {
        struct roster_pod *p = r->pods[i];
        if (!roster_agrees(p) || !exchange_agrees(p, &p->plan) || r->guess.pod == p)
            continue;
        p->held = true;
        p->lost = false;
    }
}

/* Each exchange makes the plan of one more pod final, so this ends. */
static void exchange_pair(struct roster *r)
{
    for (size_t i = 0; i < r->n_pods; i++) {
        struct roster_pod *q = r->pods[i];
        bool alone = exchange_is_apart(q) || exchange_agrees(q, &q->plan);
        struct roster_pod *p = alone ? NULL : exchange_partner(r, q);
        if (p != NULL)
            exchange_swap_plans(q, p);
    }
}

bool exchange_plan(struct roster *r)
{
    /* What there is, and what the pods have, is not known yet. */
    if (r->n_cards == 0 || !r->checked)
        return true;
    exchange_hold(r);
    if (!exchange_replan_refused(r))
        return false;
    exchange_pair(r);
    for (size_t i = 0; i < r->n_pods; i++) {
        struct roster_pod *q = r->pods[i];
        if (!q->lost && !q->refused && !exchange_agrees(q, &q->plan) && !exchange_move_alone(q))
            return false;
    }
    /* Only now: a circle of pods has room after the last one moved. */
    for (size_t i = 0; i < r->n_cards; i++) {
        if (!exchange_make_room(r, r->cards[i].index))
            return false;
    }
    for (size_t i = 0; i < 2 * r->n_pods; i++) {
        if (!exchange_go_on(r, r->pods[i % r->n_pods], i < r->n_pods))
            return false;
    }
    return true;
}

/* Nothing can be sent for it now. */
static bool exchange_waits(const struct roster_pod *p)
{
    return p->busy || p->rests || (p->stale != 0 && p->stale == p->version);
}

static bool exchange_is_whole(const struct roster_pod *p)
{
    return p->n_containers > 0 && roster_next(p) == NULL && exchange_agrees(p, &p->plan);
}

/* Whether the pod is part of an exchange. Not if its cards are known (held): then its author edits
 * its annotations, and other pods do not wait each time until they are written back. */
static bool exchange_moves(const struct roster_pod *p)
{
    return exchange_is_due(p) && !p->held;
}

/* The step for pods that are to move: if there are several, all are marked before the first one
 * moves. */
static bool exchange_step_due(const struct roster *r, unsigned n_due, bool marked,
                              struct exchange_step *ret)
{
    for (size_t i = 0; i < r->n_pods; i++) {
        struct roster_pod *p = r->pods[i];
        /* Alone, too: what the extender binds meanwhile may take the room. */
        bool moves = n_due > 1 || (p->alone && !exchange_is_running(p));
        bool mark = !p->held && !p->marked && p->said.n > 0 && moves;
        if (!exchange_is_due(p) || exchange_waits(p) || p->plan.n == 0 ||
            (!p->held && !mark && n_due > 1 && !marked))
            continue;
        *ret = (struct exchange_step){.action = mark ? EXCHANGE_MARK : EXCHANGE_MOVE,
                                      .pod = p,
                                      .assigned = !mark && exchange_is_whole(p)};
        if (mark)
            exchange_cards_of(&p->said, &ret->vacated);
        return true;
    }
    return false;
}

/* An exchange of an agent before this one may still go on by itself. */
static bool exchange_is_inherited(const struct roster *r)
{
    for (size_t i = 0; i < r->n_pods; i++) {
        const struct roster_pod *p = r->pods[i];
        if (p->marked && p->doubt && !p->unclear)
            return true;
    }
    return false;
}

void exchange_next(const struct roster *r, struct exchange_step *ret)
{
    unsigned n_due = 0;
    bool waits = exchange_is_inherited(r);
    bool marked = true; /* all that are due */
    *ret = (struct exchange_step){.action = EXCHANGE_NOTHING};
    if (!r->checked)
        return;
    for (size_t i = 0; i < r->n_pods; i++) {
        bool due = exchange_moves(r->pods[i]);
        n_due += due ? 1 : 0;
        marked = marked && (!due || r->pods[i]->marked || r->pods[i]->said.n == 0);
    }
    if (!waits && exchange_step_due(r, n_due, marked, ret))
        return;
    for (size_t i = 0; i < r->n_pods; i++) {
        struct roster_pod *p = r->pods[i];
        bool finish = n_due == 0 && p->marked;
        if (exchange_waits(p) || p->refused || exchange_is_due(p) || (waits && p->marked))
            continue;
        if (!finish && (p->assigned || !exchange_is_whole(p)))
            continue;
        *ret = (struct exchange_step){.action = finish ? EXCHANGE_FINISH : EXCHANGE_ASSIGN,
                                      .pod = p,
                                      .assigned = exchange_is_whole(p)};
        return;
    }
}

void exchange_sent(const struct exchange_step *s)
{
    s->pod->busy = true;
    s->pod->moving = s->action == EXCHANGE_MOVE;
    s->pod->sent = s->pod->version;
}

void exchange_answered(struct roster_pod *p, enum exchange_outcome outcome)
{
    if (outcome == EXCHANGE_WRITTEN)
        p->unclear = false;
    else if (outcome == EXCHANGE_UNKNOWN && p->moving)
        p->unclear = p->doubt = p->version == p->sent;
    else if (outcome == EXCHANGE_CONFLICT)
        p->stale = p->sent;
    p->conflicts = outcome == EXCHANGE_CONFLICT ? p->conflicts + 1 : 0;
    p->busy = p->moving = false;
}

bool exchange_refuse(struct roster_pod *p)
{
    p->refusals++;
    p->refused = p->refusals >= EXCHANGE_REFUSALS;
    return p->refusals == EXCHANGE_REFUSALS;
}

bool exchange_give_up(struct roster_pod *p)
{
    bool first = p->refusals < EXCHANGE_REFUSALS;
    p->refusals = MAX_OF(p->refusals, EXCHANGE_REFUSALS);
    p->refused = true;
    return first;
}

void exchange_retry(struct roster *r)
{
    for (size_t i = 0; i < r->n_pods; i++) {
        r->pods[i]->refused = false;
        r->pods[i]->stale = 0;
    }
}

bool exchange_is_misfit(const struct roster_pod *p)
{
    return !exchange_agrees(p, &p->plan);
}

static bool exchange_is_before(const struct roster *r, const struct roster_pod *q,
                               const struct roster_pod *p)
{
    if (q->allowed || roster_is_bound(q))
        return true;
    return !p->allowed && !roster_is_bound(p) && roster_has_started(r, q) && q->seen < p->seen &&
           !exchange_is_misfit(q);
}

static bool exchange_has_room_to_start(const struct roster *r, const struct roster_pod *p)
{
    for (uint32_t i = 0; i < p->plan.n; i++) {
        uint32_t card = p->plan.grants[i].card;
        int64_t sum = roster_charge(r, p, &p->plan, card);
        for (size_t k = 0; k < r->n_pods; k++) {
            const struct roster_pod *q = r->pods[k];
            if (q != p && exchange_is_before(r, q, p))
                sum += roster_holds(r, q, card, false);
        }
        if (sum > roster_total(r, card))
            return false;
    }
    return true;
}

/* An open pod was allowed on the cards that its annotations named then, and runs on none. */
static bool exchange_is_sure(const struct roster_pod *p)
{
    return p->allowed && !p->unsure && !roster_is_open(p);
}

bool exchange_is_unsettled(const struct roster *r)
{
    for (size_t i = 0; i < r->n_pods; i++) {
        if (r->pods[i]->doubt && !exchange_is_sure(r->pods[i]))
            return true;
    }
    return false;
}

static bool exchange_is_right(const struct roster *r, const struct roster_pod *p)
{
    bool settled = !p->moving && (!p->doubt || exchange_is_sure(p));
    return p->said.n > 0 && r->guess.pod != p && settled && !exchange_is_planned_elsewhere(p) &&
           exchange_agrees(p, &p->plan);
}

bool exchange_is_crowded(const struct roster *r, const struct roster_pod *p)
{
    return exchange_is_right(r, p) && !exchange_is_sure(p) && !exchange_has_room_to_start(r, p);
}

bool exchange_may_start(struct roster *r, struct roster_pod *p)
{
    if (!exchange_is_right(r, p))
        return false;
    if (exchange_is_sure(p) || exchange_has_room_to_start(r, p)) {
        roster_allow(p);
        return true;
    }
    if (roster_is_open(p))
        p->allowed = p->unsure = p->granted = false;
    return false;
}
