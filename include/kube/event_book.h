/*
 * Decides which events are sent, with the rules of client-go's correlator: a function of earlier
 * events and of the time. It keeps digests, not texts, in a table of fixed size. A full table
 * forgets its oldest entry. After event_book_init only the map's slots are allocated.
 *
 *   - A repeated event has one record, with a higher count.
 *   - Events of a pod that differ only in their message: from the tenth on they become one event,
 *     "combined", until none has come for 600 s.
 *   - A pod may send a burst of 25 events, new or repeated, and then one every 300 s. Further
 *     events are counted and not sent.
 *
 * Beyond client-go: there is also a rate limit for all pods together, because a client that makes
 * binds fail can name any number of pods.
 */
#pragma once

#include "base/list.h"
#include "base/map.h"
#include "objects/event.h"

#define EVENT_DIGEST_BYTES 16

/* Different messages of one pod and reason that are sent as separate events. */
#define EVENT_MESSAGES 9

/* Rate limit: `burst` times at once, then once every `each_ms`. */
struct event_bucket {
    uint64_t credit_ms;
    uint64_t at_ms;
};

/* An event that was sent or will be; or a group of events; or a pod. */
struct event_record {
    struct str key; /* view of digest */
    char digest[EVENT_DIGEST_BYTES];
    struct list_link link; /* in the book's by_age */
    bool pinned;           /* set by the caller: the book must not forget the record */

    uint64_t first_ns; /* Unix time, unique for each record */
    uint64_t count;
    bool made;  /* set by the caller: the API server has the Event */
    void *post; /* set by the caller */

    /* Of a group (events that differ only in their message): */
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
    struct list by_age; /* the newest record first */
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
    EVENT_SEND_COMBINED, /* with a message that says that it stands for several events */
    EVENT_DROP,          /* too many events, or no memory */
};

enum errc event_book_init(struct event_book *b, struct map_seed seed, struct map_seed other)
    _must_use_;
void event_book_done(struct event_book *b);

/*
 * Records an event. *ret: its record with the count raised; not set with EVENT_DROP. A record that
 * is not pinned is valid until the next call.
 */
enum event_advice event_book_see(struct event_book *b, const struct event_sight *e, uint64_t now_ms,
                                 uint64_t unix_ns, struct event_record **ret) _must_use_;
