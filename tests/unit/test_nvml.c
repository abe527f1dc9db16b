/* The functions of NVML that the watch does not use: limits of memory, MPS and the compute mode. */
#include "gpu/gpu_limit.h"
#include "nvml_world.h"

#define GIB  (UINT64_C(1) << 30)
#define CARD "card uuid=GPU-1 name=A100 bus=1 minor=0 mib=40960"

struct rig {
    struct nvml_world world;
    struct nvml *nvml;
    struct nvml_device *card;
    char pod[64]; /* a cgroup, and one in it */
    char container[80];
};

static void rig_look(struct rig *r)
{
    ck_assert_int_eq(nvml_init(r->nvml), NVML_OK);
    ck_assert_int_eq(nvml_card(r->nvml, 0, &r->card), NVML_OK);
}

static void rig_open(struct rig *r, const char *world)
{
    struct err e = ERR_INIT;
    world_open(&r->world, world);
    (void)snprintf(r->pod, sizeof(r->pod), "%s/pod", r->world.dir);
    (void)snprintf(r->container, sizeof(r->container), "%s/a container", r->pod);
    ck_assert_int_eq(mkdir(r->pod, 0700), 0);
    ck_assert_int_eq(mkdir(r->container, 0700), 0);
    ck_assert_ok(nvml_open(NVML_DOUBLE, &r->nvml, &e), &e);
    rig_look(r);
}

static void rig_close(struct rig *r)
{
    ck_assert_int_eq(nvml_shutdown(r->nvml), NVML_OK);
    r->nvml = nvml_close(r->nvml);
    world_close(&r->world);
}

/* The limits of a cgroup, or NVML's code. */
#define assert_limits(r, cgroup, s, h)                                                   \
    do {                                                                                 \
        struct nvml_limits l_ = {.soft = 1};                                             \
        ck_assert_int_eq(nvml_limits_get((r)->nvml, (r)->card, (cgroup), &l_), NVML_OK); \
        ck_assert_uint_eq(l_.soft, (s));                                                 \
        ck_assert_uint_eq(l_.hard, (h));                                                 \
    } while (0)

static int get_code(const struct rig *r, const char *cgroup)
{
    struct nvml_limits l = {.soft = 77};
    int code = nvml_limits_get(r->nvml, r->card, cgroup, &l);
    /* ret_x is written on success only. */
    ck_assert(code == NVML_OK || l.soft == 77);
    return code;
}

TEST(a_limit_is_set_read_and_cleared)
{
    struct rig r;
    rig_open(&r, CARD "\nprocess pid=41 mib=512\nprocess pid=42 mib=100\nlimits\n");
    ck_assert_int_eq(get_code(&r, r.container), NVML_NOT_FOUND);
    ck_assert_int_eq(nvml_limits_set(r.nvml, r.card, r.container, 2 * GIB, 3 * GIB), NVML_OK);
    assert_limits(&r, r.container, 2 * GIB, 3 * GIB);
    ck_assert_int_eq(get_code(&r, r.pod), NVML_NOT_FOUND);
    /* Once more, with another value. */
    ck_assert_int_eq(nvml_limits_set(r.nvml, r.card, r.container, GIB, 4 * GIB), NVML_OK);
    assert_limits(&r, r.container, GIB, 4 * GIB);
    ck_assert_int_eq(nvml_limits_set(r.nvml, r.card, r.container, 0, NVML_LIMIT_NONE), NVML_OK);
    ck_assert_int_eq(get_code(&r, r.container), NVML_NOT_FOUND);
    rig_close(&r);
}

TEST(a_cgroup_has_the_limits_of_the_one_above)
{
    struct rig r;
    rig_open(&r, CARD "\nlimits\n");
    ck_assert_int_eq(nvml_limits_set(r.nvml, r.card, r.pod, 0, 4 * GIB), NVML_OK);
    assert_limits(&r, r.container, 0, 4 * GIB);
    ck_assert_int_eq(nvml_limits_set(r.nvml, r.card, r.container, 0, 3 * GIB), NVML_OK);
    assert_limits(&r, r.container, 0, 3 * GIB);
    assert_limits(&r, r.pod, 0, 4 * GIB);
    rig_close(&r);
}

TEST(what_a_cgroup_uses_is_that_of_its_processes)
{
    struct rig r;
    struct nvml_limits l;
    char procs[96];
    rig_open(&r, CARD "\nprocess pid=41 mib=512\nprocess pid=42 mib=100\nlimits\n");
    (void)snprintf(procs, sizeof(procs), "%s/cgroup.procs", r.container);
    FILE *f = fopen(procs, "we");
    ck_assert_ptr_nonnull(f);
    (void)fputs("42\n43\n", f);
    ck_assert_int_eq(fclose(f), 0);
    ck_assert_int_eq(nvml_limits_set(r.nvml, r.card, r.container, 0, GIB), NVML_OK);
    ck_assert_int_eq(nvml_limits_get(r.nvml, r.card, r.container, &l), NVML_OK);
    ck_assert_uint_eq(l.used, UINT64_C(100) << 20);
    rig_close(&r);
}

/* A driver may answer for a cgroup without limits as one that has none at all: a limit that reads
 * back in a cgroup of our own says which. */
static const struct {
    const char *world;
    bool writable;
    int answer;
} probes[] = {
    {"\nlimits unset=3\n", true, NVML_NOT_FOUND},
    {"\nlimits unset=3\n", false, NVML_NOT_SUPPORTED},
    {"\nlimits unset=3 set=4\n", true, NVML_NOT_SUPPORTED}, /* without CAP_SYS_ADMIN */
    {"\nlimits\n", false, NVML_NOT_FOUND},
    {"\nlimits error=3\n", true, NVML_NOT_SUPPORTED},
    {"\nlimits error=4\n", true, NVML_NO_PERMISSION},
    {"\n", true, NVML_NOT_SUPPORTED},
};

TEST_EACH(a_probe_says_whether_there_are_limits, COUNT_OF(probes))
{
    struct rig r;
    char world[256];
    char leaf[128];
    struct nvml_limits l;
    (void)snprintf(world, sizeof(world), CARD "%s", probes[_i].world);
    rig_open(&r, world);
    const char *cgroup = probes[_i].writable ? r.container : "/proc/self"; /* not even for root */
    ck_assert_int_eq(gpu_limit_probe(r.nvml, r.card, cgroup), probes[_i].answer);
    /* Nothing is left of it. */
    (void)snprintf(leaf, sizeof(leaf), "%s/cardpack-probe-%d", r.container, (int)getpid());
    ck_assert_int_ne(access(leaf, F_OK), 0);
    ck_assert_int_ne(nvml_limits_get(r.nvml, r.card, leaf, &l), NVML_OK);
    rig_close(&r);
}

/* As the driver keeps them. */
TEST(limits_outlive_the_library)
{
    struct rig r;
    struct err e = ERR_INIT;
    rig_open(&r, CARD "\nlimits\n");
    ck_assert_int_eq(nvml_limits_set(r.nvml, r.card, r.container, 0, GIB), NVML_OK);
    ck_assert_int_eq(nvml_shutdown(r.nvml), NVML_OK);
    r.nvml = nvml_close(r.nvml);
    ck_assert_ok(nvml_open(NVML_DOUBLE, &r.nvml, &e), &e);
    rig_look(&r);
    assert_limits(&r, r.container, 0, GIB);
    rig_close(&r);
}

TEST_EACH(a_limit_that_is_wrong_is_refused, 6)
{
    static const struct {
        uint64_t soft;
        uint64_t hard;
        int code;
    } cases[] = {
        {0, 40 * GIB, NVML_OK},
        {40 * GIB, 40 * GIB, NVML_OK},
        {40 * GIB, NVML_LIMIT_NONE, NVML_OK},
        {2, 1, NVML_INVALID_ARGUMENT},
        {0, 40 * GIB + 1, NVML_INVALID_ARGUMENT},
        {40 * GIB + 1, NVML_LIMIT_NONE, NVML_INVALID_ARGUMENT},
    };
    struct rig r;
    rig_open(&r, CARD "\nlimits\n");
    int code = nvml_limits_set(r.nvml, r.card, r.pod, cases[_i].soft, cases[_i].hard);
    ck_assert_int_eq(code, cases[_i].code);
    ck_assert_int_eq(get_code(&r, r.pod), code == NVML_OK ? NVML_OK : NVML_NOT_FOUND);
    rig_close(&r);
}

/* What an older driver, a container without rights, and a removed cgroup answer. */
TEST_EACH(each_failure_has_its_code, 5)
{
    static const struct {
        const char *world;
        const char *cgroup; /* NULL: one that is there */
        int set;
        int get;
    } cases[] = {
        {"", NULL, NVML_NOT_SUPPORTED, NVML_NOT_SUPPORTED},
        {"limits error=4\n", NULL, NVML_NO_PERMISSION, NVML_NO_PERMISSION},
        {"limits\n", "/nonexistent", NVML_OPERATING_SYSTEM, NVML_OPERATING_SYSTEM},
        {"limits\n", "/dev/null", NVML_OPERATING_SYSTEM, NVML_OPERATING_SYSTEM},
        {"limits-ignored\n", NULL, NVML_OK, NVML_NOT_FOUND},
    };
    struct rig r;
    char world[256];
    (void)snprintf(world, sizeof(world), CARD "\n%s", cases[_i].world);
    rig_open(&r, world);
    const char *cgroup = cases[_i].cgroup == NULL ? r.pod : cases[_i].cgroup;
    ck_assert_int_eq(nvml_limits_set(r.nvml, r.card, cgroup, 0, GIB), cases[_i].set);
    ck_assert_int_eq(get_code(&r, cgroup), cases[_i].get);
    rig_close(&r);
}

TEST(a_slice_has_no_limits)
{
    struct rig r;
    struct nvml_device *slice = NULL;
    rig_open(&r, CARD " mig=1\nslice uuid=MIG-1 profile=1g.5gb gi=7 ci=0 mib=4864\nlimits\n");
    ck_assert_int_eq(nvml_mig_device(r.nvml, r.card, 0, &slice), NVML_OK);
    ck_assert_int_eq(nvml_limits_set(r.nvml, slice, r.pod, 0, GIB), NVML_INVALID_ARGUMENT);
    rig_close(&r);
}

TEST(mps_clients_and_the_compute_mode_are_told)
{
    struct rig r;
    struct nvml_process p[4];
    uint32_t n = COUNT_OF(p);
    enum nvml_compute_mode mode = NVML_COMPUTE_PROHIBITED;
    rig_open(&r, CARD "\nprocess pid=40 mib=9\nmps pid=41 mib=512\nmps pid=42 mib=100\n");
    ck_assert_int_eq(nvml_mps_processes(r.nvml, r.card, p, &n), NVML_OK);
    ck_assert_uint_eq(n, 2);
    ck_assert_uint_eq(p[0].pid, 41);
    ck_assert_uint_eq(p[1].pid, 42);
    ck_assert_uint_eq(p[1].bytes, UINT64_C(100) << 20);
    n = 1;
    ck_assert_int_eq(nvml_mps_processes(r.nvml, r.card, p, &n), NVML_INSUFFICIENT_SIZE);
    ck_assert_uint_eq(n, 2);
    n = COUNT_OF(p);
    ck_assert_int_eq(nvml_processes(r.nvml, r.card, p, &n), NVML_OK);
    ck_assert_uint_eq(n, 1);
    ck_assert_uint_eq(p[0].pid, 40);
    ck_assert_int_eq(nvml_compute_mode(r.nvml, r.card, &mode), NVML_OK);
    ck_assert_int_eq(mode, NVML_COMPUTE_DEFAULT);
    world_write(&r.world, CARD " compute-mode=3\n");
    ck_assert_int_eq(nvml_compute_mode(r.nvml, r.card, &mode), NVML_OK);
    ck_assert_int_eq(mode, NVML_COMPUTE_EXCLUSIVE_PROCESS);
    rig_close(&r);
}

/* Some drivers of R535 write a longer struct under the same name. */
TEST_EACH(each_process_is_read_whatever_its_struct, 2)
{
    struct rig r;
    struct nvml_process p[4];
    uint32_t n = COUNT_OF(p);
    char world[256];
    (void)snprintf(world, sizeof(world), "%s" CARD "\n%s", _i == 1 ? "protected-memory\n" : "",
                   "process pid=41 mib=512\nprocess pid=42 mib=100\nprocess pid=43 mib=7\n"
                   "mps pid=44 mib=8\n");
    rig_open(&r, world);
    ck_assert_int_eq(nvml_processes(r.nvml, r.card, p, &n), NVML_OK);
    ck_assert_uint_eq(n, 3);
    for (uint32_t i = 0; i < n; i++) {
        static const uint64_t mib[] = {512, 100, 7};
        ck_assert_uint_eq(p[i].pid, 41 + i);
        ck_assert_uint_eq(p[i].bytes, mib[i] << 20);
        ck_assert_uint_eq(p[i].gpu_instance, NVML_NO_INSTANCE);
    }
    n = 1;
    ck_assert_int_eq(nvml_mps_processes(r.nvml, r.card, p, &n), NVML_OK);
    ck_assert_uint_eq(n, 1);
    ck_assert_uint_eq(p[0].pid, 44);
    rig_close(&r);
}

TEST(an_older_library_lacks_the_functions)
{
    struct rig r;
    struct err e = ERR_INIT;
    rig_open(&r, CARD "\nlimits\n");
    ck_assert_int_eq(nvml_shutdown(r.nvml), NVML_OK);
    r.nvml = nvml_close(r.nvml);
    ck_assert_ok(nvml_open(NVML_OLDER, &r.nvml, &e), &e);
    rig_look(&r);
    ck_assert_int_eq(nvml_limits_set(r.nvml, r.card, r.pod, 0, GIB), NVML_FUNCTION_NOT_FOUND);
    ck_assert_int_eq(get_code(&r, r.pod), NVML_FUNCTION_NOT_FOUND);
    rig_close(&r);
}
