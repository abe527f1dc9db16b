/*
 * The score is the share as a fraction of 2^62, rounded down. Equal shares p/q give equal scores.
 * Unequal shares differ by at least 1/(q1*q2), which is over 2^-62 for any two nodes of less than
 * 2^31 units (2 PiB in MiB). Comparing cross products would be exact for larger nodes as well, but
 * gives only an order: prioritize must know which nodes are equal, and a heap needs a key.
 */
#include "core/score.h"

#define WHOLE (UINT64_C(1) << 62)

static uint64_t score_used_share(const struct node *n, int64_t mem)
{
    int64_t used = 0;
    bool over = __builtin_add_overflow(MAX_OF(n->used, (int64_t)0), MAX_OF(mem, (int64_t)0), &used);
    if (over || used >= n->total)
        return WHOLE;
    unsigned __int128 scaled = (unsigned __int128)(uint64_t)used * WHOLE;
    return (uint64_t)(scaled / (uint64_t)n->total);
}

uint64_t score_node(const struct node *n, int64_t mem, enum pack policy)
{
    uint64_t share = score_used_share(n, mem);
    assert(share <= WHOLE);
    return 2 * (1 + (policy == PACK_SPREAD ? WHOLE - share : share));
}
