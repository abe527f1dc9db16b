/* The watch on the double of NVIDIA's library: while a card waits for its reset, and no pod uses
 * it, the device nodes are closed. */
#include "gpu_rig.h"

#include <fcntl.h>
#include <sys/file.h>
#include <time.h>

#define CARD(n)       "card uuid=GPU-" n " name=A100 bus=" n " minor=" n " mib=40960 "
#define GOOD          "recovery=0\n"
#define EVENT(n, xid) "event number=" n " uuid=GPU-1 xid=" xid "\n"

static void open_rig(struct gpu_rig *r, const char *world, uint64_t rest_ms, const char *cards)
{
    gpu_rig_open(r, world);
    r->s.cooldown_ms = 10;
    r->s.rest_ms = rest_ms;
    for (unsigned gi = 1; gi <= 2; gi++)
        gpu_rig_nodes(r, 3, gi);
    gpu_rig_start(r);
    gpu_rig_until(r, cards);
}

/* nvidia-smi --gpu-reset: refused while a process has the device nodes open. */
static bool reset(const struct gpu_rig *r, const char *world)
{
    char path[64];
    (void)snprintf(path, sizeof(path), "%s.devices", r->world.path);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    bool done = flock(fd, LOCK_EX | LOCK_NB) == 0;
    if (done)
        world_write(&r->world, world);
    ck_assert_int_eq(close(fd), 0);
    return done;
}

/* The thread closes the driver by itself, without a turn of the loop. */
static void until_reset(struct gpu_rig *r, const char *world)
{
    const struct timespec step = {.tv_nsec = 1000000};
    bool done = false;
    run_while(r->loop, !gpu_watch_state(r->watch).rests);
    for (int i = 0; i < 15000 && !done; i++) {
        (void)nanosleep(&step, NULL);
        done = reset(r, world);
    }
    ck_assert(done);
}

static void stays_open(struct gpu_rig *r)
{
    for (int i = 0; i < 20; i++) {
        gpu_rig_poll(r);
        ck_assert(!reset(r, ""));
    }
    ck_assert(!gpu_watch_state(r->watch).rests);
}

TEST(the_driver_is_closed_until_the_reset)
{
    struct gpu_rig r;
    open_rig(&r, CARD("1") GOOD CARD("2") GOOD, 20, "1=GPU-1 2=GPU-2");
    r.busy = 1U << 1 | 1U << 2;
    world_write(&r.world, CARD("1") "recovery=1\n" CARD("2") GOOD);
    gpu_rig_until(&r, "1=GPU-1! 2=GPU-2");
    stays_open(&r);
    r.busy = 1U << 2; /* the card's last pod has ended */
    until_reset(&r, CARD("1") GOOD CARD("2") GOOD);
    ck_assert_str_eq(gpu_rig_cards(&r), "1=GPU-1! 2=GPU-2");
    gpu_rig_until(&r, "1=GPU-1 2=GPU-2");
    run_while(r.loop, gpu_watch_state(r.watch).rests);
    stays_open(&r);
    gpu_rig_close(&r);
}

/* The state of a card, and whether a reset of the card mends that. */
TEST_EACH(what_a_reset_of_the_card_mends, 11)
{
    static const struct {
        const char *world;
        bool rests;
        uint64_t busy;
    } cases[] = {
        {CARD("1") "recovery=1\n", true, 0},
        {CARD("1") "recovery=4\n", true, 0},
        {CARD("1") "recovery=6\n", true, 0},
        {CARD("1") "recovery=2\n", false, 0}, /* reboot */
        {CARD("1") "recovery=3\n", false, 0}, /* drain, and ask again */
        {CARD("1") "recovery=7\n", false, 0},
        {CARD("1") "recovery=1\n" EVENT("1", "140"), true, 0},
        {CARD("1") "recovery=1\n", false, 1U << 1},
        {CARD("1") "\n" EVENT("1", "74"), false, 0}, /* an older driver */
        {CARD("1") "failure=1\n", false, 0},
        {CARD("1") "error=16\n", true, 0},
    };
    struct gpu_rig r;
    open_rig(&r, CARD("1") "\n", 20, "1=GPU-1");
    r.busy = cases[_i].busy;
    world_write(&r.world, cases[_i].world);
    run_while(r.loop, gpu_watch_find(r.watch, 1)->health != GPU_UNHEALTHY);
    for (int i = 0; cases[_i].rests && i < 5; i++) {
        gpu_rig_poll(&r);
        until_reset(&r, cases[_i].world);
    }
    if (!cases[_i].rests)
        stays_open(&r);
    gpu_rig_close(&r);
}

/* NVML tells no more of the card than that, not even its UUID, or all but its memory. */
TEST_EACH(a_card_that_requires_a_reset_at_the_start, 2)
{
    static const struct {
        const char *world;
        const char *reason;
    } cases[] = {
        {CARD("1") "error=16\n" CARD("2") "\n",
         "NVML reports no UUID of a card, maybe this one: NVML error 16 (GPU requires reset)"},
        {CARD("1") "memory=16\n" CARD("2") "\n", "NVML error 16 (GPU requires reset)"},
    };
    struct gpu_rig r;
    open_rig(&r, CARD("1") "\n" CARD("2") "\n", 20, "1=GPU-1 2=GPU-2");
    gpu_rig_stop(&r);
    world_write(&r.world, cases[_i].world);
    r.s.probe_ms = HOUR_MS;
    r.busy = 1U << 1;
    gpu_rig_start(&r);
    gpu_rig_until(&r, "1=GPU-1? 2=GPU-2");
    ck_assert_str_is(gpu_watch_find(r.watch, 1)->reason, cases[_i].reason);
    stays_open(&r);
    r.busy = 0;
    until_reset(&r, CARD("1") "\n" CARD("2") "\n");
    gpu_rig_until(&r, "1=GPU-1 2=GPU-2");
    run_while(r.loop, gpu_watch_state(r.watch).rests);
    gpu_rig_close(&r);
}

/* The same at the very first start: no record may be the card's, so no pod uses it. */
TEST_EACH(a_card_without_a_record_that_requires_a_reset, 2)
{
    static const char *const how[] = {
        CARD("1") "error=16\n" CARD("2") GOOD,
        CARD("1") "memory=16\n" CARD("2") GOOD,
    };
    struct gpu_rig r;
    open_rig(&r, how[_i], 20, "2=GPU-2");
    r.busy = 1U << 2;
    until_reset(&r, CARD("1") GOOD CARD("2") GOOD);
    gpu_rig_until(&r, "1=GPU-1 2=GPU-2");
    run_while(r.loop, gpu_watch_state(r.watch).rests);
    stays_open(&r);
    gpu_rig_close(&r);
}

/* A driver that does not say what a card needs stays open: of the other cards only XIDs tell. */
TEST(an_older_driver_stays_open_for_the_other_cards)
{
    struct gpu_rig r;
    open_rig(&r, CARD("1") "\n" CARD("2") "error=16\n", 20, "1=GPU-1");
    stays_open(&r);
    world_write(&r.world, CARD("1") "\n" CARD("2") "error=16\n" EVENT("1", "48"));
    gpu_rig_until(&r, "1=GPU-1!");
    gpu_rig_close(&r);
}

/* A slice of the card may be the one that pods use. */
TEST_EACH(a_slice_that_requires_a_reset_at_the_start, 2)
{
#define SLICE(n, more) "slice uuid=MIG-" n " profile=1g.5gb gi=" n " ci=0 mib=4864 " more "\n"
    static const char *const how[] = {
        CARD("3") "mig=1\n" SLICE("1", "error=16") SLICE("2", ""),
        CARD("3") "mig=1\n" SLICE("1", "memory=16") SLICE("2", ""),
    };
    struct gpu_rig r;
    open_rig(&r, CARD("3") "mig=1\n" SLICE("1", "") SLICE("2", ""), 20, "0=MIG-1 1=MIG-2");
    gpu_rig_stop(&r);
    world_write(&r.world, how[_i]);
    r.busy = 1U << 0;
    r.s.probe_ms = HOUR_MS; /* a probe closes the driver for a moment, too */
    gpu_rig_start(&r);
    gpu_rig_until(&r, "0=MIG-1? 1=MIG-2");
    stays_open(&r);
    r.busy = 0;
    until_reset(&r, CARD("3") "mig=1\n" SLICE("1", "") SLICE("2", ""));
    gpu_rig_until(&r, "0=MIG-1 1=MIG-2");
    gpu_rig_close(&r);
}

/* The slice has no record, but pods use another slice of its card, so that the card can't be reset.
 */
TEST(a_slice_without_a_record_that_requires_a_reset)
{
    struct gpu_rig r;
    open_rig(&r, CARD("3") "mig=1\n" SLICE("1", "error=16") SLICE("2", "") CARD("9") GOOD, 20,
             "0=MIG-2 9=GPU-9");
    r.busy = 1U << 0;
    stays_open(&r);
    gpu_rig_close(&r);
}

/* Of an older driver, which begins to count anew when a card that is lost has NVML opened again. */
TEST(a_count_that_begins_anew_with_nvml_is_no_reset)
{
    struct gpu_rig r;
    open_rig(&r, CARD("1") "ecc=1 anew=1\n" CARD("2") "\n", 20, "1=GPU-1~ 2=GPU-2");
    world_write(&r.world, CARD("1") "ecc=1 anew=1\n" CARD("2") "\n" EVENT("1", "48"));
    gpu_rig_until(&r, "1=GPU-1! 2=GPU-2");
    world_write(&r.world, CARD("1") "ecc=1 anew=1\n" CARD("2") "error=15\n");
    gpu_rig_until(&r, "1=GPU-1! 2=GPU-2?");
    for (int i = 0; i < 20; i++)
        gpu_rig_poll(&r);
    ck_assert_str_eq(gpu_rig_cards(&r), "1=GPU-1! 2=GPU-2?");
    gpu_rig_close(&r);
}

/* All slices of the card are to be free of pods; a card that is gone is reset by nobody. */
TEST(slices_and_cards_that_are_gone)
{
#define SLICES                                             \
    "slice uuid=MIG-1 profile=1g.5gb gi=1 ci=0 mib=4864\n" \
    "slice uuid=MIG-2 profile=1g.5gb gi=2 ci=0 mib=4864\n" \
    "card uuid=GPU-9 name=A100 bus=9 minor=9 mib=40960\n"
    struct gpu_rig r;
    open_rig(&r, CARD("3") "mig=1\n" SLICES, 20, "0=MIG-1 1=MIG-2 9=GPU-9");
    r.busy = 1U << 1;
    world_write(&r.world, CARD("3") "mig=1 recovery=1\n" SLICES);
    gpu_rig_until(&r, "0=MIG-1! 1=MIG-2! 9=GPU-9");
    stays_open(&r);
    r.busy = 0;
    until_reset(&r, CARD("1") "\n");
    gpu_rig_until(&r, "0=MIG-1? 1=MIG-2? 9=GPU-1");
    run_while(r.loop, gpu_watch_state(r.watch).rests);
    gpu_rig_close(&r);
}

struct question {
    struct gpu_usage_request request;
    unsigned answers;
    enum errc result;
};

static void answered(struct gpu_usage_request *r)
{
    struct question *q = CONTAINER_OF(r, struct question, request);
    q->answers++;
    q->result = r->base.result;
}

/* A request waits for the next look at the cards, for longer than ask_ms. */
TEST(requests_are_answered_meanwhile)
{
    struct gpu_rig r;
    gpu_rig_open(&r, CARD("1") "recovery=1\n" CARD("2") GOOD);
    r.s.rest_ms = 1500;
    r.s.ask_ms = 1000;
    gpu_rig_start(&r);
    gpu_rig_until(&r, "1=GPU-1! 2=GPU-2");
    until_reset(&r, CARD("1") "recovery=1\n" CARD("2") GOOD);
    struct question q = {.request = {.base = {.index = 2}, .on_done = answered}};
    gpu_watch_usage(r.watch, &q.request);
    run_while(r.loop, q.answers == 0);
    ck_assert_int_eq(q.result, OK);
    gpu_rig_close(&r);
}

TEST(the_end_does_not_wait_for_the_next_look)
{
    struct gpu_rig r;
    open_rig(&r, CARD("1") "recovery=1\n", HOUR_MS, "1=GPU-1!");
    until_reset(&r, CARD("1") GOOD);
    gpu_rig_close(&r);
}
