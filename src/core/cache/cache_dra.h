/* What DRA holds of the cache's cards. For cache.c. */
#pragma once

#include "core/cache/cache.h"

/* SLICE_SET to CLASS_GONE. ERR_NOMEM: nothing has changed. */
enum errc cache_dra_apply(struct cache *c, const struct cache_event *e, struct effect *ret)
    _must_use_;

/* The list that such an event's object is part of. */
enum cache_kind cache_dra_kind(enum cache_event_type type);

/* Drops what the list of this kind that ends now did not contain. */
void cache_dra_sweep(struct cache *c, enum cache_kind kind, struct effect *ret);

/* The node has other cards: finds those that DRA holds. */
void cache_dra_look(struct cache *c, struct node *n);

/* How many cards the request asks DRA for by implicit names: those of the classes that give out
 * whole cards. What another class gives out is not known. */
uint32_t cache_dra_asked(const struct cache *c, const struct request *r);

/* For tests: asserts that each node has exactly what the claims hold. */
void cache_dra_check(const struct cache *c);
