/*
 * How one Binding is brought to an end that is certain: a pure state machine, driven by bind.c and
 * by the simulation. It says what to do next; it does nothing itself.
 *
 *              +--------------------- pause <-----------------+
 *              v                                              |
 *   queued -> post -- created ---------------------------> confirm
 *              |  \-- refused ---------------------------> cancel
 *              |  \-- not sent, throttled ---------------> pause, post
 *              +----- unknown -> read -- bound as asked -> confirm
 *                                 |  \-- elsewhere, gone -> cancel
 *                                 +----- unbound ---------> pause, post the same Binding again
 *
 * A Binding of unknown outcome may be committed by the API server after we have read that the pod
 * is unbound (a 504 leaves its handler running). Sending the same Binding again, to the same card,
 * is then always right: only one of the two can win. Giving up is not: so when the one who waits
 * has to be answered, the reservation stays, and is only canceled by a read that is later than the
 * last such Binding by LIMIT_SETTLE_MS. While nothing can be read, it stays.
 *
 * The same holds where the pod is gone: API servers before 1.27 ignore a Binding's UID, so one in
 * doubt may bind the next pod of that name.
 */
#pragma once

#include "backend.h"

enum bind_phase {
    BIND_QUEUED, /* waits for its node's turn */
    BIND_POSTING,
    BIND_READING,
    BIND_PAUSED,
    BIND_OVER,
};

struct bind_machine {
    enum bind_phase phase;
    bool read_next;          /* what follows a pause: a read, or a post */
    bool refreshed;          /* credentials have been read anew once */
    bool created;            /* the API server has said so: nothing of ours is under way any more */
    bool in_doubt;           /* a Binding was sent that may still commit */
    uint64_t doubt_until_ms; /* a read sent from then on that says "unbound" is the truth */
    uint64_t read_sent_ms;
    uint64_t deadline_ms; /* of whoever waits for the answer */
    unsigned failures;    /* without progress, for the back-off */
};

enum bind_seen {
    SEEN_AS_ASKED,  /* our node, our card */
    SEEN_HERE,      /* our node, by another hand */
    SEEN_ELSEWHERE, /* another node */
    SEEN_UNBOUND,
    SEEN_GONE,    /* no such pod, or another UID under its name */
    SEEN_NOTHING, /* the read failed */
};

enum bind_input_type {
    BIND_IN_TURN, /* the node's turn has come */
    BIND_IN_POSTED,
    BIND_IN_READ,
    BIND_IN_WAKE,     /* the pause is over */
    BIND_IN_DEADLINE, /* the one who waits must be answered; a post or read under way is canceled */
};

struct bind_input {
    enum bind_input_type type;
    enum post_result post;
    enum bind_seen seen;
    uint64_t retry_after_ms;
    uint64_t random; /* jitter */
};

enum bind_action {
    BIND_DO_POST,
    BIND_DO_REFRESH_POST, /* credentials anew, then post */
    BIND_DO_READ,
    BIND_DO_PAUSE,
    BIND_DO_CONFIRM, /* bound as asked; over */
    BIND_DO_CANCEL,  /* surely not bound by us; over */
};

struct bind_output {
    enum bind_action action;
    uint64_t pause_ms; /* PAUSE */
    bool answer;       /* tell who waits that it is not settled yet */
    bool read_back;    /* CONFIRM: a read proved it */
};

void bind_machine_init(struct bind_machine *m, uint64_t deadline_ms);

/* The cache would not take a CONFIRM without a read: the machine goes on with one. */
struct bind_output bind_verify(struct bind_machine *m, uint64_t now_ms);

struct bind_output bind_step(struct bind_machine *m, const struct bind_input *in, uint64_t now_ms);
