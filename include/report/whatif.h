/*
 * POST .../fit: how many replicas of a pod would fit now, on which nodes and cards, and what stops
 * the next replica. Changes nothing.
 *
 *     {"replicas": 10, "pod": {...}}          JSON or YAML; replicas is 1 if absent
 *
 *     {"request", "error", "replicas": 10, "fit": 7,
 *      "nodes": [{"node", "replicas"}],
 *      "placements": [{"node", "placement": [{"container", "card", "memory", "compute"}]}],
 *      "stopped": {"refused": {"no_card_free": 2, ...},
 *                  "message": "3 nodes: 2 Insuffic..., 1 ..."}}
 *
 * plan.h says how replicas are placed. "stopped" is null if all replicas fit. Only cards are
 * considered: other conditions of kube-scheduler (taints, CPU) are not.
 */
#pragma once

#include "core/cache/cache.h"
#include "core/request/object_views.h"

struct whatif_question {
    struct pod_view pod; /* its views point into the arena */
    uint32_t replicas;
};

enum errc whatif_read(struct str body, struct arena *a, struct whatif_question *ret,
                      struct err *reterr) _must_use_;

/* Writes the answer from a cache. *step_budget counts the steps. */
enum errc whatif_write(const struct cache *c, struct step_budget *step_budget,
                       struct whatif_question *q, struct arena *a, struct buf *out) _must_use_;
