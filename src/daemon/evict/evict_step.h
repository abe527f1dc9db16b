/*
 * Step machine of a rescue: how evictions give one pod its cards. A pure function from state and
 * input to the next action; evict_rescue.c performs the actions.
 *
 *     choose --set--> try each --all granted--> keep --> evict each --> wait until they have left
 *       ^  \-- none: over    |                             |                      |
 *       +------ refused -----+-----------------------------+            wait until it is bound
 *
 * "try" is a dry run: it shows what a PodDisruptionBudget forbids before any pod is evicted. "keep"
 * comes before the first eviction, so that no other pod takes the room that becomes free. A victim
 * whose eviction is refused is spared, and another set is chosen; pods that are evicted by then
 * count as gone in that choice. Another set is also chosen if a victim's priority has risen.
 *
 * An eviction whose answer was lost may have taken effect. Then the watch shows that the victim is
 * leaving. Until it shows that, the eviction is sent again: it names the UID, so a repeat is
 * harmless.
 *
 * Nothing more is sent once the pod holds a card, is gone, or this replica no longer leads.
 */
#pragma once

#include "base/macro.h"

/* Limits of one rescue: sets of victims that are chosen, and failed calls in a row. */
#define EVICT_CHOICES  8
#define EVICT_FAILURES 5

/* Time between looks at the cache; time before the first retry of a failed call. */
#define EVICT_LOOK_MS  UINT64_C(200)
#define EVICT_RETRY_MS UINT64_C(1000)

/* The longest wait for evicted pods to end: longer grace periods are not worth a card. */
#define EVICT_LEAVE_MS UINT64_C(600000)

enum evict_phase {
    EVICT_CHOOSING,
    EVICT_TRYING,
    EVICT_KEEPING, /* the room is being kept for the pod */
    EVICT_EVICTING,
    EVICT_LEAVING, /* all victims are evicted, and some still hold cards */
    EVICT_WAITING, /* the room is free: wait until the pod is bound */
    EVICT_OVER,
};

/* The result of an eviction call. */
enum evict_answer {
    EVICT_GRANTED,
    EVICT_GONE,     /* the victim no longer exists */
    EVICT_REFUSED,  /* this victim: by a PodDisruptionBudget or an admission webhook */
    EVICT_DENIED,   /* cardpack has no right to evict */
    EVICT_UNSERVED, /* the API server does not serve this version of the Eviction API */
    EVICT_FAILED,   /* no answer by the API server itself: try later, it may have taken effect */
};

enum evict_pod {
    EVICT_POD_PENDING,
    EVICT_POD_BINDING, /* it has a reservation, which may be released again */
    EVICT_POD_BOUND,
    EVICT_POD_GONE, /* deleted or under deletion, or its request has changed */
};

enum evict_input_type {
    EVICT_IN_CHOSEN,
    EVICT_IN_KEPT,
    EVICT_IN_ANSWER,
    EVICT_IN_RISEN, /* the victim's priority is no longer below the pod's: nothing was sent */
    EVICT_IN_LOOK,  /* the wait is over */
};

struct evict_input {
    enum evict_input_type type;
    bool found;      /* CHOSEN: a set was found */
    bool guarded;    /* CHOSEN: a set was found, but PodDisruptionBudgets forbid it */
    unsigned chosen; /* CHOSEN: victims in the set; 0: the room becomes free without evictions */
    bool kept;       /* KEPT: whether the room could be kept */
    enum evict_answer answer;
    /* The present state, with each input: */
    bool leads;
    enum evict_pod pod;
    bool fits;     /* one of the pod's nodes is feasible now */
    bool has_room; /* room is kept for the pod */
    bool leaves;   /* the current victim is gone or under deletion */
    unsigned left; /* victims that still hold cards */
};

enum evict_do {
    EVICT_DO_CHOOSE,
    EVICT_DO_TRY, /* a dry run for victim `at` */
    EVICT_DO_KEEP,
    EVICT_DO_EVICT,
    EVICT_DO_WAIT,
    EVICT_DO_END,
};

enum evict_end {
    EVICT_END_BOUND,
    EVICT_END_NEEDLESS, /* there is room without evictions */
    EVICT_END_POD_GONE,
    EVICT_END_NO_SET,    /* no set of pods that may be evicted would make room */
    EVICT_END_PROTECTED, /* the same, after victims were refused or forbidden by a budget */
    EVICT_END_DENIED,
    EVICT_END_UNSERVED,
    EVICT_END_FAILED,  /* EVICT_FAILURES calls in a row: no answer of the API server itself */
    EVICT_END_NO_ROOM, /* the room could not be kept: no memory, or the node has changed */
    EVICT_END_LINGERS, /* a victim did not end in time */
    EVICT_END_TIME,    /* the room was free, and the pod was not bound in time */
    EVICT_END_NOT_LEADING,
    EVICT_END_STOPPED, /* never from evict_step: the evictor is freed during the rescue */
};

#define EVICT_ANSWERS ((size_t)EVICT_FAILED + 1)
#define EVICT_ENDS    ((size_t)EVICT_END_STOPPED + 1)

/* Since the start. */
struct evictor_counts {
    uint64_t begun;                    /* rescues */
    uint64_t ends[EVICT_ENDS];         /* rescues by their end */
    uint64_t evictions[EVICT_ANSWERS]; /* eviction calls without dry runs, by their answers */
};

struct evict_output {
    enum evict_do action;
    enum evict_end end; /* END */
    unsigned at;        /* TRY, EVICT */
    uint64_t pause_ms;  /* WAIT */
    bool spare;         /* CHOOSE, END: the eviction of the current victim was refused */
    bool other_version; /* TRY, EVICT: use the other version of the API from now on */
    bool room;          /* WAIT: the room is free, the pod only has to be bound */
};

struct evict_times {
    uint64_t keep_ms;
    uint64_t look_ms;
    uint64_t retry_ms;
};

struct evict_machine {
    enum evict_phase phase;
    struct evict_times times;
    uint64_t until_ms;
    unsigned n;    /* victims of the set */
    unsigned at;   /* the current victim */
    unsigned rest; /* victims from here on were not evicted: there was room; n: all were evicted */
    unsigned choices;
    unsigned failures;
    unsigned evicted; /* of all sets */
    bool refused;     /* at some time a victim was refused or forbidden */
    bool exchanged;   /* the version of the API was changed */
};

/* The first action is EVICT_DO_CHOOSE. */
void evict_machine_init(struct evict_machine *m, const struct evict_times *times);

struct evict_output evict_step(struct evict_machine *m, const struct evict_input *in,
                               uint64_t now_ms);
