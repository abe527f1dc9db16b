/* The table of verdicts: name for metrics, text for kube-scheduler, and whether an eviction can
 * help. */
#include "core/request/verdict.h"

/* "%s" is replaced by the node's name. */
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
    [VERDICT_BAD_CARDS] = {"bad_cards", "The node's annotation cardpack.io/cards can't be read",
                           true},
    [VERDICT_UNREADABLE] = {"unreadable",
                            "A pod of the node can't be read and may hold any of its GPU devices",
                            true},
    [VERDICT_DIALECT] = {"dialect",
                         "The node's device plugin has other resources than those that the pod "
                         "names",
                         true},
    [VERDICT_ISOLATION] = {"isolation",
                           "The node's label cardpack.io/isolation names none that holds for "
                           "the pod, and the pod's cardpack.io/require-isolation asks for it",
                           true},
    [VERDICT_MPS] = {"mps",
                     "MPS serves the GPU devices of the node, one for each process, and the pod "
                     "asks for several",
                     true},
    [VERDICT_UNUSABLE] = {"unusable",
                          "GPU devices of the node are unhealthy, cordoned or set aside", true},
    [VERDICT_CLAIMED] = {"claimed", "ResourceClaims hold GPU devices of the node", true},
    [VERDICT_MODEL] = {"model",
                       "No GPU device of the node is one that cardpack.io/card-model allows", true},
    [VERDICT_UUID] = {"uuid", "No GPU device of the node is one that cardpack.io/card-uuid allows",
                      true},
    [VERDICT_TOO_LARGE] = {"too_large", "Insufficient GPU Memory in one device", true},
    [VERDICT_QUOTA_DENIED] = {"quota_denied", "The quota of the pod's namespace does not allow it",
                              true},
    [VERDICT_TOO_FEW] = {"too_few", "The node has fewer such GPU devices than the pod asks for",
                         true},
    [VERDICT_AFFINITY] =
        {"affinity",
         "The pods of the pod's cardpack.io/card-affinity-group are on another GPU "
         "device",
         true},
    [VERDICT_ANTI_AFFINITY] = {"anti_affinity",
                               "A pod of the pod's cardpack.io/card-anti-affinity-group is on each "
                               "GPU device with room",
                               false},
    [VERDICT_QUOTA] = {"quota", "The quota of the pod's namespace is used up", false},
    [VERDICT_HELD_WHOLE] = {"held_whole", "Each GPU device with room is held whole by another pod",
                            false},
    [VERDICT_NOT_EMPTY] = {"not_empty", "No whole GPU device is free", false},
    [VERDICT_POD_LIMIT] =
        {"pod_limit",
         "As many pods as ack.node.gpu.max-pod allows are on each GPU device with "
         "room",
         false},
    [VERDICT_NO_CORES] = {"no_cores", "Insufficient GPU compute in one device", false},
    [VERDICT_NO_CARD_FREE] = {"no_card_free", "Insufficient GPU Memory in one device", false},
    [VERDICT_PLUGIN_ORDER] = {"plugin_order",
                              "The device plugin would choose a GPU device that the pod may not "
                              "have",
                              false},
    [VERDICT_SWAP] = {"swap",
                      "Waits: the device plugin has not yet acknowledged a pod of the same size on "
                      "another GPU device of the node",
                      true},
    [VERDICT_LOCKED] = {"locked", "Waits: another pod has the lock of the node", true},
    [VERDICT_NODE_FULL] = {"node_full",
                           "Insufficient GPU Memory on the node, beside pods without a "
                           "card and what is not allocatable",
                           false},
    [VERDICT_KEPT] = {"kept",
                      "Room on GPU devices is kept for pods of the same or a higher priority",
                      false},
    [VERDICT_EXCLUSIVE] = {"exclusive",
                           "Pods that ask for nvidia.com/gpu hold GPU devices of the node", false},
    [VERDICT_SHARED] = {"shared",
                        "Pods that ask for aliyun.com/gpu-mem share GPU devices of the node",
                        false},
    [VERDICT_NO_EXCLUSIVE] = {"no_exclusive", "Insufficient nvidia.com/gpu", false},
    [VERDICT_NO_DEVICES] = {"no_devices", "cannot allocate all claims", false},
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

void verdict_counts(struct buf *out, const unsigned counts[static VERDICT_COUNT])
{
    const char *between = "";
    for (unsigned v = VERDICT_FITS + 1; v < VERDICT_COUNT; v++) {
        if (counts[v] == 0)
            continue;
        buf_printf(out, "%s%s: %u", between, verdict_name((enum verdict)v), counts[v]);
        between = ", ";
    }
}

static const char *verdict_text(enum verdict v, enum dialect d)
{
    enum dialect_match match = dialect_facts(d)->match;
    assert((unsigned)v < VERDICT_COUNT);
    if (v == VERDICT_SWAP && (match == DIALECT_MATCH_LOCK || match == DIALECT_MATCH_ORDER))
        return "Waits: the device plugin has not yet acknowledged another pod of the node";
    if (v == VERDICT_POD_LIMIT && dialect_has_uuids(d))
        return "As many pods as the device plugin or ack.node.gpu.max-pod allows are on each GPU "
               "device with room";
    return table[v].text;
}

struct str verdict_reason(enum verdict v, struct str node, struct buf *scratch)
{
    return verdict_reason_in(v, DIALECT_OWN, node, scratch);
}

struct str verdict_reason_in(enum verdict v, enum dialect d, struct str node, struct buf *scratch)
{
    struct str text = str_of(verdict_text(v, d));
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
