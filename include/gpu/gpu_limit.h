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

/*
 * Whether the driver has such limits: NVML_OK, or NVML_NOT_FOUND if the cgroup and those above have
 * none; else NVML's answer. A driver may answer the question for a cgroup without limits as one
 * that has none at all (NVML_NOT_SUPPORTED): then a limit is set and read back in a cgroup of our
 * own below this one, which no process is in. That needs CAP_SYS_ADMIN and a cgroup that can be
 * written.
 */
int gpu_limit_probe(const struct nvml *n, struct nvml_device *d, const char *cgroup);
