/*
 * Whether a pod fits on a node, at rest: by trying all cards, and all cards for each container
 * where they may part. What hangs on which of several cards are taken is left open.
 */
#include "oracle.h"

struct site {
    const struct pod_object *pod;
    const struct node_object *node;
    unsigned slot; /* of the node */
    struct usage all;
    bool held;            /* pods of its affinity group hold a card somewhere */
    bool open[MAX_CARDS]; /* it is not ruled out, but for room */
    int64_t free[MAX_CARDS];
    int64_t cores[MAX_CARDS];
    struct grants_object *trial;
    bool found;  /* some way that has room on the cards, */
    bool passes; /* one with room on the node, too, */
    bool fails;  /* one without */
};

static bool in_group(const struct pod_object *p, const struct pod_object *mine, bool anti)
{
    struct slices all;
    const struct name *its = anti ? &p->anti_affinity : &p->affinity;
    const struct name *my = anti ? &mine->anti_affinity : &mine->affinity;
    if (my->z[0] == '\0' || strcmp(its->z, my->z) != 0 || strcmp(p->ns.z, mine->ns.z) != 0 ||
        !pod_object_holds(p))
        return false;
    pod_object_slices(p, true, &all);
    return all.n > 0;
}

static bool group_allows(const struct site *s, int64_t card)
{
    bool beside = false;
    struct slices all;
    for (unsigned i = 0; i < store.n_pods; i++) {
        const struct pod_object *p = &store.pods[i];
        if (!pod_object_holds(p) || strcmp(p->node.z, s->node->name.z) != 0)
            continue;
        pod_object_slices(p, true, &all);
        if (slice_on(&all, card) == NULL)
            continue;
        if (in_group(p, s->pod, true))
            return false;
        beside = beside || in_group(p, s->pod, false);
    }
    return beside || !s->held;
}

static void site_cards(struct site *s)
{
    for (int64_t card = 0; card < node_object_cards(s->node); card++) {
        struct usage u = oracle_usage(s->slot, card);
        int64_t total = node_object_card_size(s->node, card);
        s->open[card] = node_object_card_usable(s->node, card) &&
                        !health_object_ill(&store.healths[s->slot], card) &&
                        pod_object_allows(s->pod, s->node, card) && group_allows(s, card) &&
                        u.wholes == 0 && (int64_t)u.pods < node_object_max_pods(s->node) &&
                        (!s->pod->whole || (u.pods == 0 && u.mem == 0));
        s->free[card] = MAX_OF(total - u.mem, 0);
        s->cores[card] = MAX_OF(100 - u.cores, 0);
    }
}

/* A way that has room on the cards: has the node, too? */
static void try_node(struct site *s, int64_t charge)
{
    bool passes = pod_object_mem(s->pod) <= node_object_limit(s->node) - s->all.counted &&
                  charge <= s->node->mem - s->all.mem;
    s->found = true;
    s->passes = s->passes || passes;
    s->fails = s->fails || !passes;
}

/* On as many cards as it asks for, any of those with room. */
static void try_together(struct site *s, unsigned wanted, int64_t from, int64_t charge)
{
    unsigned cards = pod_object_cards(s->pod);
    struct slice part = {.mem = part_of(pod_object_mem(s->pod), cards),
                         .cores = part_of(pod_object_cores(s->pod), cards)};
    if (wanted == 0) {
        try_node(s, charge);
        return;
    }
    for (int64_t card = from; card < node_object_cards(s->node); card++) {
        int64_t more = slice_charge(s->pod, &part, node_object_card_size(s->node, card));
        if (s->open[card] && more <= s->free[card] && part.cores <= s->cores[card])
            try_together(s, wanted - 1, card + 1, charge + more);
    }
}

static void try_trial(struct site *s)
{
    struct pod_object p = *s->pod;
    struct slices all;
    int64_t charge = 0;
    p.allocation = *s->trial;
    pod_object_slices(&p, false, &all);
    for (unsigned i = 0; i < all.n; i++) {
        const struct slice *at = &all.at[i];
        if (at->mem > s->free[at->card] || at->cores > s->cores[at->card])
            return;
        charge += at->mem;
    }
    try_node(s, charge);
}

/* Each container on any card. */
static void try_apart(struct site *s, unsigned container)
{
    struct grants_object *g = s->trial;
    const struct pod_object *p = s->pod;
    while (container < p->n_containers && (p->containers[container].kind == CONTAINER_INIT ||
                                           !container_object_asks(p, container)))
        container++;
    if (container == p->n_containers) {
        if (g->n > 0)
            try_trial(s);
        return;
    }
    for (int64_t card = 0; card < node_object_cards(s->node); card++) {
        if (!s->open[card] || p->containers[container].mem > s->free[card])
            continue;
        g->at[g->n].container = (uint8_t)container_object_key(p, container);
        g->at[g->n].card = (uint8_t)card;
        g->at[g->n].amount = (int32_t)p->containers[container].mem;
        g->n++;
        try_apart(s, container + 1);
        g->n--;
    }
}

/* Sharers are on a card that was set aside after they came. */
static bool is_trespassed(const struct site *s)
{
    for (int64_t card = 0; card < node_object_cards(s->node); card++) {
        if (node_object_has_card(s->node, card) && name_lists(&s->node->aside, card) &&
            oracle_usage(s->slot, card).pods > 0)
            return true;
    }
    return false;
}

/* The two plugins' cards never meet, unless the node says whose is which, and it is so. */
static bool kinds_agree(const struct site *s)
{
    bool shares = pod_object_shares(s->pod);
    bool excludes = pod_object_exclusive(s->pod) > 0;
    if (node_object_divided(s->node))
        return !excludes || !is_trespassed(s);
    return !(excludes && (shares || s->all.sharing > 0)) && !(shares && s->all.exclusive > 0);
}

static enum fits fits_alone(unsigned node, const struct pod_object *p)
{
    struct grants_object trial = {.there = true};
    struct site s = {.pod = p, .node = &store.nodes[node], .slot = node, .trial = &trial};
    s.all = oracle_usage(node, -1);
    if (!s.node->exists || pod_object_bad(p))
        return FITS_NOT;
    if (!pod_object_wants(p))
        return FITS;
    if (!kinds_agree(&s))
        return FITS_NOT;
    if (!pod_object_shares(p))
        return FITS;
    for (unsigned i = 0; i < store.n_pods; i++)
        s.held = s.held || in_group(&store.pods[i], p, false);
    site_cards(&s);
    try_together(&s, pod_object_cards(p), 0, 0);
    if (!s.found && pod_object_may_part(p))
        try_apart(&s, 0);
    return !s.passes ? FITS_NOT : s.fails ? FITS_PERHAPS : FITS;
}

/* ---- room that is kept for others ---- */

static bool is_kept_from(const struct pod_object *q, const struct pod_object *p, unsigned node)
{
    return q->exists && !pod_object_terminal(q) && q->node.z[0] == '\0' && !pod_object_bad(q) &&
           pod_object_wants(q) && strcmp(q->nominated.z, store.nodes[node].name.z) == 0 &&
           q->priority >= p->priority;
}

static bool is_simple(const struct pod_object *p)
{
    return pod_object_plain(p) && pod_object_lasting_mem(p) == pod_object_mem(p) &&
           pod_object_exclusive(p) == 0 && p->model == 0 && p->uuid == 0 &&
           p->affinity.z[0] == '\0' && p->anti_affinity.z[0] == '\0';
}

/* What is on its way out of a node with one card: of the card, and of the node's sum. */
static struct usage usage_going(const struct node_object *n)
{
    struct usage going = {.pods = 0};
    for (unsigned i = 0; i < store.n_pods; i++) {
        const struct pod_object *p = &store.pods[i];
        if (!pod_object_holds(p) || !p->deleting || strcmp(p->node.z, n->name.z) != 0)
            continue;
        going.mem += pod_object_card(p) == 0 ? pod_object_mem(p) : 0;
        going.counted += pod_object_mem(p);
    }
    return going;
}

/* Whether all that hold or claim something there are pods of memory alone; and their claims. */
static bool all_simple(unsigned node, const struct pod_object *p, int64_t *ret_kept)
{
    const struct node_object *n = &store.nodes[node];
    *ret_kept = 0;
    for (unsigned i = 0; i < store.n_pods; i++) {
        const struct pod_object *q = &store.pods[i];
        bool here = pod_object_holds(q) && strcmp(q->node.z, n->name.z) == 0;
        bool kept = is_kept_from(q, p, node);
        if (((here && pod_object_wants(q)) || kept) && !is_simple(q))
            return false;
        *ret_kept += kept ? pod_object_mem(q) : 0;
    }
    return is_simple(p) && node_object_cards(n) == 1 && node_object_max_pods(n) == INT64_MAX;
}

/*
 * Of a node with one card, and pods of memory alone, it is clear what is left beside others: on the
 * card, what is there and what will come count both; of the sum, the more of now and then.
 */
static enum fits fits_beside(unsigned node, const struct pod_object *p)
{
    const struct node_object *n = &store.nodes[node];
    struct usage sum = oracle_usage(node, -1);
    struct usage card = oracle_usage(node, 0);
    struct usage going = usage_going(n);
    int64_t kept = 0;
    int64_t size = node_object_card_size(n, 0);
    int64_t limit = node_object_limit(n);
    if (!all_simple(node, p, &kept) || kept > size - (card.mem - going.mem) ||
        kept > limit - (sum.counted - going.counted))
        return FITS_PERHAPS;
    int64_t most = MAX_OF(sum.counted, sum.counted - going.counted + kept);
    return pod_object_mem(p) <= MIN_OF(size - card.mem - kept, limit - most) ? FITS : FITS_NOT;
}

enum fits oracle_fits(unsigned node, const struct pod_object *p)
{
    bool kept = false;
    enum fits alone = fits_alone(node, p);
    for (unsigned i = 0; i < store.n_pods; i++)
        kept = kept || is_kept_from(&store.pods[i], p, node);
    if (alone == FITS_NOT || !kept || !pod_object_wants(p))
        return alone;
    return fits_beside(node, p);
}
