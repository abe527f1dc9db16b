/* Evaluates pods whose containers may have different cards. */
#include "fit_apart.h"

#include "core/place/assign.h"
#include "core/place/card_check.h"
#include "core/state/overlay.h"

/* The node without its pods. */
static void fit_apart_empty(struct overlay *ret, const struct node *n, const struct evaluation *e)
{
    overlay_init(ret, n);
    evaluation_count_steps(e, n->n_pods);
    for (const struct pod *p = n->pods; p != NULL; p = p->next) {
        if (!n->vacated || !p->deleting)
            overlay_remove(ret, p);
    }
}

enum verdict fit_place_apart(const struct card_choice *choice, const struct swap *swap,
                             enum verdict together, struct placement *ret)
{
    const struct node *n = choice->node;
    const struct evaluation *e = choice->evaluation;
    const struct swap any = {.cards = SWAP_ANY};
    struct share none = {.mem = 0};
    struct card_set fits _uninitialized_;
    enum verdict apart = card_check_all(n, e, &none, &any, &fits);
    if (apart == VERDICT_FITS && assign_place(choice, &fits, ret))
        return swap_allows_all(swap, ret) ? VERDICT_FITS : VERDICT_SWAP;
    if (apart == VERDICT_QUOTA || apart == VERDICT_QUOTA_DENIED)
        return apart;
    if (together != VERDICT_TOO_LARGE)
        return together;
    /* Too large for one card. Check on an empty node whether several cards could hold the pod. */
    struct overlay d _uninitialized_;
    struct placement there _uninitialized_;
    fit_apart_empty(&d, n, e);
    const struct card_choice empty = {.node = &d.node, .evaluation = e, .policy = choice->policy};
    return card_check_all(&d.node, e, &none, &any, &fits) == VERDICT_FITS &&
                   assign_place(&empty, &fits, &there)
               ? VERDICT_NO_CARD_FREE
               : together;
}

/* The cards that each container could have if it were alone. */
static enum verdict fit_apart_evaluate_by_container(const struct node *n,
                                                    const struct evaluation *e,
                                                    const struct swap *swap,
                                                    struct card_set *ret_fits)
{
    struct request one _uninitialized_;
    const struct evaluation part = evaluation_part(e, &one);
    enum verdict v = VERDICT_FITS;
    for (uint32_t i = 0; i < e->request->n_demands && v == VERDICT_FITS; i++) {
        request_part(&one, e->request, i);
        struct share share = request_share(&one);
        v = card_check_all(n, &part, &share, swap, &ret_fits[i]);
    }
    return v;
}

/* Why the containers do not fit together, although each has room alone. A search without the quota
 * shows whether the quota is the reason. A search on the empty node shows whether they could ever
 * fit there. */
static enum verdict fit_apart_why_not_by_container(const struct card_choice *choice,
                                                   const struct card_set *own)
{
    struct overlay d _uninitialized_;
    struct placement there _uninitialized_;
    struct card_set fits[REQUEST_DEMANDS_MAX] _uninitialized_;
    struct evaluation e = *choice->evaluation;
    const struct swap any = {.cards = SWAP_ANY};
    const struct card_choice free = {
        .node = choice->node, .evaluation = &e, .policy = choice->policy};
    const struct card_choice empty = {.node = &d.node, .evaluation = &e, .policy = choice->policy};
    e.account.entry = NULL;
    if (choice->evaluation->account.entry != NULL && assign_place(&free, own, &there))
        return VERDICT_QUOTA;
    fit_apart_empty(&d, choice->node, &e);
    return fit_apart_evaluate_by_container(&d.node, &e, &any, fits) == VERDICT_FITS &&
                   assign_place(&empty, fits, &there)
               ? VERDICT_NO_CARD_FREE
               : VERDICT_TOO_FEW;
}

enum verdict fit_place_by_container(const struct card_choice *choice, const struct swap *swap,
                                    struct placement *ret)
{
    struct card_set fits[REQUEST_DEMANDS_MAX] _uninitialized_;
    const struct node *n = choice->node;
    enum verdict v = fit_apart_evaluate_by_container(n, choice->evaluation, swap, fits);
    if (v != VERDICT_FITS)
        return v;
    if (!assign_place(choice, fits, ret))
        return fit_apart_why_not_by_container(choice, fits);
    return card_check_placement(n, choice->evaluation->request, ret);
}
