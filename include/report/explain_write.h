/* The JSON answer of explain, computed from a cache. */
#pragma once

#include "core/cache/cache.h"
#include "core/request/object_views.h"
#include "json/jwrite.h"

/* "placement": [{"container", "card", "memory", "compute"}] */
void explain_write_placement(struct jwrite *w, const struct grant *grants, uint32_t n);

/* "refused": {the name of each verdict that refuses nodes: how many} */
void explain_write_refused(struct jwrite *w, const unsigned counts[static VERDICT_COUNT]);

/*
 * Writes to out; uses the arena to sort the nodes. *step_budget counts the steps. ERR_LIMIT: the
 * request would take more than LIMIT_REQUEST_STEPS.
 */
enum errc explain_write(const struct cache *c, struct step_budget *step_budget,
                        const struct pod_view *pod, struct arena *a, struct buf *out,
                        struct err *reterr) _must_use_;
