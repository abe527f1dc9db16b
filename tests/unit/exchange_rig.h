/* Two cards, and pods of one container that has the whole of one. */
#pragma once

#include "node/roster/exchange.h"
#include "node/roster/pod_match.h"
#include "unit.h"

static enum errc set_phase(struct roster *r, const char *uid, const char *idx, const char *vacated,
                           uint64_t version, const char *phase)
{
    struct container_view container = {.name = STR("c"), .mem = STR("4")};
    struct pod_view v = {.uid = str_of(uid),
                         .namespace = STR("ns"),
                         .name = str_of(uid),
                         .node = STR("n"),
                         .phase = str_of(phase),
                         .idx = str_of(idx),
                         .assigned = STR("false"),
                         .vacated = vacated == NULL ? STR_NULL : str_of(vacated),
                         .n_mains = 1,
                         .containers = &container,
                         .n_containers = 1};
    return roster_set(r, &v, version);
}

static void set_pod(struct roster *r, const char *uid, const char *idx, const char *vacated,
                    uint64_t version)
{
    ck_assert_int_eq(set_phase(r, uid, idx, vacated, version, "Pending"), OK);
}

static void set_running(struct roster *r, const char *uid, const char *idx, uint64_t version)
{
    ck_assert_int_eq(set_phase(r, uid, idx, NULL, version, "Running"), OK);
}

/* The checkpoint: this pod's container has this card. settled: no agent was here before. */
static void tell(struct roster *r, const char *uid, uint32_t card, bool settled)
{
    const struct card_list has = {1, {card}};
    roster_truth_begin(r);
    ck_assert(roster_truth(r, str_of(uid), STR("c"), &has, false));
    roster_truth_end(r, true);
    if (settled)
        roster_settle(r);
    ck_assert(exchange_plan(r));
}

static void give(struct roster *r, const char *uid, uint32_t card)
{
    tell(r, uid, card, true);
}

/* The checkpoint has nothing. */
static void lose(struct roster *r)
{
    roster_truth_begin(r);
    roster_truth_end(r, false);
    roster_settle(r);
    roster_mark_backlog(r);
    ck_assert(exchange_plan(r));
}

static struct roster *two_cards(void)
{
    static struct roster r;
    const struct roster_card cards[] = {{0, 4}, {1, 4}};
    roster_init(&r);
    roster_set_cards(&r, cards, COUNT_OF(cards));
    return &r;
}

static void is_next(struct roster *r, enum exchange_action action, const char *uid)
{
    struct exchange_step s;
    exchange_next(r, &s);
    ck_assert_int_eq((int)s.action, (int)action);
    if (uid != NULL)
        ck_assert(str_eq(s.pod->uid, str_of(uid)));
    if (s.pod != NULL)
        exchange_sent(&s);
}

static void answered(struct roster *r, const char *uid)
{
    exchange_answered(roster_find(r, str_of(uid)), EXCHANGE_WRITTEN);
}
