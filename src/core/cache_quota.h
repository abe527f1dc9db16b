/* The quotas in the cache: how they are set, and what is used of them. For cache.c. */
#pragma once

#include "cache.h"

/* QUOTA_SET, QUOTA_BAD, QUOTA_GONE. ERR_NOMEM: nothing has changed. */
enum errc cache_quota_apply(struct cache *c, const struct event *e, struct effect *ret) _must_use_;

/* The list of ConfigMaps that ends now has not named the quotas: there are none any more. */
void cache_quota_sweep(struct cache *c, struct effect *ret);

/* Asserts that every pod is a member, and that what is used is what the pods hold. */
void cache_quota_check(const struct cache *c);
