/*
 * What a reflector does next: a pure function of its state, of what happened, of the time and of a
 * random number. The rules are those in reflector.h; reflector.c performs the actions.
 */
#pragma once

#include "macro.h"

enum reflector_phase {
    REFLECTOR_LIST_LATER, /* also the start */
    REFLECTOR_LISTING,
    REFLECTOR_WATCH_LATER,
    REFLECTOR_WATCHING,
};

struct reflector_backoff {
    uint64_t min_ms;
    uint64_t max_ms;
    uint64_t reset_ms; /* so long without a failure makes the next delay min_ms again */
};

struct reflector_state {
    enum reflector_phase phase;
    struct reflector_backoff backoff;
    uint64_t delay_ms;    /* the next failure's, before jitter; 0: none yet */
    uint64_t retry_at_ms; /* when the last failure's delay ended */
    uint64_t watch_start_ms;
    uint64_t listed_ms; /* when the last whole list was in */
    bool synced;        /* a whole list has been in */
    bool unreachable;   /* the last failure was no answer at all */
    bool denied;        /* the last attempt of a list: 403 or 404 */
    bool refreshed;     /* the last request was answered 401, and credentials were read anew */
    bool moved;         /* a watch brought something since the last list */
    bool progress;      /* the current watch brought something */
    unsigned garbled;   /* watches in a row that ended in nonsense before they brought anything */
    unsigned list_gone; /* lists in a row whose continue token expired */
};

enum reflector_event {
    REFLECTOR_ON_TIMER,    /* the action's delay is over; the first input of all */
    REFLECTOR_ON_PAGE,     /* a page of a list is in, and more follow */
    REFLECTOR_ON_LISTED,   /* the last page is in */
    REFLECTOR_ON_PROGRESS, /* an event or a bookmark brought a version that is new */
    REFLECTOR_ON_ENDED,    /* a watch ended after its stream had begun, in whatever way */
    REFLECTOR_ON_GARBLED,  /* a watch brought what is not an event */
    REFLECTOR_ON_FAILED,   /* any other failure of a request; an ERROR event */
    REFLECTOR_ON_RELIST,   /* somebody wants a list now; the request under way is canceled */
};

struct reflector_input {
    enum reflector_event event;
    /* With REFLECTOR_ON_FAILED: */
    unsigned status; /* of the answer or in the ERROR event; 0: there was none */
    uint64_t retry_after_ms;
    bool expired;   /* the Status says so by its reason, whatever its code */
    bool too_large; /* the Status says that our version is from the server's future */
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
    bool refresh;     /* read the credentials anew first */
    const char *note; /* for people; NULL: nothing to tell */
};

/* Zero in a field of `backoff` stands for client-go's value. */
void reflector_state_init(struct reflector_state *s, const struct reflector_backoff *backoff);

struct reflector_action reflector_step(struct reflector_state *s, const struct reflector_input *in,
                                       uint64_t now_ms, uint64_t random);
