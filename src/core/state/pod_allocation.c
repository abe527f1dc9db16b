/* Computes a pod's share of each card from its grants, and reads the grants of a bound pod. */
#include "core/state/pod_allocation.h"

#include "base/mem.h"
#include "core/limit.h"
#include "core/state/vgpu.h"

static int64_t pod_allocation_part(int64_t whole, uint32_t parts)
{
    assert(whole >= 0 && parts > 0);
    return (whole + parts - 1) / parts;
}

/* The container on whose cards the init containers run: the first lasting one; without one, the
 * first. */
static const struct demand *pod_allocation_anchor_of(const struct request *r)
{
    for (uint32_t i = 0; i < r->n_demands; i++) {
        if (r->demands[i].kind != CONTAINER_INIT)
            return &r->demands[i];
    }
    return r->n_demands == 0 ? NULL : &r->demands[0];
}

static uint32_t pod_allocation_cards_of(const struct grant *grants, uint32_t n, uint16_t container)
{
    uint32_t cards = 0;
    for (uint32_t i = 0; i < n; i++)
        cards += grants[i].container == container ? 1 : 0;
    return cards;
}

static const struct grant *pod_allocation_grant_on(const struct grant *grants, uint32_t n,
                                                   uint16_t container, uint32_t card)
{
    for (uint32_t i = 0; i < n; i++) {
        if (grants[i].container == container && grants[i].card == card)
            return &grants[i];
    }
    return NULL;
}

/* What the container itself needs of the card. For a whole card or a percentage its grant may be
 * larger. */
static int64_t pod_allocation_needs_of(const struct request *r, const struct grant *grants,
                                       uint32_t n, const struct demand *d, const struct grant *g)
{
    if (request_fixed(r))
        return g->mem;
    return MIN_OF(g->mem,
                  pod_allocation_part(d->mem, pod_allocation_cards_of(grants, n, d->index)));
}

/* Raises the share to the init containers' peak on a card of the anchor, if that is larger. */
static void pod_allocation_raise_to_peak(const struct request *r, const struct grant *grants,
                                         uint32_t n, struct share *s)
{
    const struct demand *anchor = pod_allocation_anchor_of(r);
    if (anchor == NULL || pod_allocation_grant_on(grants, n, anchor->index, s->card) == NULL)
        return;
    uint32_t cards = pod_allocation_cards_of(grants, n, anchor->index);
    int64_t mem = 0;
    uint32_t cores = 0;
    for (uint32_t i = 0; i < r->n_demands; i++) {
        const struct demand *d = &r->demands[i];
        if (d->kind == CONTAINER_INIT) {
            s->mem = MAX_OF(s->mem, mem + pod_allocation_part(d->mem, cards));
            s->cores = MAX_OF(s->cores, cores + (uint32_t)pod_allocation_part(d->cores, cards));
        } else if (d->kind == CONTAINER_SIDECAR) {
            const struct grant *g = pod_allocation_grant_on(grants, n, d->index, s->card);
            mem += g == NULL ? 0 : pod_allocation_needs_of(r, grants, n, d, g);
            cores += g == NULL ? 0 : g->cores;
        }
    }
}

const struct demand *request_demand(const struct request *r, uint32_t container)
{
    for (uint32_t i = 0; i < r->n_demands; i++) {
        if (r->demands[i].index == container)
            return &r->demands[i];
    }
    return NULL;
}

static bool pod_allocation_is_init(const struct request *r, uint16_t container)
{
    const struct demand *d = request_demand(r, container);
    return d != NULL && d->kind == CONTAINER_INIT;
}

/* What an init container and the sidecars before it take together on the card of its grant `init`.
 */
static struct share pod_allocation_beside_sidecars(const struct request *r,
                                                   const struct grant *grants, uint32_t n,
                                                   const struct grant *init)
{
    struct share sum = {.mem = init->mem, .cores = init->cores, .takers = 1};
    for (uint32_t i = 0; i < n; i++) {
        const struct grant *g = &grants[i];
        const struct demand *d = request_demand(r, g->container);
        if (g->card != init->card || d == NULL || d->kind != CONTAINER_SIDECAR ||
            d->index > init->container)
            continue;
        sum.mem += g->mem;
        sum.cores += g->cores;
        sum.takers++;
    }
    return sum;
}

/* The same where each container has cards of its own. */
static void pod_allocation_raise_to_inits(const struct request *r, const struct grant *grants,
                                          uint32_t n, struct share *s)
{
    for (uint32_t i = 0; i < n; i++) {
        if (grants[i].card != s->card || !pod_allocation_is_init(r, grants[i].container))
            continue;
        struct share peak = pod_allocation_beside_sidecars(r, grants, n, &grants[i]);
        s->mem = MAX_OF(s->mem, peak.mem);
        s->cores = MAX_OF(s->cores, peak.cores);
        s->takers = MAX_OF(s->takers, peak.takers);
        s->whole = s->whole || grants[i].cores >= REQUEST_CORES_MAX;
    }
}

static struct share *pod_allocation_share_at(struct share *shares, uint32_t *n, uint32_t card)
{
    uint32_t at = 0;
    while (at < *n && shares[at].card < card)
        at++;
    if (at < *n && shares[at].card == card)
        return &shares[at];
    memmove(&shares[at + 1], &shares[at], (*n - at) * sizeof(*shares));
    shares[at] = (struct share){.card = card};
    (*n)++;
    return &shares[at];
}

/* Whether an init container alone has the cards. The grants of a list of devices do not name it. */
static bool pod_allocation_is_of_init(const struct request *r)
{
    return r->n_demands == 1 && r->demands[0].kind == CONTAINER_INIT;
}

uint32_t shares_of(const struct request *r, const struct grant *grants, uint32_t n,
                   bool initialized, struct share *ret)
{
    uint32_t shares = 0;
    bool own = request_by_container(r);
    bool ended = initialized && pod_allocation_is_of_init(r);
    assert(n <= REQUEST_GRANTS_MAX);
    for (uint32_t i = 0; i < n; i++) {
        struct share *s = pod_allocation_share_at(ret, &shares, grants[i].card);
        if (ended || pod_allocation_is_init(r, grants[i].container))
            continue;
        s->mem += grants[i].mem;
        s->cores += grants[i].cores;
        s->takers += own ? 1 : 0;
        s->whole = s->whole || (own && grants[i].cores >= REQUEST_CORES_MAX);
    }
    for (uint32_t i = 0; i < shares && !initialized; i++) {
        if (own)
            pod_allocation_raise_to_inits(r, grants, n, &ret[i]);
        else
            pod_allocation_raise_to_peak(r, grants, n, &ret[i]);
    }
    /* On one card: at least the pod's own figures, which also contain its overhead. */
    if (shares == 1) {
        ret[0].mem = MAX_OF(ret[0].mem, initialized ? r->lasting_mem : r->mem);
        ret[0].cores = MAX_OF(ret[0].cores, initialized ? r->lasting_cores : r->cores);
    }
    return shares;
}

struct share request_share(const struct request *r)
{
    uint32_t cards = request_cards(r);
    return (struct share){.mem = pod_allocation_part(r->mem, cards),
                          .cores = (uint32_t)pod_allocation_part(r->cores, cards)};
}

struct pod_allocation *pod_allocation_new(const struct request *r, const struct placement *p,
                                          bool initialized)
{
    struct share shares[REQUEST_GRANTS_MAX] _uninitialized_;
    uint32_t n = shares_of(r, p->grants, p->n, initialized, shares);
    /* The cards of UUIDs can change, and so can the number of shares. */
    uint32_t most = dialect_has_uuids(r->dialect) ? p->n : n;
    size_t shares_size = most * sizeof(struct share);
    size_t grants_size = p->n * sizeof(struct grant);
    assert((n > 0) == (p->n > 0));
    struct pod_allocation *h = mem_alloc(sizeof(*h) + shares_size + grants_size);
    if (h == NULL)
        return NULL;
    struct grant *grants = (struct grant *)(h + 1);
    h->shares = (struct share *)(grants + p->n);
    h->grants = grants;
    h->n_grants = p->n;
    h->n_shares = n;
    if (n > 0) {
        memcpy(grants, p->grants, grants_size);
        memcpy(h->shares, shares, n * sizeof(shares[0]));
    }
    return h;
}

void pod_allocation_recompute(struct pod_allocation *h, const struct request *r, bool initialized)
{
    struct share shares[REQUEST_GRANTS_MAX] _uninitialized_;
    uint32_t n = shares_of(r, h->grants, h->n_grants, initialized, shares);
    assert(n == h->n_shares);
    if (n > 0)
        memcpy(h->shares, shares, n * sizeof(shares[0]));
}

/* Whether the allocation gives the container what it asks for. */
static bool pod_allocation_is_served(const struct pod_view *pod, const struct request *r,
                                     const struct demand *d)
{
    int64_t given = 0;
    bool named = false;
    for (size_t i = 0; i < pod->n_grants; i++) {
        if (pod->grants[i].container != d->index)
            continue;
        given += pod->grants[i].mem;
        named = true;
    }
    if (d->kind == CONTAINER_INIT && !named)
        return true;
    return !request_fixed(r) ? given >= d->mem : given == d->mem;
}

/* Whether entry i is valid alone: its container asks for cards, and has no other entry for the same
 * card. */
static bool pod_allocation_is_sound(const struct pod_view *pod, const struct request *r, size_t i)
{
    const struct grant_view *g = &pod->grants[i];
    uint32_t cards = 1;
    if (request_demand(r, g->container) == NULL || g->card > INT32_MAX || g->mem < 0 ||
        g->mem > REQUEST_MEM_MAX)
        return false;
    for (size_t j = 0; j < i; j++) {
        if (pod->grants[j].container != g->container)
            continue;
        if (pod->grants[j].card == g->card)
            return false;
        cards++;
    }
    return request_fixed(r) || cards <= request_cards(r);
}

bool grants_have_card(const struct grant *grants, uint32_t n, uint32_t card)
{
    for (uint32_t i = 0; i < n; i++) {
        if (grants[i].card == card)
            return true;
    }
    return false;
}

bool placement_read_index(struct str text, uint32_t *ret)
{
    int64_t card = 0;
    text = str_trim(text);
    if (!str_to_i64(str_starts(text, STR("+")) ? str_skip(text, 1) : text, &card) || card < 0 ||
        card > INT32_MAX)
        return false;
    *ret = (uint32_t)card;
    return true;
}

/* Takes the cards of a list as "0,2", each with this grant. What is no index is left out: the rest
 * of the list is true nevertheless. What is beyond the length of any list of cards is not read.
 * False: it has none. */
static bool pod_allocation_take_list(struct str list, struct grant grant, struct placement *ret)
{
    struct str rest = str_head(list, LIMIT_CARD_LIST_BYTES);
    uint32_t first = ret->n;
    while (rest.n > 0 && ret->n < REQUEST_GRANTS_MAX) {
        struct str token;
        (void)str_cut(rest, ',', &token, &rest);
        if (placement_read_index(token, &grant.card) &&
            !grants_have_card(&ret->grants[first], ret->n - first, grant.card))
            ret->grants[ret->n++] = grant;
    }
    return ret->n > first;
}

/* The device plugin uses the index. An allocation that names other cards is a leftover: the
 * manifest was copied from another pod with its annotations. */
static bool pod_allocation_is_elsewhere(const struct pod_view *pod)
{
    struct placement said _uninitialized_;
    said.n = 0;
    if (!pod_allocation_take_list(pod->idx, (struct grant){.mem = 0}, &said))
        return false;
    for (size_t i = 0; i < pod->n_grants; i++) {
        if (!grants_have_card(said.grants, said.n, pod->grants[i].card))
            return true;
    }
    for (uint32_t i = 0; i < said.n; i++) {
        size_t k = 0;
        while (k < pod->n_grants && pod->grants[k].card != said.grants[i].card)
            k++;
        if (k == pod->n_grants)
            return true;
    }
    return false;
}

static bool pod_allocation_annotation_fits(const struct pod_view *pod, const struct request *r)
{
    int64_t sum = 0;
    if (pod_allocation_is_elsewhere(pod))
        return false;
    if (!pod->has_allocation || r->n_demands == 0 || pod->n_grants == 0 ||
        pod->n_grants > REQUEST_GRANTS_MAX)
        return false;
    for (size_t i = 0; i < pod->n_grants; i++) {
        if (!pod_allocation_is_sound(pod, r, i))
            return false;
        sum += pod->grants[i].mem;
    }
    for (uint32_t i = 0; i < r->n_demands; i++) {
        if (!pod_allocation_is_served(pod, r, &r->demands[i]))
            return false;
    }
    return sum <= REQUEST_MEM_MAX;
}

static void pod_allocation_take_annotation(const struct pod_view *pod, const struct request *r,
                                           struct placement *ret)
{
    ret->n = (uint32_t)pod->n_grants;
    assert(ret->n <= REQUEST_GRANTS_MAX);
    for (uint32_t i = 0; i < ret->n; i++) {
        const struct grant_view *g = &pod->grants[i];
        ret->grants[i] =
            (struct grant){.mem = g->mem, .card = g->card, .container = (uint16_t)g->container};
    }
    for (uint32_t i = 0; i < ret->n; i++) {
        struct grant *g = &ret->grants[i];
        const struct demand *d = request_demand(r, g->container);
        if (d != NULL)
            g->cores = (uint16_t)pod_allocation_part(
                d->cores, pod_allocation_cards_of(ret->grants, ret->n, g->container));
    }
}

/* The seat of a container; NULL: none. */
static const struct seat_view *pod_allocation_seat_of(const struct pod_view *pod,
                                                      const struct container_view *c,
                                                      enum dialect dialect)
{
    char digits[16];
    struct buf index = BUF_ON(digits);
    if (c == NULL || c->kind != CONTAINER_MAIN)
        return NULL;
    buf_put_u64(&index, c->index);
    struct str name = dialect_facts(dialect)->seat_index ? buf_str(&index) : c->name;
    for (size_t i = 0; i < pod->n_seats; i++) {
        const struct seat_view *s = &pod->seats[i];
        if (s->dialect == dialect && str_eq(s->container, name))
            return s;
    }
    return NULL;
}

/* The cards of one container. Without any the grant is on a card that no node has. False: none is
 * known. */
static bool pod_allocation_take_seat(const struct pod_view *pod, const struct request *r,
                                     const struct container_view *c, struct grant grant,
                                     struct placement *ret)
{
    uint32_t first = ret->n;
    const struct seat_view *seat = pod_allocation_seat_of(pod, c, r->dialect);
    if (seat != NULL && pod_allocation_take_list(seat->cards, grant, ret))
        return true;
    ret->n = first;
    if (ret->n < REQUEST_GRANTS_MAX) {
        grant.card = INT32_MAX;
        ret->grants[ret->n++] = grant;
    }
    return false;
}

/* Containers beyond REQUEST_DEMANDS_MAX, in a pod that another scheduler has bound: what they ask
 * for is known only in sum, and each of their cards is charged that. */
static bool pod_allocation_take_rest(const struct pod_view *pod, const struct request *r,
                                     struct placement *ret)
{
    struct grant rest = {.mem = r->lasting_mem, .cores = REQUEST_CORES_MAX};
    bool known = false;
    if (r->n_demands < REQUEST_DEMANDS_MAX)
        return false;
    for (uint32_t i = 0; i < r->n_demands; i++)
        rest.mem -= MIN_OF(rest.mem, r->demands[i].mem);
    for (size_t i = 0; i < pod->n_containers && ret->n < REQUEST_GRANTS_MAX; i++) {
        const struct container_view *c = &pod->containers[i];
        const struct amounts_view *its = &c->of[r->dialect];
        if (c->kind != CONTAINER_MAIN || request_demand(r, c->index) != NULL ||
            (its->mem.p == NULL && its->cores.p == NULL))
            continue;
        rest.container = (uint16_t)c->index;
        known = pod_allocation_take_seat(pod, r, c, rest, ret) || known;
    }
    return known;
}

/* The cards that the index names, for the whole pod. If they are as many as the pod asks for, each
 * holds an equal part of the request; if they are more or fewer, each holds all of it. */
static void pod_allocation_take_index(const struct pod_view *pod, const struct request *r,
                                      struct placement *ret)
{
    const struct grant all = {
        .mem = r->lasting_mem, .container = UINT16_MAX, .cores = (uint16_t)r->lasting_cores};
    (void)pod_allocation_take_list(pod->said[r->dialect].idx, all, ret);
    uint32_t parts = ret->n == request_cards(r) ? ret->n : 1;
    for (uint32_t i = 0; i < ret->n && ret->n > 1; i++) {
        ret->grants[i].mem = pod_allocation_part(r->mem, parts);
        ret->grants[i].cores = (uint16_t)pod_allocation_part(r->cores, parts);
    }
}

/* The annotations with the cards of each container. */
static void pod_allocation_take_seats(const struct pod_view *pod, const struct request *r,
                                      struct placement *ret)
{
    const struct grant all = {
        .mem = r->lasting_mem, .container = UINT16_MAX, .cores = (uint16_t)r->lasting_cores};
    uint32_t parts = request_cards(r);
    bool known = false;
    for (uint32_t i = 0; i < r->n_demands; i++) {
        const struct demand *d = &r->demands[i];
        struct grant grant = {.mem = pod_allocation_part(d->mem, parts),
                              .container = d->index,
                              .cores = (uint16_t)pod_allocation_part(d->cores, parts)};
        if (request_plain(r))
            grant = all;
        known = pod_allocation_take_seat(pod, r, pod_view_container(pod, d->index), grant, ret) ||
                known;
    }
    known = pod_allocation_take_rest(pod, r, ret) || known;
    if (!known)
        ret->n = 0;
}

void pod_allocation_move(struct pod_allocation *h, const struct request *r,
                         const struct grant *grants, bool initialized)
{
    assert(dialect_has_uuids(r->dialect));
    if (h->n_grants == 0)
        return;
    memcpy((struct grant *)(h + 1), grants, h->n_grants * sizeof(*grants));
    h->n_shares = shares_of(r, h->grants, h->n_grants, initialized, h->shares);
}

void placement_read(const struct pod_view *pod, const struct request *r, struct placement *ret)
{
    ret->n = 0;
    if (!request_shares(r) && (r->exclusive > 0 || r->cores == 0))
        return;
    if (dialect_has_uuids(r->dialect))
        vgpu_read(pod, r, ret);
    else if (dialect_facts(r->dialect)->seat.p != NULL)
        pod_allocation_take_seats(pod, r, ret);
    else if (r->dialect == DIALECT_OWN && pod_allocation_annotation_fits(pod, r))
        pod_allocation_take_annotation(pod, r, ret);
    else
        pod_allocation_take_index(pod, r, ret);
}

bool pod_allocation_has(const struct pod_allocation *h, const struct placement *p)
{
    return h->n_grants == p->n &&
           (p->n == 0 || memcmp(h->grants, p->grants, p->n * sizeof(p->grants[0])) == 0);
}

bool pod_allocation_is_on(const struct pod_allocation *h, uint32_t card)
{
    for (uint32_t i = 0; i < h->n_shares; i++) {
        if (h->shares[i].card == card)
            return true;
    }
    return false;
}
