/* One limit: read, and if it is absent or too large, set and read again. */
#include "gpu/gpu_limit.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define PROBE_BYTES (UINT64_C(64) << 20)

static void gpu_limit_fail(const struct nvml *n, const char *call, int code, struct gpu_limit *ret)
{
    switch (code) {
    case NVML_OPERATING_SYSTEM:
        ret->outcome = GPU_LIMIT_NO_GROUP;
        break;
    case NVML_GPU_IS_LOST:
    case NVML_RESET_REQUIRED:
        ret->outcome = GPU_LIMIT_NO_CARD;
        break;
    case NVML_UNINITIALIZED:
    case NVML_DRIVER_NOT_LOADED:
    case NVML_TIMEOUT:
    case NVML_UNKNOWN:
        ret->outcome = GPU_LIMIT_UNKNOWN;
        break;
    default:
        ret->outcome = GPU_LIMIT_ABSENT;
        break;
    }
    (void)snprintf(ret->why, sizeof(ret->why), "%s: NVML error %d (%s)", call, code,
                   nvml_text(n, code));
}

/* Whether the limit reads back; the outcome is set if NVML gives no answer. */
static bool gpu_limit_read(const struct nvml *n, struct nvml_device *d, const char *cgroup,
                           uint64_t bytes, struct gpu_limit *ret)
{
    struct nvml_limits now = {.hard = NVML_LIMIT_NONE};
    int code = nvml_limits_get(n, d, cgroup, &now);
    ret->outcome = GPU_LIMIT_ABSENT;
    ret->bytes = NVML_LIMIT_NONE;
    if (code == NVML_OK)
        ret->bytes = now.hard;
    else if (code != NVML_NOT_FOUND)
        gpu_limit_fail(n, "nvmlDeviceGetMemoryLimits", code, ret);
    return code == NVML_OK && now.hard <= bytes;
}

void gpu_limit_ensure(const struct nvml *n, struct nvml_device *d, const char *cgroup,
                      uint64_t bytes, struct gpu_limit *ret)
{
    *ret = (struct gpu_limit){.bytes = NVML_LIMIT_NONE};
    if (gpu_limit_read(n, d, cgroup, bytes, ret)) {
        ret->outcome = GPU_LIMIT_THERE;
        return;
    }
    if (ret->why[0] != '\0')
        return;
    int code = nvml_limits_set(n, d, cgroup, 0, bytes);
    if (code != NVML_OK) {
        gpu_limit_fail(n, "nvmlDeviceSetMemoryLimits", code, ret);
        return;
    }
    if (gpu_limit_read(n, d, cgroup, bytes, ret))
        ret->outcome = GPU_LIMIT_SET;
    else if (ret->why[0] == '\0' && ret->bytes == NVML_LIMIT_NONE)
        (void)snprintf(ret->why, sizeof(ret->why), "the limit was set, and reads back as none");
    else if (ret->why[0] == '\0')
        (void)snprintf(ret->why, sizeof(ret->why),
                       "the limit was set, and reads back as %" PRIu64 " MiB", ret->bytes >> 20);
}

int gpu_limit_probe(const struct nvml *n, struct nvml_device *d, const char *cgroup)
{
    char leaf[PATH_MAX];
    struct nvml_limits now = {.hard = NVML_LIMIT_NONE};
    int code = nvml_limits_get(n, d, cgroup, &now);
    int length = snprintf(leaf, sizeof(leaf), "%s/cardpack-probe-%d", cgroup, (int)getpid());
    if (code != NVML_NOT_SUPPORTED || length < 0 || (size_t)length >= sizeof(leaf) ||
        mkdir(leaf, S_IRWXU) != 0)
        return code;
    if (nvml_limits_set(n, d, leaf, 0, PROBE_BYTES) == NVML_OK) {
        if (nvml_limits_get(n, d, leaf, &now) == NVML_OK && now.hard == PROBE_BYTES)
            code = NVML_NOT_FOUND;
        (void)nvml_limits_set(n, d, leaf, 0, NVML_LIMIT_NONE);
    }
    (void)rmdir(leaf);
    return code;
}
