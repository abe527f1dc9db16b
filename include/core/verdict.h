/* Why a node can't hold a pod: one table of what is said, and whether evicting pods could help. */
#pragma once

#include "buf.h"

enum verdict {
    VERDICT_FITS,
    VERDICT_UNKNOWN_NODE, /* the API server has no such node */
    VERDICT_NOT_SHARED,   /* no gpu-mem in its capacity */
    VERDICT_NO_CARDS,  /* gpu-mem, but no usable gpu-count: the plugin has not finished, or lies */
    VERDICT_TOO_LARGE, /* more than the largest card has when it is empty */
    VERDICT_NO_CARD_FREE,   /* no card has so much left */
    VERDICT_NODE_FULL,      /* a card has, but the node's sum has not: pods without a card, or
                               allocatable */
    VERDICT_HELD_ELSEWHERE, /* the pod holds a card of another node, or may soon turn out to */
    VERDICT_BAD_REQUEST,    /* the pod's own fields */
    VERDICT_COUNT
};

/* For metrics and logs: "no_card_free". */
const char *verdict_name(enum verdict v);

/*
 * What the scheduler is told of this node. Texts that gpushare has are kept to the letter, because
 * dashboards and questions quote them; the few that name the node are written into scratch.
 */
struct str verdict_reason(enum verdict v, struct str node, struct buf *scratch);

/* No eviction can help: goes to FailedAndUnresolvableNodes too. */
bool verdict_unresolvable(enum verdict v);
