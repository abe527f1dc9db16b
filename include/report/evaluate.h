/* Evaluates each candidate of a request for its pod: used by filter and prioritize. */
#pragma once

#include "core/cache/cache.h"
#include "core/place/score.h"
#include "core/place/shortfall.h"
#include "core/request/request.h"
#include "core/request/verdict.h"
#include "extender/extender.h"
#include "report/evaluation_memo.h"

/* Nodes that were expensive to evaluate: at which candidate each was first evaluated. */
struct evaluated_nodes {
    const struct node **nodes; /* by candidate number; NULL: no such node yet */
    uint32_t *table;           /* by hash of the node: candidate number plus one, or 0 */
    size_t mask;
};

/* The candidates of one request, and what was found of each. It must not move: its evaluation
 * points to its request. */
struct candidates {
    struct request request;
    struct evaluation evaluation;
    struct err bad_request;         /* code OK: the pod's request is valid */
    unsigned char *verdicts;        /* enum verdict of each candidate; in the caller's arena */
    unsigned counts[VERDICT_COUNT]; /* number of candidates with each verdict */
    struct shortfall
        *shortfalls; /* by verdict; in the caller's arena. NULL: no node refuses the pod */
    const struct node *denied; /* the first node that a quota refuses; or NULL */
    enum verdict denial;       /* of that node */
    uint64_t *scores; /* of each candidate; SCORE_NONE: not feasible, or all nodes are equal */
    struct evaluated_nodes evaluated;
    const struct evaluation_row *row; /* of the memo; or NULL */
    unsigned char *refusals; /* by candidate: number of the row's outcome with a quota's refusal, or
                                0; NULL: there is none */
};

/*
 * Changes nothing in the cache. memo: what earlier calls for this cache found, and gets what this
 * one finds; NULL: nothing is remembered. The result is the same with and without, unless a search
 * for cards has no steps left; *j is valid until the memo's next use. Without `scored`
 * scores stays NULL. For a pod that requests no card all scores are SCORE_NONE: cardpack does not
 * rank nodes for it. ERR_NOMEM: no memory. ERR_LIMIT: the answer does not fit, or needs more steps
 * than *step_budget allows; *reterr says which, and *j is of no use. A node that is named twice is
 * evaluated once.
 */
enum errc evaluate(const struct cache *cache, struct evaluation_memo *memo,
                   struct step_budget *step_budget, const struct filter_args *args, struct arena *a,
                   bool scored, struct candidates *j, struct err *reterr) _must_use_;

/* The text of a quota's refusal of candidate i, if the memo has it; else absent. */
struct str evaluate_refusal(const struct candidates *j, size_t i);

/* The first candidate number at which node n was evaluated, for an expensive node. i: n was not
 * evaluated before, or is cheap to evaluate again. */
size_t evaluate_first(const struct candidates *j, const struct node *n, size_t i);
