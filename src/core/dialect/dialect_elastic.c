/* elastic-ai/elastic-gpu-agent, plugin "gpushare". Its scheduler writes an annotation for each
 * container, with the container's name in its key. */
#include "dialects.h"

const struct dialect_facts dialect_elastic = {
    .name = STR("elastic"),
    .mem = STR("elasticgpu.io/gpu-memory"),
    .cores = STR("elasticgpu.io/gpu-core"),
    .seat = STR("elasticgpu.io/container-"),
    .assumed = STR("elasticgpu.io/assumed"),
    .unit = "MiB",
    .match = DIALECT_MATCH_IDS,
    .multiple = true,
};
