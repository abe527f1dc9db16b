/* PATCHes that the API server may apply late, or refuses because the pod has changed. */
#include "exchange_rig.h"

/* What the agent before sent may still be applied to pods that have not changed since. */
TEST_EACH(an_exchange_of_another_agent_is_waited_for, 2)
{
    struct roster *r = two_cards();
    set_pod(r, "p", "0", "0", 1);
    set_pod(r, "q", "0", "1", 2);
    tell(r, "q", 0, false);
    is_next(r, EXCHANGE_NOTHING, NULL);
    set_pod(r, "q", "0", "1", 3);
    is_next(r, EXCHANGE_NOTHING, NULL); /* p, too */
    if (_i == 0)
        set_pod(r, "p", "0", "0", 4);
    else
        roster_settle(r);
    is_next(r, EXCHANGE_MOVE, "p");
    roster_done(r);
}

/* The agent before may have sent a PATCH with other cards, which the API server takes only for the
 * version that it knew. */
TEST_EACH(a_pod_in_doubt_does_not_start, 2)
{
    struct roster *r = two_cards();
    set_pod(r, "p", "0", NULL, 1);
    tell(r, "p", 0, false);
    struct roster_pod *p = roster_find(r, STR("p"));
    ck_assert(!exchange_may_start(r, p));
    is_next(r, EXCHANGE_ASSIGN, "p"); /* which gives it a new version */
    answered(r, "p");
    ck_assert(!exchange_may_start(r, p)); /* it had been written before */
    if (_i == 0)
        set_pod(r, "p", "0", NULL, 2);
    else
        roster_settle(r);
    ck_assert(exchange_may_start(r, p));
    roster_done(r);
}

/* One that runs has its cards already; one that came later was not known to another agent. */
TEST_EACH(other_pods_are_in_no_doubt, 2)
{
    struct roster *r = two_cards();
    if (_i == 0)
        set_running(r, "p", "0", 1);
    else
        lose(r);
    if (_i == 1)
        set_pod(r, "p", "0", NULL, 1);
    tell(r, "p", 0, false);
    ck_assert(exchange_may_start(r, roster_find(r, STR("p"))));
    roster_done(r);
}

/* The second PATCH changes nothing, so the first one may still come. */
TEST_EACH(a_patch_without_an_effect_ends_no_doubt, 2)
{
    struct roster *r = two_cards();
    set_pod(r, "p", "0", "0", 1);
    set_pod(r, "q", "1", "1", 2);
    struct roster_pod *q = roster_find(r, STR("q"));
    give(r, "q", 0);
    is_next(r, EXCHANGE_MOVE, "p");
    is_next(r, EXCHANGE_MOVE, "q");
    exchange_answered(roster_find(r, STR("p")), EXCHANGE_NOT_WRITTEN);
    tell(r, "q", 1, false);
    if (_i == 1)
        set_pod(r, "q", "1", "1", 3); /* only the first one was for the old version */
    exchange_answered(q, EXCHANGE_UNKNOWN);
    ck_assert(exchange_plan(r));
    if (_i == 1) {
        ck_assert(exchange_may_start(r, q));
        roster_done(r);
        return;
    }
    is_next(r, EXCHANGE_MOVE, "q");
    set_pod(r, "q", "1", "1", 2);
    answered(r, "q");
    ck_assert(!exchange_may_start(r, q));
    roster_settle(r);
    ck_assert(exchange_may_start(r, q));
    roster_done(r);
}

/* Its new version may need another step. */
TEST_EACH(a_pod_that_has_changed_is_shown_first, 2)
{
    struct roster *r = two_cards();
    set_pod(r, "p", "0", NULL, 1);
    give(r, "p", 1);
    is_next(r, EXCHANGE_MARK, "p");
    exchange_answered(roster_find(r, STR("p")), EXCHANGE_CONFLICT);
    is_next(r, EXCHANGE_NOTHING, NULL);
    if (_i == 0)
        set_pod(r, "p", "0", NULL, 2);
    else
        exchange_retry(r);
    is_next(r, EXCHANGE_MARK, "p");
    roster_done(r);
}
