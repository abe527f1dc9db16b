/* volcano-sh/devices: Volcano's device plugin with the strategy "share". */
#include "dialects.h"

const struct dialect_facts dialect_volcano = {
    .name = STR("volcano"),
    .mem = STR("volcano.sh/gpu-memory"),
    .count = STR("volcano.sh/gpu-number"),
    .idx = STR("volcano.sh/gpu-index"),
    .assigned = STR("volcano.sh/gpu-assigned"),
    .assume_time = STR("volcano.sh/predicate-time"),
    .unhealthy = STR("volcano.sh/gpu-unhealthy-ids"),
    .unit = "MiB, or --gpu-memory-factor MiB",
    .match = DIALECT_MATCH_MEM,
    .one = true,
};
