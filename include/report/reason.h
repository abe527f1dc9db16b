/* Texts that say why a card is not feasible for a pod: for bind's refusals and for explain. */
#pragma once

#include "core/place/card_check.h"
#include "core/place/fit.h"

/* The audience of a text. An event is readable in its pod's namespace, so it must not name pods of
 * other namespaces. */
enum reason_reader {
    REASON_FOR_ALL,
    REASON_FOR_NAMESPACE,
};

/* A node in its present state, and in the state with the room kept for other pods in use. */
struct reason_scene {
    struct card_check now;
    struct card_check kept; /* of the overlay; its node is NULL if the node keeps no room */
    struct overlay overlay;
};

void reason_scene_open(struct reason_scene *s, const struct node *n, const struct evaluation *e);

/*
 * As fit_card, but also considers the room kept for other pods. VERDICT_FITS: the card can take
 * the pod's whole share. If it can't, and the pod's containers may use different cards:
 * VERDICT_NO_CARD_FREE if one container alone would fit, otherwise the verdict of the container
 * that is nearest to fitting.
 */
enum verdict reason_evaluate(const struct reason_scene *s, const struct evaluation *e,
                             uint32_t card);

/*
 * Why card `card` is not feasible for the pod (or its figures if it is): "4 of 16 free, 8 asked",
 * "holds 3 pods", "is cordoned", "is a Tesla T4". v is reason_evaluate's verdict of the card.
 */
void reason_card(struct buf *out, const struct reason_scene *s, const struct evaluation *e,
                 uint32_t card, enum verdict v, enum reason_reader reader);

/* The reasons of all cards of a node in one line, for the pod's namespace, cut to fit into out:
 * "; card 0: 4 of 16 free, 8 asked; card 1: ..." */
void reason_cards(struct buf *out, const struct node *n, const struct evaluation *e);

/* Why node n is not feasible for the pod: fit_reason, or for a quota its usage and limit. n may be
 * NULL: then only its name is known. The text is in scratch or constant. */
struct str reason_node(struct buf *scratch, struct str name, const struct node *n,
                       const struct evaluation *e, enum verdict v);

/* What the pod requests, in a few words: "8 on each of 2 cards, 30% of the compute". devices: cards
 * that DRA is asked for; 0 if that is not known. */
void reason_request(struct buf *out, const struct request *r, uint32_t devices);
