/*
 * Why a node, or one card of it, can't hold a pod: one table of what is said, and whether evicting
 * pods could help.
 */
#pragma once

#include "buf.h"

enum verdict {
    VERDICT_FITS,
    VERDICT_UNKNOWN_NODE, /* the API server has no such node */
    VERDICT_NOT_SHARED,   /* no gpu-mem in its capacity */
    VERDICT_NO_CARDS,  /* gpu-mem, but no usable gpu-count: the plugin has not finished, or lies */
    VERDICT_BAD_CARDS, /* its table of cards can't be read */
    VERDICT_UNUSABLE,  /* unhealthy, cordoned or set aside: too few cards are left */
    VERDICT_MODEL,     /* the pod will have no card of this model */
    VERDICT_UUID,      /* nor this one */
    VERDICT_TOO_LARGE, /* more than the card has when it is empty */
    VERDICT_QUOTA_DENIED,   /* a quota forbids it, whoever else holds what */
    VERDICT_TOO_FEW,        /* the node has fewer such cards than the pod asks for */
    VERDICT_AFFINITY,       /* the pods of its group are on another card */
    VERDICT_ANTI_AFFINITY,  /* one of its group is on the card */
    VERDICT_QUOTA,          /* the pod's namespace holds as much as it may */
    VERDICT_HELD_WHOLE,     /* a pod has the card for itself */
    VERDICT_NOT_EMPTY,      /* it wants an empty card */
    VERDICT_POD_LIMIT,      /* as many pods as the node's label allows on a card */
    VERDICT_NO_CORES,       /* the card has not so much compute left */
    VERDICT_NO_CARD_FREE,   /* nor so much memory */
    VERDICT_NODE_FULL,      /* a card has, but the node's sum has not: pods without a card, or
                               allocatable */
    VERDICT_KEPT,           /* it would fit, if nothing were kept for pods of more weight */
    VERDICT_EXCLUSIVE,      /* pods hold cards of the node by another plugin */
    VERDICT_SHARED,         /* and the other way round */
    VERDICT_NO_EXCLUSIVE,   /* not so many cards by another plugin; the scheduler's own words */
    VERDICT_HELD_ELSEWHERE, /* the pod holds a card of another node, or may soon turn out to */
    VERDICT_BAD_REQUEST,    /* the pod's own fields */
    VERDICT_COUNT
};

/* For metrics and logs: "no_card_free". */
const char *verdict_name(enum verdict v);

/* How many nodes refuse, by why: "no_card_free: 3, too_large: 1"; appended. */
void verdict_counts(struct buf *out, const unsigned counts[static VERDICT_COUNT]);

/*
 * What the scheduler is told of this node. Texts that gpushare has are kept to the letter, because
 * dashboards and questions quote them; the few that name the node are written into scratch. Of a
 * quota quota_refusal_write says more.
 */
struct str verdict_reason(enum verdict v, struct str node, struct buf *scratch);

/* No eviction can help: goes to FailedAndUnresolvableNodes too. */
bool verdict_unresolvable(enum verdict v);
