/*
 * A history is a number of episodes. In each, actors act and faults strike. Then both stop, time
 * goes on until the world is at rest, and the oracle compares the caches with the API server's
 * objects.
 */
#include "history.h"

#include "actors.h"
#include "claims.h"
#include "locks.h"
#include "managers.h"
#include "net.h"
#include "oracle.h"
#include "server.h"

/* An episode must come to rest within this time: 75 s in doubt, a watch that is silent for 180 s,
 * and at most 300 s that a server has asked us to wait. */
#define REST_MS   400000
#define LEAST_MS  12000 /* covers the lists that repair what was lost or is in doubt */
#define STEPS_MAX 1000000

/* Time for a hand-over: the leader gets no request for 3 s, both replicas read each other's word in
 * the Lease, and the new leader lists the pods. */
#define HAND_OVER_MS      6000
#define HAND_OVER_RETRIES 4

static struct happening actors;

static void step(void)
{
    struct happening *h = plan_first();
    sim_check(h != NULL);
    world.now_ms = MAX_OF(world.now_ms, h->due_ms);
    unplan(h);
    world.steps++;
    sim_check(world.steps < STEPS_MAX);
    h->fire(h);
    oracle_stepped();
}

static bool over(void)
{
    return world.most_steps > 0 && world.steps >= world.most_steps;
}

static void run_for(uint64_t ms)
{
    uint64_t end_ms = world.now_ms + ms;
    while (!over() && plan_first() != NULL && plan_first()->due_ms <= end_ms)
        step();
    world.now_ms = MAX_OF(world.now_ms, end_ms);
}

static void act(struct happening *h)
{
    if (world.actions_left == 0)
        return;
    world.actions_left--;
    users_act();
    plan(h, draw((unsigned)world.set.action_ms));
}

static bool proc_at_rest(const struct proc *p)
{
    size_t cursor = 0;
    if (p->state != PROC_UP || p->daemon.service.draining || p->asks != NULL ||
        !proc_is_current(p) || bind_active(p->daemon.service.binder) > 0 || !server_told_all(p))
        return false;
    const struct cache *cache = &p->daemon.service.cache;
    for (const struct pod *pod = cache_next_pod(cache, &cursor); pod != NULL;
         pod = cache_next_pod(cache, &cursor)) {
        if (pod->state == POD_RESERVED || pod->state == POD_CONFIRMED)
            return false;
    }
    return true;
}

static bool all_at_rest(void)
{
    unsigned ready = 0;
    for (unsigned i = 0; i < world.set.replicas; i++)
        ready += proc_ready(&procs[i]) ? 1 : 0;
    if (ready != 1)
        return false;
    for (unsigned i = 0; i < world.set.replicas; i++) {
        if (!proc_at_rest(&procs[i]))
            return false;
    }
    return server_is_up() && server_pending() == 0 && locks_settled();
}

/* Restarts the processes that run with other settings than those in their files. */
static void restart_old(void)
{
    for (unsigned i = 0; i < world.set.replicas; i++) {
        if (!proc_is_current(&procs[i]))
            proc_stop(&procs[i]);
    }
}

/* Sets evict-for-cards in all processes. Off at rest: else evictions for known pods go on. */
static void evict(bool on)
{
    world.set.evicts = on && world.set.kinds[KIND_EVICTIONS];
    world.writes++;
    restart_old();
}

/* A scheduler sends its requests to a follower: that replica must lead soon, even if the other
 * replicas are slow. */
static void hand_over(void)
{
    struct proc *p = &procs[draw(world.set.replicas)];
    uint64_t retry_ms = 0;
    for (unsigned i = 0; i < world.set.replicas; i++)
        retry_ms = MAX_OF(retry_ms, world.set.own[i].retry_ms);
    uint64_t begun_ms = world.now_ms;
    uint64_t end_ms = begun_ms + HAND_OVER_MS + HAND_OVER_RETRIES * retry_ms;
    while (!over() && !proc_ready(p)) {
        schedulers_turn_to(p);
        run_for(500);
        sim_check(world.now_ms < end_ms);
    }
    world.hand_over_ms = MAX_OF(world.hand_over_ms, world.now_ms - begun_ms);
}

/* The cluster must still work at rest: bind all pods, and hand over to another replica. */
static void work_at_rest(void)
{
    if (draw(3) == 0)
        schedulers_bind_all();
    if (world.set.elects && draw(2) == 0)
        hand_over();
}

static void come_to_rest(void)
{
    uint64_t begun_ms = world.now_ms;
    world.quiet = true;
    evict(false);
    schedulers_stop();
    managers_settle();
    if (world.set.kinds[KIND_CLAIMS])
        claims_settle();
    run_for(LEAST_MS);
    while (!over() && !all_at_rest()) {
        restart_old();
        run_for(250);
        sim_check(world.now_ms < begun_ms + REST_MS);
    }
    if (over())
        return;
    world.rest_ms = MAX_OF(world.rest_ms, world.now_ms - begun_ms);
    trace("at rest", STR(""), 0, 0);
    oracle_rest();
    managers_check();
    schedulers_probe();
    run_for(50);
    questions_ask();
    run_for(100);
    sim_check(over() || questions_answered());
    work_at_rest();
}

void history_go_on(uint64_t ms)
{
    run_for(ms);
}

static void episode(void)
{
    world.quiet = false;
    world.actions_left = world.set.actions;
    actors.fire = act;
    plan(&actors, 0);
    evict(true);
    schedulers_begin();
    while (!over() && world.actions_left > 0)
        step();
    come_to_rest();
}

static void begin(uint64_t seed, uint64_t most_steps)
{
    world = (struct world){.random = seed, .most_steps = most_steps, .now_ms = 1};
    settings_draw(&world.set, seed);
    trace_reset();
    plan_forget_all();
    server_reset();
    oracle_reset();
    sim_wall_jump(0);
    actors = (struct happening){.at = 0};
    users_begin();
    world.quiet = draw(2) == 0;
    for (unsigned i = 0; i < world.set.replicas; i++) {
        procs[i] = (struct proc){.id = i};
        proc_start(&procs[i]);
    }
    if (draw(4) > 0)
        run_for(9000);
}

static void end(void)
{
    world.ending = true;
    schedulers_stop();
    for (unsigned i = 0; i < world.set.replicas; i++)
        proc_kill(&procs[i]);
    for (unsigned i = 0; i < world.set.replicas; i++)
        unplan(&procs[i].fate);
    asks_forget_all();
    flights_forget_all();
    server_reset();
}

uint64_t history_run(uint64_t seed, uint64_t most_steps)
{
    begin(seed, most_steps);
    for (unsigned i = 0; i < world.set.episodes && !over(); i++)
        episode();
    end();
    return world.hash;
}
