/* PATCHes of pods, and their answers, with an API server that the test plays. */
#include "node/pods/pod_patcher.h"

#include "base/log.h"
#include "fake_net.h"

#define PATCH_PATH "/api/v1/namespaces/ns/pods/p/status?timeout=10000ms"

static struct {
    struct loop *loop;
    struct kube_api *api;
    struct roster roster;
    struct pod_patcher patcher;
    unsigned changes;
} t;

static void on_change(void *ctx)
{
    ck_assert_ptr_eq(ctx, &t);
    t.changes++;
}

static void set_pod(const char *idx, uint64_t version)
{
    struct container_view container = {.name = STR("c"), .mem = STR("4")};
    const struct pod_view v = {.uid = STR("p"),
                               .namespace = STR("ns"),
                               .name = STR("p"),
                               .node = STR("n"),
                               .phase = STR("Running"), /* so it moves without a mark */
                               .idx = str_of(idx),
                               .n_mains = 1,
                               .containers = &container,
                               .n_containers = 1};
    ck_assert_int_eq(roster_set(&t.roster, &v, version), OK);
}

/* The pod is annotated with card 1, and its container has card 0. */
static void set_up(void)
{
    static const struct roster_card cards[] = {{0, 4}, {1, 4}};
    const struct card_list has = {1, {0}};
    struct err e = ERR_INIT;
    memset(&t, 0, sizeof(t));
    log_setup(2, LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    t.loop = fake_loop();
    struct kubeconfig config = {.server = STR("https://api"), .token = STR("s3cret")};
    struct kube_api_settings api = {.config = &config, .user_agent = STR("test/1")};
    ck_assert_ok(kube_api_new(t.loop, &api, &t.api, &e), &e);
    roster_init(&t.roster);
    roster_set_cards(&t.roster, cards, COUNT_OF(cards));
    pod_patcher_init(&t.patcher, t.loop, t.api, NULL, &t.roster, on_change, &t);
    set_pod("1", 1);
    roster_truth_begin(&t.roster);
    ck_assert(roster_truth(&t.roster, STR("p"), STR("c"), &has, false));
    roster_truth_end(&t.roster, true);
    ck_assert(exchange_plan(&t.roster));
    pod_patcher_step(&t.patcher);
    ck_assert_uint_eq(t.patcher.counts.sent, 1);
}

static void tear_down(void)
{
    pod_patcher_done(&t.patcher);
    roster_done(&t.roster);
    t.api = kube_api_free(t.api);
    t.loop = loop_free(t.loop);
}

static void answer(unsigned status, const char *body)
{
    fake_turn(t.loop);
    fake_answer(fake_find("PATCH", PATCH_PATH), status, body);
    fake_turn(t.loop);
    ck_assert_uint_eq(t.changes, 1);
}

#define POD(uid)                                                                             \
    "{\"metadata\":{\"name\":\"p\",\"namespace\":\"ns\",\"uid\":\"" uid                      \
    "\",\"resourceVersion\":\"5\",\"annotations\":{\"ALIYUN_COM_GPU_MEM_IDX\":\"0\"}},"      \
    "\"spec\":{\"nodeName\":\"n\",\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\"" \
    ":{\"aliyun.com/gpu-mem\":\"4\"}}}]},\"status\":{\"phase\":\"Pending\"}}"

TEST(the_answer_is_the_pod)
{
    answer(200, POD("p"));
    const struct roster_pod *p = roster_find(&t.roster, STR("p"));
    ck_assert(!p->busy && p->said.grants[0].card == 0);
    ck_assert_uint_eq(p->version, 5);
    ck_assert_uint_eq(t.patcher.counts.moved, 1);
}

/* The watch has shown that the pod is gone: an answer that was slower must not bring it back. */
TEST(a_late_answer_brings_no_pod_back)
{
    roster_remove(&t.roster, STR("p"));
    answer(200, POD("p"));
    ck_assert_uint_eq(t.roster.n_pods, 0);
    ck_assert_uint_eq(t.patcher.counts.failures, 0);
}

/* Not even one that is about another pod. */
TEST(an_answer_is_about_the_pod_that_was_asked_for)
{
    answer(200, POD("other"));
    ck_assert_uint_eq(t.roster.n_pods, 1);
    ck_assert(!roster_find(&t.roster, STR("p"))->busy);
    ck_assert_uint_eq(t.patcher.counts.failures, 1);
}

/* It is sent again after a pause, unless the pod has gone. */
TEST_EACH(a_refusal_is_tried_again, 7)
{
    static const unsigned statuses[] = {401, 403, 404, 422, 429, 500, 503};
    answer(statuses[_i], "{\"kind\":\"Status\",\"status\":\"Failure\",\"message\":\"because\"}");
    ck_assert_uint_eq(t.patcher.counts.failures, 1);
    ck_assert(roster_find(&t.roster, STR("p"))->unclear == (statuses[_i] >= 500));
    pod_patcher_step(&t.patcher);
    ck_assert_uint_eq(t.patcher.counts.sent, 1);
    t.loop->clock_ms += 1000;
    fake_turn(t.loop);
    ck_assert_uint_eq(t.changes, 2); /* the pause has ended */
    pod_patcher_step(&t.patcher);
    ck_assert_uint_eq(t.patcher.counts.sent, 2);
}

/* The pod has changed: others need not wait, and its new version is planned for. */
TEST_EACH(a_pod_that_has_changed_is_awaited, 2)
{
    answer(409, "{\"kind\":\"Status\",\"status\":\"Failure\",\"message\":\"modified\"}");
    ck_assert_uint_eq(t.patcher.counts.failures, 0);
    ck_assert_uint_eq(roster_find(&t.roster, STR("p"))->stale, 1);
    ck_assert(!timer_armed(&t.patcher.again));
    pod_patcher_step(&t.patcher);
    ck_assert_uint_eq(t.patcher.counts.sent, 1); /* the same version: not yet */
    if (_i == 0)
        set_pod("1", 2); /* by the watch */
    else
        t.loop->clock_ms += POD_PATCHER_RETRY_MS; /* it does not come */
    fake_turn(t.loop);
    ck_assert(exchange_plan(&t.roster));
    pod_patcher_step(&t.patcher);
    ck_assert_uint_eq(t.patcher.counts.sent, 2);
    fake_turn(t.loop);
    ck_assert(fake_find("PATCH", PATCH_PATH) != NULL);
}

/* The time in which a PATCH can still be applied begins with the program, and with each PATCH
 * without an outcome. */
TEST_EACH(a_patch_can_be_late_for_so_long, 2)
{
    t.loop->clock_ms += POD_PATCHER_LATE_MS - 1;
    if (_i == 0)
        answer(500, "{}");
    else
        answer(403, "{}");
    ck_assert(!t.patcher.passed);
    t.loop->clock_ms += 1;
    fake_turn(t.loop);
    ck_assert(t.patcher.passed == (_i == 1));
    t.loop->clock_ms += POD_PATCHER_LATE_MS - 1;
    fake_turn(t.loop);
    ck_assert(t.patcher.passed);
}

/* What the API server refuses because of the pod is not tried for ever, and does not slow down
 * others; after a while it is tried once more. */
TEST_EACH(a_pod_that_is_always_refused_is_left_alone, 4)
{
    static const unsigned statuses[] = {400, 403, 413, 422};
    for (unsigned i = 1; i <= EXCHANGE_REFUSALS; i++) {
        ck_assert_uint_eq(t.patcher.counts.sent, i);
        fake_turn(t.loop);
        fake_answer(fake_find("PATCH", PATCH_PATH), statuses[_i],
                    "{\"kind\":\"Status\",\"status\":\"Failure\",\"message\":\"too long\"}");
        fake_turn(t.loop);
        ck_assert(exchange_plan(&t.roster));
        t.loop->clock_ms += i < EXCHANGE_REFUSALS ? 1000 : 200;
        fake_turn(t.loop);
        pod_patcher_step(&t.patcher);
    }
    ck_assert(roster_find(&t.roster, STR("p"))->refused);
    ck_assert(exchange_is_misfit(roster_find(&t.roster, STR("p"))));
    ck_assert(!timer_armed(&t.patcher.again)); /* others need not wait */
    ck_assert_uint_eq(t.patcher.counts.sent, EXCHANGE_REFUSALS);
    t.loop->clock_ms += POD_PATCHER_RETRY_MS;
    fake_turn(t.loop);
    ck_assert(exchange_plan(&t.roster));
    pod_patcher_step(&t.patcher);
    ck_assert_uint_eq(t.patcher.counts.sent, EXCHANGE_REFUSALS + 1);
}

/* These say nothing about the pod. */
TEST_EACH(a_pod_is_not_left_alone_for_what_passes, 6)
{
    static const unsigned statuses[] = {401, 404, 408, 429, 500, 503};
    for (unsigned i = 1; i <= 2 * EXCHANGE_REFUSALS; i++) {
        ck_assert_uint_eq(t.patcher.counts.sent, i);
        fake_turn(t.loop);
        fake_answer(fake_find("PATCH", PATCH_PATH), statuses[_i],
                    "{\"kind\":\"Status\",\"status\":\"Failure\",\"message\":\"later\"}");
        fake_turn(t.loop);
        t.loop->clock_ms += 5000;
        fake_turn(t.loop);
        pod_patcher_step(&t.patcher);
    }
    ck_assert(!roster_find(&t.roster, STR("p"))->refused);
}

/* An admission webhook is down, which the API server tells with a status of 5xx. */
TEST(a_pod_whose_webhook_is_down_is_left_alone_after_a_while)
{
    const struct roster_pod *p = roster_find(&t.roster, STR("p"));
    const uint64_t begin = t.loop->clock_ms;
    while (t.loop->clock_ms < begin + POD_PATCHER_FAILING_MS + 5000) {
        ck_assert(!p->refused);
        fake_turn(t.loop);
        fake_answer(fake_find("PATCH", PATCH_PATH), 500,
                    "{\"kind\":\"Status\",\"status\":\"Failure\",\"message\":\"webhook\"}");
        fake_turn(t.loop);
        t.loop->clock_ms += 5000;
        fake_turn(t.loop);
        ck_assert(exchange_plan(&t.roster));
        pod_patcher_step(&t.patcher);
    }
    const uint64_t sent = t.patcher.counts.sent;
    ck_assert(p->refused);
    t.loop->clock_ms += POD_PATCHER_RETRY_MS;
    fake_turn(t.loop);
    ck_assert(!p->refused);
    ck_assert(exchange_plan(&t.roster));
    pod_patcher_step(&t.patcher);
    ck_assert_uint_eq(t.patcher.counts.sent, sent + 1);
    fake_turn(t.loop);
    fake_answer(fake_find("PATCH", PATCH_PATH), 200, POD("p"));
    fake_turn(t.loop);
    ck_assert(p->failing_ms == 0 && p->refusals == 0);
}

/* A user edits the pod all the time: the exchanges of others do not wait for it. */
TEST_EACH(a_pod_that_changes_all_the_time_is_left_alone, 2)
{
    const struct roster_pod *p = roster_find(&t.roster, STR("p"));
    unsigned sent = 0;
    while (!p->refused) {
        ck_assert_uint_eq(t.patcher.counts.sent, ++sent);
        fake_turn(t.loop);
        fake_answer(fake_find("PATCH", PATCH_PATH), 409,
                    "{\"kind\":\"Status\",\"status\":\"Failure\",\"message\":\"modified\"}");
        fake_turn(t.loop);
        t.loop->clock_ms += _i == 0 ? 100 : 4000;
        set_pod("1", sent + 1);
        fake_turn(t.loop);
        ck_assert(exchange_plan(&t.roster));
        pod_patcher_step(&t.patcher);
        ck_assert_uint_lt(sent, 1000);
    }
    ck_assert_uint_eq(sent, _i == 0 ? 1 + POD_PATCHER_CONTENDED_MS / 100 : POD_PATCHER_CONFLICTS);
    ck_assert(!timer_armed(&t.patcher.again));
    t.loop->clock_ms += POD_PATCHER_RETRY_MS;
    fake_turn(t.loop);
    ck_assert(!p->refused);
}

/* A pod whose cards are known is written back at once, and if its author goes on, more and more
 * rarely; after some calm at once again. */
TEST(a_pod_that_is_edited_again_is_written_more_rarely)
{
    uint64_t version = 10;
    uint64_t before = 0;
    answer(200, POD("p"));
    ck_assert(exchange_plan(&t.roster));
    ck_assert(roster_find(&t.roster, STR("p"))->held);
    for (unsigned ms = 0; ms < 60000; ms += 100) {
        set_pod("1", ++version); /* the author */
        ck_assert(exchange_plan(&t.roster));
        pod_patcher_step(&t.patcher);
        fake_turn(t.loop);
        if (t.patcher.counts.sent > before) {
            before = t.patcher.counts.sent;
            fake_answer(fake_find("PATCH", PATCH_PATH), 200, POD("p"));
            fake_turn(t.loop);
        }
        t.loop->clock_ms += 100;
        fake_turn(t.loop);
    }
    ck_assert_uint_ge(t.patcher.counts.sent, 5);
    ck_assert_uint_le(t.patcher.counts.sent, 12);
    before = t.patcher.counts.sent;
    t.loop->clock_ms += POD_PATCHER_CALM_MS + POD_PATCHER_RETRY_MS;
    fake_turn(t.loop);
    set_pod("0", ++version);
    pod_patcher_step(&t.patcher);
    set_pod("1", ++version);
    ck_assert(exchange_plan(&t.roster));
    pod_patcher_step(&t.patcher);
    ck_assert_uint_eq(t.patcher.counts.sent, before + 1);
}

int main(void)
{
    TCase *c = unit_case("pod_patcher");
    tcase_add_checked_fixture(c, set_up, tear_down);
    return unit_run();
}
