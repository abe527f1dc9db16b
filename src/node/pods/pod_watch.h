/*
 * A watch of the pods of this node, those that have ended included: the annotations of a pod say
 * which cards it has, and its end is what releases them.
 */
#pragma once

#include "base/arena.h"
#include "core/request/object_views.h"
#include "kube/kube_api.h"

struct pod_watch;

/* A Pod's JSON, with its resourceVersion: 0 if that is not a number. Views point into it or into
 * the arena. */
enum errc pod_watch_read(struct str object, struct arena *a, struct pod_view *ret,
                         uint64_t *ret_version, struct err *reterr) _must_use_;

/* begin, set for each pod of a list, end: pods that it did not name are gone. Then the changes. A
 * list that failed midway, or had a pod that can't be read, is followed by another begin. None of
 * these may free the watch. */
struct pod_watch_ops {
    void (*begin)(void *ctx);
    /* version: resourceVersion, 0 if it is not a number. Views are valid during the call. */
    void (*set)(void *ctx, const struct pod_view *view, uint64_t version, struct str json);
    void (*gone)(void *ctx, struct str uid);
    void (*end)(void *ctx);
    void *ctx;
};

/* Starts to list in the loop's next turn. The api must outlive the watch; ops are copied. */
enum errc pod_watch_new(struct loop *l, struct kube_api *api, struct str node,
                        const struct pod_watch_ops *ops, struct pod_watch **ret, struct err *reterr)
    _must_use_;
struct pod_watch *pod_watch_free(struct pod_watch *p); /* returns NULL */

/* Whether a complete list has arrived, and every pod of the last one could be read. */
bool pod_watch_synced(const struct pod_watch *p);

/* Lists again in the loop's next turn. */
void pod_watch_relist(struct pod_watch *p);

/* Pods that could not be read, since the start. */
uint64_t pod_watch_unreadable(const struct pod_watch *p);
