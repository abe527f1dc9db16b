/*
 * Random numbers that are the same for a seed on every machine: xoshiro256** 1.0 (Blackman and
 * Vigna), its state filled by SplitMix64. A run draws from several streams, so that a policy which
 * draws more numbers does not change which pods arrive.
 */
#pragma once

#include "base/macro.h"

enum rng_stream {
    RNG_ARRIVALS, /* which pods arrive, in which order, and when */
    RNG_NODES,    /* the order of nodes, and ties */
};

struct rng {
    uint64_t state[4];
};

void rng_init(struct rng *r, uint64_t seed, enum rng_stream stream);

uint64_t rng_next(struct rng *r);

/* Each number from 0 to n - 1 with the same probability; n > 0. */
uint32_t rng_below(struct rng *r, uint32_t n);

/* Above 0, at most 1. */
double rng_unit(struct rng *r);

/* Exponentially distributed, with this mean. */
double rng_exponential(struct rng *r, double mean);

/* Fisher-Yates: each order has the same probability. */
void rng_shuffle(struct rng *r, uint32_t *items, uint32_t n);
