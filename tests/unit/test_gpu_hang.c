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

TEST(an_init_that_hangs_is_told_and_recovers)
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

/* After a restart the cards of the state file are known. */
TEST(an_init_that_hangs_leaves_the_known_cards_unusable)
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

TEST(a_later_call_that_hangs_makes_all_cards_unusable)
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

/* A card that needs a reset got none by a hang. */
TEST(a_hang_is_no_reset)
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

TEST_EACH(the_end_does_not_wait_for_a_call_that_hangs, 2)
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

struct question {
    struct gpu_usage_request request;
    struct gpu_rig *rig;
    unsigned answers;
    enum errc result;
    char why[GPU_REASON_BYTES];
    bool again; /* ask once more in on_done */
};

static void answered(struct gpu_usage_request *r)
{
    struct question *q = CONTAINER_OF(r, struct question, request);
    q->answers++;
    q->result = r->base.result;
    memcpy(q->why, r->base.why, sizeof(r->base.why));
    ck_assert_int_eq(r->base.result == OK, r->processes != NULL);
    if (q->again)
        gpu_watch_usage(q->rig->watch, r);
}

static void ask(struct gpu_rig *r, struct question *q, uint32_t index)
{
    *q = (struct question){.request = {.base = {.index = index}, .on_done = answered}, .rig = r};
    gpu_watch_usage(r->watch, &q->request);
}

static void open_for_questions(struct gpu_rig *r, uint64_t ask_ms, uint64_t hang_ms)
{
    gpu_rig_open(r, CARDS);
    r->s.ask_ms = ask_ms;
    r->s.hang_ms = hang_ms;
    gpu_rig_start(r);
    gpu_rig_until(r, "0=GPU-1 1=GPU-2");
}

TEST(a_question_is_answered)
{
    struct gpu_rig r;
    struct question q;
    open_for_questions(&r, HOUR_MS, HOUR_MS);
    ask(&r, &q, 1);
    run_while(r.loop, q.answers == 0);
    ck_assert_int_eq(q.result, OK);
    ask(&r, &q, 7);
    run_while(r.loop, q.answers == 0);
    ck_assert_int_eq(q.result, ERR_NOTFOUND);
    gpu_rig_close(&r);
}

TEST(a_question_that_hangs_is_answered_once)
{
    struct gpu_rig r;
    struct question q[2];
    struct question later;
    open_for_questions(&r, 30, HOUR_MS);
    world_write(&r.world, HANG);
    ask(&r, &q[0], 0);
    ask(&r, &q[1], 1);
    run_while(r.loop, q[0].answers == 0 || q[1].answers == 0);
    ck_assert_int_eq(q[0].result, ERR_TIMEOUT);
    ck_assert_int_eq(q[1].result, ERR_TIMEOUT);
    ck_assert_str_eq(q[0].why, "NVML does not answer");
    /* What the thread says then has no question any more. */
    world_write(&r.world, CARDS);
    ask(&r, &later, 0);
    run_while(r.loop, later.answers == 0);
    gpu_rig_poll(&r);
    ck_assert_uint_eq(q[0].answers, 1);
    ck_assert_uint_eq(q[1].answers, 1);
    ck_assert_uint_eq(later.answers, 1);
    gpu_rig_close(&r);
}

/* The time begins anew, and a question that was taken back has no end. */
TEST(a_question_may_be_asked_again_and_taken_back)
{
    struct gpu_rig r;
    struct question q[2];
    open_for_questions(&r, 10, HOUR_MS);
    world_write(&r.world, HANG);
    ask(&r, &q[0], 0);
    ask(&r, &q[1], 0);
    q[0].again = true;
    gpu_watch_cancel(&q[1].request.base);
    run_while(r.loop, q[0].answers < 3);
    ck_assert_uint_eq(q[1].answers, 0);
    q[0].again = false;
    world_write(&r.world, CARDS);
    run_while(r.loop, q[0].answers < 4);
    gpu_rig_close(&r);
}

struct limit_question {
    struct gpu_limit_request request;
    unsigned answers;
};

static void limit_answered(struct gpu_limit_request *r)
{
    CONTAINER_OF(r, struct limit_question, request)->answers++;
}

static void ask_limit(struct gpu_rig *r, struct limit_question *q, uint32_t index)
{
    *q = (struct limit_question){.request = {.base = {.index = index},
                                             .cgroup = STR("/tmp"),
                                             .bytes = 1 << 20,
                                             .on_done = limit_answered}};
    gpu_watch_limit(r->watch, &q->request);
}

/* The request for a limit has the same life: the time limit, the way back, and the end. */
TEST(a_limit_that_hangs_is_answered_once)
{
    struct gpu_rig r;
    struct limit_question q[4];
    open_for_questions(&r, 30, HOUR_MS);
    world_write(&r.world, HANG);
    ask_limit(&r, &q[0], 0);
    ask_limit(&r, &q[1], 1);
    ask_limit(&r, &q[2], 7);
    gpu_watch_cancel(&q[1].request.base);
    ck_assert_uint_eq(q[2].answers, 0); /* not from within the request */
    run_while(r.loop, q[0].answers == 0 || q[2].answers == 0);
    ck_assert_int_eq(q[0].request.base.result, ERR_TIMEOUT);
    ck_assert_int_eq(q[0].request.limit.outcome, GPU_LIMIT_UNKNOWN);
    ck_assert_str_eq(q[0].request.limit.why, "NVML does not answer");
    ck_assert_int_eq(q[2].request.limit.outcome, GPU_LIMIT_NO_CARD);
    ck_assert_str_eq(q[2].request.limit.why, "no card has this index");
    world_write(&r.world, CARDS);
    gpu_rig_poll(&r);
    world_write(&r.world, HANG);
    ask_limit(&r, &q[3], 0);
    close_hanging(&r);
    ck_assert_uint_eq(q[0].answers, 1);
    ck_assert_uint_eq(q[1].answers, 0);
    ck_assert_uint_eq(q[2].answers, 1);
    ck_assert_uint_eq(q[3].answers, 1);
    ck_assert_int_eq(q[3].request.base.result, ERR_UNAVAILABLE);
}

TEST(in_a_hang_a_question_is_answered_at_once)
{
    struct gpu_rig r;
    struct question q;
    open_for_questions(&r, HOUR_MS, 50);
    world_write(&r.world, HANG);
    gpu_rig_until_phase(&r, GPU_WATCH_HANGS, "0=GPU-1! 1=GPU-2!");
    ask(&r, &q, 0);
    ck_assert_uint_eq(q.answers, 0); /* not from within the question */
    run_while(r.loop, q.answers == 0);
    ck_assert_int_eq(q.result, ERR_UNAVAILABLE);
    ck_assert_ptr_nonnull(strstr(q.why, "does not return"));
    close_hanging(&r);
}

TEST(the_end_answers_what_is_under_way)
{
    struct gpu_rig r;
    struct question q[3];
    open_for_questions(&r, HOUR_MS, HOUR_MS);
    world_write(&r.world, HANG);
    ask(&r, &q[0], 0);
    ask(&r, &q[1], 7); /* its answer is due at the end of the turn */
    ask(&r, &q[2], 1);
    q[0].again = true; /* in vain: there is no watch any more */
    gpu_watch_cancel(&q[2].request.base);
    close_hanging(&r);
    ck_assert_uint_eq(q[0].answers, 1);
    ck_assert_int_eq(q[0].result, ERR_UNAVAILABLE);
    ck_assert_uint_eq(q[1].answers, 1);
    ck_assert_int_eq(q[1].result, ERR_NOTFOUND);
    ck_assert_uint_eq(q[2].answers, 0);
    gpu_watch_cancel(&q[0].request.base); /* does nothing */
}
