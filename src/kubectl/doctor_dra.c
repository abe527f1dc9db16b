/* What doctor says of Dynamic Resource Allocation: devices that are no card, cards that claims and
 * pods use at once, and pods that ask for both. */
#include "core/dialect/gpushare.h"
#include "kubectl/doctor.h"

/* As cardpack joins a claimed device to a card. */
static bool doctor_dra_joins(const struct node *n, const struct dra_device_view *x)
{
    for (uint32_t i = 0; i < n->n_cards; i++) {
        if (node_card_is_named(n, i, x->uuid) || node_card_is_named(n, i, x->parent) ||
            (x->pci != 0 && n->sizes->infos[i].pci == x->pci))
            return true;
    }
    return false;
}

/* The node that has the devices, if its cards are shared. */
static const struct node *doctor_dra_node(const struct cache *c, struct str name)
{
    const struct node *n = name.n == 0 ? NULL : cache_node(c, name);
    return n != NULL && n->sizes != NULL && n->fault == NODE_OK ? n : NULL;
}

void doctor_slice(struct findings *f, const struct cache *c, const struct dra_slice_view *v)
{
    const struct dra_device_view *first = NULL;
    const struct node *n = doctor_dra_node(c, v->node);
    size_t strange = 0;
    if (n == NULL || v->n_devices == 0)
        return;
    if (n->sizes->infos == NULL) {
        finding_add(f, FINDING_WARN, finding_node(f, v->node),
                    "install cardpack-node there, which writes the table, or write it: "
                    "docs/cards.md",
                    "driver %.*s publishes devices of it, and it has no annotation %.*s with the "
                    "UUIDs of its cards: a claim for one of them takes all cards",
                    STR_ARG(v->driver), STR_ARG(CARDPACK_ANNOTATION_CARDS));
        return;
    }
    for (size_t i = 0; i < v->n_devices; i++) {
        if (doctor_dra_joins(n, &v->devices[i]))
            continue;
        first = first == NULL ? &v->devices[i] : first;
        strange++;
    }
    if (first != NULL)
        finding_add(f, FINDING_WARN, finding_node(f, v->node),
                    "compare uuid and pciBusID of the ResourceSlice with uuid and pci of the "
                    "annotation cardpack.io/cards; devices that are no GPUs may be ignored",
                    "%zu of the %zu devices of driver %.*s are none of its cards, by UUID or PCI "
                    "address, the first is %.*s: a claim for it takes no card from cardpack",
                    strange, v->n_devices, STR_ARG(v->driver), STR_ARG(str_head(first->name, 64)));
}

void doctor_claimed(struct findings *f, const struct node *n)
{
    /* Without a table a claim takes all cards, because it is not known which one it has. */
    for (uint32_t i = 0; i < n->n_cards && n->sizes->infos != NULL; i++) {
        const struct card *c = &n->cards[i];
        if (c->claimed && c->pods > 0)
            finding_add(f, FINDING_FAIL, finding_node(f, n->name),
                        "look at the status of the claim: if it is reserved for no pod, delete the "
                        "claim, else the pods of one side; then give each card to DRA or to "
                        "cardpack: docs/dra.md",
                        "a ResourceClaim holds card %u, and %u pod%s", i, c->pods,
                        c->pods == 1 ? " shares it" : "s share it");
    }
}

void doctor_pod_claims(struct findings *f, struct str object)
{
    finding_add(
        f, FINDING_WARN, object, "request all cards of a pod in one way: docs/dra.md",
        "it has ResourceClaims and shared cards: the claims may hold cards that pods share, "
        "unless each card belongs to DRA or to cardpack");
}
