/*
 * Keeps watch over the driver's limits of memory, one for each running container and card: reads
 * each back when the container has started and every minute, sets it where the container runtime
 * has not, and reports those that can't be had.
 *
 *     containers (pods' status) --+
 *     shares (allot) -------------+--> limit_step --> gpu_watch: read back, set
 *     cgroup's folder ------------+        |
 *                                          +--> event on the pod; the card gets no more pods
 */
#pragma once

#include "gpu/gpu_watch.h"
#include "kube/events.h"
#include "node/containers/containers.h"
#include "node/roster/share.h"

#define LIMITS_MAX ((size_t)4096) /* containers times cards */

struct limits;

struct limits_counts {
    uint64_t enforced; /* now: limits of running containers that read back */
    uint64_t missing;  /* now */
    uint64_t checking; /* now: of running containers, neither of both yet; on cards that answer */
    uint64_t absent;   /* of them: by an answer of the driver, and no container sets it otherwise */
    uint64_t preset;   /* since the start: that read back when their container had just started */
    uint64_t ours;     /* since the start: set by us, because the container ran without */
    uint64_t lost;     /* since the start: how often one was found to be missing */
    uint64_t left_out; /* since the start: no memory, or too many */
};

/* Borrowed until limits_free. */
struct limits_settings {
    struct loop *loop;
    struct gpu_watch *gpu;
    const struct containers *containers;
    struct events *events;  /* NULL: no events */
    struct str cgroup_root; /* "/sys/fs/cgroup" */
    uint64_t unit_bytes;
    /* What a container is to have; false: no card, or not known yet. */
    bool (*share)(void *ctx, const struct container *c, struct card_share *ret);
    bool (*overrides)(void *ctx,
                      struct str uid); /* the limit is the pod's own: it sets its variables */
    void (*changed)(void *ctx);        /* of a limits_fault; must not free it */
    void *ctx;
};

enum errc limits_new(const struct limits_settings *s, struct limits **ret, struct err *reterr)
    _must_use_;
struct limits *limits_free(struct limits *l); /* before the gpu_watch; returns NULL */

/* Whether there are such limits on this node. Without, nothing is checked, and nothing is missing.
 */
void limits_enable(struct limits *l, bool on);

/* The pod's containers, or their shares, have changed; or it is gone. */
void limits_update(struct limits *l, struct str uid);
void limits_update_all(struct limits *l);

/* Why the card may get no more pods, valid until the loop's next turn; empty: nothing is known. */
struct str limits_fault(const struct limits *l, uint32_t card);
/* Whether a pod with a limit on the card requires isolation. */
bool limits_are_required(const struct limits *l, uint32_t card);
/* Whether a limit on the card is missing by an answer of the driver, and its pod sets the limit's
 * variables itself. */
bool limits_are_overridden(const struct limits *l, uint32_t card);
struct limits_counts limits_counts(const struct limits *l);
