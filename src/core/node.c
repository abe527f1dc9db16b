/*
 * Usage is kept in the pods' list, and the cards' figures are sums over it: added and subtracted as
 * pods come and go, and summed anew whenever the cards change. Pods with an index beyond the cards
 * wait in the list until such a card appears.
 */
#include "node.h"

#include "limit.h"
#include "mem.h"
#include "quantity.h"

#define UNHEALTHY_WORDS (LIMIT_CARDS / 64)

static bool is_unhealthy(const struct node *n, uint32_t card)
{
    return n->unhealthy != NULL && card < LIMIT_CARDS &&
           (n->unhealthy[card / 64] >> (card % 64) & 1) != 0;
}

static bool on_card(const struct node *n, const struct pod *p)
{
    return p->card >= 0 && (uint32_t)p->card < n->n_cards;
}

static void derive(struct node *n)
{
    n->largest = 0;
    n->most_free = 0;
    for (uint32_t i = 0; i < n->n_cards; i++) {
        n->largest = MAX_OF(n->largest, n->cards[i].total);
        n->most_free = MAX_OF(n->most_free, card_free(&n->cards[i]));
    }
}

static void charge(struct node *n, const struct pod *p)
{
    n->used += p->mem;
    n->n_pods++;
    if (on_card(n, p)) {
        n->cards[p->card].used += p->mem;
        n->cards[p->card].pods++;
    } else {
        n->unplaced += p->mem;
    }
}

static void recount(struct node *n)
{
    n->used = 0;
    n->unplaced = 0;
    n->n_pods = 0;
    for (uint32_t i = 0; i < n->n_cards; i++) {
        n->cards[i].used = 0;
        n->cards[i].pods = 0;
        n->cards[i].unhealthy = is_unhealthy(n, i);
    }
    for (const struct pod *p = n->pods; p != NULL; p = p->next)
        charge(n, p);
    derive(n);
}

/* A quantity of a node's status: absent is 0, anything odd is -1. */
static int64_t read_capacity(struct str text, int64_t max)
{
    struct quantity q;
    if (text.n == 0)
        return 0;
    if (quantity_parse(str_trim(text), &q) != OK || q.value < 0 || !q.whole || q.saturated ||
        q.value > max)
        return -1;
    return q.value;
}

/* As many cards as the node says, all of one size; the rest of the division belongs to none. */
static enum errc split_evenly(struct node *n, uint32_t count, int64_t total)
{
    if (count != n->n_cards) {
        struct card *cards = count == 0 ? NULL : mem_alloc(count * sizeof(*cards));
        if (count > 0 && cards == NULL)
            return ERR_NOMEM;
        mem_free(n->cards);
        n->cards = cards;
        n->n_cards = count;
    }
    for (uint32_t i = 0; i < count; i++)
        n->cards[i].total = total / count;
    n->remainder = count == 0 ? 0 : total % count;
    return OK;
}

enum errc node_resize(struct node *n, const struct node_view *view, bool *ret_changed)
{
    int64_t total = read_capacity(view->mem, INT64_MAX);
    int64_t count = read_capacity(view->count, LIMIT_CARDS);
    int64_t limit =
        view->mem_allocatable.p == NULL ? total : read_capacity(view->mem_allocatable, INT64_MAX);
    enum node_fault fault = NODE_OK;
    if (total < 0 || count < 0 || limit < 0)
        fault = NODE_BAD_QUANTITY;
    else if (total == 0)
        fault = NODE_NOT_SHARED;
    else if (count == 0)
        fault = NODE_NO_CARDS;
    bool usable = fault == NODE_OK;
    uint32_t n_cards = usable ? (uint32_t)count : 0;
    total = MAX_OF(total, 0);
    limit = usable ? MIN_OF(total, limit) : 0;
    *ret_changed =
        n->fault != fault || n->total != total || n->limit != limit || n->n_cards != n_cards;
    if (!*ret_changed)
        return OK;
    enum errc code = split_evenly(n, n_cards, usable ? total : 0);
    if (code != OK) {
        *ret_changed = false;
        return code;
    }
    n->fault = fault;
    n->total = total;
    n->limit = limit;
    recount(n);
    return OK;
}

void node_vanish(struct node *n)
{
    mem_free(n->cards);
    n->cards = NULL;
    n->n_cards = 0;
    n->fault = NODE_ABSENT;
    n->total = 0;
    n->limit = 0;
    n->remainder = 0;
    recount(n);
}

static unsigned mark_unhealthy(uint64_t *bits, struct str gpus)
{
    unsigned bad = 0;
    struct str rest = gpus;
    while (rest.n > 0) {
        struct str token;
        uint64_t index = 0;
        (void)str_cut(rest, ',', &token, &rest);
        token = str_trim(token);
        if (str_to_u64(token, LIMIT_CARDS - 1, &index))
            bits[index / 64] |= (uint64_t)1 << (index % 64);
        else if (token.n > 0)
            bad++;
    }
    return bad;
}

enum errc node_set_unhealthy(struct node *n, struct str gpus, unsigned *ret_bad, bool *ret_changed)
{
    static const uint64_t none[UNHEALTHY_WORDS];
    uint64_t bits[UNHEALTHY_WORDS] = {0};
    *ret_bad = mark_unhealthy(bits, gpus);
    *ret_changed = memcmp(bits, n->unhealthy == NULL ? none : n->unhealthy, sizeof(bits)) != 0;
    if (!*ret_changed)
        return OK;
    if (memcmp(bits, none, sizeof(bits)) == 0) {
        node_clear_unhealthy(n);
        return OK;
    }
    if (n->unhealthy == NULL)
        n->unhealthy = mem_alloc(sizeof(bits));
    if (n->unhealthy == NULL) {
        *ret_changed = false;
        return ERR_NOMEM;
    }
    memcpy(n->unhealthy, bits, sizeof(bits));
    recount(n);
    return OK;
}

void node_clear_unhealthy(struct node *n)
{
    mem_free(n->unhealthy);
    n->unhealthy = NULL;
    recount(n);
}

void node_attach(struct node *n, struct pod *p, int32_t card)
{
    assert(p->node == NULL);
    p->node = n;
    p->card = card;
    p->prev = NULL;
    p->next = n->pods;
    if (n->pods != NULL)
        n->pods->prev = p;
    n->pods = p;
    charge(n, p);
    derive(n);
}

void node_detach(struct pod *p)
{
    struct node *n = p->node;
    assert(n != NULL);
    if (p->prev != NULL)
        p->prev->next = p->next;
    else
        n->pods = p->next;
    if (p->next != NULL)
        p->next->prev = p->prev;
    n->used -= p->mem;
    n->n_pods--;
    if (on_card(n, p)) {
        n->cards[p->card].used -= p->mem;
        n->cards[p->card].pods--;
    } else {
        n->unplaced -= p->mem;
    }
    p->node = NULL;
    p->next = NULL;
    p->prev = NULL;
    derive(n);
}

void node_done(struct node *n)
{
    mem_free(n->cards);
    mem_free(n->unhealthy);
    n->cards = NULL;
    n->unhealthy = NULL;
    n->n_cards = 0;
}

void node_check(const struct node *n)
{
    int64_t used = 0;
    int64_t unplaced = 0;
    uint32_t pods = 0;
    for (const struct pod *p = n->pods; p != NULL; p = p->next) {
        assert(p->node == n && pod_holds(p) && p->mem >= 0);
        assert(p->next == NULL || p->next->prev == p);
        used += p->mem;
        unplaced += on_card(n, p) ? 0 : p->mem;
        pods++;
    }
    assert(used == n->used && unplaced == n->unplaced && pods == n->n_pods);
    int64_t on_cards = 0;
    uint32_t pods_on_cards = 0;
    int64_t most_free = 0;
    int64_t largest = 0;
    int64_t sizes = 0;
    for (uint32_t i = 0; i < n->n_cards; i++) {
        assert(n->cards[i].used >= 0 && n->cards[i].unhealthy == is_unhealthy(n, i));
        on_cards += n->cards[i].used;
        pods_on_cards += n->cards[i].pods;
        most_free = MAX_OF(most_free, card_free(&n->cards[i]));
        largest = MAX_OF(largest, n->cards[i].total);
        sizes += n->cards[i].total;
    }
    assert(on_cards + unplaced == used && pods_on_cards <= pods && most_free == n->most_free);
    assert((n->fault == NODE_OK) == (n->n_cards > 0));
    assert(n->limit >= 0 && n->limit <= n->total);
    assert(n->n_cards == 0 || sizes + n->remainder == n->total);
    assert(largest == n->largest);
}
