/*
 * Step machine of the registration with the kubelet: what the device plugin does next. A pure
 * function from state and input to the next action; plugin.c performs the actions.
 *
 *     serve -> ask (Register) -> await ListAndWatch, REGISTER_AWAIT_MS -> report to the owner
 *                 ^                                                          |
 *                 +--- pause, which doubles <--- close all streams <---------+
 *                                                 a stream is gone
 *
 * What the kubelet does, and what follows from it:
 *
 *   - It calls us back inside Register. So the socket is served first.
 *   - When a stream of ListAndWatch ends, it disconnects the client that is registered at that
 *     moment, which may be a newer one. So all streams are closed before Register, a pause leaves
 *     it time to notice, and any stream that ends leads to a new registration.
 *   - When it starts, it removes all sockets in the folder and then creates its own. So a socket
 *     that is gone is served anew, and a new socket of the kubelet leads to Register at once. If
 *     one is under way, a pause comes first: of two clients one could have the stream while the
 *     other, which ends, takes the registration with it.
 *
 * A stream does not say which Register it comes from. One that comes later than the pause, after
 * the next Register, would be taken for a stream of that one. The kubelet begins it right after it
 * has answered Register.
 */
#pragma once

#include "base/macro.h"

#define REGISTER_PAUSE_MS UINT64_C(500)
/* After a Register that failed. Short at first: a kubelet that starts makes its socket some
 * milliseconds before it listens, and soon afterwards fails the pods whose devices it lacks. */
#define REGISTER_AGAIN_MS     UINT64_C(10)
#define REGISTER_PAUSE_MAX_MS UINT64_C(16000)
#define REGISTER_AWAIT_MS     UINT64_C(10000)
/* A registration that is kept so long was a good one: the next pause is the shortest again. */
#define REGISTER_STEADY_MS UINT64_C(10000)

/* Every action but STAY first cancels the timer and a Register that is under way. */
enum register_action_type {
    REGISTER_STAY,
    REGISTER_WAIT,   /* ON_TIMER after delay_ms */
    REGISTER_SERVE,  /* drops the socket and all streams, if any, and listens: ON_SERVED or
                        ON_NOT_SERVED */
    REGISTER_CLOSE,  /* ends all streams; ON_TIMER after delay_ms */
    REGISTER_ASK,    /* sends Register: ON_DONE or ON_FAILED */
    REGISTER_REPORT, /* registered: reports it to the owner; ON_TIMER after delay_ms */
};

enum register_event {
    REGISTER_ON_START, /* once, first */
    REGISTER_ON_TIMER,
    REGISTER_ON_SERVED,
    REGISTER_ON_NOT_SERVED,
    REGISTER_ON_DONE,
    REGISTER_ON_FAILED,
    /* At any time. The two about streams never lead to SERVE or ASK, and ON_DONE and ON_FAILED
     * never to ASK: a server or a client may not be freed while it calls back. */
    REGISTER_ON_STREAM,      /* ListAndWatch has begun */
    REGISTER_ON_STREAM_GONE, /* it has ended, and not by CLOSE or SERVE */
    REGISTER_ON_KUBELET,     /* the kubelet's socket was created */
    REGISTER_ON_LOST,        /* our socket is not in the folder any more, or the folder is gone */
};

struct register_action {
    enum register_action_type type;
    uint64_t delay_ms;
    bool restarted; /* TELL: the kubelet has started since the last TELL, or that is not known,
                       as at the first one */
};

enum register_phase {
    REGISTER_UNSERVED, /* no socket; the timer tries again */
    REGISTER_SERVING,  /* SERVE is under way */
    REGISTER_PAUSED,
    REGISTER_ASKING,
    REGISTER_AWAITING,
    REGISTER_DONE,
};

/* All zero at first. */
struct register_state {
    enum register_phase phase;
    unsigned streams;  /* open */
    bool counts;       /* PAUSED: a stream that begins is one of the last Register */
    bool opened;       /* a stream has begun since the last Register */
    bool dropped;      /* SERVE dropped a stream, or a Register that was under way */
    bool reported;     /* ever */
    bool restarted;    /* the kubelet's socket was created since the last TELL */
    unsigned failures; /* registrations that did not last, since the last that did */
    unsigned unserved; /* SERVE that failed, one after the other */
};

struct register_action register_step(struct register_state *s, enum register_event event);
