#include "verdict.h"

/* "%s" stands for the node's name. */
static const struct {
    const char *name;
    const char *text;
    bool unresolvable;
} table[VERDICT_COUNT] = {
    [VERDICT_FITS] = {"fits", "fits", false},
    [VERDICT_UNKNOWN_NODE] = {"unknown_node", "node \"%s\" not found", true},
    [VERDICT_NOT_SHARED] = {"not_shared", "The node %s is not for GPU share, need skip", true},
    [VERDICT_NO_CARDS] = {"no_cards",
                          "The node has aliyun.com/gpu-mem but no usable "
                          "aliyun.com/gpu-count",
                          true},
    [VERDICT_TOO_LARGE] = {"too_large", "Insufficient GPU Memory in one device", true},
    [VERDICT_NO_CARD_FREE] = {"no_card_free", "Insufficient GPU Memory in one device", false},
    [VERDICT_NODE_FULL] = {"node_full",
                           "Insufficient GPU Memory on the node, beside pods without a "
                           "card and what is not allocatable",
                           false},
    [VERDICT_HELD_ELSEWHERE] = {"held_elsewhere",
                                "The pod holds a card of another node, or will unless its binding "
                                "there fails",
                                true},
    [VERDICT_BAD_REQUEST] = {"bad_request", "The pod's request is not valid", true},
};

const char *verdict_name(enum verdict v)
{
    assert((unsigned)v < VERDICT_COUNT);
    return table[v].name;
}

struct str verdict_reason(enum verdict v, struct str node, struct buf *scratch)
{
    assert((unsigned)v < VERDICT_COUNT);
    struct str text = str_of(table[v].text);
    struct str head;
    struct str tail;
    if (!str_cut(text, '%', &head, &tail))
        return text;
    buf_clear(scratch, SIZE_MAX);
    buf_put(scratch, head);
    buf_put(scratch, node);
    buf_put(scratch, str_skip(tail, 1));
    return buf_str(scratch);
}

bool verdict_unresolvable(enum verdict v)
{
    assert((unsigned)v < VERDICT_COUNT);
    return table[v].unresolvable;
}
