/*
 * The limits of namespaces as administrators write them (docs/quota.md), in YAML or JSON:
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
 * One error refuses the whole text, because a limit with a misspelled name would limit nothing.
 * Errors are: an unknown field, a repeated field, a field without a value, an invalid or absurdly
 * large number, and a pool limit that contradicts the list of pools. The message names namespace,
 * field and value.
 */
#pragma once

#include "base/arena.h"
#include "core/quota.h"

/*
 * Views point into the arena. Also returns ERR_NOMEM, and ERR_LIMIT if the text or its result is
 * too large.
 */
enum errc quota_config_read(struct str text, struct arena *arena, struct quota_view *ret,
                            struct err *reterr) _must_use_;
