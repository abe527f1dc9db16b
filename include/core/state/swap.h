/*
 * Which pods gpushare's device plugin may confuse. The kubelet asks the plugin once for each
 * container, for an amount of memory, without naming the pod. The plugin takes the first pod by
 * ASSUME_TIME that is pending on the node, is not assigned yet, and whose containers' limits add up
 * to exactly that amount. The kubelet does not ask in that order; after a restart it admits waiting
 * pods by creation time. So if two such pods are on different cards, each may get the card of the
 * other.
 *
 * A pod waits from its reservation until the plugin has acknowledged it, or until it is not pending
 * any more: then its containers have started, and the plugin has been asked for all of them. In
 * HAMi's dialect until the kubelet has admitted it, see pod_view_starts.
 */
#pragma once

#include "core/state/node.h"

/* The setting swap-guard. */
enum swap_guard {
    SWAP_GUARD_OFF,
    SWAP_GUARD_PREFER,  /* among equal nodes, prefer one where no swap is possible */
    SWAP_GUARD_REQUIRE, /* while the other pod waits, only nodes without a swap are feasible */
};

/* On which cards of a node the pod can't be swapped with a pod that waits there. */
enum swap_cards {
    SWAP_ANY,  /* on all cards: no such pod waits */
    SWAP_ONE,  /* on this card only: all such pods wait there */
    SWAP_NONE, /* on no card: they wait on several cards, or on an unknown one */
};

struct swap {
    enum swap_cards cards;
    uint32_t card; /* SWAP_ONE */
};

/* Whether two pods of this dialect that wait on one node are a swap, whatever they ask for. */
bool swap_is_one_at_a_time(const struct request *r);

/* Linear in the node's pods. The request belongs to none of these pods, or e has `self` set. */
void swap_find(const struct node *n, const struct evaluation *e, struct swap *ret);

static inline bool swap_allows(const struct swap *s, uint32_t card)
{
    return s->cards == SWAP_ANY || (s->cards == SWAP_ONE && s->card == card);
}

/* Whether all cards of a placement are allowed. */
bool swap_allows_all(const struct swap *s, const struct placement *there);

/* Call this when p leaves n, or when p->start becomes POD_STARTED. Marks the pods whose
 * acknowledgment p may have taken. */
void swap_note_end(struct node *n, const struct pod *p);

/* Whether p waits, and the device plugin may confuse p with a pod of request r, on any cards. */
bool swap_is_like(const struct pod *p, const struct request *r);
