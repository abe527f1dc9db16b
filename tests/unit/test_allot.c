/* When the pods are listed, and what waits for that. The kubelet's calls are played by the test. */
#include "node/allot/allot.h"

#include "base/limit.h"
#include "base/log.h"
#include "fail_alloc.h"
#include "fake_net.h"
#include "node/allot/allot_state.h"

/* In place of grpc_server.c. */
struct grpc_call {
    unsigned replies;
    unsigned failures;
};

void grpc_call_reply(struct grpc_call *c, struct str message)
{
    (void)message;
    c->replies++;
}

void grpc_call_fail(struct grpc_call *c, enum grpc_status status, struct str text)
{
    (void)status;
    (void)text;
    c->failures++;
}

static struct {
    struct loop *loop;
    struct kube_api *api;
    struct allot *allot;
    unsigned lists; /* asked for */
} t;

static const struct gpu_card *card(void *ctx, uint32_t index)
{
    static const struct gpu_card only = {.uuid = STR("GPU-0"), .pci = STR("00000000:3B:00.0")};
    (void)ctx;
    return index == 0 ? &only : NULL;
}

static void relist(void *ctx)
{
    (void)ctx;
    t.lists++;
}

static void set_up(void)
{
    struct err e = ERR_INIT;
    struct offer offer = {.n = 1};
    struct kubeconfig config = {.server = STR("https://api"), .token = STR("s3cret")};
    struct kube_api_settings api = {.config = &config, .user_agent = STR("test/1")};
    memset(&t, 0, sizeof(t));
    log_setup(2, LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    t.loop = fake_loop();
    ck_assert_ok(kube_api_new(t.loop, &api, &t.api, &e), &e);
    const struct allot_settings s = {.loop = t.loop,
                                     .api = t.api,
                                     .checkpoint = STR("/nonexistent/checkpoint"),
                                     .resource = STR("aliyun.com/gpu-mem"),
                                     .cdi_dir = STR("/nonexistent/cdi"),
                                     .unit_bytes = (int64_t)(1024 * MIB),
                                     .card = card,
                                     .relist = relist};
    ck_assert_ok(allot_new(&s, &t.allot, &e), &e);
    offer.items[0] = (struct card_offer){.index = 0, .units = 8};
    allot_set_offer(t.allot, &offer);
}

static void tear_down(void)
{
    t.allot = allot_free(t.allot);
    t.api = kube_api_free(t.api);
    t.loop = loop_free(t.loop);
}

static void set_pod_on(const char *uid, const char *idx, const char *phase, uint64_t version)
{
    struct container_view container = {.name = STR("c"), .mem = STR("4")};
    const struct pod_view v = {.uid = str_of(uid),
                               .namespace = STR("ns"),
                               .name = str_of(uid),
                               .node = STR("n"),
                               .phase = str_of(phase),
                               .idx = str_of(idx),
                               .n_mains = 1,
                               .containers = &container,
                               .n_containers = 1};
    allot_set_pod(t.allot, &v, version);
}

static void set_pod(const char *uid, const char *phase, uint64_t version)
{
    set_pod_on(uid, "0", phase, version);
}

static void fail_pod(const char *uid)
{
    fail_alloc_arm(FAIL_FROM_THEN_ON, 1);
    set_pod(uid, "Pending", 1);
    fail_alloc_disarm();
}

static void pass(uint64_t ms)
{
    t.loop->clock_ms += ms;
    fake_turn(t.loop);
}

static void allocate(struct grpc_call *call)
{
    static const struct str ids[] = {STR("0.0"), STR("0.1"), STR("0.2"), STR("0.3")};
    const struct allocate_container c = {ids, COUNT_OF(ids)};
    const struct allocate_request q = {&c, 1};
    allot_allocate(t.allot, call, &q);
}

/* A list of which a pod could not be kept does not count, and another one is asked for. */
TEST_EACH(a_pod_that_was_not_kept_is_listed_again, 2)
{
    struct grpc_call call = {0};
    allot_list_begin(t.allot);
    if (_i == 0)
        fail_pod("p");
    allot_list_end(t.allot);
    if (_i == 1) /* by the watch */
        fail_pod("p");
    ck_assert_uint_eq(t.lists, 0);
    pass(ALLOT_AGAIN_MS);
    ck_assert_uint_eq(t.lists, 1);
    pass(ALLOT_AGAIN_MS);
    ck_assert_uint_eq(t.lists, 1); /* it is under way */
    allocate(&call);
    ck_assert_uint_eq(call.replies + call.failures, 0);
    allot_list_begin(t.allot);
    set_pod("p", "Pending", 1);
    allot_list_end(t.allot);
    ck_assert_uint_eq(call.replies, 1);
    pass(ALLOT_AGAIN_MS - 1);
    ck_assert_uint_eq(t.lists, 1);
}

/* What an agent before this one sent may still be applied: a list that begins after that is sure.
 */
TEST_EACH(a_list_ends_the_doubts, 2)
{
    const struct roster_pod *p = NULL;
    allot_list_begin(t.allot);
    set_pod("p", "Pending", 1);
    allot_list_end(t.allot);
    p = roster_find(&t.allot->roster, STR("p"));
    ck_assert(p->doubt);
    allot_list_begin(t.allot); /* too early */
    if (_i == 1)
        pass(POD_PATCHER_LATE_MS);
    set_pod("p", "Pending", 1);
    allot_list_end(t.allot);
    ck_assert(p->doubt);
    pass(POD_PATCHER_LATE_MS);
    ck_assert_uint_eq(t.lists, 1);
    allot_list_begin(t.allot);
    set_pod("p", "Pending", 1);
    ck_assert(p->doubt);
    allot_list_end(t.allot);
    ck_assert(!p->doubt);
    pass(POD_PATCHER_LATE_MS);
    ck_assert_uint_eq(t.lists, 1);
}

/* An answer was lost since that list began: its PATCH may come after the list. */
TEST(a_lost_answer_needs_a_newer_list)
{
    allot_list_begin(t.allot);
    set_pod("p", "Pending", 1);
    allot_list_end(t.allot);
    pass(POD_PATCHER_LATE_MS);
    allot_list_begin(t.allot);
    set_pod("p", "Pending", 1);
    t.allot->patcher.passed = false;
    allot_list_end(t.allot);
    ck_assert(roster_find(&t.allot->roster, STR("p"))->doubt);
}

/* Its containers have their cards. */
TEST(a_running_pod_needs_no_list)
{
    allot_list_begin(t.allot);
    set_pod("p", "Running", 1);
    allot_list_end(t.allot);
    pass(POD_PATCHER_LATE_MS);
    ck_assert_uint_eq(t.lists, 0);
}

/* The first checkpoint says which pods may run, so it is not read before they are known. */
TEST_EACH(the_checkpoint_waits_for_the_first_list, 2)
{
    static const struct str id = STR("0.0");
    const struct preferred_container c = {.available = &id, .n_available = 1, .size = 1};
    const struct preferred_request preferred = {&c, 1};
    struct grpc_call call = {0};
    if (_i == 0) {
        allot_preferred(t.allot, &call, &preferred);
    } else {
        allot_set_late(t.allot, true);
        allocate(&call);
    }
    ck_assert_uint_eq(call.replies, 1);
    ck_assert(!t.allot->roster.checked);
    allot_list_begin(t.allot);
    set_pod("p", "Running", 1);
    allot_list_end(t.allot);
    ck_assert(t.allot->roster.checked && roster_find(&t.allot->roster, STR("p"))->lost);
}

/* A pod runs, and the kubelet has lost its devices. An Allocate is for it only if a list shows no
 * other pod. */
TEST_EACH(a_running_pod_is_the_last_guess, 2)
{
    struct grpc_call call = {0};
    allot_list_begin(t.allot);
    set_pod("p", "Running", 1);
    allot_list_end(t.allot);
    allocate(&call);
    pass(20);
    ck_assert_uint_eq(call.replies + call.failures + t.lists, 0);
    pass(400);
    ck_assert_uint_eq(t.lists, 1);
    ck_assert_uint_eq(call.replies + call.failures, 0);
    allot_list_begin(t.allot);
    set_pod("p", "Running", 1);
    if (_i == 1)
        set_pod("q", "Pending", 2);
    allot_list_end(t.allot);
    ck_assert_uint_eq(call.replies, 1);
    ck_assert(str_eq(t.allot->roster.guess.pod->uid, _i == 1 ? STR("q") : STR("p")));
}

/* A pod runs on card 0. The kubelet's checkpoint is not there any more. */
static struct roster *run_on_0(void)
{
    static const struct card_list on_0 = {1, {0}};
    struct roster *r = &t.allot->roster;
    allot_list_begin(t.allot);
    set_pod("p", "Pending", 1);
    allot_list_end(t.allot);
    roster_truth_begin(r);
    ck_assert(roster_truth(r, STR("p"), STR("c"), &on_0, false));
    roster_truth_end(r, false);
    roster_settle(r);
    ck_assert(exchange_plan(r));
    ck_assert(exchange_may_start(r, roster_find(r, STR("p"))));
    return r;
}

/* The kubelet starts anew and has lost its checkpoint, which this program sees only then. */
TEST(a_kubelet_that_starts_without_its_checkpoint)
{
    struct roster *r = run_on_0();
    allot_registered(t.allot, true);
    ck_assert_uint_eq(t.lists, 1);
    ck_assert(roster_find(r, STR("p"))->lost && !roster_find(r, STR("p"))->released);
}

/* A list shows that a user has edited a running pod's annotations. If the checkpoint is lost before
 * the next one is read, only the roster knows where it runs. */
TEST(an_edit_and_a_lost_checkpoint)
{
    struct roster *r = run_on_0();
    allot_list_begin(t.allot);
    set_pod_on("p", "1", "Running", 2);
    allot_list_end(t.allot);
    const struct roster_pod *p = roster_find(r, STR("p"));
    ck_assert_uint_eq(p->said.grants[0].card, 1);
    ck_assert_uint_eq(p->plan.grants[0].card, 0);
    ck_assert(!p->containers[0].given);
}

int main(void)
{
    TCase *c = unit_case("allot");
    tcase_add_checked_fixture(c, set_up, tear_down);
    return unit_run();
}
