/* The processes of one card with their memory, and its load, by NVML. For the thread: the calls
 * block. */
#pragma once

#include "gpu/nvml.h"

struct gpu_usage {
    struct nvml_process *processes; /* owned; room for LIMIT_GPU_PROCESSES */
    size_t n;
    bool mps_known; /* NVML has reported which of them are clients of MPS */
    bool cut;       /* there are more than LIMIT_GPU_PROCESSES; n is 0 */
    uint64_t used_bytes;
    uint64_t total_bytes;
    uint32_t busy_percent;
};

/* Fills processes and what follows it; NVML_OK or an error of the list of processes. Of the other
 * calls that fail the value stays as it was. */
int gpu_measure(const struct nvml *n, struct nvml_device *d, struct gpu_usage *u);
