/* tkestack/gpu-manager. It chooses the card by itself, and refuses a pod for which gpu-admission
 * has chosen another one. */
#include "dialects.h"

const struct dialect_facts dialect_tencent = {
    .name = STR("tencent"),
    .mem = STR("tencent.com/vcuda-memory"),
    .cores = STR("tencent.com/vcuda-core"),
    .seat = STR("tencent.com/predicate-gpu-idx-"),
    .seat_index = true,
    .assigned = STR("tencent.com/gpu-assigned"),
    .assume_time = STR("tencent.com/predicate-time"),
    .node = STR("tencent.com/predicate-node"),
    .unit = "256 MiB",
    .match = DIALECT_MATCH_ORDER,
    .multiple = true,
    .both = true,
};
