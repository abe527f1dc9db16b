/* The locks of nodes (lock.h). For cache.c. */
#pragma once

#include "core/cache/cache.h"

/* Takes the lock that the Node object has. ERR_NOMEM: nothing has changed. */
enum errc cache_lock_set(struct cache *c, struct node *n, const struct lock_view *v,
                         uint64_t now_ns, struct effect *ret) _must_use_;

/* The Node object is gone. */
void cache_lock_drop(struct cache *c, struct node *n);

/* Decides again which locks keep pods away. */
void cache_locks_look(struct cache *c, uint64_t now_ns);
