/*
 * The pod of a file: a Pod, or the template of what makes pods (Deployment, StatefulSet,
 * DaemonSet, ReplicaSet, ReplicationController, Job, CronJob, PodTemplate). Other objects may stand
 * beside it in the file; two that make pods are one too many.
 */
#pragma once

#include "arena.h"

struct kubectl_pod {
    struct str json; /* with a namespace; these are the arena's */
    struct str kind; /* "Pod" where the object does not say it */
    struct str name; /* of the object; absent: it has none */
    struct str namespace;
    uint32_t replicas; /* that the object asks for; 1 where it does not say */
};

/*
 * `path` is for errors. `asked` is -n's namespace, which the object must not contradict; absent:
 * none. `fallback` is the one for an object without.
 */
enum errc kubectl_pod_read(struct str text, struct str path, struct str asked, struct str fallback,
                           struct arena *a, struct kubectl_pod *ret, struct err *reterr) _must_use_;
