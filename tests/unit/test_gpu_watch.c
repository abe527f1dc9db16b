/* The watch on the double of NVIDIA's library: its states, and what XIDs and polls make of cards.
 */
#include "fail_alloc.h"
#include "gpu_rig.h"

#define CARD(n)       "card uuid=GPU-" n " name=A100 bus=" n " minor=" n " mib=40960 "
#define EVENT(n, xid) "event number=" n " uuid=GPU-1 xid=" xid "\n"

TEST(an_xid_reaches_the_list)
{
    struct gpu_rig r;
    size_t n = 0;
    gpu_rig_open(&r, CARD("1") "\n");
    gpu_rig_start(&r);
    gpu_rig_until(&r, "1=GPU-1");
    const struct gpu_card *c = gpu_watch_cards(r.watch, &n);
    ck_assert_uint_eq(c->memory_bytes, UINT64_C(40960) << 20);
    world_write(&r.world, CARD("1") "\n" EVENT("1", "79"));
    gpu_rig_until(&r, "1=GPU-1!");
    assert_reason(&r, 1, "XID 79");
    ck_assert_uint_eq(gpu_watch_state(r.watch).last_xid, 79);
    gpu_rig_close(&r);
}

TEST(a_missing_library_is_a_state)
{
    struct gpu_rig r;
    gpu_rig_open(&r, "");
    r.s.library = "/nonexistent/libnvidia-ml.so.1";
    gpu_rig_start(&r);
    gpu_rig_until_phase(&r, GPU_WATCH_NO_LIBRARY, "");
    gpu_rig_close(&r);
}

/* What one XID, and then the health checks that are switched off, do to a card. */
TEST_EACH(each_xid_has_its_effect, 24)
{
    static const struct {
        const char *xid;
        const char *cards;
        const char *disable;
        const char *enable;
    } cases[] = {
        {"13", "1=GPU-1 2=GPU-2", NULL, NULL},    {"31", "1=GPU-1 2=GPU-2", NULL, NULL},
        {"43", "1=GPU-1 2=GPU-2", NULL, NULL},    {"45", "1=GPU-1 2=GPU-2", NULL, NULL},
        {"68", "1=GPU-1 2=GPU-2", NULL, NULL},    {"109", "1=GPU-1 2=GPU-2", NULL, NULL},
        {"63", "1=GPU-1~ 2=GPU-2", NULL, NULL},   {"92", "1=GPU-1~ 2=GPU-2", NULL, NULL},
        {"94", "1=GPU-1~ 2=GPU-2", NULL, NULL},   {"48", "1=GPU-1! 2=GPU-2", NULL, NULL},
        {"62", "1=GPU-1! 2=GPU-2", NULL, NULL},   {"64", "1=GPU-1! 2=GPU-2", NULL, NULL},
        {"74", "1=GPU-1! 2=GPU-2", NULL, NULL},   {"79", "1=GPU-1! 2=GPU-2", NULL, NULL},
        {"95", "1=GPU-1! 2=GPU-2", NULL, NULL},   {"119", "1=GPU-1! 2=GPU-2", NULL, NULL},
        {"120", "1=GPU-1! 2=GPU-2", NULL, NULL},  {"177", "1=GPU-1! 2=GPU-2", NULL, NULL},
        {"79", "1=GPU-1 2=GPU-2", "all", NULL},   {"79", "1=GPU-1 2=GPU-2", "xids", NULL},
        {"79", "1=GPU-1 2=GPU-2", "48,79", NULL}, {"79", "1=GPU-1! 2=GPU-2", "48", NULL},
        {"79", "1=GPU-1! 2=GPU-2", "all", "79"},  {"31", "1=GPU-1! 2=GPU-2", NULL, "31"},
    };
    struct gpu_rig r;
    char world[512];
    gpu_rig_open(&r, CARD("1") "\n" CARD("2") "\n");
    r.s.disable = str_of(cases[_i].disable);
    r.s.enable = str_of(cases[_i].enable);
    gpu_rig_start(&r);
    gpu_rig_until(&r, "1=GPU-1 2=GPU-2");
    (void)snprintf(world, sizeof(world), CARD("1") "\n" CARD("2") "\n" EVENT("1", "%s"),
                   cases[_i].xid);
    world_write(&r.world, world);
    run_while(r.loop, gpu_watch_state(r.watch).xids == 0);
    ck_assert_str_eq(gpu_rig_cards(&r), cases[_i].cards);
    gpu_rig_poll(&r); /* which does not take it back */
    ck_assert_str_eq(gpu_rig_cards(&r), cases[_i].cards);
    gpu_rig_close(&r);
}

TEST(a_card_with_an_xid_recovers_after_its_reset)
{
    struct gpu_rig r;
    gpu_rig_open(&r, CARD("1") "\n");
    r.s.cooldown_ms = 30;
    gpu_rig_start(&r);
    gpu_rig_until(&r, "1=GPU-1");
    world_write(&r.world, CARD("1") "\n" EVENT("1", "79") EVENT("2", "45"));
    run_while(r.loop, gpu_watch_state(r.watch).xids < 2);
    /* Good polls alone don't make it healthy, for however long. */
    for (int i = 0; i < 20; i++)
        gpu_rig_poll(&r);
    ck_assert_str_eq(gpu_rig_cards(&r), "1=GPU-1!");
    assert_reason(&r, 1, "it needs a reset");
    world_write(&r.world, CARD("1") "error=15\n");
    gpu_rig_until(&r, "1=GPU-1?");
    world_write(&r.world, CARD("1") "\n");
    gpu_rig_until(&r, "1=GPU-1");
    ck_assert_str_is(gpu_watch_find(r.watch, 1)->reason, "");
    gpu_rig_close(&r);
}

/* XIDs 140 to 154, of newer drivers: by the XID alone the card would be back after the cooldown. */
TEST(a_card_is_unhealthy_until_the_driver_asks_for_no_reset)
{
    struct gpu_rig r;
    gpu_rig_open(&r, CARD("1") "recovery=0\n");
    r.s.cooldown_ms = 10;
    gpu_rig_start(&r);
    gpu_rig_until(&r, "1=GPU-1");
    world_write(&r.world, CARD("1") "recovery=1\n" EVENT("1", "154"));
    gpu_rig_until(&r, "1=GPU-1!");
    for (int i = 0; i < 20; i++)
        gpu_rig_poll(&r);
    ck_assert_str_eq(gpu_rig_cards(&r), "1=GPU-1!");
    assert_reason(&r, 1, "by the driver it needs a reset");
    world_write(&r.world, CARD("1") "recovery=0\n");
    gpu_rig_until(&r, "1=GPU-1");
    /* What a restart of the program can't forget: the driver still says it. */
    gpu_rig_stop(&r);
    world_write(&r.world, CARD("1") "recovery=4\n");
    gpu_rig_start(&r);
    gpu_rig_until(&r, "1=GPU-1!");
    gpu_rig_close(&r);
}

TEST(after_an_xid_the_driver_is_asked_soon)
{
    struct gpu_rig r;
    gpu_rig_open(&r, CARD("1") "recovery=0\n");
    r.s.poll_ms = HOUR_MS;
    gpu_rig_start(&r);
    gpu_rig_until(&r, "1=GPU-1");
    world_write(&r.world, CARD("1") "recovery=1\n" EVENT("1", "140"));
    run_while(r.loop, !gpu_watch_find(r.watch, 1)->needs_reset);
    assert_reason(&r, 1, "by the driver it needs a reset");
    gpu_rig_close(&r);
}

TEST(rows_are_warned_of_or_make_a_card_unhealthy)
{
    struct gpu_rig r;
    gpu_rig_open(&r, CARD("1") "\n" CARD("2") "\n");
    r.s.cooldown_ms = 30;
    gpu_rig_start(&r);
    gpu_rig_until(&r, "1=GPU-1 2=GPU-2");
    world_write(&r.world, CARD("1") "pending=1\n" CARD("2") "\n");
    gpu_rig_until(&r, "1=GPU-1~ 2=GPU-2");
    assert_reason(&r, 1, "drain");
    world_write(&r.world, CARD("1") "pending=1\n" CARD("2") "failure=1\n");
    gpu_rig_until(&r, "1=GPU-1~ 2=GPU-2!");
    assert_reason(&r, 2, "no spare row");
    /* Older cards have no rows, but count errors and retire pages. */
    world_write(&r.world, CARD("1") "rows=0 pages=1\n" CARD("2") "rows=0 ecc=3\n");
    gpu_rig_until(&r, "1=GPU-1~ 2=GPU-2!");
    world_write(&r.world, CARD("1") "\n" CARD("2") "\n");
    gpu_rig_until(&r, "1=GPU-1 2=GPU-2");
    gpu_rig_close(&r);
}

TEST(without_events_the_cards_are_polled)
{
    struct gpu_rig r;
    gpu_rig_open(&r, CARD("1") "\nno-events\n");
    gpu_rig_start(&r);
    gpu_rig_until(&r, "1=GPU-1");
    world_write(&r.world, CARD("1") "failure=1\nno-events\n" EVENT("1", "79"));
    gpu_rig_until(&r, "1=GPU-1!");
    gpu_rig_poll(&r);
    ck_assert_uint_eq(gpu_watch_state(r.watch).xids, 0);
    ck_assert_uint_eq(gpu_watch_state(r.watch).unheard, 1);
    assert_reason(&r, 1, "no spare row");
    gpu_rig_close(&r);
}

/* A poll takes longer than the time between two. */
TEST(with_a_slow_driver_events_are_heard)
{
    struct gpu_rig r;
    gpu_rig_open(&r, CARD("1") "\nslow ms=3\n");
    gpu_rig_start(&r);
    gpu_rig_until(&r, "1=GPU-1");
    gpu_rig_poll(&r);
    world_write(&r.world, CARD("1") "\nslow ms=3\n" EVENT("1", "79"));
    gpu_rig_until(&r, "1=GPU-1!");
    gpu_rig_close(&r);
}

TEST(a_driver_that_is_not_there_is_tried_again)
{
    struct gpu_rig r;
    gpu_rig_open(&r, "init error=9\n");
    gpu_rig_start(&r);
    gpu_rig_until_phase(&r, GPU_WATCH_NO_DRIVER, "");
    ck_assert_str_is(gpu_watch_state(r.watch).why, "nvmlInit: NVML error 9 (Driver Not Loaded)");
    world_write(&r.world, CARD("1") "\n");
    gpu_rig_until(&r, "1=GPU-1");
    ck_assert_str_is(gpu_watch_state(r.watch).why, "");
    world_write(&r.world, "init error=9\n" CARD("1") "\n");
    gpu_rig_until_phase(&r, GPU_WATCH_NO_DRIVER, "1=GPU-1!");
    assert_reason(&r, 1, "Driver Not Loaded");
    world_write(&r.world, CARD("1") "\n");
    gpu_rig_until(&r, "1=GPU-1");
    gpu_rig_close(&r);
}

/* The driver was unloaded, which resets the cards; or a call failed, which does not, whatever NVML
 * says of a driver that is in the kernel. */
TEST(only_a_driver_that_was_unloaded_has_reset_the_cards)
{
    struct gpu_rig r;
    char module[sizeof(r.world.dir) + 16];
    gpu_rig_open(&r, CARD("1") "\n");
    (void)snprintf(module, sizeof(module), "%s/module", r.world.dir);
    ck_assert_int_eq(mkdir(module, 0700), 0);
    (void)snprintf(module, sizeof(module), "%s/module/nvidia", r.world.dir);
    r.s.sys = r.world.dir;
    r.s.cooldown_ms = 10;
    gpu_rig_start(&r);
    gpu_rig_until(&r, "1=GPU-1");
    world_write(&r.world, CARD("1") "\n" EVENT("1", "79"));
    gpu_rig_until(&r, "1=GPU-1!");
    ck_assert_int_eq(mkdir(module, 0700), 0);
    for (int closed = 0; closed < 2; closed++) {
        world_write(&r.world,
                    closed ? CARD("1") "\ninit error=9\n" : CARD("1") "\ninit error=999\n");
        gpu_rig_until_phase(&r, GPU_WATCH_NO_DRIVER, "1=GPU-1!");
        world_write(&r.world, CARD("1") "\n");
        gpu_rig_until(&r, "1=GPU-1!");
        for (int i = 0; i < 10; i++)
            gpu_rig_poll(&r);
        ck_assert_str_eq(gpu_rig_cards(&r), "1=GPU-1!");
        assert_reason(&r, 1, "it needs a reset");
    }
    ck_assert_int_eq(rmdir(module), 0);
    world_write(&r.world, CARD("1") "\ninit error=9\n");
    gpu_rig_until_phase(&r, GPU_WATCH_NO_DRIVER, "1=GPU-1!");
    world_write(&r.world, CARD("1") "\n");
    gpu_rig_until(&r, "1=GPU-1");
    gpu_rig_close(&r);
}

/* Asked in each scan, after its allocations: those of the next one fail. */
static bool fail_next_scan(void *ctx, uint32_t index)
{
    bool *fails = ctx;
    (void)index;
    if (*fails)
        fail_alloc_arm(FAIL_ONCE, 1);
    *fails = false;
    return true;
}

TEST(a_lack_of_memory_is_no_longer_told_when_it_has_passed)
{
    struct gpu_rig r;
    bool fails = false;
    gpu_rig_open(&r, CARD("1") "mig=1\nslice uuid=MIG-1 profile=1g gi=1 ci=0 mib=4864\n"
                               "slice uuid=MIG-2 profile=1g gi=2 ci=0 mib=4864\n");
    gpu_rig_nodes(&r, 1, 1);
    gpu_rig_nodes(&r, 1, 2);
    r.s.in_use = fail_next_scan;
    r.s.ctx = &fails;
    gpu_rig_start(&r);
    gpu_rig_until(&r, "0=MIG-1 1=MIG-2");
    world_write(&r.world, CARD("1") "mig=1\nslice uuid=MIG-1 profile=1g gi=1 ci=0 mib=4864\n");
    gpu_rig_until(&r, "0=MIG-1 1=MIG-2?");
    fails = true;
    run_while(r.loop, gpu_watch_state(r.watch).state_fault.n == 0);
    gpu_rig_poll(&r);
    ck_assert_str_is(gpu_watch_state(r.watch).state_fault, "");
    gpu_rig_until(&r, "0=MIG-1 1=MIG-2?");
    gpu_rig_close(&r);
}

/* The thread has no memory when the event comes; polls would find nothing. */
TEST(an_xid_waits_for_memory)
{
    struct gpu_rig r;
    gpu_rig_open(&r, CARD("1") "\n");
    r.s.poll_ms = HOUR_MS;
    gpu_rig_start(&r);
    gpu_rig_until(&r, "1=GPU-1");
    fail_alloc_elsewhere(2);
    world_write(&r.world, CARD("1") "\n" EVENT("1", "79"));
    gpu_rig_until(&r, "1=GPU-1!");
    ck_assert_uint_eq(gpu_watch_state(r.watch).xids, 1);
    gpu_rig_close(&r);
}

static unsigned downs;

static void count_downs(void *ctx)
{
    const struct gpu_rig *r = ctx;
    downs += gpu_watch_state(r->watch).phase == GPU_WATCH_NO_DRIVER;
}

TEST(a_poll_without_memory_says_nothing_about_the_cards)
{
    struct gpu_rig r;
    gpu_rig_open(&r, CARD("1") "\n");
    r.s.on_change = count_downs;
    gpu_rig_start(&r);
    gpu_rig_until(&r, "1=GPU-1");
    for (int i = 0; i < 5; i++) {
        fail_alloc_elsewhere(1);
        run_while(r.loop, fail_alloc_elsewhere_left() > 0);
        gpu_rig_poll(&r);
    }
    ck_assert_uint_eq(downs, 0);
    ck_assert_str_eq(gpu_rig_cards(&r), "1=GPU-1");
    gpu_rig_close(&r);
}

/* Writes a state file in which every index is taken. */
static void fill_state(const struct gpu_rig *r)
{
    FILE *f = fopen(r->state, "we");
    ck_assert_ptr_nonnull(f);
    (void)fputs("cardpack-cards 1\n", f);
    for (unsigned i = 0; i < LIMIT_GPU_CARDS; i++)
        (void)fprintf(f, "%u GPU-%u 00000000:%02X:%02X.0 - 1\n", i, i, i >> 5, i & 31);
    (void)fprintf(f, "end %d\n", LIMIT_GPU_CARDS);
    ck_assert_int_eq(fclose(f), 0);
}

static bool always(void *ctx, uint32_t index)
{
    (void)ctx;
    (void)index;
    return true;
}

TEST(a_card_too_many_is_left_out_and_the_others_are_watched)
{
    struct gpu_rig r;
    gpu_rig_open(&r, CARD("1") "\n" CARD("5000") "\n");
    fill_state(&r);
    r.s.in_use = always;
    gpu_rig_start(&r);
    run_while(r.loop, gpu_watch_state(r.watch).phase != GPU_WATCH_RUNNING);
    ck_assert_uint_eq(gpu_watch_state(r.watch).left_out, 1);
    ck_assert_uint_gt(gpu_watch_state(r.watch).left_out_why.n, 0);
    ck_assert(!gpu_watch_find(r.watch, 1)->missing);
    ck_assert_int_eq(gpu_watch_find(r.watch, 1)->health, GPU_HEALTHY);
    world_write(&r.world, CARD("1") "\n" CARD("5000") "\n" EVENT("1", "79"));
    run_while(r.loop, gpu_watch_find(r.watch, 1)->health != GPU_UNHEALTHY);
    gpu_rig_close(&r);
}
