/*
 * Says to the author of a pod, by one Event on the pod, what cardpack can't use of its object: a
 * request that is not valid, an annotation of a name that cardpack does not know. The first reaches
 * the author also if kube-scheduler refuses the pod by itself and never asks cardpack. It blocks
 * nothing.
 */
#pragma once

#include "base/err.h"
#include "base/map.h"
#include "core/request/object_views.h"
#include "kube/events.h"

/* Of the last this many Events, roughly: it is not posted again. Older ones may be. */
#define ADVISE_REMEMBERED 2048

struct advise {
    struct map_seed seed;
    uint64_t sent[ADVISE_REMEMBERED]; /* by hash: hashes of UID and message; 0: none */
};

/* pod: not bound, else nothing happens. bad: why its request is not valid; code OK: it is. ev may
 * be NULL. */
void advise_pod(struct advise *a, struct events *ev, const struct pod_view *pod,
                const struct err *bad);
