/*
 * One simulated process: its configuration file, what main.c does before and after the loop, and
 * its turns. A kill closes it like a normal end, but with all connections cut, so that nothing it
 * sends then arrives.
 */
#include "proc.h"

#include "io/limit.h"
#include "oracle.h"
#include "plugins.h"
#include "server.h"
#include "swaps.h"

#include <signal.h>
#include <stdio.h>

#define SPIN_MAX      10000 /* events handed over in one turn */
#define CONFIG_OPTION STR("--config=")

struct proc procs[MAX_REPLICAS];

static void turn(struct happening *h);

static void plan_turn(struct proc *p)
{
    uint64_t due_ms = sim_loop_due(p->loop);
    if (due_ms == UINT64_MAX)
        unplan(&p->wake);
    else
        plan(&p->wake, MAX_OF(due_ms, world.now_ms) - world.now_ms);
}

void proc_wake(struct proc *p)
{
    if (p->state == PROC_UP && (p->wake.at == 0 || p->wake.due_ms > world.now_ms))
        plan(&p->wake, 0);
}

static void start_again(struct happening *h)
{
    proc_start(CONTAINER_OF(h, struct proc, fate));
}

static void awake(struct happening *h)
{
    struct proc *p = CONTAINER_OF(h, struct proc, fate);
    trace("continued", STR(""), p->id, 0);
    p->state = PROC_UP;
    p->stalled = false;
    proc_wake(p);
}

static void put_setting(struct text *t, const char *key, const char *value)
{
    text_z(t, key);
    text_z(t, ": ");
    text_z(t, value);
    text_z(t, "\n");
}

static void put_ms(struct text *t, const char *key, uint64_t ms)
{
    struct name number = name_of("", ms);
    text_z(t, key);
    text_z(t, ": ");
    text_put(t, name_str(&number));
    text_z(t, "ms\n");
}

static const char *bool_text(bool b)
{
    return b ? "true" : "false";
}

static enum policy node_policy(void)
{
    enum policy usual = world.set.node_spread ? POLICY_SPREAD : POLICY_BINPACK;
    return world.set.costs != POLICY_UNSET ? world.set.costs : usual;
}

bool proc_file(struct str path, struct text *ret)
{
    const struct proc *p = NULL;
    const struct swarm *s = &world.set;
    for (unsigned i = 0; i < s->replicas; i++)
        p = str_eq(str_skip(name_str(&procs[i].option), CONFIG_OPTION.n), path) ? &procs[i] : p;
    if (p == NULL)
        return false;
    struct name page_size = name_of("", s->page_size);
    struct name shortlist = name_of("", s->shortlist);
    put_setting(ret, "kubeconfig", "/sim/kubeconfig");
    put_setting(ret, "leader-elect", bool_text(s->elects));
    plugins_put_setting(ret);
    put_ms(ret, "leader-elect-lease-duration", s->own[p->id].lease_ms);
    put_ms(ret, "leader-elect-renew-deadline", s->own[p->id].renew_ms);
    put_ms(ret, "leader-elect-retry-period", s->own[p->id].retry_ms);
    put_setting(ret, "start-settle", "8s");
    put_setting(ret, "list-page-size", page_size.z);
    put_ms(ret, "bind-timeout", s->bind_timeout_ms);
    put_setting(ret, "card-policy", s->spread ? "spread" : "binpack");
    put_setting(ret, "node-policy", policy_name(node_policy()));
    put_setting(ret, "shortlist", shortlist.z);
    put_setting(ret, "shrink-after-init", bool_text(s->shrink));
    put_setting(ret, "dra", s->dra_on ? "on" : "auto");
    put_setting(ret, "swap-guard", swap_guard_text(s->guard));
    put_setting(ret, "evict-for-cards", bool_text(s->evicts));
    put_setting(ret, "evict-for-cards-after", "1s");
    put_setting(ret, "evict-for-cards-keep", "10s");
    return true;
}

bool proc_is_current(const struct proc *p)
{
    const struct config *c = &p->config;
    const struct swarm *s = &world.set;
    return !proc_runs(p) ||
           (c->shrink_after_init == s->shrink && (unsigned)c->swap_guard == s->guard &&
            (c->card_policy == POLICY_SPREAD) == s->spread && c->node_policy == node_policy() &&
            c->shortlist == s->shortlist && c->evict_for_cards == s->evicts &&
            c->bind_timeout_ms == s->bind_timeout_ms && c->list_page_size == s->page_size);
}

/* Too few pods come in a history for a policy with costs to learn from. So the process has seen
 * some before it starts: it learns in the first second. */
static void see_pods(struct shapes *s)
{
    enum {
        PODS = 40
    };

    for (unsigned i = 0; i < PODS; i++) {
        struct shape x = {.cpu = 1000 * (int64_t)draw(2),
                          .mem = 2 + 3 * (int64_t)draw(3),
                          .cards = 1 + (draw(4) == 0 ? draw(3) : 0)};
        shapes_add(s, &x);
    }
}

/* Opens the daemon as main.c does, without environment variables. */
static enum errc open_all(struct proc *p, struct err *reterr)
{
    (void)snprintf(p->host.z, sizeof(p->host.z), "p%u", p->id);
    (void)snprintf(p->option.z, sizeof(p->option.z), "%s/sim/p%u.yaml", CONFIG_OPTION.p, p->id);
    p->argv[0] = p->host.z;
    p->argv[1] = p->option.z;
    p->notify = NOTIFY_INIT;
    struct daemon_settings settings = {.loop = p->loop,
                                       .config = &p->config,
                                       .argc = COUNT_OF(p->argv),
                                       .argv = p->argv,
                                       .notify = &p->notify,
                                       .host = name_str(&p->host),
                                       .connections = LIMIT_CONNECTIONS};
    enum errc code = config_parse(settings.argc, settings.argv, &settings.env, config_read_file,
                                  NULL, &p->config, reterr);
    return code == OK ? daemon_open(&p->daemon, &settings, reterr) : code;
}

void proc_start(struct proc *p)
{
    struct err e = ERR_INIT;
    p->incarnation++;
    trace("start", STR(""), p->id, (int64_t)p->incarnation);
    memset(p->told, 0, sizeof(p->told));
    memset(p->assumed, 0, sizeof(p->assumed));
    p->stalled = p->stopping = false;
    p->wake.fire = turn;
    mem_account(p);
    p->loop = sim_loop_new(p);
    enum errc code = open_all(p, &e);
    sim_check(code == OK);
    if (world.set.costs != POLICY_UNSET)
        see_pods(&p->daemon.service.cache.learned.market.shapes);
    mem_account(NULL);
    p->state = PROC_UP;
    oracle_started(p);
    plan_turn(p);
}

/* The process ends at once. Requests that it has sent still arrive. */
static void end(struct proc *p, const char *what)
{
    trace(what, STR(""), p->id, (int64_t)p->incarnation);
    p->state = PROC_DOWN;
    unplan(&p->wake);
    unplan(&p->fate);
    mem_account(p);
    daemon_close(&p->daemon);
    p->loop = loop_free(p->loop);
    config_done(&p->config);
    mem_account(NULL);
    sim_check(mem_blocks(p) == 0 && mem_bytes(p) == 0);
}

static void start_later(struct proc *p)
{
    p->fate.fire = start_again;
    plan(&p->fate, draw(2) == 0 ? draw(50) : draw(20000));
}

void proc_kill(struct proc *p)
{
    if (!proc_runs(p) || (p->stalled && !world.ending))
        return;
    world.kills++;
    end(p, "killed");
    start_later(p);
}

void proc_stop(struct proc *p)
{
    if (p->state != PROC_UP || p->stopping)
        return;
    trace("asked to stop", STR(""), p->id, 0);
    p->stopping = true;
    sim_loop_raise(p->loop, SIGTERM);
    proc_wake(p);
}

void proc_pause(struct proc *p, uint64_t ms)
{
    if (p->state != PROC_UP || p->stopping)
        return;
    trace("paused", STR(""), p->id, (int64_t)ms);
    p->state = PROC_PAUSED;
    unplan(&p->wake);
    p->fate.fire = awake;
    plan(&p->fate, ms);
}

struct name proc_identity(const struct proc *p)
{
    return name_from(str_of(p->daemon.identity));
}

bool proc_ready(const struct proc *p)
{
    struct str missing;
    return p->state == PROC_UP && service_ready(&p->daemon.service, &missing);
}

/* The process did the rest of the turn after the stall: it pauses until the world's clock catches
 * up. */
static void stalled(struct proc *p, uint64_t ms)
{
    trace("was stalled", STR(""), p->id, (int64_t)ms);
    p->state = PROC_PAUSED;
    p->stalled = true;
    unplan(&p->wake);
    p->fate.fire = awake;
    plan(&p->fate, ms);
}

static void turn(struct happening *h)
{
    struct proc *p = CONTAINER_OF(h, struct proc, wake);
    unsigned handed = 0;
    mem_account(p);
    sim_loop_sync(p->loop);
    sim_turn_begin(p->loop);
    memcpy(p->told_before, p->told, sizeof(p->told));
    sim_loop_signals(p->loop);
    bool asks_first = draw(2) == 0;
    while ((asks_first && ask_deliver(p)) || flights_deliver(p) || ask_deliver(p)) {
        oracle_decided(p);
        sim_check(++handed < SPIN_MAX);
    }
    sim_loop_deferred(p->loop);
    sim_loop_timers(p->loop);
    mem_account(NULL);
    plan_turn(p);
    oracle_turned(p);
    uint64_t stall_ms = sim_turn_end();
    if (sim_loop_stopped(p->loop)) {
        end(p, "stopped");
        start_later(p);
    } else if (stall_ms > 0) {
        stalled(p, stall_ms);
    }
}
