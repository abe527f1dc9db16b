/*
 * One process of cardpack, put together as main.c does it, on a loop of its own. It can be paused
 * (SIGSTOP), killed (its requests live on in the network and at the API server) and asked to stop.
 */
#pragma once

#include "kube_backend.h"
#include "service.h"
#include "store.h"

enum proc_state {
    PROC_DOWN,
    PROC_UP,
    PROC_PAUSED,
};

/* A request of a scheduler, or of the oracle's. */
struct ask;

struct proc {
    unsigned id;
    enum proc_state state;
    uint64_t incarnation;
    struct loop *loop;
    struct service service;
    struct kube_api *api;
    struct kube_backend *kube;
    struct happening wake;
    struct happening fate; /* to be started again, to wake up from a pause */
    uint64_t stop_by_ms;   /* draining: the grace ends then */
    bool resigns;          /* has begun to give up the lease; */
    bool resigned;         /* and done so */
    struct ask *asks;      /* under way, oldest first */

    /* What it has surely been told, by slot: the newest version; now, and before its last turn. */
    uint64_t told[CACHE_KINDS][MAX_PODS];
    uint64_t told_before[CACHE_KINDS][MAX_PODS];
};

extern struct proc procs[MAX_REPLICAS];

void proc_start(struct proc *p);
void proc_kill(struct proc *p);
void proc_stop(struct proc *p); /* SIGTERM */
void proc_pause(struct proc *p, uint64_t ms);
void proc_reload(struct proc *p); /* the world's settings have changed */

/* Something has arrived for it. */
void proc_wake(struct proc *p);

bool proc_ready(const struct proc *p);
struct name proc_identity(const struct proc *p);

static inline bool proc_runs(const struct proc *p)
{
    return p->state != PROC_DOWN;
}

/* ---- requests to it ---- */

enum ask_kind {
    ASK_FILTER,
    ASK_BIND,
    ASK_INSPECT,
    ASK_NONSENSE,
};

struct ask {
    enum ask_kind kind;
    struct proc *proc;
    bool arrived;
    bool handled;
    bool answered;
    bool left; /* nobody waits any more: the asker has given up */
    struct ask *next;
    struct happening h; /* its arrival, then its answer's */
    struct text path;
    struct text body;
    struct text answer;
    unsigned status;
    void (*done)(struct ask *a); /* with status 0: the connection died. Then it is freed. */
    void *owner;
    struct name uid; /* of a bind */
    struct name node;
    struct http_request request;
    struct arena arena;
    struct buf out;
};

/* Sends it; done comes once, unless ask_leave was called. */
struct ask *ask_new(enum ask_kind kind, const char *path, void (*done)(struct ask *a), void *owner);
void ask_send(struct ask *a, struct proc *p);
void ask_leave(struct ask *a);

/* The turn of the process' loop hands over what has come. */
bool ask_deliver(struct proc *p);
void asks_drop(struct proc *p);
void asks_forget_all(void);

/* ---- its loop, which only it turns ---- */

uint64_t sim_loop_due(const struct loop *l); /* in the world's time; UINT64_MAX: never */
void sim_loop_sync(struct loop *l);          /* the clock is read */
void sim_loop_deferred(struct loop *l);
void sim_loop_timers(struct loop *l);
struct loop *sim_loop_new(struct proc *p);
struct proc *sim_loop_proc(const struct loop *l);
void sim_wall_jump(int64_t ns); /* every process' wall clock */

/* ---- memory of the product, by who is running ---- */

void mem_account(struct proc *p); /* NULL: nobody */
size_t mem_blocks(const struct proc *p);
size_t mem_bytes(const struct proc *p);
