/*
 * The rules of the leader election. Every read of the Lease leads to `decide`, which chooses the
 * next action from the content of the Lease. Only a leader that knows the version writes without a
 * read before.
 */
#include "kube/election_step.h"

/* Upper limit of the duration in a Lease: a longer one, such as a day, is taken for a mistake. */
#define DURATION_MAX_MS 3600000

/* How long a call by kube-scheduler counts as a need for this replica. */
#define WANT_MS 5000

void election_state_init(struct election_state *s, const struct election_times *times)
{
    assert(times->retry_ms > 0 && times->renew_deadline_ms > times->retry_ms);
    assert(times->renew_deadline_ms <= times->lease_ms / 3 * 2);
    *s = (struct election_state){.times = *times};
}

bool election_leads(const struct election_state *s, uint64_t now_ms)
{
    return s->role == ELECTION_LEADS && now_ms < s->leads_until_ms && !s->release;
}

static bool election_step_wants(const struct election_state *s, uint64_t now_ms)
{
    return now_ms < s->want_until_ms;
}

static struct election_action election_step_act(enum election_do what)
{
    return (struct election_action){.what = what};
}

static struct election_action election_step_wait_for(struct election_state *s, uint64_t delay_ms)
{
    s->phase = ELECTION_WAITING;
    return (struct election_action){.what = ELECTION_DO_WAIT, .delay_ms = delay_ms};
}

/* A follower reads the Lease often, so that a released Lease is taken soon. */
static struct election_action election_step_look_later(struct election_state *s, uint64_t now_ms,
                                                       uint64_t random)
{
    uint64_t span = s->times.retry_ms / (election_step_wants(s, now_ms) ? 8 : 4);
    return election_step_wait_for(s, span + random % (span + 1));
}

static struct election_action election_step_read_now(struct election_state *s, uint64_t now_ms)
{
    s->phase = ELECTION_READING;
    s->sent_ms = now_ms;
    return election_step_act(ELECTION_DO_READ);
}

static struct election_action election_step_write_now(struct election_state *s,
                                                      enum election_write write, uint64_t now_ms)
{
    s->phase = ELECTION_WRITING;
    s->write = write;
    s->sent_ms = now_ms;
    return (struct election_action){.what = ELECTION_DO_WRITE, .write = write};
}

/* A holder leads for at most two thirds of the Lease: see the top of election_step.h. */
static uint64_t election_step_led_until(const struct election_state *s)
{
    return s->heard_ms + MAX_OF(s->duration_ms, s->times.lease_ms) / 3 * 2;
}

static struct election_action election_step_acquire(struct election_state *s, uint64_t now_ms)
{
    s->tried = true;
    s->handed_over = !s->held && s->released;
    s->created = false;
    s->ended_ms = election_step_led_until(s);
    return election_step_write_now(s, ELECTION_WRITE_ACQUIRE, now_ms);
}

static enum election_news election_step_leave(struct election_state *s)
{
    bool led = s->role != ELECTION_FOLLOWS;
    s->role = ELECTION_FOLLOWS;
    return led && !s->stopping ? ELECTION_LOST : ELECTION_NO_NEWS;
}

/* The earlier leader is unknown, and it may still lead until it reads the Lease again. */
static void election_step_know_nothing(struct election_state *s)
{
    s->handed_over = false;
    s->created = true;
}

static struct election_action election_step_create(struct election_state *s, uint64_t now_ms)
{
    /*
     * Either no replica ever led, or the Lease was just deleted and a leader that has not noticed
     * it still leads. The two cases look the same.
     */
    s->tried = true;
    s->release = false;
    election_step_know_nothing(s);
    s->phase = ELECTION_CREATING;
    s->write = ELECTION_WRITE_ACQUIRE;
    s->sent_ms = now_ms;
    struct election_action a = election_step_act(ELECTION_DO_CREATE);
    /* A deleted Lease no longer proves that no other replica led meanwhile. */
    if (s->role == ELECTION_LEADS)
        a.news = election_step_leave(s);
    return a;
}

/* When other replicas may take the Lease, by this replica's last write. */
static uint64_t election_step_expires(const struct election_state *s)
{
    return s->leads_until_ms + s->times.lease_ms - s->times.renew_deadline_ms;
}

/* The election has ended: no more actions after the news. */
static struct election_action election_step_end(struct election_state *s)
{
    struct election_action a = election_step_act(ELECTION_DO_NOTHING);
    s->role = ELECTION_FOLLOWS;
    s->phase = ELECTION_WAITING;
    a.news = ELECTION_LOST;
    return a;
}

/*
 * This replica holds the Lease and has to give it up. A replica that stops before it has led lets
 * the Lease expire: a release would say that no request of the earlier leader is under way, and
 * this replica had not yet waited for those requests.
 */
static struct election_action election_step_release(struct election_state *s, uint64_t now_ms,
                                                    uint64_t random)
{
    bool expired =
        now_ms >= election_step_expires(s); /* other replicas may take it without a release */
    if (s->stopping && (expired || !s->release))
        return election_step_end(s);
    enum election_news news = election_step_leave(s);
    s->release = s->release && !expired;
    struct election_action a = expired ? election_step_look_later(s, now_ms, random)
                                       : election_step_write_now(s, ELECTION_WRITE_RELEASE, now_ms);
    a.news = news;
    return a;
}

/* Another replica holds the Lease, and it is valid. */
static struct election_action election_step_follow(struct election_state *s, uint64_t now_ms,
                                                   uint64_t random)
{
    if (s->stopping)
        return election_step_end(s);
    enum election_news news = election_step_leave(s);
    struct election_action a;
    s->release = false;
    if (election_step_wants(s, now_ms) && now_ms >= s->want_again_ms) {
        s->want_again_ms = now_ms + s->times.retry_ms;
        a = election_step_write_now(s, ELECTION_WRITE_WANT, now_ms);
    } else {
        a = election_step_look_later(s, now_ms, random);
        /* Look as soon as the Lease ends, so that a fail-over takes no longer than it must. */
        a.delay_ms = MIN_OF(a.delay_ms, s->heard_ms + s->duration_ms - now_ms);
    }
    a.news = news;
    return a;
}

/* The Lease has no holder, or it has expired. */
static struct election_action election_step_take(struct election_state *s, uint64_t now_ms,
                                                 uint64_t random)
{
    if (s->stopping)
        return election_step_end(s);
    enum election_news news = election_step_leave(s);
    bool hold_back =
        !s->held && s->wanted_by_other && now_ms < s->wanted_ms + 2 * s->times.retry_ms;
    s->release = false;
    struct election_action a =
        hold_back ? election_step_look_later(s, now_ms, random) : election_step_acquire(s, now_ms);
    a.news = news;
    return a;
}

/* The next action, from the Lease at the last read or write. */
static struct election_action election_step_decide(struct election_state *s, uint64_t now_ms,
                                                   uint64_t random)
{
    if (s->held && s->mine)
        return s->stopping || s->release ? election_step_release(s, now_ms, random)
                                         : election_step_write_now(s, ELECTION_WRITE_RENEW, now_ms);
    if (s->held && now_ms < s->heard_ms + s->duration_ms)
        return election_step_follow(s, now_ms, random);
    return election_step_take(s, now_ms, random);
}

static struct election_action election_step_was_read(struct election_state *s,
                                                     const struct election_input *in,
                                                     uint64_t now_ms, uint64_t random)
{
    enum election_news news = ELECTION_NO_NEWS;
    if (in->changed || !s->ever_read)
        s->heard_ms = now_ms;
    if (in->wanted_changed)
        s->wanted_ms = now_ms;
    s->ever_read = s->known = true;
    s->held = in->held;
    s->mine = in->mine;
    s->released = in->released;
    s->conflicts = in->held && !in->mine ? 0 : s->conflicts;
    s->duration_ms = in->duration_ms > 0 ? MIN_OF(in->duration_ms, (uint64_t)DURATION_MAX_MS)
                                         : s->times.lease_ms;
    s->wanted_by_other = in->wanted_by_other;
    s->tried = s->tried && in->mine;
    /* A manual edit made this replica the holder, or the holder again. */
    if (s->mine && (!s->tried || (s->role == ELECTION_LEADS && in->taken))) {
        election_step_know_nothing(s);
        news = s->role == ELECTION_LEADS ? election_step_leave(s) : ELECTION_NO_NEWS;
    }
    bool led = s->role == ELECTION_LEADS;
    struct election_action a = election_step_decide(s, now_ms, random);
    if (news != ELECTION_NO_NEWS)
        a.news = news;
    if (led && s->role == ELECTION_LEADS && in->wanted_changed && in->wanted_by_other)
        a.news = ELECTION_ASKED_FOR;
    return a;
}

/* The write succeeded: this replica leads from the moment at which the write was sent. */
static struct election_action election_step_was_held(struct election_state *s, uint64_t now_ms,
                                                     uint64_t random)
{
    bool led = s->role == ELECTION_LEADS && s->write == ELECTION_WRITE_RENEW;
    s->held = s->mine = s->tried = true;
    s->conflicts = 0;
    s->heard_ms = now_ms;
    s->duration_ms = s->times.lease_ms;
    s->leads_until_ms = s->sent_ms + s->times.renew_deadline_ms;
    if (s->stopping || s->release)
        return election_step_release(s, now_ms, random);
    if (!led && now_ms >= s->leads_until_ms)
        return election_step_write_now(s, ELECTION_WRITE_RENEW,
                                       now_ms); /* the answer came after leads_until_ms */
    s->role = ELECTION_LEADS;
    struct election_action a = election_step_wait_for(s, s->times.retry_ms);
    if (!led) {
        a.news = ELECTION_WON;
        a.handed_over = s->handed_over;
        /* A leader that the Lease does not show may lead for two thirds of a lease, from now: the
         * creation may have been under way for long. */
        a.ended_ms = s->created ? now_ms + s->times.lease_ms / 3 * 2 : s->ended_ms;
    }
    return a;
}

static struct election_action election_step_wrote(struct election_state *s, uint64_t now_ms,
                                                  uint64_t random)
{
    s->ever_read = s->known = true;
    switch (s->write) {
    case ELECTION_WRITE_ACQUIRE:
    case ELECTION_WRITE_RENEW:
        return election_step_was_held(s, now_ms, random);
    case ELECTION_WRITE_WANT:
        s->wanted_by_other = false;
        return s->stopping ? election_step_follow(s, now_ms, random)
                           : election_step_look_later(s, now_ms, random);
    case ELECTION_WRITE_RELEASE:
        s->held = s->mine = s->release = s->tried = false;
        s->released = true;
        return election_step_take(s, now_ms, random);
    }
    return election_step_read_now(s, now_ms);
}

static struct election_action election_step_failed(struct election_state *s, uint64_t now_ms,
                                                   uint64_t random)
{
    s->known = false;
    /* A failed acquire may have taken effect: then the Lease expires, as after a failed release. */
    if (s->stopping && (!s->mine || now_ms >= election_step_expires(s)))
        return election_step_end(s);
    return election_step_look_later(s, now_ms, random);
}

/* One conflict is normal: read again at once. After several in a row wait, so that this replica
 * does not disturb the other writers. */
static struct election_action election_step_conflicted(struct election_state *s, uint64_t now_ms,
                                                       uint64_t random)
{
    s->known = false;
    return ++s->conflicts > 1 ? election_step_look_later(s, now_ms, random)
                              : election_step_read_now(s, now_ms);
}

/* The wait is over, by the timer or by a call from outside. */
static struct election_action election_step_go_on(struct election_state *s, uint64_t now_ms,
                                                  uint64_t random)
{
    if (s->stopping && !s->mine)
        return election_step_end(s);
    if (s->known && s->held && s->mine)
        return election_step_decide(s, now_ms, random);
    return election_step_read_now(s, now_ms);
}

static struct election_action election_step_asked(struct election_state *s, uint64_t now_ms,
                                                  uint64_t random)
{
    bool wanted = election_step_wants(s, now_ms);
    if (s->role != ELECTION_FOLLOWS || s->stopping)
        return election_step_act(ELECTION_DO_NOTHING);
    s->want_until_ms = now_ms + WANT_MS;
    return s->phase == ELECTION_WAITING && !wanted ? election_step_go_on(s, now_ms, random)
                                                   : election_step_act(ELECTION_DO_NOTHING);
}

static struct election_action election_step_hand_over(struct election_state *s, uint64_t now_ms,
                                                      uint64_t random)
{
    if (s->role != ELECTION_LEADS)
        return election_step_act(ELECTION_DO_NOTHING);
    s->release = true;
    return s->phase == ELECTION_WAITING ? election_step_go_on(s, now_ms, random)
                                        : election_step_act(ELECTION_DO_NOTHING);
}

static struct election_action election_step_stop(struct election_state *s, uint64_t now_ms,
                                                 uint64_t random)
{
    s->stopping = true;
    s->release = s->role == ELECTION_LEADS || s->release;
    if (s->phase == ELECTION_WAITING)
        return election_step_go_on(s, now_ms, random);
    /* Wait only for a call that may acquire or release the Lease. */
    bool matters = s->mine || s->phase == ELECTION_CREATING ||
                   (s->phase == ELECTION_WRITING && s->write != ELECTION_WRITE_WANT);
    return matters ? election_step_act(ELECTION_DO_NOTHING) : election_step_end(s);
}

struct election_action election_step(struct election_state *s, const struct election_input *in,
                                     uint64_t now_ms, uint64_t random)
{
    switch (in->event) {
    case ELECTION_ON_TIMER:
        assert(s->phase == ELECTION_WAITING);
        return election_step_go_on(s, now_ms, random);
    case ELECTION_ON_READ:
        assert(s->phase == ELECTION_READING);
        return election_step_was_read(s, in, now_ms, random);
    case ELECTION_ON_ABSENT:
        assert(s->phase == ELECTION_READING);
        s->held = s->mine = false;
        if (s->stopping)
            return election_step_take(s, now_ms, random);
        return election_step_create(s, now_ms);
    case ELECTION_ON_WROTE:
        assert(s->phase == ELECTION_CREATING || s->phase == ELECTION_WRITING);
        return election_step_wrote(s, now_ms, random);
    case ELECTION_ON_CONFLICT:
        assert(s->phase == ELECTION_CREATING || s->phase == ELECTION_WRITING);
        return election_step_conflicted(s, now_ms, random);
    case ELECTION_ON_FAILED:
        assert(s->phase != ELECTION_WAITING);
        return election_step_failed(s, now_ms, random);
    case ELECTION_ON_ASKED:
        return election_step_asked(s, now_ms, random);
    case ELECTION_ON_RELEASE:
        return election_step_hand_over(s, now_ms, random);
    case ELECTION_ON_STOP:
        return election_step_stop(s, now_ms, random);
    }
    assert(false && "no event of enum election_event");
    return election_step_act(ELECTION_DO_NOTHING);
}
