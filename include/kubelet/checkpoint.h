/*
 * The kubelet's file kubelet_internal_checkpoint in its folder of device plugins: which devices
 * each container has, with the pod's UID, init containers included. The kubelet writes it before it
 * calls PreStartContainer.
 */
#pragma once

#include "json/jread.h"

#define CHECKPOINT_FILE "kubelet_internal_checkpoint"

struct checkpoint_entry {
    struct str pod_uid;
    struct str container;
    struct str resource;
    const struct str *ids; /* of all NUMA nodes, in the file's order; from the arena */
    size_t n_ids;
    struct str answer; /* our answer to Allocate, in base64: see allocate_answer_env; or absent */
};

struct checkpoint {
    const struct checkpoint_entry *entries;
    size_t n_entries;
};

/*
 * Views point into the text, or into the arena if they contained an escape. DeviceIDs is an object
 * of lists by NUMA node, or a plain list (older kubelets). The checksum is not verified. ERR_SYNTAX
 * also for a text without Data.
 */
enum errc checkpoint_read(struct str json, struct arena *a, struct checkpoint *ret,
                          struct err *reterr) _must_use_;
