/*
 * A double of NVIDIA's management library. The interface is written down here once more, apart from
 * the program's own declarations.
 */
#include "world.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

struct pci {
    char legacy[16];
    unsigned int domain, bus, device, id, subsystem;
    char bus_id[32];
};

struct memory_v2 {
    unsigned int version;
    unsigned long long total, reserved, free, used;
};

struct memory {
    unsigned long long total, free, used;
};

struct event_data {
    struct nvmlDevice *device;
    unsigned long long type, data;
    unsigned int gi, ci;
};

struct attributes {
    unsigned int counts[6], gpu_slices, compute_slices;
    unsigned long long mib;
};

struct field {
    unsigned int id, scope;
    long long timestamp, latency;
    int type, code;
    unsigned long long value;
};

struct process_info {
    unsigned int pid;
    unsigned long long bytes;
    unsigned int gi, ci;
};

struct process_info_long {
    struct process_info info;
    unsigned long long protected_bytes;
};

static char listed[CARDS][TEXT]; /* at the init: NVML lists cards only then */
static unsigned int n_listed;
static char heard[CARDS][TEXT]; /* whose events were registered for */
static unsigned int n_heard;
static unsigned long long seen; /* events up to this number were delivered */

EXPORT int nvmlInit_v2(void);
EXPORT int nvmlShutdown(void);
EXPORT const char *nvmlErrorString(int code);
EXPORT int nvmlSystemGetDriverVersion(char *out, unsigned int n);
EXPORT int nvmlDeviceGetCount_v2(unsigned int *ret);
EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned int i, struct nvmlDevice **ret);
EXPORT int nvmlDeviceGetUUID(struct nvmlDevice *d, char *out, unsigned int n);
EXPORT int nvmlDeviceGetName(struct nvmlDevice *d, char *out, unsigned int n);
EXPORT int nvmlDeviceGetPciInfo_v3(struct nvmlDevice *d, struct pci *ret);
EXPORT int nvmlDeviceGetMemoryInfo(struct nvmlDevice *d, struct memory *ret);
EXPORT int nvmlDeviceGetMinorNumber(struct nvmlDevice *d, unsigned int *ret);
EXPORT int nvmlDeviceGetMemoryInfo_v2(struct nvmlDevice *d, struct memory_v2 *ret);
EXPORT int nvmlDeviceGetMigMode(struct nvmlDevice *d, unsigned int *now, unsigned int *later);
EXPORT int nvmlDeviceGetMaxMigDeviceCount(struct nvmlDevice *d, unsigned int *ret);
EXPORT int nvmlDeviceGetMigDeviceHandleByIndex(struct nvmlDevice *d, unsigned int i,
                                               struct nvmlDevice **ret);
EXPORT int nvmlDeviceGetGpuInstanceId(struct nvmlDevice *d, unsigned int *ret);
EXPORT int nvmlDeviceGetComputeInstanceId(struct nvmlDevice *d, unsigned int *ret);
EXPORT int nvmlDeviceGetAttributes_v2(struct nvmlDevice *d, struct attributes *ret);
EXPORT int nvmlDeviceGetRemappedRows(struct nvmlDevice *d, unsigned int *corrected,
                                     unsigned int *uncorrected, unsigned int *pending,
                                     unsigned int *failure);
EXPORT int nvmlDeviceGetTotalEccErrors(struct nvmlDevice *d, int type, int counter,
                                       unsigned long long *ret);
EXPORT int nvmlDeviceGetRetiredPagesPendingStatus(struct nvmlDevice *d, int *ret);
EXPORT int nvmlDeviceGetFieldValues(struct nvmlDevice *d, int n, struct field *ret);
EXPORT int nvmlDeviceGetUtilizationRates(struct nvmlDevice *d, unsigned int ret[2]);
EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(struct nvmlDevice *d, unsigned int *n,
                                                   struct process_info *ret);
EXPORT int nvmlDeviceGetMPSComputeRunningProcesses_v3(struct nvmlDevice *d, unsigned int *n,
                                                      struct process_info *ret);
EXPORT int nvmlDeviceGetComputeMode(struct nvmlDevice *d, int *ret);
EXPORT int nvmlEventSetCreate(void **ret);
EXPORT int nvmlEventSetFree(void *set);
EXPORT int nvmlDeviceGetSupportedEventTypes(struct nvmlDevice *d, unsigned long long *ret);
EXPORT int nvmlDeviceRegisterEvents(struct nvmlDevice *d, unsigned long long types, void *set);
EXPORT int nvmlEventSetWait_v2(void *set, struct event_data *ret, unsigned int timeout_ms);

int nvmlInit_v2(void)
{
    world_begin();
    if (world.init_error != 0)
        return world_end((int)world.init_error);
    if (world.init_unprivileged != 0 && !world_privileged())
        return world_end((int)world.init_unprivileged);
    world_open_devices();
    inits++;
    n_listed = 0;
    for (unsigned int i = 0; i < world.n; i++)
        if (world.cards[i].error != 15)
            memcpy(listed[n_listed++], world.cards[i].uuid, TEXT);
    return world_end(0);
}

int nvmlShutdown(void)
{
    world_begin();
    int code = inits == 0 ? 1 : 0;
    inits -= inits > 0;
    if (inits == 0)
        world_close_devices();
    return world_end(code);
}

const char *nvmlErrorString(int code)
{
    return code == 9    ? "Driver Not Loaded"
           : code == 15 ? "GPU is lost"
           : code == 16 ? "GPU requires reset"
                        : "Unknown Error";
}

int nvmlSystemGetDriverVersion(char *out, unsigned int n)
{
    (void)snprintf(out, n, "550.54.15");
    return 0;
}

int nvmlDeviceGetCount_v2(unsigned int *ret)
{
    world_begin();
    *ret = n_listed;
    return world_end(inits == 0 ? 1 : (int)world.init_error);
}

int nvmlDeviceGetHandleByIndex_v2(unsigned int i, struct nvmlDevice **ret)
{
    world_begin();
    if (i >= n_listed)
        return world_end(2);
    *ret = world_handle(listed[i]);
    return world_end(0);
}

int nvmlDeviceGetUUID(struct nvmlDevice *d, char *out, unsigned int n)
{
    CARD_CALL(d, (void)snprintf(out, n, "%s", d->uuid));
}

int nvmlDeviceGetName(struct nvmlDevice *d, char *out, unsigned int n)
{
    CARD_CALL(d, (void)snprintf(out, n, "%.40s%s%.40s", c->name, s == NULL ? "" : " MIG ",
                                s == NULL ? "" : s->profile));
}

static void pci(unsigned int bus, struct pci *ret)
{
    *ret = (struct pci){.bus = bus};
    (void)snprintf(ret->legacy, sizeof ret->legacy, "0000:%02X:00.0", bus & 0xff);
    (void)snprintf(ret->bus_id, sizeof ret->bus_id, "00000000:%02X:00.0", bus & 0xff);
}

int nvmlDeviceGetPciInfo_v3(struct nvmlDevice *d, struct pci *ret)
{
    CARD_CALL(d, pci(c->bus, ret));
}

/* NVML tells the memory of a card in MIG mode only to a process with a capability:
 * NVIDIA/k8s-device-plugin issues 399 and 1683. */
static int memory_code(const struct card *c, const struct slice *s)
{
    return c->mig != 0 && s == NULL && !world.mig_monitor ? 4 : (int)c->memory_error;
}

/* MiB. */
static unsigned long long used(const struct card *c)
{
    unsigned long long mib = c->used;
    for (unsigned int i = 0; c->counted != 0 && i < c->n_procs; i++)
        mib += c->procs[i].mib;
    return mib;
}

/* `used` of this version includes what the driver reserves. */
int nvmlDeviceGetMemoryInfo(struct nvmlDevice *d, struct memory *ret)
{
    CARD_CALL(d, (*ret = ((struct memory){c->mib << 20, (c->mib - used(c) - c->reserved) << 20,
                                          (used(c) + c->reserved) << 20}),
                  code = memory_code(c, s)));
}

int nvmlDeviceGetMinorNumber(struct nvmlDevice *d, unsigned int *ret)
{
    CARD_CALL(d, *ret = c->minor);
}

int nvmlDeviceGetMemoryInfo_v2(struct nvmlDevice *d, struct memory_v2 *ret)
{
    if (ret->version != (2U << 24 | 40U))
        return 25;
    CARD_CALL(d, (ret->total = (s == NULL ? c->mib : s->mib) << 20, ret->used = used(c) << 20,
                  ret->reserved = s == NULL ? c->reserved << 20 : 0, code = memory_code(c, s)));
}

int nvmlDeviceGetMigMode(struct nvmlDevice *d, unsigned int *now, unsigned int *later)
{
    CARD_CALL(d, *now = *later = c->mig);
}

int nvmlDeviceGetMaxMigDeviceCount(struct nvmlDevice *d, unsigned int *ret)
{
    CARD_CALL(d, *ret = 7);
}

/* Looks for the card again, which a shift may have changed. */
static void mig_device(const struct nvmlDevice *d, unsigned int i, struct nvmlDevice **ret,
                       int *code)
{
    struct slice *s = NULL;
    if (world.shift == i + 1)
        world_shift();
    const struct card *c = world_find(d, &s);
    if (c != NULL && i < c->n_slices)
        *ret = world_handle(c->slices[i].uuid);
    else
        *code = 6;
}

int nvmlDeviceGetMigDeviceHandleByIndex(struct nvmlDevice *d, unsigned int i,
                                        struct nvmlDevice **ret)
{
    CARD_CALL(d, mig_device(d, i, ret, &code));
}

int nvmlDeviceGetGpuInstanceId(struct nvmlDevice *d, unsigned int *ret)
{
    CARD_CALL(d, s == NULL ? (void)(code = 3) : (void)(*ret = s->gi));
}

int nvmlDeviceGetComputeInstanceId(struct nvmlDevice *d, unsigned int *ret)
{
    CARD_CALL(d, s == NULL ? (void)(code = 3) : (void)(*ret = s->ci));
}

int nvmlDeviceGetAttributes_v2(struct nvmlDevice *d, struct attributes *ret)
{
    CARD_CALL(d, s == NULL ? (void)(code = 3)
                           : (void)(*ret = (struct attributes){.gpu_slices = 1,
                                                               .compute_slices = 1,
                                                               .mib = s->mib},
                                    code = s->memory_error));
}

int nvmlDeviceGetRemappedRows(struct nvmlDevice *d, unsigned int *corrected,
                              unsigned int *uncorrected, unsigned int *pending,
                              unsigned int *failure)
{
    CARD_CALL(d, (*corrected = *uncorrected = 0, *pending = c->pending, *failure = c->failure,
                  code = c->rows == 0 ? 3 : 0));
}

int nvmlDeviceGetTotalEccErrors(struct nvmlDevice *d, int type, int counter,
                                unsigned long long *ret)
{
    if (type != 1 || counter != 0)
        return 2;
    CARD_CALL(d, *ret = c->anew != 0 && world_started_again() ? 0 : c->ecc);
}

int nvmlDeviceGetRetiredPagesPendingStatus(struct nvmlDevice *d, int *ret)
{
    CARD_CALL(d, *ret = (int)c->pages);
}

/* The call succeeds, and each field has a code of its own. What is unused of the value is not set.
 */
static void fields(const struct card *c, int n, struct field *ret)
{
    for (int i = 0; i < n; i++) {
        ret[i].code = ret[i].id == 230 && c->recovery != NO_VALUE ? 0 : 3;
        ret[i].type = 1;
        if (ret[i].code == 0)
            memcpy(&ret[i].value, &c->recovery, sizeof(c->recovery));
    }
}

int nvmlDeviceGetFieldValues(struct nvmlDevice *d, int n, struct field *ret)
{
    if (n <= 0 || ret == NULL)
        return 2;
    CARD_CALL(d, fields(c, n, ret));
}

int nvmlDeviceGetUtilizationRates(struct nvmlDevice *d, unsigned int ret[2])
{
    CARD_CALL(d, ret[0] = ret[1] = 37);
}

static int processes(const struct process *p, unsigned int n_p, unsigned int *n,
                     struct process_info *ret)
{
    unsigned int room = *n;
    *n = n_p;
    if (room < n_p)
        return 7;
    for (unsigned int i = 0; i < n_p; i++) {
        struct process_info one = {p[i].pid, p[i].mib << 20, NO_VALUE, NO_VALUE};
        if (world.protected_memory != 0)
            ((struct process_info_long *)(void *)ret)[i] = (struct process_info_long){one, 0};
        else
            ret[i] = one;
    }
    return 0;
}

int nvmlDeviceGetComputeRunningProcesses_v3(struct nvmlDevice *d, unsigned int *n,
                                            struct process_info *ret)
{
    CARD_CALL(d, code = processes(c->procs, c->n_procs, n, ret));
}

int nvmlDeviceGetMPSComputeRunningProcesses_v3(struct nvmlDevice *d, unsigned int *n,
                                               struct process_info *ret)
{
    CARD_CALL(d, code = processes(c->mps, c->n_mps, n, ret));
}

int nvmlDeviceGetComputeMode(struct nvmlDevice *d, int *ret)
{
    CARD_CALL(d, *ret = (int)c->compute_mode);
}

int nvmlEventSetCreate(void **ret)
{
    static int set;
    *ret = &set;
    world_begin();
    n_heard = 0;
    return world_end(world.no_events != 0 ? 3 : 0);
}

int nvmlEventSetFree(void *set)
{
    return set == NULL ? 2 : 0;
}

int nvmlDeviceGetSupportedEventTypes(struct nvmlDevice *d, unsigned long long *ret)
{
    CARD_CALL(d, *ret = 0x1f);
}

static unsigned int hears(const char *uuid)
{
    unsigned int i = 0;
    while (i < n_heard && strcmp(heard[i], uuid) != 0)
        i++;
    return i < n_heard;
}

int nvmlDeviceRegisterEvents(struct nvmlDevice *d, unsigned long long types, void *set)
{
    if (set == NULL || (types & ~0x1fULL) != 0)
        return 2;
    CARD_CALL(d, s != NULL             ? (void)(code = 2)
                 : hears(d->uuid) == 0 ? (void)memcpy(heard[n_heard++], d->uuid, TEXT)
                                       : (void)0);
}

/* The next event by its number, of a card that was registered. */
static int next(struct event_data *ret)
{
    for (unsigned int i = 0; i < world.n_events; i++) {
        const struct event *e = &world.events[i];
        if (e->number <= seen)
            continue;
        seen = e->number;
        if (hears(e->uuid) == 0)
            continue;
        *ret = (struct event_data){world_handle(e->uuid), 0x8, e->xid, e->gi, NO_VALUE};
        return 0;
    }
    return 10;
}

int nvmlEventSetWait_v2(void *set, struct event_data *ret, unsigned int timeout_ms)
{
    const struct timespec step = {.tv_nsec = 5000000};
    for (unsigned int waited = 0;; waited += 5) {
        world_begin();
        int code = set == NULL ? 2 : next(ret);
        if (world_end(code) != 10 || waited >= timeout_ms)
            return code;
        (void)nanosleep(&step, NULL);
    }
}
