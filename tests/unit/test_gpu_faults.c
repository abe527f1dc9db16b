/* The watch on the double of NVIDIA's library: which faults of cards a restart does not forget. */
#include "gpu_rig.h"

#define CARD(n)       "card uuid=GPU-" n " name=A100 bus=" n " minor=" n " mib=40960 "
#define EVENT(n, xid) "event number=" n " uuid=GPU-1 xid=" xid "\n"

/* What the kernel says about this boot. */
static void boot(const struct gpu_rig *r, const char *id)
{
    char command[256];
    (void)snprintf(command, sizeof(command),
                   "mkdir -p %s/sys/kernel/random && echo %s >%s/sys/kernel/random/boot_id",
                   r->proc, id, r->proc);
    ck_assert_int_eq(system(command), 0); /* NOLINT(cert-env33-c): a test's own folder */
}

/* Runs a program that hears of an XID of the first of two cards. */
static void open_with_fault(struct gpu_rig *r, const char *more, const char *event)
{
    char world[512];
    gpu_rig_open(r, CARD("1") "\n" CARD("2") "\n");
    boot(r, "boot-1");
    gpu_rig_start(r);
    gpu_rig_until(r, "1=GPU-1 2=GPU-2");
    (void)snprintf(world, sizeof(world), CARD("1") "%s\n" CARD("2") "\n%s", more, event);
    world_write(&r->world, world);
    gpu_rig_until(r, "1=GPU-1! 2=GPU-2");
    gpu_rig_poll(r);
    gpu_rig_stop(r);
    /* the next program does not hear of it */
    (void)snprintf(world, sizeof(world), CARD("1") "%s\n" CARD("2") "\n", more);
    world_write(&r->world, world);
    r->s.cooldown_ms = 1;
}

static void stays(struct gpu_rig *r, const char *cards)
{
    gpu_rig_until(r, cards);
    for (int i = 0; i < 10; i++)
        gpu_rig_poll(r);
    ck_assert_str_eq(gpu_rig_cards(r), cards);
}

/* The content of the file of faults. */
static const char *faults(const struct gpu_rig *r, char ret[static 256])
{
    char path[128];
    struct buf text = buf_on(ret, 256);
    (void)snprintf(path, sizeof(path), "%s.faults", r->state);
    ck_assert_int_eq(file_read_again(str_of(path), &text, NULL), OK);
    return buf_cstr(&text);
}

TEST(an_xid_outlives_a_restart_until_the_reset)
{
    struct gpu_rig r;
    char text[256];
    open_with_fault(&r, "", EVENT("1", "79"));
    ck_assert_str_eq(faults(&r, text), "cardpack-faults 1 boot-1\nGPU-1 79\n");
    for (int i = 0; i < 2; i++) {
        gpu_rig_start(&r);
        stays(&r, "1=GPU-1! 2=GPU-2");
        assert_reason(&r, 1, "XID 79 (GPU has fallen off the bus): it needs a reset");
        gpu_rig_stop(&r);
    }
    gpu_rig_start(&r);
    gpu_rig_until(&r, "1=GPU-1! 2=GPU-2");
    world_write(&r.world, CARD("1") "error=15\n" CARD("2") "\n");
    gpu_rig_until(&r, "1=GPU-1? 2=GPU-2");
    world_write(&r.world, CARD("1") "\n" CARD("2") "\n");
    gpu_rig_until(&r, "1=GPU-1 2=GPU-2");
    gpu_rig_stop(&r);
    ck_assert_str_eq(faults(&r, text), "");
    gpu_rig_start(&r);
    stays(&r, "1=GPU-1 2=GPU-2");
    gpu_rig_close(&r);
}

/* What says after the restart whether the card was reset meanwhile: the boot and the driver, and
 * not a count of errors that began anew when the program before closed the driver. */
TEST_EACH(a_reset_before_the_start_is_seen, 3)
{
    static const struct {
        const char *before;
        const char *boot;
        const char *after;
        const char *cards;
    } cases[] = {
        {"", "boot-2", "", "1=GPU-1 2=GPU-2"},
        {"", "boot-1", "recovery=0", "1=GPU-1 2=GPU-2"},
        {"ecc=3", "boot-1", "ecc=0", "1=GPU-1! 2=GPU-2"},
    };
    struct gpu_rig r;
    char world[512];
    open_with_fault(&r, cases[_i].before, EVENT("1", "95"));
    boot(&r, cases[_i].boot);
    (void)snprintf(world, sizeof(world), CARD("1") "%s\n" CARD("2") "\n", cases[_i].after);
    world_write(&r.world, world);
    gpu_rig_start(&r);
    stays(&r, cases[_i].cards);
    gpu_rig_close(&r);
}

/* The card is counted by NVML, and was not away: its device node may not be opened, or its memory
 * is not told. */
TEST_EACH(a_card_that_can_not_be_described_keeps_its_fault, 5)
{
    static const struct {
        const char *how;
        const char *later;
    } cases[] = {
        {"error=4", "1=GPU-1! 2=GPU-2"},  {"error=999", "1=GPU-1! 2=GPU-2"},
        {"memory=4", "1=GPU-1! 2=GPU-2"}, {"error=16", "1=GPU-1 2=GPU-2"},
        {"error=15", "1=GPU-1 2=GPU-2"},
    };
    struct gpu_rig r;
    char text[256];
    char world[512];
    open_with_fault(&r, "", EVENT("1", "48"));
    (void)snprintf(world, sizeof(world), CARD("1") "%s\n" CARD("2") "\n", cases[_i].how);
    world_write(&r.world, world);
    gpu_rig_start(&r);
    stays(&r, "1=GPU-1? 2=GPU-2");
    bool kept = cases[_i].later[7] == '!';
    ck_assert_str_eq(faults(&r, text), kept ? "cardpack-faults 1 boot-1\nGPU-1 48\n" : "");
    world_write(&r.world, CARD("1") "\n" CARD("2") "\n");
    stays(&r, cases[_i].later);
    gpu_rig_close(&r);
}

#define SLICE(n, more) "slice uuid=MIG-" n " profile=1g.5gb gi=" n " ci=0 mib=4864 " more "\n"

/* NVML does not tell its UUID, or all but its memory: that is no slice that an administrator has
 * removed. */
TEST_EACH(a_slice_that_can_not_be_described_keeps_its_index_and_fault, 2)
{
    static const char *const how[] = {
        CARD("1") "mig=1\n" SLICE("1", "error=4") SLICE("2", ""),
        CARD("1") "mig=1\n" SLICE("1", "memory=4") SLICE("2", ""),
    };
    struct gpu_rig r;
    gpu_rig_open(&r, CARD("1") "mig=1\n" SLICE("1", "") SLICE("2", ""));
    for (unsigned gi = 1; gi <= 2; gi++)
        gpu_rig_nodes(&r, 1, gi);
    r.s.cooldown_ms = 1;
    gpu_rig_start(&r);
    gpu_rig_until(&r, "0=MIG-1 1=MIG-2");
    world_write(&r.world,
                CARD("1") "mig=1\n" SLICE("1", "") SLICE("2", "") "event number=1 "
                                                                  "uuid=GPU-1 xid=48 gi=1\n");
    gpu_rig_until(&r, "0=MIG-1! 1=MIG-2");
    world_write(&r.world, how[_i]);
    stays(&r, "0=MIG-1? 1=MIG-2");
    world_write(&r.world, CARD("1") "mig=1\n" SLICE("1", "") SLICE("2", ""));
    stays(&r, "0=MIG-1! 1=MIG-2");
    gpu_rig_close(&r);
}

/* An XID that needs no reset counts for its cooldown, from the start on. */
TEST(the_cooldown_begins_anew)
{
    struct gpu_rig r;
    open_with_fault(&r, "", EVENT("1", "177"));
    /* An administrator has edited it. */
    char path[128];
    (void)snprintf(path, sizeof(path), "%s.faults", r.state);
    ck_assert_int_eq(file_replace(str_of(path),
                                  STR("cardpack-faults 1 boot-1\nnonsense\nGPU-1\nGPU-1 x\n"
                                      "GPU-9 79\nGPU-2 177"),
                                  NULL),
                     OK);
    r.s.cooldown_ms = HOUR_MS;
    gpu_rig_start(&r);
    stays(&r, "1=GPU-1 2=GPU-2!");
    gpu_rig_stop(&r);
    r.s.disable = STR("177");
    gpu_rig_start(&r);
    stays(&r, "1=GPU-1 2=GPU-2");
    gpu_rig_close(&r);
}

TEST(a_file_that_can_not_be_written_is_told_and_tried_again)
{
    struct gpu_rig r;
    char path[128];
    char text[256];
    gpu_rig_open(&r, CARD("1") "\n");
    boot(&r, "boot-1");
    gpu_rig_start(&r);
    gpu_rig_until(&r, "1=GPU-1");
    (void)snprintf(path, sizeof(path), "%s.faults", r.state);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    world_write(&r.world, CARD("1") "\n" EVENT("1", "48"));
    gpu_rig_until(&r, "1=GPU-1!");
    ck_assert_uint_gt(gpu_watch_state(r.watch).state_fault.n, 0);
    ck_assert_int_eq(rmdir(path), 0);
    run_while(r.loop, gpu_watch_state(r.watch).state_fault.n > 0);
    ck_assert_str_eq(faults(&r, text), "cardpack-faults 1 boot-1\nGPU-1 48\n");
    gpu_rig_close(&r);
}
