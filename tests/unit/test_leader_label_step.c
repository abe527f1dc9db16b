/* Histories of the leader's label: after each input, the action that must follow. */
#include "daemon/backend/leader_label_step.h"
#include "unit.h"

#define TIMER                          \
    {                                  \
        .event = LEADER_LABEL_ON_TIMER \
    }
#define LEAD                                          \
    {                                                 \
        .event = LEADER_LABEL_ON_WISH, .wanted = true \
    }
#define FOLLOW                                         \
    {                                                  \
        .event = LEADER_LABEL_ON_WISH, .wanted = false \
    }
#define DONE                          \
    {                                 \
        .event = LEADER_LABEL_ON_DONE \
    }
#define GONE                          \
    {                                 \
        .event = LEADER_LABEL_ON_GONE \
    }
#define FAILED                          \
    {                                   \
        .event = LEADER_LABEL_ON_FAILED \
    }
/* A list: of no pod, of the own one, of another one, of both. */
#define NONE                          \
    {                                 \
        .event = LEADER_LABEL_ON_DONE \
    }
#define OWN                                        \
    {                                              \
        .event = LEADER_LABEL_ON_DONE, .own = true \
    }
#define OTHER                                        \
    {                                                \
        .event = LEADER_LABEL_ON_DONE, .other = true \
    }
#define BOTH                                                      \
    {                                                             \
        .event = LEADER_LABEL_ON_DONE, .own = true, .other = true \
    }

#define REST                 \
    {                        \
        LEADER_LABEL_REST, 0 \
    }
#define ADD                 \
    {                       \
        LEADER_LABEL_ADD, 0 \
    }
#define REMOVE                 \
    {                          \
        LEADER_LABEL_REMOVE, 0 \
    }
#define LIST                 \
    {                        \
        LEADER_LABEL_LIST, 0 \
    }
#define REMOVE_OTHER                 \
    {                                \
        LEADER_LABEL_REMOVE_OTHER, 0 \
    }
#define CHECK                                    \
    {                                            \
        LEADER_LABEL_WAIT, LEADER_LABEL_CHECK_MS \
    }
#define RETRY(n)                                        \
    {                                                   \
        LEADER_LABEL_WAIT, LEADER_LABEL_RETRY_MS << (n) \
    }

#define STEPS_MAX 24

static const struct {
    const char *name;
    size_t n;

    struct {
        struct leader_label_input in;
        struct leader_label_action out;
    } steps[STEPS_MAX];
} histories[] = {
    {"a follower from the start", 2, {{TIMER, REMOVE}, {DONE, REST}}},
    {"its pod is gone", 2, {{TIMER, REMOVE}, {GONE, REST}}},
    {"it can't remove it at first",
     5,
     {{TIMER, REMOVE}, {FAILED, RETRY(0)}, {TIMER, REMOVE}, {FAILED, RETRY(1)}, {TIMER, REMOVE}}},
    {"it leads, and follows again",
     8,
     {{TIMER, REMOVE},
      {DONE, REST},
      {LEAD, ADD},
      {DONE, LIST},
      {OWN, CHECK},
      {TIMER, LIST},
      {OWN, CHECK},
      {FOLLOW, REMOVE}}},
    {"it leads at once", 3, {{LEAD, ADD}, {DONE, LIST}, {OWN, CHECK}}},
    {"former leaders",
     7,
     {{LEAD, ADD},
      {DONE, LIST},
      {BOTH, REMOVE_OTHER},
      {DONE, LIST},
      {BOTH, REMOVE_OTHER},
      {DONE, LIST},
      {OWN, CHECK}}},
    {"a former leader whose pod is gone",
     6,
     {{LEAD, ADD},
      {DONE, LIST},
      {BOTH, REMOVE_OTHER},
      {GONE, RETRY(0)},
      {TIMER, LIST},
      {OWN, CHECK}}},
    {"a former leader whose label stays",
     10,
     {{LEAD, ADD},
      {DONE, LIST},
      {BOTH, REMOVE_OTHER},
      {FAILED, RETRY(0)},
      {TIMER, LIST},
      {BOTH, REMOVE_OTHER},
      {FAILED, RETRY(1)},
      {TIMER, LIST},
      {OWN, CHECK},
      {TIMER, LIST}}},
    {"a former leader is found later",
     6,
     {{LEAD, ADD}, {DONE, LIST}, {OWN, CHECK}, {TIMER, LIST}, {BOTH, REMOVE_OTHER}, {DONE, LIST}}},
    {"a list fails",
     5,
     {{LEAD, ADD}, {DONE, LIST}, {FAILED, RETRY(0)}, {TIMER, LIST}, {OWN, CHECK}}},
    {"a person removes it",
     8,
     {{LEAD, ADD},
      {DONE, LIST},
      {OWN, CHECK},
      {TIMER, LIST},
      {NONE, RETRY(0)},
      {TIMER, ADD},
      {DONE, LIST},
      {OWN, CHECK}}},
    {"it is given to another pod",
     7,
     {{LEAD, ADD},
      {DONE, LIST},
      {OTHER, RETRY(0)},
      {TIMER, ADD},
      {DONE, REMOVE_OTHER},
      {DONE, LIST},
      {OWN, CHECK}}},
    {"an admission webhook drops it each time",
     7,
     {{LEAD, ADD},
      {DONE, LIST},
      {NONE, RETRY(0)},
      {TIMER, ADD},
      {DONE, LIST},
      {NONE, RETRY(1)},
      {TIMER, ADD}}},
    {"the right is missing for long",
     17,
     {{LEAD, ADD},
      {FAILED, RETRY(0)},
      {TIMER, ADD},
      {FAILED, RETRY(1)},
      {TIMER, ADD},
      {FAILED, RETRY(2)},
      {TIMER, ADD},
      {FAILED, RETRY(3)},
      {TIMER, ADD},
      {FAILED, RETRY(4)},
      {TIMER, ADD},
      {FAILED, RETRY(5)},
      {TIMER, ADD},
      {FAILED, RETRY(6)},
      {TIMER, ADD},
      {GONE, RETRY(6)},
      {TIMER, ADD}}},
    {"failures are forgotten",
     9,
     {{LEAD, ADD},
      {FAILED, RETRY(0)},
      {TIMER, ADD},
      {FAILED, RETRY(1)},
      {TIMER, ADD},
      {DONE, LIST},
      {OWN, CHECK},
      {TIMER, LIST},
      {FAILED, RETRY(0)}}},
    {"the Lease is lost while it adds",
     4,
     {{LEAD, ADD}, {FOLLOW, REST}, {DONE, REMOVE}, {DONE, REST}}},
    {"the Lease is lost while it adds, without an answer",
     5,
     {{LEAD, ADD}, {FOLLOW, REST}, {FAILED, RETRY(0)}, {TIMER, REMOVE}, {DONE, REST}}},
    {"the Lease is lost in a list", 4, {{LEAD, ADD}, {DONE, LIST}, {FOLLOW, REST}, {OWN, REMOVE}}},
    {"the Lease is lost while it cleans up",
     5,
     {{LEAD, ADD}, {DONE, LIST}, {BOTH, REMOVE_OTHER}, {FOLLOW, REST}, {DONE, REMOVE}}},
    {"the Lease is lost in a pause",
     4,
     {{LEAD, ADD}, {FAILED, RETRY(0)}, {FOLLOW, REMOVE}, {DONE, REST}}},
    {"it leads while it removes", 4, {{TIMER, REMOVE}, {LEAD, REST}, {DONE, ADD}, {DONE, LIST}}},
    {"lost and won again while it adds",
     4,
     {{LEAD, ADD}, {FOLLOW, REST}, {LEAD, REST}, {DONE, LIST}}},
};

TEST_EACH(goes_as_told, COUNT_OF(histories))
{
    struct leader_label_state s = {.wanted = false};
    for (size_t i = 0; i < histories[_i].n; i++) {
        struct leader_label_action out = histories[_i].steps[i].out;
        struct leader_label_action a = leader_label_step(&s, &histories[_i].steps[i].in, 0);
        ck_assert_msg(a.type == out.type && a.delay_ms == out.delay_ms,
                      "%s, step %zu: action %d after %llu ms, not %d after %llu ms",
                      histories[_i].name, i, (int)a.type, (unsigned long long)a.delay_ms,
                      (int)out.type, (unsigned long long)out.delay_ms);
    }
}

/* The pause varies by half of itself, so that replicas do not call together, and has a limit. */
TEST(pauses)
{
    struct leader_label_state s = {.wanted = false};
    const struct leader_label_input lead = LEAD;
    const struct leader_label_input failed = FAILED;
    const struct leader_label_input timer = TIMER;
    (void)leader_label_step(&s, &lead, 0);
    for (unsigned i = 0; i < 100; i++) {
        struct leader_label_action a = leader_label_step(&s, &failed, UINT64_MAX);
        ck_assert_int_eq(a.type, LEADER_LABEL_WAIT);
        ck_assert_uint_ge(a.delay_ms, LEADER_LABEL_RETRY_MS);
        ck_assert_uint_le(a.delay_ms, LEADER_LABEL_RETRY_MAX_MS + LEADER_LABEL_RETRY_MAX_MS / 2);
        (void)leader_label_step(&s, &timer, 0);
    }
}
