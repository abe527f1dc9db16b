/*
 * The watch on the double of NVIDIA's library: cards that are lost, come back, are replaced or cut
 * into slices, and which index each has then.
 */
#include "gpu_rig.h"

#define CARD(n, minor) "card uuid=GPU-" n " name=A100 bus=" n " minor=" minor " mib=40960 "
#define SIZED(more)    "card uuid=GPU-1 name=A100 bus=1 minor=0 mib=81920 " more "\n"
#define MIG_CARD       "card uuid=GPU-1 name=A100 bus=1 minor=0 mib=40960 mig=1\n"
#define SLICE(gi)      "slice uuid=MIG-" gi " profile=1g.5gb gi=" gi " ci=0 mib=4864\n"

static void open_and_start(struct gpu_rig *r, const char *world, const char *cards)
{
    gpu_rig_open(r, world);
    for (unsigned gi = 1; gi <= 3; gi++)
        gpu_rig_nodes(r, 0, gi);
    gpu_rig_start(r);
    gpu_rig_until(r, cards);
}

static void restart(struct gpu_rig *r, const char *world, const char *cards)
{
    gpu_rig_stop(r);
    world_write(&r->world, world);
    gpu_rig_start(r);
    gpu_rig_until(r, cards);
}

/* The calls for it fail. */
TEST(a_lost_card_is_unhealthy)
{
    struct gpu_rig r;
    gpu_rig_open(&r, CARD("1", "0") "\n" CARD("2", "1") "\n");
    r.s.probe_ms = HOUR_MS;
    gpu_rig_start(&r);
    gpu_rig_until(&r, "0=GPU-1 1=GPU-2");
    world_write(&r.world, CARD("1", "0") "\n" CARD("2", "1") "error=15\n");
    gpu_rig_until(&r, "0=GPU-1 1=GPU-2!");
    assert_reason(&r, 1, "GPU is lost");
    gpu_rig_poll(&r);
    ck_assert_str_eq(gpu_rig_cards(&r), "0=GPU-1 1=GPU-2!");
    /* It answers again at the next poll: no list of NVML was without it. */
    world_write(&r.world, CARD("1", "0") "\n" CARD("2", "1") "\n");
    run_while(r.loop, memmem(gpu_watch_find(r.watch, 1)->reason.p,
                             gpu_watch_find(r.watch, 1)->reason.n, "again", 5) == NULL);
    ck_assert_str_eq(gpu_rig_cards(&r), "0=GPU-1 1=GPU-2!");
    gpu_rig_close(&r);
}

/* Other errors don't mean that it is lost, and may pass. */
TEST(a_card_that_fails_again_and_again_is_unhealthy)
{
    struct gpu_rig r;
    gpu_rig_open(&r, CARD("1", "0") "\n" CARD("2", "1") "\n");
    r.s.cooldown_ms = 20;
    gpu_rig_start(&r);
    gpu_rig_until(&r, "0=GPU-1 1=GPU-2");
    world_write(&r.world, CARD("1", "0") "error=999\n" CARD("2", "1") "\n");
    gpu_rig_until(&r, "0=GPU-1! 1=GPU-2");
    assert_reason(&r, 0, "NVML error 999");
    world_write(&r.world, CARD("1", "0") "\n" CARD("2", "1") "\n");
    gpu_rig_until(&r, "0=GPU-1 1=GPU-2");
    gpu_rig_close(&r);
}

/* NVML leaves it out at the next nvmlInit, and shifts its own indices and the minors. */
TEST(a_lost_card_is_looked_for_and_recovers)
{
    struct gpu_rig r;
    gpu_rig_open(&r, CARD("1", "0") "\n" CARD("2", "1") "\n" CARD("3", "2") "\n");
    r.s.cooldown_ms = 30;
    gpu_rig_start(&r);
    gpu_rig_until(&r, "0=GPU-1 1=GPU-2 2=GPU-3");
    world_write(&r.world, CARD("1", "0") "\n" CARD("2", "1") "error=15\n" CARD("3", "1") "\n");
    gpu_rig_until(&r, "0=GPU-1 1=GPU-2? 2=GPU-3");
    assert_reason(&r, 1, "NVML does not list the card");
    ck_assert_int_eq(gpu_watch_find(r.watch, 1)->health, GPU_UNHEALTHY);
    ck_assert_uint_eq(gpu_watch_find(r.watch, 2)->minor, 1);
    world_write(&r.world, CARD("3", "0") "\n" CARD("2", "1") "\n" CARD("1", "2") "\n");
    gpu_rig_until(&r, "0=GPU-1 1=GPU-2 2=GPU-3");
    gpu_rig_close(&r);
}

TEST(a_card_that_came_back_is_watched_for_the_cooldown)
{
    struct gpu_rig r;
    open_and_start(&r, CARD("1", "0") "\n" CARD("2", "1") "\n", "0=GPU-1 1=GPU-2");
    world_write(&r.world, CARD("1", "0") "\n" CARD("2", "1") "error=15\n");
    gpu_rig_until(&r, "0=GPU-1 1=GPU-2?");
    world_write(&r.world, CARD("1", "0") "\n" CARD("2", "1") "\n");
    gpu_rig_until(&r, "0=GPU-1 1=GPU-2!");
    assert_reason(&r, 1, "is watched for a while");
    for (int i = 0; i < 10; i++)
        gpu_rig_poll(&r);
    ck_assert_str_eq(gpu_rig_cards(&r), "0=GPU-1 1=GPU-2!");
    gpu_rig_close(&r);
}

/* An event comes with a handle of the list after the shift. */
TEST(an_xid_after_a_shift_is_of_the_right_card)
{
    struct gpu_rig r;
    open_and_start(&r, CARD("1", "0") "\n" CARD("2", "1") "\n" CARD("3", "2") "\n",
                   "0=GPU-1 1=GPU-2 2=GPU-3");
    world_write(&r.world, CARD("3", "0") "\n" CARD("2", "1") "error=15\n" CARD("1", "2") "\n");
    gpu_rig_until(&r, "0=GPU-1 1=GPU-2? 2=GPU-3");
    world_write(&r.world, CARD("3", "0") "\n" CARD("2", "1") "error=15\n" CARD(
                              "1", "2") "\nevent number=1 uuid=GPU-3 xid=79\n");
    gpu_rig_until(&r, "0=GPU-1 1=GPU-2? 2=GPU-3!");
    gpu_rig_close(&r);
}

TEST(indices_outlive_a_restart)
{
    struct gpu_rig r;
    open_and_start(&r, CARD("1", "0") "\n" CARD("2", "1") "\n" CARD("3", "2") "\n",
                   "0=GPU-1 1=GPU-2 2=GPU-3");
    restart(&r, CARD("3", "0") "\n" CARD("2", "1") "\n" CARD("1", "2") "\n",
            "0=GPU-1 1=GPU-2 2=GPU-3");
    restart(&r, CARD("1", "0") "\n" CARD("3", "1") "\n", "0=GPU-1 1=GPU-2? 2=GPU-3");
    restart(&r, CARD("2", "0") "\n", "0=GPU-1? 1=GPU-2 2=GPU-3?");
    gpu_rig_close(&r);
}

/* Before the first answer, the cards of the state file are there and can't be used. */
TEST(after_a_restart_without_a_driver_the_cards_are_missing)
{
    struct gpu_rig r;
    open_and_start(&r, CARD("1", "0") "\n" CARD("2", "1") "\n", "0=GPU-1 1=GPU-2");
    gpu_rig_stop(&r);
    world_write(&r.world, "init error=9\n");
    gpu_rig_start(&r);
    ck_assert_str_eq(gpu_rig_cards(&r), "0=GPU-1? 1=GPU-2?");
    ck_assert_int_eq(gpu_watch_find(r.watch, 0)->health, GPU_UNHEALTHY);
    gpu_rig_until_phase(&r, GPU_WATCH_NO_DRIVER, "0=GPU-1? 1=GPU-2?");
    ck_assert_int_eq(gpu_watch_find(r.watch, 0)->health, GPU_UNHEALTHY);
    gpu_rig_close(&r);
}

TEST_EACH(a_replaced_card_has_the_index_if_no_pod_uses_it, 2)
{
    struct gpu_rig r;
    open_and_start(&r, CARD("1", "0") "\n" CARD("2", "1") "\n", "0=GPU-1 1=GPU-2");
    gpu_rig_stop(&r);
    if (_i == 1)
        r.busy = 1U << 1;
    world_write(&r.world, CARD("1", "0") "\ncard uuid=GPU-9 name=H100 bus=2 minor=1 mib=81920\n");
    gpu_rig_start(&r);
    gpu_rig_until(&r, _i == 1 ? "0=GPU-1 1=GPU-2? 2=GPU-9" : "0=GPU-1 1=GPU-9");
    if (_i == 0)
        ck_assert_uint_eq(gpu_watch_find(r.watch, 1)->memory_bytes, UINT64_C(81920) << 20);
    /* When the pods have ended, the new card keeps the index that it has, and the old one is
     * forgotten. */
    r.busy = 0;
    gpu_rig_poll(&r);
    ck_assert_str_eq(gpu_rig_cards(&r), _i == 1 ? "0=GPU-1 2=GPU-9" : "0=GPU-1 1=GPU-9");
    gpu_rig_close(&r);
}

TEST_EACH(an_xid_of_one_slice_leaves_the_others_healthy, 5)
{
    static const struct {
        const char *event;
        const char *cards;
    } cases[] = {
        {"event number=1 uuid=GPU-1 xid=79 gi=2\n", "0=MIG-1 1=MIG-2! 2=MIG-3 3=GPU-2"},
        {"event number=1 uuid=GPU-1 xid=94 gi=3\n", "0=MIG-1 1=MIG-2 2=MIG-3~ 3=GPU-2"},
        {"event number=1 uuid=GPU-1 xid=79\n", "0=MIG-1! 1=MIG-2! 2=MIG-3! 3=GPU-2"},
        {"event number=1 uuid=GPU-1 xid=79 gi=9\n", "0=MIG-1 1=MIG-2 2=MIG-3 3=GPU-2"},
        {"event number=1 uuid=GPU-2 xid=79\n", "0=MIG-1 1=MIG-2 2=MIG-3 3=GPU-2!"},
    };
    struct gpu_rig r;
    char world[1024];
    const char *before = MIG_CARD SLICE("1") SLICE("2") SLICE("3") CARD("2", "3") "\n";
    open_and_start(&r, before, "0=MIG-1 1=MIG-2 2=MIG-3 3=GPU-2");
    (void)snprintf(world, sizeof(world), "%s%s", before, cases[_i].event);
    world_write(&r.world, world);
    run_while(r.loop, gpu_watch_state(r.watch).xids == 0);
    ck_assert_str_eq(gpu_rig_cards(&r), cases[_i].cards);
    gpu_rig_poll(&r);
    ck_assert_str_eq(gpu_rig_cards(&r), cases[_i].cards);
    gpu_rig_close(&r);
}

/* NVML tells their card's memory to a process with the capability. */
TEST(slices_are_the_same_with_the_right_to_monitor)
{
    struct gpu_rig r;
    open_and_start(&r, "mig-monitor\n" MIG_CARD SLICE("1") SLICE("2"), "0=MIG-1 1=MIG-2");
    ck_assert_uint_eq(gpu_watch_find(r.watch, 1)->memory_bytes, UINT64_C(4864) << 20);
    gpu_rig_close(&r);
}

/* The size that was announced stays, whatever the driver reserves later. */
TEST(what_the_driver_reserves_is_no_pods)
{
    struct gpu_rig r;
    open_and_start(&r, SIZED("reserved=700"), "0=GPU-1");
    ck_assert_uint_eq(gpu_watch_find(r.watch, 0)->memory_bytes, UINT64_C(81220) << 20);
    world_write(&r.world, SIZED("reserved=900 error=15"));
    gpu_rig_until(&r, "0=GPU-1?");
    world_write(&r.world, SIZED("reserved=900"));
    gpu_rig_until(&r, "0=GPU-1!");
    ck_assert_uint_eq(gpu_watch_find(r.watch, 0)->memory_bytes, UINT64_C(81220) << 20);
    gpu_rig_stop(&r);
    gpu_rig_start(&r);
    gpu_rig_until(&r, "0=GPU-1");
    ck_assert_uint_eq(gpu_watch_find(r.watch, 0)->memory_bytes, UINT64_C(81020) << 20);
    gpu_rig_close(&r);
}

TEST_EACH(a_card_without_a_size_is_left_out_and_named, 3)
{
    static const char *const ways[] = {"mib=0", "mib=0 memory=3", "memory=4"};
    static const char *const why[] = {
        "GPU-1: nvmlDeviceGetMemoryInfo: 0 bytes: set --card-memory",
        "GPU-1: nvmlDeviceGetMemoryInfo: Unknown Error: set --card-memory",
        "GPU-1: nvmlDeviceGetMemoryInfo: Unknown Error",
    };
    char world[256];
    struct gpu_rig r;
    (void)snprintf(world, sizeof(world), "card uuid=GPU-1 name=GB10 bus=1 minor=0 %s\n%s\n",
                   ways[_i], CARD("2", "1"));
    open_and_start(&r, world, "1=GPU-2");
    ck_assert_uint_eq(gpu_watch_state(r.watch).left_out, 1);
    ck_assert_str_is(gpu_watch_state(r.watch).left_out_why, why[_i]);
    gpu_rig_close(&r);
}

TEST(a_setting_gives_a_card_its_size)
{
    struct gpu_rig r;
    gpu_rig_open(&r,
                 "card uuid=GPU-1 name=GB10 bus=1 minor=0 mib=0 memory=3\n" CARD("2", "1") "\n");
    r.s.card_bytes = UINT64_C(96) << 30;
    gpu_rig_start(&r);
    gpu_rig_until(&r, "0=GPU-1 1=GPU-2");
    ck_assert_uint_eq(gpu_watch_find(r.watch, 0)->memory_bytes, UINT64_C(96) << 30);
    ck_assert_uint_ne(gpu_watch_find(r.watch, 1)->memory_bytes, UINT64_C(96) << 30);
    ck_assert_uint_eq(gpu_watch_state(r.watch).left_out, 0);
    gpu_rig_close(&r);
}

TEST(slices_are_cards_of_their_own)
{
    struct gpu_rig r;
    open_and_start(&r, MIG_CARD SLICE("1") SLICE("2"), "0=MIG-1 1=MIG-2");
    const struct gpu_card *c = gpu_watch_find(r.watch, 1);
    ck_assert(c->mig);
    ck_assert_str_is(c->parent, "GPU-1");
    ck_assert_str_is(c->profile, "1g.5gb");
    ck_assert_uint_eq(c->memory_bytes, UINT64_C(4864) << 20);
    ck_assert_uint_eq(c->gpu_instance, 2);
    ck_assert_uint_eq(c->gpu_cap, 4);
    ck_assert_uint_eq(c->compute_cap, 5);
    ck_assert_uint_eq(c->minor, 0);
    /* A fault of the card is one of each slice. */
    world_write(&r.world,
                "card uuid=GPU-1 name=A100 bus=1 minor=0 mib=40960 mig=1 failure=1\n" SLICE("1")
                    SLICE("2"));
    gpu_rig_until(&r, "0=MIG-1! 1=MIG-2!");
    gpu_rig_close(&r);
}

TEST(a_removed_slice_is_forgotten_unless_pods_use_it)
{
    struct gpu_rig r;
    open_and_start(&r, MIG_CARD SLICE("1") SLICE("2"), "0=MIG-1 1=MIG-2");
    r.busy = 1U << 0;
    world_write(&r.world, MIG_CARD SLICE("2"));
    gpu_rig_until(&r, "0=MIG-1? 1=MIG-2");
    world_write(&r.world, MIG_CARD SLICE("2") SLICE("3"));
    gpu_rig_until(&r, "0=MIG-1? 1=MIG-2 2=MIG-3");
    r.busy = 0;
    gpu_rig_until(&r, "1=MIG-2 2=MIG-3");
    world_write(&r.world, MIG_CARD SLICE("2"));
    gpu_rig_until(&r, "1=MIG-2");
    gpu_rig_close(&r);
}

TEST(a_slice_whose_device_nodes_are_not_known_keeps_its_record)
{
    struct gpu_rig r;
    open_and_start(&r, MIG_CARD SLICE("1") SLICE("2"), "0=MIG-1 1=MIG-2");
    char file[256];
    char away[300];
    (void)snprintf(file, sizeof(file), "%s/driver/nvidia-caps/mig-minors", r.proc);
    (void)snprintf(away, sizeof(away), "%s.away", file);
    ck_assert_int_eq(rename(file, away), 0);
    world_write(&r.world, MIG_CARD SLICE("1") SLICE("2") "\n");
    gpu_rig_until(&r, "0=MIG-1? 1=MIG-2?");
    ck_assert_ptr_nonnull(strstr(gpu_watch_find(r.watch, 0)->reason.p, "does not name its nodes"));
    ck_assert_int_eq(rename(away, file), 0);
    world_write(&r.world, MIG_CARD SLICE("1") SLICE("2"));
    gpu_rig_until(&r, "0=MIG-1! 1=MIG-2!");
    gpu_rig_close(&r);
}

/* Two compute instances of one GPU instance would use the same memory: none is offered, and what
 * the first one was before is forgotten. */
TEST(a_slice_that_shares_its_memory_is_forgotten)
{
    struct gpu_rig r;
    char command[256];
    open_and_start(&r, MIG_CARD SLICE("1") SLICE("2"), "0=MIG-1 1=MIG-2");
    (void)snprintf(command, sizeof(command),
                   "echo gpu0/gi1/ci1/access 77 >>%s/driver/nvidia-caps/mig-minors", r.proc);
    ck_assert_int_eq(system(command), 0); /* NOLINT(cert-env33-c): a test's own folder */
    world_write(&r.world, MIG_CARD SLICE("1")
                              SLICE("2") "slice uuid=MIG-9 profile=1c.1g.5gb gi=1 ci=1 mib=4864\n");
    gpu_rig_until(&r, "1=MIG-2");
    ck_assert_uint_eq(gpu_watch_state(r.watch).left_out, 2);
    gpu_rig_close(&r);
}

/* NVML's indices of slices have no gaps: when the list has been read to the first slice and that is
 * removed, the second one is at an index that was read already. The cooldown of an hour would show
 * a slice that was missing for one poll only. */
TEST(a_slice_is_healthy_that_moves_while_the_list_is_read)
{
    struct gpu_rig r;
    open_and_start(&r, MIG_CARD SLICE("1") SLICE("2") SLICE("3"), "0=MIG-1 1=MIG-2 2=MIG-3");
    r.busy = 3;
    world_write_next(&r.world, MIG_CARD SLICE("2") SLICE("3"));
    world_write(&r.world, MIG_CARD SLICE("1") SLICE("2") SLICE("3") "shift index=1\n");
    gpu_rig_until(&r, "0=MIG-1? 1=MIG-2 2=MIG-3");
    for (int i = 0; i < 3; i++)
        gpu_rig_poll(&r);
    ck_assert_str_eq(gpu_rig_cards(&r), "0=MIG-1? 1=MIG-2 2=MIG-3");
    gpu_rig_close(&r);
}

TEST(a_card_is_switched_into_mig_mode_and_back)
{
    struct gpu_rig r;
    open_and_start(&r, CARD("1", "0") "\n" CARD("2", "1") "\n", "0=GPU-1 1=GPU-2");
    world_write(&r.world, MIG_CARD SLICE("1") SLICE("2") CARD("2", "1") "\n");
    gpu_rig_until(&r, "0=MIG-1 1=GPU-2 2=MIG-2");
    world_write(&r.world, CARD("1", "0") "\n" CARD("2", "1") "\n");
    gpu_rig_until(&r, "0=GPU-1 1=GPU-2");
    /* While pods have its slices, the card is for nobody else, as after a reboot. */
    world_write(&r.world, MIG_CARD SLICE("1") SLICE("2") CARD("2", "1") "\n");
    gpu_rig_until(&r, "0=MIG-1 1=GPU-2 2=MIG-2");
    r.busy = 1U << 2;
    world_write(&r.world, CARD("1", "0") "\n" CARD("2", "1") "\n");
    gpu_rig_until(&r, "0=GPU-1! 1=GPU-2 2=MIG-2?");
    ck_assert_str_is(gpu_watch_find(r.watch, 0)->reason,
                     "pods have MIG slices of the card, which is not in MIG mode");
    r.busy = 0;
    gpu_rig_until(&r, "0=GPU-1 1=GPU-2");
    /* While a pod uses the card, its index is not given to a slice. */
    r.busy = 1U << 0;
    world_write(&r.world, MIG_CARD SLICE("1") CARD("2", "1") "\n");
    gpu_rig_until(&r, "0=GPU-1? 1=GPU-2 2=MIG-1!");
    ck_assert_str_is(gpu_watch_find(r.watch, 2)->reason,
                     "a pod has the whole card, which is in MIG mode");
    r.busy = 0;
    gpu_rig_until(&r, "1=GPU-2 2=MIG-1");
    gpu_rig_close(&r);
}

/* A card in MIG mode without slices is in no list, but its slices come later. */
TEST(a_slice_that_is_made_later_is_listened_to)
{
    struct gpu_rig r;
    open_and_start(&r, MIG_CARD, "");
    world_write(&r.world, MIG_CARD SLICE("1"));
    gpu_rig_until(&r, "0=MIG-1");
    world_write(&r.world, MIG_CARD SLICE("1") "event number=1 uuid=GPU-1 xid=79 gi=1\n");
    gpu_rig_until(&r, "0=MIG-1!");
    gpu_rig_close(&r);
}
