/* The step machine of a container's memory limit: each row is a history, and each step of it one
 * input. Then random histories, for what must hold in all of them. */
#include "node/isolation/limit_step.h"

#include "seeded.h"

#define STEPS_MAX 10

struct step {
    uint64_t pass_ms; /* before it */
    enum limit_event event;
    enum limit_do what;
    uint64_t delay_ms;
    enum limit_news news;
};

#define CHECK(pass, event)                               \
    {                                                    \
        (pass), (event), LIMIT_CHECK, 0, LIMIT_NEWS_NONE \
    }
#define WAIT(event, ms)                               \
    {                                                 \
        0, (event), LIMIT_WAIT, (ms), LIMIT_NEWS_NONE \
    }
#define TELL(event, ms, news)                \
    {                                        \
        0, (event), LIMIT_WAIT, (ms), (news) \
    }
#define LATE(pass, event, ms)                              \
    {                                                      \
        (pass), (event), LIMIT_WAIT, (ms), LIMIT_NEWS_NONE \
    }

static const struct {
    const char *name;
    struct step steps[STEPS_MAX];
    unsigned n;
} rows[] = {
    {"the runtime's limit is there, and stays",
     {CHECK(0, LIMIT_ON_START), WAIT(LIMIT_ON_THERE, LIMIT_AGAIN_MS), CHECK(60000, LIMIT_ON_TIMER),
      WAIT(LIMIT_ON_THERE, LIMIT_AGAIN_MS)},
     4},
    {"the runtime is too old",
     {CHECK(0, LIMIT_ON_START), TELL(LIMIT_ON_OURS, LIMIT_AGAIN_MS, LIMIT_NEWS_OURS),
      CHECK(60000, LIMIT_ON_TIMER), WAIT(LIMIT_ON_THERE, LIMIT_AGAIN_MS)},
     4},
    {"a limit that vanished is set again",
     {CHECK(0, LIMIT_ON_START), WAIT(LIMIT_ON_THERE, LIMIT_AGAIN_MS), CHECK(60000, LIMIT_ON_TIMER),
      TELL(LIMIT_ON_OURS, LIMIT_AGAIN_MS, LIMIT_NEWS_OURS)},
     4},
    {"it never reads back, and then it does",
     {CHECK(0, LIMIT_ON_START), WAIT(LIMIT_ON_ABSENT, LIMIT_RETRY_MS), CHECK(1000, LIMIT_ON_TIMER),
      TELL(LIMIT_ON_ABSENT, LIMIT_POLL_MS, LIMIT_NEWS_MISSING), CHECK(5000, LIMIT_ON_TIMER),
      WAIT(LIMIT_ON_ABSENT, LIMIT_POLL_MS), CHECK(5000, LIMIT_ON_TIMER),
      TELL(LIMIT_ON_OURS, LIMIT_AGAIN_MS, LIMIT_NEWS_BACK)},
     8},
    {"one failure is not yet a missing limit",
     {CHECK(0, LIMIT_ON_START), WAIT(LIMIT_ON_ABSENT, LIMIT_RETRY_MS), CHECK(1000, LIMIT_ON_TIMER),
      WAIT(LIMIT_ON_THERE, LIMIT_AGAIN_MS), CHECK(60000, LIMIT_ON_TIMER),
      WAIT(LIMIT_ON_ABSENT, LIMIT_RETRY_MS)},
     6},
    {"a restart without a limit keeps what was told",
     {CHECK(0, LIMIT_ON_START),
      WAIT(LIMIT_ON_ABSENT, LIMIT_RETRY_MS),
      CHECK(1000, LIMIT_ON_TIMER),
      TELL(LIMIT_ON_ABSENT, LIMIT_POLL_MS, LIMIT_NEWS_MISSING),
      {10, LIMIT_ON_END, LIMIT_REST, 0, LIMIT_NEWS_NONE},
      CHECK(10, LIMIT_ON_START),
      WAIT(LIMIT_ON_ABSENT, LIMIT_POLL_MS),
      CHECK(5000, LIMIT_ON_TIMER),
      TELL(LIMIT_ON_THERE, LIMIT_AGAIN_MS, LIMIT_NEWS_BACK)},
     9},
    {"a restart has a new cgroup, which is checked at once",
     {CHECK(0, LIMIT_ON_START), WAIT(LIMIT_ON_THERE, LIMIT_AGAIN_MS), CHECK(7, LIMIT_ON_START),
      WAIT(LIMIT_ON_THERE, LIMIT_AGAIN_MS)},
     4},
    {"a restart while the old cgroup is checked",
     {CHECK(0, LIMIT_ON_START), CHECK(7, LIMIT_ON_START), WAIT(LIMIT_ON_THERE, LIMIT_AGAIN_MS)},
     3},
    {"the driver hangs at the start",
     {CHECK(0, LIMIT_ON_START),
      LATE(10000, LIMIT_ON_UNKNOWN, LIMIT_RETRY_MS),
      CHECK(1000, LIMIT_ON_TIMER),
      LATE(10000, LIMIT_ON_UNKNOWN, LIMIT_RETRY_MS),
      CHECK(1000, LIMIT_ON_TIMER),
      {10000, LIMIT_ON_UNKNOWN, LIMIT_WAIT, LIMIT_POLL_MS, LIMIT_NEWS_MISSING},
      CHECK(5000, LIMIT_ON_TIMER),
      TELL(LIMIT_ON_THERE, LIMIT_AGAIN_MS, LIMIT_NEWS_BACK)},
     8},
    {"the driver hangs later",
     {CHECK(0, LIMIT_ON_START),
      WAIT(LIMIT_ON_THERE, LIMIT_AGAIN_MS),
      CHECK(60000, LIMIT_ON_TIMER),
      LATE(10000, LIMIT_ON_UNKNOWN, LIMIT_RETRY_MS),
      CHECK(1000, LIMIT_ON_TIMER),
      {19000, LIMIT_ON_UNKNOWN, LIMIT_WAIT, LIMIT_POLL_MS, LIMIT_NEWS_MISSING}},
     6},
    {"a lost card gets no pods anyway",
     {CHECK(0, LIMIT_ON_START), LATE(40000, LIMIT_ON_LOST, LIMIT_POLL_MS),
      CHECK(40000, LIMIT_ON_TIMER), LATE(0, LIMIT_ON_LOST, LIMIT_POLL_MS),
      CHECK(5000, LIMIT_ON_TIMER), LATE(10000, LIMIT_ON_UNKNOWN, LIMIT_RETRY_MS),
      CHECK(1000, LIMIT_ON_TIMER), TELL(LIMIT_ON_OURS, LIMIT_AGAIN_MS, LIMIT_NEWS_OURS)},
     8},
    {"no cgroup is found",
     {CHECK(0, LIMIT_ON_START), WAIT(LIMIT_ON_NO_GROUP, LIMIT_RETRY_MS),
      CHECK(30000, LIMIT_ON_TIMER), TELL(LIMIT_ON_NO_GROUP, LIMIT_POLL_MS, LIMIT_NEWS_MISSING)},
     4},
    {"the container has ended, and its pod does not say so yet",
     {CHECK(0, LIMIT_ON_START),
      WAIT(LIMIT_ON_THERE, LIMIT_AGAIN_MS),
      CHECK(60000, LIMIT_ON_TIMER),
      WAIT(LIMIT_ON_NO_GROUP, LIMIT_POLL_MS),
      CHECK(29999, LIMIT_ON_TIMER),
      WAIT(LIMIT_ON_NO_GROUP, LIMIT_POLL_MS),
      {0, LIMIT_ON_END, LIMIT_REST, 0, LIMIT_NEWS_NONE}},
     7},
    {"its status says so late, which takes the finding back",
     {CHECK(0, LIMIT_ON_START),
      WAIT(LIMIT_ON_THERE, LIMIT_AGAIN_MS),
      CHECK(60000, LIMIT_ON_TIMER),
      WAIT(LIMIT_ON_NO_GROUP, LIMIT_POLL_MS),
      CHECK(30000, LIMIT_ON_TIMER),
      TELL(LIMIT_ON_NO_GROUP, LIMIT_POLL_MS, LIMIT_NEWS_MISSING),
      CHECK(5000, LIMIT_ON_TIMER),
      WAIT(LIMIT_ON_NO_GROUP, LIMIT_POLL_MS),
      {0, LIMIT_ON_END, LIMIT_REST, 0, LIMIT_NEWS_ENDED}},
     9},
    {"the cgroup vanishes, comes back, and its limit does not",
     {CHECK(0, LIMIT_ON_START),
      WAIT(LIMIT_ON_THERE, LIMIT_AGAIN_MS),
      CHECK(60000, LIMIT_ON_TIMER),
      WAIT(LIMIT_ON_NO_GROUP, LIMIT_POLL_MS),
      CHECK(30000, LIMIT_ON_TIMER),
      TELL(LIMIT_ON_NO_GROUP, LIMIT_POLL_MS, LIMIT_NEWS_MISSING),
      CHECK(5000, LIMIT_ON_TIMER),
      WAIT(LIMIT_ON_ABSENT, LIMIT_POLL_MS),
      {0, LIMIT_ON_END, LIMIT_REST, 0, LIMIT_NEWS_NONE}},
     9},
    {"the cgroup vanishes, and the container starts again",
     {CHECK(0, LIMIT_ON_START), WAIT(LIMIT_ON_THERE, LIMIT_AGAIN_MS), CHECK(60000, LIMIT_ON_TIMER),
      WAIT(LIMIT_ON_NO_GROUP, LIMIT_POLL_MS), CHECK(30000, LIMIT_ON_TIMER),
      TELL(LIMIT_ON_NO_GROUP, LIMIT_POLL_MS, LIMIT_NEWS_MISSING), CHECK(1, LIMIT_ON_START),
      TELL(LIMIT_ON_THERE, LIMIT_AGAIN_MS, LIMIT_NEWS_BACK)},
     8},
    {"no cgroup for long, and then no limit",
     {CHECK(0, LIMIT_ON_START),
      LATE(29999, LIMIT_ON_NO_GROUP, LIMIT_RETRY_MS),
      CHECK(1000, LIMIT_ON_TIMER),
      TELL(LIMIT_ON_NO_GROUP, LIMIT_POLL_MS, LIMIT_NEWS_MISSING),
      {0, LIMIT_ON_END, LIMIT_REST, 0, LIMIT_NEWS_NONE}},
     5},
};

TEST_EACH(one_row, COUNT_OF(rows))
{
    uint64_t now_ms = 1000000;
    struct limit_state s = {.running = false};
    for (unsigned i = 0; i < rows[_i].n; i++) {
        const struct step *want = &rows[_i].steps[i];
        now_ms += want->pass_ms;
        struct limit_input in = {.event = want->event, .now_ms = now_ms};
        struct limit_action a = limit_step(&s, &in);
        ck_assert_msg(a.what == want->what && a.delay_ms == want->delay_ms && a.news == want->news,
                      "%s, step %u: %d in %llu ms, news %d", rows[_i].name, i, (int)a.what,
                      (unsigned long long)a.delay_ms, (int)a.news);
    }
}

/* What a history has shown so far, kept without the machine's own fields. */
struct watched {
    bool running;
    bool told;        /* that it is missing */
    bool seen;        /* its cgroup was there once */
    bool good;        /* the last answer was, as far as it was one */
    bool vanished;    /* told because a cgroup with a good limit was away, and for nothing else */
    unsigned absent;  /* in a row */
    bool denied;      /* since it was good last, the driver has said that it is absent */
    uint64_t good_ms; /* so long the last answer is good for */
};

/* Not ck_assert for each of a million checks: it writes to check's pipe even when it holds. */
#define must(cond)                                                                  \
    do {                                                                            \
        if (!(cond))                                                                \
            ck_abort_msg("history %d, step %u: %s does not hold", _i, step, #cond); \
    } while (0)

static void watch_news(struct watched *w, const struct limit_action *a, enum limit_event e, int _i,
                       unsigned step)
{
    bool good = e == LIMIT_ON_THERE || e == LIMIT_ON_OURS;
    w->vanished = w->vanished && !good && e != LIMIT_ON_ABSENT;
    if (a->news == LIMIT_NEWS_MISSING) {
        must(!w->told);
        w->told = true;
        w->vanished = e == LIMIT_ON_NO_GROUP && w->seen;
    } else if (a->news == LIMIT_NEWS_BACK) {
        must(w->told && good);
        w->told = false;
    } else if (a->news == LIMIT_NEWS_ENDED) {
        must(w->told && w->vanished && !w->running);
        w->told = w->vanished = false;
    } else if (a->news == LIMIT_NEWS_OURS) {
        must(!w->told && good);
    }
    must(!good || !w->told);
}

static void watch_answer(struct watched *w, enum limit_event e, uint64_t now_ms)
{
    bool good = e == LIMIT_ON_THERE || e == LIMIT_ON_OURS;
    w->denied = e == LIMIT_ON_ABSENT || (w->denied && !good);
    w->absent = e == LIMIT_ON_ABSENT ? w->absent + 1 : good ? 0 : w->absent;
    w->seen = w->seen || good || e == LIMIT_ON_ABSENT;
    if (good)
        w->good_ms = now_ms + LIMIT_AGAIN_MS;
    else if (e == LIMIT_ON_LOST)
        w->good_ms = now_ms + LIMIT_POLL_MS;
    else if (e == LIMIT_ON_NO_GROUP && w->good)
        w->good_ms = now_ms;
    w->good = good || (w->good && e == LIMIT_ON_UNKNOWN);
}

/* Never silent: absent twice, or long without an answer that excuses it, and it was told. Never
 * asleep: a container that runs has a check or a timer before it. */
TEST_EACH(all_histories, 200)
{
    uint64_t dice = seeded_setting("CARDPACK_SEED", 1) + (uint64_t)_i;
    uint64_t now_ms = 1000000;
    struct limit_state s = {.running = false};
    struct watched w = {.running = false};
    bool checking = false;
    for (unsigned step = 0; step < 2000; step++) {
        static const enum limit_event answers[] = {
            LIMIT_ON_THERE,   LIMIT_ON_OURS, LIMIT_ON_ABSENT,
            LIMIT_ON_UNKNOWN, LIMIT_ON_LOST, LIMIT_ON_NO_GROUP,
        };

        uint32_t kind = seeded_draw(&dice, 20);
        struct limit_input in = {.event = LIMIT_ON_TIMER};
        if (kind == 0 || !w.running)
            in.event = LIMIT_ON_START;
        else if (kind == 1)
            in.event = LIMIT_ON_END;
        else if (checking)
            in.event = answers[seeded_draw(&dice, COUNT_OF(answers))];
        now_ms += seeded_draw(&dice, 4) == 0 ? seeded_draw(&dice, 40000) : seeded_draw(&dice, 50);
        in.now_ms = now_ms;
        struct limit_action a = limit_step(&s, &in);
        bool answer = in.event >= LIMIT_ON_THERE;
        if (in.event == LIMIT_ON_START)
            w = (struct watched){
                .running = true, .told = w.told, .denied = w.denied, .good_ms = now_ms};
        else if (in.event == LIMIT_ON_END)
            w.running = false;
        if (answer)
            watch_answer(&w, in.event, now_ms);
        must(in.event != LIMIT_ON_END || !w.vanished || a.news == LIMIT_NEWS_ENDED);
        watch_news(&w, &a, in.event, _i, step);
        must(w.running == (a.what != LIMIT_REST));
        must(a.what != LIMIT_WAIT || (a.delay_ms > 0 && a.delay_ms <= LIMIT_AGAIN_MS));
        must(s.missing == w.told);
        must(!s.absent || s.missing); /* and not for want of an answer alone: */
        must(!s.absent || w.denied);
        checking = a.what == LIMIT_CHECK;
        bool late = answer && now_ms >= w.good_ms + LIMIT_GRACE_MS;
        must(w.told || !w.running || (w.absent < LIMIT_TRIES && !late));
    }
}
