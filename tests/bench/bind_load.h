/*
 * Keeps a number of Bindings under way: each on its own kept connection, the next one sent when the
 * previous one has its answer. They go to the extender, or directly to the API server.
 */
#pragma once

#include "bench.h"

#define LOAD_MAX 512

struct load {
    uint16_t port;
    bool direct; /* `port` is the API server's */
    unsigned in_flight;
    uint64_t first_pod; /* and the n - 1 after it */
    uint64_t n;
    uint64_t nodes; /* pod i goes to node i % nodes */

    double took_s; /* result, in seconds */
    double p50_ms;
    double p99_ms;
};

/* A failed bind ends the benchmark. */
void load_run(struct load *l);
