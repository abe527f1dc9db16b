/* A Binding of a previous leader must have expired before its successor lists the pods. */
#include "daemon/backend/post_deadline.h"
#include "daemon/limit.h"
#include "io/limit.h"
#include "unit.h"

static const struct election_times shipped = {10000, 6000, 2000};
static const struct election_times hasty = {3000, 2000, 500};
static const struct election_times slow = {60000, 20000, 5000};

static const struct {
    const struct election_times *election;
    uint64_t settle_ms;
    uint64_t deadline_ms;
    uint64_t least_settle_ms;
} table[] = {
    {&shipped, 8000, 3666, 6334},
    {&shipped, 12000, 7666, 6334},
    {&shipped, 6334, 2000, 6334},
    {&shipped, 6333, 2000, 6334}, /* too short: raised to the shortest useful time */
    {&shipped, 0, 2000, 6334},
    {NULL, 8000, 3000, 7000},
    {NULL, 0, 2000, 7000},
    {&hasty, 2000, 2000, 7000},
    {&hasty, 9000, 4000, 7000},
    {&slow, 0, 35000, 0}, /* the lease itself is long enough */
    {&slow, 20000, 35000, 0},
    {&slow, 30000, 45000, 0},
};

TEST_EACH(of_the_settings, COUNT_OF(table))
{
    ck_assert_uint_eq(post_deadline_ms(table[_i].election, table[_i].settle_ms),
                      table[_i].deadline_ms);
    ck_assert_uint_eq(post_deadline_settle_ms(table[_i].election), table[_i].least_settle_ms);
}

/*
 * All settings without a warning, at the worst times: the last renewal is sent at 0, takes effect
 * at once, and the successor reads it at once.
 */
TEST(is_over_before_the_successor_reads)
{
    unsigned tried = 0;
    for (uint64_t lease = 1000; lease <= 60000; lease += 1000) {
        for (uint64_t renew = 1000; renew <= lease / 3 * 2; renew += 500) {
            for (uint64_t settle = 0; settle <= 30000; settle += 500) {
                const struct election_times times = {lease, renew, 100};
                if (settle < post_deadline_settle_ms(&times))
                    continue;
                uint64_t over_ms = renew + LIMIT_UNACKNOWLEDGED_MS +
                                   post_deadline_ms(&times, settle) + LIMIT_COMMIT_MS;
                uint64_t taken_ms = lease;
                uint64_t reads_ms = MAX_OF(taken_ms, lease / 3 * 2 + settle);
                ck_assert_uint_le(over_ms, reads_ms);
                tried++;
            }
        }
    }
    ck_assert_uint_gt(tried, 1000);
}
