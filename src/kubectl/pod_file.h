/*
 * Reads the pod of a file: a Pod, or the pod template of a Deployment, StatefulSet, DaemonSet,
 * ReplicaSet, ReplicationController, Job, CronJob or PodTemplate. The file may contain other
 * objects, as documents or in a List, but exactly one of these kinds.
 */
#pragma once

#include "base/arena.h"

struct kubectl_pod {
    struct str json;      /* with a namespace; all strings are in the arena */
    struct str kind;      /* "Pod" if the object has none */
    struct str name;      /* of the object; absent: none */
    struct str namespace; /* absent: neither the object nor the command line has one */
    uint32_t replicas;    /* from the object's spec; 1 if it has none */
};

/*
 * `path` is for errors. `asked` is the namespace of -n, absent: none; an object with another
 * namespace is an error, and an object without one gets it.
 */
enum errc kubectl_pod_read(struct str text, struct str path, struct str asked, struct arena *a,
                           struct kubectl_pod *ret, struct err *reterr) _must_use_;
