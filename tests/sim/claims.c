/* The driver and the allocator of DRA; see claims.h. */
#include "claims.h"

#include "slices.h"

#define PER_NODE 2 /* slices of a pool */

static uint64_t born; /* claims so far */

/* ---- the driver ---- */

/* On every second node two cards are parts of one GPU, and have its address. */
static uint8_t pci_of(unsigned node, unsigned card)
{
    return (uint8_t)(1 + (node % 2 == 1 ? card / 2 : card));
}

struct device_object claims_device(unsigned node, uint8_t card, bool mig)
{
    return (struct device_object){.card = card,
                                  .memory = card % 3 == 2 ? 0 : 16,
                                  .pci = (node + card) % 5 == 4 ? 0 : pci_of(node, card),
                                  .uuid = (node + card) % 4 != 3,
                                  .mig = mig};
}

void claims_name_card(const struct node_object *n, struct card_object *c)
{
    unsigned node = (unsigned)(n->name.z[1] - '0');
    c->pci = draw(3) > 0 ? pci_of(node, c->index) : 0;
}

/* Publishes the devices of the pool whose card has one of these bits. */
static void publish(unsigned node, unsigned k, unsigned cards)
{
    unsigned slot = PER_NODE * node + k;
    struct slice_object s = store.slices[slot];
    s.exists = true;
    s.name = name_of("slice-", slot);
    s.node = store.nodes[node].name;
    s.generation++;
    s.n_devices = 0;
    for (unsigned i = 0; i <= world.set.max_cards && i < MAX_CARDS / 2; i++) {
        if ((cards >> i & 1) == 0)
            continue;
        s.devices[s.n_devices++] = claims_device(node, (uint8_t)i, false);
        s.devices[s.n_devices++] = claims_device(node, (uint8_t)i, true);
    }
    store_put_slice(slot, &s);
}

/* Each device is in one of the two slices. */
static void publish_all(unsigned node)
{
    publish(node, 0, 0x55);
    publish(node, 1, 0xaa);
}

static void change_class(void)
{
    unsigned slot = draw(MAX_CLASSES);
    struct class_object c = {
        .exists = draw(3) > 0, .name = name_of("class-", slot), .serves = draw(3) > 0};
    store_put_class(slot, &c);
}

void claims_begin(void)
{
    born = 0;
    if (world.set.kinds[KIND_CLASSES] && draw(2) == 0)
        change_class();
    for (unsigned i = 0; i < store.n_nodes; i++) {
        if (draw(4) > 0)
            publish_all(i);
    }
}

void claims_settle(void)
{
    for (unsigned i = 0; i < store.n_nodes; i++)
        publish_all(i);
}

/* The driver restarts, and the kubelet deletes its slices; or its devices come and go, or move to
 * the other slice of the pool. */
static void drive(void)
{
    unsigned node = draw(store.n_nodes);
    unsigned slot = PER_NODE * node + draw(PER_NODE);
    struct slice_object s = store.slices[slot];
    switch (draw(4)) {
    case 0:
        if (!s.exists)
            break;
        s.exists = false;
        store_put_slice(slot, &s);
        break;
    case 1:
        publish(node, draw(PER_NODE), draw(1U << (MAX_CARDS / 2)));
        break;
    default:
        publish_all(node);
        break;
    }
}

/* ---- the administrator ---- */

void claims_give(struct node_object *n)
{
    static const char *const lists[] = {"", "0", "1", "0, 1", "1, 2"};
    n->given = name_from(str_of(lists[draw(COUNT_OF(lists))]));
    n->given_all = draw(5) == 0;
}

void claims_part(struct node_object *n)
{
    claims_give(n);
}

/* ---- the allocator ---- */

static bool shares(unsigned node, unsigned card)
{
    return (node + card) % 2 == 1;
}

static bool is_of(const struct result_object *r, unsigned node, unsigned card)
{
    return !r->admin && r->card == card && strcmp(r->node.z, store.nodes[node].name.z) == 0;
}

/* What claims have of the card: in GiB, and whether no other may have a part. */
static unsigned consumed(unsigned node, unsigned card, bool *ret_alone)
{
    unsigned sum = 0;
    *ret_alone = false;
    for (unsigned i = 0; i < MAX_CLAIMS; i++) {
        const struct claim_object *c = &store.claims[i];
        for (unsigned k = 0; c->exists && k < c->n_results; k++) {
            if (!is_of(&c->results[k], node, card))
                continue;
            sum += MAX_OF(c->results[k].memory, 1U);
            *ret_alone = *ret_alone || !c->results[k].shared;
        }
    }
    return sum;
}

bool claims_use(unsigned node, int64_t card)
{
    bool alone = false;
    return consumed(node, (unsigned)card, &alone) > 0;
}

/* Whether the device can be had, and as what. */
static bool may_have(unsigned node, const struct device_object *x, struct result_object *ret)
{
    bool alone = false;
    unsigned used = consumed(node, x->card, &alone);
    *ret = (struct result_object){
        .node = store.nodes[node].name, .card = x->card, .mig = x->mig, .admin = draw(6) == 0};
    ret->shared = shares(node, x->card);
    ret->memory = ret->shared && draw(6) > 0 ? (uint8_t)(1 + draw(8)) : 0;
    if (ret->admin)
        return true;
    if (world.set.partition && !node_object_given(&store.nodes[node], x->card))
        return false;
    return used == 0 || (ret->shared && !alone && used + ret->memory <= 16);
}

/* Adds the first device that can be had, in the order of the slices; sometimes it is of another
 * request, which wants a part of a GPU. */
static bool allocate(unsigned node, struct claim_object *c)
{
    bool mig = draw(4) == 0;
    for (unsigned k = 0; k < PER_NODE; k++) {
        const struct slice_object *s = &store.slices[PER_NODE * node + k];
        for (unsigned i = 0; s->exists && i < s->n_devices; i++) {
            struct result_object r;
            bool twice = c->n_results > 0 && c->results[0].card == s->devices[i].card;
            if (s->devices[i].mig != mig || twice || !may_have(node, &s->devices[i], &r))
                continue;
            c->results[c->n_results++] = r;
            return true;
        }
    }
    return false;
}

static void claim(void)
{
    unsigned slot = draw(MAX_CLAIMS);
    unsigned node = draw(store.n_nodes);
    struct claim_object c = store.claims[slot];
    if (!c.exists)
        c = (struct claim_object){.exists = true,
                                  .ns = name_of("ns-", draw(2)),
                                  .name = name_of("claim-", slot),
                                  .uid = name_of("claim-uid-", ++born)};
    else if (c.n_results > 0)
        return;
    if (draw(5) > 0 && allocate(node, &c) && draw(4) == 0)
        (void)allocate(node, &c);
    store_put_claim(slot, &c);
}

/* The pods of a claim have ended: it loses its devices, or is deleted. */
static void release(void)
{
    unsigned n = 0;
    unsigned slot = MAX_CLAIMS;
    for (unsigned i = 0; i < MAX_CLAIMS; i++) {
        if (store.claims[i].exists && draw(++n) == 0)
            slot = i;
    }
    if (slot == MAX_CLAIMS)
        return;
    struct claim_object c = store.claims[slot];
    c.exists = draw(2) == 0;
    c.n_results = c.exists ? 0 : c.n_results;
    store_put_claim(slot, &c);
}

void claims_act(void)
{
    if (world.set.kinds[KIND_CLASSES] && draw(12) == 0)
        change_class();
    unsigned dice = draw(10);
    if (dice < 5)
        claim();
    else if (dice < 8)
        release();
    else
        drive();
}
