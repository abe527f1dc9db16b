/*
 * The interface of libnvidia-ml.so.1, declared from NVIDIA's documents: names, arguments and the
 * layout of structs. Where a function has several versions, the newest that the library has is
 * used, and its struct begins with the fields of the older ones, so that one layout serves all.
 *
 * Versions that are in use: R450 and later have every name of the first column below but for
 * nvmlDeviceGetMemoryInfo_v2 (R510), nvmlDeviceGetComputeRunningProcesses_v3 and
 * nvmlDeviceGetMPSComputeRunningProcesses_v3 (R510), and the limits of memory (R615).
 */
#include "gpu/nvml.h"

#include "base/mem.h"

#include <dlfcn.h>
#include <stdio.h>

/* What the library reads and writes. */
struct abi_pci {
    char old_id[16];
    unsigned int domain;
    unsigned int bus;
    unsigned int device;
    unsigned int device_id;
    unsigned int subsystem_id;
    char id[32];
};

struct abi_memory {
    unsigned long long total;
    unsigned long long free;
    unsigned long long used;
};

struct abi_memory_v2 {
    unsigned int version; /* the size of this struct, and in the highest byte the version, 2 */
    unsigned long long total;
    unsigned long long reserved;
    unsigned long long free;
    unsigned long long used;
};

struct abi_event {
    struct nvml_device *device;
    unsigned long long type;
    unsigned long long data;
    unsigned int gpu_instance; /* these two since _v2 */
    unsigned int compute_instance;
};

struct abi_attributes {
    unsigned int counts[6];
    unsigned int gpu_slices;
    unsigned int compute_slices;
    unsigned long long memory_mib;
};

struct abi_process_v1 {
    unsigned int pid;
    unsigned long long bytes;
};

struct abi_process {
    unsigned int pid;
    unsigned long long bytes;
    unsigned int gpu_instance;
    unsigned int compute_instance;
};

struct abi_utilisation {
    unsigned int gpu;
    unsigned int memory;
};

struct abi_field {
    unsigned int id;
    unsigned int scope;
    long long timestamp;
    long long latency;
    int type;
    int code; /* of this field */

    union {
        unsigned int u32;
        unsigned long long u64;
    } value;
};

struct abi_set_limits {
    const char *cgroup; /* "nameSpace" */
    unsigned long long soft;
    unsigned long long hard;
};

struct abi_get_limits {
    const char *cgroup; /* the library reads it, and writes the rest */
    unsigned long long soft;
    unsigned long long hard;
    unsigned long long used;
};

static_assert(sizeof(struct abi_pci) == 68, "nvmlPciInfo_t");
static_assert(sizeof(struct abi_memory_v2) == 40, "nvmlMemory_v2_t");
static_assert(sizeof(struct abi_event) == 32, "nvmlEventData_t");
static_assert(sizeof(struct abi_attributes) == 40, "nvmlDeviceAttributes_t");
static_assert(sizeof(struct abi_process_v1) == 16, "nvmlProcessInfo_v1_t");
static_assert(sizeof(struct abi_process) == 24, "nvmlProcessInfo_v2_t");
static_assert(sizeof(struct abi_field) == 40, "nvmlFieldValue_t");
static_assert(sizeof(struct abi_set_limits) == 24, "nvmlDeviceSetMemoryLimits_v1_t");
static_assert(sizeof(struct abi_get_limits) == 32, "nvmlDeviceGetMemoryLimits_v1_t");

#define ABI_MEMORY_V2    (sizeof(struct abi_memory_v2) | (size_t)2 << 24)
#define ABI_UNCORRECTED  1 /* nvmlMemoryErrorType_t */
#define ABI_VOLATILE     0 /* nvmlEccCounterType_t: since the last reset */
#define ABI_PAGES_DOUBLE 1 /* nvmlPageRetirementCause_t: after a double-bit error */
#define ABI_NO_VALUE     (~0ULL)
#define ABI_UNWRITTEN    0x5a
#define ABI_RECOVERY     230 /* NVML_FI_DEV_GET_GPU_RECOVERY_ACTION */

struct abi {
    int (*init)(void);
    int (*shutdown)(void);
    const char *(*error_string)(int);
    int (*driver)(char *, unsigned int);
    int (*count)(unsigned int *);
    int (*by_index)(unsigned int, struct nvml_device **);
    int (*uuid)(struct nvml_device *, char *, unsigned int);
    int (*name)(struct nvml_device *, char *, unsigned int);
    int (*pci)(struct nvml_device *, struct abi_pci *);
    int (*minor)(struct nvml_device *, unsigned int *);
    int (*memory)(struct nvml_device *, struct abi_memory *);
    int (*memory_v2)(struct nvml_device *, struct abi_memory_v2 *);
    int (*mig_mode)(struct nvml_device *, unsigned int *, unsigned int *);
    int (*mig_count)(struct nvml_device *, unsigned int *);
    int (*mig_by_index)(struct nvml_device *, unsigned int, struct nvml_device **);
    int (*gpu_instance)(struct nvml_device *, unsigned int *);
    int (*compute_instance)(struct nvml_device *, unsigned int *);
    int (*attributes)(struct nvml_device *, struct abi_attributes *);
    int (*rows)(struct nvml_device *, unsigned int *, unsigned int *, unsigned int *,
                unsigned int *);
    int (*ecc)(struct nvml_device *, int, int, unsigned long long *);
    int (*pages_pending)(struct nvml_device *, int *);
    int (*fields)(struct nvml_device *, int, struct abi_field *);
    int (*pages)(struct nvml_device *, int, unsigned int *, unsigned long long *);
    int (*utilisation)(struct nvml_device *, struct abi_utilisation *);
    int (*processes)(struct nvml_device *, unsigned int *, struct abi_process *);
    int (*processes_v1)(struct nvml_device *, unsigned int *, struct abi_process_v1 *);
    int (*mps_processes)(struct nvml_device *, unsigned int *, struct abi_process *);
    int (*compute_mode)(struct nvml_device *, int *);
    int (*limits_set)(struct nvml_device *, struct abi_set_limits *);
    int (*limits_get)(struct nvml_device *, struct abi_get_limits *);
    int (*events_new)(struct nvml_events **);
    int (*events_free)(struct nvml_events *);
    int (*events_supported)(struct nvml_device *, unsigned long long *);
    int (*events_register)(struct nvml_device *, unsigned long long, struct nvml_events *);
    int (*events_wait)(struct nvml_events *, struct abi_event *, unsigned int);
};

struct nvml {
    void *library;
    struct abi f;
};

#define AT(member) offsetof(struct abi, member)

static const struct nvml_symbol {
    size_t at;
    const char *names[2]; /* newest first */
    bool needed;
} nvml_symbols[] = {
    {AT(init), {"nvmlInit_v2"}, true},
    {AT(shutdown), {"nvmlShutdown"}, true},
    {AT(count), {"nvmlDeviceGetCount_v2"}, true},
    {AT(by_index), {"nvmlDeviceGetHandleByIndex_v2"}, true},
    {AT(uuid), {"nvmlDeviceGetUUID"}, true},
    {AT(name), {"nvmlDeviceGetName"}, true},
    {AT(pci), {"nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetPciInfo_v2"}, true},
    {AT(minor), {"nvmlDeviceGetMinorNumber"}, true},
    {AT(memory), {"nvmlDeviceGetMemoryInfo"}, true},
    {AT(memory_v2), {"nvmlDeviceGetMemoryInfo_v2"}, false},
    {AT(error_string), {"nvmlErrorString"}, false},
    {AT(driver), {"nvmlSystemGetDriverVersion"}, false},
    {AT(mig_mode), {"nvmlDeviceGetMigMode"}, false},
    {AT(mig_count), {"nvmlDeviceGetMaxMigDeviceCount"}, false},
    {AT(mig_by_index), {"nvmlDeviceGetMigDeviceHandleByIndex"}, false},
    {AT(gpu_instance), {"nvmlDeviceGetGpuInstanceId"}, false},
    {AT(compute_instance), {"nvmlDeviceGetComputeInstanceId"}, false},
    {AT(attributes), {"nvmlDeviceGetAttributes_v2"}, false},
    {AT(rows), {"nvmlDeviceGetRemappedRows"}, false},
    {AT(ecc), {"nvmlDeviceGetTotalEccErrors"}, false},
    {AT(pages_pending), {"nvmlDeviceGetRetiredPagesPendingStatus"}, false},
    {AT(fields), {"nvmlDeviceGetFieldValues"}, false},
    {AT(pages), {"nvmlDeviceGetRetiredPages"}, false},
    {AT(utilisation), {"nvmlDeviceGetUtilizationRates"}, false},
    {AT(processes),
     {"nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2"},
     false},
    {AT(processes_v1), {"nvmlDeviceGetComputeRunningProcesses"}, false},
    {AT(mps_processes),
     {"nvmlDeviceGetMPSComputeRunningProcesses_v3", "nvmlDeviceGetMPSComputeRunningProcesses_v2"},
     false},
    {AT(compute_mode), {"nvmlDeviceGetComputeMode"}, false},
    {AT(limits_set), {"nvmlDeviceSetMemoryLimits_v1"}, false},
    {AT(limits_get), {"nvmlDeviceGetMemoryLimits_v1"}, false},
    {AT(events_new), {"nvmlEventSetCreate"}, false},
    {AT(events_free), {"nvmlEventSetFree"}, false},
    {AT(events_supported), {"nvmlDeviceGetSupportedEventTypes"}, false},
    {AT(events_register), {"nvmlDeviceRegisterEvents"}, false},
    {AT(events_wait), {"nvmlEventSetWait_v2", "nvmlEventSetWait"}, false},
};

static const char *nvml_link(struct nvml *n)
{
    for (size_t i = 0; i < COUNT_OF(nvml_symbols); i++) {
        const struct nvml_symbol *s = &nvml_symbols[i];
        void *found = NULL;
        for (size_t j = 0; j < COUNT_OF(s->names) && found == NULL && s->names[j] != NULL; j++)
            found = dlsym(n->library, s->names[j]);
        if (found == NULL && s->needed)
            return s->names[0];
        /* All pointers have one size, as POSIX requires of dlsym. */
        memcpy((char *)&n->f + s->at, &found, sizeof(found));
    }
    return NULL;
}

enum errc nvml_open(const char *path, struct nvml **ret, struct err *reterr)
{
    struct nvml *n = mem_alloc(sizeof(*n));
    if (n == NULL)
        return err_set(reterr, ERR_NOMEM, "out of memory");
    n->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (n->library == NULL) {
        const char *why = dlerror();
        mem_free(n);
        return err_set(reterr, ERR_NOTFOUND, "%s", why == NULL ? path : why);
    }
    const char *lacks = nvml_link(n);
    if (lacks != NULL) {
        (void)nvml_close(n);
        return err_set(reterr, ERR_CONFLICT, "%s has no function %s: the driver is too old", path,
                       lacks);
    }
    *ret = n;
    return OK;
}

struct nvml *nvml_close(struct nvml *n)
{
    if (n == NULL)
        return NULL;
    (void)dlclose(n->library);
    mem_free(n);
    return NULL;
}

int nvml_init(struct nvml *n)
{
    return n->f.init();
}

int nvml_shutdown(struct nvml *n)
{
    return n->f.shutdown();
}

const char *nvml_text(const struct nvml *n, int code)
{
    const char *text = n->f.error_string == NULL ? NULL : n->f.error_string(code);
    return text == NULL ? "no text for this error" : text;
}

int nvml_driver(const struct nvml *n, char ret[GPU_NAME_BYTES])
{
    ret[0] = '\0';
    return n->f.driver == NULL ? NVML_FUNCTION_NOT_FOUND : n->f.driver(ret, GPU_NAME_BYTES);
}

int nvml_count(const struct nvml *n, uint32_t *ret)
{
    return n->f.count(ret);
}

int nvml_card(const struct nvml *n, uint32_t i, struct nvml_device **ret)
{
    return n->f.by_index(i, ret);
}

int nvml_uuid(const struct nvml *n, struct nvml_device *d, char ret[GPU_UUID_BYTES])
{
    ret[0] = '\0';
    int code = n->f.uuid(d, ret, GPU_UUID_BYTES);
    ret[GPU_UUID_BYTES - 1] = '\0';
    return code;
}

int nvml_name(const struct nvml *n, struct nvml_device *d, char ret[GPU_NAME_BYTES])
{
    ret[0] = '\0';
    int code = n->f.name(d, ret, GPU_NAME_BYTES);
    ret[GPU_NAME_BYTES - 1] = '\0';
    return code;
}

int nvml_pci(const struct nvml *n, struct nvml_device *d, char ret[GPU_PCI_BYTES])
{
    struct abi_pci pci = {.domain = 0};
    int code = n->f.pci(d, &pci);
    /* By the numbers: the text has a short and a long form. */
    if (code == NVML_OK)
        (void)snprintf(ret, GPU_PCI_BYTES, "%08X:%02X:%02X.0", pci.domain, pci.bus & 0xff,
                       pci.device & 0x1f);
    return code;
}

int nvml_minor(const struct nvml *n, struct nvml_device *d, uint32_t *ret)
{
    return n->f.minor(d, ret);
}

int nvml_memory(const struct nvml *n, struct nvml_device *d, struct nvml_memory *ret)
{
    struct abi_memory_v2 new = {.version = (unsigned int)ABI_MEMORY_V2};
    if (n->f.memory_v2 != NULL && n->f.memory_v2(d, &new) == NVML_OK) {
        *ret = (struct nvml_memory){
            .total = new.total, .used = new.used, .free = new.free, .reserved = new.reserved};
        return NVML_OK;
    }
    /* Some drivers have the name and refuse the version. */
    struct abi_memory old = {.total = 0};
    int code = n->f.memory(d, &old);
    if (code == NVML_OK)
        *ret = (struct nvml_memory){.total = old.total, .used = old.used, .free = old.free};
    return code;
}

int nvml_mig_mode(const struct nvml *n, struct nvml_device *d, bool *ret)
{
    unsigned int now = 0;
    unsigned int later = 0;
    int code = n->f.mig_mode == NULL ? NVML_NOT_SUPPORTED : n->f.mig_mode(d, &now, &later);
    if (code == NVML_OK)
        *ret = now != 0;
    return code;
}

int nvml_mig_count(const struct nvml *n, struct nvml_device *d, uint32_t *ret)
{
    return n->f.mig_count == NULL ? NVML_FUNCTION_NOT_FOUND : n->f.mig_count(d, ret);
}

int nvml_mig_device(const struct nvml *n, struct nvml_device *d, uint32_t i,
                    struct nvml_device **ret)
{
    return n->f.mig_by_index == NULL ? NVML_FUNCTION_NOT_FOUND : n->f.mig_by_index(d, i, ret);
}

int nvml_instances(const struct nvml *n, struct nvml_device *slice, uint32_t *ret_gpu,
                   uint32_t *ret_compute)
{
    if (n->f.gpu_instance == NULL || n->f.compute_instance == NULL)
        return NVML_FUNCTION_NOT_FOUND;
    int code = n->f.gpu_instance(slice, ret_gpu);
    return code != NVML_OK ? code : n->f.compute_instance(slice, ret_compute);
}

int nvml_attributes(const struct nvml *n, struct nvml_device *slice, struct nvml_attributes *ret)
{
    struct abi_attributes a = {.gpu_slices = 0};
    int code = n->f.attributes == NULL ? NVML_FUNCTION_NOT_FOUND : n->f.attributes(slice, &a);
    if (code == NVML_OK)
        *ret = (struct nvml_attributes){.gpu_slices = a.gpu_slices,
                                        .compute_slices = a.compute_slices,
                                        .memory_bytes = (uint64_t)a.memory_mib << 20};
    return code;
}

int nvml_rows(const struct nvml *n, struct nvml_device *d, struct nvml_rows *ret)
{
    unsigned int pending = 0;
    unsigned int failure = 0;
    struct nvml_rows rows = {.corrected = 0};
    if (n->f.rows == NULL)
        return NVML_FUNCTION_NOT_FOUND;
    int code = n->f.rows(d, &rows.corrected, &rows.uncorrected, &pending, &failure);
    rows.pending = pending != 0;
    rows.failure = failure != 0;
    if (code == NVML_OK)
        *ret = rows;
    return code;
}

int nvml_uncorrected(const struct nvml *n, struct nvml_device *d, uint64_t *ret)
{
    unsigned long long errors = 0;
    int code = n->f.ecc == NULL ? NVML_FUNCTION_NOT_FOUND
                                : n->f.ecc(d, ABI_UNCORRECTED, ABI_VOLATILE, &errors);
    if (code == NVML_OK)
        *ret = errors;
    return code;
}

int nvml_pages_pending(const struct nvml *n, struct nvml_device *d, bool *ret)
{
    int pending = 0;
    int code =
        n->f.pages_pending == NULL ? NVML_FUNCTION_NOT_FOUND : n->f.pages_pending(d, &pending);
    if (code == NVML_OK)
        *ret = pending != 0;
    return code;
}

int nvml_recovery(const struct nvml *n, struct nvml_device *d, uint32_t *ret)
{
    struct abi_field field = {.id = ABI_RECOVERY, .code = NVML_NOT_SUPPORTED};
    int code = n->f.fields == NULL ? NVML_FUNCTION_NOT_FOUND : n->f.fields(d, 1, &field);
    if (code == NVML_OK)
        code = field.code;
    if (code == NVML_OK)
        *ret = field.value.u32;
    return code;
}

int nvml_retired_pages(const struct nvml *n, struct nvml_device *d, uint32_t *ret)
{
    unsigned int pages = 0;
    if (n->f.pages == NULL)
        return NVML_FUNCTION_NOT_FOUND;
    /* Asked for the number alone, the library answers that there is no room for the addresses. */
    int code = n->f.pages(d, ABI_PAGES_DOUBLE, &pages, NULL);
    if (code == NVML_INSUFFICIENT_SIZE)
        code = NVML_OK;
    if (code == NVML_OK)
        *ret = pages;
    return code;
}

int nvml_utilisation(const struct nvml *n, struct nvml_device *d, uint32_t *ret_gpu,
                     uint32_t *ret_memory)
{
    struct abi_utilisation u = {.gpu = 0};
    int code = n->f.utilisation == NULL ? NVML_FUNCTION_NOT_FOUND : n->f.utilisation(d, &u);
    if (code == NVML_OK) {
        *ret_gpu = u.gpu;
        *ret_memory = u.memory;
    }
    return code;
}

static struct nvml_process nvml_process_of(const struct abi_process *p)
{
    return (struct nvml_process){
        .pid = p->pid,
        .bytes = p->bytes == ABI_NO_VALUE ? NVML_BYTES_UNKNOWN : p->bytes,
        .gpu_instance = p->gpu_instance,
        .compute_instance = p->compute_instance,
    };
}

/* The size of a struct in a list of n. Some drivers of R535 write one under the same name that has
 * a number more; then the last bytes of n longer ones are written. */
static size_t nvml_process_step(const char *list, uint32_t n)
{
    const size_t longer = sizeof(struct abi_process) + sizeof(unsigned long long);
    for (size_t i = 1; n > 0 && i <= sizeof(unsigned long long); i++)
        if (list[n * longer - i] != ABI_UNWRITTEN)
            return longer;
    return sizeof(struct abi_process);
}

/* One of the two functions; the other is NULL. */
static int
nvml_process_list(int (*new_f)(struct nvml_device *, unsigned int *, struct abi_process *),
                  int (*old_f)(struct nvml_device *, unsigned int *, struct abi_process_v1 *),
                  struct nvml_device *d, struct nvml_process *ret, uint32_t *n_ret)
{
    uint32_t room = *n_ret;
    assert(room > 0 && room <= LIMIT_GPU_PROCESSES);
    if (new_f == NULL && old_f == NULL)
        return NVML_FUNCTION_NOT_FOUND;
    size_t size = (size_t)room * 2 * sizeof(struct abi_process);
    char *list = mem_alloc(size);
    if (list == NULL)
        return NVML_MEMORY;
    memset(list, ABI_UNWRITTEN, size);
    int code = new_f != NULL ? new_f(d, n_ret, (struct abi_process *)(void *)list)
                             : old_f(d, n_ret, (struct abi_process_v1 *)(void *)list);
    uint32_t n = code == NVML_OK ? MIN_OF(room, *n_ret) : 0;
    size_t step = new_f != NULL ? nvml_process_step(list, n) : sizeof(struct abi_process_v1);
    for (uint32_t i = 0; i < n; i++) {
        struct abi_process one = {.gpu_instance = NVML_NO_INSTANCE,
                                  .compute_instance = NVML_NO_INSTANCE};
        /* The longest begins with the others. */
        memcpy(&one, list + i * step, MIN_OF(step, sizeof(one)));
        ret[i] = nvml_process_of(&one);
    }
    mem_free(list);
    return code;
}

int nvml_processes(const struct nvml *n, struct nvml_device *d, struct nvml_process *ret,
                   uint32_t *n_ret)
{
    return nvml_process_list(n->f.processes, n->f.processes_v1, d, ret, n_ret);
}

int nvml_mps_processes(const struct nvml *n, struct nvml_device *d, struct nvml_process *ret,
                       uint32_t *n_ret)
{
    return nvml_process_list(n->f.mps_processes, NULL, d, ret, n_ret);
}

int nvml_compute_mode(const struct nvml *n, struct nvml_device *d, enum nvml_compute_mode *ret)
{
    int mode = 0;
    int code = n->f.compute_mode == NULL ? NVML_FUNCTION_NOT_FOUND : n->f.compute_mode(d, &mode);
    if (code == NVML_OK)
        *ret = (enum nvml_compute_mode)mode;
    return code;
}

int nvml_limits_set(const struct nvml *n, struct nvml_device *d, const char *cgroup, uint64_t soft,
                    uint64_t hard)
{
    struct abi_set_limits l = {.cgroup = cgroup, .soft = soft, .hard = hard};
    return n->f.limits_set == NULL ? NVML_FUNCTION_NOT_FOUND : n->f.limits_set(d, &l);
}

int nvml_limits_get(const struct nvml *n, struct nvml_device *d, const char *cgroup,
                    struct nvml_limits *ret)
{
    struct abi_get_limits l = {.cgroup = cgroup};
    int code = n->f.limits_get == NULL ? NVML_FUNCTION_NOT_FOUND : n->f.limits_get(d, &l);
    if (code == NVML_OK)
        *ret = (struct nvml_limits){.soft = l.soft, .hard = l.hard, .used = l.used};
    return code;
}

int nvml_events_new(const struct nvml *n, struct nvml_events **ret)
{
    const struct abi *f = &n->f;
    if (f->events_new == NULL || f->events_free == NULL || f->events_wait == NULL ||
        f->events_register == NULL || f->events_supported == NULL)
        return NVML_FUNCTION_NOT_FOUND;
    return f->events_new(ret);
}

void nvml_events_free(const struct nvml *n, struct nvml_events *s)
{
    if (s != NULL)
        (void)n->f.events_free(s);
}

int nvml_events_supported(const struct nvml *n, struct nvml_device *d, uint64_t *ret_types)
{
    unsigned long long types = 0;
    int code = n->f.events_supported(d, &types);
    if (code == NVML_OK)
        *ret_types = types;
    return code;
}

int nvml_events_register(const struct nvml *n, struct nvml_events *s, struct nvml_device *d,
                         uint64_t types)
{
    return n->f.events_register(d, types, s);
}

int nvml_events_wait(const struct nvml *n, struct nvml_events *s, uint32_t timeout_ms,
                     struct nvml_event *ret)
{
    struct abi_event e = {.gpu_instance = NVML_NO_INSTANCE, .compute_instance = NVML_NO_INSTANCE};
    int code = n->f.events_wait(s, &e, timeout_ms);
    if (code == NVML_OK)
        *ret = (struct nvml_event){.device = e.device,
                                   .type = e.type,
                                   .data = e.data,
                                   .gpu_instance = e.gpu_instance,
                                   .compute_instance = e.compute_instance};
    return code;
}
