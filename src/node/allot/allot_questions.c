/* What other parts of the program ask of the pods and their cards. Nothing changes by it. */
#include "node/allot/allot_state.h"

bool allot_share(struct allot *a, struct str uid, struct str container, struct card_share *ret)
{
    struct err e = ERR_INIT;
    if (!a->listed || a->listing)
        return false;
    (void)allot_refresh(a, false, &e); /* without the checkpoint, by the annotations */
    const struct roster_pod *p = roster_find(&a->roster, uid);
    return p != NULL && share_find(&a->roster, p, container, ret);
}

bool allot_is_on(const struct allot *a, struct str uid, uint32_t card)
{
    const struct roster_pod *p = roster_find(&a->roster, uid);
    return p != NULL && roster_is_on(p, card);
}

bool allot_uses(const struct allot *a, uint32_t card)
{
    for (size_t i = 0; i < a->roster.n_pods; i++) {
        if (roster_is_on(a->roster.pods[i], card))
            return true;
    }
    return false;
}

void allot_promises(const struct allot *a, uint32_t card,
                    void (*each)(void *ctx, const struct roster_pod *p, int64_t units), void *ctx)
{
    for (size_t i = 0; i < a->roster.n_pods; i++) {
        const struct roster_pod *p = a->roster.pods[i];
        if (p->plan.n > 0 || roster_is_bound(p))
            each(ctx, p, roster_holds(&a->roster, p, card, true));
    }
}

struct allot_counts allot_counts(const struct allot *a)
{
    struct allot_counts counts = a->counts;
    counts.exchanged = a->patcher.counts.moved;
    counts.patches = a->patcher.counts.sent;
    counts.patch_failures = a->patcher.counts.failures;
    return counts;
}

bool allot_compare(struct allot *a, const struct pod_resources *list, struct comparison *ret)
{
    struct err e = ERR_INIT;
    if (!a->listed || a->listing)
        return false;
    (void)allot_refresh(a, false, &e); /* without the checkpoint no owner of a device is known */
    compare(list, &a->checkpoint, &a->roster, ret);
    return true;
}
