/*
 * A history is some episodes. In each, everybody acts and everything may fail; then nobody acts and
 * nothing fails any more, time goes on until all has settled, and the books are compared.
 */
#include "history.h"

#include "actors.h"
#include "net.h"
#include "oracle.h"
#include "server.h"

/* What settles does so within this: 75 s of doubt, a watch's silence of 180 s, and what a server
 * has asked us to wait (300 s at most). */
#define SETTLE_MS 1200000
#define LEAST_MS  12000 /* lists are read again for what was lost or doubted */
#define STEPS_MAX 1000000

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

static bool proc_settled(const struct proc *p)
{
    size_t cursor = 0;
    if (p->state != PROC_UP || p->service.draining || p->asks != NULL ||
        binder_active(p->service.binder) > 0 || !server_told_all(p))
        return false;
    const struct cache *cache = &p->service.cache;
    for (const struct pod *pod = cache_next_pod(cache, &cursor); pod != NULL;
         pod = cache_next_pod(cache, &cursor)) {
        if (pod->state == POD_RESERVED || pod->state == POD_CONFIRMED)
            return false;
    }
    return true;
}

static bool settled(void)
{
    unsigned ready = 0;
    for (unsigned i = 0; i < world.set.replicas; i++)
        ready += proc_ready(&procs[i]) ? 1 : 0;
    if (ready != 1)
        return false;
    for (unsigned i = 0; i < world.set.replicas; i++) {
        if (!proc_settled(&procs[i]))
            return false;
    }
    return server_is_up() && server_pending() == 0;
}

/* At rest nobody is: who is left would go on with those that it was told of. */
static void evict(bool on)
{
    world.set.evicts = on && world.set.kinds[KIND_EVICTIONS];
    for (unsigned i = 0; i < world.set.replicas; i++)
        proc_reload(&procs[i]);
}

static void settle(void)
{
    uint64_t end_ms = world.now_ms + SETTLE_MS;
    world.quiet = true;
    evict(false);
    schedulers_stop();
    run_for(LEAST_MS);
    while (!over() && !settled()) {
        run_for(250);
        sim_check(world.now_ms < end_ms);
    }
    if (over())
        return;
    trace("at rest", STR(""), 0, 0);
    oracle_rest();
    schedulers_probe();
    run_for(50);
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
    settle();
}

static void begin(uint64_t seed, uint64_t most_steps)
{
    world = (struct world){.random = seed, .most_steps = most_steps, .now_ms = 1};
    settings_draw(&world.set, seed);
    trace_reset();
    plan_forget_all();
    store_reset();
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
