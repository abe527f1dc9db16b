/*
 * So many Bindings under way at any time: each on a connection of its own that is kept, the next
 * one sent when the one before is answered. Asked of the extender, or posted to the API server
 * directly.
 */
#pragma once

#include "bench.h"

#define LOAD_MAX 512

struct load {
    uint16_t port;
    bool direct; /* at `port` is the API server */
    unsigned in_flight;
    uint64_t first_pod; /* and the n - 1 behind it */
    uint64_t n;
    uint64_t nodes; /* pod i goes to node i % nodes */

    double took_s; /* set */
    double p50_ms;
    double p99_ms;
};

/* A bind that does not succeed ends the benchmark. */
void load_run(struct load *l);
