/*
 * The health of a card, from XIDs (errors that the driver reports) and polls. Pure: the time is an
 * argument.
 *
 * A card that an XID made unhealthy recovers when it has been reset where that is needed, and then
 * answers every poll well for the cooldown. Whether it needs a reset the driver says (NVML's
 * recovery action); where the driver can't, the XID does. Then "reset" means: it did not answer, or
 * its count of uncorrected errors fell while NVML was open, and it answers now.
 */
#pragma once

#include "gpu/gpu_scan.h"

enum gpu_level {
    GPU_HEALTHY,
    GPU_WARNED, /* it works, and should be drained and reset; the reason says why */
    GPU_UNHEALTHY,
};

enum gpu_xid_class {
    GPU_XID_IGNORED, /* an application's own error, or disabled */
    GPU_XID_WARN,
    GPU_XID_UNHEALTHY,
    GPU_XID_NEEDS_RESET, /* unhealthy until a reset, unless the driver knows better */
};

#define GPU_XID_MAX 1024 /* higher numbers count as this one; today's end near 180 */

struct gpu_health_rules {
    uint64_t ignored[GPU_XID_MAX / 64 + 1]; /* one bit an XID */
    bool no_polls;
    uint64_t cooldown_ms;
    uint32_t bad_polls; /* so many failed polls in a row make a card unhealthy */
};

/*
 * DP_DISABLE_HEALTHCHECKS and DP_ENABLE_HEALTHCHECKS as NVIDIA's device plugin reads them, absent
 * if not set: lists with commas of XIDs, "xids" (every XID) and "all" (every XID and the polls). An
 * XID that is enabled is never ignored. Other words are skipped; *ret_bad is the first, absent if
 * there is none.
 */
struct gpu_health_rules gpu_health_rules(struct str disable, struct str enable,
                                         uint64_t cooldown_ms, struct str *ret_bad);

enum gpu_xid_class gpu_health_xid_class(const struct gpu_health_rules *rules, uint64_t xid);

/* All zero: healthy, nothing known. */
struct gpu_health {
    enum gpu_level level;
    char reason[GPU_REASON_BYTES]; /* empty if healthy: "XID 79 (GPU has fallen off the bus)" */

    uint64_t xid;        /* the XID that made it unhealthy; 0: none */
    bool needs_reset;    /* before it may recover */
    bool recovery_known; /* the driver said at the last good poll what the card needs */
    uint32_t recovery;   /* what the driver says; NVML_RECOVERY_NONE also if it says nothing */
    bool reset_required; /* NVML's last answer */
    bool away;           /* it did not answer the last poll */
    bool was_away;       /* it did not answer a poll since the last bad event */
    uint32_t bad;        /* failed polls in a row */
    uint64_t good_since; /* ms; the first good poll in a row; 0: the last was bad */
    uint64_t warned_xid; /* 0: none */
    uint64_t uncorrected;
};

/* Each returns whether the level or the reason has changed. now_ms is positive. */
bool gpu_health_xid(struct gpu_health *h, const struct gpu_health_rules *rules, uint64_t xid,
                    uint64_t now_ms);
bool gpu_health_poll(struct gpu_health *h, const struct gpu_health_rules *rules,
                     const struct gpu_sample *s, uint64_t now_ms);
/* Whether by the driver a reset of the card, and not of the node, is what it waits for. An XID
 * alone does not count: what an older driver knows of its reset would be lost when it is closed. */
bool gpu_health_awaits_reset(const struct gpu_health *h);
/* Whether it won't recover before an administrator has reset it, or done what else the driver says:
 * its reason then says so. */
bool gpu_health_needs_reset(const struct gpu_health *h);
/* NVML does not list the card, or can't describe it: left (NULL: it does not count it). A card that
 * it counts, and whose device node may not be opened, say, was not away. */
bool gpu_health_missing(struct gpu_health *h, const struct gpu_left *left);
