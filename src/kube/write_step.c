/* Chooses the next call for one object. The rules are in write_step.h. */
#include "kube/write_step.h"

static struct write_action write_step_call(struct write_state *s, enum write_do what)
{
    s->call = what;
    s->due = false;
    return (struct write_action){.what = what};
}

static struct write_action write_step_wait(uint64_t ms)
{
    return (struct write_action){WRITE_WAIT, ms};
}

static struct write_action write_step_pause(struct write_state *s, uint64_t random)
{
    uint64_t ms = MIN_OF(WRITE_RETRY_MS << MIN_OF(s->failures, 16U), WRITE_RETRY_MAX_MS);
    s->due = true;
    s->failures++;
    return write_step_wait(ms + random % (ms / 2));
}

static struct write_action write_step_done(struct write_state *s)
{
    s->failures = 0;
    if (s->due)
        return write_step_call(s, WRITE_PATCH);
    return s->check_ms > 0 ? write_step_wait(s->check_ms) : (struct write_action){0};
}

static struct write_action write_step_drift(struct write_state *s, uint64_t now_ms)
{
    /* Under way or about to be written: the answer says what the object is then. */
    if (s->call != WRITE_REST || s->due)
        return (struct write_action){0};
    if (now_ms - s->drift_ms >= WRITE_DRIFT_RESET_MS)
        s->drifts = 0;
    uint64_t ms = s->drifts == 0
                      ? 0
                      : MIN_OF(WRITE_DRIFT_MS << MIN_OF(s->drifts - 1, 16U), WRITE_DRIFT_MAX_MS);
    s->drift_ms = now_ms;
    s->drifts++;
    if (ms == 0)
        return write_step_call(s, WRITE_PATCH);
    s->due = true;
    return write_step_wait(ms);
}

static struct write_action write_step_absent(struct write_state *s, const struct write_input *in)
{
    if (!s->creates)
        return write_step_pause(s, in->random);
    return in->empty && !s->due ? write_step_done(s) : write_step_call(s, WRITE_CREATE);
}

struct write_action write_step(struct write_state *s, const struct write_input *in)
{
    enum write_do call = s->call;
    switch (in->event) {
    case WRITE_ON_WISH:
        s->due = true;
        return call == WRITE_REST ? write_step_call(s, WRITE_PATCH) : (struct write_action){0};
    case WRITE_ON_DRIFT:
        return write_step_drift(s, in->now_ms);
    case WRITE_ON_TIMER:
        assert(call == WRITE_REST);
        return write_step_call(s, WRITE_PATCH);
    case WRITE_ON_DONE:
        s->call = WRITE_REST;
        return write_step_done(s);
    case WRITE_ON_ABSENT:
        assert(call == WRITE_PATCH);
        s->call = WRITE_REST;
        return write_step_absent(s, in);
    case WRITE_ON_EXISTS:
        assert(call == WRITE_CREATE);
        s->call = WRITE_REST;
        /* It was made since the PATCH. If that repeats, something else is wrong. */
        return s->failures++ == 0 ? write_step_call(s, WRITE_PATCH)
                                  : write_step_pause(s, in->random);
    case WRITE_ON_FAILED:
        s->call = WRITE_REST;
        return write_step_pause(s, in->random);
    }
    return (struct write_action){0};
}
