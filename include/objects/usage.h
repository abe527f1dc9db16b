/*
 * What the cards of a node and the pods on them really use, as cardpack-node measures it: ConfigMap
 * kube-system/cardpack-usage-NODE, key usage.
 *
 *     {"seen": "2026-11-25T19:20:00Z",
 *      "cards": [{"index": 0, "usedMiB": 9000, "totalMiB": 81920, "busyPercent": 37}],
 *      "pods": [{"uid": "1-2", "namespace": "ns", "name": "pod", "card": 0, "usedMiB": 4100}],
 *      "compared": 12,
 *      "differences": [{"namespace": "ns", "name": "pod", "container": "c", "kind": "cards",
 *                       "annotated": "0", "given": "1"}]}
 *
 * The last two are there if the kubelet has listed which devices containers have: how many have
 * some, and which of them differ from their annotations. kind is cards, owner or none.
 *
 * A card whose busyPercent is unknown has none. A pod whose usage is unknown is not in the list;
 * one that uses two cards is there twice.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "core/state/measured.h"

#define USAGE_CONFIGMAP_PREFIX "cardpack-usage-"
#define USAGE_KEY              "usage"

/*
 * Writes the text. Pods that exceed LIMIT_MEASURED_PODS or LIMIT_USAGE_TEXT are left out, the last
 * ones first: order them by what matters most. A failure is out's.
 */
void usage_write(struct buf *out, const struct usage_view *u);

/*
 * Reads the text; unknown keys are ignored. Views point into the text, or into the arena if they
 * contained an escape. The message of an error names field and value. Also returns ERR_NOMEM, and
 * ERR_LIMIT if the arena is too small.
 */
enum errc usage_read(struct str text, struct arena *a, struct usage_view *ret, struct err *reterr)
    _must_use_;
