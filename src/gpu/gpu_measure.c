/* Clients of MPS are in a list of their own. */
#include "gpu_measure.h"

#include "base/mem.h"

/* Of the first n; NULL: it is not there. */
static struct nvml_process *gpu_measure_find(const struct gpu_usage *u, uint32_t n,
                                             const struct nvml_process *p)
{
    for (uint32_t i = 0; i < n; i++) {
        if (u->processes[i].pid == p->pid && u->processes[i].gpu_instance == p->gpu_instance &&
            u->processes[i].compute_instance == p->compute_instance)
            return &u->processes[i];
    }
    return NULL;
}

/* A process that is in both lists counts once. */
static int gpu_measure_list(const struct nvml *nvml, struct nvml_device *d, struct gpu_usage *u)
{
    uint32_t n = LIMIT_GPU_PROCESSES;
    int code = nvml_processes(nvml, d, u->processes, &n);
    if (code != NVML_OK)
        return code;
    n = MIN_OF(n, (uint32_t)LIMIT_GPU_PROCESSES);
    uint32_t clients = LIMIT_GPU_PROCESSES - n;
    u->n = n;
    if (clients == 0)
        return NVML_INSUFFICIENT_SIZE;
    code = nvml_mps_processes(nvml, d, u->processes + n, &clients);
    if (code == NVML_NOT_SUPPORTED || code == NVML_FUNCTION_NOT_FOUND)
        return NVML_OK;
    for (uint32_t i = 0; i < clients && code == NVML_OK; i++) {
        struct nvml_process client = u->processes[n + i];
        struct nvml_process *there = gpu_measure_find(u, n, &client);
        if (there == NULL) {
            there = &u->processes[u->n++];
            *there = client;
        }
        there->mps = true;
    }
    u->mps_known = code == NVML_OK;
    return code;
}

int gpu_measure(const struct nvml *n, struct nvml_device *d, struct gpu_usage *u)
{
    struct nvml_memory memory;
    uint32_t busy = 0;
    uint32_t ignored = 0;
    u->processes = mem_alloc(LIMIT_GPU_PROCESSES * sizeof(*u->processes));
    int code = u->processes == NULL ? NVML_MEMORY : gpu_measure_list(n, d, u);
    u->cut = code == NVML_INSUFFICIENT_SIZE;
    if (code != NVML_OK)
        u->n = 0;
    if (code != NVML_OK && !u->cut)
        return code;
    if (nvml_memory(n, d, &memory) == NVML_OK) {
        u->used_bytes = memory.used;
        u->total_bytes = memory.total;
    }
    if (nvml_utilisation(n, d, &busy, &ignored) == NVML_OK)
        u->busy_percent = busy;
    return NVML_OK;
}
