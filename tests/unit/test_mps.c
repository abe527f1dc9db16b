/* MPS: daemons that answer or not, and processes of containers that are no clients, with the double
 * of NVIDIA's library and a folder in place of /proc. */
#include "node/isolation/mps.h"

#include "enforce_rig.h"
#include "node/containers/cgroup.h"
#include "node/isolation/mps_daemon.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/un.h>

#define CARD   "card uuid=GPU-1 name=A100 bus=1 minor=0 mib=40960 compute-mode=3\n"
#define SECOND "card uuid=GPU-2 name=A100 bus=2 minor=1 mib=40960 compute-mode=3\n"

static struct {
    struct mps *mps;
    char proc[64];
} m;

/* A process in the container with this ID; NULL: in none. */
static void process(unsigned pid, const char *id)
{
    char path[128];
    (void)snprintf(path, sizeof(path), "%s/%u", m.proc, pid);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    (void)snprintf(path, sizeof(path), "%s/%u/cgroup", m.proc, pid);
    FILE *f = fopen(path, "we");
    ck_assert_ptr_nonnull(f);
    (void)fprintf(f, "0::/%s\n", id == NULL ? "system.slice" : id);
    ck_assert_int_eq(fclose(f), 0);
}

static void set_up(void)
{
    struct err e = ERR_INIT;
    rig_open(CARD SECOND);
    rig_make("proc", m.proc, sizeof(m.proc));
    rig_see("ns", "u1", "p1", ID("1"), "running", "Running");
    rig_watch(NULL);
    struct mps_settings s = {.loop = rig.loop,
                             .gpu = rig.gpu,
                             .containers = &rig.containers,
                             .proc = str_of(m.proc),
                             .changed = rig_changed,
                             .ctx = &rig};
    ck_assert_ok(mps_new(&s, &m.mps, &e), &e);
}

static void tear_down(void)
{
    m.mps = mps_free(m.mps);
    rig_close();
}

static void assert_serves(const char *expected)
{
    char why[GPU_REASON_BYTES] = "";
    const struct gpu_card *c = gpu_watch_find(rig.gpu, 0);
    ck_assert_ptr_nonnull(c);
    bool serves = mps_daemon_serves(str_of(rig.world.dir), c, why);
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

TEST(a_daemon_answers)
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
    /* It is busy: so many containers start that its backlog is full. */
    int fd = listen_as(SOCK_SEQPACKET, &a);
    int waiting[8];
    for (size_t i = 0; i < COUNT_OF(waiting); i++) {
        waiting[i] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        ck_assert_int_ge(waiting[i], 0);
        bool full = connect(waiting[i], (const struct sockaddr *)&a, sizeof(a)) != 0;
        ck_assert(!full || errno == EAGAIN);
        ck_assert(full || i + 1 < COUNT_OF(waiting));
    }
    assert_serves("");
    for (size_t i = 0; i < COUNT_OF(waiting); i++)
        (void)close(waiting[i]);
    world_write(&rig.world, "card uuid=GPU-1 name=A100 bus=1 minor=0 mib=40960\n");
    run_while(rig.loop, gpu_watch_find(rig.gpu, 0)->compute_mode != NVML_COMPUTE_DEFAULT);
    assert_serves("EXCLUSIVE_PROCESS");
    ck_assert_int_eq(close(fd), 0);
}

/* 11 is a client, 12 is not, 13 is the server: it is in no container that we know. */
TEST(a_process_past_mps)
{
    process(11, ID("1"));
    process(12, ID("1"));
    process(13, NULL);
    world_write(&rig.world,
                CARD "process pid=11 mib=1\nprocess pid=13 mib=1\nmps pid=11 mib=1\n" SECOND
                     "process pid=12 mib=1\n");
    run_turns(rig.loop, 2);
    ck_assert_uint_eq(mps_counts(m.mps).found, 0);
    mps_enable(m.mps, true);
    rig_pass_s(1);
    run_while(rig.loop, rig.changes == 0);
    ck_assert_str_is(mps_fault(m.mps, 1), "container main of pod ns/p1 uses the card past MPS");
    ck_assert_uint_eq(mps_fault(m.mps, 0).n, 0);
    ck_assert_uint_eq(mps_counts(m.mps).outside, 1);
    /* once */
    uint64_t before = gpu_watch_state(rig.gpu).polls;
    rig_pass_s(31);
    run_while(rig.loop, gpu_watch_state(rig.gpu).polls < before + 5);
    ck_assert_uint_eq(mps_counts(m.mps).found, 1);
    ck_assert_uint_eq(rig.changes, 1);
    /* its end clears the card */
    world_write(&rig.world, CARD SECOND);
    rig_pass_s(31);
    run_while(rig.loop, rig.changes == 1);
    ck_assert_uint_eq(mps_fault(m.mps, 1).n, 0);
}

/* One round of looks at all cards. */
static void look(void)
{
    uint64_t before = gpu_watch_state(rig.gpu).polls;
    rig_pass_s(31);
    run_while(rig.loop, gpu_watch_state(rig.gpu).polls < before + 5);
}

/* Each start has another process and another ID: the pod has one event for the card, and another
 * one an hour later. */
TEST(a_container_that_starts_again)
{
    char world[256];
    mps_enable(m.mps, true);
    rig_pass_s(1);
    for (unsigned i = 1; i <= 3; i++) {
        char id[CGROUP_ID_BYTES];
        (void)snprintf(id, sizeof(id), "%u" HEX63, i);
        process(20 + i, id);
        process(30 + i, id);
        rig_see("ns", "u1", "p1", id, "running", "Running");
        (void)snprintf(world, sizeof(world),
                       CARD SECOND "process pid=%u mib=1\nprocess pid=%u mib=1\n", 20 + i, 30 + i);
        world_write(&rig.world, world);
        unsigned changes = rig.changes;
        look();
        run_while(rig.loop, rig.changes == changes);
        ck_assert_uint_gt(mps_fault(m.mps, 1).n, 0);
        ck_assert_uint_eq(mps_counts(m.mps).outside, 2);
        world_write(&rig.world, CARD SECOND);
        look();
        run_while(rig.loop, rig.changes == changes + 1);
        ck_assert_uint_eq(mps_fault(m.mps, 1).n, 0);
        ck_assert_uint_eq(mps_counts(m.mps).outside, 0);
    }
    ck_assert_uint_eq(mps_counts(m.mps).found, 1);
    rig_pass_s(3600);
    world_write(&rig.world, world);
    look();
    ck_assert_uint_eq(mps_counts(m.mps).found, 2);
    /* another card is another event; a pod of the same name that comes later, too */
    world_write(&rig.world, CARD "process pid=23 mib=1\n" SECOND);
    look();
    ck_assert_uint_eq(mps_counts(m.mps).found, 3);
    world_write(&rig.world, CARD SECOND);
    rig_see("ns", "u1", "p1", ID("3"), "terminated", "Succeeded");
    look();
    rig_see("ns", "u2", "p1", ID("3"), "running", "Running");
    world_write(&rig.world, world);
    look();
    ck_assert_uint_eq(mps_counts(m.mps).found, 4);
}

/* The server of MPS is no client of itself. A pod of the same name elsewhere is any user's. */
TEST(the_server_is_skipped)
{
    rig_see("kube-system", "u2", "cardpack-mps-x7", ID("2"), "running", "Running");
    rig_see("kube-system", "u3", "other", ID("3"), "running", "Running");
    rig_see("ns", "u4", "cardpack-mps-x7", ID("4"), "running", "Running");
    process(42, ID("2"));
    process(43, ID("3"));
    process(44, ID("4"));
    world_write(&rig.world, CARD "process pid=42 mib=1\nprocess pid=44 mib=1\n" SECOND
                                 "process pid=42 mib=1\nprocess pid=43 mib=1\n");
    mps_enable(m.mps, true);
    rig_pass_s(1);
    run_while(rig.loop, rig.changes < 2);
    ck_assert_uint_eq(mps_counts(m.mps).outside, 2);
    ck_assert_str_is(mps_fault(m.mps, 0),
                     "container main of pod ns/cardpack-mps-x7 uses the card past MPS");
    ck_assert_str_is(mps_fault(m.mps, 1),
                     "container main of pod kube-system/other uses the card past MPS");
}

int main(void)
{
    TCase *c = unit_case("mps");
    tcase_add_checked_fixture(c, set_up, tear_down);
    return unit_run();
}
