/*
 * The step machine of one Binding, up to a certain end. bind.c carries out its actions.
 *
 *              +--------------------- pause <-----------------+
 *              v                                              |
 *   queued -> post -- created ---------------------------> confirm
 *              |  \-- refused, nothing sent -------------> cancel
 *              |  \-- refused ---------------------------> read, and cancel where it is unbound
 *              |  \-- not sent, throttled ---------------> pause, post
 *              +----- unknown -> read -- bound as asked -> confirm
 *                                 |  \-- elsewhere, gone -> cancel
 *                                 +----- unbound ---------> pause, post the same Binding again
 *
 * The API server may commit a Binding of unknown outcome after a read has shown the pod unbound (a
 * 504 leaves its handler running). To send the same Binding again, for the same card, is always
 * correct: only one copy can take effect. To release the card is not. So when the deadline comes,
 * the request is answered and the reservation stays. It is canceled only by a read that is sent
 * at least LIMIT_DOUBT_MS after the last Binding of unknown outcome. While reads fail, it stays.
 *
 * A refusal is followed by a read too: a proxy may have sent the Binding twice. The API server then
 * refuses the second copy after it has carried out the first, for example because the pod is bound
 * and being deleted. After a 401 or 429 the Binding is sent again, and is read only where the bind
 * gives up: a read after each would double the requests to an API server that is overloaded.
 *
 * The same holds where the pod is gone: API servers before 1.27 ignore a Binding's UID, so a
 * Binding in doubt may bind the next pod of that name.
 */
#pragma once

#include "daemon/backend/backend.h"

enum bind_phase {
    BIND_QUEUED, /* waits for its node's turn */
    BIND_POSTING,
    BIND_READING,
    BIND_PAUSED,
    BIND_OVER,
};

struct bind_machine {
    enum bind_phase phase;
    bool read_next;   /* after the pause: true: read; false: post */
    bool refreshed;   /* credentials were read again once */
    bool created;     /* the API server reported the pod bound: no Binding of ours is under way */
    bool in_doubt;    /* a Binding that was sent may still commit */
    bool refused;     /* the last Binding was: a read that shows "unbound" ends the bind */
    bool turned_away; /* a Binding was answered 401 or 429: the bind does not give up unread */
    uint64_t doubt_until_ms; /* a read sent from then on can prove that the pod is unbound */
    uint64_t read_sent_ms;
    uint64_t deadline_ms; /* when the waiting requests must be answered */
    unsigned failures;    /* consecutive, for the back-off */
    unsigned outdated;    /* Bindings that were refused because the pod had changed */
};

enum bind_seen {
    SEEN_AS_ASKED,  /* on our node, with our cards */
    SEEN_HERE,      /* on our node, with other cards: another client bound the pod */
    SEEN_ELSEWHERE, /* on another node */
    SEEN_UNBOUND,
    SEEN_GONE,    /* no such pod, or a pod of that name with another UID */
    SEEN_NOTHING, /* the read failed */
};

enum bind_input_type {
    BIND_IN_TURN, /* the node's turn has come */
    BIND_IN_POSTED,
    BIND_IN_READ,
    BIND_IN_WAKE,     /* the pause is over */
    BIND_IN_DEADLINE, /* the requests must be answered; the caller has canceled a post or read under
                         way */
    BIND_IN_UNPROVEN, /* the cache did not accept the last CONFIRM or CANCEL: a read must follow */
};

struct bind_input {
    enum bind_input_type type;
    enum post_result post;
    bool unsent; /* POST_REFUSED by cardpack itself: nothing was sent */
    enum bind_seen seen;
    bool edited; /* with SEEN_UNBOUND: the pod's request is not the reserved one any more */
    uint64_t retry_after_ms;
    uint64_t random; /* jitter */
};

enum bind_action {
    BIND_DO_POST,
    BIND_DO_REFRESH_POST, /* read the credentials again, then post */
    BIND_DO_READ,
    BIND_DO_PAUSE,
    BIND_DO_CONFIRM, /* the pod is bound as asked; the machine is over, unless that is unproven */
    BIND_DO_CANCEL,  /* this bind did not bind the pod; the same */
};

struct bind_output {
    enum bind_action action;
    uint64_t pause_ms; /* with BIND_DO_PAUSE */
    bool answer;       /* first answer the waiting requests: the outcome is in doubt */
    bool read_back;    /* with BIND_DO_CONFIRM: a read has proved it */
};

void bind_step_init(struct bind_machine *m, uint64_t deadline_ms);

/* The input must fit the phase, as the switch of bind_step.c shows. */
struct bind_output bind_step(struct bind_machine *m, const struct bind_input *in, uint64_t now_ms);
