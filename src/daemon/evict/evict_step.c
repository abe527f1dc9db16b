/* The transitions of a rescue, by input and phase. */
#include "daemon/evict/evict_step.h"

#include <assert.h>

void evict_machine_init(struct evict_machine *m, const struct evict_times *times)
{
    *m = (struct evict_machine){.phase = EVICT_CHOOSING, .times = *times};
}

static struct evict_output evict_step_end(struct evict_machine *m, enum evict_end why)
{
    m->phase = EVICT_OVER;
    return (struct evict_output){.action = EVICT_DO_END, .end = why};
}

static struct evict_output evict_step_wait(uint64_t ms)
{
    return (struct evict_output){.action = EVICT_DO_WAIT, .pause_ms = ms};
}

/* Back to choosing a set: returns `then`, or the end after EVICT_CHOICES sets. */
static struct evict_output evict_step_choose(struct evict_machine *m, struct evict_output then)
{
    m->phase = EVICT_CHOOSING;
    m->failures = 0;
    if (++m->choices >= EVICT_CHOICES)
        return evict_step_end(m, m->refused ? EVICT_END_PROTECTED : EVICT_END_NO_SET);
    return then;
}

/* The current victim must not be evicted: choose another set. */
static struct evict_output evict_step_choose_other(struct evict_machine *m)
{
    m->refused = true;
    return evict_step_choose(m, (struct evict_output){.action = EVICT_DO_CHOOSE});
}

static struct evict_output evict_step_spare(struct evict_machine *m)
{
    struct evict_output out = evict_step_choose_other(m);
    out.spare = true;
    return out;
}

/* The action for the current victim, or the next phase after the last victim. */
static struct evict_output evict_step_turn(struct evict_machine *m, uint64_t now_ms)
{
    if (m->at < m->n)
        return (struct evict_output){
            .action = m->phase == EVICT_TRYING ? EVICT_DO_TRY : EVICT_DO_EVICT, .at = m->at};
    m->at = 0;
    if (m->phase == EVICT_TRYING) {
        m->phase = EVICT_KEEPING;
        return (struct evict_output){.action = EVICT_DO_KEEP};
    }
    m->phase = EVICT_LEAVING;
    m->until_ms = now_ms + EVICT_LEAVE_MS;
    return evict_step_wait(m->times.look_ms);
}

static struct evict_output evict_step_next(struct evict_machine *m, const struct evict_input *in,
                                           uint64_t now_ms)
{
    m->failures = 0;
    m->at++;
    /* There is room already: leave the remaining victims alone as long as that is true. */
    if (m->phase == EVICT_EVICTING && in->fits) {
        m->rest = m->at;
        m->at = m->n;
    }
    return evict_step_turn(m, now_ms);
}

static struct evict_output evict_step_chosen(struct evict_machine *m, const struct evict_input *in,
                                             uint64_t now_ms)
{
    assert(m->phase == EVICT_CHOOSING);
    m->refused = m->refused || in->guarded;
    if (!in->found)
        return evict_step_end(m, m->refused ? EVICT_END_PROTECTED : EVICT_END_NO_SET);
    if (in->chosen == 0 && m->evicted == 0)
        return evict_step_end(m, EVICT_END_NEEDLESS);
    m->n = m->rest = in->chosen;
    m->at = 0;
    m->phase = EVICT_TRYING;
    return evict_step_turn(m, now_ms);
}

static struct evict_output evict_step_kept(struct evict_machine *m, const struct evict_input *in,
                                           uint64_t now_ms)
{
    assert(m->phase == EVICT_KEEPING || m->phase == EVICT_WAITING);
    if (!in->kept)
        return evict_step_end(m, EVICT_END_NO_ROOM);
    if (m->phase == EVICT_WAITING)
        return evict_step_wait(m->times.look_ms);
    m->phase = EVICT_EVICTING;
    return evict_step_turn(m, now_ms);
}

static struct evict_output evict_step_answered(struct evict_machine *m,
                                               const struct evict_input *in, uint64_t now_ms)
{
    assert(m->phase == EVICT_TRYING || m->phase == EVICT_EVICTING);
    struct evict_output out;
    switch (in->answer) {
    case EVICT_GRANTED:
        return evict_step_next(m, in, now_ms);
    case EVICT_GONE:
        /* Fewer victims may be enough now: choose again when the watch has shown the change. */
        return m->phase == EVICT_TRYING ? evict_step_choose(m, evict_step_wait(m->times.look_ms))
                                        : evict_step_next(m, in, now_ms);
    case EVICT_REFUSED:
        return evict_step_spare(m);
    case EVICT_DENIED:
        return evict_step_end(m, EVICT_END_DENIED);
    case EVICT_UNSERVED:
        if (m->exchanged)
            return evict_step_end(m, EVICT_END_UNSERVED);
        m->exchanged = true;
        out = evict_step_turn(m, now_ms);
        out.other_version = true;
        return out;
    case EVICT_FAILED:
        if (++m->failures >= EVICT_FAILURES)
            return evict_step_end(m, EVICT_END_FAILED);
        return evict_step_wait(m->times.retry_ms << (m->failures - 1));
    }
    return evict_step_end(m, EVICT_END_FAILED);
}

/* Some victims were left alone because there was room, and another pod has taken that room. */
static bool evict_step_resumes(const struct evict_machine *m, const struct evict_input *in)
{
    return m->rest < m->n && !in->fits;
}

static struct evict_output evict_step_resume(struct evict_machine *m, uint64_t now_ms)
{
    m->phase = EVICT_EVICTING;
    m->at = m->rest;
    m->rest = m->n;
    return evict_step_turn(m, now_ms);
}

static struct evict_output evict_step_look(struct evict_machine *m, const struct evict_input *in,
                                           uint64_t now_ms)
{
    struct evict_output out = evict_step_wait(m->times.look_ms);
    switch (m->phase) {
    case EVICT_TRYING:
        return evict_step_turn(m, now_ms);
    case EVICT_EVICTING:
        /* The eviction took effect, and only its answer was lost. */
        if (m->failures > 0 && in->leaves) {
            m->evicted++;
            return evict_step_next(m, in, now_ms);
        }
        return evict_step_turn(m, now_ms);
    case EVICT_LEAVING:
        if (in->left > 0 && evict_step_resumes(m, in))
            return evict_step_resume(m, now_ms);
        if (in->left > 0 && !in->fits)
            return now_ms < m->until_ms ? out : evict_step_end(m, EVICT_END_LINGERS);
        m->phase = EVICT_WAITING;
        m->until_ms = now_ms + m->times.keep_ms;
        out.room = true;
        return out;
    case EVICT_WAITING:
        if (now_ms >= m->until_ms)
            return evict_step_end(m, EVICT_END_TIME);
        /* A failed bind has released the kept room. */
        if (!in->has_room)
            out = (struct evict_output){.action = EVICT_DO_KEEP};
        else if (in->left > 0 && evict_step_resumes(m, in))
            return evict_step_resume(m, now_ms);
        return out;
    case EVICT_CHOOSING:
        return (struct evict_output){.action = EVICT_DO_CHOOSE};
    case EVICT_KEEPING:
        return (struct evict_output){.action = EVICT_DO_KEEP};
    case EVICT_OVER:
        break;
    }
    return out;
}

/* A bind of the pod is under way: wait for its result. */
static struct evict_output evict_step_stand_by(struct evict_machine *m,
                                               const struct evict_input *in)
{
    if (in->type == EVICT_IN_ANSWER && in->answer == EVICT_GRANTED)
        m->at++;
    return evict_step_wait(m->times.look_ms);
}

struct evict_output evict_step(struct evict_machine *m, const struct evict_input *in,
                               uint64_t now_ms)
{
    assert(m->phase != EVICT_OVER);
    if (in->type == EVICT_IN_ANSWER && in->answer == EVICT_GRANTED && m->phase == EVICT_EVICTING)
        m->evicted++;
    if (!in->leads)
        return evict_step_end(m, EVICT_END_NOT_LEADING);
    if (in->pod == EVICT_POD_BOUND)
        return evict_step_end(m, EVICT_END_BOUND);
    if (in->pod == EVICT_POD_GONE)
        return evict_step_end(m, EVICT_END_POD_GONE);
    if (in->pod == EVICT_POD_BINDING)
        return evict_step_stand_by(m, in);
    if (in->fits && m->evicted == 0 && m->phase < EVICT_EVICTING)
        return evict_step_end(m, EVICT_END_NEEDLESS);
    switch (in->type) {
    case EVICT_IN_CHOSEN:
        return evict_step_chosen(m, in, now_ms);
    case EVICT_IN_KEPT:
        return evict_step_kept(m, in, now_ms);
    case EVICT_IN_ANSWER:
        return evict_step_answered(m, in, now_ms);
    case EVICT_IN_RISEN:
        assert(m->phase == EVICT_TRYING || m->phase == EVICT_EVICTING);
        return evict_step_choose_other(m);
    case EVICT_IN_LOOK:
        return evict_step_look(m, in, now_ms);
    }
    return evict_step_end(m, EVICT_END_FAILED);
}
