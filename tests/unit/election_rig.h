/* One replica's election, step by step: shared by its tests. */
#pragma once

#include "kube/election_step.h"
#include "unit.h"

#define LEASE    UINT64_C(9000)
#define DEADLINE UINT64_C(6000)
#define RETRY    UINT64_C(2000)
#define START    UINT64_C(1000000)

static struct election_state s;
static uint64_t now;

static inline void set_up(void)
{
    election_state_init(&s, &(struct election_times){LEASE, DEADLINE, RETRY});
    now = START;
}

static inline struct election_action step(enum election_event event)
{
    const struct election_input in = {.event = event};
    return election_step(&s, &in, now, 0);
}

static inline struct election_action read_lease(bool held, bool mine, bool changed)
{
    const struct election_input in = {.event = ELECTION_ON_READ,
                                      .held = held,
                                      .mine = mine,
                                      .released = !held,
                                      .changed = changed,
                                      .duration_ms = LEASE};
    return election_step(&s, &in, now, 0);
}

static inline struct election_action read_wanted(bool mine)
{
    const struct election_input in = {.event = ELECTION_ON_READ,
                                      .held = mine,
                                      .mine = mine,
                                      .changed = !mine,
                                      .duration_ms = LEASE,
                                      .wanted_changed = true,
                                      .wanted_by_other = true};
    return election_step(&s, &in, now, 0);
}

static inline void does(struct election_action a, enum election_do what, enum election_news news)
{
    ck_assert_int_eq(a.what, what);
    ck_assert_int_eq(a.news, news);
}

static inline void writes(struct election_action a, enum election_write write,
                          enum election_news news)
{
    does(a, ELECTION_DO_WRITE, news);
    ck_assert_int_eq(a.write, write);
}

static inline void waits(struct election_action a, uint64_t delay_ms, enum election_news news)
{
    does(a, ELECTION_DO_WAIT, news);
    ck_assert_uint_eq(a.delay_ms, delay_ms);
}

/* The replica leads and has just renewed. */
static inline void lead(void)
{
    does(step(ELECTION_ON_TIMER), ELECTION_DO_READ, ELECTION_NO_NEWS);
    does(step(ELECTION_ON_ABSENT), ELECTION_DO_CREATE, ELECTION_NO_NEWS);
    waits(step(ELECTION_ON_WROTE), RETRY, ELECTION_WON);
    ck_assert(election_leads(&s, now));
}

/* The replica follows another one, whose renewal it has just seen. */
static inline void follow(void)
{
    does(step(ELECTION_ON_TIMER), ELECTION_DO_READ, ELECTION_NO_NEWS);
    waits(read_lease(true, false, true), RETRY / 4, ELECTION_NO_NEWS);
    ck_assert(!election_leads(&s, now));
}
