#include "election_step.h"
#include "unit.h"

#define LEASE    UINT64_C(9000)
#define DEADLINE UINT64_C(6000)
#define RETRY    UINT64_C(2000)
#define START    UINT64_C(1000000)

static struct election_state s;
static uint64_t now;

static void set_up(void)
{
    election_state_init(&s, &(struct election_times){LEASE, DEADLINE, RETRY});
    now = START;
}

static struct election_action step(enum election_event event)
{
    const struct election_input in = {.event = event};
    return election_step(&s, &in, now, 0);
}

static struct election_action read_lease(bool held, bool mine, bool changed)
{
    const struct election_input in = {.event = ELECTION_ON_READ,
                                      .held = held,
                                      .mine = mine,
                                      .changed = changed,
                                      .duration_ms = LEASE};
    return election_step(&s, &in, now, 0);
}

static struct election_action read_wanted(bool mine)
{
    const struct election_input in = {.event = ELECTION_ON_READ,
                                      .held = mine,
                                      .mine = mine,
                                      .changed = !mine,
                                      .duration_ms = LEASE,
                                      .wanted_changed = true,
                                      .wanted_by_other = true};
    return election_step(&s, &in, now, 0);
}

static void does(struct election_action a, enum election_do what, enum election_news news)
{
    ck_assert_int_eq(a.what, what);
    ck_assert_int_eq(a.news, news);
}

static void writes(struct election_action a, enum election_write write, enum election_news news)
{
    does(a, ELECTION_DO_WRITE, news);
    ck_assert_int_eq(a.write, write);
}

static void waits(struct election_action a, uint64_t delay_ms, enum election_news news)
{
    does(a, ELECTION_DO_WAIT, news);
    ck_assert_uint_eq(a.delay_ms, delay_ms);
}

/* Leads, and has just renewed. */
static void lead(void)
{
    does(step(ELECTION_ON_TIMER), ELECTION_DO_READ, ELECTION_NO_NEWS);
    does(step(ELECTION_ON_ABSENT), ELECTION_DO_CREATE, ELECTION_NO_NEWS);
    waits(step(ELECTION_ON_WROTE), RETRY, ELECTION_WON);
    ck_assert(election_leads(&s, now));
}

/* Follows another one, heard of just now. */
static void follow(void)
{
    does(step(ELECTION_ON_TIMER), ELECTION_DO_READ, ELECTION_NO_NEWS);
    waits(read_lease(true, false, true), RETRY / 4, ELECTION_NO_NEWS);
    ck_assert(!election_leads(&s, now));
}

START_TEST(test_first)
{
    does(step(ELECTION_ON_TIMER), ELECTION_DO_READ, ELECTION_NO_NEWS);
    does(step(ELECTION_ON_ABSENT), ELECTION_DO_CREATE, ELECTION_NO_NEWS);
    now += 500;
    struct election_action a = step(ELECTION_ON_WROTE);
    waits(a, RETRY, ELECTION_WON);
    ck_assert(!a.handed_over); /* a process without a lease may have been killed just now */
    ck_assert_uint_eq(a.ended_ms, now);
    /* From when it was sent on, not from the answer. */
    ck_assert(election_leads(&s, START + DEADLINE - 1));
    ck_assert(!election_leads(&s, START + DEADLINE));
}

END_TEST

START_TEST(test_renews_without_reading)
{
    lead();
    now += RETRY;
    writes(step(ELECTION_ON_TIMER), ELECTION_WRITE_RENEW, ELECTION_NO_NEWS);
    ck_assert(!election_leads(&s, START + DEADLINE));
    waits(step(ELECTION_ON_WROTE), RETRY, ELECTION_NO_NEWS);
    ck_assert(election_leads(&s, START + RETRY + DEADLINE - 1));
}

END_TEST

START_TEST(test_lapse_without_a_rival)
{
    lead();
    for (unsigned i = 0; i < 20; i++) {
        now += RETRY;
        (void)step(ELECTION_ON_TIMER);
        waits(step(ELECTION_ON_FAILED), RETRY / 4, ELECTION_NO_NEWS);
    }
    ck_assert(!election_leads(&s, now));
    does(step(ELECTION_ON_TIMER), ELECTION_DO_READ, ELECTION_NO_NEWS);
    writes(read_lease(true, true, false), ELECTION_WRITE_RENEW, ELECTION_NO_NEWS);
    waits(step(ELECTION_ON_WROTE), RETRY, ELECTION_NO_NEWS); /* it is the same term */
    ck_assert(election_leads(&s, now));
}

END_TEST

START_TEST(test_lapse_with_a_rival)
{
    lead();
    now += 2 * LEASE;
    writes(step(ELECTION_ON_TIMER), ELECTION_WRITE_RENEW, ELECTION_NO_NEWS);
    does(step(ELECTION_ON_CONFLICT), ELECTION_DO_READ, ELECTION_NO_NEWS);
    waits(read_lease(true, false, true), RETRY / 4, ELECTION_LOST);
    ck_assert(!election_leads(&s, now));
}

END_TEST

/* By our own clock, for its whole duration, from when it last changed. */
START_TEST(test_takes_what_expired)
{
    follow();
    now += LEASE - 1;
    does(step(ELECTION_ON_TIMER), ELECTION_DO_READ, ELECTION_NO_NEWS);
    waits(read_lease(true, false, false), RETRY / 4, ELECTION_NO_NEWS);
    now += 1;
    does(step(ELECTION_ON_TIMER), ELECTION_DO_READ, ELECTION_NO_NEWS);
    writes(read_lease(true, false, false), ELECTION_WRITE_ACQUIRE, ELECTION_NO_NEWS);
    struct election_action a = step(ELECTION_ON_WROTE);
    waits(a, RETRY, ELECTION_WON);
    ck_assert(!a.handed_over);
    ck_assert_uint_eq(a.ended_ms, START + LEASE / 3 * 2);
}

END_TEST

START_TEST(test_follows_who_is_heard_of)
{
    follow();
    for (unsigned i = 0; i < 10; i++) {
        now += LEASE - 1;
        does(step(ELECTION_ON_TIMER), ELECTION_DO_READ, ELECTION_NO_NEWS);
        waits(read_lease(true, false, true), RETRY / 4, ELECTION_NO_NEWS);
    }
}

END_TEST

START_TEST(test_takes_what_was_released)
{
    follow();
    now += RETRY;
    does(step(ELECTION_ON_TIMER), ELECTION_DO_READ, ELECTION_NO_NEWS);
    writes(read_lease(false, false, true), ELECTION_WRITE_ACQUIRE, ELECTION_NO_NEWS);
    struct election_action a = step(ELECTION_ON_WROTE);
    does(a, ELECTION_DO_WAIT, ELECTION_WON);
    ck_assert(a.handed_over);
}

END_TEST

/* Two saw it expire: one of the writes fails. */
START_TEST(test_loses_the_race)
{
    follow();
    now += LEASE;
    (void)step(ELECTION_ON_TIMER);
    (void)read_lease(true, false, false);
    does(step(ELECTION_ON_CONFLICT), ELECTION_DO_READ, ELECTION_NO_NEWS);
    waits(read_lease(true, false, true), RETRY / 4, ELECTION_NO_NEWS);
}

END_TEST

/* The answer was lost, and the lease is ours all the same; but we lead only by a write that was
 * answered, and know no less of who led before. */
START_TEST(test_acquired_unknowingly)
{
    follow();
    now += LEASE;
    (void)step(ELECTION_ON_TIMER);
    (void)read_lease(true, false, false);
    does(step(ELECTION_ON_FAILED), ELECTION_DO_WAIT, ELECTION_NO_NEWS);
    does(step(ELECTION_ON_TIMER), ELECTION_DO_READ, ELECTION_NO_NEWS);
    writes(read_lease(true, true, true), ELECTION_WRITE_RENEW, ELECTION_NO_NEWS);
    ck_assert(!election_leads(&s, now));
    struct election_action a = step(ELECTION_ON_WROTE);
    does(a, ELECTION_DO_WAIT, ELECTION_WON);
    ck_assert_uint_eq(a.ended_ms, START + LEASE / 3 * 2);
    ck_assert(!a.handed_over);
}

END_TEST

/* In the middle of a hand-over: what is created anew says nothing of who led before. */
START_TEST(test_deleted_while_handing_over)
{
    lead();
    writes(step(ELECTION_ON_RELEASE), ELECTION_WRITE_RELEASE, ELECTION_LOST);
    does(step(ELECTION_ON_FAILED), ELECTION_DO_WAIT, ELECTION_NO_NEWS);
    (void)step(ELECTION_ON_TIMER);
    does(step(ELECTION_ON_ABSENT), ELECTION_DO_CREATE, ELECTION_NO_NEWS);
    does(step(ELECTION_ON_WROTE), ELECTION_DO_WAIT, ELECTION_WON);
}

END_TEST

/* Gone by somebody's hand: the one who led may go on until its time is over. */
START_TEST(test_deleted)
{
    lead();
    now += RETRY;
    (void)step(ELECTION_ON_TIMER);
    does(step(ELECTION_ON_CONFLICT), ELECTION_DO_READ, ELECTION_NO_NEWS);
    does(step(ELECTION_ON_ABSENT), ELECTION_DO_CREATE, ELECTION_LOST);
    ck_assert(!election_leads(&s, now));
    struct election_action a = step(ELECTION_ON_WROTE);
    does(a, ELECTION_DO_WAIT, ELECTION_WON);
    ck_assert(!a.handed_over);
    ck_assert_uint_eq(a.ended_ms, now + LEASE / 3 * 2);
}

END_TEST

START_TEST(test_alone)
{
    does(step(ELECTION_ON_TIMER), ELECTION_DO_READ, ELECTION_NO_NEWS);
    waits(step(ELECTION_ON_DENIED), RETRY / 4, ELECTION_NO_NEWS); /* an API server that starts */
    ck_assert(!election_leads(&s, now));
    now += LEASE;
    does(step(ELECTION_ON_TIMER), ELECTION_DO_READ, ELECTION_NO_NEWS);
    struct election_action a = step(ELECTION_ON_DENIED);
    waits(a, RETRY, ELECTION_RUNS_ALONE);
    ck_assert_uint_eq(a.ended_ms, START);
    ck_assert(election_leads(&s, now + 1000 * LEASE));
    /* Nothing that fails ends that, and it is said once. */
    (void)step(ELECTION_ON_TIMER);
    waits(step(ELECTION_ON_FAILED), RETRY, ELECTION_NO_NEWS);
    (void)step(ELECTION_ON_TIMER);
    waits(step(ELECTION_ON_DENIED), RETRY, ELECTION_NO_NEWS);
    ck_assert(election_leads(&s, now));
    /* The right is there, and so is a leader. */
    (void)step(ELECTION_ON_TIMER);
    does(read_lease(true, false, true), ELECTION_DO_WAIT, ELECTION_LOST);
    ck_assert(!election_leads(&s, now));
    /* The right is gone again: who leads was known, so nobody is alone. */
    now += 10 * LEASE;
    (void)step(ELECTION_ON_TIMER);
    does(step(ELECTION_ON_DENIED), ELECTION_DO_WAIT, ELECTION_NO_NEWS);
    now += 10 * LEASE;
    (void)step(ELECTION_ON_TIMER);
    does(step(ELECTION_ON_DENIED), ELECTION_DO_WAIT, ELECTION_NO_NEWS);
    ck_assert(!election_leads(&s, now));
}

END_TEST

START_TEST(test_alone_may_not_create)
{
    for (unsigned i = 0; i < 2; i++) {
        does(step(ELECTION_ON_TIMER), ELECTION_DO_READ, ELECTION_NO_NEWS);
        does(step(ELECTION_ON_ABSENT), ELECTION_DO_CREATE, ELECTION_NO_NEWS);
        does(step(ELECTION_ON_DENIED), ELECTION_DO_WAIT,
             i == 0 ? ELECTION_NO_NEWS : ELECTION_RUNS_ALONE);
        now += LEASE;
    }
}

END_TEST

/* No answer is no denial. */
START_TEST(test_not_alone_by_failures)
{
    for (unsigned i = 0; i < 20; i++) {
        (void)step(ELECTION_ON_TIMER);
        does(step(ELECTION_ON_FAILED), ELECTION_DO_WAIT, ELECTION_NO_NEWS);
        now += LEASE;
    }
    ck_assert(!election_leads(&s, now));
}

END_TEST

START_TEST(test_asked_while_following)
{
    follow();
    does(step(ELECTION_ON_ASKED), ELECTION_DO_READ, ELECTION_NO_NEWS); /* at once */
    does(step(ELECTION_ON_ASKED), ELECTION_DO_NOTHING, ELECTION_NO_NEWS);
    writes(read_lease(true, false, false), ELECTION_WRITE_WANT, ELECTION_NO_NEWS);
    waits(step(ELECTION_ON_WROTE), RETRY / 8, ELECTION_NO_NEWS);
    does(step(ELECTION_ON_ASKED), ELECTION_DO_NOTHING, ELECTION_NO_NEWS); /* it was told */
    (void)step(ELECTION_ON_TIMER);
    waits(read_lease(true, false, false), RETRY / 8, ELECTION_NO_NEWS);
    now += RETRY;
    (void)step(ELECTION_ON_TIMER);
    writes(read_lease(true, false, true), ELECTION_WRITE_WANT, ELECTION_NO_NEWS); /* again */
    (void)step(ELECTION_ON_WROTE);
    now += 60000; /* nobody asks any more */
    (void)step(ELECTION_ON_TIMER);
    waits(read_lease(true, false, true), RETRY / 4, ELECTION_NO_NEWS);
}

END_TEST

START_TEST(test_asked_while_leading)
{
    lead();
    does(step(ELECTION_ON_ASKED), ELECTION_DO_NOTHING, ELECTION_NO_NEWS);
    now += RETRY;
    (void)step(ELECTION_ON_TIMER);
    (void)step(ELECTION_ON_CONFLICT);
    /* What was asked of a leader is not held against the next one. */
    waits(read_lease(true, false, true), RETRY / 4, ELECTION_LOST);
}

END_TEST

START_TEST(test_hands_over)
{
    lead();
    now += RETRY;
    (void)step(ELECTION_ON_TIMER);
    (void)step(ELECTION_ON_CONFLICT);
    writes(read_wanted(true), ELECTION_WRITE_RENEW, ELECTION_ASKED_FOR);
    does(step(ELECTION_ON_RELEASE), ELECTION_DO_NOTHING, ELECTION_NO_NEWS); /* a call is out */
    ck_assert(!election_leads(&s, now));
    writes(step(ELECTION_ON_WROTE), ELECTION_WRITE_RELEASE, ELECTION_LOST);
    /* It holds back for a moment, so that the other one can have it; not for ever. */
    waits(step(ELECTION_ON_WROTE), RETRY / 4, ELECTION_NO_NEWS);
    (void)step(ELECTION_ON_TIMER);
    waits(read_wanted(false), RETRY / 4, ELECTION_NO_NEWS);
    ck_assert(!election_leads(&s, now));
}

END_TEST

START_TEST(test_holds_back)
{
    follow();
    now += RETRY;
    (void)step(ELECTION_ON_TIMER);
    waits(read_wanted(false), RETRY / 4, ELECTION_NO_NEWS);
    now += 2 * RETRY;
    (void)step(ELECTION_ON_TIMER);
    const struct election_input in = {
        .event = ELECTION_ON_READ, .wanted_by_other = true, .duration_ms = LEASE};
    writes(election_step(&s, &in, now, 0), ELECTION_WRITE_ACQUIRE, ELECTION_NO_NEWS);
}

END_TEST

START_TEST(test_stop_releases)
{
    lead();
    writes(step(ELECTION_ON_STOP), ELECTION_WRITE_RELEASE, ELECTION_NO_NEWS);
    ck_assert(!election_leads(&s, now));
    does(step(ELECTION_ON_FAILED), ELECTION_DO_WAIT, ELECTION_NO_NEWS);
    does(step(ELECTION_ON_TIMER), ELECTION_DO_READ, ELECTION_NO_NEWS);
    writes(read_lease(true, true, false), ELECTION_WRITE_RELEASE, ELECTION_NO_NEWS);
    does(step(ELECTION_ON_WROTE), ELECTION_DO_NOTHING, ELECTION_LOST);
}

END_TEST

START_TEST(test_stop_in_mid_call)
{
    lead();
    now += RETRY;
    (void)step(ELECTION_ON_TIMER);
    does(step(ELECTION_ON_STOP), ELECTION_DO_NOTHING, ELECTION_NO_NEWS);
    writes(step(ELECTION_ON_WROTE), ELECTION_WRITE_RELEASE, ELECTION_NO_NEWS);
    now += LEASE; /* nobody answers, and it has run out by itself */
    does(step(ELECTION_ON_FAILED), ELECTION_DO_WAIT, ELECTION_NO_NEWS);
    (void)step(ELECTION_ON_TIMER);
    does(read_lease(true, true, false), ELECTION_DO_NOTHING, ELECTION_LOST);
}

END_TEST

START_TEST(test_stop_while_acquiring)
{
    follow();
    now += LEASE;
    (void)step(ELECTION_ON_TIMER);
    (void)read_lease(true, false, false);
    does(step(ELECTION_ON_STOP), ELECTION_DO_NOTHING, ELECTION_NO_NEWS);
    /* Released, it would say that who comes next need not wait for the one that it expired of. */
    does(step(ELECTION_ON_WROTE), ELECTION_DO_NOTHING, ELECTION_LOST);
}

END_TEST

START_TEST(test_stop_while_following)
{
    follow();
    does(step(ELECTION_ON_STOP), ELECTION_DO_NOTHING, ELECTION_LOST);
    does(step(ELECTION_ON_ASKED), ELECTION_DO_NOTHING, ELECTION_NO_NEWS);
}

END_TEST

START_TEST(test_stop_while_reading)
{
    follow();
    (void)step(ELECTION_ON_TIMER);
    does(step(ELECTION_ON_STOP), ELECTION_DO_NOTHING, ELECTION_LOST);
}

END_TEST

/* Nobody can mean a day, and nothing is no duration. */
START_TEST(test_odd_durations)
{
    const struct election_input forever = {
        .event = ELECTION_ON_READ, .held = true, .changed = true, .duration_ms = UINT64_MAX / 4};
    const struct election_input none = {.event = ELECTION_ON_READ, .held = true, .changed = true};
    (void)step(ELECTION_ON_TIMER);
    (void)election_step(&s, &forever, now, 0);
    ck_assert_uint_eq(s.duration_ms, 3600000);
    (void)step(ELECTION_ON_TIMER);
    (void)election_step(&s, &none, now, 0);
    ck_assert_uint_eq(s.duration_ms, LEASE);
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("election_step");
    TCase *tc = tcase_create("all");
    tcase_add_checked_fixture(tc, set_up, NULL);
    tcase_add_test(tc, test_first);
    tcase_add_test(tc, test_renews_without_reading);
    tcase_add_test(tc, test_lapse_without_a_rival);
    tcase_add_test(tc, test_lapse_with_a_rival);
    tcase_add_test(tc, test_takes_what_expired);
    tcase_add_test(tc, test_follows_who_is_heard_of);
    tcase_add_test(tc, test_takes_what_was_released);
    tcase_add_test(tc, test_loses_the_race);
    tcase_add_test(tc, test_acquired_unknowingly);
    tcase_add_test(tc, test_deleted);
    tcase_add_test(tc, test_deleted_while_handing_over);
    tcase_add_test(tc, test_alone);
    tcase_add_test(tc, test_alone_may_not_create);
    tcase_add_test(tc, test_not_alone_by_failures);
    tcase_add_test(tc, test_asked_while_following);
    tcase_add_test(tc, test_asked_while_leading);
    tcase_add_test(tc, test_hands_over);
    tcase_add_test(tc, test_holds_back);
    tcase_add_test(tc, test_stop_releases);
    tcase_add_test(tc, test_stop_in_mid_call);
    tcase_add_test(tc, test_stop_while_acquiring);
    tcase_add_test(tc, test_stop_while_following);
    tcase_add_test(tc, test_stop_while_reading);
    tcase_add_test(tc, test_odd_durations);
    suite_add_tcase(suite, tc);
    return unit_main(suite);
}
