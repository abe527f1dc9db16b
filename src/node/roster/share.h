/* What one container may use of each of its cards. Pure. */
#pragma once

#include "node/roster/roster.h"

struct card_share {
    struct card_list cards; /* n 0: not known */
    int64_t units;          /* on each card */
    uint32_t cores;         /* percent of each card; 0: none asked for */
};

/* The share of a container that is to run on these cards. A part that can't be divided is rounded
 * up; a pod that has its cards for itself may use all of the smallest one. */
void share_of(const struct roster *r, const struct roster_pod *p, const struct demand *d,
              const struct card_list *cards, struct card_share *ret);

/* The share of the container with this name, on the cards that the checkpoint says it has; on those
 * of the annotations if the checkpoint does not have it. False: it asks for no card. */
bool share_find(const struct roster *r, const struct roster_pod *p, struct str container,
                struct card_share *ret);
