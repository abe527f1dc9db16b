/*
 * A heap of the nodes that fit, the best on top. A replica changes no node but its own, and only
 * ever takes room away, so what is in the heap is judged anew only when it comes to the top.
 *
 * The work is bounded, as nothing else happens meanwhile: most questions are far below the ceiling,
 * but thousands of replicas on one node, each judged beside all of them, are not.
 */
#include "plan.h"

#include "draft.h"
#include "limit.h"
#include "policy.h"
#include "score.h"
#include "uses.h"

enum verdict plan_judge(const struct node *n, const struct request *r)
{
    enum verdict v = policy_fit(n, r);
    if (v != VERDICT_FITS || r->exclusive == 0)
        return v;
    int64_t has = n->sizes == NULL ? 0 : n->sizes->exclusive;
    return n->exclusive + (int64_t)r->exclusive > has ? VERDICT_NO_EXCLUSIVE : VERDICT_FITS;
}

static bool better(const struct plan_site *a, const struct plan_site *b)
{
    return a->score != b->score ? a->score > b->score : str_cmp(a->real->name, b->real->name) < 0;
}

static void swap(struct plan_site **a, struct plan_site **b)
{
    struct plan_site *t = *a;
    *a = *b;
    *b = t;
}

static void heap_push(struct plan *p, struct plan_site *s)
{
    size_t at = p->n_heap++;
    p->heap[at] = s;
    for (; at > 0 && better(p->heap[at], p->heap[(at - 1) / 2]); at = (at - 1) / 2)
        swap(&p->heap[at], &p->heap[(at - 1) / 2]);
}

static struct plan_site *heap_pop(struct plan *p)
{
    struct plan_site *top = p->heap[0];
    p->heap[0] = p->heap[--p->n_heap];
    for (size_t at = 0; 2 * at + 1 < p->n_heap;) {
        size_t child = 2 * at + 1;
        if (child + 1 < p->n_heap && better(p->heap[child + 1], p->heap[child]))
            child++;
        if (!better(p->heap[child], p->heap[at]))
            break;
        swap(&p->heap[child], &p->heap[at]);
        at = child;
    }
    return top;
}

/* What a verdict on the node costs, about. */
static uint64_t looks_at(const struct plan *p, const struct node *n)
{
    bool groups = p->request.affinity.n > 0 || p->request.anti_affinity.n > 0;
    uint64_t limits = p->tenant.entry == NULL ? 0 : p->tenant.entry->n_limits;
    return 1 + n->n_cards * (1 + limits) + (uint64_t)n->n_pods * (groups ? n->n_cards : 1);
}

static void offer(struct plan *p, struct plan_site *s)
{
    p->looks += looks_at(p, &s->node);
    if (plan_judge(&s->node, &p->request) != VERDICT_FITS)
        return;
    if (request_shares(&p->request) && s->node.n_cards > 0)
        s->score = score_node(&s->node, policy_cost(&s->node, &p->request), p->node_policy);
    heap_push(p, s);
}

static enum errc open_sites(struct plan *p, const struct cache *c)
{
    size_t cursor = 0;
    p->sites = arena_array(p->arena, c->nodes.n, sizeof(*p->sites));
    p->heap = arena_array(p->arena, c->nodes.n, sizeof(struct plan_site *));
    p->spots = arena_array(p->arena, p->replicas, sizeof(*p->spots));
    if (arena_failed(p->arena))
        return arena_fault(p->arena);
    for (const struct node *n = cache_next_node(c, &cursor); n != NULL;
         n = cache_next_node(c, &cursor)) {
        if (n->fault == NODE_ABSENT)
            continue;
        struct plan_site *s = &p->sites[p->n_sites++];
        *s = (struct plan_site){.node = *n, .real = n};
        offer(p, s);
    }
    return OK;
}

/* The replicas' namespace, as it would be: its sums are a copy, which they are charged to. */
static enum errc open_account(struct plan *p)
{
    struct quota_account *a = &p->request.account;
    p->request.memo = NULL; /* what was answered for the first one holds for no other */
    if (a->entry == NULL)
        return OK;
    struct quota_sum *used = arena_array(p->arena, a->entry->n_limits, sizeof(*used));
    if (used == NULL)
        return arena_fault(p->arena);
    if (a->used != NULL)
        memcpy(used, a->used, a->entry->n_limits * sizeof(*used));
    a->used = used;
    p->tenant = (struct quota_tenant){.entry = a->entry, .used = used};
    return OK;
}

static void charge_account(struct plan *p, const struct node *n, const struct holding *h)
{
    struct quota_use uses[USES_MAX];
    if (p->tenant.entry == NULL)
        return;
    uint32_t count = uses_of(n, &p->request, h->shares, h->n_shares, uses);
    for (uint32_t i = 0; i < count; i++)
        quota_charge(&p->tenant, &uses[i], 1);
}

/* The replica's cards, as a pod of the site: those that follow must see it, and its groups. */
static struct pod *make_pod(struct plan *p, const struct placement *there)
{
    struct share shares[REQUEST_GRANTS_MAX] _uninitialized_;
    uint32_t n = shares_of(&p->request, there->grants, there->n, false, shares);
    struct pod *pod = arena_alloc(p->arena, sizeof(*pod));
    struct holding *h = arena_alloc(p->arena, sizeof(*h));
    struct grant *grants = arena_array(p->arena, there->n, sizeof(*grants));
    struct share *kept = arena_array(p->arena, n, sizeof(*kept));
    if (arena_failed(p->arena))
        return NULL;
    if (n > 0) {
        memcpy(grants, there->grants, there->n * sizeof(*grants));
        memcpy(kept, shares, n * sizeof(*kept));
    }
    *h = (struct holding){.n_shares = n, .n_grants = there->n, .grants = grants, .shares = kept};
    *pod = (struct pod){.namespace = p->request.namespace,
                        .state = POD_RESERVED,
                        .awaiting = request_shares(&p->request),
                        .request = &p->request,
                        .holding = h,
                        .mem = p->request.mem,
                        .card = n == 0 ? -1 : (int32_t)kept[0].card};
    return pod;
}

static enum errc settle(struct plan *p, struct plan_site *s, const struct placement *there)
{
    struct pod *pod = make_pod(p, there);
    if (pod != NULL && s->replicas == 0 && s->node.n_cards > 0) {
        struct card *cards = arena_array(p->arena, s->node.n_cards, sizeof(*cards));
        if (cards != NULL)
            memcpy(cards, s->node.cards, s->node.n_cards * sizeof(*cards));
        s->node.cards = cards;
    }
    if (arena_failed(p->arena))
        return arena_fault(p->arena);
    draft_add(&s->node, pod);
    charge_account(p, &s->node, pod->holding);
    p->request.affinity_held = p->request.affinity.n > 0;
    p->spots[p->fit++] = (struct plan_spot){.site = s, .holding = pod->holding};
    s->replicas++;
    return OK;
}

static enum errc place_all(struct plan *p)
{
    p->looks = 0; /* that all nodes are looked at once is no more than filter does */
    while (p->fit < p->replicas && p->n_heap > 0) {
        struct placement there _uninitialized_;
        if (p->looks > LIMIT_PLAN_LOOKS) {
            p->exhausted = true;
            return OK;
        }
        struct plan_site *s = heap_pop(p);
        p->looks += looks_at(p, &s->node);
        /* It was judged when it came into the heap; but since then the group may have got a card
         * elsewhere, and the quota less. */
        if (policy_place(&s->node, &p->request, &there) != VERDICT_FITS)
            continue;
        enum errc code = settle(p, s, &there);
        if (code != OK)
            return code;
        offer(p, s);
    }
    return OK;
}

enum errc plan_make(struct plan *p, const struct cache *c, const struct request *r,
                    uint32_t replicas, struct arena *a)
{
    *p = (struct plan){.arena = a,
                       .replicas = replicas,
                       .node_policy =
                           pack_choose(r->node_policy, PACK_UNSET, c->settings.node_policy)};
    request_load(&p->request, r);
    enum errc code = open_account(p);
    if (code == OK)
        code = open_sites(p, c);
    return code == OK ? place_all(p) : code;
}

enum verdict plan_next(const struct plan *p, const struct plan_site *s)
{
    return plan_judge(&s->node, &p->request);
}
