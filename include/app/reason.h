/* What one card lacks for a pod, in words and figures: for bind's refusals and for explain. */
#pragma once

#include "policy.h"

/* Who reads it: a pod's event is read in its namespace, and names no pods of others. */
enum reason_reader {
    REASON_FOR_ALL,
    REASON_FOR_NAMESPACE,
};

/*
 * policy_card, with what is kept for others (`kept`, or NULL where nothing is), and of containers
 * that may part what stops the one that comes nearest. VERDICT_FITS: it takes all of the pod's
 * part.
 */
enum verdict reason_judge(const struct node *n, const struct node *kept, const struct request *r,
                          uint32_t card);

/*
 * Why card `card` of n is no card for r, or that it is: "4 of 16 free, 8 asked", "holds 3 pods",
 * "is cordoned", "is a Tesla T4". v is reason_judge's verdict of it.
 */
void reason_card(struct buf *out, const struct node *n, const struct node *kept,
                 const struct request *r, uint32_t card, enum verdict v, enum reason_reader reader);

/* All cards of a node in a line, for the pod's namespace, as long as it fits into out:
 * "; card 0: 4 of 16 free, 8 asked; card 1: ..." */
void reason_cards(struct buf *out, const struct node *n, const struct request *r);

/* Why n, of which only the name may be known, can't hold r: verdict_reason, and of a quota how much
 * is used of what. Into scratch, or a constant. */
struct str reason_node(struct buf *scratch, struct str name, const struct node *n,
                       const struct request *r, enum verdict v);

/* What is asked for, in a few words: "8 on each of 2 cards, 30% of the compute". */
void reason_request(struct buf *out, const struct request *r);
