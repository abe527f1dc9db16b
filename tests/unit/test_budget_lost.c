/* A PodDisruptionBudget that found no memory is listed again after a while. */
#include "daemon/backend/budget_feed.h"

#include "base/log.h"
#include "fail_alloc.h"
#include "fake_net.h"

#include <fcntl.h>

#define AGAIN_MS 10000

#define LIST                                                                                 \
    "{\"kind\":\"PodDisruptionBudgetList\",\"metadata\":{\"resourceVersion\":\"10\"},"       \
    "\"items\":[{\"metadata\":{\"name\":\"a\",\"namespace\":\"ns\"},\"spec\":{\"selector\":" \
    "{\"matchLabels\":{\"k\":\"1\"}}},\"status\":{\"disruptionsAllowed\":1}}]}"

static struct rig {
    struct loop *loop;
    struct kube_api *api;
    struct budgets budgets;
    struct reflector_counts counts;
    struct budget_feed *feed;
} rig;

static void rig_open(void)
{
    struct err e = ERR_INIT;
    rig = (struct rig){.loop = fake_loop()};
    budgets_init(&rig.budgets, (struct map_seed){1, 2});
    struct kubeconfig config = {.server = STR("https://api"), .token = STR("s3cret")};
    struct kube_api_settings api = {.config = &config, .user_agent = STR("test/1")};
    ck_assert_ok(kube_api_new(rig.loop, &api, &rig.api, &e), &e);
    struct budget_feed_settings settings = {.loop = rig.loop,
                                            .api = rig.api,
                                            .budgets = &rig.budgets,
                                            .page_size = 500,
                                            .backoff = {.min_ms = 1000000, .max_ms = 1000000},
                                            .again_ms = AGAIN_MS,
                                            .counts = &rig.counts};
    ck_assert_ok(budget_feed_new(&settings, &rig.feed, &e), &e);
    fake_turn(rig.loop);
}

static void rig_close(void)
{
    rig.feed = budget_feed_free(rig.feed);
    rig.api = kube_api_free(rig.api);
    rig.loop = loop_free(rig.loop);
    budgets_done(&rig.budgets);
}

#define LIST_PART "/poddisruptionbudgets?limit="

static void list(void)
{
    fake_answer(fake_find("GET", LIST_PART), 200, LIST);
}

/* A list during which the nth allocation fails. Returns whether one failed. */
static bool list_short_of_memory(size_t nth)
{
    fail_alloc_arm(FAIL_ONCE, nth);
    list();
    fail_alloc_disarm();
    return fail_alloc_hit();
}

/* The list has ended and its watch is open: nothing else would bring the lost budget. */
TEST(a_budget_without_memory_for_it_is_listed_again)
{
    size_t n_lost = 0;
    bool hit = true;
    for (size_t nth = 1; hit; nth++) {
        rig_open();
        hit = list_short_of_memory(nth);
        if (hit && rig.counts.listed == 1 && rig.budgets.all.n == 0) {
            n_lost++;
            ck_assert_ptr_null(fake_waiting("GET", LIST_PART));
            fake_stall(rig.loop, AGAIN_MS);
            fake_turn(rig.loop);
            list();
        }
        ck_assert_uint_eq(rig.budgets.all.n, rig.counts.listed > 0 ? 1 : 0);
        ck_assert(hit || rig.counts.listed == 1);
        budgets_check(&rig.budgets);
        rig_close();
    }
    ck_assert_uint_gt(n_lost, 0);
}

int main(void)
{
    log_setup(open("/dev/null", O_WRONLY | O_CLOEXEC), LOG_LEVEL_DEBUG, LOG_FORMAT_LOGFMT);
    return unit_run();
}
