/* Groups, kept room, and how a pod's charge changes with its object. */
#include "fit_fixture.h"

#define GROUP(name)     .affinity = S(name)
#define NOMINATED(name) .nominated = S(name)

static bool held(const struct rig *r, const char *namespace, const char *group)
{
    struct request request = {.namespace = str_of(namespace), .affinity = str_of(group)};
    struct evaluation evaluation;
    cache_evaluation(&r->cache, STR("nobody"), &request, &evaluation);
    return evaluation.affinity_held;
}

static size_t groups(const struct rig *r)
{
    return r->cache.groups.n;
}

static void open_two(struct rig *r)
{
    const struct pod_view none[FIXTURE_PODS] = {NO_POD};
    struct node_view node = TWO_CARDS;
    fit_fixture_open(r, &node, none, POLICY_UNSET);
}

/* However pods begin and cease to hold a card. */
TEST(a_group_is_held_as_long_as_one_of_its_pods_holds)
{
    struct rig r;
    struct pod_view a = PLAIN("a", "4", GROUP("g"));
    struct pod_view b = PLAIN("b", "4", GROUP("g"), .node = S("n"), .idx = S("0"));
    struct pod_view other = PLAIN("other", "4", GROUP("h"), .node = S("n"), .idx = S("1"));
    open_two(&r);
    set_pod(&r, a);
    ck_assert(!held(&r, "ns", "g")); /* the pod is pending */
    ck_assert_int_eq(take(&r, a), OK);
    ck_assert(held(&r, "ns", "g") && !held(&r, "elsewhere", "g") && !held(&r, "ns", "h"));
    ck_assert(!held(&r, "ns", "") && !held(&r, "n", "sg"));
    cancel(&r, "a");
    ck_assert_uint_eq(groups(&r), 0);
    ck_assert_int_eq(take(&r, a), OK);
    ck_assert_int_eq(confirm(&r, "a", false), OK);
    set_pod(&r, b);
    set_pod(&r, other);
    ck_assert_uint_eq(groups(&r), 2);
    a.node = STR("n");
    a.idx = STR("0");
    set_pod(&r, a);
    a.phase = STR("Succeeded");
    set_pod(&r, a);
    ck_assert(held(&r, "ns", "g"));
    b.affinity = STR("h"); /* the pod is edited while it is bound */
    set_pod(&r, b);
    ck_assert(!held(&r, "ns", "g") && held(&r, "ns", "h"));
    ck_assert_uint_eq(groups(&r), 1);
    pod_gone(&r, "other");
    ck_assert(held(&r, "ns", "h"));
    list_begin(&r, CACHE_PODS);
    list_end(&r, CACHE_PODS);
    ck_assert_uint_eq(groups(&r), 0);
    set_pod(&r, other);
    node_gone(&r, "n"); /* the pod is still there */
    ck_assert(held(&r, "ns", "h"));
    rig_done(&r);
}

TEST(a_name_beyond_the_ceiling_is_no_group)
{
    struct rig r;
    char name[REQUEST_GROUP_MAX + 1];
    struct pod_view v = PLAIN("a", "4", .node = S("n"), .idx = S("0"));
    memset(name, 'g', sizeof(name));
    open_two(&r);
    v.affinity = (struct str){name, REQUEST_GROUP_MAX};
    set_pod(&r, v);
    ck_assert_uint_eq(groups(&r), 1);
    v.affinity.n++;
    set_pod(&r, v);
    ck_assert_uint_eq(groups(&r), 0);
    v.affinity.n--;
    v.namespace = v.affinity;
    v.uid = STR("b");
    set_pod(&r, v);
    ck_assert_uint_eq(groups(&r), 1);
    rig_done(&r);
}

/* ---- kept room ---- */

static const struct {
    struct pod_view pods[FIXTURE_PODS]; /* on node n with two cards of 16, or nominated for it */
    struct pod_view ask;
    enum verdict verdict;
    uint32_t card;
} nominees[] = {
    {{PLAIN("q", "16", NOMINATED("n"))}, PLAIN("ask", "16"), VERDICT_FITS, 1},
    {{PLAIN("q", "16", NOMINATED("n")), PLAIN("a", "1", AT(1))},
     PLAIN("ask", "16"),
     VERDICT_KEPT,
     0},
    {{PLAIN("q", "16", NOMINATED("n")), PLAIN("a", "1", AT(1))},
     PLAIN("ask", "15"),
     VERDICT_FITS,
     1},
    {{PLAIN("q", "16", NOMINATED("n"), .priority = 5), PLAIN("a", "2", AT(1))},
     PLAIN("ask", "15", .priority = 5),
     VERDICT_KEPT, /* of equal priority */
     0},
    {{PLAIN("q", "16", NOMINATED("n"), .priority = 6), PLAIN("a", "2", AT(1))},
     PLAIN("ask", "15", .priority = 5),
     VERDICT_KEPT,
     0},
    {{PLAIN("q", "16", NOMINATED("n"), .priority = 4), PLAIN("a", "2", AT(1))},
     PLAIN("ask", "15", .priority = 5),
     VERDICT_FITS,
     0},
    {{PLAIN("ask", "16", NOMINATED("n")), PLAIN("a", "2", AT(1))},
     PLAIN("ask", "16"), /* its own kept room is not kept from it */
     VERDICT_FITS,
     0},
    {{PLAIN("q", "16", NOMINATED("elsewhere")), PLAIN("a", "2", AT(1))},
     PLAIN("ask", "16"),
     VERDICT_FITS,
     0},
    /* It gets no node any more, however long its finalizers keep it. */
    {{PLAIN("q", "16", NOMINATED("n"), .deleting = true), PLAIN("a", "1", AT(1))},
     PLAIN("ask", "16"),
     VERDICT_FITS,
     0},
    /* Room of a pod that is being deleted: it is not free yet. */
    {{PLAIN("q", "16", NOMINATED("n")), PLAIN("old", "12", AT(0), .deleting = true),
      PLAIN("a", "12", AT(1))},
     PLAIN("ask", "4"),
     VERDICT_FITS,
     1},
    {{PLAIN("q", "16", NOMINATED("n")), PLAIN("old", "12", AT(0), .deleting = true),
      PLAIN("a", "13", AT(1))},
     PLAIN("ask", "4"),
     VERDICT_KEPT,
     0},
    {{PLAIN("q", "16", NOMINATED("n")), PLAIN("old", "12", AT(0)), PLAIN("a", "13", AT(1))},
     PLAIN("ask", "4"), /* no deletion will make that room: nothing is kept */
     VERDICT_FITS,
     0},
    /* Two nominees each have their own room. */
    {{PLAIN("q", "10", NOMINATED("n")), PLAIN("p", "10", NOMINATED("n"))},
     PLAIN("ask", "7"),
     VERDICT_KEPT,
     0},
    {{PLAIN("q", "10", NOMINATED("n")), PLAIN("p", "10", NOMINATED("n"))},
     PLAIN("ask", "6"),
     VERDICT_FITS,
     0},
    {{POD("q", NOMINATED("n"), CONTAINERS(1, {.name = S("c"), .exclusive = S("1")}))},
     PLAIN("ask", "6"),
     VERDICT_KEPT,
     0},
};

TEST_EACH(keeps_room_for_who_is_nominated, COUNT_OF(nominees))
{
    struct rig r;
    struct placement there;
    struct node_view node = TWO_CARDS;
    fit_fixture_open(&r, &node, nominees[_i].pods, POLICY_UNSET);
    enum verdict v = fit_fixture_evaluate(&r, &nominees[_i].ask, &there);
    ck_assert_str_eq(verdict_name(v), verdict_name(nominees[_i].verdict));
    ck_assert_int_eq(take(&r, nominees[_i].ask), v == VERDICT_FITS ? OK : ERR_UNAVAILABLE);
    if (v == VERDICT_FITS)
        ck_assert_uint_eq(r.fx.card, nominees[_i].card);
    rig_done(&r);
}

/* Whether node n keeps 16 for a pod on its only card. */
static bool kept(const struct rig *r)
{
    struct request ask = {.mem = 1, .lasting_mem = 1};
    struct evaluation evaluation;
    cache_evaluation(&r->cache, STR("nobody"), &ask, &evaluation);
    return fit_node(node_of(r, "n"), &evaluation) == VERDICT_KEPT;
}

TEST(a_claim_lives_as_long_as_its_pod_is_nominated_and_pending)
{
    struct rig r;
    struct node_view node = NODE(.mem = S("16"), .count = S("1"));
    struct pod_view q = PLAIN("q", "16", NOMINATED("n"));
    rig_init(&r);
    set_node(&r, node);
    set_pod(&r, q);
    ck_assert(kept(&r) && r.fx.changed);
    set_pod(&r, q);
    ck_assert(kept(&r) && !r.fx.changed);
    q.nominated = STR("m"); /* a node that is not known yet */
    set_pod(&r, q);
    ck_assert(!kept(&r) && r.fx.changed && cache_node(&r.cache, STR("m")) != NULL);
    q.nominated = STR("n");
    set_pod(&r, q);
    ck_assert(kept(&r) && cache_node(&r.cache, STR("m")) == NULL);
    q.nominated = STR_NULL;
    set_pod(&r, q);
    ck_assert(!kept(&r) && r.fx.changed);
    q.nominated = STR("n");
    set_pod(&r, q);
    node_gone(&r, "n"); /* the cache remembers the name and for whom it keeps room */
    set_node(&r, node);
    ck_assert(kept(&r));
    ck_assert_int_eq(take(&r, q), OK);
    ck_assert_ptr_null(node_of(&r, "n")->kept_for);
    cancel(&r, "q");
    ck_assert(kept(&r));
    q.deleting = true; /* and it has a finalizer */
    set_pod(&r, q);
    ck_assert(!kept(&r) && r.fx.changed);
    q.deleting = false;
    set_pod(&r, q);
    ck_assert_int_eq(take(&r, q), OK);
    q.deleting = true;
    set_pod(&r, q);
    cancel(&r, "q");
    ck_assert(!kept(&r));
    q.deleting = false;
    set_pod(&r, q);
    ck_assert(kept(&r));
    q.phase = STR("Failed");
    set_pod(&r, q);
    ck_assert(!kept(&r) && r.fx.changed);
    q.phase = STR_NULL;
    set_pod(&r, q);
    pod_gone(&r, "q");
    ck_assert(!kept(&r) && r.fx.changed);
    set_pod(&r, q);
    list_begin(&r, CACHE_PODS);
    list_end(&r, CACHE_PODS);
    ck_assert(!kept(&r) && r.fx.changed);
    set_pod(&r, q);
    q.node = STR("n"); /* bound by another client, without a card */
    set_pod(&r, q);
    ck_assert_ptr_null(node_of(&r, "n")->kept_for);
    ck_assert_int_eq(node_of(&r, "n")->unplaced, 16);
    rig_done(&r);
}

/* ---- edits ---- */

TEST(a_pending_pods_request_may_be_edited)
{
    struct rig r;
    struct pod_view v = PLAIN("a", "8");
    open_two(&r);
    set_pod(&r, v);
    v.count_label = STR("2");
    set_pod(&r, v);
    ck_assert_uint_eq(pod_of(&r, "a")->request->cards, 2);
    v.count_label = STR("3"); /* invalid: the pod asks for nothing until it is valid */
    set_pod(&r, v);
    ck_assert(!request_wants(pod_of(&r, "a")->request) && r.fx.err.code != OK);
    v.count_label = STR_NULL;
    set_pod(&r, v);
    ck_assert(request_plain(pod_of(&r, "a")->request));
    rig_done(&r);
}

/* A Binding is sent for the version of an object with the reserved request only. */
TEST(a_renewal_is_refused_while_the_object_asks_for_something_else)
{
    struct rig r;
    struct pod_view v = PLAIN("a", "8");
    struct container_view more = {.name = STR("c"), .mem = STR("9")};
    struct container_view none = {.name = STR("c")};
    const struct container_view *reserved = v.containers;
    open_two(&r);
    v.version = 4;
    set_pod(&r, v);
    ck_assert_int_eq(take(&r, v), OK);
    v.version = 5;
    v.containers = &more;
    set_pod(&r, v);
    ck_assert_int_eq(renew(&r, "a"), ERR_CONFLICT);
    v.containers = &none;
    set_pod(&r, v);
    ck_assert_int_eq(renew(&r, "a"), ERR_CONFLICT);
    v.version = 6;
    v.containers = reserved;
    v.host.cpu = 1; /* is no matter of a card */
    set_pod(&r, v);
    ck_assert_int_eq(renew(&r, "a"), OK);
    ck_assert_uint_eq(r.fx.version, 6);
    rig_done(&r);
}

/* The reservation stays as it is. A later bind takes what the pod asks for then. */
TEST(an_edit_during_a_bind_counts_from_its_end)
{
    struct rig r;
    struct pod_view v = PLAIN("a", "8");
    open_two(&r);
    set_pod(&r, v);
    ck_assert_int_eq(take(&r, v), OK);
    v.count_label = STR("2");
    set_pod(&r, v);
    ck_assert_uint_eq(pod_of(&r, "a")->request->cards, 0);
    cancel(&r, "a");
    ck_assert_uint_eq(pod_of(&r, "a")->request->cards, 2);
    ck_assert_int_eq(take(&r, v), OK);
    v.card_model = STR("T4");
    set_pod(&r, v);
    v.card_model = STR_NULL; /* and back again */
    set_pod(&r, v);
    cancel(&r, "a");
    ck_assert_uint_eq(pod_of(&r, "a")->request->models.n, 0);
    ck_assert_int_eq(take(&r, v), OK);
    v.count_label = STR("3"); /* invalid: a bind reads it again */
    v.deleting = true;
    set_pod(&r, v);
    cancel(&r, "a");
    ck_assert(!request_wants(pod_of(&r, "a")->request));
    ck_assert(pod_of(&r, "a")->deleting);
    v = (struct pod_view)PLAIN("b", "1", .percent = S("10"));
    set_pod(&r, v);
    ck_assert_int_eq(take(&r, v), OK);
    v = (struct pod_view)PLAIN("b", "0"); /* nothing */
    set_pod(&r, v);
    cancel(&r, "b");
    ck_assert(!pod_known(&r, "b"));
    rig_done(&r);
}

/* Once the pod is bound, its object says what it asks for; the earlier request is forgotten. */
TEST(an_edit_during_a_bind_that_succeeds_is_charged)
{
    struct rig r;
    struct pod_view v = PLAIN("a", "8");
    open_two(&r);
    set_pod(&r, v);
    ck_assert_int_eq(take(&r, v), OK);
    v.card_policy = STR("spread");
    set_pod(&r, v);
    ck_assert_int_eq(confirm(&r, "a", false), OK);
    v.node = STR("n");
    v.idx = STR("1");
    set_pod(&r, v);
    ck_assert_int_eq(pod_of(&r, "a")->request->card_policy, POLICY_SPREAD);
    ck_assert_int_eq(card_used(&r, "n", 1), 8);
    ck_assert_int_eq(card_used(&r, "n", 0), 0);
    rig_done(&r);
}

TEST(a_bound_pod_is_charged_what_its_object_says_now)
{
    struct rig r;
    struct pod_view v = PLAIN("a", "8", AT(0));
    open_two(&r);
    set_pod(&r, v);
    v.whole_label = GPUSHARE_WHOLE_DEVICE;
    set_pod(&r, v);
    ck_assert(r.fx.changed && card_used(&r, "n", 0) == 16);
    v.whole_label = STR_NULL;
    v.percent = STR("75");
    set_pod(&r, v);
    ck_assert_int_eq(card_used(&r, "n", 0), 12);
    v.percent = STR_NULL;
    v.card_policy = STR("spread");
    set_pod(&r, v);
    ck_assert_int_eq(card_used(&r, "n", 0), 8);
    set_pod(&r, v);
    ck_assert(!r.fx.changed);
    rig_done(&r);
}

TEST(another_hands_allocation_is_taken_over)
{
    struct rig r;
    struct pod_view v = POD("a", HELD({0, 1, 8}, {1, 0, 4}), .idx = S("0,1"),
                            CONTAINERS(2, MAIN_CORES(0, "8", "30"), MAIN(1, "4")));
    struct pod_view bare = POD("a", CONTAINERS(2, MAIN_CORES(0, "8", "30"), MAIN(1, "4")));
    open_two(&r);
    ck_assert_int_eq(take(&r, bare), OK); /* both containers on card 0 */
    ck_assert_int_eq(card_used(&r, "n", 0), 12);
    set_pod(&r, v);
    ck_assert(r.fx.changed);
    ck_assert_int_eq(card_used(&r, "n", 0), 4);
    ck_assert_int_eq(card_used(&r, "n", 1), 8);
    ck_assert_uint_eq(node_of(&r, "n")->cards[1].cores, 30);
    set_pod(&r, v);
    ck_assert(!r.fx.changed);
    v.has_allocation = false; /* an edit removed the allocation */
    v.idx = STR("1");
    set_pod(&r, v);
    ck_assert_int_eq(card_used(&r, "n", 0), 0);
    ck_assert_int_eq(card_used(&r, "n", 1), 12);
    rig_done(&r);
}

TEST_EACH(init_containers_give_back_and_take_again, 2)
{
    struct rig r;
    struct pod_view v = POD("a", CONTAINERS(1, INIT(0, "9"), MAIN(0, "2")), HELD({0, 1, 2}));
    open_two(&r);
    r.cache.settings.shrink = _i != 0;
    set_pod(&r, v);
    ck_assert_int_eq(card_used(&r, "n", 1), 9);
    v.initialized = true;
    set_pod(&r, v);
    ck_assert(r.fx.changed == (_i != 0));
    ck_assert_int_eq(card_used(&r, "n", 1), _i == 0 ? 9 : 2);
    ck_assert_int_eq(node_of(&r, "n")->counted, 9); /* the kubelet releases nothing */
    set_pod(&r, v);
    ck_assert(!r.fx.changed);
    v.initialized = false;
    set_pod(&r, v);
    ck_assert(r.fx.changed == (_i != 0));
    ck_assert_int_eq(card_used(&r, "n", 1), 9);
    rig_done(&r);
}
