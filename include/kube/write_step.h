/*
 * Step machine of one object whose content a program wishes, as a ConfigMap or its own Node: which
 * call to the API server comes next. A pure function from state and input to the next action.
 *
 *     wish -> PATCH -> done -> (check_ms later) PATCH -> ...
 *               | 404, and the object may be made: CREATE; if the wish is empty: done
 *               | else: a pause that doubles, then PATCH
 *
 * A wish is sent at once, in a pause too: there are few. When the object was changed by another
 * program (a drift) it is written again, more and more rarely if that goes on: two programs that
 * write the same field must not fill the API server with it. One call is under way at a time.
 */
#pragma once

#include "base/macro.h"

#define WRITE_RETRY_MS       UINT64_C(250)
#define WRITE_RETRY_MAX_MS   UINT64_C(30000)
#define WRITE_DRIFT_MS       UINT64_C(1000)
#define WRITE_DRIFT_MAX_MS   UINT64_C(60000)
#define WRITE_DRIFT_RESET_MS UINT64_C(300000) /* without a drift the next is written at once */

enum write_do {
    WRITE_REST, /* nothing until the next input; a timer that runs goes on */
    WRITE_WAIT, /* an WRITE_ON_TIMER after delay_ms, in place of an earlier one */
    WRITE_PATCH,
    WRITE_CREATE,
};

enum write_event {
    WRITE_ON_WISH,  /* another content is wanted; at any time */
    WRITE_ON_DRIFT, /* the object is not as it was written; at any time */
    WRITE_ON_TIMER,
    WRITE_ON_DONE,
    WRITE_ON_ABSENT, /* the PATCH got a 404 */
    WRITE_ON_EXISTS, /* the CREATE got a 409 */
    WRITE_ON_FAILED, /* it may have taken effect */
};

struct write_input {
    enum write_event event;
    bool empty; /* ON_ABSENT: without the object the wish is fulfilled */
    uint64_t now_ms;
    uint64_t random; /* for pauses */
};

struct write_action {
    enum write_do what;
    uint64_t delay_ms;
};

/* All zero at first, but for creates and check_ms. */
struct write_state {
    bool creates;      /* the object may be made */
    uint64_t check_ms; /* so long after a success it is written again; 0: never */

    enum write_do call; /* under way: PATCH or CREATE; WRITE_REST: none */
    bool due;           /* what is wanted has not been sent */
    unsigned failures;  /* in a row */
    unsigned drifts;    /* in a row */
    uint64_t drift_ms;  /* when the last one came */
};

struct write_action write_step(struct write_state *s, const struct write_input *in);
