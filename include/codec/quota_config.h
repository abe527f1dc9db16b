/*
 * The limits of namespaces as people write them (docs/quota.md), in YAML or JSON:
 *
 *     namespaces:
 *       team-a:
 *         limits: {memory: 64, cards: 4, compute: 400}
 *         pools: [gold, silver]
 *         models: [NVIDIA-A100*]
 *         perPool: {gold: {memory: 32}}
 *         perModel: {NVIDIA-A100-SXM*: {cards: 2}}
 *       "*": {limits: {cards: 1}}
 *
 * All of it or nothing: a field that is not known, stands there twice or has no value, a number
 * that is none or absurd, and a pool that contradicts the list of pools are errors that name
 * namespace, field and value, since a limit with a slip in its name would limit nothing.
 */
#pragma once

#include "arena.h"
#include "quota.h"

/* Views: the arena's. ERR_NOMEM and ERR_LIMIT (too large, in one way or another) beside the rest.
 */
enum errc quota_config_read(struct str text, struct arena *arena, struct quota_view *ret,
                            struct err *reterr) _must_use_;
