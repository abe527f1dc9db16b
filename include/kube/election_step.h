/*
 * Step machine of the leader election, with client-go's algorithm: a pure function of the state,
 * the event, the time and a random number. election.c performs the actions.
 *
 *   - A replica measures the validity of the Lease by its own clock, from the last change that it
 *     saw. It never compares the times in the Lease with its clock. It takes a held Lease only
 *     after the Lease has not changed for its whole duration.
 *   - A replica leads for renew_deadline from the moment at which it sent its last successful
 *     write. renew_deadline is at most two thirds of the Lease duration, so a leader that is cut
 *     off or stopped has ended before another replica takes the Lease. This is no fence: requests
 *     that the old leader sent by then may still arrive, and its successor has to wait for them
 *     too (ELECTION_WON says how long).
 *   - Every write carries the resourceVersion that was read, so one of two concurrent writes fails.
 *
 * Beyond client-go:
 *   - A follower that its own kube-scheduler calls writes an annotation to the Lease
 *     (ELECTION_WRITE_WANT). The leader sees it (ELECTION_ASKED_FOR). When the leader then releases
 *     the Lease, the other replicas wait for a moment before they try to take it.
 *   - A denied call proves nothing about other replicas: it counts as any other failure. So a
 *     process without the rights to the Lease never leads.
 *   - A leader whose Lease expired leads again when it renews the Lease, if the Lease's transitions
 *     prove that no other replica took it meanwhile.
 */
#pragma once

#include "base/macro.h"

struct election_times {
    uint64_t lease_ms;          /* the duration that this replica writes; whole seconds */
    uint64_t renew_deadline_ms; /* at most two thirds of lease_ms */
    uint64_t retry_ms;
};

enum election_phase {
    ELECTION_WAITING, /* also the start */
    ELECTION_READING,
    ELECTION_CREATING,
    ELECTION_WRITING,
};

enum election_write {
    ELECTION_WRITE_ACQUIRE,
    ELECTION_WRITE_RENEW,
    ELECTION_WRITE_WANT,
    ELECTION_WRITE_RELEASE,
};

enum election_role {
    ELECTION_FOLLOWS,
    ELECTION_LEADS, /* until leads_until_ms */
};

struct election_state {
    struct election_times times;
    enum election_phase phase;
    enum election_write write; /* of the phases CREATING and WRITING */
    enum election_role role;
    bool known; /* the last version read is current as far as known: a write may build on it */
    bool ever_read;
    bool stopping; /* will not lead again */
    bool release;  /* hand over as soon as the call under way has ended */

    uint64_t sent_ms;        /* when the call under way was sent */
    uint64_t leads_until_ms; /* from the last successful write */

    /* The Lease at the last read: */
    bool held;
    bool mine;
    bool released;     /* not held, because its holder released it */
    uint64_t heard_ms; /* when its spec last changed */
    uint64_t duration_ms;
    bool wanted_by_other;
    uint64_t wanted_ms; /* when that annotation last changed */

    bool tried; /* has tried to acquire since a read last showed another holder or none */

    /* The leader before this replica, as known when this replica last tried to acquire: */
    bool handed_over;  /* it released the Lease */
    bool created;      /* unknown: there was no Lease, or its history is not reliable */
    uint64_t ended_ms; /* otherwise: the end of its leadership by its own rules */

    uint64_t want_until_ms; /* kube-scheduler needs this replica until then */
    uint64_t want_again_ms; /* when the annotation may be written again */
    unsigned conflicts;     /* in a row */
};

enum election_event {
    ELECTION_ON_TIMER,    /* the wait is over; the first input of all */
    ELECTION_ON_READ,     /* the Lease was read */
    ELECTION_ON_ABSENT,   /* the Lease does not exist */
    ELECTION_ON_WROTE,    /* the write took effect */
    ELECTION_ON_CONFLICT, /* the write had no effect, because another client wrote first */
    ELECTION_ON_FAILED,   /* the result of the call is unknown, or the call was denied */
    ELECTION_ON_ASKED,    /* kube-scheduler called this replica; ends a wait */
    ELECTION_ON_RELEASE,  /* hand over; ends a wait */
    ELECTION_ON_STOP,     /* hand over and never lead again; ends a wait */
};

struct election_input {
    enum election_event event;
    /* With ON_READ: */
    bool held;
    bool mine;
    bool released; /* not held, as a replica's release leaves it; a manual edit does not look so */
    bool taken;    /* its transitions changed since the last read or write: a holder took it */
    bool changed;  /* its spec changed since the last read */
    uint64_t duration_ms;
    bool wanted_changed; /* its annotation changed since the last read */
    bool wanted_by_other;
};

enum election_do {
    ELECTION_DO_NOTHING, /* a call or a wait is under way, or the election has ended */
    ELECTION_DO_WAIT,    /* for delay_ms, then ON_TIMER */
    ELECTION_DO_READ,
    ELECTION_DO_CREATE, /* the Lease, held by this replica */
    ELECTION_DO_WRITE,  /* `write`, over the version that was read or written last */
};

enum election_news {
    ELECTION_NO_NEWS,
    ELECTION_WON,       /* leads from now on */
    ELECTION_LOST,      /* no longer leads; after ON_STOP: ended, cancel the call under way */
    ELECTION_ASKED_FOR, /* another replica wants the Lease */
};

struct election_action {
    enum election_do what;
    enum election_write write;
    uint64_t delay_ms;
    enum election_news news;
    /*
     * With WON: whether the leader before released the Lease, so that none of its requests is under
     * way. If not, ended_ms says until when it may have led.
     */
    bool handed_over;
    uint64_t ended_ms;
};

void election_state_init(struct election_state *s, const struct election_times *times);

struct election_action election_step(struct election_state *s, const struct election_input *in,
                                     uint64_t now_ms, uint64_t random);

bool election_leads(const struct election_state *s, uint64_t now_ms);
