/*
 * What other projects' device plugins call beside cardpack-node: of an older driver's interface,
 * and functions that cardpack has no use for. Figures that no test needs are "not supported", which
 * a driver may answer for them.
 */
#include "world.h"

#include <stdio.h>
#include <string.h>

#define NOT_SUPPORTED 3

struct event_data; /* of nvml.c; the older one ends before the slice */

struct old_event {
    struct nvmlDevice *device;
    unsigned long long type, data;
};

struct new_event {
    struct old_event old;
    unsigned int gi, ci;
};

struct old_process {
    unsigned int pid;
    unsigned long long bytes;
};

int nvmlInit_v2(void);
int nvmlDeviceGetCount_v2(unsigned int *ret);
int nvmlDeviceGetHandleByIndex_v2(unsigned int i, struct nvmlDevice **ret);
int nvmlEventSetWait_v2(void *set, struct new_event *ret, unsigned int timeout_ms);

EXPORT int nvmlInit(void);
EXPORT int nvmlInitWithFlags(unsigned int flags);
EXPORT int nvmlDeviceGetCount(unsigned int *ret);
EXPORT int nvmlDeviceGetHandleByIndex(unsigned int i, struct nvmlDevice **ret);
EXPORT int nvmlDeviceGetHandleByUUID(const char *uuid, struct nvmlDevice **ret);
EXPORT int nvmlDeviceGetIndex(struct nvmlDevice *d, unsigned int *ret);
EXPORT int nvmlDeviceGetTopologyCommonAncestor(struct nvmlDevice *a, struct nvmlDevice *b,
                                               int *ret);
EXPORT int nvmlDeviceGetMultiGpuBoard(struct nvmlDevice *d, unsigned int *ret);
EXPORT int nvmlDeviceGetComputeRunningProcesses(struct nvmlDevice *d, unsigned int *n,
                                                struct old_process *ret);
EXPORT int nvmlDeviceGetCudaComputeCapability(struct nvmlDevice *d, int *major, int *minor);
EXPORT int nvmlDeviceGetArchitecture(struct nvmlDevice *d, unsigned int *ret);
EXPORT int nvmlSystemGetCudaDriverVersion(int *ret);
EXPORT int nvmlSystemGetCudaDriverVersion_v2(int *ret);
EXPORT int nvmlEventSetWait(void *set, struct old_event *ret, unsigned int timeout_ms);

int nvmlInit(void)
{
    return nvmlInit_v2();
}

int nvmlInitWithFlags(unsigned int flags)
{
    (void)flags;
    return nvmlInit_v2();
}

int nvmlDeviceGetCount(unsigned int *ret)
{
    return nvmlDeviceGetCount_v2(ret);
}

int nvmlDeviceGetHandleByIndex(unsigned int i, struct nvmlDevice **ret)
{
    return nvmlDeviceGetHandleByIndex_v2(i, ret);
}

int nvmlDeviceGetHandleByUUID(const char *uuid, struct nvmlDevice **ret)
{
    world_begin();
    for (unsigned int i = 0; i < world.n; i++)
        if (strcmp(world.cards[i].uuid, uuid) == 0) {
            *ret = world_handle(world.cards[i].uuid);
            return world_end(0);
        }
    return world_end(6);
}

int nvmlDeviceGetIndex(struct nvmlDevice *d, unsigned int *ret)
{
    CARD_CALL(d, *ret = (unsigned int)(c - world.cards));
}

int nvmlDeviceGetTopologyCommonAncestor(struct nvmlDevice *a, struct nvmlDevice *b, int *ret)
{
    (void)a;
    (void)b;
    *ret = 40; /* the same NUMA node */
    return 0;
}

int nvmlDeviceGetMultiGpuBoard(struct nvmlDevice *d, unsigned int *ret)
{
    CARD_CALL(d, *ret = 0);
}

int nvmlDeviceGetComputeRunningProcesses(struct nvmlDevice *d, unsigned int *n,
                                         struct old_process *ret)
{
    (void)ret;
    CARD_CALL(d, *n = 0);
}

int nvmlDeviceGetCudaComputeCapability(struct nvmlDevice *d, int *major, int *minor)
{
    CARD_CALL(d, (*major = 8, *minor = 0));
}

int nvmlDeviceGetArchitecture(struct nvmlDevice *d, unsigned int *ret)
{
    CARD_CALL(d, *ret = 7);
}

int nvmlSystemGetCudaDriverVersion(int *ret)
{
    *ret = 12040;
    return 0;
}

int nvmlSystemGetCudaDriverVersion_v2(int *ret)
{
    return nvmlSystemGetCudaDriverVersion(ret);
}

int nvmlEventSetWait(void *set, struct old_event *ret, unsigned int timeout_ms)
{
    struct new_event e = {};
    int code = nvmlEventSetWait_v2(set, &e, timeout_ms);
    *ret = e.old;
    return code;
}

#define REFUSES(name)         \
    EXPORT int name(void);    \
    int name(void)            \
    {                         \
        return NOT_SUPPORTED; \
    }

REFUSES(nvmlDeviceGetPowerManagementLimit)
REFUSES(nvmlDeviceGetBAR1MemoryInfo)
REFUSES(nvmlDeviceGetMaxPcieLinkGeneration)
REFUSES(nvmlDeviceGetMaxPcieLinkWidth)
REFUSES(nvmlDeviceGetMaxClockInfo)
REFUSES(nvmlDeviceSetComputeMode)
REFUSES(nvmlDeviceGetEccMode)
REFUSES(nvmlDeviceClearEccErrorCounts)
REFUSES(nvmlDeviceGetProcessUtilization)
REFUSES(nvmlDeviceGetSamples)
REFUSES(nvmlDeviceGetNvLinkState)
REFUSES(nvmlDeviceGetNvLinkRemotePciInfo_v2)
REFUSES(nvmlDeviceGetP2PStatus)
