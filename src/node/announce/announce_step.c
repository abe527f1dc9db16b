/* Chooses the next call for one object. The rules are in announce_step.h. */
#include "node/announce/announce_step.h"

static struct announce_action announce_step_call(struct announce_state *s, enum announce_do what)
{
    s->call = what;
    s->due = false;
    return (struct announce_action){.what = what};
}

static struct announce_action announce_step_wait(uint64_t ms)
{
    return (struct announce_action){ANNOUNCE_WAIT, ms};
}

static struct announce_action announce_step_pause(struct announce_state *s, uint64_t random)
{
    uint64_t ms = MIN_OF(ANNOUNCE_RETRY_MS << MIN_OF(s->failures, 16U), ANNOUNCE_RETRY_MAX_MS);
    s->due = true;
    s->failures++;
    return announce_step_wait(ms + random % (ms / 2));
}

static struct announce_action announce_step_done(struct announce_state *s)
{
    s->failures = 0;
    if (s->due)
        return announce_step_call(s, ANNOUNCE_PATCH);
    return s->check_ms > 0 ? announce_step_wait(s->check_ms) : (struct announce_action){0};
}

static struct announce_action announce_step_drift(struct announce_state *s, uint64_t now_ms)
{
    /* Under way or about to be written: the answer says what the object is then. */
    if (s->call != ANNOUNCE_REST || s->due)
        return (struct announce_action){0};
    if (now_ms - s->drift_ms >= ANNOUNCE_DRIFT_RESET_MS)
        s->drifts = 0;
    uint64_t ms = s->drifts == 0 ? 0
                                 : MIN_OF(ANNOUNCE_DRIFT_MS << MIN_OF(s->drifts - 1, 16U),
                                          ANNOUNCE_DRIFT_MAX_MS);
    s->drift_ms = now_ms;
    s->drifts++;
    if (ms == 0)
        return announce_step_call(s, ANNOUNCE_PATCH);
    s->due = true;
    return announce_step_wait(ms);
}

static struct announce_action announce_step_absent(struct announce_state *s,
                                                   const struct announce_input *in)
{
    if (!s->creates)
        return announce_step_pause(s, in->random);
    return in->empty && !s->due ? announce_step_done(s) : announce_step_call(s, ANNOUNCE_CREATE);
}

struct announce_action announce_step(struct announce_state *s, const struct announce_input *in)
{
    enum announce_do call = s->call;
    switch (in->event) {
    case ANNOUNCE_ON_WISH:
        s->due = true;
        return call == ANNOUNCE_REST ? announce_step_call(s, ANNOUNCE_PATCH)
                                     : (struct announce_action){0};
    case ANNOUNCE_ON_DRIFT:
        return announce_step_drift(s, in->now_ms);
    case ANNOUNCE_ON_TIMER:
        assert(call == ANNOUNCE_REST);
        return announce_step_call(s, ANNOUNCE_PATCH);
    case ANNOUNCE_ON_DONE:
        s->call = ANNOUNCE_REST;
        return announce_step_done(s);
    case ANNOUNCE_ON_ABSENT:
        assert(call == ANNOUNCE_PATCH);
        s->call = ANNOUNCE_REST;
        return announce_step_absent(s, in);
    case ANNOUNCE_ON_EXISTS:
        assert(call == ANNOUNCE_CREATE);
        s->call = ANNOUNCE_REST;
        /* It was made since the PATCH. If that repeats, something else is wrong. */
        return s->failures++ == 0 ? announce_step_call(s, ANNOUNCE_PATCH)
                                  : announce_step_pause(s, in->random);
    case ANNOUNCE_ON_FAILED:
        s->call = ANNOUNCE_REST;
        return announce_step_pause(s, in->random);
    }
    return (struct announce_action){0};
}
