/* AliyunContainerService/gpushare-device-plugin, and cardpack-node, which reads more annotations:
 * see core/dialect/gpushare.h. */
#include "dialects.h"

#include "core/dialect/gpushare.h"

const struct dialect_facts dialect_gpushare = {
    .name = STR("gpushare"),
    .mem = GPUSHARE_RESOURCE_MEM,
    .cores = GPUSHARE_RESOURCE_CORES,
    .count = GPUSHARE_RESOURCE_COUNT,
    .idx = GPUSHARE_ANNOTATION_IDX,
    .assigned = GPUSHARE_ANNOTATION_ASSIGNED,
    .assume_time = GPUSHARE_ANNOTATION_ASSUME_TIME,
    .unit = "GiB or MiB",
    .match = DIALECT_MATCH_SUM,
    .inits = true,
};
