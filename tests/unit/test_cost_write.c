/* What explain says of costs: the numbers of every feasible node, and a sentence for the best two.
 */
#include "report/cost_write.h"

#include "objects/kube.h"
#include "report/explain_write.h"
#include "unit.h"

#define NODE(name, count, total)                                    \
    "{\"metadata\":{\"name\":\"" name                               \
    "\"},\"status\":{\"capacity\":{\"aliyun.com/gpu-mem\":\"" total \
    "\",\"aliyun.com/gpu-count\":\"" count "\"},\"allocatable\":{\"cpu\":\"8\"}}}"

#define POD(name, node, card, mem)                                                                 \
    "{\"metadata\":{\"name\":\"" name "\",\"namespace\":\"ns\",\"uid\":\"uid-" name                \
    "\",\"annotations\":{\"ALIYUN_COM_GPU_MEM_IDX\":\"" card "\"}},\"spec\":{\"nodeName\":\"" node \
    "\",\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":\"" mem  \
    "\"}}}]},\"status\":{\"phase\":\"Running\"}}"

#define ASKS(labels, mem)                                                                          \
    "{\"metadata\":{\"name\":\"new\",\"namespace\":\"ns\",\"uid\":\"uid-new\",\"labels\":{" labels \
    "}},\"spec\":{\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{"                     \
    "\"aliyun.com/gpu-mem\":\"" mem "\"},\"requests\":{\"cpu\":\"1\"}}}]}}"

static struct cache cache;
static struct buf out;

static void take(enum cache_event_type type, const char *json)
{
    struct arena a;
    struct jread r;
    struct effect effect;
    struct cache_event e = {.type = type};
    arena_init(&a, MIB);
    jread_init(&r, str_of(json), &a);
    if (type == CACHE_NODE_SET)
        kube_read_node(&r, &a, &e.node);
    else
        kube_read_pod(&r, &a, &e.pod);
    ck_assert_int_eq(jread_finish(&r, NULL), OK);
    ck_assert_int_eq(cache_apply(&cache, &e, 0, &effect), OK);
    arena_done(&a);
}

/* Of the expected pods 3 of 4 ask for half a card, and 1 of 4 for a quarter. */
static void learn(int64_t cpu)
{
    struct learned_costs *p = &cache.learned;
    struct shape x = {.cpu = cpu, .cards = 1};
    for (unsigned i = 0; i < 4000; i++) {
        x.mem = i % 4 == 0 ? 4 : 8;
        shapes_add(&p->market.shapes, &x);
    }
    ck_assert(learned_costs_begin(p, &cache.nodes));
    while (learned_costs_step(p)) {
    }
}

/* "part" has one card, with half of it free; "free" has one that is wholly free. */
static void set_up(void)
{
    cache_init(&cache, (struct map_seed){1, 2});
    buf_init(&out, MIB);
    take(CACHE_NODE_SET, NODE("part", "1", "16"));
    take(CACHE_NODE_SET, NODE("free", "1", "16"));
    take(CACHE_POD_SET, POD("a", "part", "0", "8"));
}

static void tear_down(void)
{
    buf_done(&out);
    cache_done(&cache);
}

static const char *explain(enum policy policy, const char *pod)
{
    struct arena a;
    struct jread r;
    struct step_budget step_budget = {.steps = 0};
    struct pod_view view;
    struct err e = ERR_INIT;
    cache.settings.node_policy = policy;
    cache.settings.card_policy = policy;
    arena_init(&a, MIB);
    buf_clear(&out, MIB);
    jread_init(&r, str_of(pod), &a);
    kube_read_pod(&r, &a, &view);
    ck_assert_int_eq(jread_finish(&r, NULL), OK);
    ck_assert_ok(explain_write(&cache, &step_budget, &view, &a, &out, &e), &e);
    arena_done(&a);
    return buf_cstr(&out);
}

static void says(enum policy policy, const char *pod, const char *text)
{
    const char *answer = explain(policy, pod);
    ck_assert_msg(strstr(answer, text) != NULL, "no %s in %s", text, answer);
}

static void is_silent(enum policy policy, const char *pod)
{
    const char *answer = explain(policy, pod);
    ck_assert_msg(strstr(answer, "\"cost\"") == NULL && strstr(answer, "\"score\"") == NULL &&
                      strstr(answer, "\"why\"") == NULL,
                  "%s", answer);
}

/* Without costs the answer is what it was: see the golden tests, too. */
TEST(says_nothing_without_costs)
{
    is_silent(POLICY_BID_PRICE, ASKS("", "4"));
    is_silent(POLICY_FGD, ASKS("", "4"));
    learn(0);
    is_silent(POLICY_BINPACK, ASKS("", "4"));
    is_silent(POLICY_SPREAD, ASKS("", "4"));
    is_silent(POLICY_BID_PRICE, ASKS("", "0"));
    is_silent(POLICY_BID_PRICE, ASKS("", "17"));
}

/* The numbers are the prices' own; the texts beside them are what is tested. */
TEST(says_what_would_be_left)
{
    learn(0);
    says(POLICY_BID_PRICE, ASKS("", "4"),
         ": card 0, free until now, would have 75 % left, which every expected pod can use\"");
    says(POLICY_BID_PRICE, ASKS("", "4"),
         " more than free: card 0 would have 25 % left, which 25 % of the expected pods can use\"");
    says(POLICY_BID_PRICE, ASKS("", "8"), " cards: card 0 would be full\"");
    says(POLICY_BID_PRICE, ASKS("", "8"),
         ", free until now, would have 50 % left, which every expected pod can use\"");
    says(POLICY_BID_PRICE, ASKS("", "13"),
         " would have 18 % left, which no expected pod can use\"");
}

TEST(the_sentence_has_the_same_numbers)
{
    uint64_t millionths = 0;
    uint64_t cents = 0;
    learn(0);
    const char *answer = explain(POLICY_BID_PRICE, ASKS("", "4"));
    const char *cost = strstr(answer, "\"cost\":0.");
    const char *why = strstr(answer, "\"why\":\"costs 0.");
    ck_assert(cost != NULL && why != NULL);
    ck_assert(str_to_u64((struct str){cost + 9, 6}, UINT64_MAX, &millionths));
    ck_assert(str_to_u64((struct str){why + 15, 2}, UINT64_MAX, &cents));
    ck_assert_uint_gt(cents, 0);
    ck_assert_uint_eq((millionths + 5000) / 10000, cents);
    ck_assert_ptr_nonnull(strstr(why, "\"cost\":0."));
}

TEST(says_scores_of_fgd)
{
    learn(0);
    says(POLICY_FGD, ASKS("", "4"), "\"score\":50,\"why\":\"scores 50 of 100: card 0, free");
    says(POLICY_FGD, ASKS("", "4"), "\"score\":45,\"why\":\"scores 45 of 100, 5 less than free: ");
    says(POLICY_FGD, ASKS("", "8"), "\"why\":\"scores 50 of 100, as much as free: card 0 would be");
}

/* Nodes after the second have a number and no sentence. */
TEST(compares_two_nodes)
{
    take(CACHE_NODE_SET, NODE("other", "1", "16"));
    learn(0);
    const char *answer = explain(POLICY_FGD, ASKS("", "4"));
    const char *third = strstr(answer, "{\"node\":\"part\"");
    ck_assert_ptr_nonnull(strstr(answer, "scores 50 of 100, as much as free: card 0, free until"));
    ck_assert_ptr_nonnull(third);
    ck_assert_ptr_nonnull(strstr(third, "\"score\":45,\"cards\":"));
}

/* The first card of "wide" has a pod of 6: with 8 more it has 12 % left. */
TEST(sums_up_several_cards)
{
    take(CACHE_NODE_SET, NODE("wide", "4", "64"));
    take(CACHE_POD_SET, POD("b", "wide", "0", "6"));
    learn(0);
    says(POLICY_BID_PRICE, ASKS("\"aliyun.com/gpu-count\":\"4\"", "32"),
         ": its 4 cards would have 12 to 50 % left, which every expected pod can use\"");
    says(POLICY_BID_PRICE, ASKS("\"aliyun.com/gpu-count\":\"3\"", "24"),
         ": its 3 cards would have ");
    says(POLICY_BID_PRICE, ASKS("\"aliyun.com/gpu-count\":\"3\"", "48"),
         ": its 3 cards would be full\"");
}

/* The pod takes one of the 8 cores of a node: pods of 8 cores have no room there afterwards.
 * The younger half of the pods weighs more. */
TEST(counts_pods_that_have_cores)
{
    learn(8000);
    says(POLICY_FGD, ASKS("", "4"), " would have 75 % left, which no expected pod can use\"");
    learn(7000);
    says(POLICY_FGD, ASKS("", "4"),
         " would have 75 % left, which 53 % of the expected pods can use\"");
}

int main(void)
{
    TCase *t = unit_case("cost_write");
    tcase_add_checked_fixture(t, set_up, tear_down);
    return unit_run();
}
