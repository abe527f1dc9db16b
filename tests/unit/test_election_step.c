/* The step machine of the election: when a replica reads, writes, leads and stops leading. */
#include "election_rig.h"

TEST(test_first)
{
    does(step(ELECTION_ON_TIMER), ELECTION_DO_READ, ELECTION_NO_NEWS);
    does(step(ELECTION_ON_ABSENT), ELECTION_DO_CREATE, ELECTION_NO_NEWS);
    now += 500;
    struct election_action a = step(ELECTION_ON_WROTE);
    waits(a, RETRY, ELECTION_WON);
    ck_assert(!a.handed_over); /* the Lease and its leader may have been deleted just now */
    ck_assert_uint_eq(a.ended_ms, now + LEASE / 3 * 2);
    /* The lease counts from the sending of the renewal, not from its answer. */
    ck_assert(election_leads(&s, START + DEADLINE - 1));
    ck_assert(!election_leads(&s, START + DEADLINE));
}

TEST(test_renews_without_reading)
{
    lead();
    now += RETRY;
    writes(step(ELECTION_ON_TIMER), ELECTION_WRITE_RENEW, ELECTION_NO_NEWS);
    ck_assert(!election_leads(&s, START + DEADLINE));
    waits(step(ELECTION_ON_WROTE), RETRY, ELECTION_NO_NEWS);
    ck_assert(election_leads(&s, START + RETRY + DEADLINE - 1));
}

TEST(test_lapse_without_a_rival)
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
    waits(step(ELECTION_ON_WROTE), RETRY, ELECTION_NO_NEWS); /* the same term */
    ck_assert(election_leads(&s, now));
}

TEST(test_lapse_with_a_rival)
{
    lead();
    now += 2 * LEASE;
    writes(step(ELECTION_ON_TIMER), ELECTION_WRITE_RENEW, ELECTION_NO_NEWS);
    does(step(ELECTION_ON_CONFLICT), ELECTION_DO_READ, ELECTION_NO_NEWS);
    waits(read_lease(true, false, true), RETRY / 4, ELECTION_LOST);
    ck_assert(!election_leads(&s, now));
}

/* By the replica's own clock: the whole duration from the last change of the Lease. */
TEST(test_takes_what_expired)
{
    follow();
    now += LEASE - 1;
    does(step(ELECTION_ON_TIMER), ELECTION_DO_READ, ELECTION_NO_NEWS);
    waits(read_lease(true, false, false), 1, ELECTION_NO_NEWS); /* until its end, no longer */
    now += 1;
    does(step(ELECTION_ON_TIMER), ELECTION_DO_READ, ELECTION_NO_NEWS);
    writes(read_lease(true, false, false), ELECTION_WRITE_ACQUIRE, ELECTION_NO_NEWS);
    struct election_action a = step(ELECTION_ON_WROTE);
    waits(a, RETRY, ELECTION_WON);
    ck_assert(!a.handed_over);
    ck_assert_uint_eq(a.ended_ms, START + LEASE / 3 * 2);
}

/* The duration that the holder wrote counts, not this replica's. */
TEST_EACH(test_takes_a_lease_by_the_duration_of_its_holder, 2)
{
    static const uint64_t durations[] = {LEASE / 2, 2 * LEASE};
    struct election_input in = {
        .event = ELECTION_ON_READ, .held = true, .changed = true, .duration_ms = durations[_i]};
    does(step(ELECTION_ON_TIMER), ELECTION_DO_READ, ELECTION_NO_NEWS);
    waits(election_step(&s, &in, now, 0), RETRY / 4, ELECTION_NO_NEWS);
    in.changed = false;
    now += durations[_i] - 1;
    does(step(ELECTION_ON_TIMER), ELECTION_DO_READ, ELECTION_NO_NEWS);
    waits(election_step(&s, &in, now, 0), 1, ELECTION_NO_NEWS);
    now += 1;
    does(step(ELECTION_ON_TIMER), ELECTION_DO_READ, ELECTION_NO_NEWS);
    writes(election_step(&s, &in, now, 0), ELECTION_WRITE_ACQUIRE, ELECTION_NO_NEWS);
}

TEST(test_follows_who_is_heard_of)
{
    follow();
    for (unsigned i = 0; i < 10; i++) {
        now += LEASE - 1;
        does(step(ELECTION_ON_TIMER), ELECTION_DO_READ, ELECTION_NO_NEWS);
        waits(read_lease(true, false, true), RETRY / 4, ELECTION_NO_NEWS);
    }
}

TEST(test_takes_what_was_released)
{
    follow();
    now += RETRY;
    does(step(ELECTION_ON_TIMER), ELECTION_DO_READ, ELECTION_NO_NEWS);
    writes(read_lease(false, false, true), ELECTION_WRITE_ACQUIRE, ELECTION_NO_NEWS);
    struct election_action a = step(ELECTION_ON_WROTE);
    does(a, ELECTION_DO_WAIT, ELECTION_WON);
    ck_assert(a.handed_over);
}

/* Two replicas saw the expiry: one of the writes fails. */
TEST(test_loses_the_race)
{
    follow();
    now += LEASE;
    (void)step(ELECTION_ON_TIMER);
    (void)read_lease(true, false, false);
    does(step(ELECTION_ON_CONFLICT), ELECTION_DO_READ, ELECTION_NO_NEWS);
    waits(read_lease(true, false, true), RETRY / 4, ELECTION_NO_NEWS);
}

/* The answer to the write was lost. The replica holds the Lease, but leads only after a write with
 * an answer; it still knows which replica led before. */
TEST(test_acquired_unknowingly)
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

/* A resource quota, an admission policy, or a missing RBAC rule. */
TEST(test_may_not_create)
{
    for (unsigned i = 0; i < 5; i++) {
        does(step(ELECTION_ON_TIMER), ELECTION_DO_READ, ELECTION_NO_NEWS);
        does(step(ELECTION_ON_ABSENT), ELECTION_DO_CREATE, ELECTION_NO_NEWS);
        does(step(ELECTION_ON_FAILED), ELECTION_DO_WAIT, ELECTION_NO_NEWS);
        ck_assert(!election_leads(&s, now));
        now += LEASE;
    }
}

/* Without the right to read the Lease, or without answers, for however long. */
TEST(test_never_leads_by_failures)
{
    for (unsigned i = 0; i < 20; i++) {
        does(step(ELECTION_ON_TIMER), ELECTION_DO_READ, ELECTION_NO_NEWS);
        waits(step(ELECTION_ON_FAILED), RETRY / 4, ELECTION_NO_NEWS);
        now += LEASE;
        ck_assert(!election_leads(&s, now));
    }
    /* The replica gets the right, but another replica leads. */
    (void)step(ELECTION_ON_TIMER);
    waits(read_lease(true, false, true), RETRY / 4, ELECTION_NO_NEWS);
    ck_assert(!election_leads(&s, now));
}

TEST(test_asked_while_following)
{
    follow();
    does(step(ELECTION_ON_ASKED), ELECTION_DO_READ, ELECTION_NO_NEWS); /* at once */
    does(step(ELECTION_ON_ASKED), ELECTION_DO_NOTHING, ELECTION_NO_NEWS);
    writes(read_lease(true, false, false), ELECTION_WRITE_WANT, ELECTION_NO_NEWS);
    waits(step(ELECTION_ON_WROTE), RETRY / 8, ELECTION_NO_NEWS);
    does(step(ELECTION_ON_ASKED), ELECTION_DO_NOTHING, ELECTION_NO_NEWS); /* the leader knows */
    (void)step(ELECTION_ON_TIMER);
    waits(read_lease(true, false, false), RETRY / 8, ELECTION_NO_NEWS);
    now += RETRY;
    (void)step(ELECTION_ON_TIMER);
    writes(read_lease(true, false, true), ELECTION_WRITE_WANT, ELECTION_NO_NEWS); /* again */
    (void)step(ELECTION_ON_WROTE);
    now += 60000; /* no scheduler asks any more */
    (void)step(ELECTION_ON_TIMER);
    waits(read_lease(true, false, true), RETRY / 4, ELECTION_NO_NEWS);
}

TEST(test_asked_while_leading)
{
    lead();
    does(step(ELECTION_ON_ASKED), ELECTION_DO_NOTHING, ELECTION_NO_NEWS);
    now += RETRY;
    (void)step(ELECTION_ON_TIMER);
    (void)step(ELECTION_ON_CONFLICT);
    /* A wish for the previous leader's Lease does not count against the next leader. */
    waits(read_lease(true, false, true), RETRY / 4, ELECTION_LOST);
}

TEST(test_hands_over)
{
    lead();
    now += RETRY;
    (void)step(ELECTION_ON_TIMER);
    (void)step(ELECTION_ON_CONFLICT);
    writes(read_wanted(true), ELECTION_WRITE_RENEW, ELECTION_ASKED_FOR);
    does(step(ELECTION_ON_RELEASE), ELECTION_DO_NOTHING, ELECTION_NO_NEWS); /* under way */
    ck_assert(!election_leads(&s, now));
    writes(step(ELECTION_ON_WROTE), ELECTION_WRITE_RELEASE, ELECTION_LOST);
    /* The replica waits a moment, so that the other one can take the Lease; but not forever. */
    waits(step(ELECTION_ON_WROTE), RETRY / 4, ELECTION_NO_NEWS);
    (void)step(ELECTION_ON_TIMER);
    waits(read_wanted(false), RETRY / 4, ELECTION_NO_NEWS);
    ck_assert(!election_leads(&s, now));
}

TEST(test_holds_back)
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

TEST(test_stop_releases)
{
    lead();
    writes(step(ELECTION_ON_STOP), ELECTION_WRITE_RELEASE, ELECTION_NO_NEWS);
    ck_assert(!election_leads(&s, now));
    does(step(ELECTION_ON_FAILED), ELECTION_DO_WAIT, ELECTION_NO_NEWS);
    does(step(ELECTION_ON_TIMER), ELECTION_DO_READ, ELECTION_NO_NEWS);
    writes(read_lease(true, true, false), ELECTION_WRITE_RELEASE, ELECTION_NO_NEWS);
    does(step(ELECTION_ON_WROTE), ELECTION_DO_NOTHING, ELECTION_LOST);
}

TEST(test_stop_in_mid_call)
{
    lead();
    now += RETRY;
    (void)step(ELECTION_ON_TIMER);
    does(step(ELECTION_ON_STOP), ELECTION_DO_NOTHING, ELECTION_NO_NEWS);
    writes(step(ELECTION_ON_WROTE), ELECTION_WRITE_RELEASE, ELECTION_NO_NEWS);
    now += LEASE; /* no answer comes, and the lease expires */
    does(step(ELECTION_ON_FAILED), ELECTION_DO_NOTHING, ELECTION_LOST);
}

TEST(test_stop_while_acquiring)
{
    follow();
    now += LEASE;
    (void)step(ELECTION_ON_TIMER);
    (void)read_lease(true, false, false);
    does(step(ELECTION_ON_STOP), ELECTION_DO_NOTHING, ELECTION_NO_NEWS);
    /* Released, the Lease would tell the next leader not to wait for the expired one. */
    does(step(ELECTION_ON_WROTE), ELECTION_DO_NOTHING, ELECTION_LOST);
}

TEST(test_stop_while_following)
{
    follow();
    does(step(ELECTION_ON_STOP), ELECTION_DO_NOTHING, ELECTION_LOST);
    does(step(ELECTION_ON_ASKED), ELECTION_DO_NOTHING, ELECTION_NO_NEWS);
}

TEST(test_stop_while_reading)
{
    follow();
    (void)step(ELECTION_ON_TIMER);
    does(step(ELECTION_ON_STOP), ELECTION_DO_NOTHING, ELECTION_LOST);
}

int main(void)
{
    TCase *tc = unit_case("all");
    tcase_add_checked_fixture(tc, set_up, NULL);
    return unit_run();
}
