/* The usage of quotas: what pods hold on a node, in the terms of quotas: memory, cards and compute
 * of a model in a pool. */
#pragma once

#include "core/request/verdict.h"
#include "core/state/node.h"

/* At most one share for each grant, plus the cards of another device plugin. */
#define QUOTA_USAGE_MAX (REQUEST_GRANTS_MAX + 1)

/* The uses of a pod that holds these shares of n: one for each share (without a model if n has no
 * such card); without shares, one for its whole request; and one for the cards that another device
 * plugin gives it, with the model of the node's label. Returns how many, at most QUOTA_USAGE_MAX.
 */
uint32_t quota_usage_of(const struct node *n, const struct request *r, const struct share *shares,
                        uint32_t n_shares, struct quota_use *ret);

/* Charges p's namespace with what p holds on its node; sign is 1 or -1. */
void quota_usage_charge(const struct pod *p, int sign);

/* Cached answers for one evaluation, which points to them. Most nodes are of a few pools and
 * models, and a namespace may have LIMIT_QUOTA_SCOPES limits. Starts as zeros; valid until the
 * cache changes. */
struct quota_usage_memo {
    uint32_t n;

    struct {
        struct quota_use use;
        enum verdict verdict;
        struct quota_refusal refusal;
    } answers[32];
};

/*
 * Whether the quota allows the request that card of n: FITS, QUOTA or QUOTA_DENIED; the latter two
 * fill *ret. For several cards it assumes that all are like this one. So the answer is the same for
 * all cards of a model and a size, and cards that are allowed one by one are allowed together. If
 * the request asks for no shared card, `card` is ignored.
 */
enum verdict quota_usage_evaluate(const struct node *n, const struct evaluation *e, uint32_t card,
                                  struct quota_refusal *ret);

/* The same for a complete placement. */
bool quota_usage_is_allowed(const struct node *n, const struct evaluation *e,
                            const struct share *shares, uint32_t n_shares);
