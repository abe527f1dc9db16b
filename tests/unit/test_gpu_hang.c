/* The watch on the double of NVIDIA's library while a call does not return. */
#include "gpu_rig.h"

#include <dirent.h>
#include <time.h>

#define CARDS                                             \
    "card uuid=GPU-1 name=A100 bus=1 minor=0 mib=40960\n" \
    "card uuid=GPU-2 name=A100 bus=2 minor=1 mib=40960\n"
#define HANG CARDS "hang\n"

static void open_rig(struct gpu_rig *r, const char *world)
{
    gpu_rig_open(r, world);
    r->s.hang_ms = 50;
    gpu_rig_start(r);
}

/* Threads of this process, this one included. */
static int threads(void)
{
    int n = 0;
    DIR *d = opendir("/proc/self/task");
    ck_assert_ptr_nonnull(d);
    for (const struct dirent *e = readdir(d); e != NULL; e = readdir(d))
        n += e->d_name[0] != '.';
    (void)closedir(d);
    return n;
}

/* Ends the watch while a call hangs, and then the call. */
static void close_hanging(struct gpu_rig *r)
{
    const struct timespec step = {.tv_nsec = 1000000};
    int before = threads();
    r->watch = gpu_watch_free(r->watch, 10);
    ck_assert_int_eq(threads(), before); /* it did not wait for the thread */
    world_write(&r->world, CARDS);
    /* The thread frees what it has and ends by itself. */
    for (int i = 0; i < 15000 && threads() == before; i++)
        (void)nanosleep(&step, NULL);
    ck_assert_int_eq(threads(), before - 1);
    r->loop = loop_free(r->loop);
    world_close(&r->world);
}

START_TEST(an_init_that_hangs_is_told_and_recovers)
{
    struct gpu_rig r;
    open_rig(&r, HANG);
    gpu_rig_until_phase(&r, GPU_WATCH_HANGS, "");
    ck_assert_uint_gt(gpu_watch_state(r.watch).why.n, 0);
    world_write(&r.world, CARDS);
    gpu_rig_until(&r, "0=GPU-1 1=GPU-2");
    ck_assert_str_is(gpu_watch_state(r.watch).why, "");
    gpu_rig_close(&r);
}

END_TEST

/* After a restart the cards of the state file are known. */
START_TEST(an_init_that_hangs_leaves_the_known_cards_unusable)
{
    struct gpu_rig r;
    open_rig(&r, CARDS);
    gpu_rig_until(&r, "0=GPU-1 1=GPU-2");
    gpu_rig_stop(&r);
    world_write(&r.world, HANG);
    gpu_rig_start(&r);
    gpu_rig_until_phase(&r, GPU_WATCH_HANGS, "0=GPU-1? 1=GPU-2?");
    assert_reason(&r, 0, "does not return");
    ck_assert_int_eq(gpu_watch_find(r.watch, 0)->health, GPU_UNHEALTHY);
    close_hanging(&r);
}

END_TEST

START_TEST(a_later_call_that_hangs_makes_all_cards_unusable)
{
    struct gpu_rig r;
    open_rig(&r, CARDS);
    gpu_rig_until(&r, "0=GPU-1 1=GPU-2");
    world_write(&r.world, HANG);
    gpu_rig_until_phase(&r, GPU_WATCH_HANGS, "0=GPU-1! 1=GPU-2!");
    assert_reason(&r, 1, "does not return");
    /* They were not reset, and nothing else is wrong with them. */
    world_write(&r.world, CARDS);
    gpu_rig_until(&r, "0=GPU-1 1=GPU-2");
    gpu_rig_close(&r);
}

END_TEST

/* A card that needs a reset got none by a hang. */
START_TEST(a_hang_is_no_reset)
{
    struct gpu_rig r;
    gpu_rig_open(&r, CARDS);
    r.s.hang_ms = 50;
    r.s.cooldown_ms = 1;
    gpu_rig_start(&r);
    gpu_rig_until(&r, "0=GPU-1 1=GPU-2");
    world_write(&r.world, CARDS "event number=1 uuid=GPU-2 xid=79\n");
    gpu_rig_until(&r, "0=GPU-1 1=GPU-2!");
    world_write(&r.world, HANG);
    gpu_rig_until_phase(&r, GPU_WATCH_HANGS, "0=GPU-1! 1=GPU-2!");
    world_write(&r.world, CARDS);
    gpu_rig_until(&r, "0=GPU-1 1=GPU-2!");
    for (int i = 0; i < 10; i++)
        gpu_rig_poll(&r);
    ck_assert_str_eq(gpu_rig_cards(&r), "0=GPU-1 1=GPU-2!");
    assert_reason(&r, 1, "it needs a reset");
    gpu_rig_close(&r);
}

END_TEST

START_TEST(the_end_does_not_wait_for_a_call_that_hangs)
{
    struct gpu_rig r;
    open_rig(&r, _i == 0 ? HANG : CARDS);
    if (_i == 0) {
        gpu_rig_until_phase(&r, GPU_WATCH_HANGS, "");
    } else {
        gpu_rig_until(&r, "0=GPU-1 1=GPU-2");
        world_write(&r.world, HANG);
        gpu_rig_until_phase(&r, GPU_WATCH_HANGS, "0=GPU-1! 1=GPU-2!");
    }
    close_hanging(&r);
}

END_TEST

int main(void)
{
    Suite *s = suite_create("gpu_hang");
    TCase *c = tcase_create("gpu_hang");
    tcase_add_test(c, an_init_that_hangs_is_told_and_recovers);
    tcase_add_test(c, an_init_that_hangs_leaves_the_known_cards_unusable);
    tcase_add_test(c, a_later_call_that_hangs_makes_all_cards_unusable);
    tcase_add_test(c, a_hang_is_no_reset);
    tcase_add_loop_test(c, the_end_does_not_wait_for_a_call_that_hangs, 0, 2);
    suite_add_tcase(s, c);
    return unit_main(s);
}
