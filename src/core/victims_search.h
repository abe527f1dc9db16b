/* Which of a pool of pods can stay, for victims.c. */
#pragma once

#include "victims.h"

/* One that may have to go. */
struct victim {
    const struct pod *pod; /* the cache's */
    struct pod *copy;      /* in the draft's list while it stays */
    struct budget_pod budget;
    uint32_t rank; /* by card and name */
    bool guarded;  /* there is a budget about it */
    bool violates; /* one that would not stand its going alone */
    bool twin;     /* not to be told from the one before it */
    bool goes;     /* in the set that is tried */
    bool best;     /* in the best so far */
    bool pooled;   /* of one of the cards that are the cheapest */
};

struct search {
    const struct victims_question *q;
    struct draft draft;
    struct budget_pod *given; /* those of q->given that are there, with their labels */
    uint32_t n_given;
    struct victim *all; /* the most important first */
    uint32_t n_all;
    struct victim **pool; /* of those, in the same order: room for all */
    uint32_t n;
    int64_t card;   /* room is asked for on this one; -1: as policy_place says */
    uint32_t level; /* so many of the pool are decided; the others are out of the draft */
    unsigned tries; /* left for this pool */
    bool found;
    struct victims_cost best;
};

void search_take(struct search *s, struct victim *v);
void search_give_back(struct search *s, struct victim *v);
bool search_fits(const struct search *s);

/* Marks the best of the pool's sets as `best`, if it beats what was found before. The draft is what
 * it was. */
void search_run(struct search *s);

/* Gives back what the best set does not need. */
void search_trim(struct search *s);
