/*
 * One simulated process of cardpack: what main.c opens (daemon.h), on its own loop, with its own
 * configuration file. The simulation can pause it (SIGSTOP), kill it (requests that it sent stay
 * under way) and stop it (SIGTERM).
 */
#pragma once

#include "api/store.h"
#include "daemon/daemon.h"
#include "sim.h"

enum {
    MAX_REPLICAS = 3
};

enum proc_state {
    PROC_DOWN,
    PROC_UP,
    PROC_PAUSED,
};

/* A request of a scheduler or of the oracle. */
struct ask;

struct proc {
    unsigned id;
    enum proc_state state;
    uint64_t incarnation;
    struct loop *loop;
    struct config config;
    struct notify notify; /* without a supervisor */
    struct daemon daemon;
    struct name host;
    struct name option; /* --config=FILE */
    char *argv[2];
    struct happening wake;
    struct happening fate; /* its restart, or its end of a pause */
    bool stalled;          /* the pause comes from a stall */
    bool stopping;         /* has received SIGTERM */
    struct ask *asks;      /* requests under way, oldest first */

    /* For each node, the last ASSUME_TIME that it sent, and the pod. */
    struct assumed {
        uint64_t ns;
        struct name uid;
        uint64_t rv; /* the node's version that the process had surely been told of */
    } assumed[MAX_NODES];

    /* For each slot, the newest version that it was surely told of: now, and before its last
     * turn. */
    uint64_t told[CACHE_ALL_KINDS][MAX_PODS];
    uint64_t told_before[CACHE_ALL_KINDS][MAX_PODS];
};

extern struct proc procs[MAX_REPLICAS];

void proc_start(struct proc *p);
void proc_kill(struct proc *p);
void proc_stop(struct proc *p); /* sends SIGTERM */
void proc_pause(struct proc *p, uint64_t ms);

/* Whether it runs with the settings in its file. True if it does not run: it will read them. */
bool proc_is_current(const struct proc *p);

/* Writes the content of a process' configuration file; false: no process has this path. */
bool proc_file(struct str path, struct text *ret);

/* An event has arrived for the process: plans its turn. */
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
    ASK_OTHER,
    ASK_OTHER_GET,
    ASK_NONSENSE,
};

struct ask {
    enum ask_kind kind;
    struct proc *proc;
    bool arrived;
    bool handled;
    bool answered;
    bool left; /* the scheduler has given up waiting */
    struct ask *next;
    struct happening h; /* the request's arrival, later the answer's */
    struct text path;
    struct text body;
    struct text answer;
    unsigned status;
    void (*done)(struct ask *a); /* status 0: the connection died. The caller then frees it. */
    void *owner;
    struct name uid; /* the pod's, for a bind */
    struct name node;
    struct http_request request;
    struct arena arena;
    struct buf out;
};

/* Sends a request. Calls done once, unless ask_leave was called. */
struct ask *ask_new(enum ask_kind kind, const char *path, void (*done)(struct ask *a), void *owner);
void ask_send(struct ask *a, struct proc *p);
void ask_leave(struct ask *a);

/* Hands one request that has arrived to the process; false: there was none. */
bool ask_deliver(struct proc *p);
void asks_drop(struct proc *p);
void asks_forget_all(void);

/* ---- the loop of a process; only the process turns it ---- */

uint64_t sim_loop_due(const struct loop *l); /* world time in ms; UINT64_MAX: never */
void sim_loop_sync(struct loop *l);          /* reads the clock */
void sim_loop_deferred(struct loop *l);
void sim_loop_timers(struct loop *l);
void sim_loop_raise(struct loop *l, int signo); /* the handler runs in the next turn */
void sim_loop_signals(struct loop *l);
bool sim_loop_stopped(const struct loop *l);
struct loop *sim_loop_new(struct proc *p);
struct proc *sim_loop_proc(const struct loop *l);
void sim_wall_jump(int64_t ns); /* of all processes */

/* World time that passes while the process' clock advances by `ms`. */
uint64_t sim_loop_really_ms(const struct proc *p, uint64_t ms);

/*
 * Within a turn a process may stall: its clock then runs ahead of the world's, and the effects of
 * the rest of its turn come that much later. Seams call sim_turn_touch where the process calls the
 * machine.
 */
void sim_turn_begin(struct loop *l);
void sim_turn_touch(void);
uint64_t sim_turn_ahead_ms(void);
uint64_t sim_turn_end(void); /* returns how long it stalled, in ms */

/* ---- memory of cardpack, by the running process ---- */

void mem_account(struct proc *p); /* NULL: no process runs */
size_t mem_blocks(const struct proc *p);
size_t mem_bytes(const struct proc *p);
