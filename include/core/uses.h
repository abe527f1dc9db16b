/*
 * What pods hold on a node, in the words of quotas: so much memory, cards and compute of a model
 * in a pool.
 */
#pragma once

#include "node.h"
#include "verdict.h"

/* A share for each grant at most, and the cards of another plugin. */
#define USES_MAX (REQUEST_GRANTS_MAX + 1)

/*
 * Of a pod that holds these shares of n: one for each, as of no model where n has no such card; of
 * all that it asks for, where it has no share; and one for the cards that another plugin gives it,
 * as of the model that the node's label says. Returns how many, USES_MAX at most.
 */
uint32_t uses_of(const struct node *n, const struct request *r, const struct share *shares,
                 uint32_t n_shares, struct quota_use *ret);

/* To its namespace, what p holds on its node; sign is 1 or -1. */
void uses_charge(const struct pod *p, int sign);

/*
 * What was answered so far for one request, which points to it: most nodes are of a few pools and
 * models, and a namespace may have as many limits as LIMIT_QUOTA_SCOPES. Starts as zeros; holds
 * until the cache changes.
 */
struct uses_memo {
    uint32_t n;

    struct {
        struct quota_use use;
        enum verdict verdict;
        struct quota_refusal refusal;
    } answers[32];
};

/*
 * Whether the quota allows the request that card of n: FITS, QUOTA or QUOTA_DENIED, the latter two
 * with a refusal. Of several cards, as if all were like this one, so that the answer is the same
 * for all cards of a model and a size, and those that are allowed one by one are so together. A
 * request for no shared card has no card: any number will do.
 */
enum verdict uses_judge(const struct node *n, const struct request *r, uint32_t card,
                        struct quota_refusal *ret);

/* The same of a placement as a whole. */
bool uses_allow(const struct node *n, const struct request *r, const struct share *shares,
                uint32_t n_shares);
