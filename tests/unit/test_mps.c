/* MPS: daemons that answer or not, and processes of containers that are no clients, with the double
 * of NVIDIA's library and a folder in place of /proc. */
#include "node/mps.h"

#include "nvml_world.h"
#include "on_loop.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

#define HEX63  "123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define ID(c)  c HEX63
#define CARD   "card uuid=GPU-1 name=A100 bus=1 minor=0 mib=40960 compute-mode=3\n"
#define SECOND "card uuid=GPU-2 name=A100 bus=2 minor=1 mib=40960 compute-mode=3\n"

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
    struct mps *mps;
    char proc[64];
    unsigned changes;
} rig;

static void rig_changed(void *ctx)
{
    ck_assert_ptr_eq(ctx, &rig);
    rig.changes++;
}

/* A process in the container with this ID; NULL: in none. */
static void process(unsigned pid, const char *id)
{
    char path[128];
    (void)snprintf(path, sizeof(path), "%s/%u", rig.proc, pid);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    (void)snprintf(path, sizeof(path), "%s/%u/cgroup", rig.proc, pid);
    FILE *f = fopen(path, "we");
    ck_assert_ptr_nonnull(f);
    (void)fprintf(f, "0::/%s\n", id == NULL ? "system.slice" : id);
    ck_assert_int_eq(fclose(f), 0);
}

static void set_up(void)
{
    struct err e = ERR_INIT;
    const struct pod_view v = {
        .uid = STR("u1"), .namespace = STR("ns"), .name = STR("p1"), .phase = STR("Running")};
    passed_ms = 0;
    rig.changes = 0;
    world_open(&rig.world, CARD SECOND);
    (void)snprintf(rig.proc, sizeof(rig.proc), "%s/proc", rig.world.dir);
    ck_assert_int_eq(mkdir(rig.proc, 0700), 0);
    rig.loop = loop_make();
    containers_init(&rig.containers, (struct map_seed){1, 2});
    containers_set(&rig.containers, &v,
                   STR("{\"status\":{\"containerStatuses\":[{\"name\":\"main\",\"containerID\":"
                       "\"containerd://" ID("1") "\",\"state\":{\"running\":{}}}]}}"));
    struct gpu_watch_settings gpu = {
        .library = NVML_DOUBLE, .poll_ms = 20, .wait_ms = 10, .hang_ms = 3600000};
    ck_assert_ok(gpu_watch_new(rig.loop, &gpu, &rig.gpu, &e), &e);
    struct mps_settings s = {.loop = rig.loop,
                             .gpu = rig.gpu,
                             .containers = &rig.containers,
                             .proc = str_of(rig.proc),
                             .changed = rig_changed,
                             .ctx = &rig};
    ck_assert_ok(mps_new(&s, &rig.mps, &e), &e);
    run_while(rig.loop, gpu_watch_state(rig.gpu).phase != GPU_WATCH_RUNNING);
}

static void tear_down(void)
{
    rig.mps = mps_free(rig.mps);
    rig.gpu = gpu_watch_free(rig.gpu, 5000);
    containers_done(&rig.containers);
    rig.loop = loop_free(rig.loop);
    world_close(&rig.world);
}

static void assert_serves(const char *expected)
{
    char why[GPU_REASON_BYTES] = "";
    const struct gpu_card *c = gpu_watch_find(rig.gpu, 0);
    ck_assert_ptr_nonnull(c);
    bool serves = mps_serves(str_of(rig.world.dir), c, why);
    ck_assert_int_eq(serves, expected[0] == '\0');
    ck_assert_msg(strstr(why, expected) != NULL, "%s", why);
}

static int listen_as(int type, struct sockaddr_un *a)
{
    int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
    (void)unlink(a->sun_path);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(bind(fd, (const struct sockaddr *)a, sizeof(*a)), 0);
    ck_assert_int_eq(listen(fd, 1), 0);
    return fd;
}

START_TEST(a_daemon_answers)
{
    char path[64];
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    (void)snprintf(path, sizeof(path), "%s/GPU-1", rig.world.dir);
    (void)snprintf(a.sun_path, sizeof(a.sun_path), "%s/control", path);
    assert_serves("No such file or directory");
    ck_assert_int_eq(mkdir(path, 0700), 0);
    for (int i = 0; i < 2; i++) {
        int fd = listen_as(i == 0 ? SOCK_SEQPACKET : SOCK_STREAM, &a);
        assert_serves("");
        ck_assert_int_eq(close(fd), 0);
        assert_serves("Connection refused"); /* it died, and its socket is still there */
    }
    int fd = listen_as(SOCK_SEQPACKET, &a);
    world_write(&rig.world, "card uuid=GPU-1 name=A100 bus=1 minor=0 mib=40960\n");
    run_while(rig.loop, gpu_watch_find(rig.gpu, 0)->compute_mode != NVML_COMPUTE_DEFAULT);
    assert_serves("EXCLUSIVE_PROCESS");
    ck_assert_int_eq(close(fd), 0);
}

END_TEST

/* 11 is a client, 12 is not, 13 is the server: it is in no container that we know. */
START_TEST(a_process_past_mps)
{
    process(11, ID("1"));
    process(12, ID("1"));
    process(13, NULL);
    world_write(&rig.world,
                CARD "process pid=11 mib=1\nprocess pid=13 mib=1\nmps pid=11 mib=1\n" SECOND
                     "process pid=12 mib=1\n");
    run_turns(rig.loop, 2);
    ck_assert_uint_eq(mps_counts(rig.mps).found, 0);
    mps_enable(rig.mps, true);
    run_while(rig.loop, rig.changes == 0);
    ck_assert_str_is(mps_fault(rig.mps, 1),
                     "process 12 of container main of pod ns/p1 uses the card past MPS");
    ck_assert_uint_eq(mps_fault(rig.mps, 0).n, 0);
    ck_assert_uint_eq(mps_counts(rig.mps).outside, 1);
    /* once */
    uint64_t before = gpu_watch_state(rig.gpu).polls;
    passed_ms += 31000;
    run_while(rig.loop, gpu_watch_state(rig.gpu).polls < before + 5);
    ck_assert_uint_eq(mps_counts(rig.mps).found, 1);
    ck_assert_uint_eq(rig.changes, 1);
    /* its end clears the card */
    world_write(&rig.world, CARD SECOND);
    passed_ms += 31000;
    run_while(rig.loop, rig.changes == 1);
    ck_assert_uint_eq(mps_fault(rig.mps, 1).n, 0);
}

END_TEST

int main(void)
{
    Suite *s = suite_create("mps");
    TCase *c = tcase_create("mps");
    tcase_add_checked_fixture(c, set_up, tear_down);
    tcase_add_test(c, a_daemon_answers);
    tcase_add_test(c, a_process_past_mps);
    suite_add_tcase(s, c);
    return unit_main(s);
}
