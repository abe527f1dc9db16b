/*
 * Who leads: the algorithm of client-go's leader election as a pure function of its state, of what
 * happened, of the time and of a random number. election.c performs the actions.
 *
 *   - A lease is valid as long as its holder is heard of, by our own clock: the times in it are
 *     never compared with ours. It has to stay as it is for its whole duration before it is taken.
 *   - We lead for renew_deadline from the moment at which the last write that succeeded was sent,
 *     which is shorter than the lease by a third at least: a leader that is cut off, or stopped,
 *     has ended before anybody takes over. That is no fence: what it had sent by then may still
 *     arrive, so a successor has to wait for that too (ELECTION_WON says how long).
 *   - Every write carries the version that was read, so of two that write one fails.
 *
 * Beyond client-go:
 *   - A follower that is asked by its own scheduler says so in an annotation of the lease
 *     (ELECTION_WRITE_WANT), and the leader is told (ELECTION_ASKED_FOR). When it then releases the
 *     lease, all but the one that asked hold back for a moment.
 *   - Without the right to read the lease, and if it never had it, a process runs alone after the
 *     time of a lease: an API server that starts denies everything for a moment. It goes on trying,
 *     and joins when it may. A right to read but not to create is a mistake, and nobody leads.
 *   - Who lost its lease for a while to nobody goes on leading: the lease's own history proves that
 *     nobody else did.
 */
#pragma once

#include "macro.h"

struct election_times {
    uint64_t lease_ms;          /* what we write; whole seconds */
    uint64_t renew_deadline_ms; /* at most two thirds of it */
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
    ELECTION_ALONE, /* without a lease */
};

struct election_state {
    struct election_times times;
    enum election_phase phase;
    enum election_write write; /* of the phases CREATING and WRITING */
    enum election_role role;
    bool known; /* what was read last may be written to */
    bool ever_read;
    bool denied; /* to read it, each time since denied_ms */
    uint64_t denied_ms;
    bool stopping; /* will not lead again */
    bool release;  /* hand over as soon as the call under way is over */

    uint64_t sent_ms;        /* of the call under way */
    uint64_t leads_until_ms; /* by the last write that succeeded */

    /* The lease as it was read last: */
    bool held;
    bool mine;
    bool released;     /* not held, by a release */
    uint64_t heard_ms; /* when its spec last changed */
    uint64_t duration_ms;
    bool wanted_by_other;
    uint64_t wanted_ms; /* when that annotation last changed */

    /* Of who led before, when we last tried to acquire; `tried` since it was last not ours: */
    bool tried;
    bool handed_over;
    bool created;       /* it is not known */
    uint64_t rivals_ms; /* then: how long one may go on that has not found out */
    uint64_t ended_ms;  /* else: by its own rules */

    uint64_t want_until_ms; /* we are asked by a scheduler */
    uint64_t want_again_ms; /* when the lease may be told again */
    unsigned conflicts;     /* in a row */
};

enum election_event {
    ELECTION_ON_TIMER,    /* the wait is over; the first input of all */
    ELECTION_ON_READ,     /* the lease was read */
    ELECTION_ON_ABSENT,   /* there is none */
    ELECTION_ON_WROTE,    /* the write took effect */
    ELECTION_ON_CONFLICT, /* it did not, since somebody else wrote */
    ELECTION_ON_DENIED,   /* no right to do that */
    ELECTION_ON_FAILED,   /* nothing is known */
    ELECTION_ON_ASKED,    /* by a scheduler; while waiting the wait is over */
    ELECTION_ON_RELEASE,  /* hand over; the same */
    ELECTION_ON_STOP,     /* the same, and never lead again */
};

struct election_input {
    enum election_event event;
    /* With ON_READ: */
    bool held;
    bool mine;
    bool released; /* not held, as a release leaves it: not as somebody's hand does */
    bool taken;    /* by anybody, since it was read or written last: its transitions tell */
    bool changed;  /* its spec, since it was read last */
    uint64_t duration_ms;
    bool wanted_changed; /* its annotation, since it was read last */
    bool wanted_by_other;
};

enum election_do {
    ELECTION_DO_NOTHING, /* go on as it is: a call is under way, or a wait, or all is over */
    ELECTION_DO_WAIT,    /* for delay_ms, then ON_TIMER */
    ELECTION_DO_READ,
    ELECTION_DO_CREATE, /* the lease, held by us */
    ELECTION_DO_WRITE,  /* `write`, over the version that was read or written last */
};

enum election_news {
    ELECTION_NO_NEWS,
    ELECTION_WON,        /* leads from now on */
    ELECTION_LOST,       /* leads no more; after ON_STOP: all is over, the call under way too */
    ELECTION_RUNS_ALONE, /* leads without a lease; told anew each time that it is denied */
    ELECTION_ASKED_FOR,  /* another one wants the lease */
};

struct election_action {
    enum election_do what;
    enum election_write write;
    uint64_t delay_ms;
    enum election_news news;
    /*
     * With WON: whether the one before has released the lease, so that nothing of it is under way;
     * and else, until when it may have led. With RUNS_ALONE: when the read was sent that was
     * denied.
     */
    bool handed_over;
    uint64_t ended_ms;
};

void election_state_init(struct election_state *s, const struct election_times *times);

struct election_action election_step(struct election_state *s, const struct election_input *in,
                                     uint64_t now_ms, uint64_t random);

/* Whether it leads at this moment. */
bool election_leads(const struct election_state *s, uint64_t now_ms);
