/*
 * Remembers the verdicts and scores of judge(): a row for each shape of request that was asked,
 * with an entry for each node. An entry holds as long as its node has the same version. What a
 * verdict depends on beside the node and the request is the scene; in another scene a row begins
 * again. So a request of a known shape evaluates only nodes that have changed.
 *
 * It also remembers which node's name follows which: kube-scheduler names the nodes in nearly the
 * same order each time, and a comparison with the expected name is cheaper than a look-up.
 *
 * Not remembered: a node that keeps room for the request's own pod, and an evaluation whose search
 * had no steps left, because its answer depends on the other nodes of the request.
 *
 * A failed allocation only means that less is remembered.
 */
#pragma once

#include "core/cache.h"
#include "core/lack.h"
#include "core/score.h"

/* What a row's entries depend on, beside their node, the request, and the cache's settings, which
 * never change. */
struct judge_scene {
    uint64_t quota;     /* version of the namespace's account; 0: no limits */
    uint64_t lesson;    /* of the policies */
    bool affinity_held; /* see request */
};

/* What nodes of one row have in common: number 0 is that the request fits. */
struct judge_outcome {
    enum verdict verdict;
    struct lack lack; /* without the figure that each node has of its own */
    struct quota_refusal refusal;
    struct str text; /* of the refusal; absent: no quota refuses the node */
    char *owned;     /* the bytes of all strings above; or NULL */
};

#define JUDGE_OUTCOMES_MAX 128
#define JUDGE_ROWS         64

struct judge_entry {
    uint64_t key; /* version of the node, and the number of the outcome; 0: nothing is known */
    /* Of a feasible node: its score, or SCORE_NONE if it was not asked for. Of another one: the
     * free memory that its reason shows. */
    uint64_t figure;
};

struct judge_row {
    struct request *request; /* owned */
    uint64_t hash;           /* of the request */
    uint64_t asked;          /* judge_memo.asked at the last use */
    struct judge_scene scene;
    struct judge_entry *entries; /* by judge_slot.place; the first one stays empty; owned */
    uint32_t n_entries;
    struct judge_outcome *outcomes; /* owned */
    uint32_t n_outcomes;
    uint32_t cap_outcomes;
    size_t bytes;
    bool unused; /* all entries are empty */
    /* The cache as it was when all entries of changed nodes were forgotten. */
    uint64_t stamps;
    uint64_t members;
};

/* The nodes of a list of names that the codec remembers. */
struct judge_list {
    uint64_t id;      /* name_list.id; 0: empty */
    uint64_t asked;   /* judge_memo.lists_asked at the last use */
    uint64_t members; /* of the cache, when the names were looked up */
    uint32_t *slots;  /* by position: of the node; UINT32_MAX: no such node; owned */
    uint32_t *places; /* by position: of the node; 0: no such node; owned, behind the slots */
    size_t n;
    size_t cap;   /* of each of the two */
    bool repeats; /* it names a node twice */
};

#define JUDGE_LISTS 4

struct judge_slot {
    uint32_t next; /* one more than the slot of the name that followed in an earlier request */
    uint32_t seen; /* number of the request that last counted the node's refusal */
    /* The node's entry in each row, or 0 until there is one. Nodes get their places in the order of
     * the first list that names them: later lists then read the entries mostly in that order. */
    uint32_t place;
};

/* Zeros are an empty memo. */
struct judge_memo {
    struct judge_row *rows[JUDGE_ROWS];
    unsigned n_rows;
    uint64_t asked; /* requests for a row so far */
    size_t bytes;   /* of all rows */

    struct judge_slot *slots; /* by node.slot; owned */
    uint32_t n_slots;
    uint32_t places;  /* how many were given */
    uint32_t request; /* number of the present request */
    uint32_t first;   /* the same for the first name of a request */
    uint32_t last;    /* one more than the slot of the name before; 0: there is none */
    struct judge_list lists[JUDGE_LISTS];
    uint64_t lists_asked;
    unsigned wrong; /* guesses of this request that were wrong, less those that were right */
};

void judge_memo_done(struct judge_memo *m);

/* The row of the request's shape in this scene. NULL: no memory, or the cluster is too large. Valid
 * until the next call. */
struct judge_row *judge_memo_row(struct judge_memo *m, const struct cache *c,
                                 const struct request *r, const struct judge_scene *scene);

/* Forgets what the row knows of nodes that have changed. Then an entry with a key is that of the
 * node as it is now, until the cache changes. */
void judge_row_sync(const struct judge_memo *m, struct judge_row *row, const struct cache *c);

/* The nodes of a list of names, by position. NULL: no memory. Valid until the next call. */
const struct judge_list *judge_memo_list(struct judge_memo *m, const struct cache *c, uint64_t id,
                                         const struct str *names, size_t n);

/* The entry of a node as it is now; NULL: nothing is known. */
static inline const struct judge_entry *
judge_row_get(const struct judge_memo *m, const struct judge_row *row, const struct node *n)
{
    uint32_t place = m->slots[n->slot].place;
    const struct judge_entry *e = &row->entries[place];
    return place < row->n_entries && e->key >> 16 == n->version ? e : NULL;
}

/* The number of the entry's outcome. */
static inline uint32_t judge_entry_outcome(const struct judge_entry *e)
{
    return (uint32_t)(e->key & UINT16_MAX);
}

/* Remembers that the node is feasible. NULL: it can't be remembered. */
const struct judge_entry *judge_row_fits(struct judge_memo *m, struct judge_row *row,
                                         const struct node *n, uint64_t score);

/* Remembers that the node is refused with v. lack: what lack_add makes of this node alone. NULL: it
 * can't be remembered. */
const struct judge_entry *judge_row_refuses(struct judge_memo *m, struct judge_row *row,
                                            const struct node *n, const struct request *r,
                                            enum verdict v, const struct lack *lack);

/* The same with the outcome of another node that had the same refusal but for this figure. */
const struct judge_entry *judge_row_refuses_again(struct judge_memo *m, struct judge_row *row,
                                                  const struct node *n, uint32_t outcome,
                                                  uint64_t figure);

/* Adds the outcome of `times` nodes to the sum of its verdict. figure: the highest one of them. */
void judge_outcome_add(const struct judge_outcome *o, uint64_t times, uint64_t figure,
                       struct lack *sum);

/* Whether this is the first time that the request counts the node's refusal. */
static inline bool judge_memo_sees(struct judge_memo *m, const struct node *n)
{
    uint32_t *seen = &m->slots[n->slot].seen;
    bool first = *seen != m->request;
    *seen = m->request;
    return first;
}

/* Another request begins. False: no memory; the memo can't be used for it. */
bool judge_memo_begin(struct judge_memo *m, const struct cache *c);

/* cache_nodes_each, for names that come in the order of earlier requests. */
void judge_memo_nodes(struct judge_memo *m, const struct cache *c, const struct str *names,
                      size_t n, const struct node **ret);
