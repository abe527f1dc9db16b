/* Project-HAMi/HAMi. Its resource for cards has the name of NVIDIA's. */
#include "dialects.h"

#include "core/dialect/gpushare.h"

const struct dialect_facts dialect_hami = {
    .name = STR("hami"),
    .mem = STR("nvidia.com/gpumem"),
    .cores = STR("nvidia.com/gpucores"),
    .count = GPUSHARE_RESOURCE_EXCLUSIVE,
    .percent = STR("nvidia.com/gpumem-percentage"),
    .idx = STR("hami.io/vgpu-devices-allocated"),
    .todo = STR("hami.io/vgpu-devices-to-allocate"),
    .assigned = STR("hami.io/bind-phase"),
    .assume_time = STR("hami.io/vgpu-time"),
    .time = STR("hami.io/bind-time"),
    .node = STR("hami.io/vgpu-node"),
    .table = STR("hami.io/node-nvidia-register"),
    .cordon = STR("hami.io/device-cordon"),
    .lock = STR("hami.io/mutex.lock"),
    .lock_owner = true,
    .unit = "MiB",
    .match = DIALECT_MATCH_LOCK,
    .inits_first = true,
    .inits = true,
};
