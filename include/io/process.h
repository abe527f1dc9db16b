/* Resource usage of this process, with the meaning of Prometheus' own client libraries. */
#pragma once

#include "base/macro.h"

/* -1: the system does not provide the value. */
struct process_usage {
    int64_t cpu_us;
    int64_t resident_bytes;
    int64_t virtual_bytes;
    int64_t open_fds;
    int64_t max_fds; /* INT64_MAX: no limit */
};

void process_usage_read(struct process_usage *ret);

/*
 * File descriptors needed for this many connections; includes those that are open in u before the
 * program opens its own.
 */
uint64_t process_descriptors_for(const struct process_usage *u, unsigned connections);

/* How many of the wanted connections the descriptor limit in u allows. */
unsigned process_connections(const struct process_usage *u, unsigned wanted);

/* CPU time of the process, in nanoseconds. */
uint64_t process_cpu_ns(void);
