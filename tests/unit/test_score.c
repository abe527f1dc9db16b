/* Scores of nodes: the comparison of how full they are, and its exactness. */
#include "core/place/score.h"

#include "seeded.h"

static struct node sized(int64_t used, int64_t total)
{
    return (struct node){.used = used, .total = total};
}

/* Whether the first node is fuller than the second with `mem` added to each: -1 no, 0 equal, 1
 * yes. */
static const struct {
    int64_t used[2];
    int64_t total[2];
    int64_t mem;
    int fuller;
} pairs[] = {
    {{0, 0}, {16, 16}, 4, 0},
    {{4, 0}, {16, 16}, 4, 1},
    {{0, 4}, {16, 16}, 4, -1},
    {{4, 12}, {16, 32}, 4, 0}, /* each is half full */
    {{3, 10}, {16, 32}, 4, 0},
    {{0, 0}, {16, 32}, 4, 1}, /* of empty nodes the smaller is fuller */
    {{12, 28}, {16, 32}, 4, 0},
    {{11, 27}, {16, 32}, 4, -1},
    {{1, 1}, {3, 3}, 1, 0},
    {{333332, 0}, {1000000, 3}, 1, -1}, /* 0.333333 and a third */
    {{333333, 0}, {1000000, 3}, 1, 1},  /* 0.333334 */
    /* As close as two ratios of nodes below 2^31 can be. */
    {{2147483644, 2147483643}, {INT32_MAX, INT32_MAX - 1}, 1, 1},
    {{20, 16}, {16, 16}, 4, 0}, /* an over-full node counts as full */
    {{INT64_MAX, 12}, {16, 16}, INT64_MAX, 0},
    {{0, 16}, {0, 16}, 4, 0},                                /* so does one without memory */
    {{0, 0}, {INT64_MAX, INT64_MAX - 1}, INT64_MAX / 2, -1}, /* no overflow */
    {{-1, 0}, {16, 16}, 4, 0},
    {{0, 0}, {16, 16}, -4, 0},
};

static int order(uint64_t a, uint64_t b)
{
    return a > b ? 1 : a < b ? -1 : 0;
}

TEST_EACH(orders_two_nodes, COUNT_OF(pairs))
{
    struct node a = sized(pairs[_i].used[0], pairs[_i].total[0]);
    struct node b = sized(pairs[_i].used[1], pairs[_i].total[1]);
    int64_t mem = pairs[_i].mem;
    ck_assert_int_eq(
        order(score_share(&a, mem, POLICY_BINPACK), score_share(&b, mem, POLICY_BINPACK)),
        pairs[_i].fuller);
    ck_assert_int_eq(
        order(score_share(&a, mem, POLICY_SPREAD), score_share(&b, mem, POLICY_SPREAD)),
        -pairs[_i].fuller);
    ck_assert_uint_eq(score_share(&a, mem, POLICY_UNSET), score_share(&a, mem, POLICY_BINPACK));
}

/* Compared with cross products, which need no rounding. */
TEST(is_exact_below_the_bound)
{
    uint64_t state = seeded_setting("CARDPACK_SEED", 7);
    for (int i = 0; i < 200000; i++) {
        uint32_t bound = seeded_draw(&state, 2) != 0 ? 40 : INT32_MAX;
        int64_t total[2];
        int64_t used[2];
        uint64_t scores[2][2];
        for (int j = 0; j < 2; j++) {
            total[j] = 2 + (int64_t)seeded_draw(&state, bound - 2);
            used[j] = (int64_t)seeded_draw(&state, (uint32_t)total[j]);
            struct node n = sized(used[j], total[j]);
            scores[0][j] = score_share(&n, 1, POLICY_BINPACK);
            scores[1][j] = score_share(&n, 1, POLICY_SPREAD);
            for (int k = 0; k < 2; k++)
                ck_assert(scores[k][j] > SCORE_NONE && scores[k][j] < SCORE_BEST);
        }
        uint64_t left = (uint64_t)(used[0] + 1) * (uint64_t)total[1];
        uint64_t right = (uint64_t)(used[1] + 1) * (uint64_t)total[0];
        ck_assert_int_eq(order(scores[0][0], scores[0][1]), order(left, right));
        ck_assert_int_eq(order(scores[1][0], scores[1][1]), order(right, left));
    }
}
