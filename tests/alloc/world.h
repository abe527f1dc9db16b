/*
 * One run of the whole program, main() included, in a world of this process: an API server and a
 * scheduler that take their turns while the program waits. A scenario is a list of steps; while
 * they run, allocations fail by a plan. What is wrong ends the process with a text for the parent.
 */
#pragma once

#include "api.h"
#include "budget.h"
#include "cache.h"
#include "interpose.h"

struct world;
struct step;

enum step_type {
    STEP_END,
    STEP_ASK,    /* a request, and its answer */
    STEP_AWAIT,  /* the same request until its answer is right */
    STEP_SEND,   /* a request; its answer is looked at when the program has ended */
    STEP_CHANGE, /* something happens outside */
    STEP_UNTIL,  /* something is so */
    STEP_ARM,    /* from here on allocations are counted, and may fail */
};

struct answer {
    unsigned status; /* 0: the connection was closed without one */
    const char *body;
    size_t n;
};

/*
 * Whether the answer is right; *ret_error: it is a clean error instead, which is as good once an
 * allocation has failed.
 */
typedef bool answer_fn(struct world *w, const struct step *s, const struct answer *a,
                       bool *ret_error);

struct step {
    enum step_type type;
    const char *method;
    const char *path;
    const char *body;
    answer_fn *right;
    const char *expected; /* for `right` */
    void (*change)(struct world *w);
    bool (*until)(const struct world *w);
    const char *what;
};

struct scenario {
    const char *name;
    const char *cluster; /* a cluster file's content; NULL: the API server */
    bool elects;         /* it may decide only as the holder of the Lease */
    void (*setup)(struct api *a);
    const struct step *steps;
    const struct step *after; /* with memory again: it must all be right, in the end */
};

enum plan_mode {
    PLAN_NONE,
    PLAN_ONCE,
    PLAN_FOR_A_WHILE, /* until the steps are over; then all must be well again */
    PLAN_FOR_EVER,    /* until the program has ended */
};

#define WORLD_CALLS 8

struct world {
    const struct scenario *scenario;
    struct api api;
    struct cache *cache; /* the program's, while it has one */
    struct budgets *budgets;
    uint16_t port; /* the program's; 0: not listening yet */
    struct http_peer calls[WORLD_CALLS];
    size_t n_calls;

    enum plan_mode mode;
    struct alloc_plan plan;
    const struct step *step;
    bool begun; /* the step has been */
    bool recovering;
    bool stopping;
    int created;       /* whether the pod that a scenario creates exists: 0, 1; -1: unknown */
    uint64_t since_ms; /* when the step began */
    uint64_t asked_ms; /* STEP_AWAIT: the last time */
    unsigned repeats;
};

struct run_result {
    size_t count; /* allocations of the owner */
    bool hit;
};

/* What a run has to say before it ends the process; shared with the parent. */
struct world_report {
    size_t nth;
    size_t count;
    bool hit;
    bool failed;
    char folder[64];
    char log[80]; /* the program's */
    struct alloc_trace trace;
    char text[2048];
};

/* Once a process; what it leaves behind the parent removes, who may want to read it. */
void world_start(struct world_report *r);
void world_remove(const struct world_report *r);

struct run_result world_run(const struct scenario *s, enum plan_mode mode, enum alloc_owner owner,
                            size_t nth);

void world_fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

extern const struct scenario *const scenarios[];
extern const size_t n_scenarios;
