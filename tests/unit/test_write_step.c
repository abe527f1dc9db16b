/* The step machine of an object that is announced: each row is one input. */
#include "kube/write_step.h"

#include "unit.h"

#include <stdio.h>

#define STEPS_MAX 12

struct step {
    enum write_event event;
    enum write_do what;
    uint64_t delay_ms; /* with random 0 */
    uint64_t pass_ms;  /* before it */
    bool empty;
};

static const struct {
    const char *name;
    bool creates;
    uint64_t check_ms;
    struct step steps[STEPS_MAX];
    unsigned n;
} rows[] = {
    {"a wish",
     false,
     0,
     {{WRITE_ON_WISH, WRITE_PATCH, 0, 0, 0},
      {WRITE_ON_DONE, WRITE_REST, 0, 0, 0},
      {WRITE_ON_WISH, WRITE_PATCH, 0, 0, 0}},
     3},
    {"a wish during a call",
     false,
     0,
     {{WRITE_ON_WISH, WRITE_PATCH, 0, 0, 0},
      {WRITE_ON_WISH, WRITE_REST, 0, 0, 0},
      {WRITE_ON_DONE, WRITE_PATCH, 0, 0, 0},
      {WRITE_ON_DONE, WRITE_REST, 0, 0, 0}},
     4},
    {"written again after a while",
     true,
     7,
     {{WRITE_ON_WISH, WRITE_PATCH, 0, 0, 0},
      {WRITE_ON_DONE, WRITE_WAIT, 7, 0, 0},
      {WRITE_ON_TIMER, WRITE_PATCH, 0, 7, 0},
      {WRITE_ON_DONE, WRITE_WAIT, 7, 0, 0}},
     4},
    {"pauses double up to a limit",
     false,
     0,
     {{WRITE_ON_WISH, WRITE_PATCH, 0, 0, 0},
      {WRITE_ON_FAILED, WRITE_WAIT, 250, 0, 0},
      {WRITE_ON_TIMER, WRITE_PATCH, 0, 0, 0},
      {WRITE_ON_FAILED, WRITE_WAIT, 500, 0, 0},
      {WRITE_ON_WISH, WRITE_PATCH, 0, 0, 0}, /* at once, and the pause goes on growing */
      {WRITE_ON_FAILED, WRITE_WAIT, 1000, 0, 0},
      {WRITE_ON_TIMER, WRITE_PATCH, 0, 0, 0},
      {WRITE_ON_DONE, WRITE_REST, 0, 0, 0},
      {WRITE_ON_WISH, WRITE_PATCH, 0, 0, 0},
      {WRITE_ON_FAILED, WRITE_WAIT, 250, 0, 0}},
     10},
    {"made when it is not there",
     true,
     0,
     {{WRITE_ON_WISH, WRITE_PATCH, 0, 0, 0},
      {WRITE_ON_ABSENT, WRITE_CREATE, 0, 0, 0},
      {WRITE_ON_DONE, WRITE_REST, 0, 0, 0}},
     3},
    {"not made for nothing",
     true,
     9,
     {{WRITE_ON_WISH, WRITE_PATCH, 0, 0, 0},
      {WRITE_ON_ABSENT, WRITE_WAIT, 9, 0, true},
      {WRITE_ON_TIMER, WRITE_PATCH, 0, 0, 0},
      {WRITE_ON_ABSENT, WRITE_WAIT, 9, 0, true}},
     4},
    {"a wish while it is found absent",
     true,
     0,
     {{WRITE_ON_WISH, WRITE_PATCH, 0, 0, 0},
      {WRITE_ON_WISH, WRITE_REST, 0, 0, 0},
      {WRITE_ON_ABSENT, WRITE_CREATE, 0, 0, true},
      {WRITE_ON_DONE, WRITE_REST, 0, 0, 0}},
     4},
    {"may not be made",
     false,
     0,
     {{WRITE_ON_WISH, WRITE_PATCH, 0, 0, 0},
      {WRITE_ON_ABSENT, WRITE_WAIT, 250, 0, 0},
      {WRITE_ON_TIMER, WRITE_PATCH, 0, 0, 0}},
     3},
    {"made by another program meanwhile",
     true,
     0,
     {{WRITE_ON_WISH, WRITE_PATCH, 0, 0, 0},
      {WRITE_ON_ABSENT, WRITE_CREATE, 0, 0, 0},
      {WRITE_ON_EXISTS, WRITE_PATCH, 0, 0, 0},
      {WRITE_ON_ABSENT, WRITE_CREATE, 0, 0, 0},
      {WRITE_ON_EXISTS, WRITE_WAIT, 1000, 0, 0},
      {WRITE_ON_TIMER, WRITE_PATCH, 0, 0, 0},
      {WRITE_ON_DONE, WRITE_REST, 0, 0, 0}},
     7},
    {"drifts: at once, then more and more rarely",
     false,
     0,
     {{WRITE_ON_DRIFT, WRITE_PATCH, 0, 400000, 0},
      {WRITE_ON_DRIFT, WRITE_REST, 0, 0, 0},
      {WRITE_ON_DONE, WRITE_REST, 0, 0, 0},
      {WRITE_ON_DRIFT, WRITE_WAIT, 1000, 5, 0},
      {WRITE_ON_DRIFT, WRITE_REST, 0, 5, 0},
      {WRITE_ON_TIMER, WRITE_PATCH, 0, 1000, 0},
      {WRITE_ON_DONE, WRITE_REST, 0, 0, 0},
      {WRITE_ON_DRIFT, WRITE_WAIT, 2000, 5, 0},
      {WRITE_ON_TIMER, WRITE_PATCH, 0, 2000, 0},
      {WRITE_ON_DONE, WRITE_REST, 0, 0, 0},
      {WRITE_ON_DRIFT, WRITE_PATCH, 0, 300000, 0},
      {WRITE_ON_DONE, WRITE_REST, 0, 0, 0}},
     12},
};

TEST_EACH(one_row, COUNT_OF(rows))
{
    uint64_t now_ms = 1000000;
    struct write_state s = {.creates = rows[_i].creates, .check_ms = rows[_i].check_ms};
    for (unsigned i = 0; i < rows[_i].n; i++) {
        const struct step *want = &rows[_i].steps[i];
        now_ms += want->pass_ms;
        struct write_input in = {.event = want->event, .empty = want->empty, .now_ms = now_ms};
        struct write_action a = write_step(&s, &in);
        ck_assert_msg(a.what == want->what && a.delay_ms == want->delay_ms,
                      "%s, step %u: %d in %llu ms", rows[_i].name, i, (int)a.what,
                      (unsigned long long)a.delay_ms);
    }
}

/* Neither pause grows without end, and both have jitter. */
TEST(limits)
{
    struct write_state s = {.creates = false};
    struct write_input in = {.event = WRITE_ON_WISH, .now_ms = 1000000, .random = 14999};
    struct write_action a = write_step(&s, &in);
    for (unsigned i = 0; i < 100; i++) {
        in.event = WRITE_ON_FAILED;
        a = write_step(&s, &in);
        ck_assert_int_eq(a.what, WRITE_WAIT);
        in.event = WRITE_ON_TIMER;
        ck_assert_int_eq(write_step(&s, &in).what, WRITE_PATCH);
    }
    ck_assert_uint_eq(a.delay_ms, WRITE_RETRY_MAX_MS + 14999);
    for (unsigned i = 0; i < 100; i++) {
        in.event = WRITE_ON_DONE;
        (void)write_step(&s, &in);
        in.event = WRITE_ON_DRIFT;
        a = write_step(&s, &in);
        in.event = WRITE_ON_TIMER;
        if (a.what == WRITE_WAIT)
            (void)write_step(&s, &in);
    }
    ck_assert_uint_eq(a.delay_ms, WRITE_DRIFT_MAX_MS);
}
