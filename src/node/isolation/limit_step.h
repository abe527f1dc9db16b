/*
 * Step machine of one container's memory limit on one card: when to check it, and whether it is
 * known to be missing. A pure function from state and input to the next action. A check reads the
 * limit back from the driver; if it is absent or too large it sets it, and reads it back again.
 *
 *     start -> check -> there, or set by us -> LIMIT_AGAIN_MS later: check -> ...
 *                | still absent: once more, then it is missing; checked again and again
 *                | not known, or no cgroup: once more; missing when LIMIT_GRACE_MS late
 *
 * A limit that is missing is so until it reads back, or the pod has ended: a container that starts
 * again does not change that, because it may end and start for ever. (While its pod is being
 * deleted none starts again: see limits_update.) One exception: of a container with a good limit
 * the cgroup is not there any more. As a rule it has ended, and its pod's status says so within
 * LIMIT_GRACE_MS. If the status comes later, it takes the finding back.
 */
#pragma once

#include "base/macro.h"

#define LIMIT_AGAIN_MS UINT64_C(60000) /* a good limit is checked again after this time */
#define LIMIT_RETRY_MS UINT64_C(1000)
#define LIMIT_POLL_MS  UINT64_C(5000)  /* one that is missing, or can't be checked */
#define LIMIT_GRACE_MS UINT64_C(30000) /* an answer may come so late */
#define LIMIT_TRIES    2U /* a limit is absent so often in a row before it is missing */

enum limit_do {
    LIMIT_REST,  /* nothing until the next input; no timer runs */
    LIMIT_WAIT,  /* an ON_TIMER after delay_ms, in place of an earlier one */
    LIMIT_CHECK, /* the answer is one of the events from ON_THERE on */
};

enum limit_event {
    LIMIT_ON_START,    /* the container runs, in a cgroup of its own; at any time */
    LIMIT_ON_END,      /* it does not run any more; at any time */
    LIMIT_ON_TIMER,    /* after LIMIT_WAIT */
    LIMIT_ON_THERE,    /* the limit is the share, or less */
    LIMIT_ON_OURS,     /* it was not; we have set it, and it reads back */
    LIMIT_ON_ABSENT,   /* it does not read back, although we have set it, or it can't be set */
    LIMIT_ON_UNKNOWN,  /* the driver does not answer, or its answer says nothing of the limit */
    LIMIT_ON_LOST,     /* the card is unhealthy without us: it gets no pods anyway */
    LIMIT_ON_NO_GROUP, /* there is no cgroup of the container */
};

enum limit_news {
    LIMIT_NEWS_NONE,
    LIMIT_NEWS_OURS,    /* the container ran without its limit until we set it */
    LIMIT_NEWS_MISSING, /* it is missing from now on */
    LIMIT_NEWS_BACK,    /* it was missing, and is there now */
    LIMIT_NEWS_ENDED,   /* it was missing, because the container had ended */
};

struct limit_input {
    enum limit_event event;
    uint64_t now_ms;
};

struct limit_action {
    enum limit_do what;
    uint64_t delay_ms;
    enum limit_news news;
};

/* All zero at first. */
struct limit_state {
    bool running;
    bool checking;
    bool enforced;     /* the last check was good, and none is overdue */
    bool missing;      /* reported by LIMIT_NEWS_MISSING, and not taken back */
    bool absent;       /* missing by an answer of the driver, not for want of one */
    bool vanished;     /* missing for the one reason that a cgroup with a good limit is away */
    bool seen;         /* its cgroup was there once */
    unsigned absences; /* in a row */
    uint64_t due_ms;   /* when an answer is due: at the start, or as long as the last one holds; or
                          when the cgroup was first found to be away */
};

struct limit_action limit_step(struct limit_state *s, const struct limit_input *in);
