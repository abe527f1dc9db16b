/* Which versions have CDI, and the rules of the roster for containers that get their cards late. */
#include "node/allot/late_binding.h"
#include "node/roster/exchange.h"
#include "node/roster/pod_match.h"
#include "unit.h"

static const struct {
    const char *kubelet;
    const char *runtime;
    bool supported;
} versions[] = {
    {"v1.36.3", "containerd://2.0.0", true},
    {"v1.29.0", "containerd://2.1.4-rc.1", true},
    {"v1.29.4-gke.10", "cri-o://1.28.0", true},
    {"v2.0.0", "cri-o://2.0", true},
    {"v1.28.9", "containerd://2.0.0", false},
    {"v1.36.3", "containerd://1.7.28", false},
    {"v1.36.3", "containerd://1.6.20~ds1", false},
    {"v1.36.3", "cri-o://1.27.9", false},
    {"v1.36.3", "docker://28.0.0", false},
    {"v1.36.3", "", false},
    {"", "containerd://2.0.0", false},
    {"v1", "containerd://2.0.0", false},
    {"v1.x", "containerd://2.0.0", false},
    {"v1.36.3", "containerd://2.", false},
};

TEST_EACH(test_versions, COUNT_OF(versions))
{
    ck_assert(late_binding_is_supported(str_of(versions[_i].kubelet),
                                        str_of(versions[_i].runtime)) == versions[_i].supported);
    ck_assert(!late_binding_is_supported(STR_NULL, STR_NULL));
}

static struct roster r;

static void set_up(void)
{
    const struct roster_card cards[] = {{0, 4}, {1, 4}};
    roster_init(&r);
    roster_set_cards(&r, cards, COUNT_OF(cards));
}

static void tear_down(void)
{
    roster_done(&r);
}

static void set_pod(const char *uid, const char *idx, uint64_t version)
{
    struct container_view container = {.name = STR("c"), .mem = STR("4")};
    struct pod_view v = {.uid = str_of(uid),
                         .namespace = STR("ns"),
                         .name = str_of(uid),
                         .node = STR("n"),
                         .phase = STR("Pending"),
                         .idx = str_of(idx),
                         .n_mains = 1,
                         .containers = &container,
                         .n_containers = 1};
    ck_assert_int_eq(roster_set(&r, &v, version), OK);
}

struct given {
    const char *uid;
    int card; /* -1: late, and its spec is not written */
    bool late;
};

static void tell(const struct given *g, size_t n)
{
    roster_truth_begin(&r);
    for (size_t i = 0; i < n; i++) {
        struct card_list has = {g[i].card < 0 ? 0 : 1, {(uint32_t)MAX_OF(g[i].card, 0)}};
        ck_assert(roster_truth(&r, str_of(g[i].uid), STR("c"), &has, g[i].late));
    }
    roster_truth_end(&r, true);
    roster_settle(&r);
    ck_assert(exchange_plan(&r));
}

static struct roster_pod *pod(const char *uid)
{
    return roster_find(&r, str_of(uid));
}

static void is_next(enum exchange_action action, const char *uid)
{
    struct exchange_step s;
    exchange_next(&r, &s);
    ck_assert_int_eq((int)s.action, (int)action);
    ck_assert(uid == NULL || str_eq(s.pod->uid, str_of(uid)));
}

/* Devices without cards: the pod goes where its annotations say, also if they change. */
TEST(test_open)
{
    set_pod("p", "0", 1);
    tell((struct given[]){{"p", -1, true}}, 1);
    ck_assert(roster_is_open(pod("p")) && !roster_is_bound(pod("p")));
    ck_assert(!exchange_is_misfit(pod("p")));
    ck_assert(exchange_may_start(&r, pod("p")));
    set_pod("p", "1", 2);
    ck_assert(exchange_plan(&r));
    ck_assert(exchange_may_start(&r, pod("p")));
    is_next(EXCHANGE_ASSIGN, "p");
    set_pod("p", "", 3);
    ck_assert(exchange_plan(&r));
    ck_assert(!exchange_may_start(&r, pod("p"))); /* no card is promised */
}

/* It was allowed on card 0, was not started there, and card 1 is taken. */
TEST(test_room_again)
{
    set_pod("q", "1", 1);
    set_pod("p", "0", 2);
    tell((struct given[]){{"p", -1, true}, {"q", 1, true}}, 2);
    ck_assert(exchange_may_start(&r, pod("q")));
    ck_assert(exchange_may_start(&r, pod("p")));
    set_pod("p", "1", 3);
    ck_assert(exchange_plan(&r));
    ck_assert(!exchange_may_start(&r, pod("p")));
    ck_assert(exchange_is_crowded(&r, pod("p")));
}

/* The spec is the truth: annotations that are edited later are set back, and no pod gets what they
 * seem to leave free. */
TEST(test_bound)
{
    set_pod("p", "0", 1);
    tell((struct given[]){{"p", 0, true}}, 1);
    ck_assert(roster_is_bound(pod("p")));
    ck_assert(exchange_may_start(&r, pod("p")));
    set_pod("p", "1", 2);
    ck_assert(exchange_plan(&r));
    late_binding_log_edits(&r);
    ck_assert(pod("p")->edited);
    is_next(EXCHANGE_MOVE, "p");
    ck_assert_uint_eq(pod("p")->plan.grants[0].card, 0);
    set_pod("q", "0", 3);
    tell((struct given[]){{"p", 0, true}, {"q", -1, true}}, 2);
    ck_assert(!exchange_may_start(&r, pod("q")));
    ck_assert(!exchange_is_misfit(pod("p"))); /* it runs there: it is not the one that gives way */
    set_pod("p", "0", 4);
    ck_assert(exchange_plan(&r));
    late_binding_log_edits(&r);
    ck_assert(!pod("p")->edited);
    ck_assert(exchange_may_start(&r, pod("p")));
    ck_assert(!exchange_may_start(&r, pod("q")));
    ck_assert(exchange_is_crowded(&r, pod("q")));
}

/* Annotations without a card are set back, as its spec says which it has. Its card stays taken. */
TEST(test_bound_without_annotations)
{
    set_pod("p", "0", 1);
    tell((struct given[]){{"p", 0, true}}, 1);
    set_pod("p", "", 2);
    set_pod("q", "0", 3);
    tell((struct given[]){{"p", 0, true}, {"q", -1, true}}, 2);
    ck_assert_int_eq(roster_holds(&r, pod("p"), 0, true), 4);
    ck_assert_int_eq(roster_holds(&r, pod("p"), 1, true), 0);
    ck_assert(!exchange_may_start(&r, pod("q")));
    ck_assert(!exchange_may_start(&r, pod("p"))); /* until its annotations say so */
    is_next(EXCHANGE_MOVE, "p");
    set_pod("p", "0", 4);
    ck_assert(exchange_plan(&r));
    ck_assert(exchange_may_start(&r, pod("p")));
    ck_assert(!exchange_may_start(&r, pod("q")));
    roster_remove(&r, STR("p"));
    ck_assert(exchange_plan(&r));
    ck_assert(exchange_may_start(&r, pod("q")));
}

/* q was given p's card by a guess, before the setting changed; p, which is open, takes q's. */
TEST(test_mixed)
{
    set_pod("p", "0", 1);
    set_pod("q", "1", 2);
    tell((struct given[]){{"q", 0, false}}, 1);
    tell((struct given[]){{"q", 0, false}, {"p", -1, true}}, 2);
    ck_assert_uint_eq(pod("p")->plan.grants[0].card, 1);
    ck_assert(!exchange_may_start(&r, pod("p"))); /* until its annotations say so */
    is_next(EXCHANGE_MARK, NULL);
    set_pod("q", "0", 3);
    set_pod("p", "1", 4);
    ck_assert(exchange_plan(&r));
    ck_assert(exchange_may_start(&r, pod("p")) && exchange_may_start(&r, pod("q")));
}

/* A pod whose spec is written is no partner: it runs on its card. */
TEST(test_mixed_with_a_bound_pod)
{
    set_pod("p", "0", 1);
    set_pod("q", "1", 2);
    tell((struct given[]){{"p", 0, true}}, 1);
    ck_assert(exchange_may_start(&r, pod("p")));
    tell((struct given[]){{"p", 0, true}, {"q", 0, false}}, 2);
    ck_assert_uint_eq(pod("p")->plan.grants[0].card, 0);
    ck_assert(!exchange_may_start(&r, pod("q")));
    ck_assert(exchange_may_start(&r, pod("p")));
}

int main(void)
{
    TCase *t = unit_case("late_binding");
    tcase_add_checked_fixture(t, set_up, tear_down);
    return unit_run();
}
