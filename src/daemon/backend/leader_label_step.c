/* Chooses the next call about the leader's label. The rules are in leader_label_step.h. */
#include "daemon/backend/leader_label_step.h"

static struct leader_label_action leader_label_step_call(struct leader_label_state *s,
                                                         enum leader_label_action_type type)
{
    s->call = type;
    return (struct leader_label_action){.type = type};
}

static struct leader_label_action leader_label_step_next(struct leader_label_state *s)
{
    if (!s->wanted)
        return leader_label_step_call(s, s->own == LEADER_LABEL_ABSENT ? LEADER_LABEL_REST
                                                                       : LEADER_LABEL_REMOVE);
    if (s->own != LEADER_LABEL_PRESENT)
        return leader_label_step_call(s, LEADER_LABEL_ADD);
    if (s->other)
        return leader_label_step_call(s, LEADER_LABEL_REMOVE_OTHER);
    if (!s->checked)
        return leader_label_step_call(s, LEADER_LABEL_LIST);
    return (struct leader_label_action){LEADER_LABEL_WAIT, LEADER_LABEL_CHECK_MS};
}

static struct leader_label_action leader_label_step_pause(struct leader_label_state *s,
                                                          uint64_t random)
{
    uint64_t ms = LEADER_LABEL_RETRY_MS << MIN_OF(s->failures, 6U);
    s->failures++;
    return (struct leader_label_action){LEADER_LABEL_WAIT,
                                        MIN_OF(ms, LEADER_LABEL_RETRY_MAX_MS) + random % (ms / 2)};
}

/* Notes a list. True: the round goes on, without a pause. */
static bool leader_label_step_listed(struct leader_label_state *s,
                                     const struct leader_label_input *in)
{
    s->other = in->other;
    s->checked = true;
    s->own = in->own ? LEADER_LABEL_PRESENT : LEADER_LABEL_ABSENT;
    if (in->own && !in->other)
        s->failures = 0;
    /* The label was added and is gone: it is not added again at once, in case that repeats. */
    return in->own || !s->wanted;
}

/* Notes how the call under way has ended. True: the round goes on, without a pause. */
static bool leader_label_step_ended(struct leader_label_state *s,
                                    const struct leader_label_input *in)
{
    enum leader_label_action_type call = s->call;
    bool done = in->event == LEADER_LABEL_ON_DONE;
    assert(call != LEADER_LABEL_REST && call != LEADER_LABEL_WAIT);
    s->call = LEADER_LABEL_REST;
    switch (call) {
    case LEADER_LABEL_ADD:
        s->own = done ? LEADER_LABEL_PRESENT : LEADER_LABEL_UNKNOWN;
        return done;
    case LEADER_LABEL_REMOVE:
        /* No pod of this process is left that could have it. */
        done = done || in->event == LEADER_LABEL_ON_GONE;
        s->own = done ? LEADER_LABEL_ABSENT : LEADER_LABEL_UNKNOWN;
        return done;
    case LEADER_LABEL_REMOVE_OTHER:
        s->other = s->checked = false;
        return done;
    case LEADER_LABEL_LIST:
        return done && leader_label_step_listed(s, in);
    case LEADER_LABEL_REST:
    case LEADER_LABEL_WAIT:
        break;
    }
    return false;
}

struct leader_label_action leader_label_step(struct leader_label_state *s,
                                             const struct leader_label_input *in, uint64_t random)
{
    if (in->event == LEADER_LABEL_ON_WISH) {
        s->wanted = in->wanted;
        s->checked = s->other = false;
        s->failures = 0;
        return s->call == LEADER_LABEL_REST ? leader_label_step_next(s)
                                            : (struct leader_label_action){LEADER_LABEL_REST, 0};
    }
    if (in->event == LEADER_LABEL_ON_TIMER) {
        assert(s->call == LEADER_LABEL_REST);
        s->checked = false;
        return leader_label_step_next(s);
    }
    return leader_label_step_ended(s, in) ? leader_label_step_next(s)
                                          : leader_label_step_pause(s, random);
}
