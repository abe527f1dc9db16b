#include "election_rig.h"

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

START_TEST(test_alone)
{
    does(step(ELECTION_ON_TIMER), ELECTION_DO_READ, ELECTION_NO_NEWS);
    waits(step(ELECTION_ON_DENIED), RETRY / 4, ELECTION_NO_NEWS); /* an API server that starts */
    ck_assert(!election_leads(&s, now));
    now += LEASE;
    does(step(ELECTION_ON_TIMER), ELECTION_DO_READ, ELECTION_NO_NEWS);
    now += 10;
    struct election_action a = step(ELECTION_ON_DENIED);
    waits(a, RETRY, ELECTION_RUNS_ALONE);
    ck_assert_uint_eq(a.ended_ms, now - 10); /* when that was asked */
    ck_assert(election_leads(&s, now + 1000 * LEASE));
    /* Nothing that fails ends that, and each denial is told. */
    (void)step(ELECTION_ON_TIMER);
    waits(step(ELECTION_ON_FAILED), RETRY, ELECTION_NO_NEWS);
    (void)step(ELECTION_ON_TIMER);
    waits(step(ELECTION_ON_DENIED), RETRY, ELECTION_RUNS_ALONE);
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

/* A quota, a policy, a rule that was forgotten: others may be able to, so nobody is alone. */
START_TEST(test_may_not_create)
{
    for (unsigned i = 0; i < 5; i++) {
        does(step(ELECTION_ON_TIMER), ELECTION_DO_READ, ELECTION_NO_NEWS);
        does(step(ELECTION_ON_ABSENT), ELECTION_DO_CREATE, ELECTION_NO_NEWS);
        does(step(ELECTION_ON_DENIED), ELECTION_DO_WAIT, ELECTION_NO_NEWS);
        now += LEASE;
    }
}

END_TEST

/* An API server that starts twice denies twice, which is not all the time. */
START_TEST(test_denied_now_and_then)
{
    for (unsigned i = 0; i < 10; i++) {
        (void)step(ELECTION_ON_TIMER);
        does(step(i % 2 == 0 ? ELECTION_ON_DENIED : ELECTION_ON_FAILED), ELECTION_DO_WAIT,
             ELECTION_NO_NEWS);
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
    does(step(ELECTION_ON_FAILED), ELECTION_DO_NOTHING, ELECTION_LOST);
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
    tcase_add_test(tc, test_alone);
    tcase_add_test(tc, test_may_not_create);
    tcase_add_test(tc, test_denied_now_and_then);
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
    suite_add_tcase(suite, tc);
    return unit_main(suite);
}
