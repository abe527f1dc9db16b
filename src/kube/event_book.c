/*
 * Decides by client-go's rules which events are sent. One table holds three kinds of record: an
 * event, a group of events that differ only in their message (also the record of the combined
 * event), and a pod. The digest includes the kind. It is 128 bits of SipHash with random keys of
 * the process, so a client cannot construct two events that collide.
 */
#include "kube/event_book.h"

#include "base/mem.h"
#include "kube/limit.h"

#define POD_BURST   25
#define POD_EACH_MS UINT64_C(300000)

/* 5 a second: a tenth of a kubelet's default limit of 50 a second. */
#define ALL_BURST   200
#define ALL_EACH_MS UINT64_C(200)

#define FORGET_MESSAGES_MS UINT64_C(600000)

#define DIGESTED_BYTES \
    (EVENT_NAMESPACE_BYTES + EVENT_NAME_BYTES + EVENT_UID_BYTES + EVENT_REASON_BYTES + 16)

enum kind {
    KIND_POD = 'p',
    KIND_GROUP = 'g',
    KIND_EVENT = 'e',
};

static void event_book_bucket_fill(struct event_bucket *b, uint64_t burst, uint64_t each_ms,
                                   uint64_t now_ms)
{
    *b = (struct event_bucket){.credit_ms = burst * each_ms, .at_ms = now_ms};
}

static bool event_book_bucket_take(struct event_bucket *b, uint64_t burst, uint64_t each_ms,
                                   uint64_t now_ms)
{
    assert(b->credit_ms <= burst * each_ms);
    uint64_t earned = now_ms - MIN_OF(b->at_ms, now_ms);
    b->credit_ms += MIN_OF(earned, burst * each_ms - b->credit_ms);
    b->at_ms = now_ms;
    if (b->credit_ms < each_ms)
        return false;
    b->credit_ms -= each_ms;
    return true;
}

/* ---- the table ---- */

static struct event_record *event_book_newer(const struct event_book *b,
                                             const struct event_record *r)
{
    return LIST_PREV(&b->by_age, r, struct event_record, link);
}

/* Pinned, or one of the two newest records: those are the event and its group while event_book_see
 * looks up the pod. */
static bool event_book_is_in_use(const struct event_book *b, const struct event_record *r)
{
    return r->pinned || event_book_newer(b, r) == NULL ||
           event_book_newer(b, event_book_newer(b, r)) == NULL;
}

/* A record that is in no list and no map. If the table is full, it is the oldest record that is not
 * in use, which is forgotten. */
static struct event_record *event_book_vacant(struct event_book *b)
{
    assert(b->n <= LIMIT_EVENT_RECORDS);
    if (b->n < LIMIT_EVENT_RECORDS)
        return &b->records[b->n++];
    struct event_record *r = LIST_LAST(&b->by_age, struct event_record, link);
    while (r != NULL && event_book_is_in_use(b, r))
        r = event_book_newer(b, r);
    if (r == NULL)
        return NULL;
    list_remove(&r->link);
    const struct event_record *known = map_del(&b->by_digest, r->key);
    assert(known == r);
    return r;
}

static void event_book_digest(const struct event_book *b, struct str text,
                              char out[EVENT_DIGEST_BYTES])
{
    for (size_t i = 0; i < COUNT_OF(b->seeds); i++) {
        uint64_t half = siphash13(b->seeds[i], text);
        memcpy(out + i * sizeof(half), &half, sizeof(half));
    }
}

static bool event_book_is_new(const struct event_record *r)
{
    return r->count == 0;
}

static void event_book_key_of(const struct event_book *b, enum kind kind,
                              const struct event_sight *e, char key[EVENT_DIGEST_BYTES])
{
    char bytes[DIGESTED_BYTES + EVENT_DIGEST_BYTES];
    struct buf text = BUF_ON(bytes);
    const struct str parts[] = {e->pod->namespace, e->pod->name, e->pod->uid, e->reason};
    size_t n_parts = kind == KIND_POD ? 3 : 4;
    buf_putc(&text, (char)kind);
    for (size_t i = 0; i < n_parts; i++) {
        buf_put(&text, parts[i]);
        buf_putc(&text, '\0');
    }
    if (kind != KIND_POD)
        buf_putc(&text, e->level == EVENT_WARNING ? 'w' : 'n');
    if (kind == KIND_EVENT) {
        event_book_digest(b, e->message, key);
        buf_put(&text, (struct str){key, EVENT_DIGEST_BYTES});
    }
    assert(!buf_failed(&text));
    event_book_digest(b, buf_str(&text), key);
}

/*
 * Finds or creates the record of that kind and makes it the newest. event_book_is_new() is true
 * until the caller raises its count. NULL: no memory, or all records are in use.
 */
static struct event_record *event_book_record(struct event_book *b, enum kind kind,
                                              const struct event_sight *e)
{
    char key[EVENT_DIGEST_BYTES];
    event_book_key_of(b, kind, e, key);
    struct event_record *r = map_get(&b->by_digest, (struct str){key, sizeof(key)});
    if (r != NULL) {
        list_remove(&r->link);
        list_push_front(&b->by_age, &r->link);
        return r;
    }
    r = event_book_vacant(b);
    if (r == NULL)
        return NULL;
    *r = (struct event_record){.key = {r->digest, sizeof(r->digest)}};
    memcpy(r->digest, key, sizeof(key));
    if (map_put(&b->by_digest, r) != OK) {
        /* map_put allocates only while the table grows, so r is the last record. */
        assert(r == &b->records[b->n - 1]);
        b->n--;
        return NULL;
    }
    list_push_front(&b->by_age, &r->link);
    return r;
}

/* ---- the advice ---- */

/* Whether the group has EVENT_MESSAGES other messages already. */
static bool event_book_is_too_varied(struct event_book *b, struct event_record *group,
                                     struct str message, uint64_t now_ms)
{
    uint64_t text = siphash13(b->seeds[0], message);
    assert(group->n_messages <= EVENT_MESSAGES);
    if (now_ms - group->seen_ms > FORGET_MESSAGES_MS)
        group->n_messages = 0;
    group->seen_ms = now_ms;
    for (unsigned i = 0; i < group->n_messages; i++) {
        if (group->messages[i] == text)
            return false;
    }
    if (group->n_messages == EVENT_MESSAGES)
        return true;
    group->messages[group->n_messages++] = text;
    return false;
}

static void event_book_count(struct event_book *b, struct event_record *r, uint64_t unix_ns)
{
    if (event_book_is_new(r))
        r->first_ns = b->last_ns = MAX_OF(unix_ns, b->last_ns + 1);
    r->count++;
}

enum event_advice event_book_see(struct event_book *b, const struct event_sight *e, uint64_t now_ms,
                                 uint64_t unix_ns, struct event_record **ret)
{
    enum event_advice advice = EVENT_SEND;
    struct event_record *group = event_book_record(b, KIND_GROUP, e);
    if (group == NULL)
        return EVENT_DROP;
    struct event_record *it = group;
    if (event_book_is_too_varied(b, group, e->message, now_ms))
        advice = EVENT_SEND_COMBINED;
    else
        it = event_book_record(b, KIND_EVENT, e);
    if (it == NULL)
        return EVENT_DROP;
    event_book_count(b, it, unix_ns);
    struct event_record *pod = event_book_record(b, KIND_POD, e);
    if (pod == NULL)
        return EVENT_DROP;
    if (event_book_is_new(pod)) {
        event_book_bucket_fill(&pod->bucket, POD_BURST, POD_EACH_MS, now_ms);
        pod->count = 1;
    }
    if (!event_book_bucket_take(&pod->bucket, POD_BURST, POD_EACH_MS, now_ms) ||
        !event_book_bucket_take(&b->all, ALL_BURST, ALL_EACH_MS, now_ms))
        return EVENT_DROP;
    *ret = it;
    return advice;
}

enum errc event_book_init(struct event_book *b, struct map_seed seed, struct map_seed other)
{
    *b = (struct event_book){.seeds = {seed, other}};
    list_init(&b->by_age);
    map_init(&b->by_digest, offsetof(struct event_record, key), seed);
    /* Time 0 is before every event, so the first event finds a full bucket. */
    event_book_bucket_fill(&b->all, ALL_BURST, ALL_EACH_MS, 0);
    b->records = mem_alloc(LIMIT_EVENT_RECORDS * sizeof(*b->records));
    return b->records == NULL ? ERR_NOMEM : OK;
}

void event_book_done(struct event_book *b)
{
    map_done(&b->by_digest);
    mem_free(b->records);
    b->records = NULL;
}
