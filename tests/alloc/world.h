/*
 * One run of the whole program, main() included, in a world within this process: an API server and
 * a scheduler, which act while the program waits. A scenario is a list of steps; during the steps
 * allocations fail by a plan. A failed check ends the process with a text for the parent.
 */
#pragma once

#include "api.h"
#include "core/cache/cache.h"
#include "core/preempt/budget.h"
#include "interpose.h"

struct world;
struct step;

enum step_type {
    STEP_END,
    STEP_ASK,    /* sends a request and waits for its answer */
    STEP_AWAIT,  /* repeats the request until its answer is right */
    STEP_SEND,   /* sends a request; its answer is checked after the program's end */
    STEP_CHANGE, /* changes something outside the program */
    STEP_UNTIL,  /* waits for a condition */
    STEP_ARM,    /* from here on allocations are counted and may fail */
};

struct answer {
    unsigned status; /* 0: connection closed without an answer */
    const char *body;
    size_t n;
};

/*
 * Whether the answer is right. *ret_error: it is a proper error instead, which is also right after
 * an allocation has failed.
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
    bool elects;         /* it decides only while it holds the Lease */
    void (*setup)(void);
    const struct step *steps;
    const struct step *after; /* with memory available again: all must become right */
};

enum plan_mode {
    PLAN_NONE,
    PLAN_ONCE,
    PLAN_FOR_A_WHILE, /* until the steps end; then all must become right */
    PLAN_FOR_EVER,    /* until the program's end */
};

#define WORLD_CALLS 8

struct world {
    const struct scenario *scenario;
    struct api api;
    struct cache *cache; /* the program's, while it exists */
    struct budgets *budgets;
    uint16_t port; /* the program's; 0: not listening yet */
    struct http_peer calls[WORLD_CALLS];
    size_t n_calls;

    enum plan_mode mode;
    struct alloc_plan plan;
    const struct step *step;
    bool begun; /* the step has begun */
    bool recovering;
    bool stopping;
    int created;       /* whether the pod that a scenario creates exists: 0, 1; -1: unknown */
    uint64_t since_ms; /* when the step began */
    uint64_t asked_ms; /* STEP_AWAIT: time of the last request */
    unsigned repeats;
};

struct run_result {
    size_t count; /* allocations of the owner */
    bool hit;
};

/* The report of a run, filled before the process ends; shared with the parent. */
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

/* Call it once per process. The parent removes the files, because it may want to read them
 * first. */
void world_start(struct world_report *r);
void world_remove(const struct world_report *r);

struct run_result world_run(const struct scenario *s, enum plan_mode mode, enum alloc_owner owner,
                            size_t nth);

void world_fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

extern const struct scenario *const scenarios[];
extern const size_t n_scenarios;
