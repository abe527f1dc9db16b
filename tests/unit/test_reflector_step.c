/* The step machine of the reflector: lists, watches, back-off, and what is logged. */
#include "kube/reflector_step.h"
#include "unit.h"

#define BACKOFF_MIN UINT64_C(800)
#define NO_RANDOM   0

static struct reflector_state state_at(enum reflector_phase phase)
{
    struct reflector_state s;
    reflector_state_init(&s, &(struct reflector_backoff){0});
    s.phase = phase;
    return s;
}

static struct reflector_action step(struct reflector_state *s, enum reflector_event event,
                                    uint64_t now_ms)
{
    const struct reflector_input in = {.event = event};
    return reflector_step(s, &in, now_ms, NO_RANDOM);
}

static struct reflector_action answer(struct reflector_state *s, unsigned status, uint64_t now_ms)
{
    const struct reflector_input in = {.event = REFLECTOR_ON_FAILED, .status = status};
    return reflector_step(s, &in, now_ms, NO_RANDOM);
}

/* Each row: one input in one state, and the expected result. delay 0: at once. */
static const struct {
    const char *name;
    enum reflector_phase phase;
    struct reflector_input in;
    bool moved;
    bool refreshed;
    uint64_t lived_ms; /* how long the watch has lived */
    enum reflector_do what;
    enum reflector_phase then;
    uint64_t delay_ms;
    bool refresh;
} rows[] = {
    {"start",
     REFLECTOR_LIST_LATER,
     {.event = REFLECTOR_ON_TIMER},
     .what = REFLECTOR_DO_LIST,
     .then = REFLECTOR_LISTING},
    {"page",
     REFLECTOR_LISTING,
     {.event = REFLECTOR_ON_PAGE},
     .what = REFLECTOR_DO_PAGE,
     .then = REFLECTOR_LISTING},
    {"listed",
     REFLECTOR_LISTING,
     {.event = REFLECTOR_ON_LISTED},
     .what = REFLECTOR_DO_WATCH,
     .then = REFLECTOR_WATCHING},
    {"list refused connection",
     REFLECTOR_LISTING,
     {.event = REFLECTOR_ON_FAILED},
     .what = REFLECTOR_DO_WAIT,
     .then = REFLECTOR_LIST_LATER,
     .delay_ms = BACKOFF_MIN},
    {"list 500",
     REFLECTOR_LISTING,
     {.event = REFLECTOR_ON_FAILED, .status = 500},
     .what = REFLECTOR_DO_WAIT,
     .then = REFLECTOR_LIST_LATER,
     .delay_ms = BACKOFF_MIN},
    {"list 429 asks for 7 s",
     REFLECTOR_LISTING,
     {.event = REFLECTOR_ON_FAILED, .status = 429, .retry_after_ms = 7000},
     .what = REFLECTOR_DO_WAIT,
     .then = REFLECTOR_LIST_LATER,
     .delay_ms = 7000},
    {"list 503 asks for less than the back-off",
     REFLECTOR_LISTING,
     {.event = REFLECTOR_ON_FAILED, .status = 503, .retry_after_ms = 1},
     .what = REFLECTOR_DO_WAIT,
     .then = REFLECTOR_LIST_LATER,
     .delay_ms = BACKOFF_MIN},
    {"list 503 asks for a day",
     REFLECTOR_LISTING,
     {.event = REFLECTOR_ON_FAILED, .status = 503, .retry_after_ms = 86400000},
     .what = REFLECTOR_DO_WAIT,
     .then = REFLECTOR_LIST_LATER,
     .delay_ms = 300000},
    {"list 401",
     REFLECTOR_LISTING,
     {.event = REFLECTOR_ON_FAILED, .status = 401},
     .what = REFLECTOR_DO_LIST,
     .then = REFLECTOR_LISTING,
     .refresh = true},
    {"list 401 again",
     REFLECTOR_LISTING,
     {.event = REFLECTOR_ON_FAILED, .status = 401},
     .refreshed = true,
     .what = REFLECTOR_DO_WAIT,
     .then = REFLECTOR_LIST_LATER,
     .delay_ms = BACKOFF_MIN,
     .refresh = true},
    {"continue token expired",
     REFLECTOR_LISTING,
     {.event = REFLECTOR_ON_FAILED, .status = 410, .continued = true},
     .what = REFLECTOR_DO_LIST,
     .then = REFLECTOR_LISTING},
    {"410 on a first page",
     REFLECTOR_LISTING,
     {.event = REFLECTOR_ON_FAILED, .status = 410},
     .what = REFLECTOR_DO_WAIT,
     .then = REFLECTOR_LIST_LATER,
     .delay_ms = BACKOFF_MIN},
    {"watch refused connection",
     REFLECTOR_WATCHING,
     {.event = REFLECTOR_ON_FAILED},
     .lived_ms = 5000,
     .what = REFLECTOR_DO_WAIT,
     .then = REFLECTOR_WATCH_LATER,
     .delay_ms = BACKOFF_MIN},
    {"watch 401",
     REFLECTOR_WATCHING,
     {.event = REFLECTOR_ON_FAILED, .status = 401},
     .what = REFLECTOR_DO_WATCH,
     .then = REFLECTOR_WATCHING,
     .refresh = true},
    {"watch 401 again",
     REFLECTOR_WATCHING,
     {.event = REFLECTOR_ON_FAILED, .status = 401},
     .refreshed = true,
     .what = REFLECTOR_DO_WAIT,
     .then = REFLECTOR_WATCH_LATER,
     .delay_ms = BACKOFF_MIN,
     .refresh = true},
    {"watch 429",
     REFLECTOR_WATCHING,
     {.event = REFLECTOR_ON_FAILED, .status = 429, .retry_after_ms = 2000},
     .what = REFLECTOR_DO_WAIT,
     .then = REFLECTOR_WATCH_LATER,
     .delay_ms = 2000},
    {"watch 500",
     REFLECTOR_WATCHING,
     {.event = REFLECTOR_ON_FAILED, .status = 500},
     .what = REFLECTOR_DO_WAIT,
     .then = REFLECTOR_WATCH_LATER,
     .delay_ms = BACKOFF_MIN},
    {"watch 503",
     REFLECTOR_WATCHING,
     {.event = REFLECTOR_ON_FAILED, .status = 503},
     .what = REFLECTOR_DO_WAIT,
     .then = REFLECTOR_WATCH_LATER,
     .delay_ms = BACKOFF_MIN},
    {"watch 504 lists",
     REFLECTOR_WATCHING,
     {.event = REFLECTOR_ON_FAILED, .status = 504},
     .what = REFLECTOR_DO_WAIT,
     .then = REFLECTOR_LIST_LATER,
     .delay_ms = BACKOFF_MIN},
    {"watch from the future lists",
     REFLECTOR_WATCHING,
     {.event = REFLECTOR_ON_FAILED, .status = 500, .too_large = true},
     .what = REFLECTOR_DO_WAIT,
     .then = REFLECTOR_LIST_LATER,
     .delay_ms = BACKOFF_MIN},
    {"watch 410 after events lists at once",
     REFLECTOR_WATCHING,
     {.event = REFLECTOR_ON_FAILED, .status = 410},
     .moved = true,
     .what = REFLECTOR_DO_LIST,
     .then = REFLECTOR_LISTING},
    {"watch 410 right after a list waits",
     REFLECTOR_WATCHING,
     {.event = REFLECTOR_ON_FAILED, .status = 410},
     .what = REFLECTOR_DO_WAIT,
     .then = REFLECTOR_LIST_LATER,
     .delay_ms = BACKOFF_MIN},
    {"watch expired by reason",
     REFLECTOR_WATCHING,
     {.event = REFLECTOR_ON_FAILED, .status = 500, .expired = true},
     .moved = true,
     .what = REFLECTOR_DO_LIST,
     .then = REFLECTOR_LISTING},
    {"watch 403 lists",
     REFLECTOR_WATCHING,
     {.event = REFLECTOR_ON_FAILED, .status = 403},
     .moved = true,
     .what = REFLECTOR_DO_WAIT,
     .then = REFLECTOR_LIST_LATER,
     .delay_ms = BACKOFF_MIN},
    {"watch 400 lists",
     REFLECTOR_WATCHING,
     {.event = REFLECTOR_ON_FAILED, .status = 400},
     .what = REFLECTOR_DO_WAIT,
     .then = REFLECTOR_LIST_LATER,
     .delay_ms = BACKOFF_MIN},
    {"watch ended",
     REFLECTOR_WATCHING,
     {.event = REFLECTOR_ON_ENDED},
     .lived_ms = 1000,
     .what = REFLECTOR_DO_WATCH,
     .then = REFLECTOR_WATCHING},
    {"watch ended at once",
     REFLECTOR_WATCHING,
     {.event = REFLECTOR_ON_ENDED},
     .lived_ms = 999,
     .what = REFLECTOR_DO_WAIT,
     .then = REFLECTOR_WATCH_LATER,
     .delay_ms = BACKOFF_MIN},
    {"watch garbled",
     REFLECTOR_WATCHING,
     {.event = REFLECTOR_ON_GARBLED},
     .lived_ms = 5000,
     .what = REFLECTOR_DO_WAIT,
     .then = REFLECTOR_WATCH_LATER,
     .delay_ms = BACKOFF_MIN},
    {"relist in a wait",
     REFLECTOR_WATCH_LATER,
     {.event = REFLECTOR_ON_RELIST},
     .what = REFLECTOR_DO_LIST,
     .then = REFLECTOR_LISTING},
    {"relist in a watch",
     REFLECTOR_WATCHING,
     {.event = REFLECTOR_ON_RELIST},
     .what = REFLECTOR_DO_LIST,
     .then = REFLECTOR_LISTING},
    {"watch after a wait",
     REFLECTOR_WATCH_LATER,
     {.event = REFLECTOR_ON_TIMER},
     .what = REFLECTOR_DO_WATCH,
     .then = REFLECTOR_WATCHING},
};

TEST_EACH(test_row, COUNT_OF(rows))
{
    struct reflector_state s = state_at(rows[_i].phase);
    s.moved = rows[_i].moved;
    s.refreshed = rows[_i].refreshed;
    s.watch_start_ms = s.listed_ms = 1000000;
    struct reflector_action a =
        reflector_step(&s, &rows[_i].in, s.watch_start_ms + rows[_i].lived_ms, NO_RANDOM);
    ck_assert_msg(a.what == rows[_i].what, "%s: action %d", rows[_i].name, (int)a.what);
    ck_assert_msg(s.phase == rows[_i].then, "%s: phase %d", rows[_i].name, (int)s.phase);
    ck_assert_msg(a.delay_ms == rows[_i].delay_ms, "%s: delay %llu", rows[_i].name,
                  (unsigned long long)a.delay_ms);
    ck_assert_msg(a.refresh == rows[_i].refresh, "%s: refresh", rows[_i].name);
    ck_assert_msg(!a.unpaged, "%s: unpaged", rows[_i].name);
}

TEST(test_backoff_doubles_up_to_its_ceiling)
{
    static const uint64_t delays[] = {800, 1600, 3200, 6400, 12800, 25600, 30000, 30000};
    struct reflector_state s = state_at(REFLECTOR_LISTING);
    uint64_t now = 5;
    for (size_t i = 0; i < COUNT_OF(delays); i++) {
        struct reflector_action a = answer(&s, 500, now);
        ck_assert_uint_eq(a.delay_ms, delays[i]);
        now += a.delay_ms;
        ck_assert_int_eq(step(&s, REFLECTOR_ON_TIMER, now).what, REFLECTOR_DO_LIST);
    }
}

TEST(test_backoff_is_reset_by_two_quiet_minutes_only)
{
    struct reflector_state s = state_at(REFLECTOR_WATCHING);
    ck_assert_uint_eq(answer(&s, 500, 1000).delay_ms, 800);
    (void)step(&s, REFLECTOR_ON_TIMER, 1800);
    ck_assert_uint_eq(answer(&s, 500, 1800 + 119999).delay_ms, 1600);
    uint64_t end = 1800 + 119999 + 1600;
    (void)step(&s, REFLECTOR_ON_TIMER, end);
    ck_assert_uint_eq(answer(&s, 500, end + 120000).delay_ms, 800);
}

TEST(test_jitter_is_between_once_and_twice)
{
    static const struct {
        uint64_t random;
        uint64_t delay_ms;
    } cases[] = {{0, 800}, {1, 801}, {800, 1600}, {801, 800}};

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct reflector_state s = state_at(REFLECTOR_LISTING);
        const struct reflector_input in = {.event = REFLECTOR_ON_FAILED, .status = 500};
        ck_assert_uint_eq(reflector_step(&s, &in, 0, cases[i].random).delay_ms, cases[i].delay_ms);
    }
}

TEST(test_watch_lasts_five_to_ten_minutes)
{
    for (uint64_t random = 0; random < 1000; random++) {
        struct reflector_state s = state_at(REFLECTOR_LISTING);
        const struct reflector_input in = {.event = REFLECTOR_ON_LISTED};
        unsigned seconds = reflector_step(&s, &in, 0, random).watch_seconds;
        ck_assert_uint_ge(seconds, 300);
        ck_assert_uint_le(seconds, 600);
    }
}

TEST(test_three_garbled_watches_relist)
{
    struct reflector_state s = state_at(REFLECTOR_WATCHING);
    for (int i = 0; i < 2; i++) {
        (void)step(&s, REFLECTOR_ON_GARBLED, 0);
        ck_assert_int_eq(s.phase, REFLECTOR_WATCH_LATER);
        (void)step(&s, REFLECTOR_ON_TIMER, 0);
    }
    (void)step(&s, REFLECTOR_ON_GARBLED, 0);
    ck_assert_int_eq(s.phase, REFLECTOR_LIST_LATER);
}

TEST(test_progress_forgives_garbage)
{
    struct reflector_state s = state_at(REFLECTOR_WATCHING);
    for (int i = 0; i < 10; i++) {
        (void)step(&s, REFLECTOR_ON_PROGRESS, 0);
        (void)step(&s, REFLECTOR_ON_GARBLED, 0);
        ck_assert_int_eq(s.phase, REFLECTOR_WATCH_LATER);
        (void)step(&s, REFLECTOR_ON_TIMER, 0);
    }
}

TEST(test_short_watch_with_progress_is_no_failure)
{
    struct reflector_state s = state_at(REFLECTOR_WATCHING);
    (void)step(&s, REFLECTOR_ON_PROGRESS, 0);
    ck_assert_int_eq(step(&s, REFLECTOR_ON_ENDED, 0).what, REFLECTOR_DO_WATCH);
    ck_assert_int_eq(step(&s, REFLECTOR_ON_ENDED, 0).what, REFLECTOR_DO_WAIT);
}

/* An endless series of list, watch and 410 must not become a busy loop. */
TEST(test_lists_that_never_help_back_off)
{
    struct reflector_state s = state_at(REFLECTOR_LISTING);
    uint64_t now = 0;
    uint64_t last = 0;
    for (int i = 0; i < 4; i++) {
        (void)step(&s, REFLECTOR_ON_LISTED, now);
        struct reflector_action a = answer(&s, 410, now);
        ck_assert_int_eq(a.what, REFLECTOR_DO_WAIT);
        ck_assert_uint_gt(a.delay_ms, last);
        last = a.delay_ms;
        now += a.delay_ms;
        ck_assert_int_eq(step(&s, REFLECTOR_ON_TIMER, now).what, REFLECTOR_DO_LIST);
    }
}

TEST(test_an_old_list_is_replaced_at_once)
{
    struct reflector_state s = state_at(REFLECTOR_LISTING);
    (void)step(&s, REFLECTOR_ON_LISTED, 5000);
    ck_assert_int_eq(answer(&s, 410, 5000 + 10000).what, REFLECTOR_DO_LIST);
}

/* After an outage the delay is long; the first answer resets it. */
TEST(test_backoff_is_reset_by_the_first_answer)
{
    struct reflector_state s = state_at(REFLECTOR_WATCHING);
    uint64_t now = 0;
    for (int i = 0; i < 8; i++) {
        now += answer(&s, 0, now).delay_ms;
        (void)step(&s, REFLECTOR_ON_TIMER, now);
    }
    ck_assert_uint_eq(answer(&s, 403, now).delay_ms, BACKOFF_MIN);
    (void)step(&s, REFLECTOR_ON_TIMER, now);
    ck_assert_uint_eq(answer(&s, 403, now).delay_ms, 2 * BACKOFF_MIN);
}

TEST(test_list_that_outlives_its_token_twice_comes_in_one_piece)
{
    struct reflector_state s = state_at(REFLECTOR_LISTING);
    const struct reflector_input gone = {
        .event = REFLECTOR_ON_FAILED, .status = 410, .continued = true};
    struct reflector_action a = reflector_step(&s, &gone, 0, NO_RANDOM);
    ck_assert_int_eq(a.what, REFLECTOR_DO_LIST);
    ck_assert(!a.unpaged);
    a = reflector_step(&s, &gone, 0, NO_RANDOM);
    ck_assert_int_eq(a.what, REFLECTOR_DO_WAIT);
    a = step(&s, REFLECTOR_ON_TIMER, 2000);
    ck_assert_int_eq(a.what, REFLECTOR_DO_LIST);
    ck_assert(a.unpaged);
    (void)step(&s, REFLECTOR_ON_LISTED, 3000);
    ck_assert(!step(&s, REFLECTOR_ON_RELIST, 3000).unpaged);
}

TEST(test_401_is_retried_at_once_after_every_success)
{
    struct reflector_state s = state_at(REFLECTOR_LISTING);
    ck_assert_int_eq(answer(&s, 401, 0).what, REFLECTOR_DO_LIST);
    ck_assert_int_eq(answer(&s, 401, 0).what, REFLECTOR_DO_WAIT);
    (void)step(&s, REFLECTOR_ON_TIMER, 0);
    ck_assert_int_eq(answer(&s, 401, 0).what, REFLECTOR_DO_WAIT);
    (void)step(&s, REFLECTOR_ON_TIMER, 0);
    (void)step(&s, REFLECTOR_ON_LISTED, 0);
    ck_assert_int_eq(answer(&s, 401, 0).what, REFLECTOR_DO_WATCH);
    (void)step(&s, REFLECTOR_ON_ENDED, 2000);
    ck_assert_int_eq(answer(&s, 401, 3000).what, REFLECTOR_DO_WATCH);
    ck_assert_int_eq(answer(&s, 401, 3000).what, REFLECTOR_DO_WAIT); /* no success since */
}

static void refuse(struct reflector_state *s, unsigned status)
{
    const struct reflector_input in = {.event = REFLECTOR_ON_FAILED, .status = status, .own = true};
    (void)reflector_step(s, &in, 0, NO_RANDOM);
}

/* A 404 always means that the path is absent, from any sender; only the API server can deny
 * rights. */
TEST(test_a_bare_answer_denies_nothing)
{
    struct reflector_state s = state_at(REFLECTOR_LISTING);
    (void)answer(&s, 403, 0);
    ck_assert(!s.denied && !s.absent);
    (void)step(&s, REFLECTOR_ON_TIMER, 0);
    (void)answer(&s, 404, 0);
    ck_assert(!s.denied && s.absent);
    (void)step(&s, REFLECTOR_ON_TIMER, 0);
    (void)step(&s, REFLECTOR_ON_LISTED, 0);
    ck_assert(!s.absent);
}

TEST(test_synced_and_denied)
{
    struct reflector_state s = state_at(REFLECTOR_LISTING);
    refuse(&s, 403);
    ck_assert(s.denied && !s.synced);
    (void)step(&s, REFLECTOR_ON_TIMER, 0);
    (void)answer(&s, 500, 0);
    ck_assert(!s.denied);
    (void)step(&s, REFLECTOR_ON_TIMER, 0);
    refuse(&s, 404);
    ck_assert(s.denied);
    (void)step(&s, REFLECTOR_ON_TIMER, 0);
    (void)step(&s, REFLECTOR_ON_PAGE, 0);
    ck_assert(!s.synced);
    (void)step(&s, REFLECTOR_ON_LISTED, 0);
    ck_assert(s.synced && !s.denied);
    (void)step(&s, REFLECTOR_ON_RELIST, 0);
    refuse(&s, 403);
    ck_assert(s.synced && s.denied);
    (void)step(&s, REFLECTOR_ON_TIMER, 0);
    (void)answer(&s, 500, 0);
    ck_assert(s.synced && !s.denied);
    (void)step(&s, REFLECTOR_ON_TIMER, 0);
    refuse(&s, 404);
    ck_assert(s.synced && s.denied);
    (void)step(&s, REFLECTOR_ON_TIMER, 0);
    (void)step(&s, REFLECTOR_ON_LISTED, 0);
    ck_assert(s.synced && !s.denied);
}
