/*
 * Which pod and container an Allocate is for. The kubelet names neither: it asks for n devices.
 *
 * What is certain comes first. The kubelet allocates all containers of a pod before the next pod's,
 * and writes its checkpoint before it asks again; so only the first container of each pod is a
 * guess. The guess follows the kubelet: it admits pods as its own watch shows them, in the order of
 * their Bindings, which our watch shows as well. After its start it admits what waits by
 * creationTimestamp, whatever the order of the Bindings was. So pods that waited when it registered
 * us come first, by creation; the others follow in the order in which the watch showed them. Among
 * pods that were created in the same second the card that most of them wait on is the best guess:
 * a confusion of two pods on one card does no harm.
 *
 * A wrong guess is found by the checkpoint, and corrected by exchange.h.
 */
#pragma once

#include "node/roster/roster.h"

struct pod_match {
    struct roster_pod *pod;
    const struct roster_container *container;
    struct card_list cards;
};

struct pod_match_call {
    int64_t n;      /* devices: the container's limit */
    struct str uid; /* the pod is known, because it has some of these devices already; absent: no */
};

/*
 * ERR_NOTFOUND: no pod waits for so much: the watch may show it later. ERR_CONFLICT: such a pod
 * waits, but containers have so much of its card that the card would hold more than its size. The
 * error names what was asked for, and the pod.
 */
enum errc pod_match_find(const struct roster *r, const struct pod_match_call *call,
                         struct pod_match *ret, struct err *reterr) _must_use_;

/* Records that Allocate was answered with it, until the checkpoint says for which container. */
void pod_match_store(struct roster *r, const struct pod_match *c);
