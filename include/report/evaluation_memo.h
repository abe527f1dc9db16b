/*
 * Remembers the verdicts and scores of evaluate(): a row for each shape of request that was asked,
 * with an entry for each node. An entry holds as long as its node has the same version. What a
 * verdict depends on beside the node and the request is the scene; in another scene a row begins
 * again. So a request of a known shape evaluates only nodes that have changed.
 *
 * Not remembered: a node that keeps room for the request's own pod, and an evaluation whose search
 * had no steps left, because its answer depends on the other nodes of the request.
 *
 * A failed allocation only means that less is remembered.
 */
#pragma once

#include "core/cache/cache.h"
#include "core/place/score.h"
#include "core/place/shortfall.h"

/* What a row's entries depend on, beside their node, the request, and the cache's settings, which
 * never change. */
struct evaluation_scene {
    uint64_t quota;     /* version of the namespace's account; 0: no limits */
    uint64_t lesson;    /* of the policies */
    bool affinity_held; /* see struct evaluation */
};

/* What nodes of one row have in common: number 0 is that the request fits. */
struct evaluation_outcome {
    enum verdict verdict;
    struct shortfall shortfall; /* without the figure that each node has of its own */
    struct quota_refusal refusal;
    struct str text; /* of the refusal; absent: no quota refuses the node */
    char *owned;     /* the bytes of all strings above; or NULL */
};

#define EVALUATION_OUTCOMES_MAX 128
#define EVALUATION_ROWS         64

struct evaluation_entry {
    uint64_t key; /* version of the node, and the number of the outcome; 0: nothing is known */
    /* Of a feasible node: its score, or SCORE_NONE if it was not asked for. Of another one: the
     * free memory that its reason shows. */
    uint64_t figure;
};

struct evaluation_row {
    struct request *request; /* owned */
    uint64_t hash;           /* of the request */
    uint64_t asked;          /* evaluation_memo.asked at the last use */
    struct evaluation_scene scene;
    struct evaluation_entry *entries; /* by node.slot; owned */
    uint32_t n_entries;
    struct evaluation_outcome *outcomes; /* owned */
    uint32_t n_outcomes;
    uint32_t cap_outcomes;
    size_t bytes;
};

/* Zeros are an empty memo. */
struct evaluation_memo {
    struct evaluation_row *rows[EVALUATION_ROWS];
    unsigned n_rows;
    uint64_t asked; /* requests for a row so far */
    size_t bytes;   /* of all rows */

    uint32_t *seen; /* by node.slot: the request that last counted the node's refusal; owned */
    uint32_t n_seen;
    uint32_t request; /* number of the present request */
};

void evaluation_memo_done(struct evaluation_memo *m);

/* The row of the request's shape in this scene. NULL: no memory, or the cluster is too large. Valid
 * until the next call. */
struct evaluation_row *evaluation_memo_row(struct evaluation_memo *m, const struct cache *c,
                                           const struct request *r,
                                           const struct evaluation_scene *scene);

/* The entry of a node as it is now; NULL: nothing is known. */
static inline const struct evaluation_entry *evaluate_row_get(const struct evaluation_row *row,
                                                              const struct node *n)
{
    const struct evaluation_entry *e = &row->entries[n->slot];
    return n->slot < row->n_entries && e->key >> 16 == n->version ? e : NULL;
}

/* The number of the entry's outcome. */
static inline uint32_t evaluate_entry_outcome(const struct evaluation_entry *e)
{
    return (uint32_t)(e->key & UINT16_MAX);
}

/* Remembers that the node is feasible. NULL: it can't be remembered. */
const struct evaluation_entry *evaluate_row_fits(struct evaluation_row *row, const struct node *n,
                                                 uint64_t score);

/* Remembers that the node is refused with v. shortfall: what shortfall_add makes of this node
 * alone. NULL: it can't be remembered. */
const struct evaluation_entry *
evaluate_row_refuses(struct evaluation_memo *m, struct evaluation_row *row, const struct node *n,
                     const struct evaluation *e, enum verdict v, const struct shortfall *shortfall);

/* The same with the outcome of another node that had the same refusal but for this figure. */
const struct evaluation_entry *evaluate_row_refuses_again(struct evaluation_row *row,
                                                          const struct node *n, uint32_t outcome,
                                                          uint64_t figure);

/* Adds the outcome of `times` nodes to the sum of its verdict. figure: the highest one of them. */
void evaluate_outcome_add(const struct evaluation_outcome *o, uint64_t times, uint64_t figure,
                          struct shortfall *sum);

/* Whether this is the first time that the request counts the node's refusal. */
static inline bool evaluation_memo_sees(struct evaluation_memo *m, const struct node *n)
{
    bool first = m->seen[n->slot] != m->request;
    m->seen[n->slot] = m->request;
    return first;
}

/* Another request begins. False: no memory; the memo can't be used for it. */
bool evaluation_memo_begin(struct evaluation_memo *m, const struct cache *c);
