/* Predicts the choice of a device plugin. */
#include "core/place/plugin_choice.h"

#include "core/limit.h"
#include "core/place/card_check.h"
#include "core/state/overlay.h"

static bool plugin_choice_is_ordered(const struct request *r)
{
    return dialect_facts(r->dialect)->match == DIALECT_MATCH_ORDER;
}

bool plugin_choice_applies(const struct request *r)
{
    return plugin_choice_is_ordered(r) && request_fixed(r);
}

bool plugin_choice_predict(const struct node *n, const struct evaluation *e, struct placement *ret)
{
    int64_t mem[LIMIT_CARDS] _uninitialized_;
    uint32_t cores[LIMIT_CARDS] _uninitialized_;
    ret->n = 0;
    evaluation_count_steps(e, (uint64_t)n->n_cards * e->request->n_demands);
    for (uint32_t i = 0; i < n->n_cards; i++) {
        const struct card *c = &n->cards[i];
        mem[i] = MAX_OF(c->total - c->used, (int64_t)0);
        cores[i] = c->wholes > 0 || c->absent ? 0 : card_free_cores(c);
    }
    for (uint32_t i = 0; i < e->request->n_demands; i++) {
        const struct demand *d = &e->request->demands[i];
        uint32_t best = LIMIT_CARDS;
        for (uint32_t card = 0; card < n->n_cards; card++) {
            if (mem[card] < d->mem || cores[card] < d->cores)
                continue;
            if (best == LIMIT_CARDS || cores[card] < cores[best] ||
                (cores[card] == cores[best] && mem[card] < mem[best]))
                best = card;
        }
        if (best == LIMIT_CARDS)
            return false;
        mem[best] -= d->mem;
        cores[best] -= d->cores;
        ret->grants[ret->n++] =
            (struct grant){.mem = d->mem, .card = best, .container = d->index, .cores = d->cores};
    }
    return true;
}

static bool plugin_choice_is_same(const struct node *n, const struct evaluation *e,
                                  const struct placement *there)
{
    struct placement chosen _uninitialized_;
    if (!plugin_choice_predict(n, e, &chosen) || chosen.n != there->n)
        return false;
    for (uint32_t i = 0; i < chosen.n; i++) {
        if (chosen.grants[i].card != there->grants[i].card)
            return false;
    }
    return true;
}

static bool plugin_choice_is_here(const struct node *n, const struct evaluation *e,
                                  const struct pod *p)
{
    return p != e->self && !(n->vacated && p->deleting);
}

static bool plugin_choice_is_placed(const struct node *n, const struct pod *p)
{
    const struct pod_allocation *h = p->allocation;
    for (uint32_t i = 0; i < h->n_shares; i++) {
        if (!node_has_card(n, h->shares[i].card))
            return false;
    }
    return h->n_shares > 0;
}

/* A pod without a card has one of the plugin, which is not known yet. */
static bool plugin_choice_knows_all(const struct node *n, const struct evaluation *e)
{
    evaluation_count_steps(e, n->n_pods);
    for (const struct pod *p = n->pods; p != NULL; p = p->next) {
        if (plugin_choice_is_here(n, e, p) && request_shares(p->request) &&
            node_serves(n, p->request) && !plugin_choice_is_placed(n, p))
            return false;
    }
    return true;
}

/* The node as the plugin may count it: without pods of other plugins, and, with `later`, without
 * the deleted ones. */
static void plugin_choice_recount(struct overlay *d, const struct node *n,
                                  const struct evaluation *e, bool later)
{
    overlay_init(d, n);
    evaluation_count_steps(e, n->n_pods);
    for (const struct pod *p = n->pods; p != NULL; p = p->next) {
        bool gone = node_is_foreign(n, p->request) || (later && p->deleting);
        if (gone && plugin_choice_is_here(n, e, p))
            overlay_remove(d, p);
    }
    d->node.vacated = n->vacated || later;
}

bool plugin_choice_is(const struct node *n, const struct evaluation *e,
                      const struct placement *there)
{
    struct overlay d _uninitialized_;
    if (!plugin_choice_knows_all(n, e) || !plugin_choice_is_same(n, e, there))
        return false;
    plugin_choice_recount(&d, n, e, false);
    if (!plugin_choice_is_same(&d.node, e, there))
        return false;
    plugin_choice_recount(&d, n, e, true);
    return plugin_choice_is_same(&d.node, e, there);
}

bool plugin_choice_is_among(const struct placement *there, const struct card_set *cards)
{
    for (uint32_t i = 0; i < there->n; i++) {
        if (!card_set_has(cards, there->grants[i].card))
            return false;
    }
    return true;
}

bool plugin_choice_has_room(const struct node *kept, const struct node *n,
                            const struct evaluation *e)
{
    struct placement there _uninitialized_;
    struct share shares[REQUEST_GRANTS_MAX] _uninitialized_;
    int64_t charge = 0;
    if (!plugin_choice_predict(n, e, &there))
        return false;
    uint32_t count = shares_of(e->request, there.grants, there.n, false, shares);
    for (uint32_t i = 0; i < count; i++) {
        const struct card *c = &kept->cards[shares[i].card];
        if (c->wholes > 0 || shares[i].mem > card_free(c) || shares[i].cores > card_free_cores(c))
            return false;
        charge += shares[i].mem;
    }
    return charge <= kept->total - kept->used && kept->counted + e->request->mem <= kept->limit;
}

bool plugin_choice_may_have(const struct node *n, const struct evaluation *e)
{
    struct overlay d _uninitialized_;
    struct card_check check _uninitialized_;
    const struct share share = request_share(e->request);
    if (!plugin_choice_is_ordered(e->request) || request_fixed(e->request))
        return true;
    if (!plugin_choice_knows_all(n, e))
        return false;
    plugin_choice_recount(&d, n, e, true);
    card_check_begin_groups(&check, &d.node, e);
    evaluation_count_steps(e, n->n_cards);
    for (uint32_t i = 0; i < n->n_cards; i++) {
        const struct card *c = &d.node.cards[i];
        if (c->pods > 0 || c->used > 0 || c->absent)
            continue;
        if (n->cards[i].foreign > 0 || card_check_share(&check, e, &share, i) != VERDICT_FITS)
            return false;
    }
    return true;
}

bool plugin_choice_keeps(const struct node *n, const struct evaluation *e,
                         const struct pod_allocation *h)
{
    struct placement there = {.n = h->n_grants};
    if (!plugin_choice_applies(e->request))
        return plugin_choice_may_have(n, e);
    assert(h->n_grants <= REQUEST_GRANTS_MAX);
    if (h->n_grants > 0)
        memcpy(there.grants, h->grants, h->n_grants * sizeof(there.grants[0]));
    return plugin_choice_is(n, e, &there);
}
