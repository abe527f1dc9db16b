/* Project-HAMi/volcano-vgpu-device-plugin, which comes from HAMi's. It serves the oldest pod with
 * bind-phase "allocating", also one that has ended. */
#include "dialects.h"

const struct dialect_facts dialect_vgpu = {
    .name = STR("volcano-vgpu"),
    .mem = STR("volcano.sh/vgpu-memory"),
    .cores = STR("volcano.sh/vgpu-cores"),
    .count = STR("volcano.sh/vgpu-number"),
    .percent = STR("volcano.sh/vgpu-memory-percentage"),
    .idx = STR("volcano.sh/vgpu-ids-new"),
    .todo = STR("volcano.sh/devices-to-allocate"),
    .assigned = STR("volcano.sh/bind-phase"),
    .assume_time = STR("volcano.sh/vgpu-time"),
    .time = STR("volcano.sh/bind-time"),
    .node = STR("volcano.sh/vgpu-node"),
    .table = STR("volcano.sh/node-vgpu-register"),
    .lock = STR("hamivgpu"),
    .unit = "MiB, or gpuMemoryFactor MiB",
    .match = DIALECT_MATCH_LOCK,
    .one = true,
    .lingers = true,
};
