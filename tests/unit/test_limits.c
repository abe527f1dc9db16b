/* The watch over the driver's limits, with the double of NVIDIA's library and a tree of folders in
 * place of the cgroups. */
#include "node/limits.h"

#include "nvml_world.h"
#include "on_loop.h"

#include <time.h>

#define HEX63 "123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define ID(c) c HEX63
#define CARD  "card uuid=GPU-1 name=A100 bus=1 minor=0 mib=40960\n"
#define GIB   (UINT64_C(1) << 30)

static uint64_t passed_ms;

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret);
int __real_clock_gettime(clockid_t clock, struct timespec *ret);

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret)
{
    int r = __real_clock_gettime(clock, ret);
    if (clock == CLOCK_BOOTTIME) /* the loop's alone */
        ret->tv_sec += (time_t)(passed_ms / 1000);
    return r;
}

static struct {
    struct nvml_world world;
    struct loop *loop;
    struct gpu_watch *gpu;
    struct containers containers;
    struct limits *limits;
    struct card_share share;
    char root[64];
    unsigned changes;
} rig;

static bool rig_share(void *ctx, const struct container *c, struct card_share *ret)
{
    ck_assert_ptr_eq(ctx, &rig);
    ck_assert(str_eq(c->name, STR("main")));
    *ret = rig.share;
    return rig.share.units > 0;
}

static void rig_changed(void *ctx)
{
    ck_assert_ptr_eq(ctx, &rig);
    rig.changes++;
}

static void make(const char *name)
{
    char path[256];
    (void)snprintf(path, sizeof(path), "%s/%s", rig.root, name);
    ck_assert_int_eq(mkdir(path, 0700), 0);
}

static void set_up(void)
{
    struct err e = ERR_INIT;
    char path[128];
    passed_ms = 0;
    rig.changes = 0;
    rig.share = (struct card_share){.cards = {1, {0}}, .units = 4};
    world_open(&rig.world, "limits\n" CARD);
    (void)snprintf(rig.root, sizeof(rig.root), "%s/cgroup", rig.world.dir);
    make("");
    (void)snprintf(path, sizeof(path), "%s/cgroup.controllers", rig.root);
    FILE *f = fopen(path, "we");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(fclose(f), 0);
    make("pod");
    make("pod/" ID("1"));
    rig.loop = loop_make();
    containers_init(&rig.containers, (struct map_seed){1, 2});
    struct gpu_watch_settings gpu = {.library = NVML_DOUBLE,
                                     .cgroup = rig.root,
                                     .poll_ms = 20,
                                     .wait_ms = 10,
                                     .hang_ms = 3600000};
    ck_assert_ok(gpu_watch_new(rig.loop, &gpu, &rig.gpu, &e), &e);
    struct limits_settings s = {.loop = rig.loop,
                                .gpu = rig.gpu,
                                .containers = &rig.containers,
                                .cgroup_root = str_of(rig.root),
                                .unit_bytes = GIB,
                                .share = rig_share,
                                .changed = rig_changed,
                                .ctx = &rig};
    ck_assert_ok(limits_new(&s, &rig.limits, &e), &e);
    run_while(rig.loop, gpu_watch_state(rig.gpu).phase != GPU_WATCH_RUNNING);
}

static void tear_down(void)
{
    rig.limits = limits_free(rig.limits);
    rig.gpu = gpu_watch_free(rig.gpu, 5000);
    containers_done(&rig.containers);
    rig.loop = loop_free(rig.loop);
    world_close(&rig.world);
}

/* What the pod's status says of its container; phase "Succeeded": the pod has ended. */
static void see(const char *id, const char *state, const char *phase)
{
    char json[512];
    const struct pod_view v = {
        .uid = STR("u1"), .namespace = STR("ns"), .name = STR("p1"), .phase = str_of(phase)};
    (void)snprintf(json, sizeof(json),
                   "{\"status\":{\"containerStatuses\":[{\"name\":\"main\",\"containerID\":"
                   "\"containerd://%s\",\"state\":{\"%s\":{}}}]}}",
                   id, state);
    containers_set(&rig.containers, &v, str_of(json));
    limits_look(rig.limits, v.uid);
}

static void pass_s(uint64_t s)
{
    passed_ms += s * 1000;
    run_turns(rig.loop, 1);
}

/* Until the thread has answered what it was asked before. */
static void settle(void)
{
    uint64_t before = gpu_watch_state(rig.gpu).polls;
    run_while(rig.loop, gpu_watch_state(rig.gpu).polls < before + 3);
}

/* The double's file: one limit on the container's cgroup, as the container runtime sets it. */
static void preset(uint64_t bytes)
{
    char path[128];
    (void)snprintf(path, sizeof(path), "%s.limits", rig.world.path);
    FILE *f = fopen(path, "we");
    ck_assert_ptr_nonnull(f);
    if (bytes > 0)
        (void)fprintf(f, "GPU-1 %llu %llu %s/pod/" ID("1") "\n", (unsigned long long)bytes,
                      (unsigned long long)bytes, rig.root);
    ck_assert_int_eq(fclose(f), 0);
}

/* The first line of the double's file: "UUID SOFT HARD PATH". */
static void assert_set(uint64_t soft, uint64_t hard)
{
    char path[128];
    char expected[128];
    struct err e = ERR_INIT;
    struct buf text;
    buf_init(&text, MIB);
    (void)snprintf(path, sizeof(path), "%s.limits", rig.world.path);
    (void)snprintf(expected, sizeof(expected), "GPU-1 %llu %llu /", (unsigned long long)soft,
                   (unsigned long long)hard);
    ck_assert_ok(file_read_again(str_of(path), &text, &e), &e);
    ck_assert_msg(str_starts(buf_str(&text), str_of(expected)), "%.*s", STR_ARG(buf_str(&text)));
    buf_done(&text);
}

#define counts() limits_counts(rig.limits)

START_TEST(the_runtime_has_set_it)
{
    preset(4 * GIB);
    limits_enable(rig.limits, true);
    see(ID("1"), "running", "Running");
    run_while(rig.loop, counts().enforced == 0);
    ck_assert_uint_eq(counts().ours, 0);
    ck_assert_uint_eq(limits_fault(rig.limits, 0).n, 0);
    /* it vanishes: the check after a minute finds that */
    preset(0);
    pass_s(61);
    run_while(rig.loop, counts().ours == 0);
    ck_assert_uint_eq(counts().enforced, 1);
    assert_set(0, 4 * GIB);
    see(ID("1"), "terminated", "Running");
    ck_assert_uint_eq(counts().enforced, 0);
}

END_TEST

/* Too large, as if the pod had overridden the variable; and by whole MiB. */
START_TEST(a_limit_that_is_too_large_is_set)
{
    preset(4 * GIB + 1);
    limits_enable(rig.limits, true);
    see(ID("1"), "running", "Running");
    run_while(rig.loop, counts().enforced == 0);
    ck_assert_uint_eq(counts().ours, 1);
    ck_assert_uint_eq(counts().lost, 0);
    assert_set(0, 4 * GIB);
}

END_TEST

/* cardpack-node starts beside containers that run: what was seen before is checked at once. */
START_TEST(containers_that_run_already)
{
    see(ID("1"), "running", "Running");
    run_turns(rig.loop, 3);
    ck_assert_uint_eq(counts().enforced, 0);
    limits_enable(rig.limits, true);
    run_while(rig.loop, counts().enforced == 0);
    assert_set(0, 4 * GIB);
    limits_enable(rig.limits, false);
    ck_assert_uint_eq(counts().enforced, 0);
}

END_TEST

static void lose(void)
{
    world_write(&rig.world, "limits\nlimits-ignored\n" CARD);
    limits_enable(rig.limits, true);
    see(ID("1"), "running", "Running");
    settle();
    ck_assert_uint_eq(counts().missing, 0);
    pass_s(2); /* once more */
    run_while(rig.loop, rig.changes == 0);
    ck_assert_uint_eq(counts().lost, 1);
    ck_assert_str_is(limits_fault(rig.limits, 0),
                     "the memory limit of container main of pod ns/p1 does not read back: the "
                     "limit was set, and reads back as none");
    ck_assert_uint_eq(limits_fault(rig.limits, 1).n, 0);
}

START_TEST(it_never_reads_back)
{
    lose();
    /* a restart of the container changes nothing, its end neither */
    see(ID("1"), "terminated", "Running");
    ck_assert_uint_gt(limits_fault(rig.limits, 0).n, 0);
    make("pod/" ID("2"));
    see(ID("2"), "running", "Running");
    ck_assert_uint_gt(limits_fault(rig.limits, 0).n, 0);
    /* but the end of the pod does */
    unsigned before = rig.changes;
    see(ID("2"), "terminated", "Succeeded");
    ck_assert_uint_eq(limits_fault(rig.limits, 0).n, 0);
    run_while(rig.loop, rig.changes == before);
    ck_assert_uint_eq(counts().missing, 0);
}

END_TEST

START_TEST(it_reads_back_again)
{
    lose();
    unsigned before = rig.changes;
    world_write(&rig.world, "limits\n" CARD);
    pass_s(6);
    run_while(rig.loop, counts().enforced == 0);
    ck_assert_uint_eq(limits_fault(rig.limits, 0).n, 0);
    run_while(rig.loop, rig.changes == before);
    ck_assert_uint_eq(counts().ours, 0); /* it was told already */
    assert_set(0, 4 * GIB);
}

END_TEST

START_TEST(the_driver_refuses)
{
    world_write(&rig.world, "limits error=4\n" CARD);
    limits_enable(rig.limits, true);
    see(ID("1"), "running", "Running");
    settle();
    pass_s(2);
    run_while(rig.loop, counts().missing == 0);
    ck_assert(str_ends(limits_fault(rig.limits, 0),
                       STR("nvmlDeviceGetMemoryLimits: NVML error 4 (Unknown Error)")));
}

END_TEST

START_TEST(the_driver_hangs)
{
    world_write(&rig.world, "hang\nlimits\n" CARD);
    limits_enable(rig.limits, true);
    see(ID("1"), "running", "Running");
    for (unsigned i = 0; i < 20; i++) {
        pass_s(1);
        ck_assert_uint_eq(counts().missing, 0);
    }
    while (counts().missing == 0)
        pass_s(5);
    ck_assert(str_ends(limits_fault(rig.limits, 0), STR("NVML does not answer")));
    world_write(&rig.world, "limits\n" CARD);
    while (counts().missing == 1) {
        settle(); /* or the time passes by without a turn of the thread */
        pass_s(6);
    }
    ck_assert_uint_eq(counts().enforced, 1);
}

END_TEST

/* It runs, says its pod, and has no cgroup: that may not go on in silence. */
START_TEST(no_cgroup)
{
    limits_enable(rig.limits, true);
    see(ID("3"), "running", "Running");
    run_turns(rig.loop, 3);
    ck_assert_uint_eq(counts().missing, 0);
    pass_s(31);
    run_while(rig.loop, counts().missing == 0);
    make("pod/" ID("3"));
    pass_s(6);
    run_while(rig.loop, counts().enforced == 0);
}

END_TEST

START_TEST(a_lost_card)
{
    world_write(&rig.world, "limits\ncard uuid=GPU-1 name=A100 bus=1 minor=0 mib=40960 error=15\n");
    run_while(rig.loop, gpu_watch_find(rig.gpu, 0)->health != GPU_UNHEALTHY);
    limits_enable(rig.limits, true);
    see(ID("1"), "running", "Running");
    for (unsigned i = 0; i < 10; i++)
        pass_s(10);
    ck_assert_uint_eq(counts().missing, 0);
    ck_assert_uint_eq(counts().enforced, 0);
}

END_TEST

START_TEST(a_share_that_is_not_known_yet)
{
    rig.share.units = 0;
    limits_enable(rig.limits, true);
    see(ID("1"), "running", "Running");
    run_turns(rig.loop, 3);
    rig.share.units = 2;
    limits_look_all(rig.limits);
    run_while(rig.loop, counts().enforced == 0);
    assert_set(0, 2 * GIB);
    containers_gone(&rig.containers, STR("u1"));
    limits_look_all(rig.limits);
    ck_assert_uint_eq(counts().enforced, 0);
}

END_TEST

int main(void)
{
    Suite *s = suite_create("limits");
    TCase *c = tcase_create("limits");
    tcase_add_checked_fixture(c, set_up, tear_down);
    tcase_add_test(c, the_runtime_has_set_it);
    tcase_add_test(c, a_limit_that_is_too_large_is_set);
    tcase_add_test(c, containers_that_run_already);
    tcase_add_test(c, it_never_reads_back);
    tcase_add_test(c, it_reads_back_again);
    tcase_add_test(c, the_driver_refuses);
    tcase_add_test(c, the_driver_hangs);
    tcase_add_test(c, no_cgroup);
    tcase_add_test(c, a_lost_card);
    tcase_add_test(c, a_share_that_is_not_known_yet);
    suite_add_tcase(s, c);
    return unit_main(s);
}
