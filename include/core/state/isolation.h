/* What a node enforces of a pod's share of a card, as the node's label says. cardpack-node writes
 * the label when it has verified it; without it, nothing is known to be enforced. */
#pragma once

#include "base/str.h"

enum isolation {
    ISOLATION_UNKNOWN, /* no label, or one that cannot be read */
    ISOLATION_NONE,
    ISOLATION_DRIVER_LIMITS, /* the driver limits the memory of each container's cgroup */
    ISOLATION_MPS,           /* NVIDIA's MPS limits the memory and compute of each client */
    ISOLATION_MIG,           /* each card is a MIG slice */
};

/* Accepts exactly "driver-limits", "mps", "mig" or "none". False: another text, and *ret is
 * unchanged. */
bool isolation_parse(struct str text, enum isolation *ret);

/* The text of the label; "" for ISOLATION_UNKNOWN. */
const char *isolation_name(enum isolation i);

/* Whether a pod with so many cards may be placed there. A process is a client of one MPS server,
 * and each card has its own: a process without it would take its cards from all others. */
static inline bool isolation_serves(enum isolation i, uint32_t cards)
{
    return i != ISOLATION_MPS || cards <= 1;
}
