/* Why a pod is infeasible on a node or a card: one table with the texts, and whether an eviction
 * could help. */
#pragma once

#include "core/dialect/dialect.h"

enum verdict {
    VERDICT_FITS,
    VERDICT_UNKNOWN_NODE, /* the API server has no such node */
    VERDICT_NOT_SHARED,   /* no gpu-mem in its capacity */
    VERDICT_NO_CARDS,  /* gpu-mem without a usable gpu-count: the device plugin has not finished, or
                          reports nonsense */
    VERDICT_BAD_CARDS, /* its table of cards can't be read */
    VERDICT_UNREADABLE, /* a pod that is bound to it can't be read, and may hold any of its cards */
    VERDICT_DIALECT,    /* its device plugin has other resources than those that the pod names */
    VERDICT_ISOLATION,  /* the pod requires isolation, and the node's label names none */
    VERDICT_MPS,        /* the pod asks for several cards, and MPS serves the node's */
    VERDICT_UNUSABLE,   /* too few usable cards: they are unhealthy, cordoned or set aside */
    VERDICT_CLAIMED,    /* too few usable cards, because ResourceClaims hold some */
    VERDICT_MODEL,      /* the pod's card-model does not allow this card */
    VERDICT_UUID,       /* the pod's card-uuid does not allow this card */
    VERDICT_TOO_LARGE,  /* more memory than the card's total */
    VERDICT_QUOTA_DENIED,  /* a quota forbids it, independent of usage */
    VERDICT_TOO_FEW,       /* the node has fewer such cards than the pod asks for */
    VERDICT_AFFINITY,      /* the pods of its affinity group are on another card */
    VERDICT_ANTI_AFFINITY, /* a pod of its anti-affinity group is on the card */
    VERDICT_QUOTA,         /* the pod's namespace has used up its quota */
    VERDICT_HELD_WHOLE,    /* another pod holds the card whole */
    VERDICT_NOT_EMPTY,     /* the pod needs an empty card */
    VERDICT_POD_LIMIT,     /* the card has as many pods as the node's label allows */
    VERDICT_NO_CORES,      /* not enough free compute on the card */
    VERDICT_NO_CARD_FREE,  /* not enough free memory on the card */
    VERDICT_PLUGIN_ORDER,  /* the device plugin, which chooses by itself, would take a card that the
                              pod may not have */
    VERDICT_SWAP,      /* the device plugin may confuse it with a pod that waits on another card, or
                          has done so, and two pods exchange their cards now */
    VERDICT_LOCKED,    /* another pod has the lock of the node: see lock.h */
    VERDICT_NODE_FULL, /* a card has room but the node's sum has not: pods without a card, or
                          allocatable is less */
    VERDICT_KEPT, /* it would fit, but room is kept for pending pods of equal or higher priority */
    VERDICT_EXCLUSIVE,      /* pods hold whole cards of the node from another device plugin */
    VERDICT_SHARED,         /* the pod asks for whole cards, but pods share cards of the node */
    VERDICT_NO_EXCLUSIVE,   /* not enough whole cards; the text is kube-scheduler's */
    VERDICT_NO_DEVICES,     /* likewise, for a pod that asks DRA for them by a class's name */
    VERDICT_HELD_ELSEWHERE, /* the pod holds a card of another node, or a Binding in doubt may give
                               it one */
    VERDICT_BAD_REQUEST,    /* a field of the pod is invalid */
    VERDICT_COUNT
};

/* For metrics and logs: "no_card_free". */
const char *verdict_name(enum verdict v);

/* Appends how many nodes refuse for which reason: "no_card_free: 3, too_large: 1". */
void verdict_counts(struct buf *out, const unsigned counts[static VERDICT_COUNT]);

/* The text for kube-scheduler about this node. Texts that gpushare has are kept exactly, because
 * dashboards and documents quote them. Texts with the node's name are written into scratch. For a
 * quota, quota_refusal_write gives more detail. */
struct str verdict_reason(enum verdict v, struct str node, struct buf *scratch);

/* The same for a pod of a dialect, whose device plugin may have a rule of its own. */
struct str verdict_reason_in(enum verdict v, enum dialect d, struct str node, struct buf *scratch);

/* No eviction can help: the node also goes to FailedAndUnresolvableNodes. */
bool verdict_unresolvable(enum verdict v);
