/* Evaluates each candidate of a request for its pod: used by filter and prioritize. */
#pragma once

#include "codec/extender.h"
#include "core/cache.h"
#include "core/lack.h"
#include "core/request.h"
#include "core/score.h"
#include "core/verdict.h"

/* Nodes that were expensive to evaluate: at which candidate each was first evaluated. */
struct judged_nodes {
    const struct node **nodes; /* by candidate number; NULL: no such node yet */
    uint32_t *table;           /* by hash of the node: candidate number plus one, or 0 */
    size_t mask;
};

/* The most that the nodes of a verdict have of what the pod lacks there: the figure of a reason. */
struct judge_most {
    int64_t size;              /* VERDICT_TOO_LARGE: memory of a card */
    int64_t free;              /* VERDICT_NO_CARD_FREE: memory that is free on one card */
    int64_t left;              /* VERDICT_NODE_FULL: memory that a node's sums leave */
    uint32_t cores;            /* VERDICT_NO_CORES: percent of a card's compute that is free */
    const struct node *denied; /* the first node that a quota refuses; or NULL */
    enum verdict denial;       /* of that node */
};

struct judgement {
    struct request request;
    struct err bad_request;         /* code OK: the pod's request is valid */
    unsigned char *verdicts;        /* enum verdict of each candidate; in the caller's arena */
    unsigned counts[VERDICT_COUNT]; /* number of candidates with each verdict */
    struct judge_most most;
    uint64_t *scores; /* of each candidate; SCORE_NONE: not feasible, or all nodes are equal */
    struct judged_nodes judged;
    struct lack *lacks; /* by lack_slot; in the caller's arena. NULL: no node refuses the pod */
};

/*
 * Changes nothing in the cache. Without `scored` scores stays NULL. For a pod that requests no card
 * all scores are SCORE_NONE: cardpack does not rank nodes for it. ERR_NOMEM: no memory. ERR_LIMIT:
 * the answer does not fit, or needs more steps than *work allows; *reterr says which. A node that
 * is named twice is evaluated once.
 */
enum errc judge(const struct cache *cache, struct work *work, const struct filter_args *args,
                struct arena *a, bool scored, struct judgement *ret, struct err *reterr) _must_use_;

/* The first candidate number at which node n was evaluated, for an expensive node. i: n was not
 * evaluated before, or is cheap to evaluate again. */
size_t judge_first(const struct judgement *j, const struct node *n, size_t i);
