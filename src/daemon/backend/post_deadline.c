/*
 * Computes the time between the last byte of an old leader's Binding and the next leader's read,
 * and what of it is left for the API server.
 */
#include "daemon/backend/post_deadline.h"

#include "daemon/limit.h"
#include "io/limit.h"

#define ON_THE_WAY_MS (LIMIT_UNACKNOWLEDGED_MS + LIMIT_COMMIT_MS)

/*
 * From the last moment at which the Binding's last byte may leave until the next leader reads the
 * pods.
 */
static uint64_t post_deadline_gap_ms(const struct election_times *t, uint64_t settle_ms)
{
    if (t == NULL)
        return settle_ms;
    return MAX_OF(t->lease_ms, t->lease_ms / 3 * 2 + settle_ms) - t->renew_deadline_ms;
}

uint64_t post_deadline_ms(const struct election_times *election, uint64_t settle_ms)
{
    uint64_t gap = post_deadline_gap_ms(election, settle_ms);
    uint64_t ms = gap > ON_THE_WAY_MS ? gap - ON_THE_WAY_MS : 0;
    return MAX_OF(ms, POST_DEADLINE_LEAST_MS);
}

uint64_t post_deadline_settle_ms(const struct election_times *election)
{
    uint64_t gap = ON_THE_WAY_MS + POST_DEADLINE_LEAST_MS;
    if (post_deadline_gap_ms(election, 0) >= gap)
        return 0;
    return election == NULL ? gap : gap + election->renew_deadline_ms - election->lease_ms / 3 * 2;
}
