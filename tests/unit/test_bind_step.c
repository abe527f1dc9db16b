/* The step machine of one bind: tables of inputs, and the action that each must give. */
#include "daemon/bind/bind_step.h"
#include "daemon/limit.h"
#include "unit.h"

#define DEADLINE 25000

/* One step of a history: the input, and the expected action. */
struct step {
    uint64_t now;
    enum bind_input_type in;
    enum post_result post;
    enum bind_seen seen;
    enum bind_action want;
    bool want_answer;
    bool edited;
};

#define TURN(t, w)                             \
    {                                          \
        t, BIND_IN_TURN, 0, 0, w, false, false \
    }
#define POSTED(t, p, w)                          \
    {                                            \
        t, BIND_IN_POSTED, p, 0, w, false, false \
    }
#define READ(t, s, w)                          \
    {                                          \
        t, BIND_IN_READ, 0, s, w, false, false \
    }
#define ANSWERED(t, s, w)                     \
    {                                         \
        t, BIND_IN_READ, 0, s, w, true, false \
    }
#define EDITED(t, w)                                     \
    {                                                    \
        t, BIND_IN_READ, 0, SEEN_UNBOUND, w, false, true \
    }
#define WAKE(t, w)                             \
    {                                          \
        t, BIND_IN_WAKE, 0, 0, w, false, false \
    }
#define LATE(t, w, a)                          \
    {                                          \
        t, BIND_IN_DEADLINE, 0, 0, w, a, false \
    }
#define STEPS_MAX 12

static const struct history {
    const char *name;
    struct step steps[STEPS_MAX]; /* ends with the first step of all zeros */
} histories[] = {
    {"created", {TURN(1, BIND_DO_POST), POSTED(5, POST_CREATED, BIND_DO_CONFIRM)}},
    {"refused, and unbound",
     {TURN(1, BIND_DO_POST), POSTED(5, POST_REFUSED, BIND_DO_READ),
      READ(9, SEEN_UNBOUND, BIND_DO_CANCEL)}},
    {"refused, and gone",
     {TURN(1, BIND_DO_POST), POSTED(5, POST_REFUSED, BIND_DO_READ),
      READ(9, SEEN_GONE, BIND_DO_CANCEL)}},
    {"the second copy of a proxy is refused: the first has bound the pod, which is being deleted",
     {TURN(1, BIND_DO_POST), POSTED(5, POST_REFUSED, BIND_DO_READ),
      READ(9, SEEN_AS_ASKED, BIND_DO_CONFIRM)}},
    {"refused, and not read in time: it is not given up unread",
     {TURN(1, BIND_DO_POST), POSTED(5, POST_REFUSED, BIND_DO_READ),
      READ(9, SEEN_NOTHING, BIND_DO_PAUSE), LATE(DEADLINE, BIND_DO_PAUSE, true),
      WAKE(DEADLINE + 100, BIND_DO_READ), READ(DEADLINE + 105, SEEN_UNBOUND, BIND_DO_CANCEL)}},
    {"an answer lost after it took effect",
     {TURN(1, BIND_DO_POST), POSTED(5, POST_UNKNOWN, BIND_DO_READ),
      READ(9, SEEN_AS_ASKED, BIND_DO_CONFIRM)}},
    {"bound elsewhere by another client",
     {TURN(1, BIND_DO_POST), POSTED(5, POST_UNKNOWN, BIND_DO_READ),
      READ(9, SEEN_ELSEWHERE, BIND_DO_CANCEL)}},
    {"assigned already, as asked: a copy of ours came first",
     {TURN(1, BIND_DO_POST), POSTED(5, POST_ASSIGNED, BIND_DO_READ),
      READ(9, SEEN_AS_ASKED, BIND_DO_CONFIRM)}},
    {"assigned already, another pod of that name: nothing is in doubt",
     {TURN(1, BIND_DO_POST), POSTED(5, POST_ASSIGNED, BIND_DO_READ),
      READ(9, SEEN_GONE, BIND_DO_CANCEL)}},
    {"assigned already, and not read in time: it may be ours, and is not given up unread",
     {TURN(1, BIND_DO_POST), POSTED(5, POST_ASSIGNED, BIND_DO_READ),
      LATE(DEADLINE, BIND_DO_PAUSE, true), WAKE(DEADLINE + 100, BIND_DO_READ),
      READ(DEADLINE + 105, SEEN_AS_ASKED, BIND_DO_CONFIRM)}},
    {"the same, and the pod is not bound after all: nothing more is sent after the deadline",
     {TURN(1, BIND_DO_POST), POSTED(5, POST_ASSIGNED, BIND_DO_READ),
      LATE(DEADLINE, BIND_DO_PAUSE, true), WAKE(DEADLINE + 100, BIND_DO_READ),
      READ(DEADLINE + 105, SEEN_UNBOUND, BIND_DO_CANCEL)}},
    {"the same, and it turns out to be another's",
     {TURN(1, BIND_DO_POST), POSTED(5, POST_ASSIGNED, BIND_DO_READ),
      LATE(DEADLINE, BIND_DO_PAUSE, true), WAKE(DEADLINE + 100, BIND_DO_READ),
      READ(DEADLINE + 105, SEEN_GONE, BIND_DO_CANCEL)}},
    {"gone while in doubt: answered, and held until nothing can bind its successor",
     {TURN(1, BIND_DO_POST), POSTED(5, POST_UNKNOWN, BIND_DO_READ),
      ANSWERED(9, SEEN_GONE, BIND_DO_PAUSE), WAKE(99, BIND_DO_READ),
      ANSWERED(105, SEEN_GONE, BIND_DO_PAUSE), WAKE(5 + LIMIT_DOUBT_MS, BIND_DO_READ),
      READ(9 + LIMIT_DOUBT_MS, SEEN_GONE, BIND_DO_CANCEL)}},
    {"assigned to a second copy, while the first may still commit: that one is waited for",
     {TURN(1, BIND_DO_POST), POSTED(5, POST_UNKNOWN, BIND_DO_READ),
      READ(9, SEEN_UNBOUND, BIND_DO_PAUSE), WAKE(99, BIND_DO_POST),
      POSTED(105, POST_ASSIGNED, BIND_DO_READ), ANSWERED(109, SEEN_GONE, BIND_DO_PAUSE),
      WAKE(5 + LIMIT_DOUBT_MS, BIND_DO_READ), READ(9 + LIMIT_DOUBT_MS, SEEN_GONE, BIND_DO_CANCEL)}},
    {"unbound: the same Binding again",
     {TURN(1, BIND_DO_POST), POSTED(5, POST_UNKNOWN, BIND_DO_READ),
      READ(9, SEEN_UNBOUND, BIND_DO_PAUSE), WAKE(99, BIND_DO_POST),
      POSTED(105, POST_CREATED, BIND_DO_CONFIRM)}},
    {"outdated, and unbound: the Binding is sent again",
     {TURN(1, BIND_DO_POST), POSTED(5, POST_OUTDATED, BIND_DO_READ),
      READ(9, SEEN_UNBOUND, BIND_DO_PAUSE), WAKE(99, BIND_DO_POST)}},
    {"outdated three times: given up, so that the node's other pods get their turn",
     {TURN(1, BIND_DO_POST), POSTED(5, POST_OUTDATED, BIND_DO_READ),
      READ(9, SEEN_UNBOUND, BIND_DO_PAUSE), WAKE(99, BIND_DO_POST),
      POSTED(105, POST_OUTDATED, BIND_DO_READ), READ(109, SEEN_UNBOUND, BIND_DO_PAUSE),
      WAKE(299, BIND_DO_POST), POSTED(305, POST_OUTDATED, BIND_DO_READ),
      READ(309, SEEN_UNBOUND, BIND_DO_CANCEL)}},
    {"outdated, and its request is another one: given up",
     {TURN(1, BIND_DO_POST), POSTED(5, POST_OUTDATED, BIND_DO_READ), EDITED(9, BIND_DO_CANCEL)}},
    {"another request while in doubt: nothing is sent again, and reads follow",
     {TURN(1, BIND_DO_POST), POSTED(5, POST_UNKNOWN, BIND_DO_READ), EDITED(9, BIND_DO_PAUSE),
      WAKE(99, BIND_DO_READ), EDITED(105, BIND_DO_PAUSE), WAKE(5 + LIMIT_DOUBT_MS, BIND_DO_READ),
      EDITED(9 + LIMIT_DOUBT_MS, BIND_DO_CANCEL)}},
    {"throttled: later again, nothing in doubt",
     {TURN(1, BIND_DO_POST), POSTED(5, POST_THROTTLED, BIND_DO_PAUSE), WAKE(1005, BIND_DO_POST),
      POSTED(1010, POST_CREATED, BIND_DO_CONFIRM)}},
    {"never sent until the deadline: given up",
     {TURN(1, BIND_DO_POST), POSTED(5, POST_NOT_SENT, BIND_DO_PAUSE), WAKE(99, BIND_DO_POST),
      POSTED(105, POST_NOT_SENT, BIND_DO_PAUSE), LATE(DEADLINE, BIND_DO_CANCEL, false)}},
    {"a refusal after a doubtful one proves nothing about the first",
     {TURN(1, BIND_DO_POST), POSTED(5, POST_UNKNOWN, BIND_DO_READ),
      READ(9, SEEN_UNBOUND, BIND_DO_PAUSE), WAKE(99, BIND_DO_POST),
      POSTED(105, POST_REFUSED, BIND_DO_READ), READ(109, SEEN_AS_ASKED, BIND_DO_CONFIRM)}},
    {"credentials are renewed once",
     {TURN(1, BIND_DO_POST), POSTED(5, POST_UNAUTHORIZED, BIND_DO_REFRESH_POST),
      POSTED(9, POST_UNAUTHORIZED, BIND_DO_READ), READ(12, SEEN_UNBOUND, BIND_DO_CANCEL)}},
    {"the second copy of a proxy is throttled: the first has bound the pod",
     {TURN(1, BIND_DO_POST), POSTED(5, POST_THROTTLED, BIND_DO_PAUSE),
      LATE(DEADLINE, BIND_DO_PAUSE, true), WAKE(DEADLINE + 100, BIND_DO_READ),
      READ(DEADLINE + 105, SEEN_AS_ASKED, BIND_DO_CONFIRM)}},
    {"the same, and it was sent once: one read releases the card",
     {TURN(1, BIND_DO_POST), POSTED(5, POST_THROTTLED, BIND_DO_PAUSE),
      LATE(DEADLINE, BIND_DO_PAUSE, true), WAKE(DEADLINE + 100, BIND_DO_READ),
      READ(DEADLINE + 105, SEEN_UNBOUND, BIND_DO_CANCEL)}},
    {"the token has ended, and nothing can be read: answered at once, released by a later read",
     {TURN(1, BIND_DO_POST), POSTED(5, POST_UNAUTHORIZED, BIND_DO_REFRESH_POST),
      POSTED(9, POST_UNAUTHORIZED, BIND_DO_READ), ANSWERED(12, SEEN_NOTHING, BIND_DO_PAUSE),
      WAKE(99, BIND_DO_READ), READ(105, SEEN_UNBOUND, BIND_DO_CANCEL)}},
    {"the second copy of a proxy meets a token that has ended: the first has bound the pod",
     {TURN(1, BIND_DO_POST), POSTED(5, POST_UNAUTHORIZED, BIND_DO_REFRESH_POST),
      POSTED(9, POST_UNAUTHORIZED, BIND_DO_READ), READ(12, SEEN_AS_ASKED, BIND_DO_CONFIRM)}},
    {"still queued at the deadline", {LATE(DEADLINE, BIND_DO_CANCEL, false)}},
    {"its turn comes when there is no time left to send: no doubt is made",
     {TURN(DEADLINE - 1, BIND_DO_CANCEL)}},
    {"nor after a pause",
     {TURN(1, BIND_DO_POST), POSTED(5, POST_THROTTLED, BIND_DO_PAUSE),
      WAKE(DEADLINE - 1, BIND_DO_READ), READ(DEADLINE, SEEN_UNBOUND, BIND_DO_CANCEL)}},
    {"nor where nothing was sent",
     {TURN(1, BIND_DO_POST), POSTED(5, POST_NOT_SENT, BIND_DO_PAUSE),
      WAKE(DEADLINE - 1, BIND_DO_CANCEL)}},
    {"in doubt already: read",
     {TURN(1, BIND_DO_POST), POSTED(5, POST_UNKNOWN, BIND_DO_READ),
      READ(9, SEEN_UNBOUND, BIND_DO_PAUSE), WAKE(DEADLINE - 1, BIND_DO_READ)}},
    {"no answer at the deadline: held, and released only by a late read",
     {TURN(1, BIND_DO_POST), LATE(DEADLINE, BIND_DO_PAUSE, true),
      WAKE(DEADLINE + 100, BIND_DO_READ), READ(DEADLINE + 110, SEEN_UNBOUND, BIND_DO_PAUSE),
      WAKE(DEADLINE + LIMIT_DOUBT_MS - 1, BIND_DO_READ),
      READ(DEADLINE + LIMIT_DOUBT_MS + 5, SEEN_UNBOUND, BIND_DO_PAUSE),
      WAKE(DEADLINE + LIMIT_DOUBT_MS + 10, BIND_DO_READ),
      READ(DEADLINE + LIMIT_DOUBT_MS + 15, SEEN_UNBOUND, BIND_DO_CANCEL)}},
    {"held, and the late commit is seen",
     {TURN(1, BIND_DO_POST), LATE(DEADLINE, BIND_DO_PAUSE, true),
      WAKE(DEADLINE + 100, BIND_DO_READ), READ(DEADLINE + 110, SEEN_AS_ASKED, BIND_DO_CONFIRM)}},
    {"while nothing can be read the reservation stays",
     {TURN(1, BIND_DO_POST), POSTED(5, POST_UNKNOWN, BIND_DO_READ),
      READ(9, SEEN_NOTHING, BIND_DO_PAUSE), LATE(DEADLINE, BIND_DO_PAUSE, true),
      WAKE(10 * LIMIT_DOUBT_MS, BIND_DO_READ),
      READ(10 * LIMIT_DOUBT_MS + 1, SEEN_NOTHING, BIND_DO_PAUSE),
      WAKE(20 * LIMIT_DOUBT_MS, BIND_DO_READ),
      READ(20 * LIMIT_DOUBT_MS + 1, SEEN_UNBOUND, BIND_DO_CANCEL)}},
    {"in doubt and not sent: read, don't send blindly",
     {TURN(1, BIND_DO_POST), POSTED(5, POST_UNKNOWN, BIND_DO_READ),
      READ(9, SEEN_UNBOUND, BIND_DO_PAUSE), WAKE(99, BIND_DO_POST),
      POSTED(105, POST_NOT_SENT, BIND_DO_PAUSE), WAKE(300, BIND_DO_READ)}},
};

TEST_EACH(follows_history, COUNT_OF(histories))
{
    const struct history *h = &histories[_i];
    struct bind_machine m;
    bind_step_init(&m, DEADLINE);
    for (size_t i = 0; i < STEPS_MAX && h->steps[i].now != 0; i++) {
        const struct step *s = &h->steps[i];
        struct bind_input in = {
            .type = s->in, .post = s->post, .seen = s->seen, .edited = s->edited, .random = 7};
        struct bind_output out = bind_step(&m, &in, s->now);
        ck_assert_msg(out.action == s->want && out.answer == s->want_answer,
                      "%s: step %zu: action %d answer %d, expected %d %d", h->name, i,
                      (int)out.action, (int)out.answer, (int)s->want, (int)s->want_answer);
        bool over = out.action == BIND_DO_CONFIRM || out.action == BIND_DO_CANCEL;
        ck_assert_msg(over == (m.phase == BIND_OVER), "%s: step %zu: phase", h->name, i);
    }
}

TEST(retry_after_is_honoured)
{
    struct bind_machine m;
    bind_step_init(&m, DEADLINE);
    (void)bind_step(&m, &(struct bind_input){.type = BIND_IN_TURN}, 1);
    struct bind_input in = {.type = BIND_IN_POSTED, .post = POST_THROTTLED, .retry_after_ms = 9000};
    ck_assert_uint_ge(bind_step(&m, &in, 2).pause_ms, 9000);
}

TEST(pauses_grow_and_are_bounded)
{
    uint64_t longest = 0;
    struct bind_machine m;
    bind_step_init(&m, UINT64_MAX);
    (void)bind_step(&m, &(struct bind_input){.type = BIND_IN_TURN}, 1);
    for (uint64_t i = 0; i < 100; i++) {
        struct bind_input failed = {
            .type = BIND_IN_POSTED, .post = POST_NOT_SENT, .random = i * 7919};
        struct bind_output out = bind_step(&m, &failed, 2);
        ck_assert_uint_gt(out.pause_ms, 0);
        longest = MAX_OF(longest, out.pause_ms);
        (void)bind_step(&m, &(struct bind_input){.type = BIND_IN_WAKE}, 2);
    }
    ck_assert_uint_gt(longest, 1000);
    ck_assert_uint_le(longest, 4000);
}

TEST(what_was_created_and_is_gone_holds_nothing)
{
    struct bind_machine m;
    bind_step_init(&m, DEADLINE);
    (void)bind_step(&m, &(struct bind_input){.type = BIND_IN_TURN}, 1);
    struct bind_input created = {.type = BIND_IN_POSTED, .post = POST_CREATED};
    (void)bind_step(&m, &created, 5);
    (void)bind_step(&m, &(struct bind_input){.type = BIND_IN_UNPROVEN}, 6);
    struct bind_input gone = {.type = BIND_IN_READ, .seen = SEEN_GONE};
    ck_assert_int_eq(bind_step(&m, &gone, 9).action, BIND_DO_CANCEL);
}

TEST(a_confirm_that_needs_a_read_goes_on)
{
    struct bind_machine m;
    bind_step_init(&m, DEADLINE);
    (void)bind_step(&m, &(struct bind_input){.type = BIND_IN_TURN}, 1);
    struct bind_input created = {.type = BIND_IN_POSTED, .post = POST_CREATED};
    ck_assert_int_eq(bind_step(&m, &created, 5).action, BIND_DO_CONFIRM);
    struct bind_input unproven = {.type = BIND_IN_UNPROVEN};
    ck_assert_int_eq(bind_step(&m, &unproven, 6).action, BIND_DO_READ);
    struct bind_input seen = {.type = BIND_IN_READ, .seen = SEEN_AS_ASKED};
    struct bind_output out = bind_step(&m, &seen, 9);
    ck_assert_int_eq(out.action, BIND_DO_CONFIRM);
    ck_assert(out.read_back);
}

TEST(a_created_binding_that_needs_a_read_is_never_given_up_unread)
{
    struct bind_machine m;
    bind_step_init(&m, DEADLINE);
    (void)bind_step(&m, &(struct bind_input){.type = BIND_IN_TURN}, 1);
    struct bind_input created = {.type = BIND_IN_POSTED, .post = POST_CREATED};
    ck_assert_int_eq(bind_step(&m, &created, 5).action, BIND_DO_CONFIRM);
    struct bind_input unproven = {.type = BIND_IN_UNPROVEN};
    ck_assert_int_eq(bind_step(&m, &unproven, 6).action, BIND_DO_READ);
    struct bind_input late = {.type = BIND_IN_DEADLINE};
    struct bind_output out = bind_step(&m, &late, DEADLINE);
    ck_assert_int_eq(out.action, BIND_DO_PAUSE);
    ck_assert(out.answer);
}

TEST(no_retry_after_holds_a_card_for_long)
{
    struct bind_machine m;
    bind_step_init(&m, DEADLINE);
    (void)bind_step(&m, &(struct bind_input){.type = BIND_IN_TURN}, 1);
    struct bind_input lost = {.type = BIND_IN_POSTED, .post = POST_UNKNOWN};
    ck_assert_int_eq(bind_step(&m, &lost, 5).action, BIND_DO_READ);
    struct bind_input turned_away = {
        .type = BIND_IN_READ, .seen = SEEN_NOTHING, .retry_after_ms = UINT64_MAX};
    ck_assert_uint_le(bind_step(&m, &turned_away, 6).pause_ms, 60000);
}
