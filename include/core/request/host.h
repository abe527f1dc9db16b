/* CPU and memory of a node's host, beside its cards: what a node has, and what pods request. Only
 * costs depend on it. kube-scheduler has compared the requests with the node before it asks an
 * extender. */
#pragma once

#include "base/macro.h"

struct host {
    int64_t cpu;    /* in thousandths of a core */
    int64_t memory; /* in bytes */
};

/* The most that is charged for one pod: 2^40 is a billion cores, 2^46 bytes are 64 TiB. No node has
 * as much. */
#define HOST_CPU_MAX    ((int64_t)1 << 40)
#define HOST_MEMORY_MAX ((int64_t)1 << 46)

/* An amount of a node that is unknown: no limit. */
#define HOST_UNKNOWN INT64_MAX

/* Amounts below 0 become 0. A sum of two results cannot overflow. */
static inline struct host host_clamp(struct host h)
{
    return (struct host){
        .cpu = MIN_OF(MAX_OF(h.cpu, (int64_t)0), HOST_CPU_MAX),
        .memory = MIN_OF(MAX_OF(h.memory, (int64_t)0), HOST_MEMORY_MAX),
    };
}

static inline bool host_equal(struct host a, struct host b)
{
    return a.cpu == b.cpu && a.memory == b.memory;
}

static inline bool host_is_zero(struct host h)
{
    return h.cpu == 0 && h.memory == 0;
}

/* a + b for amounts that are not negative; HOST_UNKNOWN plus anything is HOST_UNKNOWN. */
static inline int64_t host_amount_add(int64_t a, int64_t b)
{
    int64_t sum = 0;
    return __builtin_add_overflow(a, b, &sum) ? HOST_UNKNOWN : sum;
}

/* a - b, at least 0; HOST_UNKNOWN stays HOST_UNKNOWN. */
static inline int64_t host_amount_sub(int64_t a, int64_t b)
{
    if (a == HOST_UNKNOWN)
        return HOST_UNKNOWN;
    return b >= a ? 0 : a - b;
}

static inline struct host host_add(struct host a, struct host b)
{
    return (struct host){host_amount_add(a.cpu, b.cpu), host_amount_add(a.memory, b.memory)};
}

static inline struct host host_sub(struct host a, struct host b)
{
    return (struct host){host_amount_sub(a.cpu, b.cpu), host_amount_sub(a.memory, b.memory)};
}

/*
 * Adds h to a node's sum, or takes it away (sign -1). The sum wraps around instead of saturating:
 * each charge is then taken away exactly, whatever was charged in between. A node needs 2^17 pods
 * of HOST_MEMORY_MAX before its sum wraps, and then reads as below 0.
 */
static inline void host_charge(struct host *sum, struct host h, int sign)
{
    uint64_t cpu = (uint64_t)h.cpu;
    uint64_t memory = (uint64_t)h.memory;
    sum->cpu = (int64_t)((uint64_t)sum->cpu + (sign > 0 ? cpu : 0 - cpu));
    sum->memory = (int64_t)((uint64_t)sum->memory + (sign > 0 ? memory : 0 - memory));
}
