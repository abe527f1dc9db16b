/*
 * Names for a shell's TAB: nodes with cards, pods, namespaces. Who waits is a person in the middle
 * of a line: it takes no longer than it is given, and of whatever goes wrong nothing is said.
 */
#pragma once

#include "arena.h"
#include "kubectl_client.h"
#include "kubectl_complete.h"

/* Lines for `out`, or none. Names that hold more than letters, digits, '-', '.' and '_' are left
 * out: what a shell makes of them is not ours to try. */
void kubectl_names(struct kubectl_client *c, const struct kubectl_wish *w, uint64_t timeout_ms,
                   struct arena *a, struct buf *out);
