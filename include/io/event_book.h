/*
 * Which events are worth sending: client-go's correlator, as a function of what was observed before
 * and of the time. It keeps digests, no texts, in a table of fixed size whose oldest entry goes
 * first; it allocates nothing after its start but the map's slots.
 *
 *   - The same event again is the same record, with a higher count.
 *   - Events of a pod that differ in their message only: from the tenth on they are one,
 * "combined", until none has come for 600 s.
 *   - A pod has 25 events at a time and one more every 300 s, be they new or again; what is beyond
 *     is counted and not sent.
 *
 * Beyond client-go: all pods together have a rate as well, since who can make binds fail can name
 * any number of pods.
 */
#pragma once

#include "event.h"
#include "map.h"

#define EVENT_DIGEST_BYTES 16

/* Messages of one pod and reason that are told apart. */
#define EVENT_MESSAGES 9

/* What may happen `burst` times at once and then once every `each_ms`. */
struct event_bucket {
    uint64_t credit_ms;
    uint64_t at_ms;
};

/* An event on the API server, or about to be; or what is known of a pod. */
struct event_record {
    struct str key; /* of digest */
    char digest[EVENT_DIGEST_BYTES];
    struct event_record *newer;
    struct event_record *older;
    bool pinned; /* by its user, as long as it may not be forgotten */

    uint64_t first_ns; /* Unix time, another one for each record */
    uint64_t count;
    bool made; /* its user's: the API server has it */
    void *post;

    /* Of all events that differ in their message only: */
    uint64_t seen_ms;
    uint64_t messages[EVENT_MESSAGES];
    unsigned n_messages;

    struct event_bucket bucket; /* of a pod */
};

struct event_book {
    struct event_record *records; /* owned, LIMIT_EVENT_RECORDS of them */
    size_t n;
    struct map by_digest;
    struct map_seed seeds[2];
    struct event_record *newest;
    struct event_record *oldest;
    uint64_t last_ns;
    struct event_bucket all;
};

struct event_sight {
    const struct event_subject *pod; /* each string within its limit: event_fits() */
    enum event_level level;
    struct str reason;
    struct str message;
};

enum event_advice {
    EVENT_SEND,
    EVENT_SEND_COMBINED, /* with a message that says so */
    EVENT_DROP,          /* too many, or no memory */
};

enum errc event_book_init(struct event_book *b, struct map_seed seed, struct map_seed other)
    _must_use_;
void event_book_done(struct event_book *b);

/*
 * An event has happened. *ret: its record, with the count raised, unless it is to be dropped; valid
 * until the next call unless it is pinned.
 */
enum event_advice event_book_see(struct event_book *b, const struct event_sight *e, uint64_t now_ms,
                                 uint64_t unix_ns, struct event_record **ret) _must_use_;
