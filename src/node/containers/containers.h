/*
 * Which container, by its ID at the container runtime, belongs to which pod: from the status of the
 * node's pods. Containers, init containers (sidecars among them) and ephemeral containers that run
 * or have run; a container that starts again gets another ID. Pure but for the log.
 */
#pragma once

#include "base/arena.h"
#include "base/map.h"
#include "core/request/object_views.h"

/* As the roster's pods. The API server limits an object, and so the containers of a pod, by its
 * size only. */
#define CONTAINERS_PODS_MAX ((size_t)2048)
#define CONTAINERS_MAX      ((size_t)16384) /* that run */

struct container_pod;

struct container {
    struct str id;   /* 64 digits */
    struct str name; /* of the container in its pod's spec */
    const struct container_pod *pod;
    bool running; /* its state says so; the status may lag behind */
};

/* All strings are owned. */
struct container_pod {
    struct str uid;
    struct str namespace;
    struct str name;
    uint64_t list;
    bool deleting; /* none of its containers starts again */
    bool over;     /* see containers_over */
    bool isolated; /* it requires isolation: CARDPACK_ANNOTATION_ISOLATION */
    size_t n;
    struct container *items; /* of this pod */
};

struct containers {
    struct map pods;    /* by UID; owns its objects */
    struct map by_id;   /* of struct container, those that run */
    struct arena arena; /* for one status */
    uint64_t list;      /* a pod of an older one is gone at `end` */
    uint64_t left_out;  /* pods and containers that run, since the start: too many, no memory, or an
                           ID that another pod has */
};

void containers_init(struct containers *c, struct map_seed seed);
void containers_done(struct containers *c);

/* As struct pod_watch_ops; json is the pod's object. A pod that has ended leaves. */
void containers_begin(struct containers *c);
void containers_set(struct containers *c, const struct pod_view *view, struct str json);
void containers_gone(struct containers *c, struct str uid);
void containers_end(struct containers *c);

/* Valid until the next set, gone or end; NULL: none that runs. */
const struct container *containers_find(const struct containers *c, struct str id);
const struct container_pod *containers_pod(const struct containers *c, struct str uid);

/* The pod is being deleted, and none of its containers runs: none starts again. A kubelet of 1.20
 * keeps such a pod for up to a minute, until it has collected the pod's sandbox. */
bool containers_over(const struct containers *c, struct str uid);
