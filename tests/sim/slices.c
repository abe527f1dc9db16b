/* Counts what a pod asks for and holds, and what a node has. See slices.h. */
#include "slices.h"

#include "api/plugins.h"

/* ---- what a pod asks for ---- */

static int64_t amount_of(const struct container_object *c, size_t offset)
{
    int64_t value = 0;
    memcpy(&value, (const char *)c + offset, sizeof(value));
    return value;
}

/* Init containers run one after another, beside the sidecars that were started before them. */
static int64_t formula(const struct pod_object *p, size_t offset, bool lasting)
{
    int64_t sum = 0;
    int64_t sidecars = 0;
    int64_t most = 0;
    for (unsigned i = 0; i < p->n_containers; i++) {
        const struct container_object *c = &p->containers[i];
        int64_t value = amount_of(c, offset);
        if (c->kind == CONTAINER_INIT)
            most = MAX_OF(most, sidecars + value);
        else
            sum += value;
        if (c->kind == CONTAINER_SIDECAR)
            sidecars += value;
    }
    return lasting ? sum : MAX_OF(sum, most);
}

#define MEM       offsetof(struct container_object, mem)
#define CORES     offsetof(struct container_object, cores)
#define EXCLUSIVE offsetof(struct container_object, exclusive)

int64_t pod_object_mem(const struct pod_object *p)
{
    return formula(p, MEM, false);
}

int64_t pod_object_cores(const struct pod_object *p)
{
    return formula(p, CORES, false);
}

int64_t pod_object_exclusive(const struct pod_object *p)
{
    return formula(p, EXCLUSIVE, false);
}

struct host pod_object_host(const struct pod_object *p)
{
    struct pod_object q = *p;
    for (unsigned i = 0; i < q.n_containers; i++)
        q.containers[i].cpu = q.containers[i].cpu == 0 ? 100 : q.containers[i].cpu;
    return (struct host){formula(&q, offsetof(struct container_object, cpu), false),
                         formula(&q, offsetof(struct container_object, memory), false)};
}

int64_t pod_object_lasting_mem(const struct pod_object *p)
{
    return formula(p, MEM, true);
}

int64_t pod_object_lasting_cores(const struct pod_object *p)
{
    return formula(p, CORES, true);
}

bool pod_object_named(const struct pod_object *p)
{
    bool named = false;
    for (unsigned i = 0; i < p->n_containers; i++)
        named = named || p->containers[i].named;
    return named;
}

static bool by_card(const struct pod_object *p)
{
    return pod_object_named(p) && (p->whole || p->percent > 0) &&
           (p->plugin != PLUGIN_GPUSHARE || pod_object_mem(p) > 0);
}

bool container_object_asks(const struct pod_object *p, unsigned container)
{
    const struct container_object *c = &p->containers[container];
    return c->mem > 0 || c->cores > 0 || (c->named && p->plugin != PLUGIN_GPUSHARE && by_card(p));
}

unsigned container_object_key(const struct pod_object *p, unsigned container)
{
    unsigned inits = p->n_containers - p->n_mains;
    return container < inits ? p->n_mains + container : container - inits;
}

static unsigned asking(const struct pod_object *p)
{
    unsigned n = 0;
    for (unsigned i = 0; i < p->n_containers; i++)
        n += container_object_asks(p, i) ? 1 : 0;
    return n;
}

bool pod_object_shares(const struct pod_object *p)
{
    return pod_object_mem(p) > 0 || by_card(p);
}

bool pod_object_wants(const struct pod_object *p)
{
    return pod_object_shares(p) || pod_object_exclusive(p) > 0;
}

unsigned pod_object_cards(const struct pod_object *p)
{
    return pod_object_named(p) && p->count > 0 ? p->count : 1;
}

bool pod_object_is_own(const struct pod_object *p)
{
    return p->plugin == PLUGIN_HAMI && asking(p) > 1;
}

/* gpu-manager serves no memory without compute. */
static bool lacks_cores(const struct pod_object *p)
{
    bool lacks = false;
    for (unsigned i = 0; i < p->n_containers; i++)
        lacks = lacks || (p->containers[i].mem > 0 && p->containers[i].cores == 0);
    return lacks;
}

bool pod_object_bad(const struct pod_object *p)
{
    if (p->plugin == PLUGIN_HAMI)
        return false;
    if (p->plugin == PLUGIN_VGPU)
        return asking(p) > 1; /* the plugin finds a pod by the number of all its cards */
    if (p->plugin == PLUGIN_VOLCANO && asking(p) > 1)
        return true; /* the plugin acknowledges the pod with its first container */
    if (p->plugin == PLUGIN_TENCENT && lacks_cores(p))
        return true;
    int64_t cards = pod_object_cards(p);
    for (unsigned i = 0; i < p->n_containers; i++) {
        if (p->containers[i].mem % cards != 0 || p->containers[i].cores % cards != 0)
            return true;
    }
    int64_t most = pod_object_may_part(p) ? 0 : pod_object_cores(p) / cards;
    for (unsigned i = 0; pod_object_may_part(p) && i < p->n_containers; i++)
        most = MAX_OF(most, p->containers[i].cores);
    if (pod_object_named(p) && (p->whole || p->percent > 0) && !by_card(p))
        return true; /* the kubelet gives no card to a container that asks for 0 */
    return most > 100 || (pod_object_cores(p) > 0 && !pod_object_shares(p));
}

bool pod_object_may_part(const struct pod_object *p)
{
    unsigned lasting = 0;
    for (unsigned i = 0; i < p->n_containers; i++)
        lasting += container_object_asks(p, i) && p->containers[i].kind != CONTAINER_INIT ? 1 : 0;
    bool divided = pod_object_named(p) && p->count > 0;
    return lasting > 1 && !divided && !by_card(p) && p->affinity.z[0] == '\0';
}

bool pod_object_plain(const struct pod_object *p)
{
    return pod_object_mem(p) > 0 && !by_card(p) && pod_object_cards(p) == 1 && asking(p) <= 1 &&
           pod_object_cores(p) == 0;
}

int64_t part_of(int64_t whole, unsigned parts)
{
    return (whole + parts - 1) / parts;
}

/* ---- what a pod holds ---- */

/* Memory that the allocation gives a container on this card (-1: on all cards), and on how many
 * cards. */
static int64_t granted(const struct pod_object *p, unsigned container, int64_t card,
                       unsigned *ret_n)
{
    int64_t sum = 0;
    *ret_n = 0;
    for (unsigned i = 0; i < p->allocation.n; i++) {
        if (p->allocation.at[i].container != container_object_key(p, container) ||
            (card >= 0 && p->allocation.at[i].card != card))
            continue;
        sum += p->allocation.at[i].amount;
        (*ret_n)++;
    }
    return sum;
}

/* Whether the allocation counts. It must give each container exactly what its spec asks for, name
 * no other container, and agree with the index that the device plugin uses. */
static bool allocation_counts(const struct pod_object *p)
{
    unsigned named = 0;
    if (!p->allocation.there || p->allocation.garbled || p->allocation.n == 0)
        return false;
    for (unsigned i = 0; i < p->n_containers; i++) {
        unsigned n = 0;
        int64_t given = granted(p, i, -1, &n);
        const struct container_object *c = &p->containers[i];
        if (!container_object_asks(p, i))
            continue;
        named += n;
        if (c->kind == CONTAINER_INIT && n == 0)
            continue;
        if (by_card(p) ? given < c->mem || n > pod_object_cards(p) : given != c->mem)
            return false;
    }
    int64_t cards[SAID_MAX];
    unsigned n_cards = pod_object_said(p, cards);
    for (unsigned i = 0; n_cards > 0 && i < p->allocation.n; i++) {
        if (!pod_object_names(p, p->allocation.at[i].card))
            return false;
    }
    for (unsigned k = 0; k < n_cards; k++) {
        bool there = false;
        for (unsigned i = 0; i < p->allocation.n; i++)
            there = there || p->allocation.at[i].card == cards[k];
        if (!there)
            return false;
    }
    return named == p->allocation.n;
}

const struct slice *slice_on(const struct slices *s, int64_t card)
{
    for (unsigned i = 0; i < s->n; i++) {
        if (s->at[i].card == card)
            return &s->at[i];
    }
    return NULL;
}

/* The first lasting container that asks: init containers run on its cards. Without one, the first
 * that asks. */
static unsigned anchor_of(const struct pod_object *p)
{
    unsigned first = MAX_CONTAINERS;
    for (unsigned i = 0; i < p->n_containers; i++) {
        if (!container_object_asks(p, i))
            continue;
        if (p->containers[i].kind != CONTAINER_INIT)
            return i;
        first = MIN_OF(first, i);
    }
    return first;
}

static void slice_count(const struct pod_object *p, bool lasting, struct slice *s)
{
    unsigned n = 0;
    unsigned anchor_cards = 0;
    unsigned anchor = anchor_of(p);
    int64_t sidecar_mem = 0;
    int64_t sidecar_cores = 0;
    for (unsigned i = 0; i < p->n_containers; i++) {
        int64_t mem = granted(p, i, s->card, &n);
        bool here = n > 0;
        (void)granted(p, i, -1, &n);
        if (p->containers[i].kind == CONTAINER_INIT || !here)
            continue;
        s->mem += mem;
        s->cores += part_of(p->containers[i].cores, n);
    }
    (void)granted(p, anchor, s->card, &n);
    (void)granted(p, anchor, -1, &anchor_cards);
    if (lasting || n == 0)
        return;
    for (unsigned i = 0; i < p->n_containers; i++) {
        const struct container_object *c = &p->containers[i];
        int64_t mem = granted(p, i, s->card, &n);
        bool here = n > 0;
        (void)granted(p, i, -1, &n);
        if (c->kind == CONTAINER_INIT) {
            s->mem = MAX_OF(s->mem, sidecar_mem + part_of(c->mem, anchor_cards));
            s->cores = MAX_OF(s->cores, sidecar_cores + part_of(c->cores, anchor_cards));
        } else if (c->kind == CONTAINER_SIDECAR && here) {
            /* With whole cards the sidecar's grant may include the card's rest: count only its own
             * request. */
            sidecar_mem += by_card(p) ? MIN_OF(mem, part_of(c->mem, n)) : mem;
            sidecar_cores += part_of(c->cores, n);
        }
    }
}

static struct slice *slice_at(struct slices *s, int64_t card)
{
    unsigned at = 0;
    while (at < s->n && s->at[at].card < card)
        at++;
    if (at == s->n || s->at[at].card != card) {
        memmove(&s->at[at + 1], &s->at[at], (s->n - at) * sizeof(s->at[0]));
        s->at[at] = (struct slice){.card = card};
        s->n++;
    }
    return &s->at[at];
}

/* elastic-gpu's annotations, and gpu-manager's, name the cards of each container. One without any
 * is on a card that no node has; if all are, nothing is known. */
static void seats_of(const struct pod_object *p, struct slices *ret)
{
    unsigned known = 0;
    unsigned cards = pod_object_cards(p);
    for (unsigned i = 0; i < p->n_containers; i++) {
        unsigned seats = 0;
        if (!container_object_asks(p, i))
            continue;
        for (unsigned k = 0; k <= p->allocation.n; k++) {
            bool end = k == p->allocation.n;
            if (end ? seats > 0 : p->allocation.at[k].container != i)
                continue;
            struct slice *s = slice_at(ret, end ? NOWHERE : p->allocation.at[k].card);
            s->mem += part_of(p->containers[i].mem, cards);
            s->cores += part_of(p->containers[i].cores, cards);
            seats += end ? 0 : 1;
        }
        known += seats;
    }
    ret->n = known > 0 ? ret->n : 0;
}

/* What a container has at least of each of its cards of HAMi's family, by the spec. */
static struct slice least_of(const struct pod_object *p, unsigned container)
{
    struct slice least = {.mem = 0};
    int64_t cards = pod_object_cards(p);
    bool known = container < p->n_containers && container_object_asks(p, container);
    for (unsigned i = 0; i < p->n_containers; i++) {
        if (!container_object_asks(p, i) || (known && pod_object_is_own(p) && i != container))
            continue;
        least.mem = MAX_OF(least.mem, p->containers[i].mem / cards);
        least.cores = MAX_OF(least.cores, p->containers[i].cores / cards);
    }
    return least;
}

/* A plugin of HAMi's family gives what the list says. */
static void devices_of(const struct pod_object *p, struct slices *ret)
{
    for (unsigned i = 0; i < p->allocation.n; i++) {
        struct slice *s = slice_at(ret, p->allocation.at[i].card);
        struct slice least = least_of(p, p->allocation.at[i].container);
        s->mem += MAX_OF((int64_t)p->allocation.at[i].amount, least.mem);
        s->cores += MAX_OF((int64_t)p->allocation.at[i].cores, least.cores);
        s->takers += pod_object_is_own(p) ? 1 : 0;
    }
}

/* Whether only an init container has cards. */
static bool is_of_init(const struct pod_object *p)
{
    bool lasts = false;
    for (unsigned i = 0; i < p->n_containers; i++)
        lasts = lasts || (container_object_asks(p, i) && p->containers[i].kind != CONTAINER_INIT);
    return !lasts && asking(p) == 1;
}

/* All of the index's cards: an equal part of each if they are as many as it asks for. One card has
 * the pod's own figures, see below. */
static void index_of(const struct pod_object *p, bool lasting, struct slices *ret)
{
    int64_t cards[SAID_MAX];
    unsigned n = pod_object_said(p, cards);
    unsigned parts = n == pod_object_cards(p) ? n : 1;
    bool each = n > 1 && !(lasting && is_of_init(p));
    for (unsigned i = 0; i < n; i++) {
        struct slice *s = slice_at(ret, cards[i]);
        s->mem = each ? part_of(pod_object_mem(p), parts) : 0;
        s->cores = each ? part_of(pod_object_cores(p), parts) : 0;
    }
}

#define GRANTED_CARDS 16 /* others may name cards that no node has */

void pod_object_slices(const struct pod_object *p, bool lasting, struct slices *ret)
{
    bool counts = allocation_counts(p);
    ret->n = 0;
    if (!pod_object_shares(p) && (pod_object_exclusive(p) > 0 || pod_object_cores(p) == 0))
        return;
    if (p->plugin == PLUGIN_ELASTIC || p->plugin == PLUGIN_TENCENT)
        seats_of(p, ret);
    if (plugin_has_devices(p->plugin))
        devices_of(p, ret);
    counts = counts && p->plugin == PLUGIN_GPUSHARE;
    if (!counts && !plugin_has_devices(p->plugin))
        index_of(p, lasting, ret);
    for (int64_t card = 0; counts && card < GRANTED_CARDS; card++) {
        bool named = false;
        for (unsigned i = 0; i < p->allocation.n; i++)
            named = named || p->allocation.at[i].card == card;
        if (!named)
            continue;
        ret->at[ret->n] = (struct slice){.card = card};
        slice_count(p, lasting, &ret->at[ret->n++]);
    }
    if (ret->n != 1)
        return;
    struct slice *s = &ret->at[0];
    s->mem = MAX_OF(s->mem, lasting ? pod_object_lasting_mem(p) : pod_object_mem(p));
    s->cores = MAX_OF(s->cores, lasting ? pod_object_lasting_cores(p) : pod_object_cores(p));
}

/* Rounded down, but a limit of 0 would be none. */
int64_t hami_part(unsigned percent, int64_t total)
{
    return MAX_OF(total * percent / 100, MIN_OF(total, (int64_t)1));
}

int64_t slice_charge(const struct pod_object *p, const struct slice *s, int64_t total)
{
    int64_t charge = s->mem;
    if (by_card(p) && p->whole)
        return MAX_OF(charge, total);
    if (by_card(p) && plugin_has_devices(p->plugin))
        return MAX_OF(charge, hami_part(p->percent, total));
    if (by_card(p))
        return MAX_OF(charge, (total * p->percent + 99) / 100);
    return charge;
}

/* ---- nodes ---- */

struct card_object node_object_row(const struct node_object *n, int64_t card)
{
    for (unsigned i = 0; n->has_table && i < n->n_table; i++) {
        if (n->table[i].index == card)
            return n->table[i];
    }
    return (struct card_object){.mem = 0};
}

static bool knows_uuid(const struct node_object *n, int64_t card)
{
    return node_object_has_card(n, card) && node_object_row(n, card).uuid;
}

void pod_object_slices_on(const struct pod_object *p, const struct node_object *n, bool lasting,
                          struct slices *ret)
{
    struct slices all;
    pod_object_slices(p, lasting, &all);
    if (!plugin_has_devices(p->plugin)) {
        *ret = all;
        return;
    }
    ret->n = 0;
    for (unsigned i = 0; i < all.n; i++) {
        const struct slice *from = &all.at[i];
        struct slice *to = slice_at(ret, knows_uuid(n, from->card) ? from->card : NOWHERE);
        to->mem += from->mem;
        to->cores += from->cores;
        to->takers += from->takers;
    }
}

int64_t node_object_cards(const struct node_object *n)
{
    int64_t cards = 0;
    if (!n->exists || n->mem <= 0)
        return 0;
    if (!n->has_table)
        return MAX_OF(n->count, 0);
    for (unsigned i = 0; i < n->n_table && !n->bad_table; i++)
        cards = MAX_OF(cards, n->table[i].index + 1);
    return cards;
}

bool node_object_has_card(const struct node_object *n, int64_t card)
{
    return card >= 0 && card < node_object_cards(n) &&
           (!n->has_table || node_object_row(n, card).mem > 0);
}

int64_t node_object_card_size(const struct node_object *n, int64_t card)
{
    if (!node_object_has_card(n, card))
        return 0;
    return n->has_table ? node_object_row(n, card).mem : n->mem / n->count;
}

bool node_object_card_usable(const struct node_object *n, int64_t card)
{
    return node_object_has_card(n, card) && !node_object_row(n, card).ill &&
           !(n->plugin == PLUGIN_VOLCANO && name_lists(&n->ill, card)) &&
           !name_lists(&n->cordoned, card) && !name_lists(&n->aside, card) &&
           !node_object_given(n, card);
}

enum plugin node_object_plugin(const struct node_object *n)
{
    return n->exists && n->mem > 0 ? n->plugin : PLUGIN_GPUSHARE;
}

bool node_object_is_foreign(const struct node_object *n, const struct pod_object *p)
{
    return pod_object_shares(p) && node_object_offers(n, p->plugin) && node_object_cards(n) > 0 &&
           p->plugin != node_object_plugin(n);
}

bool node_object_given(const struct node_object *n, int64_t card)
{
    return n->given_all || name_lists(&n->given, card);
}

int64_t node_object_limit(const struct node_object *n)
{
    if (node_object_cards(n) == 0)
        return 0;
    return n->allocatable < 0 ? n->mem : MIN_OF(n->mem, n->allocatable);
}

int64_t node_object_max_pods(const struct node_object *n, int64_t card)
{
    int64_t most = n->max_pods.z[0] - '0';
    int64_t own = plugin_has_devices(n->plugin) ? node_object_row(n, card).count : 0;
    most = most >= 1 && most <= 9 ? most : INT64_MAX;
    return own > 0 ? MIN_OF(own, most) : most;
}

bool node_object_divided(const struct node_object *n)
{
    for (int64_t card = 0; card < node_object_cards(n); card++) {
        if (node_object_has_card(n, card) && name_lists(&n->aside, card))
            return true;
    }
    return false;
}

/* ---- wishes ---- */

/* Whether each selection of models in tests/api/render.c allows each model. */
static const bool wishes[][MODELS] = {
    {true, true, true},   {false, true, false}, {true, false, true},
    {false, false, true}, {false, true, true},  {false, false, true},
};

int node_object_numa(const struct node_object *n, int64_t card)
{
    return n->has_table ? node_object_row(n, card).numa : -1;
}

int8_t node_object_model(const struct node_object *n, int64_t card)
{
    struct card_object row = node_object_row(n, card);
    if (row.model != 0)
        return row.model;
    return n->model;
}

bool pod_object_allows(const struct pod_object *p, const struct node_object *n, int64_t card)
{
    struct card_object row = node_object_row(n, card);
    int8_t model = node_object_model(n, card);
    bool is = row.uuid && card == (p->uuid < 0 ? -p->uuid : p->uuid) - 1;
    if (!wishes[p->model][model])
        return false;
    return p->uuid == 0 || (p->uuid > 0) == is;
}

bool node_object_isolates(const struct node_object *n, const struct pod_object *p)
{
    static const bool enforces[ISOLATIONS] = {false, false, false, true, true, true};
    const uint8_t mps = 4; /* it serves pods with one card only */
    if (!pod_object_shares(p))
        return true;
    return (!p->isolated || enforces[n->isolation]) &&
           (n->isolation != mps || (p->count <= 1 && !pod_object_is_own(p)));
}

bool health_object_ill(const struct health_object *h, int64_t card)
{
    return h->exists && name_lists(&h->gpus, card);
}

bool name_lists(const struct name *n, int64_t card)
{
    for (const char *c = n->z; *c != '\0'; c++) {
        if (*c - '0' == card)
            return true;
    }
    return false;
}

bool name_is(const struct name *n, int64_t value)
{
    struct name wanted = name_of("", (uint64_t)value);
    return strcmp(n->z, wanted.z) == 0;
}
