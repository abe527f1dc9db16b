/*
 * How one pod is helped to a card by evictions: a pure state machine, driven by evictor.c. It says
 * what to do next; it does nothing itself.
 *
 *     choose --set--> try each --all granted--> keep --> evict each --> wait until they have left
 *       ^  \-- none: over    |                             |                      |
 *       +------ refused -----+-----------------------------+            wait until it is bound
 *
 * Trying is a dry run, so that what a budget forbids is learnt before anything is done. Keeping
 * comes before the first eviction, so that nobody takes what becomes free. What was refused to us
 * is spared, and another set is chosen; what was evicted by then counts as gone in that choice.
 *
 * An eviction whose answer was lost may have taken effect: what the watch shows of the victim says
 * so, and it is sent again as long as that shows nothing. It names the UID, so again is harmless.
 *
 * Nothing more is sent once the pod has a card, is gone, or we don't lead any more.
 */
#pragma once

#include "macro.h"

/* Sets that are chosen for one pod at a time, and calls in a row that come to nothing. */
#define EVICT_CHOICES  8
#define EVICT_FAILURES 5

/* Between looks at the cache, and before a call that came to nothing is made again the first time.
 */
#define EVICT_LOOK_MS  UINT64_C(200)
#define EVICT_RETRY_MS UINT64_C(1000)

/* Longer than that nobody is waited for to end: an hour's grace period is not worth a card. */
#define EVICT_LEAVE_MS UINT64_C(600000)

enum evict_phase {
    EVICT_CHOOSING,
    EVICT_TRYING,
    EVICT_KEEPING, /* room is about to be kept */
    EVICT_EVICTING,
    EVICT_LEAVING, /* all are evicted, and some still there */
    EVICT_WAITING, /* the card is free */
    EVICT_OVER,
};

/* How the API server has answered. */
enum evict_answer {
    EVICT_GRANTED,
    EVICT_GONE,     /* that pod is not there any more */
    EVICT_REFUSED,  /* this victim: by a budget, or by whoever else is asked */
    EVICT_DENIED,   /* we have no right to evict */
    EVICT_UNSERVED, /* not in this version of the API */
    EVICT_FAILED,   /* try later; it may have taken effect */
};

enum evict_pod {
    EVICT_POD_PENDING,
    EVICT_POD_BINDING, /* it holds a card, and may lose it again */
    EVICT_POD_BOUND,
    EVICT_POD_GONE, /* or going, or it asks for something else now */
};

enum evict_input_type {
    EVICT_IN_CHOSEN,
    EVICT_IN_KEPT,
    EVICT_IN_ANSWER,
    EVICT_IN_LOOK, /* the wait is over */
};

struct evict_input {
    enum evict_input_type type;
    bool found;      /* CHOSEN: there is a set */
    bool guarded;    /* there is one, but budgets are against it */
    unsigned chosen; /* and so many are in it; 0: room is coming by itself */
    bool kept;       /* KEPT: whether */
    enum evict_answer answer;
    /* What is known now, with each input: */
    bool leads;
    enum evict_pod pod;
    bool fits;     /* the pod has room on one of its nodes, as things are */
    bool has_room; /* and room is kept for it */
    bool leaves;   /* the victim that is dealt with is gone or going */
    unsigned left; /* so many of those evicted are still there */
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
    EVICT_END_NEEDLESS, /* there is room without */
    EVICT_END_POD_GONE,
    EVICT_END_NO_SET,    /* nobody who may be evicted is in the way */
    EVICT_END_PROTECTED, /* and those who might were refused to us */
    EVICT_END_DENIED,
    EVICT_END_UNSERVED,
    EVICT_END_FAILED,  /* the API server did not answer */
    EVICT_END_NO_ROOM, /* could not be kept: memory, or the node has changed */
    EVICT_END_LINGERS, /* a victim does not leave */
    EVICT_END_TIME,    /* room was there, and it was not bound */
    EVICT_END_NOT_LEADING,
    EVICT_END_STOPPED, /* from outside, at any moment: evictions are off from now on */
};

#define EVICT_ANSWERS ((size_t)EVICT_FAILED + 1)
#define EVICT_ENDS    ((size_t)EVICT_END_STOPPED + 1)

/* Since the start. */
struct evictor_counts {
    uint64_t begun;                    /* pods that were to be helped */
    uint64_t ends[EVICT_ENDS];         /* and how that ended */
    uint64_t evictions[EVICT_ANSWERS]; /* that were not just tried, by their answers */
};

struct evict_output {
    enum evict_do action;
    enum evict_end end; /* END */
    unsigned at;        /* TRY, EVICT */
    uint64_t pause_ms;  /* WAIT */
    bool spare;         /* CHOOSE, END: the victim that was dealt with was refused to us */
    bool other_version; /* TRY, EVICT: of the API, from now on */
    bool room;          /* WAIT: from now on it only has to be bound */
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
    unsigned n; /* victims of the set */
    unsigned at;
    unsigned rest; /* from here on they were not evicted, as there was room without; n: all were */
    unsigned choices;
    unsigned failures;
    unsigned evicted; /* of all sets */
    bool refused;     /* some victim was, at some time */
    bool exchanged;   /* the version of the API */
};

/* The first thing to do is EVICT_DO_CHOOSE. */
void evict_machine_init(struct evict_machine *m, const struct evict_times *times);

struct evict_output evict_step(struct evict_machine *m, const struct evict_input *in,
                               uint64_t now_ms);
