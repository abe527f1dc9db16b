/* What a pod holds, moved to where an event says that it is. For cache.c. ERR_NOMEM: as it was. */
#pragma once

#include "cache.h"

/* Charged to other cards than before, or by another request. */
enum errc cache_pod_move(struct cache *c, struct pod *p, struct node *n, const struct request *r,
                         const struct placement *there, bool initialized) _must_use_;

/* The object says where the pod is: it is charged there, wherever it was before. */
enum errc cache_pod_place(struct cache *c, struct pod *p, const struct pod_view *view,
                          const struct request *r, uint64_t now_ns, struct effect *ret) _must_use_;

/* A pending pod holds nothing, but that room is kept for it where it is nominated. */
void cache_pod_claim(struct cache *c, struct pod *p);

/*
 * What a pending pod asks for, which may be edited, and where a scheduler has made room for it.
 * What is kept for it by ourselves stays, unless it was for another request.
 */
enum errc cache_pod_ask(struct cache *c, struct pod *p, const struct pod_view *view,
                        const struct request *r, struct effect *ret) _must_use_;

/* What the object of a reserved pod says by now: it counts where the Binding fails. */
enum errc cache_pod_edit(struct cache *c, struct pod *p, const struct pod_view *view,
                         const struct request *r) _must_use_;

/* Room for a pending pod, instead of what was kept for it before. */
enum errc cache_pod_keep(struct cache *c, struct pod *p, struct node *n,
                         const struct placement *there) _must_use_;
