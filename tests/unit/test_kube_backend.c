/* kube_backend.h with an API server whose answers and clock the test controls. */
#include "kube_rig.h"

#include "base/log.h"

#include <fcntl.h>

/* ---- the term of a decision ---- */

/* The Lease goes to another replica, which releases it later. */
static void lose_and_win(void)
{
    lease_taken_by("other");
    pass(4000);
    is_missing("replica \"other\" leads");
    lease_taken_by("");
    pass(2 * SETTLE_MS);
    ck_assert(is_ready());
    ck_assert_str_eq(holder(), "me");
}

TEST(a_term_ends_with_the_lease)
{
    lead();
    ck_assert_uint_eq(k.face->term(k.face), 1);
    lose_and_win();
    ck_assert_uint_eq(k.face->term(k.face), 2);
    rig_close();
}

/* Another replica may have given the card to another pod in between. */
TEST(what_was_reserved_in_an_earlier_term_is_not_posted)
{
    lead();
    reserve_p();
    lose_and_win();
    post_p();
    posted(POST_REFUSED);
    rig_close();
}

TEST(what_is_reserved_in_this_term_is_posted)
{
    lead();
    lose_and_win();
    reserve_p();
    post_p();
    ck_assert(fake_send(binding_of_p()));
    fake_answer(binding_of_p(), 201, "{}");
    posted(POST_CREATED);
    rig_close();
}

static void not_a_byte_leaves(void)
{
    ck_assert(!fake_send(binding_of_p()));
    posted(POST_REFUSED);
    ck_assert_int_eq(k.call.err.code, ERR_UNAVAILABLE);
}

TEST(nothing_leaves_after_the_end_of_the_term)
{
    lead();
    reserve_p();
    post_p();
    k.lease_silent = true;
    pass(LEASE_MS);
    not_a_byte_leaves();
    rig_close();
}

/* The process was stopped between the decision and the first byte; no timer has run. */
TEST(nothing_leaves_after_a_stall_past_the_lease)
{
    lead();
    reserve_p();
    post_p();
    fake_stall(k.loop, LEASE_MS);
    not_a_byte_leaves();
    rig_close();
}

TEST(nothing_leaves_in_the_next_term)
{
    lead();
    reserve_p();
    post_p();
    lose_and_win();
    not_a_byte_leaves();
    rig_close();
}

/* After a failed connection a retry is allowed, if the term goes on. */
TEST(a_failed_connection_is_not_sent)
{
    lead();
    reserve_p();
    post_p();
    fake_land(binding_of_p(), HTTP_NOT_SENT, 0);
    posted(POST_NOT_SENT);
    rig_close();
}

/* ---- what keeps the Lease ---- */

static void wanted_and_kept(void)
{
    lease_wanted();
    pass(4000);
    ck_assert(is_ready());
    ck_assert_str_eq(holder(), "me");
}

TEST(an_idle_leader_gives_the_lease)
{
    lead();
    wanted_and_given();
    rig_close();
}

TEST(a_card_in_doubt_keeps_the_lease)
{
    lead();
    reserve_p();
    post_p();
    ck_assert(fake_send(binding_of_p()));
    fake_land(binding_of_p(), HTTP_UNKNOWN, 0);
    posted(POST_UNKNOWN);
    wanted_and_kept();
    cancel_p();
    wanted_and_given();
    rig_close();
}

/* A second copy of the Binding may be under way; the watch was faster than the answer. */
TEST(an_open_post_of_a_bound_pod_keeps_the_lease)
{
    lead();
    reserve_p();
    post_p();
    ck_assert(fake_send(binding_of_p()));
    watch_says(CACHE_PODS, "MODIFIED", BOUND_P);
    ck_assert_int_eq(pod_p()->state, POD_BOUND);
    wanted_and_kept();
    fake_answer(binding_of_p(), 201, "{}");
    posted(POST_CREATED);
    wanted_and_given();
    rig_close();
}

TEST(a_canceled_post_is_not_counted)
{
    lead();
    reserve_p();
    post_p();
    k.face->cancel(&k.call);
    ck_assert(!binding_waits());
    cancel_p();
    wanted_and_given();
    rig_close();
}

/* A call that was not a Binding, or has ended, must not lower the count. */
TEST(only_an_open_post_is_counted_down)
{
    lead();
    get_p();
    k.face->cancel(&k.call);
    reserve_p();
    post_p();
    ck_assert(fake_send(binding_of_p()));
    say_status(binding_of_p(), 409, "Conflict", "pods");
    posted(POST_UNKNOWN);
    k.face->cancel(&k.call);
    get_p();
    k.face->cancel(&k.call);
    cancel_p();
    wanted_and_given();
    rig_close();
}

/* ---- lack of memory ---- */

static void holds_p(void)
{
    ck_assert_ptr_nonnull(pod_p());
    ck_assert_ptr_nonnull(cache_node(&k.cache, STR("n")));
}

/* A list of this kind brings a first object; memory fails at the second. */
static bool lost_in_a_list(enum cache_kind kind, const char *first, const char *second, size_t nth)
{
    rig_open(false);
    k.held[kind] = true;
    pass(0);
    struct http_call *c = fake_find("GET", list_paths[kind]);
    list_open(c, kind);
    fake_chunk(c, first);
    fake_chunk(c, ",");
    fails(nth);
    fake_chunk(c, second);
    bool lost = failed();
    k.held[kind] = false;
    if (c->client != NULL)
        fake_answer(c, 200, "]}");
    return lost;
}

#define POD_A  POD("a", "\"nodeName\":\"n\",")
#define NODE_A "{\"metadata\":{\"name\":\"a\"}}"

static const struct {
    enum cache_kind kind;
    const char *first;
    const char *second;
} lists[] = {
    {CACHE_PODS, POD_A, PENDING_P},
    {CACHE_NODES, NODE_A, NODE_N},
};

/* While an object is lost cardpack decides nothing; a later list repairs that. */
TEST_EACH(memory_fails_within_a_list, COUNT_OF(lists))
{
    size_t n_lost = 0;
    for (size_t nth = 1;; nth++) {
        bool lost = lost_in_a_list(lists[_i].kind, lists[_i].first, lists[_i].second, nth);
        for (unsigned i = 0; i < 20; i++) {
            pass(100);
            if (is_ready())
                holds_p();
        }
        pass(2 * SETTLE_MS);
        ck_assert(is_ready());
        holds_p();
        rig_close();
        if (!lost)
            break;
        n_lost++;
    }
    ck_assert_uint_gt(n_lost, 0);
}

static void is_short(void)
{
    is_missing("memory was short");
}

/* The watch ends in good order and starts again: the lost object is still lost. */
static void end_watch(enum cache_kind kind)
{
    pass(2000);
    fake_land(watch_of(kind), HTTP_ANSWERED, 200);
    serve();
}

TEST(memory_fails_within_a_watch)
{
    size_t n_lost = 0;
    k.items[CACHE_PODS] = "";
    for (size_t nth = 1;; nth++) {
        rig_open(true);
        k.items[CACHE_PODS] = "";
        pass(2 * SETTLE_MS);
        ck_assert(is_ready());
        k.items[CACHE_PODS] = PENDING_P;
        uint64_t lists_before = k.counts.feeds[CACHE_PODS].lists;
        fails(nth);
        watch_says(CACHE_PODS, "ADDED", PENDING_P);
        bool lost = failed();
        if (lost && watch_of(CACHE_PODS)->transfer != NULL && pod_p() == NULL) {
            n_lost++;
            is_short();
            end_watch(CACHE_PODS);
            ck_assert_uint_eq(k.counts.feeds[CACHE_PODS].lists, lists_before);
            is_short();
            pass(5000);
            ck_assert_uint_gt(k.counts.feeds[CACHE_PODS].lists, lists_before);
        }
        pass(2000);
        ck_assert(is_ready());
        holds_p();
        rig_close();
        if (!lost)
            break;
    }
    ck_assert_uint_gt(n_lost, 0);
}

/* A new leader must read again, and the list that lost the object does not count as read. */
TEST(memory_fails_within_a_later_list)
{
    size_t n_lost = 0;
    for (size_t nth = 1;; nth++) {
        lead();
        k.held[CACHE_PODS] = true;
        fake_land(watch_of(CACHE_PODS), HTTP_ANSWERED, 410);
        pass(2000);
        struct http_call *c = fake_find("GET", list_paths[CACHE_PODS]);
        list_open(c, CACHE_PODS);
        fails(nth);
        fake_chunk(c, POD_A);
        bool lost = failed();
        if (c->client != NULL) {
            fake_answer(c, 200, "]}");
            ck_assert(is_ready() == (cache_pod(&k.cache, STR("a")) != NULL));
            n_lost += is_ready() ? 0 : 1;
        }
        rig_close();
        if (!lost)
            break;
    }
    ck_assert_uint_gt(n_lost, 0);
}

/* A list that was under way when the object was lost does not bring it, and proves nothing. */
TEST(a_list_without_loss_is_what_ends_it)
{
    lead();
    reserve_p();
    post_p();
    fails(1);
    watch_says(CACHE_PODS, "ADDED", POD_A);
    ck_assert(failed());
    is_short();
    not_a_byte_leaves();
    k.items[CACHE_PODS] = PENDING_P "," POD_A;
    pass(6000);
    ck_assert(is_ready());
    ck_assert_ptr_nonnull(cache_pod(&k.cache, STR("a")));
    rig_close();
}

/* ---- lists ---- */

TEST_EACH(each_first_list_is_waited_for, CACHE_KINDS)
{
    static const char *const missing[CACHE_KINDS] = {"first list of nodes", "first list of pods",
                                                     "first list of unhealthy cards"};
    rig_open(false);
    k.held[_i] = true;
    pass(2 * SETTLE_MS);
    is_missing(missing[_i]);
    k.held[_i] = false;
    pass(2 * SETTLE_MS);
    ck_assert(is_ready());
    rig_close();
}

/* Not even its UID can be read, so it may hold any card of any node. */
#define WITHOUT_UID "{\"metadata\":{\"name\":\"q\",\"namespace\":\"ns\",\"resourceVersion\":\"7\"}}"

TEST(an_object_that_is_left_out_in_a_list)
{
    rig_open(false);
    k.items[CACHE_PODS] = WITHOUT_UID;
    pass(2 * SETTLE_MS);
    is_missing("can't be read: the log names it");
    pass(60000);
    is_missing("can't be read: the log names it");
    k.items[CACHE_PODS] = "";
    pass(31000);
    ck_assert(is_ready());
    rig_close();
}

TEST(an_object_that_is_left_out_in_a_watch)
{
    lead();
    reserve_p();
    post_p();
    watch_says(CACHE_PODS, "ADDED", WITHOUT_UID);
    is_missing("can't be read: the log names it");
    not_a_byte_leaves();
    pass(31000);
    ck_assert(is_ready());
    rig_close();
}

/* A load balancer's 403 or 404 says nothing about the rights; unhealthy cards stay unknown. */
static const struct {
    unsigned status;
    const char *body;
} not_denied[] = {
    {403, ""},
    {403, "<html>403 Forbidden</html>"},
    {404, "default backend - 404"},
    {403, "{\"kind\":\"Status\",\"status\":\"Failure\",\"code\":404}"},
    {403, "{\"kind\":\"Status\",\"status\":\"Success\",\"code\":403}"},
    {403, "{\"status\":\"Failure\",\"code\":403}"},
};

TEST_EACH(only_a_status_denies_unhealthy_cards, COUNT_OF(not_denied))
{
    rig_open(false);
    k.held[CACHE_HEALTH] = true;
    pass(0);
    fake_answer(fake_find("GET", list_paths[CACHE_HEALTH]), not_denied[_i].status,
                not_denied[_i].body);
    pass(2 * SETTLE_MS);
    is_missing("first list of unhealthy cards");
    k.held[CACHE_HEALTH] = false;
    pass(SETTLE_MS);
    ck_assert(is_ready());
    rig_close();
}

/* cardpack goes on if it may not read unhealthy cards; without nodes it can't. */
TEST(only_unhealthy_cards_may_be_denied)
{
    rig_open(false);
    k.held[CACHE_HEALTH] = true;
    pass(0);
    say_status(fake_find("GET", list_paths[CACHE_HEALTH]), 403, "Forbidden", "configmaps");
    pass(2 * SETTLE_MS);
    ck_assert(is_ready());
    rig_close();
    rig_open(false);
    k.held[CACHE_NODES] = true;
    pass(0);
    say_status(fake_find("GET", list_paths[CACHE_NODES]), 403, "Forbidden", "nodes");
    pass(2 * SETTLE_MS);
    is_missing("first list of nodes");
    rig_close();
}

/* The pod is confirmed but in no list: it was deleted before the list was read, and no watch will
 * show that. */
TEST(a_confirmed_pod_in_no_list_is_asked_for)
{
    rig_open(false);
    pass(2 * SETTLE_MS);
    k.held[CACHE_PODS] = true;
    fake_land(watch_of(CACHE_PODS), HTTP_ANSWERED, 410);
    pass(2000);
    struct http_call *list = fake_find("GET", list_paths[CACHE_PODS]);
    ck_assert_ptr_nonnull(list);
    apply(&(struct cache_event){.type = CACHE_POD_GONE, .pod = {.uid = STR("p")}});
    struct request request = {.mem = 8,
                              .lasting_mem = 8,
                              .namespace = STR("ns"),
                              .n_demands = 1,
                              .demands = {{.mem = 8, .kind = CONTAINER_MAIN}}};
    apply(&(struct cache_event){.type = CACHE_RESERVE,
                                .reserve = {.uid = STR("q"),
                                            .namespace = STR("ns"),
                                            .name = STR("q"),
                                            .node = STR("n"),
                                            .request = &request}});
    apply(&(struct cache_event){.type = CACHE_CONFIRM,
                                .holder = {.uid = STR("q"), .read_back = true}});
    k.held[CACHE_PODS] = false;
    k.items[CACHE_PODS] = "";
    pass(100);
    ck_assert_ptr_nonnull(cache_pod(&k.cache, STR("q")));
    ck_assert(cache_pod(&k.cache, STR("q"))->missing);
    uint64_t lists_before = k.counts.feeds[CACHE_PODS].lists;
    pass(12000);
    ck_assert_uint_eq(k.counts.feeds[CACHE_PODS].lists, lists_before + 1);
    ck_assert_ptr_null(cache_pod(&k.cache, STR("q")));
    pass(60000);
    ck_assert_uint_eq(k.counts.feeds[CACHE_PODS].lists, lists_before + 1);
    rig_close();
}

int main(void)
{
    log_setup(open("/dev/null", O_WRONLY | O_CLOEXEC), LOG_LEVEL_DEBUG, LOG_FORMAT_LOGFMT);
    return unit_run();
}
