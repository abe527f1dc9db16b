/*
 * Answers of the verbs that change nothing (filter, prioritize and preempt), over HTTP, with a
 * cache and budgets that the test fills. For cases that a cluster file can show see tests/golden.
 */
#include "verbs_stage.h"

/* A PodDisruptionBudget that allows this many evictions of the app's pods. */
static void budget_of(const char *app, int64_t allowed)
{
    struct str value = str_of(app);
    struct requirement_view need = {
        .key = STR("app"), .op = REQUIREMENT_IN, .values = &value, .n_values = 1};
    struct budget_view view = {.namespace = STR("ns"),
                               .name = value,
                               .selects = true,
                               .requirements = &need,
                               .n_requirements = 1,
                               .allowed = allowed};
    ck_assert_int_eq(budgets_set(&s.service.budgets, &view), OK);
}

#define HI(mem, more)                                                                        \
    "\"Pod\":{\"metadata\":{\"name\":\"hi\",\"namespace\":\"ns\",\"uid\":\"hi\"},\"spec\":{" \
    "\"priority\":100," more "\"containers\":[{\"name\":\"c\"," MEM(mem) "}]}}"
#define PREEMPT(pod, nodes) "{" pod ",\"NodeNameToMetaVictims\":{" nodes "}}"
#define NOBODY              "{\"NodeNameToMetaVictims\":{}}"

/* ---- preempt ---- */

static const struct {
    const char *name;
    const char *guarded; /* one-letter apps whose PodDisruptionBudget allows no eviction */
    const char *body;
    const char *answer;
    unsigned outcome;
} preempts[] = {
    {"what is asked counts, and ours beside it", "ab",
     PREEMPT(HI("12", ""), "\"n\":{\"Pods\":[{\"UID\":\"x\"}],\"NumPDBViolations\":2}"),
     "{\"NodeNameToMetaVictims\":{\"n\":{\"Pods\":[{\"UID\":\"x\"},{\"UID\":\"a\"}],"
     "\"NumPDBViolations\":3}}}",
     OUTCOME_OK},
    {"none is ours where the budgets allow it", "a",
     PREEMPT(HI("12", ""), "\"n\":{\"Pods\":[{\"UID\":\"x\"}],\"NumPDBViolations\":2}"),
     "{\"NodeNameToMetaVictims\":{\"n\":{\"Pods\":[{\"UID\":\"x\"},{\"UID\":\"b\"}],"
     "\"NumPDBViolations\":2}}}",
     OUTCOME_OK},
    {"a victim that is asked for is no violation of ours", "ab",
     PREEMPT(HI("12", ""), "\"n\":{\"Pods\":[{\"UID\":\"b\"}],\"NumPDBViolations\":1}"),
     "{\"NodeNameToMetaVictims\":{\"n\":{\"Pods\":[{\"UID\":\"b\"}],\"NumPDBViolations\":1}}}",
     OUTCOME_OK},
    {"a victim on another node makes no room here", "",
     PREEMPT(HI("12", ""), "\"m\":{\"Pods\":[{\"UID\":\"a\"}],\"NumPDBViolations\":0}"),
     "{\"NodeNameToMetaVictims\":{\"m\":{\"Pods\":[{\"UID\":\"a\"},{\"UID\":\"c\"}],"
     "\"NumPDBViolations\":0}}}",
     OUTCOME_OK},
    {"a node where no eviction helps is left out, and the other is not", "",
     PREEMPT(HI("17", ""), "\"n\":{\"Pods\":[{\"UID\":\"a\"}]},\"m\":{\"Pods\":[{\"UID\":"
                           "\"c\"}]}"),
     NOBODY, OUTCOME_REFUSED},
    {"a node that we do not know is left out", "",
     PREEMPT(HI("12", ""), "\"gone\":{\"Pods\":[{\"UID\":\"a\"}],\"NumPDBViolations\":0}"), NOBODY,
     OUTCOME_REFUSED},
    {"no pod is evicted where there is room", "",
     PREEMPT(HI("12", ""), "\"roomy\":{\"Pods\":[],\"NumPDBViolations\":0}"), NOBODY,
     OUTCOME_REFUSED},
    {"a pod that never preempts", "",
     PREEMPT(HI("12", "\"preemptionPolicy\":\"Never\","),
             "\"n\":{\"Pods\":[{\"UID\":\"a\"}],\"NumPDBViolations\":0}"),
     NOBODY, OUTCOME_ERROR},
    {"a pod that has its place", "",
     "{\"Pod\":{\"metadata\":{\"name\":\"c\",\"namespace\":\"ns\",\"uid\":\"c\"},\"spec\":{"
     "\"priority\":100,\"containers\":[{\"name\":\"c\"," MEM(
         "10") "}]}},\"NodeNameToMetaVictims\":{\"n\":{\"Pods\":[{\"UID\":\"a\"}]}}}",
     NOBODY, OUTCOME_ERROR},
    {"a pod that wants no card is the scheduler's alone", "",
     "{\"Pod\":{\"metadata\":{\"name\":\"hi\",\"namespace\":\"ns\",\"uid\":\"hi\"},\"spec\":{"
     "\"priority\":100,\"containers\":[{\"name\":\"c\"}]}},\"NodeNameToMetaVictims\":{\"gone\":{"
     "\"Pods\":[{\"UID\":\"x\"}],\"NumPDBViolations\":4}}}",
     "{\"NodeNameToMetaVictims\":{\"gone\":{\"Pods\":[{\"UID\":\"x\"}],\"NumPDBViolations\":4}}}",
     OUTCOME_OK},
};

TEST_EACH(who_has_to_go, COUNT_OF(preempts))
{
    stage_open();
    for (const char *app = preempts[_i].guarded; *app != '\0'; app++)
        budget_of((char[]){*app, '\0'}, 0);
    answers("preempt", preempts[_i].body, preempts[_i].answer, preempts[_i].outcome);
    stage_close();
}

/*
 * One eviction of a or c is allowed. The scheduler's victim on m is a, but a is on n: its eviction
 * does not free m, so it must not use up the eviction that c needs.
 */
TEST(a_victim_on_another_node_uses_up_no_budget)
{
    static const struct str both[] = {STR("a"), STR("c")};
    static const struct requirement_view need = {
        .key = STR("app"), .op = REQUIREMENT_IN, .values = both, .n_values = COUNT_OF(both)};
    static const struct budget_view view = {.namespace = STR("ns"),
                                            .name = STR("both"),
                                            .selects = true,
                                            .requirements = &need,
                                            .n_requirements = 1,
                                            .allowed = 1};
    stage_open();
    ck_assert_int_eq(budgets_set(&s.service.budgets, &view), OK);
    answers("preempt",
            PREEMPT(HI("12", ""), "\"m\":{\"Pods\":[{\"UID\":\"a\"}],\"NumPDBViolations\":0}"),
            "{\"NodeNameToMetaVictims\":{\"m\":{\"Pods\":[{\"UID\":\"a\"},{\"UID\":\"c\"}],"
            "\"NumPDBViolations\":0}}}",
            OUTCOME_OK);
    stage_close();
}

/* ---- before it is ready ---- */

TEST(what_is_not_ready_decides_nothing)
{
    stage_open();
    s.ready = false;
    answers("filter", NAMES(HI("4", ""), "\"n\",\"roomy\""),
            "{\"Nodes\":null,\"NodeNames\":null,\"FailedNodes\":null,"
            "\"FailedAndUnresolvableNodes\":null,\"Error\":\"cardpack is not ready: the first list "
            "of pods is not in yet\"}",
            OUTCOME_ERROR);
    answers("prioritize", NAMES(HI("4", ""), "\"n\",\"roomy\""),
            "[{\"Host\":\"n\",\"Score\":0},{\"Host\":\"roomy\",\"Score\":0}]", OUTCOME_ERROR);
    answers("preempt", PREEMPT(HI("12", ""), "\"n\":{\"Pods\":[{\"UID\":\"a\"}]}"), NOBODY,
            OUTCOME_ERROR);
    for (size_t v = 0; v < VERDICT_COUNT; v++)
        ck_assert_uint_eq(s.service.metrics.verdicts[v], 0);
    s.ready = true;
    answers("prioritize", NAMES(HI("4", ""), "\"n\",\"roomy\""),
            "[{\"Host\":\"n\",\"Score\":10},{\"Host\":\"roomy\",\"Score\":9}]", OUTCOME_OK);
    stage_close();
}

/* ---- filter and prioritize ---- */

TEST(the_outcome_of_a_filter)
{
    stage_open();
    (void)ask("filter", NAMES(HI("4", ""), "\"n\",\"roomy\",\"gone\""));
    ck_assert_uint_eq(s.outcome, OUTCOME_OK);
    (void)ask("filter", NAMES(HI("12", ""), "\"n\",\"m\""));
    ck_assert_uint_eq(s.outcome, OUTCOME_REFUSED);
    ck_assert_uint_eq(s.service.metrics.verdicts[VERDICT_FITS], 2);
    ck_assert_uint_eq(s.service.metrics.verdicts[VERDICT_UNKNOWN_NODE], 1);
    ck_assert_uint_eq(s.service.metrics.verdicts[VERDICT_NO_CARD_FREE], 2);
    stage_close();
}

static uint64_t steps_with_shortlist(unsigned shortlist, const char *answer)
{
    s.service.shortlist = shortlist;
    answers("filter", NAMES(HI("4", ""), "\"n\",\"m\",\"roomy\""), answer, OUTCOME_OK);
    return s.service.step_budget.steps;
}

/*
 * A shortlist as long as the list of nodes leaves none out, so no node is scored for it. A pod
 * waits on n: with swap-guard: prefer, a score looks at the waiting pods.
 */
TEST(a_shortlist_costs_only_where_it_is_shorter)
{
    static const char all[] =
        "{\"Nodes\":null,\"NodeNames\":[\"n\",\"m\",\"roomy\"],\"FailedNodes\":{},"
        "\"FailedAndUnresolvableNodes\":{},\"Error\":\"\"}";
    static const struct container_view container = {.name = STR("c"), .mem = STR("2")};
    struct effect fx;
    struct cache_event waits = {.type = CACHE_POD_SET,
                                .pod = {.uid = STR("w"),
                                        .namespace = STR("ns"),
                                        .name = STR("w"),
                                        .node = STR("n"),
                                        .phase = STR("Pending"),
                                        .idx = STR("0"),
                                        .containers = &container,
                                        .n_containers = 1,
                                        .n_mains = 1}};
    stage_open();
    s.service.cache.settings.swap_guard = SWAP_GUARD_PREFER;
    ck_assert_int_eq(cache_apply(&s.service.cache, &waits, 1, &fx), OK);
    ck_assert_uint_eq(cache_node(&s.service.cache, STR("n"))->n_starting, 1);
    uint64_t none = steps_with_shortlist(0, all);
    ck_assert_uint_eq(steps_with_shortlist(4, all), none);
    ck_assert_uint_eq(steps_with_shortlist(3, all), none);
    s.service.shortlist = 2;
    (void)ask("filter", NAMES(HI("4", ""), "\"n\",\"m\",\"roomy\""));
    ck_assert_uint_gt(s.service.step_budget.steps, none);
    stage_close();
}

/* Nodes that are not feasible get 0, and do not affect the levels of the feasible ones. */
TEST(nodes_that_do_not_fit_are_no_levels)
{
    stage_open();
    answers("prioritize", NAMES(HI("12", ""), "\"n\",\"m\",\"roomy\",\"gone\""),
            "[{\"Host\":\"n\",\"Score\":0},{\"Host\":\"m\",\"Score\":0},{\"Host\":\"roomy\","
            "\"Score\":10},{\"Host\":\"gone\",\"Score\":0}]",
            OUTCOME_OK);
    stage_close();
}

/* A quarter of a card is 4 on n and 8 on wide; their usage is equal otherwise, so wide becomes
 * fuller. */
TEST(a_percentage_is_scored_by_what_it_costs_there)
{
    static const char body[] =
        "{\"Pod\":{\"metadata\":{\"name\":\"hi\",\"namespace\":\"ns\",\"uid\":\"hi\","
        "\"annotations\":{\"cardpack.io/gpu-mem-percent\":\"25\"}},\"spec\":{\"containers\":[{"
        "\"name\":\"c\"," MEM("1") "}]}},\"NodeNames\":[\"n\",\"wide\"]}";
    static const struct container_view container = {.name = STR("c"), .mem = STR("20")};
    struct effect fx;
    struct cache_event node = {.type = CACHE_NODE_SET,
                               .node = {.name = STR("wide"), .mem = STR("32"), .count = STR("1")}};
    struct cache_event pod = {.type = CACHE_POD_SET,
                              .pod = {.uid = STR("d"),
                                      .namespace = STR("ns"),
                                      .name = STR("d"),
                                      .node = STR("wide"),
                                      .phase = STR("Running"),
                                      .idx = STR("0"),
                                      .containers = &container,
                                      .n_containers = 1,
                                      .n_mains = 1}};
    stage_open();
    ck_assert_int_eq(cache_apply(&s.service.cache, &node, 1, &fx), OK);
    ck_assert_int_eq(cache_apply(&s.service.cache, &pod, 1, &fx), OK);
    answers("prioritize", body, "[{\"Host\":\"n\",\"Score\":9},{\"Host\":\"wide\",\"Score\":10}]",
            OUTCOME_OK);
    stage_close();
}

/* A pod's place is where it holds cards already, whatever it asks for now. */
TEST(a_pod_has_its_place_on_one_node)
{
    static const char body[] =
        "{\"Pod\":{\"metadata\":{\"name\":\"c\",\"namespace\":\"ns\",\"uid\":\"c\"},\"spec\":{"
        "\"containers\":[{\"name\":\"c\"," MEM("10") "}]}},\"NodeNames\":[\"m\",\"roomy\"]}";
    stage_open();
    const char *text = ask("filter", body);
    ck_assert_ptr_nonnull(strstr(text, "\"NodeNames\":[\"m\"]"));
    ck_assert_uint_eq(s.service.metrics.verdicts[VERDICT_HELD_ELSEWHERE], 1);
    stage_close();
}

/* ---- whole cards of the other device plugin ---- */

#define WHOLE_ONES(n) "\"resources\":{\"limits\":{\"nvidia.com/gpu\":\"" n "\"}}"
#define WHOLE_POD                                                                            \
    "\"Pod\":{\"metadata\":{\"name\":\"hi\",\"namespace\":\"ns\",\"uid\":\"hi\"},\"spec\":{" \
    "\"priority\":100,\"containers\":[{\"name\":\"c\"," WHOLE_ONES("1") "}]}}"

/* kube-scheduler asks about these pods in every cluster: nodes that share no card stay feasible,
 * its own victims there stay in the answer, and only shared cards are a reason to refuse. */
TEST(a_whole_card_needs_no_shared_one)
{
    static const struct container_view whole = {.name = STR("c"), .exclusive = STR("1")};
    struct effect fx;
    struct cache_event node = {.type = CACHE_NODE_SET,
                               .node = {.name = STR("plain"), .exclusive = STR("1")}};
    struct cache_event held = {.type = CACHE_POD_SET,
                               .pod = {.uid = STR("low"),
                                       .namespace = STR("ns"),
                                       .name = STR("low"),
                                       .node = STR("plain"),
                                       .phase = STR("Running"),
                                       .containers = &whole,
                                       .n_containers = 1}};
    stage_open();
    ck_assert_int_eq(cache_apply(&s.service.cache, &node, 1, &fx), OK);
    ck_assert_int_eq(cache_apply(&s.service.cache, &held, 1, &fx), OK);
    answers("filter", NAMES(WHOLE_POD, "\"plain\",\"n\""),
            "{\"Nodes\":null,\"NodeNames\":[\"plain\"],\"FailedNodes\":{\"n\":\"Pods that ask for "
            "aliyun.com/gpu-mem share GPU devices of the node: asks 1 nvidia.com/gpu, 2 pods "
            "share\"},\"FailedAndUnresolvableNodes\":{},"
            "\"Error\":\"\"}",
            OUTCOME_OK);
    answers("prioritize", NAMES(WHOLE_POD, "\"plain\""), "[{\"Host\":\"plain\",\"Score\":0}]",
            OUTCOME_OK);
    answers("preempt",
            PREEMPT(WHOLE_POD, "\"plain\":{\"Pods\":[{\"UID\":\"low\"}],\"NumPDBViolations\":1}"),
            "{\"NodeNameToMetaVictims\":{\"plain\":{\"Pods\":[{\"UID\":\"low\"}],"
            "\"NumPDBViolations\":1}}}",
            OUTCOME_OK);
    stage_close();
}

/* ---- reasons ---- */

/* kube-scheduler uses a reason as a format of fmt.Sprintf. */
static void has_no_format(const char *answer, const char *body)
{
    ck_assert_msg(strchr(answer, '%') == NULL, "%s\nis answered with\n%s", body, answer);
}

#define ODD(notes, labels, mem)                                                        \
    "{\"Pod\":{\"metadata\":{\"name\":\"o%d\",\"namespace\":\"ns\",\"uid\":\"o\","     \
    "\"annotations\":{" notes "},\"labels\":{" labels "}},\"spec\":{\"containers\":[{" \
    "\"name\":\"c%s\"," mem "}]}},\"NodeNames\":[\"n\"]}"
#define RESOURCE(name, value) "\"resources\":{\"limits\":{\"" name "\":\"" value "\"}}"
#define FOUR(text)            text text text text
#define PERCENTS_256          FOUR(FOUR(FOUR("%%%%")))
#define ITEMS_256             FOUR(FOUR(FOUR("%,%,%,%,")))
#define CONTAINER             "{\"name\":\"c%d\"," MEM("1") "}"
#define CONTAINERS_4          CONTAINER "," CONTAINER "," CONTAINER "," CONTAINER
#define CONTAINERS_16         CONTAINERS_4 "," CONTAINERS_4 "," CONTAINERS_4 "," CONTAINERS_4

/* One request for each error of request_read that quotes a value of the pod, and its reason. */
static const struct {
    const char *body;
    const char *reason;
} percents[] = {
    {ODD("\"cardpack.io/gpu-mem-percent\":\"25%\"", "", MEM("1")),
     "annotation cardpack.io/gpu-mem-percent: \\\"25 percent\\\" must be a whole number from 1 to "
     "100, without a percent sign"},
    {ODD("\"cardpack.io/policy\":\"%d\"", "", MEM("1")), "policy: \\\" percentd\\\" must be"},
    {ODD("\"cardpack.io/node-policy\":\"%n\"", "", MEM("1")), "node-policy: \\\" percentn\\\""},
    {ODD("\"cardpack.io/card-policy\":\"%v\"", "", MEM("1")), "card-policy: \\\" percentv\\\""},
    {ODD("\"cardpack.io/card-model\":\"" ITEMS_256 "\"", "", MEM("1")), "items: 128 at most"},
    {ODD("\"cardpack.io/card-uuid\":\"" ITEMS_256 "\"", "", MEM("1")), "items: 128 at most"},
    {ODD("\"cardpack.io/card-affinity-group\":\"" PERCENTS_256 "\"", "", MEM("1")),
     "has 256 bytes: 253 at most"},
    {ODD("\"cardpack.io/card-anti-affinity-group\":\"" PERCENTS_256 "\"", "", MEM("1")),
     "has 256 bytes: 253 at most"},
    {ODD("\"cardpack.io/card-affinity-group\":\"50%\","
         "\"cardpack.io/card-anti-affinity-group\":\"50%\"",
         "", MEM("1")),
     "\\\"50 percent\\\" is also its cardpack.io/card-affinity-group"},
    {ODD("", "\"aliyun.com/gpu-count\":\"2%\"", MEM("2")), "\\\"2 percent\\\" must be a number"},
    {ODD("", "\"ack.gpushare.placement\":\"%\"", MEM("2")), "\\\" percent\\\" must be require"},
    {ODD("", "\"aliyun.com/gpu-count\":\"2\"", MEM("3")), "\\\"2\\\" does not divide"},
    {ODD("", "", MEM("25%")), "aliyun.com/gpu-mem: \\\"25 percent\\\" is not a quantity"},
    {ODD("", "", MEM("-1")), "container \\\"c percents\\\": aliyun.com/gpu-mem: \\\"-1\\\""},
    {ODD("", "", RESOURCE("aliyun.com/gpu-core.percentage", "25%")),
     "gpu-core.percentage: \\\"25 percent\\\" is not a quantity"},
    {ODD("", "", RESOURCE("aliyun.com/gpu-core.percentage", "25")),
     "gpu-core.percentage: \\\"25\\\" without aliyun.com/gpu-mem: add a limit aliyun.com/gpu-mem"},
    {ODD("", "", RESOURCE("nvidia.com/gpu", "1%")), "nvidia.com/gpu: \\\"1 percent\\\" is not a"},
    {"{\"Pod\":{\"metadata\":{\"name\":\"p\"},\"spec\":{\"overhead\":{\"aliyun.com/gpu-mem\":"
     "\"5%\"},\"containers\":[{\"name\":\"c\"," MEM("1") "}]}},\"NodeNames\":[\"n\"]}",
     "overhead of pod \\\"p\\\": aliyun.com/gpu-mem: \\\"5 percent\\\" is not a quantity"},
    {"{\"Pod\":{\"metadata\":{\"name\":\"p\"},\"spec\":{\"containers\":[" CONTAINERS_16
     "," CONTAINER "]}},\"NodeNames\":[\"n\"]}",
     "container \\\"c percentd\\\": more than 16 containers ask for cards"},
    {"{\"Pod\":{\"metadata\":{\"name\":1}},\"%s\":1}", "ExtenderArgs: Pod.metadata.name"},
    {"{\"Pod\":{\"spec\":{\"containers\":[{\"resources\":{\"limits\":{\"%s\":%}}}]}}}",
     "\"Error\":\"ExtenderArgs: "},
};

TEST_EACH(a_reason_quotes_no_percent_sign, COUNT_OF(percents))
{
    stage_open();
    const char *answer = ask("filter", percents[_i].body);
    has_no_format(answer, percents[_i].body);
    ck_assert_msg(strstr(answer, percents[_i].reason) != NULL, "%s\nis not in\n%s",
                  percents[_i].reason, answer);
    stage_close();
}

static struct str reason_of_verdict(void *ctx, size_t i, bool *ret_common)
{
    static char bytes[512];
    static struct buf scratch;
    scratch = BUF_ON(bytes);
    *ret_common = i > 0;
    return verdict_reason(*(const enum verdict *)ctx, STR("n%s"), &scratch);
}

TEST_EACH(the_reason_of_a_verdict_has_no_percent_sign, VERDICT_COUNT)
{
    static const unsigned char offers[] = {OFFER_UNRESOLVABLE};
    static const struct str names[] = {STR("n")};
    const struct filter_args args = {.by_name = true, .names = names, .n = 1};
    enum verdict v = (enum verdict)_i;
    char bytes[512];
    struct buf scratch = BUF_ON(bytes);
    struct buf out;
    struct str own = verdict_reason(v, names[0], &scratch);
    ck_assert_ptr_null(memchr(own.p, '%', own.n));
    buf_init(&out, MIB);
    extender_write_filter(&out, &args, offers, offers, reason_of_verdict, &v);
    has_no_format(buf_cstr(&out), verdict_name(v));
    buf_done(&out);
}

int main(void)
{
    log_setup(open("/dev/null", O_WRONLY | O_CLOEXEC), LOG_LEVEL_DEBUG, LOG_FORMAT_LOGFMT);
    return unit_run();
}
