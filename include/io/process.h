/* What this process takes of the machine, as Prometheus' own libraries tell it. */
#pragma once

#include "macro.h"

/* Each is -1 where the system does not say. */
struct process_usage {
    int64_t cpu_us;
    int64_t resident_bytes;
    int64_t virtual_bytes;
    int64_t open_fds;
    int64_t max_fds; /* INT64_MAX: no limit */
};

void process_usage_read(struct process_usage *ret);

/* Of its processors' time, by the nanosecond. */
uint64_t process_cpu_ns(void);
