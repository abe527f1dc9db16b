/* The table of dialects. */
#include "core/dialect/dialect.h"

#include "core/dialect/gpushare.h"

static const struct dialect_facts table[DIALECT_COUNT] = {
    [DIALECT_GPUSHARE] = {.name = STR("gpushare"),
                          .mem = GPUSHARE_RESOURCE_MEM,
                          .cores = GPUSHARE_RESOURCE_CORES,
                          .count = GPUSHARE_RESOURCE_COUNT,
                          .idx = GPUSHARE_ANNOTATION_IDX,
                          .assigned = GPUSHARE_ANNOTATION_ASSIGNED,
                          .assume_time = GPUSHARE_ANNOTATION_ASSUME_TIME,
                          .unit = "GiB or MiB",
                          .match = DIALECT_MATCH_SUM,
                          .inits = true},
    [DIALECT_VOLCANO] = {.name = STR("volcano"),
                         .mem = STR("volcano.sh/gpu-memory"),
                         .count = STR("volcano.sh/gpu-number"),
                         .idx = STR("volcano.sh/gpu-index"),
                         .assigned = STR("volcano.sh/gpu-assigned"),
                         .assume_time = STR("volcano.sh/predicate-time"),
                         .unhealthy = STR("volcano.sh/gpu-unhealthy-ids"),
                         .unit = "MiB, or --gpu-memory-factor MiB",
                         .match = DIALECT_MATCH_MEM,
                         .one = true},
    [DIALECT_ELASTIC] = {.name = STR("elastic"),
                         .mem = STR("elasticgpu.io/gpu-memory"),
                         .cores = STR("elasticgpu.io/gpu-core"),
                         .seat = STR("elasticgpu.io/container-"),
                         .unit = "MiB",
                         .match = DIALECT_MATCH_IDS,
                         .multiple = true},
    [DIALECT_TENCENT] = {.name = STR("tencent"),
                         .mem = STR("tencent.com/vcuda-memory"),
                         .cores = STR("tencent.com/vcuda-core"),
                         .seat = STR("tencent.com/predicate-gpu-idx-"),
                         .assigned = STR("tencent.com/gpu-assigned"),
                         .assume_time = STR("tencent.com/predicate-time"),
                         .unit = "256 MiB",
                         .match = DIALECT_MATCH_ORDER,
                         .multiple = true,
                         .both = true},
    [DIALECT_VGPU] = {.name = STR("volcano-vgpu"),
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
                      .lingers = true},
    [DIALECT_HAMI] = {.name = STR("hami"),
                      .mem = STR("nvidia.com/gpumem"),
                      .cores = STR("nvidia.com/gpucores"),
                      .count = STR("nvidia.com/gpu"),
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
                      .inits = true},
};

static unsigned used = DIALECT_BIT(DIALECT_GPUSHARE);

const struct dialect_facts *dialect_facts(enum dialect d)
{
    assert((unsigned)d < DIALECT_COUNT);
    return &table[d];
}

bool dialect_has_uuids(enum dialect d)
{
    return dialect_facts(d)->table.p != NULL;
}

struct str dialect_waits(enum dialect d)
{
    return dialect_has_uuids(d) ? STR("allocating") : STR("false");
}

struct str dialect_served(enum dialect d)
{
    return dialect_has_uuids(d) ? STR("success") : STR("true");
}

bool dialect_parse(struct str name, enum dialect *ret)
{
    for (unsigned d = 0; d < DIALECT_COUNT; d++) {
        if (str_eq(name, table[d].name)) {
            *ret = (enum dialect)d;
            return true;
        }
    }
    return false;
}

bool dialects_parse(struct str list, unsigned *ret, struct str *ret_bad)
{
    unsigned set = 0;
    struct str rest = list;
    *ret_bad = STR_NULL;
    while (rest.n > 0) {
        struct str name;
        enum dialect d;
        (void)str_cut(rest, ',', &name, &rest);
        name = str_trim(name);
        if (!dialect_parse(name, &d) || (set & DIALECT_BIT(d)) != 0) {
            *ret_bad = name;
            return false;
        }
        set |= DIALECT_BIT(d);
    }
    *ret = set;
    return set != 0;
}

void dialects_write(unsigned set, struct buf *out)
{
    const char *between = "";
    for (unsigned d = 0; d < DIALECT_COUNT; d++) {
        if ((set & DIALECT_BIT(d)) == 0)
            continue;
        buf_printf(out, "%s%.*s", between, STR_ARG(table[d].name));
        between = ",";
    }
}

void dialects_use(unsigned set)
{
    assert(set != 0 && set < DIALECT_BIT(DIALECT_COUNT));
    used = set;
}

bool dialect_is_used(enum dialect d)
{
    return (used & DIALECT_BIT(d)) != 0;
}
