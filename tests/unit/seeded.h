/* For seeded tests: random numbers that are the same on every machine, and settings that replay one
 * history. */
#pragma once

#include "unit.h"

/* A random number below `below`; *state is the generator's whole state. */
static inline uint32_t seeded_draw(uint64_t *state, uint32_t below)
{
    *state = *state * 6364136223846793005U + 1442695040888963407U;
    return (uint32_t)((*state >> 33) % below);
}

/* A number from the environment, to replay a failed history. */
static inline uint64_t seeded_setting(const char *name, uint64_t usual)
{
    uint64_t value = usual;
    struct str text = str_of(getenv(name));
    ck_assert_msg(text.p == NULL || str_to_u64(text, UINT64_MAX, &value), "%s is no number", name);
    return value;
}
