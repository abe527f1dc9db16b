/*
 * The best of many by score, and how far each is from the best. The order is total: what the same
 * things score is all that counts, not in which order they come.
 */
#pragma once

#include "str.h"

struct rank_entry {
    uint64_t score;  /* higher is better */
    struct str name; /* of equal scores the lower name is better, by str_cmp; borrowed */
    size_t i;        /* and of equal names the lower number */
};

/* The best `max` of those offered, at entries[0..n) in no order. */
struct rank {
    struct rank_entry *entries; /* borrowed: room for max of them */
    size_t max;                 /* 1 at least */
    size_t n;
};

/* Whether it is behind all that are kept, and they are `max`: rank_offer would change nothing. */
static inline bool rank_is_below(const struct rank *r, uint64_t score, struct str name)
{
    const struct rank_entry *worst = r->entries;
    return r->n == r->max &&
           (score < worst->score || (score == worst->score && str_cmp(name, worst->name) > 0));
}

/* O(log max). */
void rank_offer(struct rank *r, struct rank_entry e);

/* The RANK_LEVELS best distinct scores, the best first. */
#define RANK_LEVELS 10

struct rank_levels {
    uint64_t scores[RANK_LEVELS];
    unsigned n;
};

void rank_levels_add(struct rank_levels *l, uint64_t score);

/* RANK_LEVELS for the best score, one less for the next, ...; 0 for one that is not among them. */
unsigned rank_level(const struct rank_levels *l, uint64_t score);
