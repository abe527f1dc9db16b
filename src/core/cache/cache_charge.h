/* Moves what a pod holds, as an event says. For cache.c. On ERR_NOMEM nothing has changed. */
#pragma once

#include "core/cache/cache.h"

/* Charges the pod to the cards `there` of n, for request r, instead of its charge before. list: of
 * its devices, in a dialect with UUIDs; it is copied. */
enum errc cache_pod_move(struct cache *c, struct pod *p, struct node *n, const struct request *r,
                         const struct placement *there, struct str list, bool initialized)
    _must_use_;

/* The object is bound: charges the pod to the object's node and cards, whatever it held before. */
enum errc cache_pod_place(struct cache *c, struct pod *p, const struct pod_view *view,
                          const struct request *r, uint64_t now_ns, struct effect *ret) _must_use_;

/* Makes a pod hold nothing; if it is nominated, room is kept for it on that node. */
void cache_pod_keep_room(struct cache *c, struct pod *p);

/* Takes a pending pod's request, which may have been edited, and its nomination. Room that was kept
 * with KEEP stays, unless the request has changed. */
enum errc cache_pod_ask(struct cache *c, struct pod *p, const struct pod_view *view,
                        const struct request *r, struct effect *ret) _must_use_;

/* Takes the new content of a reserved pod's object: it counts if the Binding fails. */
enum errc cache_pod_edit(struct cache *c, struct pod *p, const struct pod_view *view,
                         const struct request *r) _must_use_;

/* Keeps room on these cards for a pending pod, instead of the room kept before. */
enum errc cache_pod_keep(struct cache *c, struct pod *p, struct node *n,
                         const struct placement *there) _must_use_;
