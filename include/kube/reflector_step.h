/*
 * Step machine of the reflector: a pure function of its state, the event, the time and a random
 * number. The rules are in reflector.h; reflector.c performs the actions.
 */
#pragma once

#include "base/macro.h"

enum reflector_phase {
    REFLECTOR_LIST_LATER, /* also the start */
    REFLECTOR_LISTING,
    REFLECTOR_WATCH_LATER,
    REFLECTOR_WATCHING,
};

struct reflector_backoff {
    uint64_t min_ms;
    uint64_t max_ms;
    uint64_t reset_ms; /* after this time without a failure the next delay is min_ms again */
};

struct reflector_state {
    enum reflector_phase phase;
    struct reflector_backoff backoff;
    uint64_t delay_ms;    /* after the next failure, before jitter; 0: no failure yet */
    uint64_t retry_at_ms; /* when the last failure's delay ended */
    uint64_t watch_start_ms;
    uint64_t listed_ms; /* when the last complete list arrived */
    bool synced;        /* a complete list has arrived */
    bool unreachable;   /* the last failure: no answer */
    bool denied;        /* the last list attempt: the API server's own 403 or 404 */
    bool absent;        /* the last list attempt: a 404, from the API server or not */
    bool refreshed;     /* the last request got a 401, and the credentials were read again */
    bool moved;         /* a watch brought something since the last list */
    bool progress;      /* the current watch brought something */
    unsigned garbled;   /* garbled watches in a row since a watch last brought a new version */
    unsigned list_gone; /* lists in a row whose continue token expired */
};

enum reflector_event {
    REFLECTOR_ON_TIMER,    /* the action's delay is over; the first input of all */
    REFLECTOR_ON_PAGE,     /* a page of a list has arrived, and more follow */
    REFLECTOR_ON_LISTED,   /* the last page has arrived */
    REFLECTOR_ON_PROGRESS, /* an event or a bookmark brought a new version */
    REFLECTOR_ON_ENDED,    /* a watch ended after its stream had begun, normally or not */
    REFLECTOR_ON_GARBLED,  /* a watch brought something that is not an event */
    REFLECTOR_ON_FAILED,   /* any other failure of a request; an ERROR event */
    REFLECTOR_ON_RELIST,   /* the caller wants a list now; the call under way is cancelled */
};

struct reflector_input {
    enum reflector_event event;
    /* With REFLECTOR_ON_FAILED: */
    unsigned status; /* of the answer or in the ERROR event; 0: no answer */
    uint64_t retry_after_ms;
    bool own;       /* the API server's own answer: a Status whose code is this status */
    bool expired;   /* the Status has the reason Expired or Gone, whatever its code */
    bool too_large; /* the Status says that the requested version is newer than the server's */
    bool continued; /* a page with a continue token failed */
};

enum reflector_do {
    REFLECTOR_DO_NOTHING,
    REFLECTOR_DO_WAIT,  /* for delay_ms, then ON_TIMER */
    REFLECTOR_DO_LIST,  /* the first page; unpaged: all in one */
    REFLECTOR_DO_PAGE,  /* the next page */
    REFLECTOR_DO_WATCH, /* for watch_seconds */
};

struct reflector_action {
    enum reflector_do what;
    uint64_t delay_ms;
    unsigned watch_seconds;
    bool unpaged;
    bool refresh;     /* read the credentials again first */
    const char *note; /* for a log; NULL: none */
};

/* Zero in a field of `backoff` stands for client-go's value. */
void reflector_state_init(struct reflector_state *s, const struct reflector_backoff *backoff);

struct reflector_action reflector_step(struct reflector_state *s, const struct reflector_input *in,
                                       uint64_t now_ms, uint64_t random);
