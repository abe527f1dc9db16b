/*
 * The rules of a reflector. Differences from client-go:
 *
 *   - Every list reads the newest state (resourceVersion ""): an allocator that goes back to an
 *     older state than it has seen gives a card to two pods.
 *   - client-go waits for a back-off before any relist. Here an expired version (410) relists at
 *     once if a watch has brought something since the last list, or that list is not recent. So the
 *     cache is not outdated for the time of a back-off. If lists and 410s alternate, the back-off
 *     applies.
 *   - A continue token that expired restarts the paged list once. If a token expires again, the
 *     list is slower than etcd's compaction and would never end: then, as in client-go, the list
 *     is requested without pages.
 *   - The time without failures that resets the back-off counts from the end of the last delay, not
 *     from its start: otherwise long delays and slow failures would count as quiet.
 */
#include "kube/reflector_step.h"

/* After a list newer than this, an expired version backs off, unless a watch brought something. */
#define RELIST_APART_MS  10000
#define BACKOFF_MIN_MS   800
#define BACKOFF_MAX_MS   30000
#define BACKOFF_RESET_MS 120000

/* Limit for Retry-After: an outdated cache costs more than one request. */
#define RETRY_AFTER_MAX_MS 300000

/* A watch that ends sooner without an event has failed, even if it ended normally: otherwise the
 * reflector would start watches in a tight loop. */
#define WATCH_SHORT_MS 1000

/* timeoutSeconds of a watch: random, so that many watches don't end at the same time. */
#define WATCH_SECONDS_MIN  300
#define WATCH_SECONDS_SPAN 301

/* After so many garbled watches from one version the reflector lists again. */
#define GARBLED_MAX 3

void reflector_state_init(struct reflector_state *s, const struct reflector_backoff *backoff)
{
    *s = (struct reflector_state){.phase = REFLECTOR_LIST_LATER, .backoff = *backoff};
    if (s->backoff.min_ms == 0)
        s->backoff.min_ms = BACKOFF_MIN_MS;
    if (s->backoff.max_ms == 0)
        s->backoff.max_ms = BACKOFF_MAX_MS;
    if (s->backoff.reset_ms == 0)
        s->backoff.reset_ms = BACKOFF_RESET_MS;
}

static struct reflector_action reflector_step_list_now(struct reflector_state *s)
{
    s->phase = REFLECTOR_LISTING;
    return (struct reflector_action){.what = REFLECTOR_DO_LIST, .unpaged = s->list_gone > 1};
}

static struct reflector_action reflector_step_watch_now(struct reflector_state *s, uint64_t now_ms,
                                                        uint64_t random)
{
    s->phase = REFLECTOR_WATCHING;
    s->watch_start_ms = now_ms;
    s->progress = false;
    return (struct reflector_action){
        .what = REFLECTOR_DO_WATCH,
        .watch_seconds = WATCH_SECONDS_MIN + (unsigned)(random % WATCH_SECONDS_SPAN),
    };
}

/* After a failure: wait, then list or watch as `later` says. */
static struct reflector_action reflector_step_back_off(struct reflector_state *s,
                                                       enum reflector_phase later,
                                                       uint64_t at_least_ms, uint64_t now_ms,
                                                       uint64_t random)
{
    const struct reflector_backoff *b = &s->backoff;
    assert(later == REFLECTOR_LIST_LATER || later == REFLECTOR_WATCH_LATER);
    assert(b->min_ms > 0 && s->delay_ms <= MAX_OF(b->min_ms, b->max_ms));
    if (s->delay_ms == 0 || now_ms >= s->retry_at_ms + b->reset_ms)
        s->delay_ms = b->min_ms;
    uint64_t delay_ms = s->delay_ms + random % (s->delay_ms + 1);
    s->delay_ms = MIN_OF(s->delay_ms * 2, b->max_ms);
    delay_ms = MAX_OF(delay_ms, MIN_OF(at_least_ms, RETRY_AFTER_MAX_MS));
    s->retry_at_ms = now_ms + delay_ms;
    s->phase = later;
    return (struct reflector_action){.what = REFLECTOR_DO_WAIT, .delay_ms = delay_ms};
}

static struct reflector_action reflector_step_list_failed(struct reflector_state *s,
                                                          const struct reflector_input *in,
                                                          uint64_t now_ms, uint64_t random)
{
    struct reflector_action a;
    bool gone = in->continued && (in->status == 410 || in->expired);
    s->denied = in->own && (in->status == 403 || in->status == 404);
    s->absent = in->status == 404;
    if (gone && ++s->list_gone == 1) {
        a = reflector_step_list_now(s);
    } else if (in->status == 401 && !s->refreshed) {
        s->refreshed = true;
        a = reflector_step_list_now(s);
    } else {
        a = reflector_step_back_off(s, REFLECTOR_LIST_LATER, in->retry_after_ms, now_ms, random);
    }
    a.note = gone ? "list outlived its continue token" : "list failed";
    return a;
}

/* Whether the watch may be retried from the same version: after 401, 429, most of 5xx or no answer
 * the version is still valid. */
static bool reflector_step_version_survives(const struct reflector_input *in)
{
    if (in->expired || in->too_large)
        return false;
    return in->status == 0 || in->status == 401 || in->status == 429 ||
           (in->status >= 500 && in->status != 504);
}

static struct reflector_action reflector_step_watch_failed(struct reflector_state *s,
                                                           const struct reflector_input *in,
                                                           uint64_t now_ms, uint64_t random)
{
    struct reflector_action a;
    if (in->status == 401 && !s->refreshed) {
        s->refreshed = true;
        a = reflector_step_watch_now(s, now_ms, random);
    } else if (reflector_step_version_survives(in)) {
        a = reflector_step_back_off(s, REFLECTOR_WATCH_LATER, in->retry_after_ms, now_ms, random);
    } else if ((in->status == 410 || in->expired) &&
               (s->moved || now_ms - s->listed_ms >= RELIST_APART_MS)) {
        a = reflector_step_list_now(s);
        a.note = "watch expired, relist";
        return a;
    } else {
        a = reflector_step_back_off(s, REFLECTOR_LIST_LATER, in->retry_after_ms, now_ms, random);
        a.note = "watch failed, relist";
        return a;
    }
    a.note = "watch failed";
    return a;
}

static struct reflector_action reflector_step_watch_ended(struct reflector_state *s,
                                                          uint64_t now_ms, uint64_t random)
{
    struct reflector_action a;
    if (s->progress || now_ms - s->watch_start_ms >= WATCH_SHORT_MS)
        a = reflector_step_watch_now(s, now_ms, random);
    else
        a = reflector_step_back_off(s, REFLECTOR_WATCH_LATER, 0, now_ms, random);
    a.note = "watch ended";
    return a;
}

static struct reflector_action reflector_step_watch_garbled(struct reflector_state *s,
                                                            uint64_t now_ms, uint64_t random)
{
    bool relist = ++s->garbled >= GARBLED_MAX;
    if (relist)
        s->garbled = 0;
    struct reflector_action a = reflector_step_back_off(
        s, relist ? REFLECTOR_LIST_LATER : REFLECTOR_WATCH_LATER, 0, now_ms, random);
    a.note = relist ? "watch garbled, relist" : "watch garbled";
    return a;
}

static struct reflector_action reflector_step_failed(struct reflector_state *s,
                                                     const struct reflector_input *in,
                                                     uint64_t now_ms, uint64_t random)
{
    struct reflector_action a;
    if (in->status != 401)
        s->refreshed = false;
    /* The server is reachable again: the delay that grew while it was away no longer applies. */
    if (in->status != 0 && s->unreachable)
        s->delay_ms = 0;
    s->unreachable = in->status == 0;
    if (s->phase == REFLECTOR_LISTING)
        a = reflector_step_list_failed(s, in, now_ms, random);
    else
        a = reflector_step_watch_failed(s, in, now_ms, random);
    a.refresh = in->status == 401;
    return a;
}

static struct reflector_action reflector_step_timer_fired(struct reflector_state *s,
                                                          uint64_t now_ms, uint64_t random)
{
    assert(s->phase == REFLECTOR_LIST_LATER || s->phase == REFLECTOR_WATCH_LATER);
    return s->phase == REFLECTOR_LIST_LATER ? reflector_step_list_now(s)
                                            : reflector_step_watch_now(s, now_ms, random);
}

struct reflector_action reflector_step(struct reflector_state *s, const struct reflector_input *in,
                                       uint64_t now_ms, uint64_t random)
{
    const bool listing = s->phase == REFLECTOR_LISTING;
    const bool watching = s->phase == REFLECTOR_WATCHING;
    switch (in->event) {
    case REFLECTOR_ON_TIMER:
        return reflector_step_timer_fired(s, now_ms, random);
    case REFLECTOR_ON_RELIST: {
        struct reflector_action a = reflector_step_list_now(s);
        a.note = "relist asked for";
        return a;
    }
    case REFLECTOR_ON_FAILED:
        assert(listing || watching);
        return reflector_step_failed(s, in, now_ms, random);
    case REFLECTOR_ON_PAGE:
        assert(listing);
        s->refreshed = false;
        return (struct reflector_action){.what = REFLECTOR_DO_PAGE};
    case REFLECTOR_ON_LISTED:
        assert(listing);
        s->synced = true;
        s->listed_ms = now_ms;
        s->denied = s->absent = s->refreshed = s->moved = false;
        s->garbled = s->list_gone = 0;
        return reflector_step_watch_now(s, now_ms, random);
    case REFLECTOR_ON_PROGRESS:
        assert(watching);
        s->progress = s->moved = true;
        s->refreshed = false;
        s->garbled = 0;
        return (struct reflector_action){.what = REFLECTOR_DO_NOTHING};
    case REFLECTOR_ON_ENDED:
        assert(watching);
        s->refreshed = false;
        return reflector_step_watch_ended(s, now_ms, random);
    case REFLECTOR_ON_GARBLED:
        assert(watching);
        s->refreshed = false;
        return reflector_step_watch_garbled(s, now_ms, random);
    }
    assert(false && "no event of enum reflector_event");
    return (struct reflector_action){.what = REFLECTOR_DO_NOTHING};
}
