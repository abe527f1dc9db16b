/* What the containers of a pod request of DeviceClasses, by implicit resource names. For kube.c. */
#pragma once

#include "base/arena.h"
#include "core/request/object_views.h"
#include "json/jread.h"

/* Further names of one pod are not read: a claim has 32 devices at most. */
#define KUBE_CLASSES_MAX ((size_t)64)

struct class_list {
    struct arena *arena;
    struct class_request_view *items;
    size_t n;
    size_t cap;
    size_t open; /* the first item of the container that is being read */
};

/* If the key is an implicit name, reads its quantity and returns true. requested: the key is one of
 * requests, else of limits. A value that is no quantity counts as absent. */
bool kube_classes_take(struct class_list *l, struct jread *r, struct str key, bool requested);

/* Appends the items of another list. */
void kube_classes_join(struct class_list *l, struct jread *r, const struct class_list *more);

/* The container is read: its kind is known. */
void kube_classes_close(struct class_list *l, enum container_kind kind);

/* Reads a pod's extendedResourceClaimStatus, which kube-scheduler writes before it binds the pod:
 * CLAIMS_... */
unsigned kube_classes_read_status(struct jread *r);
