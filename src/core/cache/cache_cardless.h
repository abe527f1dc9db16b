/* The pods without a GPU request: charges what they request to their nodes' hosts. For cache.c. */
#pragma once

#include "core/cache/cache.h"

/* The object shows the pod bound to the node. A pod that requests nothing needs no record.
 * ERR_NOMEM: nothing has changed. */
enum errc cache_cardless_set(struct cache *c, struct str uid, struct str node, struct host host)
    _must_use_;

/* The object has no nodeName, so it is older than the record: this only counts as a sign of life.
 * Returns whether there is a record. */
bool cache_cardless_seen(struct cache *c, struct str uid);

/* The pod is gone or terminal, or requests cards now. */
void cache_cardless_drop(struct cache *c, struct str uid);

/* Drops those that the list that ends now did not contain. */
void cache_cardless_sweep(struct cache *c, struct effect *ret);

/* Asserts that every node is charged with the pods that it has, those with a GPU request and those
 * without. */
void cache_cardless_check(const struct cache *c);
