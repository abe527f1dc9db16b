/* The best of many entries by score, and how far each is from the best. The order is total: the
 * result depends only on the entries, not on the order in which they are offered. */
#pragma once

#include "base/str.h"

struct rank_entry {
    uint64_t score;  /* higher is better */
    struct str name; /* ties: the lower name by str_cmp is better; borrowed */
    size_t i;        /* ties: the lower number is better */
};

/* The best `max` of the offered entries, at entries[0..n) in no order. */
struct rank {
    struct rank_entry *entries; /* borrowed: room for max of them */
    size_t max;                 /* at least 1 */
    size_t n;
};

/* Whether rank_offer would change nothing: the rank is full, and this entry is worse than all in
 * it. */
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

/* How many of the levels are better. Without a branch for each: scores come in no order. */
static inline unsigned rank_levels_above(const struct rank_levels *l, uint64_t score)
{
    unsigned above = 0;
    for (unsigned i = 0; i < l->n; i++)
        above += l->scores[i] > score ? 1 : 0;
    return above;
}

/* Adds a score that is not among them, with that many better ones. */
void rank_levels_insert(struct rank_levels *l, uint64_t score, unsigned above);

static inline void rank_levels_add(struct rank_levels *l, uint64_t score)
{
    unsigned above = rank_levels_above(l, score);
    if (above < RANK_LEVELS && (above == l->n || l->scores[above] != score))
        rank_levels_insert(l, score, above);
}

/* RANK_LEVELS for the best score, one less for the next, ...; 0 for a score that is not among
 * them. */
static inline unsigned rank_level(const struct rank_levels *l, uint64_t score)
{
    unsigned above = rank_levels_above(l, score);
    bool among = above < l->n && l->scores[above] == score;
    return among ? RANK_LEVELS - above : 0;
}
