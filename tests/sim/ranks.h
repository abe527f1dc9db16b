/*
 * Which of two nodes is better for a pod, by docs/policy.md, and whether the answers of a process
 * agree: the scores of prioritize, the shortlist of filter, the order of explain.
 *
 * Not judged: a whole card or a percentage on a node with cards of different sizes. The documents
 * do not say with which card the ratio includes the pod. A policy with costs: they depend on what
 * the process has learned. `prefer` of swap-guard promises
 * nothing where nodes differ in the ratio, and nothing at all for bind.
 *
 * Of a pod on several cards only the NUMA node is judged (oracle_one_numa): the policy of cards is
 * for one card.
 */
#pragma once

#include "oracle.h"

/* Above 0: a is better than b; 0: equal, or not known. *ret_known says which. With `guard` the
 * setting swap-guard counts, too. */
int ranks_compare(const struct pod_object *p, unsigned a, unsigned b, bool guard, bool *ret_known);

/* Checks the scores of prioritize, by node. */
void ranks_check_scores(const struct pod_object *p, const int64_t scores[MAX_NODES]);

/* Checks filter's answer: listed and failed have a bit for each node. */
void ranks_check_shortlist(const struct pod_object *p, unsigned listed, unsigned failed);

/* Checks that explain may name node a directly before node b; the pod fits on both. */
void ranks_check_order(const struct pod_object *p, unsigned a, unsigned b);
