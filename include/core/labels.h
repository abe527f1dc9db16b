/* A pod's labels as the cache keeps them: one block, four bytes and its text for each, and the same
 * for all pods that have the same labels in the same order. */
#pragma once

#include "pool.h"
#include "view.h"

struct labels;

/* *ret is NULL where there are none. One that is longer than the API allows is left out. */
enum errc labels_take(struct pool *pool, const struct label_view *views, size_t n,
                      struct labels **ret) _must_use_;

/* Accepts NULL. */
void labels_give(struct pool *pool, struct labels *l);

/* Asserts that they are the pool's, and that no others there are the same. */
void labels_check(const struct pool *pool, const struct labels *l);

/* Whether they are a copy of these. */
bool labels_same(const struct labels *l, const struct label_view *views, size_t n);

uint32_t labels_count(const struct labels *l);

/* ret has room for labels_count. */
void labels_view(const struct labels *l, struct label_view *ret);
