/*
 * A device plugin that chooses cards by an order of its own (DIALECT_MATCH_ORDER): gpu-manager,
 * pkg/algorithm/nvidia/share.go. Of the cards with room it takes, for each container in turn, the
 * one with the least compute left, then the least memory, then the fewest processes, then the
 * lowest index. The processes are not known here: of cards that are equal but for them, the
 * prediction may be wrong, and the plugin then refuses the pod.
 *
 * It knows nothing of what else counts here: cordons, models, kept room, and pods of other plugins
 * that are on the node while it changes from one to another.
 */
#pragma once

#include "core/state/node.h"

/* Whether the plugin chooses by this order: for parts of cards. */
bool plugin_choice_applies(const struct request *r);

/* Predicts the cards. False: a container has no room. */
bool plugin_choice_predict(const struct node *n, const struct evaluation *e, struct placement *ret);

/* Whether the plugin would choose exactly the cards `there`. That must hold with and without the
 * pods of other plugins, and before and after deleted pods end: here a deleted pod holds its cards
 * until it is gone, but the plugin gives a card away as soon as the pod's containers are gone. */
bool plugin_choice_is(const struct node *n, const struct evaluation *e,
                      const struct placement *there);

bool plugin_choice_is_among(const struct placement *there, const struct card_set *cards);

/* Whether `kept` has room on the cards that the plugin chooses. `kept` is an overlay of n in which
 * the kept room is taken; the plugin knows nothing of kept room. */
bool plugin_choice_has_room(const struct node *kept, const struct node *n,
                            const struct evaluation *e);

/* For whole cards the plugin may take any card that it counts as free, also those of deleted pods,
 * but none that a pod of another plugin has. Whether the pod may have each of these cards. True for
 * other dialects, and for parts of cards. */
bool plugin_choice_may_have(const struct node *n, const struct evaluation *e);

/* Whether plugin_choice_is, or for whole cards plugin_choice_may_have, is still true of the cards
 * that a pod holds. n: without the pod. True for other dialects. */
bool plugin_choice_keeps(const struct node *n, const struct evaluation *e,
                         const struct pod_allocation *h);
