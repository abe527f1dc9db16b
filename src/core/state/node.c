/* A node's usage. The cards' figures are sums over the list of pods: updated when a pod comes or
 * goes, and recounted when the cards change. A pod whose card index the node does not have stays in
 * the list until such a card appears. */
#include "core/state/node.h"

#include "base/mem.h"
#include "core/limit.h"
#include "core/quantity.h"
#include "core/state/quota_usage.h"
#include "core/state/swap.h"
#include "core/state/vgpu.h"

void node_stamp(struct node *n)
{
    n->version = change_stamp(&n->change, n->version);
}

/* The node has changed: its version is new, and readers of the list of changes see it. */
static void node_note_change(struct node *n)
{
    node_stamp(n);
    change_touch(&n->change);
}

uint8_t card_left(const struct card *c)
{
    if (c->wholes > 0 || c->total <= 0 || !card_usable(c))
        return 0;
    if (c->pods == 0 && c->used == 0)
        return (uint8_t)card_compute(c);
    /* A card with a pod is not wholly free, even if the pod is too small to see. */
    int64_t mem = MIN_OF(card_free(c) * 100 / c->total, (int64_t)99);
    return (uint8_t)MIN_OF(mem, (int64_t)card_free_cores(c));
}

void node_derive(struct node *n)
{
    n->largest = 0;
    n->most_free = 0;
    n->simple = -1;
    n->crowded = -1;
    for (uint32_t i = 0; i < n->n_cards; i++) {
        struct card *c = &n->cards[i];
        c->left = card_left(c);
        n->largest = MAX_OF(n->largest, c->total);
        n->most_free = MAX_OF(n->most_free, card_free(c));
        if (card_usable(c) && c->wholes == 0)
            n->crowded = MAX_OF(n->crowded, c->total);
    }
    n->uneven =
        n->kept_for != NULL || n->exclusive > 0 || n->n_exchanging > 0 || n->n_unreadable > 0 ||
        (n->sizes != NULL && (n->sizes->max_pods > 0 || n->sizes->dialect != DIALECT_OWN)) ||
        (node_is_guarded(n) && n->n_starting > 0);
    if (n->fault != NODE_OK || n->uneven)
        n->crowded = -1; /* no figure of a card alone decides whether a pod fits */
    else
        n->simple = MIN_OF(n->most_free, MIN_OF(node_free(n), n->total - n->used));
    assert(n->simple <= MAX_OF(n->crowded, (int64_t)0));
}

/* A card of foreign pods is full with the first one. */
static int64_t node_charge_foreign(struct card *c, int sign)
{
    c->foreign += (uint32_t)sign;
    return c->foreign == (sign > 0 ? 1 : 0) ? c->total : 0;
}

/* Returns the memory that is charged. Shares without a card of the node count as unplaced. A pod
 * in another unit has whole cards, or, as long as they are not known, the whole node. */
static int64_t node_charge_cards(struct node *n, const struct request *r,
                                 const struct share *shares, uint32_t count, int sign)
{
    int64_t charged = 0;
    bool foreign = node_is_foreign(n, r);
    for (uint32_t i = 0; i < count; i++) {
        const struct share *s = &shares[i];
        if (!node_has_card(n, s->card)) {
            int64_t mem = foreign ? n->total : s->mem;
            charged += mem;
            n->unplaced += sign * mem;
            continue;
        }
        struct card *c = &n->cards[s->card];
        bool whole = share_is_whole(r, s) || foreign;
        uint32_t more = share_takers(s) - 1;
        assert(sign > 0 || (c->pods > 0 && c->cores >= s->cores && c->wholes >= (whole ? 1 : 0)));
        int64_t mem = foreign ? node_charge_foreign(c, sign) : node_charge_of(n, r, s);
        c->used += sign * mem;
        assert(c->used >= 0);
        c->cores += (uint32_t)sign * s->cores;
        c->pods += (uint32_t)sign;
        c->wholes += whole ? (uint32_t)sign : 0;
        c->more += (uint32_t)sign * more;
        c->left = card_left(c);
        charged += mem;
    }
    if (count == 0) {
        charged = foreign ? n->total : r->mem;
        n->unplaced += sign * charged;
    }
    assert(n->unplaced >= 0);
    return charged;
}

static void node_charge_shared(struct node *n, const struct request *r, const struct share *shares,
                               uint32_t count, int sign)
{
    assert(sign > 0 || n->n_sharing >= (request_shares(r) ? 1 : 0));
    n->used += sign * node_charge_cards(n, r, shares, count, sign);
    n->counted += node_is_foreign(n, r) ? 0 : sign * r->mem;
    n->n_sharing += request_shares(r) ? (uint32_t)sign : 0;
    assert(n->used >= 0 && n->counted >= 0);
}

void node_charge(struct node *n, const struct request *r, const struct share *shares,
                 uint32_t count, int sign)
{
    assert(sign == 1 || (sign == -1 && n->n_pods > 0));
    if (node_serves(n, r))
        node_charge_shared(n, r, shares, count, sign);
    n->exclusive += sign * (int64_t)node_exclusive_held(n, r);
    n->renamed += node_offers(n, OFFERS_RENAMED) ? (uint32_t)sign * node_renamed_of(r) : 0;
    host_charge(&n->host_used, r->host, sign);
    assert(n->exclusive >= 0);
    n->n_pods += (uint32_t)sign;
}

void node_charge_cardless(struct node *n, struct host host, int sign)
{
    assert(sign == 1 || (sign == -1 && n->n_cardless > 0));
    host_charge(&n->host_used, host, sign);
    n->n_cardless += (uint32_t)sign;
    if (!host_is_zero(host))
        node_stamp(n);
}

static void node_charge_pod(struct node *n, const struct pod *p, int sign)
{
    node_charge(n, p->request, p->allocation->shares, p->allocation->n_shares, sign);
}

static void node_recount(struct node *n)
{
    /* The same pods request the same of the host, and the other pods are not in the list. */
    struct host host_used = n->host_used;
    assert(n->n_cards == 0 || n->n_cards == n->sizes->n_cards);
    n->used = 0;
    n->counted = 0;
    n->unplaced = 0;
    n->exclusive = 0;
    n->renamed = 0;
    n->n_pods = 0;
    n->n_sharing = 0;
    for (uint32_t i = 0; i < n->n_cards; i++) {
        struct card *c = &n->cards[i];
        const struct card *said = &n->sizes->cards[i];
        struct card was = *c;
        *c = *said;
        c->kind = was.kind;
        c->unhealthy = said->unhealthy || card_set_has(n->unhealthy, i);
        c->claimed = was.claimed;
        c->lent = was.lent;
        c->used = was.lent;
        n->used += was.lent;
    }
    for (const struct pod *p = n->pods; p != NULL; p = p->next)
        node_charge_pod(n, p, 1);
    n->host_used = host_used;
    node_derive(n);
}

/* Charges the pods to their quotas. The amount depends on the node's pool and on the models and
 * sizes of its cards. */
static void node_charge_uses(const struct node *n, int sign)
{
    for (const struct pod *p = n->pods; p != NULL; p = p->next)
        quota_usage_charge(p, sign);
}

/* Finds the cards of pods that name them by UUID. */
static void node_locate(struct node *n)
{
    struct grant grants[REQUEST_GRANTS_MAX] _uninitialized_;
    for (struct pod *p = n->pods; p != NULL; p = p->next) {
        struct pod_allocation *h = p->allocation;
        if (p->list == NULL || h->n_grants == 0)
            continue;
        memcpy(grants, h->grants, h->n_grants * sizeof(grants[0]));
        vgpu_locate(pod_list(p), p->request, n, grants, h->n_grants);
        pod_allocation_move(h, p->request, grants, p->initialized);
        p->card = (int32_t)h->shares[0].card;
    }
}

/* cards: with `uuids` behind them. */
static void node_take_sizes(struct node *n, struct intern_table *table, struct node_sizes *sizes,
                            struct card *cards, const unsigned char *uuids)
{
    assert((cards != NULL) == (sizes != NULL && sizes->n_cards > 0));
    node_charge_uses(n, -1);
    node_sizes_give(table, n->sizes);
    mem_free(n->cards);
    n->sizes = sizes;
    n->cards = cards;
    n->uuids = uuids;
    n->fault = sizes == NULL ? NODE_ABSENT : sizes->fault;
    n->total = sizes == NULL ? 0 : sizes->total;
    n->limit = sizes == NULL ? 0 : sizes->limit;
    n->remainder = sizes == NULL ? 0 : sizes->remainder;
    n->n_cards = sizes == NULL ? 0 : sizes->n_cards;
    node_locate(n);
    node_recount(n);
    node_charge_uses(n, 1);
    node_note_change(n);
}

/* An amount that is absent or unusable is unknown. */
static int64_t node_read_amount(struct str text,
                                enum errc (*parse)(struct str text, struct quantity *ret))
{
    struct quantity q;
    if (text.p == NULL || parse(str_trim(text), &q) != OK || q.value < 0 || q.saturated)
        return HOST_UNKNOWN;
    return q.value;
}

static void node_take_host(struct node *n, struct host total)
{
    if (host_equal(n->host_total, total))
        return;
    n->host_total = total;
    node_stamp(n);
}

/* Room for the cards of these sizes, and the block of their UUIDs. */
static bool node_new_cards(const struct node_sizes *sizes, const struct str *uuids,
                           struct card **ret, const unsigned char **ret_uuids)
{
    size_t cards_n = sizes->n_cards * sizeof(struct card);
    size_t uuids_n = uuids_size(uuids, sizes->n_cards);
    *ret = NULL;
    *ret_uuids = NULL;
    if (cards_n == 0)
        return true;
    *ret = mem_alloc(cards_n + uuids_n);
    if (*ret == NULL)
        return false;
    unsigned char *behind = (unsigned char *)*ret + cards_n;
    if (uuids_n > 0) {
        uuids_pack(uuids, sizes->n_cards, behind);
        *ret_uuids = behind;
    }
    return true;
}

static bool node_has_uuids(const struct node *n, const struct str *uuids)
{
    struct uuid_room room _uninitialized_;
    for (uint32_t i = 0; i < n->n_cards; i++) {
        if (!str_eq(node_card_uuid(n, i, &room), uuids[i]))
            return false;
    }
    return true;
}

enum errc node_resize(struct node *n, struct intern_table *table, const struct node_view *view,
                      bool *ret_changed)
{
    struct card *cards;
    const unsigned char *packed;
    struct str uuids[LIMIT_CARDS] _uninitialized_;
    struct host host = {.cpu = node_read_amount(view->cpu, quantity_parse_milli),
                        .memory = node_read_amount(view->memory, quantity_parse)};
    struct node_sizes *sizes = node_sizes_take(table, view);
    if (sizes == NULL)
        return ERR_NOMEM;
    node_sizes_list_uuids(sizes, view, uuids);
    *ret_changed =
        n->sizes == NULL || !node_sizes_equal(n->sizes, sizes) || !node_has_uuids(n, uuids);
    if (!*ret_changed) {
        node_sizes_give(table, sizes);
        node_take_host(n, host);
        return OK;
    }
    if (!node_new_cards(sizes, uuids, &cards, &packed)) {
        node_sizes_give(table, sizes);
        *ret_changed = false;
        return ERR_NOMEM;
    }
    node_take_sizes(n, table, sizes, cards, packed);
    node_take_host(n, host);
    return OK;
}

void node_vanish(struct node *n, struct intern_table *table)
{
    assert(n->sizes != NULL);
    node_take_sizes(n, table, NULL, NULL, NULL);
    node_take_host(n, (struct host){HOST_UNKNOWN, HOST_UNKNOWN});
}

enum errc node_set_unhealthy(struct node *n, struct str gpus, unsigned *ret_bad, bool *ret_changed)
{
    static const struct card_set none;
    struct card_set set = {{0}};
    *ret_bad = card_set_read(&set, gpus);
    *ret_changed = memcmp(&set, n->unhealthy == NULL ? &none : n->unhealthy, sizeof(set)) != 0;
    if (!*ret_changed)
        return OK;
    if (memcmp(&set, &none, sizeof(set)) == 0) {
        node_clear_unhealthy(n);
        return OK;
    }
    if (n->unhealthy == NULL)
        n->unhealthy = mem_alloc(sizeof(set));
    if (n->unhealthy == NULL) {
        *ret_changed = false;
        return ERR_NOMEM;
    }
    *n->unhealthy = set;
    node_recount(n);
    node_note_change(n);
    return OK;
}

void node_clear_unhealthy(struct node *n)
{
    mem_free(n->unhealthy);
    n->unhealthy = NULL;
    node_recount(n);
    node_note_change(n);
}

bool node_set_claimed(struct node *n, const struct node_claimed *to)
{
    bool same = n->delegated == to->delegated && n->sliced == to->sliced;
    for (uint32_t i = 0; i < n->n_cards; i++) {
        struct card *c = &n->cards[i];
        bool claimed = card_set_has(&to->whole, i);
        same = same && c->claimed == claimed && c->lent == to->lent[i];
        c->claimed = claimed;
        c->lent = to->lent[i];
    }
    if (same)
        return false;
    n->delegated = to->delegated;
    n->sliced = to->sliced;
    node_recount(n);
    node_note_change(n);
    return true;
}

/* The part of `used` that ResourceClaims hold. */
static int64_t node_lent(const struct node *n)
{
    int64_t lent = 0;
    for (uint32_t i = 0; i < n->n_cards; i++)
        lent += n->cards[i].lent;
    return lent;
}

void node_attach(struct node *n, struct pod *p)
{
    assert(p->node == NULL && p->keeper == NULL && p->allocation != NULL);
    p->node = n;
    p->card = p->allocation->n_shares == 0 ? -1 : (int32_t)p->allocation->shares[0].card;
    pods_add(&n->pods, p);
    n->n_starting += pod_starts(p) ? 1 : 0;
    n->n_exchanging += p->exchanging ? 1 : 0;
    n->n_unreadable += p->unreadable ? 1 : 0;
    node_charge_pod(n, p, 1);
    quota_usage_charge(p, 1);
    node_derive(n);
    node_note_change(n);
}

void node_detach(struct pod *p)
{
    struct node *n = p->node;
    assert(n != NULL);
    pods_remove(&n->pods, p);
    assert(!pod_starts(p) || n->n_starting > 0);
    n->n_starting -= pod_starts(p) ? 1 : 0;
    assert(!p->exchanging || n->n_exchanging > 0);
    n->n_exchanging -= p->exchanging ? 1 : 0;
    assert(!p->unreadable || n->n_unreadable > 0);
    n->n_unreadable -= p->unreadable ? 1 : 0;
    if (n->n_starting > 0)
        swap_note_end(n, p);
    node_charge_pod(n, p, -1);
    quota_usage_charge(p, -1);
    p->node = NULL;
    assert(n->pods != NULL || (n->n_pods == 0 && n->used == node_lent(n) && n->n_starting == 0));
    node_derive(n);
    node_note_change(n);
}

void node_note_start(struct pod *p, bool starting)
{
    struct node *n = p->node;
    assert(n != NULL);
    if (pod_starts(p) == starting)
        return;
    if (p->start == POD_STARTING_UNSURE)
        swap_note_end(n, p);
    assert(starting || n->n_starting > 0);
    p->start = starting ? POD_STARTING : POD_STARTED;
    n->n_starting += starting ? 1 : (uint32_t)-1;
    node_derive(n);
    node_stamp(n);
}

/* flag: of a pod in the node's list; count: how many pods of the list have it. */
static void node_note_flag(struct node *n, bool *flag, uint32_t *count, bool now)
{
    if (*flag == now)
        return;
    assert(now || *count > 0);
    *flag = now;
    *count += now ? 1 : (uint32_t)-1;
    node_derive(n);
    node_stamp(n);
}

void node_note_exchange(struct pod *p, bool exchanging)
{
    assert(p->node != NULL);
    node_note_flag(p->node, &p->exchanging, &p->node->n_exchanging, exchanging);
}

void node_note_unreadable(struct pod *p, bool unreadable)
{
    assert(p->node != NULL);
    node_note_flag(p->node, &p->unreadable, &p->node->n_unreadable, unreadable);
}

void node_note_deletion(struct pod *p, bool deleting)
{
    if (p->node != NULL && p->deleting != deleting)
        node_stamp(p->node);
    p->deleting = deleting;
}

void node_note_wait(struct pod *p, bool waits)
{
    node_note_start(p, waits);
    node_note_exchange(p, false);
    p->ack = waits ? POD_ACK_WAITS : POD_ACK_NONE;
    node_stamp(p->node);
}

void node_keep_room(struct node *n, struct pod *p)
{
    assert(p->state == POD_PENDING && p->node == NULL && p->keeper == NULL);
    p->keeper = n;
    pods_add(&n->kept_for, p);
    node_derive(n);
    node_stamp(n);
}

void node_unkeep_room(struct pod *p)
{
    struct node *n = p->keeper;
    assert(n != NULL);
    pods_remove(&n->kept_for, p);
    p->keeper = NULL;
    node_derive(n);
    node_stamp(n);
}

/* What mem_alloc aligns is at most so far from a cache line. */
#define SLACK (CACHE_LINE - _Alignof(max_align_t))
static_assert(offsetof(struct node, name) % _Alignof(max_align_t) == 0, "else SLACK is too little");

/* Aligns the struct so that its fields from `name` on begin a cache line: what filter reads is then
 * in one line, for names of up to 32 bytes. */
struct node *node_new(struct str name, bool guarded)
{
    char *block = mem_alloc(sizeof(struct node) + name.n + SLACK);
    if (block == NULL)
        return NULL;
    size_t past = (size_t)((uintptr_t)(block + offsetof(struct node, name)) % CACHE_LINE);
    struct node *n = (struct node *)(void *)(block + (CACHE_LINE - past) % CACHE_LINE);
    char *at = (char *)(n + 1);
    n->block = block;
    n->name = str_store(&at, name);
    n->fault = NODE_ABSENT;
    n->guarded = guarded;
    n->host_total = (struct host){HOST_UNKNOWN, HOST_UNKNOWN};
    assert((uintptr_t)&n->name % CACHE_LINE == 0);
    node_derive(n);
    return n;
}

void node_drop(struct node *n, struct intern_table *table)
{
    assert(n->pods == NULL && n->kept_for == NULL);
    mem_free(n->cards);
    node_sizes_give(table, n->sizes);
    mem_free(n->unhealthy);
    mem_free(n->lock);
    mem_free(n->block);
}

static void node_check_lists(const struct node *n)
{
    for (const struct pod *p = n->pods; p != NULL; p = p->next) {
        assert(p->node == n && pod_holds(p));
        assert(p->next == NULL || p->next->prev == p);
    }
    for (const struct pod *p = n->kept_for; p != NULL; p = p->next) {
        assert(p->keeper == n && !pod_holds(p));
        assert(p->next == NULL || p->next->prev == p);
    }
}

void node_check(const struct node *n)
{
    struct node again = *n;
    struct card cards[LIMIT_CARDS] = {{0}};
    int64_t sizes = 0;
    uint32_t starting = 0;
    uint32_t exchanging = 0;
    uint32_t unreadable = 0;
    node_check_lists(n);
    for (const struct pod *p = n->pods; p != NULL; p = p->next) {
        starting += pod_starts(p) ? 1 : 0;
        exchanging += p->exchanging ? 1 : 0;
        unreadable += p->unreadable ? 1 : 0;
    }
    assert(n->n_starting == starting && n->n_exchanging == exchanging);
    assert(n->n_unreadable == unreadable);
    for (uint32_t i = 0; i < n->n_cards; i++)
        cards[i] = (struct card){.claimed = n->cards[i].claimed, .lent = n->cards[i].lent};
    again.cards = cards;
    node_recount(&again);
    for (uint32_t i = 0; i < n->n_cards; i++) {
        const struct card *a = &n->cards[i];
        const struct card *b = &cards[i];
        assert(a->total == b->total && a->used == b->used && a->cores == b->cores);
        assert(a->pods == b->pods && a->more == b->more && a->wholes == b->wholes && a->used >= 0);
        assert(card_usable(a) == card_usable(b) && (!a->claimed || a->lent == 0));
        sizes += a->total;
    }
    assert(n->used == again.used && n->counted == again.counted && n->unplaced == again.unplaced);
    assert(n->exclusive == again.exclusive && n->renamed == again.renamed);
    assert(n->n_pods == again.n_pods);
    assert(n->n_sharing == again.n_sharing && n->uneven == again.uneven);
    assert(n->largest == again.largest && n->most_free == again.most_free);
    assert(n->simple == again.simple && n->crowded == again.crowded);
    assert((n->fault == NODE_OK) == (n->n_cards > 0));
    assert(n->limit >= 0 && n->limit <= n->total);
    assert(n->n_cards == 0 || sizes + n->remainder == n->total);
}
