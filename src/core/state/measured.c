/* Keeps what cards and pods use, a block a node, and forgets what is too old. */
#include "core/state/measured.h"

#include "base/mem.h"
#include "base/sort.h"
#include "core/limit.h"

void measured_init(struct measured *m, struct map_seed seed, uint64_t lasts_ms)
{
    *m = (struct measured){.lasts_ms = lasts_ms};
    map_init(&m->nodes, offsetof(struct measured_node, name), seed);
    list_init(&m->ages);
}

static size_t measured_size_of(size_t name, size_t cards, size_t pods)
{
    return sizeof(struct measured_node) + pods * sizeof(struct measured_pod) +
           cards * sizeof(struct measured_card) + name;
}

static size_t measured_node_size(const struct measured_node *n)
{
    return measured_size_of(n->name.n, n->n_cards, n->n_pods);
}

/* Its figures become unknown. */
static void measured_lose(struct measured *m, struct measured_node *n)
{
    if (!list_is_linked(&n->age))
        return;
    assert(m->n_known > 0);
    list_remove(&n->age);
    m->n_known--;
}

static void measured_free(struct measured *m, struct measured_node *n)
{
    const struct measured_node *known = map_del(&m->nodes, n->name);
    assert(known == n && m->bytes >= measured_node_size(n));
    measured_lose(m, n);
    m->bytes -= measured_node_size(n);
    mem_free(n);
}

void measured_done(struct measured *m)
{
    size_t cursor = 0;
    for (struct measured_node *n = map_next(&m->nodes, &cursor); n != NULL;
         n = map_next(&m->nodes, &cursor))
        mem_free(n);
    map_done(&m->nodes);
}

/* A node with room for so many figures, in the map. An old one is replaced unless it has the same
 * room. */
static struct measured_node *measured_make(struct measured *m, struct str name, size_t cards,
                                           size_t pods, enum errc *ret_code)
{
    struct measured_node *n = map_get(&m->nodes, name);
    if (n != NULL && n->n_cards == cards && n->n_pods == pods)
        return n;
    if (n != NULL)
        measured_free(m, n);
    size_t size = measured_size_of(name.n, cards, pods);
    *ret_code = ERR_LIMIT;
    if (size > LIMIT_MEASURED_BYTES - m->bytes)
        return NULL;
    *ret_code = ERR_NOMEM;
    n = mem_alloc(size);
    if (n == NULL)
        return NULL;
    n->n_cards = (uint16_t)cards;
    n->n_pods = (uint16_t)pods;
    n->pods = (struct measured_pod *)(void *)(n + 1);
    n->cards = (struct measured_card *)(void *)(n->pods + pods);
    char *at = (char *)(n->cards + cards);
    n->name = str_store(&at, name);
    if (map_put(&m->nodes, n) != OK) {
        mem_free(n);
        return NULL;
    }
    m->bytes += size;
    return n;
}

static bool measured_card_before(const void *ctx, uint32_t a, uint32_t b)
{
    const struct usage_card *cards = ctx;
    return cards[a].index < cards[b].index;
}

static void measured_take_cards(struct measured_node *n, const struct usage_view *view)
{
    uint32_t order[LIMIT_CARDS] _uninitialized_;
    for (uint32_t i = 0; i < n->n_cards; i++)
        order[i] = i;
    sort_by(order, n->n_cards, measured_card_before, view->cards);
    for (uint32_t i = 0; i < n->n_cards; i++) {
        const struct usage_card *c = &view->cards[order[i]];
        n->cards[i] = (struct measured_card){
            .used_mib = (uint32_t)MIN_OF(c->used_mib, (uint64_t)UINT32_MAX),
            .total_mib = (uint32_t)MIN_OF(c->total_mib, (uint64_t)UINT32_MAX),
            .index = (uint16_t)c->index,
            .busy_percent =
                c->busy_percent > 100 ? MEASURED_BUSY_UNKNOWN : (uint8_t)c->busy_percent};
    }
}

struct measured_keys {
    uint64_t uids[LIMIT_MEASURED_PODS];
    const struct usage_pod *pods;
};

static bool measured_pod_before(const void *ctx, uint32_t a, uint32_t b)
{
    const struct measured_keys *k = ctx;
    if (k->uids[a] != k->uids[b])
        return k->uids[a] < k->uids[b];
    return k->pods[a].card != k->pods[b].card ? k->pods[a].card < k->pods[b].card : a < b;
}

static void measured_take_pods(const struct measured *m, struct measured_node *n,
                               const struct usage_view *view)
{
    struct measured_keys keys _uninitialized_;
    uint32_t order[LIMIT_MEASURED_PODS] _uninitialized_;
    keys.pods = view->pods;
    for (uint32_t i = 0; i < n->n_pods; i++) {
        order[i] = i;
        keys.uids[i] = map_hash(m->nodes.seed, view->pods[i].uid);
    }
    sort_by(order, n->n_pods, measured_pod_before, &keys);
    for (uint32_t i = 0; i < n->n_pods; i++) {
        const struct usage_pod *p = &view->pods[order[i]];
        n->pods[i] =
            (struct measured_pod){.uid = keys.uids[order[i]],
                                  .used_mib = (uint32_t)MIN_OF(p->used_mib, (uint64_t)UINT32_MAX),
                                  .card = (uint16_t)p->card};
    }
}

enum errc measured_set(struct measured *m, struct str node, const struct usage_view *view,
                       uint32_t seen_s, uint64_t now_ms)
{
    enum errc code = OK;
    assert(view->n_cards <= LIMIT_CARDS && view->n_pods <= LIMIT_MEASURED_PODS);
    struct measured_node *n = map_get(&m->nodes, node);
    if (n != NULL && !n->faulty && n->seen_s == seen_s) {
        n->epoch = m->epoch;
        return OK;
    }
    n = measured_make(m, node, view->n_cards, view->n_pods, &code);
    if (n == NULL)
        return code;
    measured_lose(m, n);
    measured_take_cards(n, view);
    measured_take_pods(m, n, view);
    n->n_differences = (uint16_t)MIN_OF(view->n_differences, (size_t)UINT16_MAX);
    n->asked = view->asked;
    n->came_ms = now_ms;
    n->seen_s = seen_s;
    n->epoch = m->epoch;
    n->faulty = false;
    list_push_back(&m->ages, &n->age);
    m->n_known++;
    return OK;
}

bool measured_set_faulty(struct measured *m, struct str node)
{
    enum errc code = OK;
    struct measured_node *n = map_get(&m->nodes, node);
    bool before = n != NULL && n->faulty;
    n = measured_make(m, node, 0, 0, &code);
    if (n == NULL)
        return true;
    measured_lose(m, n);
    n->epoch = m->epoch;
    n->faulty = true;
    return !before;
}

bool measured_drop(struct measured *m, struct str node)
{
    struct measured_node *n = map_get(&m->nodes, node);
    bool known = n != NULL && list_is_linked(&n->age);
    if (n != NULL)
        measured_free(m, n);
    return known;
}

struct str measured_expire(struct measured *m, uint64_t now_ms, uint64_t *ret_wait_ms)
{
    struct measured_node *n = LIST_FIRST(&m->ages, struct measured_node, age);
    *ret_wait_ms = UINT64_MAX;
    if (n == NULL || m->lasts_ms == 0)
        return STR_NULL;
    if (now_ms - n->came_ms < m->lasts_ms) {
        *ret_wait_ms = m->lasts_ms - (now_ms - n->came_ms);
        return STR_NULL;
    }
    measured_lose(m, n);
    return n->name;
}

void measured_list_begin(struct measured *m)
{
    m->epoch++;
}

const struct measured_node *measured_next(const struct measured *m, size_t *cursor)
{
    return map_next(&m->nodes, cursor);
}

const struct measured_node *measured_of(const struct measured *m, struct str node)
{
    const struct measured_node *n = m == NULL ? NULL : map_get(&m->nodes, node);
    return n != NULL && list_is_linked(&n->age) ? n : NULL;
}

const struct measured_card *measured_card_of(const struct measured_node *n, uint32_t card)
{
    size_t low = 0;
    size_t high = n == NULL ? 0 : n->n_cards;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (n->cards[mid].index == card)
            return &n->cards[mid];
        if (n->cards[mid].index < card)
            low = mid + 1;
        else
            high = mid;
    }
    return NULL;
}

bool measured_pod_of(const struct measured *m, const struct measured_node *n, struct str uid,
                     uint32_t card, uint32_t *ret_mib)
{
    if (n == NULL || n->n_pods == 0)
        return false;
    uint64_t key = map_hash(m->nodes.seed, uid);
    size_t low = 0;
    size_t high = n->n_pods;
    while (low < high) {
        size_t mid = (low + high) / 2;
        const struct measured_pod *p = &n->pods[mid];
        if (p->uid < key || (p->uid == key && p->card < card))
            low = mid + 1;
        else
            high = mid;
    }
    if (low == n->n_pods || n->pods[low].uid != key || n->pods[low].card != card)
        return false;
    *ret_mib = n->pods[low].used_mib;
    return true;
}

uint32_t measured_unit_mib(const struct measured_card *c, int64_t total)
{
    if (c == NULL || total <= 0 || c->total_mib == 0)
        return 0;
    /* With MiB the card has about as many as units, with GiB 1024 times as many. A part of the
     * card may be held back, so the limit is between the two. */
    return c->total_mib / 32 >= (uint64_t)total ? 1024 : 1;
}

bool measured_exceeds(const struct measured_card *c, int64_t total, int64_t share,
                      uint32_t used_mib)
{
    uint32_t unit = measured_unit_mib(c, total);
    if (unit == 0 || share < 0 || (share >= total && used_mib <= c->total_mib))
        return false;
    return used_mib / unit > (uint64_t)share ||
           (used_mib / unit == (uint64_t)share && used_mib % unit > 0);
}
