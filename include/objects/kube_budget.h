/* A PodDisruptionBudget: which pods it selects and how many of them may be evicted. */
#pragma once

#include "core/preempt/budget.h"
#include "json/jread.h"

/*
 * Reads one value. Failures are stored in the reader; views point into the document or the arena.
 * `beta` is the requested version: true for policy/v1beta1, false for policy/v1. The items of a
 * list have no apiVersion; if an object has one, the object's counts and not `beta`. A budget with
 * more than LIMIT_BUDGET_TERMS terms selects all pods of its namespace.
 */
void kube_read_budget(struct jread *r, struct arena *a, bool beta, struct budget_view *ret);
