/*
 * Whether the processes of containers are clients of NVIDIA's MPS, whose daemons are described in
 * mps_daemon.h.
 */
#pragma once

#include "gpu/gpu_watch.h"
#include "kube/events.h"
#include "node/containers/containers.h"

#define MPS_LOOK_MS UINT64_C(30000) /* the processes of each card are looked at so often */

struct mps;

struct mps_counts {
    uint64_t outside; /* processes now */
    uint64_t found;   /* since the start: events */
};

/* Borrowed until mps_free. */
struct mps_settings {
    struct loop *loop;
    struct gpu_watch *gpu;
    const struct containers *containers;
    struct events *events;      /* NULL: no events */
    struct str proc;            /* "/proc" of the node, with its process IDs */
    void (*changed)(void *ctx); /* of an mps_fault; must not free it */
    void *ctx;
};

enum errc mps_new(const struct mps_settings *s, struct mps **ret, struct err *reterr) _must_use_;
struct mps *mps_free(struct mps *m); /* before the gpu_watch; returns NULL */

/* Whether processes are to be clients of MPS; without, none is looked at. */
void mps_enable(struct mps *m, bool on);

/* Which container has a process that uses the card past MPS, in words, valid until the loop's next
 * turn; empty: none is known. */
struct str mps_fault(const struct mps *m, uint32_t card);
struct mps_counts mps_counts(const struct mps *m);
