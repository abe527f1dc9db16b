/*
 * The decisions of the machine: bind_step, at the end, has a case for each input. The answers to a
 * Binding and the results of a read have a function each, with a case for each of them.
 */
#include "daemon/bind/bind_step.h"

#include "daemon/limit.h"

#define PAUSE_MIN_MS 50
#define PAUSE_MAX_MS 2000

/*
 * Ceiling for Retry-After, which may be a day: the card of a Binding in doubt stays reserved until
 * then.
 */
#define RETRY_AFTER_MAX_MS 30000

/* Least time for a Binding. With less it would end in doubt, and its card would stay reserved for
 * nothing. */
#define POST_LEAST_MS 100

/*
 * A pod that has changed before so many Bindings is given up, and the scheduler tries it again
 * later: its author could otherwise keep the node's turn from other pods up to the deadline.
 */
#define OUTDATED_MAX 3

static bool bind_step_too_late(const struct bind_machine *m, uint64_t now_ms)
{
    return m->deadline_ms < POST_LEAST_MS || now_ms > m->deadline_ms - POST_LEAST_MS;
}

static struct bind_output bind_step_end(struct bind_machine *m, enum bind_action action)
{
    m->phase = BIND_OVER;
    return (struct bind_output){.action = action};
}

static struct bind_output bind_step_post(struct bind_machine *m)
{
    m->phase = BIND_POSTING;
    m->refused = false;
    return (struct bind_output){.action = BIND_DO_POST};
}

static struct bind_output bind_step_read_back(struct bind_machine *m, uint64_t now_ms)
{
    m->phase = BIND_READING;
    m->read_sent_ms = now_ms;
    return (struct bind_output){.action = BIND_DO_READ};
}

/*
 * Doubles the pause with each failure and adds a random part up to the same length, so that binds
 * that failed together do not retry together.
 */
static struct bind_output bind_step_pause_then(struct bind_machine *m, bool read_next,
                                               const struct bind_input *in)
{
    uint64_t ms = (uint64_t)PAUSE_MIN_MS << MIN_OF(m->failures, 6U);
    ms = MIN_OF(ms, (uint64_t)PAUSE_MAX_MS);
    ms += in->random % ms;
    m->failures++;
    m->phase = BIND_PAUSED;
    m->read_next = read_next;
    uint64_t asked_ms = MIN_OF(in->retry_after_ms, (uint64_t)RETRY_AFTER_MAX_MS);
    return (struct bind_output){.action = BIND_DO_PAUSE, .pause_ms = MAX_OF(ms, asked_ms)};
}

static void bind_step_doubt(struct bind_machine *m, uint64_t now_ms)
{
    m->in_doubt = true;
    m->doubt_until_ms = now_ms + LIMIT_DOUBT_MS;
}

/* This Binding changed nothing; an earlier one, or a copy that a proxy sent, may have. */
static void bind_step_suspect(struct bind_machine *m, uint64_t now_ms)
{
    m->in_doubt = true;
    m->doubt_until_ms = MAX_OF(m->doubt_until_ms, now_ms);
}

/* Cancels where no Binding can have taken effect, else continues with a read. */
static struct bind_output bind_step_give_up(struct bind_machine *m, uint64_t now_ms)
{
    if (!m->in_doubt && !m->turned_away)
        return bind_step_end(m, BIND_DO_CANCEL);
    if (!m->in_doubt) {
        m->refused = true;
        bind_step_suspect(m, now_ms);
    }
    return bind_step_read_back(m, now_ms);
}

static struct bind_output bind_step_posted(struct bind_machine *m, const struct bind_input *in,
                                           uint64_t now_ms)
{
    switch (in->post) {
    case POST_CREATED:
        return bind_step_end(m, BIND_DO_CONFIRM);
    case POST_UNAUTHORIZED:
        m->turned_away = true;
        if (m->refreshed)
            return bind_step_give_up(m, now_ms);
        m->refreshed = true;
        m->phase = BIND_POSTING;
        return (struct bind_output){.action = BIND_DO_REFRESH_POST};
    case POST_REFUSED:
        if (in->unsent)
            return bind_step_give_up(m, now_ms);
        m->refused = true;
        bind_step_suspect(m, now_ms);
        return bind_step_read_back(m, now_ms);
    case POST_THROTTLED:
        m->turned_away = true;
        return bind_step_pause_then(m, m->in_doubt, in);
    case POST_NOT_SENT:
        return bind_step_pause_then(m, m->in_doubt, in);
    case POST_ASSIGNED:
        bind_step_suspect(m, now_ms);
        return bind_step_read_back(m, now_ms);
    case POST_OUTDATED:
        m->refused = ++m->outdated >= OUTDATED_MAX;
        bind_step_suspect(m, now_ms);
        return bind_step_read_back(m, now_ms);
    case POST_UNKNOWN:
        bind_step_doubt(m, now_ms);
        return bind_step_read_back(m, now_ms);
    }
    return bind_step_end(m, BIND_DO_CANCEL);
}

static struct bind_output bind_step_was_read(struct bind_machine *m, const struct bind_input *in,
                                             uint64_t now_ms)
{
    struct bind_output out;
    /* What this read shows is final: no Binding of this bind can take effect after it. */
    bool final = !m->in_doubt || m->read_sent_ms >= m->doubt_until_ms;
    bool late = now_ms >= m->deadline_ms;
    switch (in->seen) {
    case SEEN_AS_ASKED:
        out = bind_step_end(m, BIND_DO_CONFIRM);
        out.read_back = true;
        return out;
    case SEEN_HERE:
    case SEEN_ELSEWHERE:
        return bind_step_end(m, BIND_DO_CANCEL);
    case SEEN_GONE:
        /*
         * An API server before 1.27 may still apply a Binding in doubt to the next pod of that
         * name.
         */
        if (final || m->created)
            return bind_step_end(m, BIND_DO_CANCEL);
        out = bind_step_pause_then(m, true, in);
        out.answer = true;
        return out;
    case SEEN_NOTHING:
        out = bind_step_pause_then(m, true, in);
        /* No Binding will be sent again. Without valid credentials the reads fail, too. */
        out.answer = m->refused && m->turned_away;
        return out;
    case SEEN_UNBOUND:
        if (final && (m->refused || late || in->edited))
            return bind_step_end(m, BIND_DO_CANCEL);
        return bind_step_pause_then(m, late || in->edited, in);
    }
    return bind_step_pause_then(m, true, in);
}

void bind_step_init(struct bind_machine *m, uint64_t deadline_ms)
{
    *m = (struct bind_machine){.phase = BIND_QUEUED, .deadline_ms = deadline_ms};
}

struct bind_output bind_step(struct bind_machine *m, const struct bind_input *in, uint64_t now_ms)
{
    struct bind_output out;
    assert((m->phase == BIND_OVER) == (in->type == BIND_IN_UNPROVEN));
    switch (in->type) {
    case BIND_IN_TURN:
        assert(m->phase == BIND_QUEUED);
        return bind_step_too_late(m, now_ms) ? bind_step_end(m, BIND_DO_CANCEL) : bind_step_post(m);
    case BIND_IN_POSTED:
        assert(m->phase == BIND_POSTING);
        return bind_step_posted(m, in, now_ms);
    case BIND_IN_READ:
        assert(m->phase == BIND_READING);
        return bind_step_was_read(m, in, now_ms);
    case BIND_IN_WAKE:
        assert(m->phase == BIND_PAUSED);
        /* After the deadline, send no Binding for a request that has been answered. */
        if (m->read_next)
            return bind_step_read_back(m, now_ms);
        return bind_step_too_late(m, now_ms) ? bind_step_give_up(m, now_ms) : bind_step_post(m);
    case BIND_IN_DEADLINE:
        if (m->phase == BIND_POSTING)
            bind_step_doubt(m, now_ms);
        if (m->turned_away)
            bind_step_suspect(m, now_ms);
        /* Cancels if no Binding can have taken effect; otherwise continues with reads. */
        if (!m->in_doubt)
            return bind_step_end(m, BIND_DO_CANCEL);
        out = bind_step_pause_then(m, true, in);
        out.answer = true;
        return out;
    case BIND_IN_UNPROVEN:
        /* The pod is probably bound: the deadline must not cancel before a read. */
        bind_step_doubt(m, now_ms);
        m->created = true;
        return bind_step_read_back(m, now_ms);
    }
    return bind_step_end(m, BIND_DO_CANCEL);
}
