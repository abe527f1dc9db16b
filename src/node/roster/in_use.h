/*
 * Which cards the pods of this node that ask for memory have, by their annotations: so that a new
 * card does not get the index of one that a pod still names. Pure.
 */
#pragma once

#include "base/map.h"
#include "core/request/object_views.h"

struct in_use {
    struct map pods; /* by UID; owns its objects */
    uint64_t list;   /* which list; a pod of an older one is gone at `end` */
    bool unknown;    /* a pod could not be kept: every card counts as used, from then on */
};

void in_use_init(struct in_use *u, struct map_seed seed);
void in_use_done(struct in_use *u);

/* As struct pod_watch_ops. */
void in_use_begin(struct in_use *u);
void in_use_set(struct in_use *u, const struct pod_view *view);
void in_use_gone(struct in_use *u, struct str uid);
void in_use_end(struct in_use *u);

/* Whether a pod that has not ended names the card with this index. */
bool in_use_has(const struct in_use *u, uint32_t index);
