/* The watch over the driver's limits, with the double of NVIDIA's library and a tree of folders in
 * place of the cgroups. */
#include "node/isolation/limits.h"

#include "enforce_rig.h"
#include "node/containers/cgroup.h"

#include <dirent.h>

#define CARD "card uuid=GPU-1 name=A100 bus=1 minor=0 mib=40960\n"
#define GIB  (UINT64_C(1) << 30)

static struct {
    struct limits *limits;
    struct card_share share;
    char root[64];   /* of the cgroups */
    unsigned opened; /* folders, since the start */
    char first[16];  /* the first pod's folder of them: its number */
} l;

DIR *__wrap_opendir(const char *name);
DIR *__real_opendir(const char *name);

DIR *__wrap_opendir(const char *name)
{
    const char *pod = strstr(name, "/pod");
    if (l.opened++ == 1 && pod != NULL)
        (void)snprintf(l.first, sizeof(l.first), "%s", pod + strlen("/pod"));
    return __real_opendir(name);
}

static bool share(void *ctx, const struct container *c, struct card_share *ret)
{
    ck_assert_ptr_eq(ctx, &rig);
    ck_assert(str_eq(c->name, STR("main")));
    *ret = l.share;
    return l.share.units > 0;
}

static void make(const char *name)
{
    char path[256];
    (void)snprintf(path, sizeof(path), "%s/%s", l.root, name);
    ck_assert_int_eq(mkdir(path, 0700), 0);
}

static void take_away(const char *name)
{
    char path[256];
    (void)snprintf(path, sizeof(path), "%s/%s", l.root, name);
    ck_assert_int_eq(rmdir(path), 0);
}

static void open_with(const char *world)
{
    struct err e = ERR_INIT;
    char path[128];
    rig_open(world);
    memset(&l, 0, sizeof(l));
    l.share = (struct card_share){.cards = {1, {0}}, .units = 4};
    rig_make("cgroup", l.root, sizeof(l.root));
    (void)snprintf(path, sizeof(path), "%s/cgroup.controllers", l.root);
    FILE *f = fopen(path, "we");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(fclose(f), 0);
    make("pod");
    make("pod/" ID("1"));
    rig_watch(l.root);
    struct limits_settings s = {.loop = rig.loop,
                                .gpu = rig.gpu,
                                .containers = &rig.containers,
                                .cgroup_root = str_of(l.root),
                                .unit_bytes = GIB,
                                .share = share,
                                .changed = rig_changed,
                                .ctx = &rig};
    ck_assert_ok(limits_new(&s, &l.limits, &e), &e);
}

static void set_up(void)
{
    open_with("limits\n" CARD);
}

static void tear_down(void)
{
    l.limits = limits_free(l.limits);
    rig_close();
}

static void see(const char *id, const char *state, const char *phase)
{
    rig_see("ns", "u1", "p1", id, state, phase);
    limits_update(l.limits, STR("u1"));
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
                      (unsigned long long)bytes, l.root);
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

#define counts() limits_counts(l.limits)

TEST(the_runtime_has_set_it)
{
    preset(4 * GIB);
    limits_enable(l.limits, true);
    see(ID("1"), "running", "Running");
    run_while(rig.loop, counts().enforced == 0);
    ck_assert_uint_eq(counts().ours, 0);
    ck_assert_uint_eq(limits_fault(l.limits, 0).n, 0);
    /* it vanishes: the check after a minute finds that */
    preset(0);
    rig_pass_s(61);
    run_while(rig.loop, counts().ours == 0);
    ck_assert_uint_eq(counts().enforced, 1);
    assert_set(0, 4 * GIB);
    see(ID("1"), "terminated", "Running");
    ck_assert_uint_eq(counts().enforced, 0);
}

/* Too large, as if the pod had overridden the variable; and by whole MiB. */
TEST(a_limit_that_is_too_large_is_set)
{
    preset(4 * GIB + 1);
    limits_enable(l.limits, true);
    see(ID("1"), "running", "Running");
    run_while(rig.loop, counts().enforced == 0);
    ck_assert_uint_eq(counts().ours, 1);
    ck_assert_uint_eq(counts().lost, 0);
    assert_set(0, 4 * GIB);
}

/* cardpack-node starts beside containers that run: what was seen before is checked at once. */
TEST(containers_that_run_already)
{
    see(ID("1"), "running", "Running");
    run_turns(rig.loop, 3);
    ck_assert_uint_eq(counts().enforced, 0);
    limits_enable(l.limits, true);
    run_while(rig.loop, counts().enforced == 0);
    assert_set(0, 4 * GIB);
    limits_enable(l.limits, false);
    ck_assert_uint_eq(counts().enforced, 0);
}

static void lose(void)
{
    world_write(&rig.world, "limits\nlimits-ignored\n" CARD);
    limits_enable(l.limits, true);
    see(ID("1"), "running", "Running");
    rig_settle();
    ck_assert_uint_eq(counts().missing, 0);
    rig_pass_s(2); /* once more */
    run_while(rig.loop, rig.changes == 0);
    ck_assert_uint_eq(counts().lost, 1);
    ck_assert_str_is(limits_fault(l.limits, 0),
                     "the memory limit of container main of pod ns/p1 does not read back: the "
                     "limit was set, and reads back as none");
    ck_assert_uint_eq(limits_fault(l.limits, 1).n, 0);
}

TEST(it_never_reads_back)
{
    lose();
    /* a restart of the container changes nothing, its end neither */
    see(ID("1"), "terminated", "Running");
    ck_assert_uint_gt(limits_fault(l.limits, 0).n, 0);
    make("pod/" ID("2"));
    see(ID("2"), "running", "Running");
    ck_assert_uint_gt(limits_fault(l.limits, 0).n, 0);
    /* but the end of the pod does */
    unsigned before = rig.changes;
    see(ID("2"), "terminated", "Succeeded");
    ck_assert_uint_eq(limits_fault(l.limits, 0).n, 0);
    run_while(rig.loop, rig.changes == before);
    ck_assert_uint_eq(counts().missing, 0);
}

/* No container of a pod that is being deleted starts again: the pod may stay for a minute more,
 * until its sandbox is gone. A kubelet that has removed the container says its state without an ID.
 */
TEST_EACH(its_pod_is_deleted, 2)
{
    lose();
    rig.deleting = true;
    see(ID("1"), "running", "Running");
    ck_assert_uint_gt(limits_fault(l.limits, 0).n, 0);
    unsigned before = rig.changes;
    if (_i == 0)
        see(ID("1"), "terminated", "Running");
    else
        see(NULL, "waiting", "Running");
    ck_assert_uint_eq(limits_fault(l.limits, 0).n, 0);
    run_while(rig.loop, rig.changes == before);
    ck_assert_uint_eq(counts().missing, 0);
}

/* The container is not running, although its pod is not being deleted. */
TEST(the_status_has_no_id)
{
    limits_enable(l.limits, true);
    see(ID("1"), "running", "Running");
    run_while(rig.loop, counts().enforced == 0);
    see(NULL, "waiting", "Running");
    ck_assert_uint_eq(counts().enforced, 0);
    see(ID("1"), "running", "Running");
    run_while(rig.loop, counts().enforced == 0);
}

TEST(it_reads_back_again)
{
    lose();
    unsigned before = rig.changes;
    world_write(&rig.world, "limits\n" CARD);
    rig_pass_s(6);
    run_while(rig.loop, counts().enforced == 0);
    ck_assert_uint_eq(limits_fault(l.limits, 0).n, 0);
    run_while(rig.loop, rig.changes == before);
    ck_assert_uint_eq(counts().ours, 0); /* it was told already */
    assert_set(0, 4 * GIB);
}

TEST(the_driver_refuses)
{
    world_write(&rig.world, "limits error=4\n" CARD);
    limits_enable(l.limits, true);
    see(ID("1"), "running", "Running");
    rig_settle();
    rig_pass_s(2);
    run_while(rig.loop, counts().missing == 0);
    ck_assert(str_ends(limits_fault(l.limits, 0),
                       STR("nvmlDeviceGetMemoryLimits: NVML error 4 (Unknown Error)")));
}

TEST(the_driver_hangs)
{
    world_write(&rig.world, "hang\nlimits\n" CARD);
    limits_enable(l.limits, true);
    see(ID("1"), "running", "Running");
    for (unsigned i = 0; i < 20; i++) {
        rig_pass_s(1);
        ck_assert_uint_eq(counts().missing, 0);
    }
    while (counts().missing == 0)
        rig_pass_s(5);
    ck_assert(str_ends(limits_fault(l.limits, 0), STR("NVML does not answer")));
    world_write(&rig.world, "limits\n" CARD);
    while (counts().missing == 1) {
        rig_settle(); /* or the time passes by without a turn of the thread */
        rig_pass_s(6);
    }
    ck_assert_uint_eq(counts().enforced, 1);
}

/* It runs, says its pod, and has no cgroup: that may not go on in silence. */
TEST(no_cgroup)
{
    limits_enable(l.limits, true);
    see(ID("3"), "running", "Running");
    run_turns(rig.loop, 3);
    ck_assert_uint_eq(counts().missing, 0);
    rig_pass_s(31);
    run_while(rig.loop, counts().missing == 0);
    make("pod/" ID("3"));
    rig_pass_s(6);
    run_while(rig.loop, counts().enforced == 0);
}

/* The group of a container that runs must not vanish in silence. */
TEST_EACH(the_cgroup_vanishes, 2)
{
    limits_enable(l.limits, true);
    see(ID("1"), "running", "Running");
    run_while(rig.loop, counts().enforced == 0);
    take_away("pod/" ID("1"));
    rig_pass_s(61);
    run_while(rig.loop, counts().enforced == 1);
    ck_assert_uint_eq(counts().missing, 0); /* the status of one that has ended may come later */
    for (unsigned i = 0; i < 6; i++) {
        rig_pass_s(6);
        run_turns(rig.loop, 6);
    }
    run_while(rig.loop, counts().missing == 0);
    ck_assert(str_ends(limits_fault(l.limits, 0), STR("has no cgroup of container " ID("1"))));
    run_while(rig.loop, rig.changes == 0);
    if (_i == 0) { /* it runs on, and its group is found again */
        make("pod/" ID("1"));
        rig_pass_s(6);
        run_while(rig.loop, counts().enforced == 0);
    } else { /* it had ended */
        see(ID("1"), "terminated", "Running");
    }
    run_while(rig.loop, rig.changes == 1);
    ck_assert_uint_eq(counts().missing, 0);
    ck_assert_uint_eq(limits_fault(l.limits, 0).n, 0);
}

TEST(another_amount)
{
    limits_enable(l.limits, true);
    see(ID("1"), "running", "Running");
    run_while(rig.loop, counts().enforced == 0);
    assert_set(0, 4 * GIB);
    l.share.units = 2;
    limits_update_all(l.limits);
    ck_assert_uint_eq(counts().enforced, 0);
    run_while(rig.loop, counts().enforced == 0);
    assert_set(0, 2 * GIB);
    limits_update_all(l.limits); /* the same */
    ck_assert_uint_eq(counts().enforced, 1);
}

#define PODS  ((size_t)100)
#define CARDS ((size_t)8)

/* The ID of a container: 64 digits. */
static void number_id(unsigned n, char *ret, size_t size)
{
    (void)snprintf(ret, size, "%0*u", (int)CGROUP_ID_LEN, n);
}

static void see_one(unsigned i)
{
    char id[CGROUP_ID_BYTES];
    char name[16];
    number_id(i, id, sizeof(id));
    (void)snprintf(name, sizeof(name), "p%u", i);
    rig_see("ns", name, name, id, "running", "Running");
    limits_update(l.limits, str_of(name));
}

static void make_many(void)
{
    for (unsigned i = 0; i < PODS; i++) {
        char path[128];
        char id[CGROUP_ID_BYTES];
        number_id(i, id, sizeof(id));
        (void)snprintf(path, sizeof(path), "pod%u", i);
        make(path);
        (void)snprintf(path, sizeof(path), "pod%u/%s", i, id);
        make(path);
    }
}

/* A whole node becomes due at the same time: no turn of the loop does all of the work, and the tree
 * is not read again for each container and card. */
TEST(a_turn_is_bounded)
{
    char world[1024] = "limits\n";
    unsigned most = 0;
    unsigned before = 0;
    for (unsigned i = 0; i < CARDS; i++) {
        size_t n = strlen(world);
        (void)snprintf(world + n, sizeof(world) - n,
                       "card uuid=GPU-%u name=A100 bus=%u minor=%u mib=40960\n", i, i + 1, i);
    }
    tear_down();
    open_with(world);
    make_many();
    l.share.cards.n = CARDS;
    for (unsigned i = 0; i < CARDS; i++)
        l.share.cards.cards[i] = i;
    limits_enable(l.limits, true);
    for (unsigned i = 0; i < PODS; i++)
        see_one(i);
    ck_assert_uint_eq(l.opened, 0); /* not in the turn of the watch of the pods */
    while (counts().enforced < PODS * CARDS) {
        struct wait wait = wait_begin(rig.loop, HERE("all are enforced"));
        wait_turn(&wait);
        most = MAX_OF(most, l.opened - before);
        before = l.opened;
    }
    ck_assert_uint_le(most, 33);
    ck_assert_uint_le(l.opened, 2 * (PODS + 10));
    /* a minute later all are due again, and none is looked for */
    rig_pass_s(61);
    rig_settle();
    ck_assert_uint_eq(l.opened, before);
    ck_assert_uint_eq(counts().enforced, PODS * CARDS);
}

/* The walk has passed its cgroup already when a container comes: that walk says nothing of it. */
TEST(a_container_that_comes_during_a_walk)
{
    uint64_t number = 0;
    take_away("pod/" ID("1"));
    take_away("pod");
    make_many();
    limits_enable(l.limits, true);
    see(ID("3"), "running", "Running"); /* has none, so the walk goes to the end */
    run_while(rig.loop, l.first[0] == '\0');
    ck_assert(str_to_u64(str_of(l.first), PODS, &number));
    see_one((unsigned)number);
    struct wait wait = wait_begin(rig.loop, HERE("it is enforced"));
    for (unsigned i = 0; i < 25 && counts().enforced == 0; i++)
        wait_turn(&wait); /* too few for another try, a second later */
    ck_assert_uint_eq(counts().enforced, 1);
}

TEST(a_lost_card)
{
    world_write(&rig.world, "limits\ncard uuid=GPU-1 name=A100 bus=1 minor=0 mib=40960 error=15\n");
    run_while(rig.loop, gpu_watch_find(rig.gpu, 0)->health != GPU_UNHEALTHY);
    limits_enable(l.limits, true);
    see(ID("1"), "running", "Running");
    for (unsigned i = 0; i < 10; i++)
        rig_pass_s(10);
    ck_assert_uint_eq(counts().missing, 0);
    ck_assert_uint_eq(counts().enforced, 0);
    ck_assert_uint_eq(counts().checking,
                      0); /* nobody waits for the answer of a card that is lost */
}

TEST(a_share_that_is_not_known_yet)
{
    l.share.units = 0;
    limits_enable(l.limits, true);
    see(ID("1"), "running", "Running");
    run_turns(rig.loop, 3);
    l.share.units = 2;
    limits_update_all(l.limits);
    run_while(rig.loop, counts().enforced == 0);
    assert_set(0, 2 * GIB);
    containers_gone(&rig.containers, STR("u1"));
    limits_update_all(l.limits);
    ck_assert_uint_eq(counts().enforced, 0);
}

int main(void)
{
    TCase *c = unit_case("limits");
    tcase_add_checked_fixture(c, set_up, tear_down);
    return unit_run();
}
