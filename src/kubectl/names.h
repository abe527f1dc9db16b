/*
 * Names for shell completion: nodes with cards, pods, namespaces. A user waits at the prompt: so
 * the search ends after timeout_ms, and errors are not printed.
 */
#pragma once

#include "base/arena.h"
#include "kubectl/client.h"
#include "kubectl/complete.h"

/* Appends completion lines to out. Names may only contain letters, digits, '-', '.' and '_': other
 * names are left out, because a shell might interpret them. */
void kubectl_names(struct kubectl_client *c, const struct kubectl_wish *w, uint64_t timeout_ms,
                   struct arena *a, struct buf *out);
