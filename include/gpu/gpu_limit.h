/* Reads the driver's limit of memory of one cgroup on one card back, and sets it where it is not
 * as it should be. Every call may block: only the watch's thread makes them. */
#pragma once

#include "gpu/nvml.h"

enum gpu_limit_outcome {
    GPU_LIMIT_UNKNOWN,  /* NVML does not answer, or says nothing of the limit */
    GPU_LIMIT_NO_CARD,  /* NVML does not list the card, or it is lost */
    GPU_LIMIT_NO_GROUP, /* the cgroup's folder is not there */
    GPU_LIMIT_THERE,    /* the limit reads back: what was asked for, or less */
    GPU_LIMIT_SET,      /* it did not; we have set it, and now it reads back */
    GPU_LIMIT_ABSENT,   /* it can't be set, or does not read back after it was set */
};

struct gpu_limit {
    enum gpu_limit_outcome outcome;
    uint64_t bytes;             /* the hard limit as last read; NVML_LIMIT_NONE */
    char why[GPU_REASON_BYTES]; /* unless THERE or SET */
};

/* bytes: the limit that there is to be, soft and hard. */
void gpu_limit_ensure(const struct nvml *n, struct nvml_device *d, const char *cgroup,
                      uint64_t bytes, struct gpu_limit *ret);
