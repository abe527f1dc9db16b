/* A PodDisruptionBudget, as far as it says whom it is about and how many of them may go. */
#pragma once

#include "budget.h"
#include "jread.h"

/*
 * Consumes one value; failures are the reader's, views the document's or the arena's. `beta` is the
 * version that was asked for, policy/v1beta1 or policy/v1: items of a list don't say their own,
 * which counts where it is there.
 */
void kube_read_budget(struct jread *r, struct arena *a, bool beta, struct budget_view *ret);
