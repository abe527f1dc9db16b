/*
 * POST .../fit: how many replicas of a pod would fit now, where, and what stops the next one.
 * Nothing changes.
 *
 *     {"replicas": 10, "pod": {...}}          JSON or YAML; replicas is 1 where it is not said
 *
 *     {"request", "error", "replicas": 10, "fit": 7,
 *      "nodes": [{"node", "replicas"}],
 *      "placements": [{"node", "placement": [{"container", "card", "memory", "compute"}]}],
 *      "stopped": {"refused": {"no_card_free": 2, ...}, "message": "3 nodes: 2 Insuffic..., 1
 * ..."}}
 *
 * As plan.h has it, which says how replicas are placed; "stopped" is null where all fit. Only cards
 * are looked at: what else a scheduler asks of a node (taints, CPU) is not.
 */
#pragma once

#include "service.h"
#include "view.h"

void whatif_handle(struct service *s, struct http_request *r);

struct whatif_question {
    struct pod_view pod; /* views: the arena's */
    uint32_t replicas;
};

enum errc whatif_read(struct str body, struct arena *a, struct whatif_question *ret,
                      struct err *reterr) _must_use_;

/* The answer, of the service's cache alone. */
enum errc whatif_write(const struct service *s, struct whatif_question *q, struct arena *a,
                       struct buf *out) _must_use_;
