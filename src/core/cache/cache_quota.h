/* The quotas of the cache: limits and usage. For cache.c. */
#pragma once

#include "core/cache/cache.h"

/* QUOTA_SET, QUOTA_BAD, QUOTA_GONE. ERR_NOMEM: nothing has changed. */
enum errc cache_quota_apply(struct cache *c, const struct cache_event *e, struct effect *ret)
    _must_use_;

/* Removes the quotas if the list of ConfigMaps that ends now did not contain them. */
void cache_quota_sweep(struct cache *c, struct effect *ret);

/* For tests: asserts that every pod is a member, and that the usage is what the pods hold. */
void cache_quota_check(const struct cache *c);
