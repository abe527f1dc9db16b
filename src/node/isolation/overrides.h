/*
 * Pods whose spec sets a variable by itself that the device plugin sets: in a container the pod's
 * value wins, so what the variable limits is not limited. Variables from `envFrom` are not in the
 * spec, and not seen. Pure but for the log.
 */
#pragma once

#include "base/arena.h"
#include "base/map.h"
#include "core/request/object_views.h"
#include "kube/events.h"

#define OVERRIDES_MAX ((size_t)2048) /* as the roster's pods */

struct override {
    struct str uid; /* owned, as the others */
    struct str container;
    struct str variable;
    bool memory; /* the variables of the driver's limits are among them */
    uint64_t list;
};

struct overrides {
    struct map pods; /* of struct override, by UID */
    struct events *events;
    struct arena arena; /* for one spec */
    uint64_t list;      /* a pod of an older one is gone at `end` */
};

void overrides_init(struct overrides *o, struct map_seed seed);
void overrides_done(struct overrides *o);

/* As struct pod_watch_ops. A pod gets one event. over: see containers_over; its cards are not
 * marked any more. */
void overrides_begin(struct overrides *o);
void overrides_set(struct overrides *o, const struct pod_view *view, struct str json, bool over);
void overrides_gone(struct overrides *o, struct str uid);
void overrides_end(struct overrides *o);

/* The first container of the spec, and its first variable, that overrides one of ours, as views;
 * absent: none does. What can't be read may do so: then "?", and why it can't. */
void overrides_read(struct str json, struct arena *a, struct override *ret);

/* A pod that overrides a variable, and of which is_on says that it has the card; NULL: none. Not by
 * its annotations: its author may edit these. */
const struct override *overrides_on(const struct overrides *o, uint32_t card,
                                    bool (*is_on)(void *ctx, struct str uid, uint32_t card),
                                    void *ctx);
