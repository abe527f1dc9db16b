/* Chooses the next check of one limit. The rules are in limit_step.h. */
#include "node/isolation/limit_step.h"

static struct limit_action limit_step_wait(uint64_t ms, enum limit_news news)
{
    return (struct limit_action){LIMIT_WAIT, ms, news};
}

static struct limit_action limit_step_check(struct limit_state *s)
{
    s->checking = true;
    return (struct limit_action){.what = LIMIT_CHECK};
}

static struct limit_action limit_step_good(struct limit_state *s, uint64_t now_ms, bool ours)
{
    enum limit_news news = s->missing ? LIMIT_NEWS_BACK : ours ? LIMIT_NEWS_OURS : LIMIT_NEWS_NONE;
    s->enforced = true;
    s->missing = s->absent = s->vanished = false;
    s->seen = true;
    s->absences = 0;
    s->due_ms = now_ms + LIMIT_AGAIN_MS;
    return limit_step_wait(LIMIT_AGAIN_MS, news);
}

static struct limit_action limit_step_miss(struct limit_state *s)
{
    enum limit_news news = s->missing ? LIMIT_NEWS_NONE : LIMIT_NEWS_MISSING;
    s->missing = true;
    s->enforced = false;
    return limit_step_wait(LIMIT_POLL_MS, news);
}

static bool limit_step_is_late(const struct limit_state *s, uint64_t now_ms)
{
    return now_ms >= s->due_ms + LIMIT_GRACE_MS;
}

static struct limit_action limit_step_absent(struct limit_state *s, uint64_t now_ms)
{
    s->seen = true;
    s->enforced = s->vanished = false;
    s->absences++;
    s->absent = s->missing || s->absences >= LIMIT_TRIES || limit_step_is_late(s, now_ms);
    if (s->absent)
        return limit_step_miss(s);
    return limit_step_wait(LIMIT_RETRY_MS, LIMIT_NEWS_NONE);
}

static struct limit_action limit_step_unknown(struct limit_state *s, uint64_t now_ms)
{
    if (limit_step_is_late(s, now_ms))
        return limit_step_miss(s);
    return limit_step_wait(s->missing ? LIMIT_POLL_MS : LIMIT_RETRY_MS, LIMIT_NEWS_NONE);
}

/* The kernel keeps the cgroup of a process: as a rule the container has ended, and its pod's status
 * will say so. */
static struct limit_action limit_step_no_group(struct limit_state *s, uint64_t now_ms)
{
    if (!s->seen)
        return limit_step_unknown(s, now_ms);
    if (s->enforced)
        s->due_ms = now_ms;
    s->enforced = false;
    if (!limit_step_is_late(s, now_ms))
        return limit_step_wait(LIMIT_POLL_MS, LIMIT_NEWS_NONE);
    s->vanished = s->vanished || !s->missing;
    return limit_step_miss(s);
}

static struct limit_action limit_step_lost(struct limit_state *s, uint64_t now_ms)
{
    s->enforced = false;
    s->due_ms = now_ms + LIMIT_POLL_MS;
    return limit_step_wait(LIMIT_POLL_MS, LIMIT_NEWS_NONE);
}

static struct limit_action limit_step_start(struct limit_state *s, uint64_t now_ms)
{
    *s = (struct limit_state){
        .running = true, .missing = s->missing, .absent = s->absent, .due_ms = now_ms};
    return limit_step_check(s);
}

static struct limit_action limit_step_end(struct limit_state *s)
{
    bool over = s->vanished;
    *s = (struct limit_state){.missing = s->missing && !over, .absent = s->absent && !over};
    return (struct limit_action){.what = LIMIT_REST,
                                 .news = over ? LIMIT_NEWS_ENDED : LIMIT_NEWS_NONE};
}

struct limit_action limit_step(struct limit_state *s, const struct limit_input *in)
{
    if (in->event == LIMIT_ON_START)
        return limit_step_start(s, in->now_ms);
    if (in->event == LIMIT_ON_END)
        return limit_step_end(s);
    assert(s->running && s->checking == (in->event != LIMIT_ON_TIMER));
    s->checking = false;
    switch (in->event) {
    case LIMIT_ON_TIMER:
        return limit_step_check(s);
    case LIMIT_ON_THERE:
    case LIMIT_ON_OURS:
        return limit_step_good(s, in->now_ms, in->event == LIMIT_ON_OURS);
    case LIMIT_ON_ABSENT:
        return limit_step_absent(s, in->now_ms);
    case LIMIT_ON_UNKNOWN:
        return limit_step_unknown(s, in->now_ms);
    case LIMIT_ON_LOST:
        return limit_step_lost(s, in->now_ms);
    case LIMIT_ON_NO_GROUP:
        return limit_step_no_group(s, in->now_ms);
    case LIMIT_ON_START:
    case LIMIT_ON_END:
        break;
    }
    return (struct limit_action){.what = LIMIT_REST};
}
