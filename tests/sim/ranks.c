/* The oracle's order of nodes; see ranks.h. */
#include "ranks.h"

#include "swaps.h"

#define BEST 10 /* score of the best node */

static bool is_by_card(const struct pod_object *p)
{
    return pod_object_named(p) && (p->whole || p->percent > 0);
}

/* The size of the node's cards; -1: they differ. */
static int64_t size_of(unsigned node)
{
    const struct node_object *n = &store.nodes[node];
    int64_t size = 0;
    for (int64_t card = 0; card < node_object_cards(n); card++) {
        int64_t its = node_object_card_size(n, card);
        if (!node_object_has_card(n, card))
            continue;
        if (size != 0 && its != size)
            return -1;
        size = its;
    }
    return size;
}

/* What the node's cards hold with the pod; -1: not known. */
static int64_t used_with(const struct pod_object *p, unsigned node)
{
    unsigned cards = pod_object_cards(p);
    struct slice part = {.mem = part_of(pod_object_mem(p), cards)};
    int64_t size = size_of(node);
    int64_t used = oracle_usage(node, -1).mem;
    if (!is_by_card(p))
        return used + pod_object_mem(p);
    return size < 0 ? -1 : used + slice_charge(p, &part, size) * cards;
}

static enum policy policy_of(const struct pod_object *p)
{
    const struct name *own = p->node_policy.z[0] != '\0' ? &p->node_policy : &p->policy;
    enum policy usual = world.set.node_spread ? POLICY_SPREAD : POLICY_BINPACK;
    enum policy policy = world.set.costs != POLICY_UNSET ? world.set.costs : usual;
    return own->z[0] == '\0' || policy_parse(name_str(own), &policy) ? policy : POLICY_BINPACK;
}

/* With "prefer", of nodes with equal ratios the one without a possible swap is better. */
static int compare_swaps(const struct pod_object *p, unsigned a, unsigned b, bool *ret_known)
{
    if (world.set.guard != SWAP_GUARD_PREFER)
        return 0;
    enum fits at_a = oracle_swaps(a, p);
    enum fits at_b = oracle_swaps(b, p);
    *ret_known = at_a != FITS_PERHAPS && at_b != FITS_PERHAPS;
    return *ret_known ? (at_a == FITS ? 1 : 0) - (at_b == FITS ? 1 : 0) : 0;
}

int ranks_compare(const struct pod_object *p, unsigned a, unsigned b, bool guard, bool *ret_known)
{
    int64_t used_a = used_with(p, a);
    int64_t used_b = used_with(p, b);
    int64_t x = used_a * store.nodes[b].mem;
    int64_t y = used_b * store.nodes[a].mem;
    enum policy policy = policy_of(p);
    /* A policy that can't be read counts as none in a pod without cards, and the configured one
     * then ranks the nodes for it, too. */
    bool costs =
        policy_has_costs(policy) || (!pod_object_shares(p) && policy_has_costs(world.set.costs));
    *ret_known = !costs && (!pod_object_shares(p) || (used_a >= 0 && used_b >= 0));
    if (!*ret_known || !pod_object_shares(p))
        return 0;
    if (x == y)
        return guard ? compare_swaps(p, a, b, ret_known) : 0;
    return (x > y) == (policy != POLICY_SPREAD) ? 1 : -1;
}

static bool fits(const struct pod_object *p, unsigned node)
{
    return oracle_answers(node, p) == FITS && pod_object_exclusive(p) == 0;
}

static int sign_of(int64_t n)
{
    return n > 0 ? 1 : n < 0 ? -1 : 0;
}

/* The best node has 10, the next best 9, and so on without a gap. */
static void check_levels(const int64_t scores[MAX_NODES])
{
    for (unsigned i = 0; i < store.n_nodes; i++) {
        bool above = scores[i] == 0 || scores[i] == BEST;
        for (unsigned k = 0; k < store.n_nodes; k++)
            above = above || scores[k] == scores[i] + 1;
        sim_check(above);
    }
}

void ranks_check_scores(const struct pod_object *p, const int64_t scores[MAX_NODES])
{
    check_levels(scores);
    for (unsigned a = 0; a < store.n_nodes; a++) {
        for (unsigned b = 0; b < a; b++) {
            bool known = false;
            int order = 0;
            if (fits(p, a) && fits(p, b))
                order = ranks_compare(p, a, b, true, &known);
            trace("ranks", name_str(&store.nodes[a].name), known ? order : -2,
                  scores[a] - scores[b]);
            sim_check(!known || sign_of(scores[a] - scores[b]) == order);
        }
    }
}

/* Whether the shortlist may leave out `out` and not `in`. */
static bool may_leave_out(const struct pod_object *p, unsigned out, unsigned in)
{
    bool known = false;
    int order = 0;
    if (fits(p, out) && fits(p, in))
        order = ranks_compare(p, out, in, true, &known);
    if (!known)
        return true;
    bool later = strcmp(store.nodes[out].name.z, store.nodes[in].name.z) > 0;
    return order < 0 || (order == 0 && later);
}

void ranks_check_shortlist(const struct pod_object *p, unsigned listed, unsigned failed)
{
    unsigned left_out = ~(listed | failed) & ((1U << store.n_nodes) - 1);
    unsigned n = (unsigned)__builtin_popcount(listed);
    trace("shortlist", name_str(&p->name), listed, left_out);
    sim_check(left_out == 0 || (n == world.set.shortlist && pod_object_wants(p)));
    sim_check(world.set.shortlist == 0 || !pod_object_shares(p) || n <= world.set.shortlist);
    for (unsigned out = 0; out < store.n_nodes; out++) {
        for (unsigned in = 0; (left_out >> out & 1) != 0 && in < store.n_nodes; in++)
            sim_check((listed >> in & 1) == 0 || may_leave_out(p, out, in));
    }
}

void ranks_check_order(const struct pod_object *p, unsigned a, unsigned b)
{
    bool known = false;
    int order = fits(p, a) && fits(p, b) ? ranks_compare(p, a, b, false, &known) : 0;
    bool named = strcmp(store.nodes[a].name.z, store.nodes[b].name.z) < 0;
    sim_check(!known || order > 0 || (order == 0 && named));
}
