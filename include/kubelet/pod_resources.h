/*
 * The answer to List of the kubelet's pod resources API, v1: which devices each container has. The
 * request is an empty message. Pods have no UID here, and plain init containers are left out.
 */
#pragma once

#include "kubelet/pb.h"

#define POD_RESOURCES_LIST "/v1.PodResourcesLister/List"

struct pod_devices {
    struct str resource;   /* the same one may occur several times, once for each NUMA node */
    const struct str *ids; /* from the arena */
    size_t n_ids;
};

struct pod_container {
    struct str name;
    const struct pod_devices *devices;
    size_t n_devices;
};

struct pod_entry {
    struct str namespace;
    struct str name;
    const struct pod_container *containers;
    size_t n_containers;
};

struct pod_resources {
    const struct pod_entry *pods;
    size_t n_pods;
};

/* Views point into the bytes, arrays are from the arena. */
enum errc pod_resources_read(struct str bytes, struct arena *a, struct pod_resources *ret,
                             struct err *reterr) _must_use_;
