/*
 * A node as it would be: with pods that are not there, or without some that are. For questions; the
 * node itself does not change, and must outlive its draft.
 */
#pragma once

#include "node.h"

struct draft {
    struct node node; /* ask policy.h about this one; nothing is kept on it for anybody */
    struct card cards[LIMIT_CARDS];
};

void draft_init(struct draft *d, const struct node *n);

/* sign 1: it holds these shares too; -1: not any more. */
void draft_charge(struct draft *d, const struct request *r, const struct share *shares, uint32_t n,
                  int sign);

/*
 * For many drafts at a time: a copy of a struct node, whose cards the caller has copied, too. p is
 * one of its pods from now on and lives as long; the node that was copied does not hear of it.
 */
void draft_add(struct node *copy, struct pod *p);

/* One that holds cards of the node holds none. */
void draft_remove(struct draft *d, const struct pod *p);
