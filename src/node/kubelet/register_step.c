/* Chooses what the device plugin does next to be registered. The rules are in register_step.h. */
#include "node/kubelet/register_step.h"

static uint64_t register_step_delay(uint64_t first_ms, unsigned failures)
{
    return MIN_OF(first_ms << MIN_OF(failures, 16U), REGISTER_PAUSE_MAX_MS);
}

static struct register_action register_step_stay(void)
{
    return (struct register_action){.type = REGISTER_STAY};
}

/* The kubelet may have a client of this plugin that is to end first, or that has yet to begin its
 * stream. */
static bool register_step_has_client(const struct register_state *s)
{
    return s->streams > 0 || s->phase == REGISTER_ASKING || s->phase == REGISTER_AWAITING;
}

static struct register_action register_step_serve(struct register_state *s)
{
    s->dropped = register_step_has_client(s);
    s->phase = REGISTER_SERVING;
    s->streams = 0;
    return (struct register_action){.type = REGISTER_SERVE};
}

static struct register_action register_step_ask(struct register_state *s)
{
    assert(s->streams == 0);
    s->phase = REGISTER_ASKING;
    s->opened = false;
    return (struct register_action){.type = REGISTER_ASK};
}

static struct register_action register_step_pause(struct register_state *s, uint64_t first_ms)
{
    struct register_action a = {.type = s->streams > 0 ? REGISTER_CLOSE : REGISTER_WAIT,
                                .delay_ms = register_step_delay(first_ms, s->failures)};
    s->phase = REGISTER_PAUSED;
    s->streams = 0;
    s->failures++;
    return a;
}

static struct register_action register_step_register(struct register_state *s)
{
    struct register_action a = {.type = REGISTER_REPORT,
                                .delay_ms = REGISTER_STEADY_MS,
                                .restarted = s->restarted || !s->reported};
    s->phase = REGISTER_DONE;
    s->reported = true;
    s->restarted = false;
    return a;
}

static struct register_action register_step_await(struct register_state *s)
{
    s->phase = REGISTER_AWAITING;
    return (struct register_action){.type = REGISTER_WAIT, .delay_ms = REGISTER_AWAIT_MS};
}

/* After a Register that has failed, or that no stream has followed: a late stream is welcome. */
static struct register_action register_step_failed(struct register_state *s)
{
    s->counts = true;
    return register_step_pause(s, REGISTER_AGAIN_MS);
}

/* The kubelet may be about to disconnect whatever is registered. */
static struct register_action register_step_gone(struct register_state *s)
{
    s->counts = false;
    return register_step_pause(s, REGISTER_PAUSE_MS);
}

static struct register_action register_step_on_timer(struct register_state *s)
{
    assert(s->phase != REGISTER_SERVING && s->phase != REGISTER_ASKING);
    switch (s->phase) {
    case REGISTER_UNSERVED:
        return register_step_serve(s);
    case REGISTER_PAUSED:
        return s->streams > 0 ? register_step_gone(s) : register_step_ask(s);
    case REGISTER_AWAITING:
        return register_step_failed(s);
    case REGISTER_DONE:
        s->failures = 0;
        break;
    case REGISTER_SERVING:
    case REGISTER_ASKING:
        break;
    }
    return register_step_stay();
}

static struct register_action register_step_on_answer(struct register_state *s, bool done)
{
    assert(s->phase == REGISTER_ASKING);
    if (s->streams > 0)
        return register_step_register(s);
    if (s->opened)
        return register_step_gone(s);
    return done ? register_step_await(s) : register_step_failed(s);
}

static struct register_action register_step_on_served(struct register_state *s, bool served)
{
    assert(s->phase == REGISTER_SERVING);
    if (!served) {
        s->phase = REGISTER_UNSERVED;
        return (struct register_action){.type = REGISTER_WAIT,
                                        .delay_ms =
                                            register_step_delay(REGISTER_PAUSE_MS, s->unserved++)};
    }
    s->unserved = 0;
    return s->dropped || s->failures > 0 ? register_step_gone(s) : register_step_ask(s);
}

static struct register_action register_step_on_stream(struct register_state *s)
{
    s->streams++;
    s->opened = true;
    bool expected = s->phase == REGISTER_AWAITING || (s->phase == REGISTER_PAUSED && s->counts);
    return expected ? register_step_register(s) : register_step_stay();
}

static struct register_action register_step_on_stream_gone(struct register_state *s)
{
    assert(s->streams > 0);
    s->streams--;
    return s->phase == REGISTER_DONE ? register_step_gone(s) : register_step_stay();
}

/* The kubelet was started again, and knows of no earlier stream. So there is no need to wait until
 * it notices that those are gone. */
static struct register_action register_step_on_kubelet(struct register_state *s)
{
    s->restarted = true;
    s->failures = 0;
    if (s->phase == REGISTER_UNSERVED)
        return register_step_serve(s);
    return register_step_has_client(s) ? register_step_gone(s) : register_step_ask(s);
}

struct register_action register_step(struct register_state *s, enum register_event event)
{
    switch (event) {
    case REGISTER_ON_START:
    case REGISTER_ON_LOST:
        return register_step_serve(s);
    case REGISTER_ON_TIMER:
        return register_step_on_timer(s);
    case REGISTER_ON_SERVED:
    case REGISTER_ON_NOT_SERVED:
        return register_step_on_served(s, event == REGISTER_ON_SERVED);
    case REGISTER_ON_DONE:
    case REGISTER_ON_FAILED:
        return register_step_on_answer(s, event == REGISTER_ON_DONE);
    case REGISTER_ON_STREAM:
        return register_step_on_stream(s);
    case REGISTER_ON_STREAM_GONE:
        return register_step_on_stream_gone(s);
    case REGISTER_ON_KUBELET:
        return register_step_on_kubelet(s);
    }
    return register_step_stay();
}
