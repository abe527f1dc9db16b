/*
 * CUDA's driver API, by dlopen: no header and no library of CUDA is needed to build this.
 * Signatures and the versions in the names are those of cuda.h of CUDA 12 and 13, whose libraries
 * have them all. Kernels are text (PTX), which the driver compiles for its card.
 */
#include "probe.h"

#include <dlfcn.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#define CUDA_OK            0
#define CUDA_OUT_OF_MEMORY 2
#define CUDA_PROCESSORS    16                 /* the attribute that counts multiprocessors */
#define SPIN_CYCLES        UINT64_C(50000000) /* some 30 ms */

typedef int cu_device;
typedef unsigned long long cu_pointer;

static struct {
    int (*init)(unsigned int flags);
    int (*device)(cu_device *ret, int ordinal);
    int (*attribute)(int *ret, int attribute, cu_device device);
    int (*context)(void **ret, cu_device device);
    int (*current)(void *context);
    int (*allocate)(cu_pointer *ret, size_t bytes);
    int (*memory)(size_t *ret_free, size_t *ret_total);
    int (*load)(void **ret, const void *image);
    int (*function)(void **ret, void *module, const char *name);
    int (*launch)(void *function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                  unsigned int block_x, unsigned int block_y, unsigned int block_z,
                  unsigned int shared, void *stream, void **params, void **extra);
    int (*wait)(void);
} cu;

static const struct {
    const char *name;
    void *at;
} symbols[] = {
    {"cuInit", &cu.init},
    {"cuDeviceGet", &cu.device},
    {"cuDeviceGetAttribute", &cu.attribute},
    {"cuDevicePrimaryCtxRetain", &cu.context},
    {"cuCtxSetCurrent", &cu.current},
    {"cuMemAlloc_v2", &cu.allocate},
    {"cuMemGetInfo_v2", &cu.memory},
    {"cuModuleLoadData", &cu.load},
    {"cuModuleGetFunction", &cu.function},
    {"cuLaunchKernel", &cu.launch},
    {"cuCtxSynchronize", &cu.wait},
};

static const char ptx[] =
    ".version 6.0\n.target sm_50\n.address_size 64\n"
    ".visible .entry store_badly() {\n"
    "    .reg .b64 %to; .reg .b32 %what;\n"
    "    mov.u64 %to, 16; mov.u32 %what, 1; st.global.u32 [%to], %what; ret;\n"
    "}\n"
    ".visible .entry spin(.param .u64 cycles) {\n"
    "    .reg .b64 %limit, %begin, %now; .reg .pred %more;\n"
    "    ld.param.u64 %limit, [cycles]; mov.u64 %begin, %clock64;\n"
    "again:\n"
    "    mov.u64 %now, %clock64; sub.u64 %now, %now, %begin;\n"
    "    setp.lt.u64 %more, %now, %limit; @%more bra again; ret;\n"
    "}\n";

/* Says what failed, as the first line of a client. */
static int failed(const char *call, int code)
{
    (void)printf("%s %s %d\n", code == CUDA_OUT_OF_MEMORY ? "refused" : "failed", call, code);
    return 1;
}

static int open_cuda(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    void *context = NULL;
    cu_device device = 0;
    if (library == NULL) {
        (void)printf("absent %s\n", dlerror());
        return 1;
    }
    for (size_t i = 0; i < COUNT_OF(symbols); i++) {
        void *found = dlsym(library, symbols[i].name);
        if (found == NULL) {
            (void)printf("absent libcuda.so.1 has no %s\n", symbols[i].name);
            return 1;
        }
        memcpy(symbols[i].at, &found, sizeof(found));
    }
    int code = cu.init(0);
    if (code != CUDA_OK)
        return failed("cuInit", code);
    code = cu.device(&device, 0);
    if (code != CUDA_OK)
        return failed("cuDeviceGet", code);
    code = cu.context(&context, device);
    if (code != CUDA_OK)
        return failed("cuDevicePrimaryCtxRetain", code);
    code = cu.current(context);
    return code == CUDA_OK ? 0 : failed("cuCtxSetCurrent", code);
}

static int get_kernel(const char *name, void **ret)
{
    void *module = NULL;
    int code = cu.load(&module, ptx);
    if (code != CUDA_OK)
        return failed("cuModuleLoadData", code);
    code = cu.function(ret, module, name);
    return code == CUDA_OK ? 0 : failed("cuModuleGetFunction", code);
}

static int run_kernel(void *kernel, void **params)
{
    int code = cu.launch(kernel, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL);
    return code != CUDA_OK ? code : cu.wait();
}

/* Whoever has started us has ended, or wants us to. */
static bool input_ended(void)
{
    char byte = 0;
    struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};
    return poll(&p, 1, 0) > 0 && read(STDIN_FILENO, &byte, 1) <= 0;
}

int role_client(uint64_t mib, uint64_t seconds)
{
    cu_pointer memory = 0;
    size_t bytes_free = 0;
    size_t total = 0;
    uint64_t cycles = SPIN_CYCLES;
    void *params[] = {&cycles};
    void *kernel = NULL;
    unsigned kernels = 0;
    int processors = 0;
    if (open_cuda() != 0 || get_kernel("spin", &kernel) != 0)
        return 1;
    int code = mib == 0 ? CUDA_OK : cu.allocate(&memory, (size_t)mib << 20);
    if (code != CUDA_OK)
        return failed("cuMemAlloc", code);
    code = run_kernel(kernel, params); /* "ready" says that kernels run */
    if (code != CUDA_OK)
        return failed("a kernel", code);
    (void)cu.memory(&bytes_free, &total);
    (void)cu.attribute(&processors, CUDA_PROCESSORS, 0);
    (void)printf("ready total %zu MiB, free %zu MiB, multiprocessors %d\n", total >> 20,
                 bytes_free >> 20, processors);
    (void)fflush(stdout);
    uint64_t until = now_ms() + 1000 * seconds;
    while (code == CUDA_OK && now_ms() < until && !input_ended()) {
        code = run_kernel(kernel, params);
        kernels += code == CUDA_OK;
    }
    (void)printf("end code %d after %u kernels\n", code, kernels);
    return code == CUDA_OK ? 0 : 1;
}

int role_fault(void)
{
    void *kernel = NULL;
    if (open_cuda() != 0 || get_kernel("store_badly", &kernel) != 0)
        return 1;
    (void)printf("ready stores\n");
    (void)fflush(stdout);
    (void)printf("end code %d\n", run_kernel(kernel, NULL));
    return 0;
}
