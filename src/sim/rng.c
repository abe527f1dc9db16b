/* Random numbers by seed. */
#include "sim/rng.h"

#include <math.h>

static uint64_t rng_mix(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

void rng_init(struct rng *r, uint64_t seed, enum rng_stream stream)
{
    uint64_t state = seed;
    uint64_t apart = rng_mix(&state) + (uint64_t)stream;
    for (size_t i = 0; i < COUNT_OF(r->state); i++)
        r->state[i] = rng_mix(&apart);
}

static uint64_t rng_turn(uint64_t x, unsigned by)
{
    return x << by | x >> (64 - by);
}

uint64_t rng_next(struct rng *r)
{
    uint64_t *s = r->state;
    uint64_t ret = rng_turn(s[1] * 5, 7) * 9;
    uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rng_turn(s[3], 45);
    return ret;
}

/* Lemire: the high half of a product; the few products that would favour a number are drawn
 * again. */
uint32_t rng_below(struct rng *r, uint32_t n)
{
    assert(n > 0);
    uint32_t uneven = -n % n;
    for (;;) {
        uint64_t product = (rng_next(r) >> 32) * n;
        if ((uint32_t)product >= uneven)
            return (uint32_t)(product >> 32);
    }
}

double rng_unit(struct rng *r)
{
    return (double)((rng_next(r) >> 11) + 1) * 0x1p-53;
}

double rng_exponential(struct rng *r, double mean)
{
    return -mean * log(rng_unit(r));
}

void rng_shuffle(struct rng *r, uint32_t *items, uint32_t n)
{
    for (uint32_t i = n; i > 1; i--) {
        uint32_t j = rng_below(r, i);
        uint32_t x = items[i - 1];
        items[i - 1] = items[j];
        items[j] = x;
    }
}
