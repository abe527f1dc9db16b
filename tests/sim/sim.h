/*
 * Shared by all parts of the simulation: one world at a time, its clock, its random numbers, its
 * trace and its planned events.
 *
 * The world is global because the seams that it replaces (mem.h, log.h, file.h) pass no pointer.
 * Nothing in it depends on an address, on the machine or on real time: a seed defines a history and
 * replays it.
 */
#pragma once

#include "api/store.h"
#include "core/request/policy.h"

/* Faults and unusual events. Each seed draws which of them occur, and how often. */
enum fault {
    /* The network, and the API server as a whole. */
    FAULT_REFUSED,     /* no connection: the request was surely not sent */
    FAULT_LOST,        /* the request never arrives */
    FAULT_ANSWER_LOST, /* the request is done, and the connection breaks */
    FAULT_ANSWER_CUT,  /* the request is done, and the answer breaks off */
    FAULT_SILENT,      /* the request is done, and no byte comes back */
    FAULT_DOUBLED,     /* a proxy sends it twice; the second answer counts */
    FAULT_COPIED,      /* a proxy sends a Binding twice; one copy arrives later */
    FAULT_THROTTLED,   /* 429 */
    FAULT_5XX,         /* the request is not done */
    FAULT_BARE_4XX,    /* a load balancer's HTML: the request was done, or not */
    FAULT_TOKEN,       /* the token is rotated: 401 with the old one */
    FAULT_LATE_COMMIT, /* a Binding gets 504 or no answer; it commits later or never */
    FAULT_ODD_409,     /* etcd's errors as a Conflict; it may have committed */
    FAULT_SLOW,        /* seconds instead of milliseconds */
    FAULT_TORN,        /* the answer comes in many chunks */
    FAULT_RESTART,     /* the API server goes down and comes back */
    /* Lists and watches. */
    FAULT_CONTINUE_GONE, /* a continue token expires */
    FAULT_COMPACTION,    /* watches from an older version get 410 */
    FAULT_WATCH_CUT,     /* the stream ends in good order, or within a line */
    FAULT_WATCH_GARBLED,
    FAULT_WATCH_SILENT,
    FAULT_WATCH_DOUBLED,
    FAULT_WATCH_ERROR, /* an ERROR event: 410, 429, 500, 504 */
    FAULT_WATCH_LAG,   /* a watch sends events seconds late */
    /* cardpack's processes. */
    FAULT_KILL,
    FAULT_ORPHAN, /* a process ends or pauses soon after it sent a Binding that is late */
    FAULT_STOP,
    FAULT_PAUSE,
    FAULT_STALL, /* a pause within a callback */
    FAULT_TIME_JUMP,
    FAULT_MEMORY,
    FAULT_LEASE,   /* the Lease is deleted */
    FAULT_DENIED,  /* a process loses its right to Leases, or gets it back */
    FAULT_ROLLOUT, /* settings change: each process is restarted with the new ones */
    /* Other clients. */
    FAULT_RECREATE,  /* users delete and create again under the same name */
    FAULT_EDIT,      /* users edit annotations */
    FAULT_FOREIGN,   /* other clients bind pods */
    FAULT_NODES,     /* nodes grow, shrink, vanish, return */
    FAULT_HEALTH,    /* cards become unhealthy and healthy again */
    FAULT_MOVE,      /* the scheduler of another replica leads */
    FAULT_IMPATIENT, /* schedulers give up, repeat, or change their choice */
    FAULT_NONSENSE,  /* requests that no scheduler would send */
    FAULTS
};

/* Kinds of requests and of nodes; each seed draws which of them occur. */
enum kind {
    KIND_CONTAINERS, /* several containers ask for memory */
    KIND_INITS,
    KIND_COUNT, /* number of cards */
    KIND_WHOLE,
    KIND_CORES,
    KIND_PERCENT,
    KIND_SELECTS, /* by model, UUID and isolation */
    KIND_GROUPS,  /* affinity and anti-affinity */
    KIND_EXCLUSIVE,
    KIND_NOMINATED,
    KIND_TABLES,
    KIND_MARKS,       /* cordoned cards, and a limit of pods a card */
    KIND_ALLOCATIONS, /* other clients write allocations, or leave old ones */
    KIND_EVICTIONS,   /* of pods of lower priority, for cards */
    KIND_QUOTAS,      /* they change while processes run */
    KIND_CLAIMS,      /* DRA gives out cards of the same nodes */
    KIND_CLASSES,     /* and serves requests for exclusive cards, where no plugin does */
    KINDS
};

struct swarm {
    uint64_t seed;
    unsigned permille[FAULTS];
    bool kinds[KINDS];
    bool shrink; /* this and others that a configuration file holds change in a rollout */
    bool spread; /* the policy of cards */
    bool node_spread;
    enum policy
        costs; /* the policy of nodes in place of node_spread; POLICY_UNSET: none with costs */
    unsigned shortlist; /* 0: none */
    bool shortens;      /* there may be a shortlist at some time */
    bool alike;         /* the nodes are equal, and most pods have one size */
    bool evicts;
    unsigned guard; /* swap-guard; see swaps.h */
    unsigned
        plugins; /* a bit for each enum plugin whose dialect cardpack reads; 0: gpushare alone */
    enum plugin locks; /* mainly about the locks of its nodes; PLUGIN_GPUSHARE: no such world */
    bool foreign;      /* nodes change their plugin, and others bind pods to any node */
    bool partition;    /* each card belongs to DRA or to cardpack; see claims.h */
    bool dra_on;       /* the setting dra is on, else auto */
    bool faultless;
    bool takeovers;     /* mainly about takeovers while a Binding is under way */
    bool rogue;         /* the time rules of server.h are broken, rarely */
    bool preconditions; /* of Bindings: UID and resourceVersion, as API servers from 1.27 on */
    unsigned replicas;
    bool elects; /* else there is one replica, without leader election */

    struct {
        uint64_t lease_ms;
        uint64_t renew_ms;
        uint64_t retry_ms;
        int drift_ppm; /* its clock's rate: positive is faster */
    } own[3];          /* per replica */

    uint64_t lag_ms; /* how far lagging watch caches are behind */
    unsigned nodes;
    unsigned max_cards;
    unsigned schedulers; /* pods in scheduling at the same time */
    unsigned names; /* of pods, per namespace; the fewer, the more often a name is used again */
    unsigned page_size;
    unsigned episodes;
    unsigned actions; /* actions of users, nodes, plugins and faults per episode */
    uint64_t action_ms;
    uint64_t bind_timeout_ms;
    uint64_t http_timeout_ms; /* the scheduler's timeout */
    unsigned backoff_ms;      /* the longest backoff of a pod that could not be bound */
};

/* A planned event; embedded in the object that it happens to. */
struct happening {
    uint64_t due_ms;
    uint64_t order;
    size_t at; /* place in the heap, from 1; 0: not planned */
    void (*fire)(struct happening *h);
};

/* Bindings that broke the rules of server.h in one of the ways. */
struct rogue_count {
    uint64_t commits;
    uint64_t over_commits; /* of these: a card holds too much since */
    uint64_t least_ms;     /* the smallest delay after the deadline that over-committed */
};

#define ROGUES 4 /* size of enum rogue */

#define SIM_EPOCH_NS UINT64_C(1700000000000000000)

struct world {
    struct swarm set;
    uint64_t now_ms;
    uint64_t random;
    bool quiet;  /* no faults and no actors */
    bool ending; /* all processes are being killed */
    uint64_t steps;
    uint64_t most_steps;
    uint64_t hash; /* of the trace so far */
    unsigned actions_left;

    /* Counts for the summary line. */
    uint64_t binds;
    uint64_t writes; /* of configuration files */
    uint64_t posts;
    uint64_t kills;
    uint64_t evictions;
    uint64_t rest_ms;      /* the longest time from the last fault until rest */
    uint64_t hand_over_ms; /* the longest time from a wish to lead until leading */
    struct rogue_count rogues[ROGUES];
};

extern struct world world;

/* ---- random numbers ---- */

uint64_t random_next(uint64_t *state);

static inline unsigned draw(unsigned below)
{
    return (unsigned)((random_next(&world.random) >> 32) % below);
}

static inline bool chance(unsigned permille)
{
    return permille > 0 && draw(1000) < permille;
}

/* Whether the fault strikes now. */
static inline bool fault(enum fault f)
{
    return !world.quiet && chance(world.set.permille[f]);
}

void settings_draw(struct swarm *s, uint64_t seed);

/* ---- planned events ---- */

/* Plans the event; one that is planned already moves. */
void plan(struct happening *h, uint64_t delay_ms);
void unplan(struct happening *h);
struct happening *plan_first(void); /* NULL: nothing is planned */
void plan_forget_all(void);

/* ---- the trace ---- */

extern bool trace_all; /* print each line at once */

/* Adds one line to the trace; `what` is a literal. Cheap: formats only when it prints. */
void trace(const char *what, struct str who, int64_t a, int64_t b);
void trace_note(const char *what, struct str who); /* printed at once, not hashed */
void trace_reset(void);
void trace_catch(void); /* a sanitizer report or a crash signal also prints the tail, from now on */

/* Prints seed, step and the trace's tail, and ends the process with status 1. */
void sim_fail(const char *file, int line, const char *why) __attribute__((noreturn));

#define sim_check(condition)                                \
    do {                                                    \
        if (!(condition))                                   \
            sim_fail(__FILE__, __LINE__, "" #condition ""); \
    } while (0)

/* ---- memory ---- */

/* Ends the process if there is no memory: the simulation's own memory does not fail on purpose. */
void *sim_alloc(size_t size) _must_use_;
void *sim_resize(void *p, size_t size) _must_use_;
