/*
 * What every part of the simulation shares: one world at a time, its clock, its random numbers, its
 * trace, and what happens next.
 *
 * The world is global because the seams that it stands behind (mem.h, log.h, file.h) hand no
 * pointer through. Nothing in it depends on an address, on the machine or on real time: a seed is a
 * history, and replays.
 */
#pragma once

#include "macro.h"
#include "str.h"

/* What may go wrong, or be unusual; each seed draws which of it does, and how often. */
enum fault {
    /* The network, and the API server as a whole. */
    FAULT_REFUSED,     /* no connection: surely not sent */
    FAULT_LOST,        /* the request never arrives */
    FAULT_ANSWER_LOST, /* done, and the connection dies */
    FAULT_ANSWER_CUT,  /* done, and the answer breaks off midway */
    FAULT_SILENT,      /* done, and no byte comes back */
    FAULT_DOUBLED,     /* a proxy on the way sends it again, and the second answer counts */
    FAULT_THROTTLED,   /* 429 */
    FAULT_5XX,         /* not done */
    FAULT_BARE_404,    /* a load balancer's, in HTML */
    FAULT_TOKEN,       /* the token is rotated: 401 with the old one */
    FAULT_LATE_COMMIT, /* a Binding is answered 504 or not at all, and commits later, or never */
    FAULT_ODD_409,     /* etcd's troubles as a Conflict; it may have committed */
    FAULT_SLOW,        /* seconds instead of milliseconds */
    FAULT_TORN,        /* in many chunks */
    FAULT_RESTART,     /* the API server goes and comes back */
    /* Lists and watches. */
    FAULT_CONTINUE_GONE, /* a continue token expires */
    FAULT_COMPACTION,    /* watches from an older version are 410 */
    FAULT_WATCH_CUT,     /* ends in good order, or amid a line */
    FAULT_WATCH_GARBLED,
    FAULT_WATCH_SILENT,
    FAULT_WATCH_DOUBLED,
    FAULT_WATCH_ERROR, /* an ERROR event: 410, 429, 500, 504 */
    FAULT_WATCH_LAG,   /* a watch says things seconds late */
    /* Us. */
    FAULT_KILL,
    FAULT_STOP,
    FAULT_PAUSE,
    FAULT_TIME_JUMP,
    FAULT_MEMORY,
    FAULT_LEASE,  /* somebody deletes it */
    FAULT_RELOAD, /* other settings while it runs */
    /* Others. */
    FAULT_RECREATE,  /* users delete and create again under the same name */
    FAULT_EDIT,      /* users edit annotations */
    FAULT_FOREIGN,   /* other hands bind pods */
    FAULT_NODES,     /* nodes grow, shrink, vanish, return */
    FAULT_HEALTH,    /* cards fall ill and get well */
    FAULT_MOVE,      /* another replica's scheduler leads */
    FAULT_IMPATIENT, /* schedulers give up, ask twice, change their mind */
    FAULT_NONSENSE,  /* requests that no scheduler would send */
    FAULTS
};

/* What pods ask for, and nodes are; each seed draws which of it there is. */
enum kind {
    KIND_CONTAINERS, /* several that ask for memory */
    KIND_INITS,
    KIND_COUNT, /* of cards */
    KIND_WHOLE,
    KIND_CORES,
    KIND_PERCENT,
    KIND_SELECTS, /* by model and UUID */
    KIND_GROUPS,  /* affinity and anti-affinity */
    KIND_EXCLUSIVE,
    KIND_NOMINATED,
    KIND_TABLES,
    KIND_MARKS,       /* cordoned cards, the most pods on one */
    KIND_ALLOCATIONS, /* other hands write some, or leave them there */
    KIND_EVICTIONS,   /* for cards; of pods that weigh less than others */
    KINDS
};

struct settings {
    uint64_t seed;
    unsigned permille[FAULTS];
    bool kinds[KINDS];
    bool shrink; /* these may change on the way, with those that are read at the same places */
    bool spread;
    bool evicts;
    bool faultless;
    bool uid_precondition; /* API servers from 1.27 on */
    unsigned replicas;
    bool elects; /* else there is one replica, and it knows of no other */
    uint64_t lease_ms;
    uint64_t renew_ms;
    uint64_t retry_ms;
    bool deny_leases; /* it has no right to them, and runs alone */
    unsigned nodes;
    unsigned max_cards;
    unsigned schedulers; /* pods that are being scheduled at a time */
    unsigned names; /* of pods, in each namespace: the fewer, the more often one is used again */
    unsigned page_size;
    unsigned episodes;
    unsigned actions; /* of users, nodes, plugins and fate in one episode */
    uint64_t action_ms;
    uint64_t bind_timeout_ms;
    uint64_t http_timeout_ms; /* the scheduler's */
    unsigned backoff_ms;      /* the most that a pod waits which could not be bound */
};

/* Something that will happen at a time; embedded in whom it happens to. */
struct happening {
    uint64_t due_ms;
    uint64_t order;
    size_t at; /* in the heap, from 1; 0: not planned */
    void (*fire)(struct happening *h);
};

#define SIM_EPOCH_NS UINT64_C(1700000000000000000)

struct world {
    struct settings set;
    uint64_t now_ms;
    uint64_t random;
    bool quiet; /* no faults any more, nobody acts */
    uint64_t steps;
    uint64_t most_steps;
    uint64_t hash; /* of the trace so far */
    unsigned actions_left;

    /* For the line at the end. */
    uint64_t binds;
    uint64_t posts;
    uint64_t kills;
    uint64_t evictions;
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

/* Whether it strikes now. */
static inline bool fault(enum fault f)
{
    return !world.quiet && chance(world.set.permille[f]);
}

void settings_draw(struct settings *s, uint64_t seed);

/* ---- what happens next ---- */

/* Planning what is planned already moves it. */
void plan(struct happening *h, uint64_t delay_ms);
void unplan(struct happening *h);
struct happening *plan_first(void); /* NULL: nothing */
void plan_forget_all(void);

/* ---- the trace ---- */

extern bool trace_all; /* print it as it goes */

/* One line of history; `what` is a literal. Cheap: it is written out only when it is wanted. */
void trace(const char *what, struct str who, int64_t a, int64_t b);
void trace_note(const char *what, struct str who); /* printed at once, and no part of the hash */
void trace_reset(void);
void trace_catch(void); /* what ends the process from now on prints the tail, too */

/* Prints seed, step and the trace's tail and ends the process. */
void sim_fail(const char *file, int line, const char *why) __attribute__((noreturn));

#define sim_check(condition)                                \
    do {                                                    \
        if (!(condition))                                   \
            sim_fail(__FILE__, __LINE__, "" #condition ""); \
    } while (0)

/* ---- text ---- */

/* Growable bytes of the simulation's own, which mem.h does not count. */
struct text {
    char *p;
    size_t n;
    size_t cap;
};

void text_put(struct text *t, struct str s);
void text_u64(struct text *t, uint64_t v);
void text_quoted(struct text *t, struct str s); /* as a JSON string */
void text_done(struct text *t);

static inline void text_z(struct text *t, const char *z)
{
    text_put(t, str_of(z));
}

static inline struct str text_str(const struct text *t)
{
    return (struct str){t->p == NULL ? "" : t->p, t->n};
}

/* Ends the process where there is no memory: that is not what is simulated. */
void *sim_alloc(size_t size) _must_use_;
void *sim_resize(void *p, size_t size) _must_use_;

/* A short name that is stored by value. */
struct name {
    char z[24];
};

static inline struct str name_str(const struct name *n)
{
    return (struct str){n->z, strlen(n->z)};
}

struct name name_of(const char *prefix, uint64_t number);
struct name name_from(struct str s);
