/* A pod's labels as the cache keeps them: one block with four bytes and the text for each label.
 * All pods that have the same labels in the same order share one block. */
#pragma once

#include "base/intern.h"
#include "core/request/object_views.h"

struct labels;

/* *ret is NULL for a pod without labels. A label that is longer than the API allows is left out. */
enum errc labels_take(struct intern_table *table, const struct label_view *views, size_t n,
                      struct labels **ret) _must_use_;

/* Accepts NULL. */
void labels_give(struct intern_table *table, struct labels *l);

/* For tests: asserts that the table has this block, and no equal one. */
void labels_check(const struct intern_table *table, const struct labels *l);

/* Whether l is a copy of these labels. */
bool labels_same(const struct labels *l, const struct label_view *views, size_t n);

uint32_t labels_count(const struct labels *l);

/* ret has room for labels_count entries. */
void labels_view(const struct labels *l, struct label_view *ret);
