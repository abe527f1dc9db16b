/* What claims hold of a card, and which of it a process surely knows; and where DRA serves
 * nvidia.com/gpu. See claims.h. */
#include "claims.h"
#include "oracle.h"

#define KINDS_OF_DEVICE 2 /* a GPU, a part of one */

static struct {
    uint64_t held_rv[MAX_CLAIMS]; /* since when it holds what it holds now; 0: nothing */
    uint64_t named_rv[MAX_SLICES][MAX_CARDS][KINDS_OF_DEVICE]; /* the same of a slice's devices */
    /* The held_rv for which the process has known the device. cardpack then knows it as long as the
     * claim holds it, also if the slice is gone. */
    uint64_t learned_rv[MAX_REPLICAS][MAX_CLAIMS][MAX_RESULTS];
} taken;

void claims_reset(void)
{
    memset(&taken, 0, sizeof(taken));
}

void claims_forget(unsigned proc)
{
    memset(taken.learned_rv[proc], 0, sizeof(taken.learned_rv[proc]));
}

static bool holds_the_same(const struct claim_object *a, const struct claim_object *b)
{
    return a->exists && b->exists && strcmp(a->uid.z, b->uid.z) == 0 && a->n_results > 0 &&
           a->n_results == b->n_results;
}

static bool names(const struct slice_object *s, unsigned card, bool mig)
{
    for (unsigned i = 0; s->exists && i < s->n_devices; i++) {
        if (s->devices[i].card == card && s->devices[i].mig == mig)
            return true;
    }
    return false;
}

/* Whether the pod has a part of the card, now or when its init containers run again. */
static bool has_card(const struct pod_object *p, unsigned node, int64_t card)
{
    struct slices all;
    if (!pod_object_holds_on(p, &store.nodes[node]))
        return false;
    pod_object_slices(p, false, &all);
    return slice_on(&all, card) != NULL;
}

void claims_check_partition(void)
{
    for (unsigned i = 0; world.set.partition && i < store.n_pods; i++) {
        for (unsigned node = 0; oracle_by(i) != NULL && node < store.n_nodes; node++) {
            for (int64_t card = 0; card < MAX_CARDS; card++)
                sim_check(!claims_use(node, card) || !has_card(&store.pods[i], node, card));
        }
    }
}

/* A claim never changes from some devices to others. */
void claims_changed(const struct change *c)
{
    const struct claim_object *claim = &c->new.claim;
    if (c->kind == CACHE_CLAIMS && !holds_the_same(&c->old.claim, claim))
        taken.held_rv[c->slot] = claim->exists && claim->n_results > 0 ? c->rv : 0;
    if (c->kind == CACHE_CLAIMS)
        claims_check_partition();
    for (unsigned i = 0; c->kind == CACHE_SLICES && i < MAX_CARDS * KINDS_OF_DEVICE; i++) {
        unsigned card = i / KINDS_OF_DEVICE;
        bool mig = i % KINDS_OF_DEVICE == 1;
        uint64_t *rv = &taken.named_rv[c->slot][card][mig];
        if (!names(&c->new.slice, card, mig))
            *rv = 0;
        else if (*rv == 0)
            *rv = c->rv;
    }
}

/* Whether the process was told of both before its turn, and nothing of it has changed since. */
static bool was_told(const struct proc *p, unsigned slot, const struct result_object *r)
{
    if (taken.held_rv[slot] == 0 || p->told_before[CACHE_CLAIMS][slot] < taken.held_rv[slot])
        return false;
    for (unsigned i = 0; i < MAX_SLICES; i++) {
        uint64_t rv = taken.named_rv[i][r->card][r->mig];
        if (rv > 0 && p->told_before[CACHE_SLICES][i] >= rv &&
            strcmp(store.slices[i].node.z, r->node.z) == 0)
            return true;
    }
    return false;
}

/* If memory is short, an object of which the process was told may be lost until its next list. */
static bool knows(const struct proc *p, unsigned slot, unsigned k)
{
    bool learned = taken.held_rv[slot] > 0 && world.set.permille[FAULT_MEMORY] == 0 &&
                   taken.learned_rv[p->id][slot][k] == taken.held_rv[slot];
    return learned || was_told(p, slot, &store.claims[slot].results[k]);
}

void claims_learn(const struct proc *p)
{
    for (unsigned i = 0; i < MAX_CLAIMS; i++) {
        for (unsigned k = 0; taken.held_rv[i] > 0 && k < store.claims[i].n_results; k++) {
            if (was_told(p, i, &store.claims[i].results[k]))
                taken.learned_rv[p->id][i][k] = taken.held_rv[i];
        }
    }
}

/* ---- from a device to cards ---- */

static bool has_uuid(const struct node_object *n, const struct device_object *x, int64_t card)
{
    return node_object_has_card(n, card) && node_object_row(n, card).uuid && x->uuid &&
           x->card == card;
}

/* Whether the device is this card: by its UUID or that of its GPU, else by the PCI address. */
static bool is_card(const struct node_object *n, const struct device_object *x, int64_t card)
{
    if (!n->has_table)
        return x->uuid;
    for (int64_t i = 0; i < MAX_CARDS; i++) {
        if (has_uuid(n, x, i))
            return i == card;
    }
    return x->pci > 0 && node_object_row(n, card).pci == x->pci;
}

static int64_t part(const struct node_object *n, const struct device_object *x,
                    const struct result_object *r, int64_t total)
{
    if (!n->has_table || (x->mig && x->uuid) || !r->shared || r->memory == 0 || x->memory == 0)
        return LENT_WHOLE;
    return MIN_OF(total, (r->memory * total + x->memory - 1) / x->memory);
}

int64_t claims_lend(const struct proc *p, const struct node_object *n, unsigned node, int64_t card)
{
    int64_t sum = 0;
    if (!world.set.kinds[KIND_CLAIMS] || !node_object_has_card(n, card))
        return 0;
    for (unsigned i = 0; i < MAX_CLAIMS; i++) {
        const struct claim_object *c = &store.claims[i];
        for (unsigned k = 0; c->exists && k < c->n_results; k++) {
            const struct result_object *r = &c->results[k];
            const struct device_object x = claims_device(node, r->card, r->mig);
            if (r->admin || strcmp(r->node.z, n->name.z) != 0 || !is_card(n, &x, card) ||
                (p != NULL && !knows(p, i, k)))
                continue;
            int64_t more = part(n, &x, r, node_object_card_size(n, card));
            if (more == LENT_WHOLE)
                return LENT_WHOLE;
            sum += more;
        }
    }
    return sum;
}

/* ---- nvidia.com/gpu by a DeviceClass ---- */

static bool serves(const struct class_object *c)
{
    return c->exists && c->serves;
}

/* A node where a device plugin has cards of that name is served by the plugin. */
static bool may_be_served(const struct node_object *n)
{
    return n->exists && n->exclusive <= 0;
}

bool claims_serve(const struct node_object *n)
{
    bool any = false;
    for (unsigned i = 0; i < MAX_CLASSES; i++)
        any = any || serves(&store.classes[i]);
    return any && may_be_served(n);
}

/* Each version from the one on that the process was told of last. If memory is short, it may have
 * lost that one, too. */
bool claims_may_serve(const struct proc *p, const struct node_object *n)
{
    bool known[MAX_CLASSES] = {false};
    bool any = false;
    for (size_t i = history_size(); i > 0; i--) {
        const struct change *c = history_at(i - 1);
        if (c->kind != CACHE_CLASSES || known[c->slot])
            continue;
        any = any || serves(&c->new.class);
        known[c->slot] = world.set.permille[FAULT_MEMORY] == 0 &&
                         c->rv <= p->told_before[CACHE_CLASSES][c->slot];
    }
    return any && may_be_served(n);
}
