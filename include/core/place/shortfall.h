/*
 * What the cards and nodes that refuse a request have: the figures for the reasons that users read,
 * in filter's answer and on the page. fit.h notes those of one node while it evaluates the node's
 * cards; shortfall_add sums them up over all nodes with one verdict. So the reason is the same for
 * each of them, and kube-scheduler counts it once: "3 Insufficient GPU Memory in one device: asks
 * 12, largest free 10, ...".
 */
#pragma once

#include "core/request/verdict.h"
#include "core/state/node.h"

/* Models that a reason names. */
#define SHORTFALL_MODELS 3

/* Fields that the verdict has no use for are 0. */
struct shortfall {
    bool noted;         /* the cards of a node were evaluated */
    int64_t free;       /* memory: the most that one of the cards with too little has free */
    int64_t largest;    /* memory: the size of the largest of these cards */
    int64_t left;       /* NODE_FULL: the most that the sums of a node leave */
    uint64_t held;      /* HELD_WHOLE: cards */
    uint64_t foes;      /* ANTI_AFFINITY: cards */
    uint64_t named;     /* UUID: cards with another uuid */
    uint64_t unnamed;   /* MODEL, UUID: cards of no known model, or uuid */
    uint64_t unhealthy; /* UNUSABLE: cards */
    uint64_t cordoned;
    uint64_t aside;
    uint64_t claimed;   /* CLAIMED: cards */
    uint64_t pods;      /* KEPT: for which the room is kept; SHARED: that share cards */
    uint64_t exclusive; /* EXCLUSIVE: cards that pods hold from another device plugin */
    uint32_t cores;     /* NO_CORES: the most that one of the cards with too little has free */
    uint32_t max_pods;  /* POD_LIMIT: the highest limit of a node */
    uint32_t fit;       /* the most feasible cards of a node */
    uint32_t could;     /* TOO_FEW: the most cards of a node that are of the right kind */
    bool more_models;   /* MODEL: there are more than SHORTFALL_MODELS */
    uint32_t n_models;  /* MODEL */
    struct str models[SHORTFALL_MODELS]; /* in the order of names; borrowed from the nodes: valid
                                       until the cache changes */
};

/* Of a node whose cards are being evaluated: card i has verdict v. */
void shortfall_card(struct shortfall *s, const struct node *n, uint32_t i, enum verdict v);

/* Adds node n, which refuses a request with v, to the sum. `one`: what was noted of its cards, if
 * they were evaluated, and of the room that is kept there; may be NULL. */
void shortfall_add(struct shortfall *sum, const struct node *n, enum verdict v,
                   const struct shortfall *one);

/* Adds `one`, which shortfall_add made of one node, for as many nodes as `times`. */
void shortfall_merge(struct shortfall *sum, const struct shortfall *one, uint64_t times);

/* Whether both have the same figures. */
bool shortfall_equal(const struct shortfall *a, const struct shortfall *b);

/* The sum for the sentence of v. sums: by verdict. TOO_LARGE and NO_CARD_FREE have the same
 * sentence, and so one sum of both; the page, which shows them apart, reads sums itself. */
struct shortfall shortfall_of_sentence(const struct shortfall sums[static VERDICT_COUNT],
                                       enum verdict v);
