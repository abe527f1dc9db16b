/*
 * The process: what main.c's open_all and close_all do, and its turns. Killing one frees its memory
 * through its own doors with nobody listening: what it says on the way goes nowhere.
 */
#include "proc.h"

#include "evictor.h"
#include "oracle.h"
#include "server.h"

#include <stdio.h>

#define START_SETTLE_MS 8000
#define GRACE_MS        25000
#define SPIN_MAX        10000 /* things handed over in one turn */
#define EVICT_AFTER_MS  300
#define EVICT_KEEP_MS   10000

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
    proc_wake(p);
}

/* As settings.c does; without memory it goes on without. */
static void set_evictor(struct proc *p)
{
    struct err e = ERR_INIT;
    struct evictor_settings settings = {.loop = p->loop,
                                        .cache = &p->service.cache,
                                        .budgets = &p->service.budgets,
                                        .backend = p->service.backend,
                                        .api = p->api,
                                        .after_ms = EVICT_AFTER_MS,
                                        .keep_ms = EVICT_KEEP_MS};
    if (!world.set.evicts)
        p->service.evictor = evictor_free(p->service.evictor);
    else if (p->service.evictor == NULL && evictor_new(&settings, &p->service.evictor, &e) != OK)
        p->service.evictor = NULL;
}

void proc_reload(struct proc *p)
{
    struct cache_settings *settings = &p->service.cache.settings;
    if (!proc_runs(p))
        return;
    mem_account(p);
    set_evictor(p);
    settings->card_policy = world.set.spread ? PACK_SPREAD : PACK_UNSET;
    if (settings->shrink != world.set.shrink)
        cache_set_shrink(&p->service.cache, world.set.shrink);
    binder_set_timeout(p->service.binder, world.set.bind_timeout_ms);
    kube_backend_tune(p->kube, world.set.page_size, START_SETTLE_MS);
    mem_account(NULL);
    cache_check(&p->service.cache);
}

static enum errc open_all(struct proc *p, struct err *reterr)
{
    struct kube_api_settings settings = {.kubeconfig = STR("/sim/kubeconfig"),
                                         .user_agent = STR("cardpack/sim")};
    struct map_seed seed = {loop_random(p->loop), loop_random(p->loop)};
    p->service = (struct service){.loop = p->loop};
    cache_init(&p->service.cache, seed);
    p->service.cache.settings = (struct cache_settings){
        .card_policy = world.set.spread ? PACK_SPREAD : PACK_UNSET, .shrink = world.set.shrink};
    enum errc code = kube_api_new(p->loop, &settings, &p->api, reterr);
    if (code != OK)
        return code;
    struct name identity = proc_identity(p);
    struct election_settings election = {.namespace = kube_api_namespace(p->api),
                                         .name = STR("cardpack"),
                                         .identity = name_str(&identity),
                                         .times = {.lease_ms = world.set.lease_ms,
                                                   .renew_deadline_ms = world.set.renew_ms,
                                                   .retry_ms = world.set.retry_ms}};
    struct kube_backend_settings backend = {.loop = p->loop,
                                            .cache = &p->service.cache,
                                            .api = p->api,
                                            .page_size = world.set.page_size,
                                            .election = world.set.elects ? &election : NULL,
                                            .start_settle_ms = START_SETTLE_MS};
    code = kube_backend_new(&backend, &p->kube, reterr);
    if (code != OK)
        return code;
    p->service.backend = kube_backend_interface(p->kube);
    struct binder_settings binder = {.loop = p->loop,
                                     .cache = &p->service.cache,
                                     .backend = p->service.backend,
                                     .timeout_ms = world.set.bind_timeout_ms};
    set_evictor(p);
    return binder_new(&binder, &p->service.binder, reterr);
}

void proc_start(struct proc *p)
{
    struct err e = ERR_INIT;
    p->incarnation++;
    trace("start", STR(""), p->id, (int64_t)p->incarnation);
    memset(p->told, 0, sizeof(p->told));
    p->stop_by_ms = 0;
    p->resigns = p->resigned = false;
    p->wake.fire = turn;
    mem_account(p);
    p->loop = sim_loop_new(p);
    enum errc code = open_all(p, &e);
    sim_check(code == OK);
    mem_account(NULL);
    p->state = PROC_UP;
    oracle_started(p);
    plan_turn(p);
}

/* It is gone at once; whatever it had sent is still on its way. */
static void end(struct proc *p, const char *what)
{
    trace(what, STR(""), p->id, (int64_t)p->incarnation);
    p->state = PROC_DOWN;
    unplan(&p->wake);
    unplan(&p->fate);
    mem_account(p);
    p->service.binder = binder_free(p->service.binder);
    p->service.evictor = evictor_free(p->service.evictor);
    asks_drop(p);
    sim_loop_deferred(p->loop); /* what only waits for the end of the turn to be freed */
    p->kube = kube_backend_free(p->kube);
    p->api = kube_api_free(p->api);
    cache_done(&p->service.cache);
    p->loop = loop_free(p->loop);
    mem_account(NULL);
    sim_check(mem_blocks(p) == 0 && mem_bytes(p) == 0);
    server_orphan(p, p->incarnation);
}

static void start_later(struct proc *p)
{
    p->fate.fire = start_again;
    plan(&p->fate, draw(2) == 0 ? draw(50) : draw(20000));
}

void proc_kill(struct proc *p)
{
    if (!proc_runs(p))
        return;
    world.kills++;
    end(p, "killed");
    start_later(p);
}

void proc_stop(struct proc *p)
{
    if (p->state != PROC_UP || p->service.draining)
        return;
    trace("asked to stop", STR(""), p->id, 0);
    p->service.draining = true;
    p->stop_by_ms = world.now_ms + GRACE_MS;
    proc_wake(p);
}

void proc_pause(struct proc *p, uint64_t ms)
{
    if (p->state != PROC_UP || p->service.draining)
        return;
    trace("paused", STR(""), p->id, (int64_t)ms);
    p->state = PROC_PAUSED;
    unplan(&p->wake);
    p->fate.fire = awake;
    plan(&p->fate, ms);
}

struct name proc_identity(const struct proc *p)
{
    struct name n;
    (void)snprintf(n.z, sizeof(n.z), "p%u_%llu", p->id, (unsigned long long)p->incarnation);
    return n;
}

bool proc_ready(const struct proc *p)
{
    struct str missing;
    return p->state == PROC_UP && service_ready(&p->service, &missing);
}

static void on_resigned(void *ctx)
{
    struct proc *p = ctx;
    p->resigned = true;
    proc_wake(p);
}

/* As main.c: what is under way ends, then the lease is given up, then the process ends. */
static void drain(struct proc *p)
{
    if (!p->service.draining)
        return;
    if (!p->resigns && p->asks == NULL && binder_active(p->service.binder) == 0) {
        p->resigns = true;
        mem_account(p);
        kube_backend_resign(p->kube, on_resigned, p);
        mem_account(NULL);
        plan_turn(p);
    }
    if (p->resigned) {
        end(p, "stopped");
        start_later(p);
    } else if (world.now_ms >= p->stop_by_ms) {
        end(p, "stopped in doubt");
        start_later(p);
    } else if (p->wake.at == 0 || p->wake.due_ms > world.now_ms + 100) {
        plan(&p->wake, 100);
    }
}

static void turn(struct happening *h)
{
    struct proc *p = CONTAINER_OF(h, struct proc, wake);
    unsigned handed = 0;
    mem_account(p);
    sim_loop_sync(p->loop);
    memcpy(p->told_before, p->told, sizeof(p->told));
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
    drain(p);
}
