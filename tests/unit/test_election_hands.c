/* A Lease that another client than a replica edits or deletes. */
#include "election_rig.h"

/* A user empties the holder. The leader does not learn of that, and for this replica it is no
 * release. */
TEST(test_takes_what_was_emptied)
{
    follow();
    now += RETRY;
    does(step(ELECTION_ON_TIMER), ELECTION_DO_READ, ELECTION_NO_NEWS);
    const struct election_input in = {
        .event = ELECTION_ON_READ, .changed = true, .duration_ms = 1000};
    writes(election_step(&s, &in, now, 0), ELECTION_WRITE_ACQUIRE, ELECTION_NO_NEWS);
    struct election_action a = step(ELECTION_ON_WROTE);
    does(a, ELECTION_DO_WAIT, ELECTION_WON);
    ck_assert(!a.handed_over);
    ck_assert_uint_eq(a.ended_ms, now + LEASE / 3 * 2);
}

/* A user writes this replica as the holder. */
TEST(test_leads_by_another_hand)
{
    follow();
    now += RETRY;
    does(step(ELECTION_ON_TIMER), ELECTION_DO_READ, ELECTION_NO_NEWS);
    writes(read_lease(true, true, true), ELECTION_WRITE_RENEW, ELECTION_NO_NEWS);
    struct election_action a = step(ELECTION_ON_WROTE);
    does(a, ELECTION_DO_WAIT, ELECTION_WON);
    ck_assert(!a.handed_over);
    ck_assert_uint_eq(a.ended_ms, now + LEASE / 3 * 2);
}

/* A user writes this replica as the holder again, after another replica held it. */
TEST(test_leads_again_by_another_hand)
{
    lead();
    now += LEASE;
    (void)step(ELECTION_ON_TIMER);
    does(step(ELECTION_ON_CONFLICT), ELECTION_DO_READ, ELECTION_NO_NEWS);
    const struct election_input in = {.event = ELECTION_ON_READ,
                                      .held = true,
                                      .mine = true,
                                      .taken = true,
                                      .changed = true,
                                      .duration_ms = LEASE};
    writes(election_step(&s, &in, now, 0), ELECTION_WRITE_RENEW, ELECTION_LOST);
    struct election_action a = step(ELECTION_ON_WROTE);
    does(a, ELECTION_DO_WAIT, ELECTION_WON);
    ck_assert(!a.handed_over);
    ck_assert_uint_eq(a.ended_ms, now + LEASE / 3 * 2);
}

/* A webhook that refuses every write must not cause a busy loop. */
TEST(test_conflicts_without_end)
{
    lead();
    now += RETRY;
    writes(step(ELECTION_ON_TIMER), ELECTION_WRITE_RENEW, ELECTION_NO_NEWS);
    does(step(ELECTION_ON_CONFLICT), ELECTION_DO_READ, ELECTION_NO_NEWS);
    for (unsigned i = 0; i < 5; i++) {
        writes(read_lease(true, true, false), ELECTION_WRITE_RENEW, ELECTION_NO_NEWS);
        waits(step(ELECTION_ON_CONFLICT), RETRY / 4, ELECTION_NO_NEWS);
        does(step(ELECTION_ON_TIMER), ELECTION_DO_READ, ELECTION_NO_NEWS);
    }
    writes(read_lease(true, true, false), ELECTION_WRITE_RENEW, ELECTION_NO_NEWS);
    (void)step(ELECTION_ON_WROTE);
    (void)step(ELECTION_ON_TIMER);
    does(step(ELECTION_ON_CONFLICT), ELECTION_DO_READ, ELECTION_NO_NEWS);
}

/* During a hand-over: a Lease created again does not show which replica led before. */
TEST(test_deleted_while_handing_over)
{
    lead();
    writes(step(ELECTION_ON_RELEASE), ELECTION_WRITE_RELEASE, ELECTION_LOST);
    does(step(ELECTION_ON_FAILED), ELECTION_DO_WAIT, ELECTION_NO_NEWS);
    (void)step(ELECTION_ON_TIMER);
    does(step(ELECTION_ON_ABSENT), ELECTION_DO_CREATE, ELECTION_NO_NEWS);
    does(step(ELECTION_ON_WROTE), ELECTION_DO_WAIT, ELECTION_WON);
}

/* A user deletes the Lease: the leader may go on until its lease time ends. */
TEST(test_deleted)
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

/* A duration of a day does not count, and zero is no duration. */
TEST(test_odd_durations)
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

int main(void)
{
    TCase *tc = unit_case("all");
    tcase_add_checked_fixture(tc, set_up, NULL);
    return unit_run();
}
