/* Exchanges of cards between two pods, step by step; test_node_world.c runs them at random. */
#include "exchange_rig.h"
#include "fail_alloc.h"

static uint32_t planned(const struct roster *r, const char *uid)
{
    const struct roster_pod *p = roster_find(r, str_of(uid));
    ck_assert_uint_eq(p->plan.n, 1);
    return p->plan.grants[0].card;
}

/* Both are marked before either moves, and unmarked after both have; then the pod may start. */
TEST(two_pods_exchange_their_cards)
{
    struct roster *r = two_cards();
    struct err e = ERR_INIT;
    struct pod_match match;
    const struct pod_match_call call = {.n = 4};
    set_pod(r, "p", "0", NULL, 1);
    set_pod(r, "q", "1", NULL, 2);
    ck_assert_int_eq(pod_match_find(r, &call, &match, &e), OK);
    ck_assert(str_eq(match.pod->uid, STR("p")));
    pod_match_store(r, &match);
    give(r, "q", 0); /* it was for the other one */
    ck_assert(!exchange_may_start(r, roster_find(r, STR("q"))));
    is_next(r, EXCHANGE_MARK, "p");
    is_next(r, EXCHANGE_MARK, "q");
    is_next(r, EXCHANGE_NOTHING, NULL);
    set_pod(r, "p", "0", "0", 3);
    answered(r, "p");
    is_next(r, EXCHANGE_NOTHING, NULL); /* q is not marked yet */
    set_pod(r, "q", "1", "1", 4);
    answered(r, "q");
    is_next(r, EXCHANGE_MOVE, "p");
    is_next(r, EXCHANGE_MOVE, "q");
    set_pod(r, "q", "0", "1", 5);
    answered(r, "q");
    ck_assert(exchange_may_start(r, roster_find(r, STR("q"))));
    is_next(r, EXCHANGE_ASSIGN, "q");
    answered(r, "q");
    set_pod(r, "p", "1", "0", 6);
    answered(r, "p");
    is_next(r, EXCHANGE_FINISH, "p");
    is_next(r, EXCHANGE_FINISH, "q");
    roster_done(r);
}

/* A user has copied the annotation: no pod would be placed on the node while it is there. */
TEST_EACH(a_mark_without_an_exchange_is_removed, 5)
{
    static const char *const texts[] = {"0", "1", "no card", ",", "99999999999"};
    struct roster *r = two_cards();
    set_pod(r, "p", "0", texts[_i], 1);
    set_pod(r, "p", "0", texts[_i], 2); /* so it is in no doubt */
    is_next(r, EXCHANGE_NOTHING, NULL); /* it is not known yet that there is none */
    lose(r);
    is_next(r, EXCHANGE_FINISH, "p");
    roster_done(r);
}

/* The agent ended between the two moves: the mark and the checkpoint say how to go on. */
TEST(an_exchange_goes_on_after_a_restart)
{
    struct roster *r = two_cards();
    set_pod(r, "p", "0", "0", 1);
    set_pod(r, "q", "0", "1", 2);
    give(r, "q", 0);
    is_next(r, EXCHANGE_MOVE, "p");
    ck_assert_uint_eq(roster_find(r, STR("p"))->plan.grants[0].card, 1);
    roster_done(r);
}

/* A single pod that follows its container: a pod that is bound meanwhile takes the room. */
TEST_EACH(a_pod_alone_is_marked, 2)
{
    struct roster *r = two_cards();
    set_pod(r, "p", "1", NULL, 1);
    give(r, "p", 0);
    is_next(r, EXCHANGE_MARK, "p");
    if (_i == 1) {
        set_pod(r, "q", "0", NULL, 2);
        set_pod(r, "p", "1", "1", 3);
        answered(r, "p");
        ck_assert(exchange_plan(r));
        is_next(r, EXCHANGE_FINISH, "p");
        ck_assert(exchange_is_misfit(roster_find(r, STR("p"))));
        roster_done(r);
        return;
    }
    set_pod(r, "p", "1", "1", 2);
    answered(r, "p");
    is_next(r, EXCHANGE_MOVE, "p");
    set_pod(r, "p", "0", "1", 3);
    answered(r, "p");
    is_next(r, EXCHANGE_FINISH, "p");
    set_pod(r, "p", "0", NULL, 4);
    answered(r, "p");
    is_next(r, EXCHANGE_ASSIGN, "p");
    ck_assert(exchange_may_start(r, roster_find(r, STR("p"))));
    roster_done(r);
}

/* Both pods have devices of card 0, which has room for one; this agent has just started. */
static struct roster *take_over_two(void)
{
    const struct card_list has = {1, {0}};
    struct roster *r = two_cards();
    set_pod(r, "p", "0", NULL, 1);
    set_pod(r, "q", "0", NULL, 2);
    roster_truth_begin(r);
    ck_assert(roster_truth(r, STR("p"), STR("c"), &has, false));
    ck_assert(roster_truth(r, STR("q"), STR("c"), &has, false));
    roster_truth_end(r, true);
    roster_settle(r);
    ck_assert(exchange_plan(r));
    return r;
}

/* One of them may run, but which one is not known until the kubelet has asked for both. */
TEST(a_pod_that_waited_for_room_still_waits_after_a_restart)
{
    struct roster *r = take_over_two();
    struct roster_pod *p = roster_find(r, STR("p"));
    struct roster_pod *q = roster_find(r, STR("q"));
    roster_ask(q, STR("c"));
    ck_assert(!exchange_may_start(r, q));
    ck_assert(exchange_is_crowded(r, q));
    roster_ask(p, STR("c")); /* so neither runs: the first comes first */
    ck_assert(!exchange_may_start(r, q));
    ck_assert(exchange_may_start(r, p));
    ck_assert(!exchange_may_start(r, q));
    roster_remove(r, STR("p"));
    ck_assert(exchange_may_start(r, q));
    roster_done(r);
}

/* The other one runs, so the kubelet does not ask for it. */
TEST(a_pod_that_may_run_keeps_its_room_after_a_restart)
{
    struct roster *r = take_over_two();
    struct roster_pod *p = roster_find(r, STR("p"));
    roster_ask(p, STR("c"));
    ck_assert(!exchange_may_start(r, p));
    ck_assert(!exchange_may_start(r, p));
    roster_remove(r, STR("q"));
    ck_assert(exchange_may_start(r, p));
    roster_done(r);
}

/* The kubelet has lost its checkpoint while p runs, and asks for q: p's card is not for q. */
TEST_EACH(a_running_pod_keeps_its_cards_without_a_checkpoint, 2)
{
    struct roster *r = two_cards();
    struct err e = ERR_INIT;
    struct pod_match match;
    const struct pod_match_call call = {.n = 4};
    set_pod(r, "p", "0", NULL, 1);
    give(r, "p", 0);
    set_running(r, "p", "0", 2);
    if (_i == 1) { /* this agent did not see the loss */
        roster_done(r);
        r = two_cards();
        set_running(r, "p", "0", 2);
        roster_truth_begin(r);
        roster_truth_end(r, false);
        roster_settle(r);
    }
    lose(r);
    set_pod(r, "q", "1", NULL, 3);
    ck_assert_int_eq(pod_match_find(r, &call, &match, &e), OK);
    ck_assert(str_eq(match.pod->uid, STR("q")));
    ck_assert_int_eq(roster_started_on(r, 0, NULL), 4);
    give(r, "q", 0); /* in spite of that */
    ck_assert_uint_eq(planned(r, "p"), 0);
    ck_assert_uint_eq(planned(r, "q"), 1);
    ck_assert(exchange_is_misfit(roster_find(r, STR("q"))));
    ck_assert(!exchange_may_start(r, roster_find(r, STR("q"))));
    is_next(r, EXCHANGE_NOTHING, NULL);
    roster_done(r);
}

/* The kubelet asks for p's devices again, and gets those of another card. If the container runs, it
 * has them not; once the kubelet starts it again, it does. */
TEST(new_devices_of_a_running_pod_count_when_it_starts_again)
{
    struct roster *r = two_cards();
    struct roster_pod *p = NULL;
    set_running(r, "p", "0", 1);
    roster_truth_begin(r);
    roster_truth_end(r, false);
    roster_settle(r);
    give(r, "p", 1);
    p = roster_find(r, STR("p"));
    ck_assert(exchange_is_misfit(p) && !exchange_may_start(r, p));
    is_next(r, EXCHANGE_NOTHING, NULL);
    ck_assert_int_eq(roster_started_on(r, 0, NULL), 4);
    set_pod(r, "q", "1", NULL, 2);
    roster_ask(p, STR("c"));
    set_running(r, "p", "0", 3); /* the kubelet reports the container's end later */
    ck_assert(exchange_plan(r));
    ck_assert_uint_eq(planned(r, "p"), 1);
    ck_assert_uint_eq(planned(r, "q"), 0);
    roster_done(r);
}

/* Another plugin has given p a card; the kubelet starts before the first checkpoint is read. */
TEST(devices_are_not_lost_before_the_first_checkpoint)
{
    struct roster *r = two_cards();
    set_running(r, "p", "1", 1);
    roster_mark_backlog(r);
    give(r, "p", 0);
    ck_assert_uint_eq(planned(r, "p"), 0);
    is_next(r, EXCHANGE_MOVE, "p");
    roster_done(r);
}

/* Before the first checkpoint it is not known which pods have devices: none is moved. */
TEST(nothing_is_planned_before_the_first_checkpoint)
{
    struct roster *r = two_cards();
    set_running(r, "p", "0", 1); /* the kubelet has lost its devices */
    set_pod(r, "q", "0", "1", 2);
    ck_assert(exchange_plan(r));
    give(r, "q", 0);
    ck_assert(roster_find(r, STR("p"))->lost);
    ck_assert_uint_eq(planned(r, "p"), 0);
    roster_done(r);
}

/* The move of q to card 0 is under way when q gets other devices, which its annotations named
 * before: until it is known what they name now, q does not start. */
TEST_EACH(a_pod_waits_while_its_cards_are_written, 4)
{
    const enum exchange_outcome outcome = (enum exchange_outcome)_i;
    const bool refused = outcome == EXCHANGE_NOT_WRITTEN || outcome == EXCHANGE_CONFLICT;
    struct roster *r = two_cards();
    set_pod(r, "p", "0", "0", 1);
    set_pod(r, "q", "1", "1", 2);
    struct roster_pod *q = roster_find(r, STR("q"));
    give(r, "q", 0);
    is_next(r, EXCHANGE_MOVE, "p");
    is_next(r, EXCHANGE_MOVE, "q");
    exchange_answered(roster_find(r, STR("p")), EXCHANGE_NOT_WRITTEN);
    give(r, "q", 1);
    ck_assert_uint_eq(planned(r, "q"), 1);
    ck_assert(!exchange_may_start(r, q));
    if (outcome == EXCHANGE_WRITTEN)
        set_pod(r, "q", "0", "1", 3);
    exchange_answered(q, outcome);
    ck_assert(exchange_plan(r));
    ck_assert_uint_eq(planned(r, "q"), 1);
    ck_assert(exchange_may_start(r, q) == refused);
    if (!refused) {
        is_next(r, EXCHANGE_MOVE, "q");
        set_pod(r, "q", "1", "1", 4);
        answered(r, "q");
        ck_assert(exchange_may_start(r, q));
    }
    roster_done(r);
}

/* The phase of both is Running, as it stays when containers have ended, and both have card 0, which
 * has room for one. */
TEST_EACH(a_phase_alone_starts_no_container, 2)
{
    const struct card_list has = {1, {0}};
    struct roster *r = two_cards();
    set_running(r, "p", "0", 1);
    set_running(r, "q", _i == 0 ? "1" : "7", 2);
    struct roster_pod *p = roster_find(r, STR("p"));
    struct roster_pod *q = roster_find(r, STR("q"));
    roster_truth_begin(r);
    ck_assert(roster_truth(r, STR("p"), STR("c"), &has, false));
    ck_assert(roster_truth(r, STR("q"), STR("c"), &has, false));
    roster_truth_end(r, true);
    roster_settle(r);
    ck_assert(exchange_plan(r));
    roster_ask(p, STR("c"));
    ck_assert(!exchange_may_start(r, p)); /* q may run there, with edited annotations */
    roster_ask(q, STR("c"));
    ck_assert(exchange_plan(r));
    ck_assert(!exchange_may_start(r, q));
    ck_assert(exchange_may_start(r, p)); /* q does not run */
    ck_assert(exchange_may_start(r, p));
    ck_assert(exchange_plan(r));
    ck_assert(!exchange_may_start(r, q));
    roster_done(r);
}

/* A user edits the annotations of a pod: another one that waits for as much on its card does not
 * get the card that the edit names. */
TEST_EACH(an_edit_moves_no_other_pod, 6)
{
    static const char *const edits[] = {"1", "7", "", "x", "0,1", "-1"};
    struct roster *r = two_cards();
    const struct roster_card big[] = {{0, 8}, {1, 4}};
    roster_set_cards(r, big, COUNT_OF(big));
    set_pod(r, "p", "0", NULL, 1);
    give(r, "p", 0);
    ck_assert(exchange_may_start(r, roster_find(r, STR("p"))));
    set_pod(r, "q", "0", NULL, 2);
    set_pod(r, "p", edits[_i], NULL, 3);
    ck_assert(exchange_plan(r));
    ck_assert_uint_eq(planned(r, "p"), 0);
    ck_assert_uint_eq(planned(r, "q"), 0);
    ck_assert(roster_find(r, STR("p"))->allowed); /* it runs */
    is_next(r, EXCHANGE_MOVE, "p");
    is_next(r, EXCHANGE_NOTHING, NULL);
    roster_done(r);
}

/* The agent was away when a user edited the annotations of a pod that runs: the checkpoint alone
 * says where. */
TEST_EACH(an_edit_before_the_start_is_seen_after_it, 5)
{
    static const char *const edits[] = {"0", "", "x", "0,1", "7"};
    struct roster *r = two_cards();
    set_running(r, "p", edits[_i], 1);
    give(r, "p", 1);
    ck_assert_uint_eq(planned(r, "p"), 1);
    ck_assert(!exchange_is_misfit(roster_find(r, STR("p"))));
    ck_assert(roster_is_on(roster_find(r, STR("p")), 1));
    ck_assert(!roster_is_on(roster_find(r, STR("p")), 0));
    is_next(r, EXCHANGE_MOVE, "p");
    set_running(r, "p", "1", 2);
    answered(r, "p");
    ck_assert(exchange_plan(r));
    ck_assert(roster_find(r, STR("p"))->held);
    roster_done(r);
}

/* However often a user edits a pod that runs, the exchange of two others goes on to its end. */
TEST(an_edited_pod_holds_up_no_exchange)
{
    const struct roster_card three[] = {{0, 4}, {1, 4}, {2, 4}};
    struct roster *r = two_cards();
    struct exchange_step s;
    roster_set_cards(r, three, COUNT_OF(three));
    set_pod(r, "runs", "2", NULL, 1);
    give(r, "runs", 2);
    ck_assert(exchange_may_start(r, roster_find(r, STR("runs"))));
    set_pod(r, "p", "0", "0", 2);
    set_pod(r, "q", "1", "1", 3);
    const struct card_list has[] = {{1, {2}}, {1, {0}}};
    roster_truth_begin(r);
    ck_assert(roster_truth(r, STR("runs"), STR("c"), &has[0], false));
    ck_assert(roster_truth(r, STR("q"), STR("c"), &has[1], false));
    roster_truth_end(r, true);
    roster_settle(r);
    uint64_t version = 3;
    unsigned steps[EXCHANGE_ASSIGN + 1] = {0};
    for (unsigned turn = 0; turn < 20; turn++) {
        struct exchange_step edited;
        set_running(r, "runs", turn % 2 == 0 ? "1" : "0", ++version); /* never as it is */
        ck_assert(exchange_plan(r));
        exchange_next(r, &edited);
        ck_assert(str_eq(edited.pod->uid, STR("runs")));
        ck_assert_int_eq((int)edited.action, (int)EXCHANGE_MOVE); /* without a mark */
        exchange_sent(&edited);
        exchange_next(r, &s); /* meanwhile */
        steps[s.action]++;
        if (s.action != EXCHANGE_NOTHING) {
            char uid[] = {s.pod->uid.p[0], '\0'};
            bool marked = s.pod->marked && s.action != EXCHANGE_FINISH;
            exchange_sent(&s);
            set_pod(r, uid, s.pod->plan.grants[0].card == 0 ? "0" : "1", marked ? "0" : NULL,
                    ++version);
            answered(r, uid);
        }
        exchange_answered(edited.pod, EXCHANGE_CONFLICT);
    }
    ck_assert_uint_eq(steps[EXCHANGE_MOVE], 2);
    ck_assert_uint_eq(steps[EXCHANGE_FINISH], 2);
    ck_assert_uint_eq(planned(r, "q"), 0);
    ck_assert_uint_eq(planned(r, "p"), 1);
    ck_assert_uint_eq(planned(r, "runs"), 2);
    roster_done(r);
}

/* The kubelet gave q the card of p. q's own card is not there: p must not get that one. */
TEST(no_pod_gets_a_card_that_is_not_there)
{
    struct roster *r = two_cards();
    set_pod(r, "p", "0", NULL, 1);
    set_pod(r, "q", "7", NULL, 2);
    give(r, "q", 0);
    ck_assert_uint_eq(planned(r, "p"), 0);
    ck_assert(exchange_is_misfit(roster_find(r, STR("q"))));
    is_next(r, EXCHANGE_NOTHING, NULL);
    roster_done(r);
}

static void refuse(struct roster *r, const char *uid)
{
    for (unsigned i = 1; i <= EXCHANGE_REFUSALS; i++) {
        is_next(r, EXCHANGE_MARK, uid);
        answered(r, uid);
        ck_assert(exchange_refuse(roster_find(r, str_of(uid))) == (i == EXCHANGE_REFUSALS));
    }
    ck_assert(exchange_plan(r));
}

/* The API server refuses the mark of one of them. Both stay where they are, no card is planned for
 * too much, and a later exchange goes on. */
TEST_EACH(a_pod_that_can_not_be_written_holds_up_no_other, 2)
{
    struct roster *r = two_cards();
    const char *first = _i == 0 ? "p" : "q"; /* whichever comes first */
    set_pod(r, first, _i == 0 ? "0" : "1", NULL, 1);
    set_pod(r, _i == 0 ? "q" : "p", _i == 0 ? "1" : "0", NULL, 2);
    give(r, "q", 0);
    refuse(r, first);
    ck_assert_uint_eq(planned(r, "p"), 0);
    ck_assert_uint_eq(planned(r, "q"), 1);
    ck_assert(exchange_is_misfit(roster_find(r, STR("q"))));
    is_next(r, EXCHANGE_NOTHING, NULL);
    exchange_retry(r);
    ck_assert(exchange_plan(r));
    is_next(r, EXCHANGE_MARK, first);
    answered(r, first);
    ck_assert(!exchange_refuse(roster_find(r, str_of(first)))); /* it is told once */
    ck_assert(exchange_plan(r));
    is_next(r, EXCHANGE_NOTHING, NULL);
    roster_done(r);
}

/* One allocation of roster_set fails: the pod is as before, and the next object is taken. */
TEST(a_pod_that_can_not_be_kept_is_not_half_kept)
{
    struct roster *r = two_cards();
    for (size_t nth = 1;; nth++) {
        fail_alloc_arm(FAIL_ONCE, nth);
        enum errc code = set_phase(r, "p", "0", NULL, 1, "Pending");
        bool hit = fail_alloc_hit();
        fail_alloc_disarm();
        ck_assert_int_eq(code, hit ? ERR_NOMEM : OK);
        ck_assert_uint_eq(r->n_pods, hit ? 0 : 1);
        if (!hit)
            break;
    }
    for (size_t nth = 1;; nth++) {
        fail_alloc_arm(FAIL_ONCE, nth);
        enum errc code = set_phase(r, "p", "1", NULL, 2, "Pending");
        bool hit = fail_alloc_hit();
        fail_alloc_disarm();
        ck_assert_int_eq(code, hit ? ERR_NOMEM : OK);
        ck_assert_uint_eq(planned(r, "p"), hit ? 0 : 1);
        ck_assert(exchange_plan(r));
        is_next(r, EXCHANGE_NOTHING, NULL);
        if (!hit)
            break;
    }
    roster_done(r);
}
