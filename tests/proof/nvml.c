/*
 * NVIDIA's management library, through the module that cardpack-node calls it by (src/gpu/nvml.c),
 * and confined as cardpack-node is (src/io/confine.c). Each line of the input is a question; its
 * answer is a line of JSON, in which "code" is NVML's. What is asked of NVML by its own names here
 * is what the module leaves out.
 */
#include "gpu/nvml.h"
#include "probe.h"

#include "io/confine.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>

#define TYPES (NVML_EVENT_SINGLE_BIT | NVML_EVENT_DOUBLE_BIT | NVML_EVENT_XID)

static struct {
    const char *library;
    uint32_t card;
    struct nvml *nvml;
    struct nvml_device *device;
    struct nvml_events *events;
} p;

/* By its own name, while it is open. */
static void *symbol(const char *name)
{
    void *library = dlopen(p.library, RTLD_NOW | RTLD_NOLOAD);
    void *found = library == NULL ? NULL : dlsym(library, name);
    if (library != NULL)
        (void)dlclose(library);
    return found;
}

static int bring_up(struct err *e)
{
    if (nvml_open(p.library, &p.nvml, e) != OK)
        return -1;
    int code = nvml_init(p.nvml);
    if (code == NVML_OK)
        code = nvml_card(p.nvml, p.card, &p.device);
    if (code != NVML_OK)
        (void)err_set(e, ERR_UNAVAILABLE, "%s", nvml_text(p.nvml, code));
    return code;
}

static void bring_down(void)
{
    nvml_events_free(p.nvml, p.events);
    p.events = NULL;
    (void)nvml_shutdown(p.nvml);
    p.nvml = nvml_close(p.nvml);
}

static void do_open(struct str rest)
{
    struct err e = ERR_INIT;
    uint64_t begin = now_ms();
    (void)rest;
    int code = bring_up(&e);
    (void)printf("{\"code\": %d, \"ms\": %" PRIu64 ", \"why\": \"%s\"}\n", code, now_ms() - begin,
                 e.text);
}

static void do_close(struct str rest)
{
    (void)rest;
    bring_down();
    (void)printf("{}\n");
}

static void do_describe(struct str rest)
{
    char uuid[GPU_UUID_BYTES];
    char name[GPU_NAME_BYTES];
    char pci[GPU_PCI_BYTES] = "";
    char driver[GPU_NAME_BYTES];
    uint32_t minor = 0;
    int cuda = 0;
    bool mig = false;
    enum nvml_compute_mode mode = NVML_COMPUTE_DEFAULT;
    int (*version)(int *) = NULL;
    void *found = symbol("nvmlSystemGetCudaDriverVersion_v2");
    (void)rest;
    memcpy(&version, &found, sizeof(found));
    int codes[] = {nvml_uuid(p.nvml, p.device, uuid), nvml_name(p.nvml, p.device, name),
                   nvml_pci(p.nvml, p.device, pci), nvml_minor(p.nvml, p.device, &minor)};
    (void)nvml_driver(p.nvml, driver);
    (void)nvml_mig_mode(p.nvml, p.device, &mig);
    (void)nvml_compute_mode(p.nvml, p.device, &mode);
    if (version != NULL)
        (void)version(&cuda);
    (void)printf(
        "{\"codes\": [%d, %d, %d, %d], \"uuid\": \"%s\", \"name\": \"%s\", \"pci\": \"%s\", "
        "\"minor\": %u, \"driver\": \"%s\", \"cuda\": \"%d.%d\", \"mig\": %d, \"mode\": %d}\n",
        codes[0], codes[1], codes[2], codes[3], uuid, name, pci, minor, driver, cuda / 1000,
        cuda % 1000 / 10, mig, (int)mode);
}

static void do_memory(struct str rest)
{
    struct nvml_memory m = {.total = 0};
    unsigned long long old[3] = {0}; /* total, free, used */
    int (*ask)(struct nvml_device *, unsigned long long *) = NULL;
    void *found = symbol("nvmlDeviceGetMemoryInfo");
    (void)rest;
    memcpy(&ask, &found, sizeof(found));
    int code = nvml_memory(p.nvml, p.device, &m);
    int old_code = ask(p.device, old);
    (void)printf("{\"code\": %d, \"total\": %" PRIu64 ", \"used\": %" PRIu64
                 ", \"reserved\": %" PRIu64
                 ", \"old_code\": %d, \"old_total\": %llu, \"old_used\": %llu}\n",
                 code, m.total, m.used, m.reserved, old_code, old[0], old[2]);
}

static void do_recovery(struct str rest)
{
    uint32_t action = 0;
    (void)rest;
    int code = nvml_recovery(p.nvml, p.device, &action);
    (void)printf("{\"code\": %d, \"action\": %u}\n", code, action);
}

static void do_processes(struct str mps)
{
    static struct nvml_process found[LIMIT_GPU_PROCESSES];
    uint32_t n = COUNT_OF(found);
    int code = mps.n > 0 ? nvml_mps_processes(p.nvml, p.device, found, &n)
                         : nvml_processes(p.nvml, p.device, found, &n);
    (void)printf("{\"code\": %d, \"processes\": {", code);
    for (uint32_t i = 0; code == NVML_OK && i < n; i++)
        (void)printf("%s\"%u\": %" PRId64, i == 0 ? "" : ", ", found[i].pid,
                     found[i].bytes == NVML_BYTES_UNKNOWN ? -1 : (int64_t)found[i].bytes);
    (void)printf("}}\n");
}

static void do_events(struct str rest)
{
    uint64_t types = 0;
    (void)rest;
    int code = nvml_events_new(p.nvml, &p.events);
    code = code == NVML_OK ? nvml_events_supported(p.nvml, p.device, &types) : code;
    code = code == NVML_OK ? nvml_events_register(p.nvml, p.events, p.device, types & TYPES) : code;
    (void)printf("{\"code\": %d, \"types\": %" PRIu64 "}\n", code, types);
}

static void do_wait(struct str ms)
{
    struct nvml_event e = {.data = 0};
    uint64_t timeout = 0;
    (void)str_to_u64(ms, UINT32_MAX, &timeout);
    int code = nvml_events_wait(p.nvml, p.events, (uint32_t)timeout, &e);
    bool whole = e.gpu_instance == NVML_NO_INSTANCE && e.compute_instance == NVML_NO_INSTANCE;
    (void)printf("{\"code\": %d, \"type\": %" PRIu64 ", \"xid\": %" PRIu64
                 ", \"same\": %d, \"whole\": %d}\n",
                 code, e.type, e.data, e.device == p.device, whole);
}

/* What the calls answer by which cardpack-node judges a card's health. */
static void do_health(struct str rest)
{
    struct nvml_rows rows;
    uint64_t errors = 0;
    uint32_t retired = 0;
    bool pending = false;
    enum nvml_compute_mode mode = NVML_COMPUTE_DEFAULT;
    (void)rest;
    (void)printf("{\"rows\": %d, \"errors\": %d, \"pending\": %d, \"retired\": %d, "
                 "\"mode\": %d}\n",
                 nvml_rows(p.nvml, p.device, &rows), nvml_uncorrected(p.nvml, p.device, &errors),
                 nvml_pages_pending(p.nvml, p.device, &pending),
                 nvml_retired_pages(p.nvml, p.device, &retired),
                 nvml_compute_mode(p.nvml, p.device, &mode));
}

/* The limit of a cgroup. */
static void do_limit_of(struct str path)
{
    struct nvml_limits l = {.soft = 0};
    (void)printf("{\"code\": %d}\n", nvml_limits_get(p.nvml, p.device, path.p, &l));
}

/* "BYTES CGROUP": sets a hard limit and reads it back. */
static void do_limit(struct str rest)
{
    struct nvml_limits l = {.soft = 0};
    uint64_t bytes = 0;
    struct str number;
    struct str path;
    (void)str_cut(rest, ' ', &number, &path);
    (void)str_to_u64(number, UINT64_MAX, &bytes);
    int set = nvml_limits_set(p.nvml, p.device, path.p, 0, bytes);
    int get = nvml_limits_get(p.nvml, p.device, path.p, &l);
    (void)nvml_limits_set(p.nvml, p.device, path.p, 0, NVML_LIMIT_NONE);
    (void)printf("{\"set\": %d, \"get\": %d, \"hard\": %" PRIu64 "}\n", set, get, l.hard);
}

static void do_confine(struct str rest)
{
    (void)rest;
    unsigned missing = confine_process() | confine_capabilities();
    (void)printf("{\"missing\": %u}\n", missing);
}

int role_nvml(const char *library, uint32_t card)
{
    static const struct {
        const char *name;
        void (*answer)(struct str rest);
    } questions[] = {{"open", do_open},     {"close", do_close},       {"describe", do_describe},
                     {"memory", do_memory}, {"recovery", do_recovery}, {"processes", do_processes},
                     {"events", do_events}, {"wait", do_wait},         {"limit", do_limit},
                     {"health", do_health}, {"limit-of", do_limit_of}, {"confine", do_confine}};

    char line[1024];
    p.library = library;
    p.card = card;
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    while (fgets(line, sizeof(line), stdin) != NULL) {
        struct str name;
        struct str rest;
        line[strcspn(line, "\n")] = '\0';
        (void)str_cut(str_of(line), ' ', &name, &rest);
        size_t i = 0;
        while (i < COUNT_OF(questions) && !str_eq(name, str_of(questions[i].name)))
            i++;
        if (i == COUNT_OF(questions))
            return 2;
        questions[i].answer(rest);
    }
    return 0;
}
