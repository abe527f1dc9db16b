/*
 * What the watches over the limits and over MPS need: the double of NVIDIA's library, a loop whose
 * clock only the test moves, and the status of a pod. For the tests that are linked with a wrapped
 * clock_gettime.
 */
#pragma once

#include "gpu/gpu_watch.h"
#include "node/containers/containers.h"
#include "nvml_world.h"

#define REAL_CLOCK
#include "on_loop.h"

#include <time.h>

#define HEX63 "123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define ID(c) c HEX63

static struct {
    struct nvml_world world;
    struct loop *loop;
    struct gpu_watch *gpu;
    struct containers containers;
    unsigned changes;
    uint64_t passed_ms;
    bool deleting; /* the pods that are seen from now on */
} rig;

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret);
int __real_clock_gettime(clockid_t clock, struct timespec *ret);

/* The loop's clock is CLOCK_BOOTTIME. It stands still, so that no timer fires before the test lets
 * the time pass, however slow the machine is. The thread of the watch has the real clock. */
int __wrap_clock_gettime(clockid_t clock, struct timespec *ret)
{
    if (clock != CLOCK_BOOTTIME)
        return __real_clock_gettime(clock, ret);
    *ret = (struct timespec){.tv_sec = 1000000 + (time_t)(rig.passed_ms / 1000)};
    return 0;
}

static inline void rig_changed(void *ctx)
{
    ck_assert_ptr_eq(ctx, &rig);
    rig.changes++;
}

/* A folder in that of the world. */
static inline void rig_make(const char *name, char *ret, size_t size)
{
    (void)snprintf(ret, size, "%s/%s", rig.world.dir, name);
    ck_assert_int_eq(mkdir(ret, 0700), 0);
}

/* The cards; the watch is not running yet. */
static inline void rig_open(const char *world)
{
    memset(&rig, 0, sizeof(rig));
    world_open(&rig.world, world);
    rig.loop = loop_make();
    containers_init(&rig.containers, (struct map_seed){1, 2});
}

/* cgroup: as in struct gpu_watch_settings. */
static inline void rig_watch(const char *cgroup)
{
    struct err e = ERR_INIT;
    struct gpu_watch_settings gpu = {
        .library = NVML_DOUBLE, .cgroup = cgroup, .poll_ms = 20, .wait_ms = 10, .hang_ms = 3600000};
    ck_assert_ok(gpu_watch_new(rig.loop, &gpu, &rig.gpu, &e), &e);
    run_while(rig.loop, gpu_watch_state(rig.gpu).phase != GPU_WATCH_RUNNING);
}

static inline void rig_close(void)
{
    rig.gpu = gpu_watch_free(rig.gpu, 5000);
    containers_done(&rig.containers);
    rig.loop = loop_free(rig.loop);
    world_close(&rig.world);
}

/* What the status of the pod NAMESPACE/NAME says of its container "main"; id NULL: the status has
 * no ID of it; phase "Succeeded": the pod has ended. */
static inline void rig_see(const char *namespace, const char *uid, const char *name, const char *id,
                           const char *state, const char *phase)
{
    char json[512];
    const struct pod_view v = {.uid = str_of(uid),
                               .namespace = str_of(namespace),
                               .name = str_of(name),
                               .phase = str_of(phase),
                               .deleting = rig.deleting};
    (void)snprintf(
        json, sizeof(json),
        "{\"status\":{\"containerStatuses\":[{\"name\":\"main\",\"containerID\":\"%s%s\","
        "\"state\":{\"%s\":{}}}]}}",
        id == NULL ? "" : "containerd://", id == NULL ? "" : id, state);
    containers_set(&rig.containers, &v, str_of(json));
}

static inline void rig_pass_s(uint64_t s)
{
    rig.passed_ms += s * 1000;
    run_turns(rig.loop, 1);
}

/* Until the thread has answered what it was asked before. */
static inline void rig_settle(void)
{
    uint64_t before = gpu_watch_state(rig.gpu).polls;
    run_while(rig.loop, gpu_watch_state(rig.gpu).polls < before + 3);
}
