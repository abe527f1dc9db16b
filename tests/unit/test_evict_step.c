/* Each case is one pod's history: inputs, and the expected actions. */
#include "daemon/evict/evict_step.h"

#include "unit.h"

#define KEEP_MS   120000
#define STEPS_MAX 20

static const struct evict_times times = {
    .keep_ms = KEEP_MS, .look_ms = EVICT_LOOK_MS, .retry_ms = EVICT_RETRY_MS};

/* Facts that differ from the usual: this replica leads, the pod is pending and has kept room. */
enum {
    LOST = 1,    /* this replica does not lead */
    BINDS = 2,   /* the pod is being bound */
    BOUND = 4,   /* the pod is bound */
    GONE = 8,    /* the pod is gone */
    FITS = 16,   /* the pod has room without evictions */
    BARE = 32,   /* no room is kept */
    LEAVES = 64, /* the victim is gone or being deleted */
    LEFT = 128,  /* an evicted pod still exists */
};

struct step {
    uint64_t now;
    enum evict_input_type in;
    unsigned with; /* CHOSEN: 1 + victims; 0: none; 100: budgets forbid it; KEPT; ANSWER */
    unsigned known;
    enum evict_do want;
    unsigned detail; /* TRY, EVICT: index; WAIT: ms; END: why */
    char also;       /* 's' spare, 'v' other version, 'r' room; 0: none */
};

#define CHOSEN(n)          0, EVICT_IN_CHOSEN, (n) + 1, 0
#define NONE               0, EVICT_IN_CHOSEN, 0, 0
#define GUARDED            0, EVICT_IN_CHOSEN, 100, 0
#define KEPT               0, EVICT_IN_KEPT, 1, 0
#define SAYS(a)            0, EVICT_IN_ANSWER, (a), 0
#define RISEN              0, EVICT_IN_RISEN, 0, 0
#define LOOK               0, EVICT_IN_LOOK, 0, 0
#define SEES(what)         0, EVICT_IN_LOOK, 0, (what)
#define SAYS_SEES(a, what) 0, EVICT_IN_ANSWER, (a), (what)
#define KEPT_SEES(what)    0, EVICT_IN_KEPT, 1, (what)
#define TRY(i)             EVICT_DO_TRY, i, 0
#define EVICT(i)           EVICT_DO_EVICT, i, 0
#define KEEP               EVICT_DO_KEEP, 0, 0
#define CHOOSE             EVICT_DO_CHOOSE, 0, 0
#define SPARE              EVICT_DO_CHOOSE, 0, 's'
#define WAIT               EVICT_DO_WAIT, EVICT_LOOK_MS, 0
#define WAITS(ms)          EVICT_DO_WAIT, ms, 0
#define ROOM               EVICT_DO_WAIT, EVICT_LOOK_MS, 'r'
#define END(why)           EVICT_DO_END, EVICT_END_##why, 0

/* Until the first eviction of a set of one victim. */
#define ONE_IS_CHOSEN                                                 \
    {LOOK, CHOOSE}, {CHOSEN(1), TRY(0)}, {SAYS(EVICT_GRANTED), KEEP}, \
    {                                                                 \
        KEPT, EVICT(0)                                                \
    }
#define TWO_ARE_CHOSEN                                                  \
    {LOOK, CHOOSE}, {CHOSEN(2), TRY(0)}, {SAYS(EVICT_GRANTED), TRY(1)}, \
        {SAYS(EVICT_GRANTED), KEEP},                                    \
    {                                                                   \
        KEPT, EVICT(0)                                                  \
    }

static const struct history {
    const char *name;
    struct step steps[STEPS_MAX]; /* ends with the first step of all zeros */
} histories[] = {
    {"all goes well",
     {TWO_ARE_CHOSEN,
      {SAYS(EVICT_GRANTED), EVICT(1)},
      {SAYS(EVICT_GRANTED), WAIT},
      {SEES(LEFT), WAIT},
      {LOOK, ROOM},
      {LOOK, WAIT},
      {SEES(BINDS), WAIT},
      {SEES(BOUND), END(BOUND)}}},
    {"no eviction helps", {{LOOK, CHOOSE}, {NONE, END(NO_SET)}}},
    {"budgets we know of", {{LOOK, CHOOSE}, {GUARDED, END(PROTECTED)}}},
    {"room is coming by itself", {{LOOK, CHOOSE}, {CHOSEN(0), END(NEEDLESS)}}},
    {"there is room by now", {{SEES(FITS), END(NEEDLESS)}}},
    {"and before anything is done",
     {{LOOK, CHOOSE}, {CHOSEN(1), TRY(0)}, {SAYS_SEES(EVICT_GRANTED, FITS), END(NEEDLESS)}}},
    {"and when it is kept",
     {{LOOK, CHOOSE},
      {CHOSEN(1), TRY(0)},
      {SAYS(EVICT_GRANTED), KEEP},
      {KEPT_SEES(FITS), END(NEEDLESS)}}},
    {"the first was enough, as another has left",
     {TWO_ARE_CHOSEN, {SAYS_SEES(EVICT_GRANTED, FITS), WAIT}, {LOOK, ROOM}}},
    {"the first was enough, but another pod has taken that room: then the others go",
     {TWO_ARE_CHOSEN,
      {SAYS_SEES(EVICT_GRANTED, FITS), WAIT},
      {SEES(LEFT), EVICT(1)},
      {SAYS(EVICT_GRANTED), WAIT},
      {SEES(LEFT), WAIT},
      {LOOK, ROOM}}},
    {"the same while it waits to be bound",
     {TWO_ARE_CHOSEN,
      {SAYS_SEES(EVICT_GRANTED, FITS), WAIT},
      {SEES(FITS | LEFT), ROOM},
      {SEES(FITS | LEFT), WAIT},
      {SEES(LEFT), EVICT(1)},
      {SAYS(EVICT_GRANTED), WAIT},
      {LOOK, ROOM},
      {SEES(BOUND), END(BOUND)}}},
    {"the victim has left before the answer is in",
     {ONE_IS_CHOSEN,
      {SAYS_SEES(EVICT_GRANTED, FITS), WAIT},
      {SEES(FITS), ROOM},
      {SEES(BOUND), END(BOUND)}}},
    {"the pod is bound before the answer is in",
     {ONE_IS_CHOSEN, {SAYS_SEES(EVICT_GRANTED, BOUND), END(BOUND)}}},
    {"a budget we did not know of: another set",
     {{LOOK, CHOOSE},
      {CHOSEN(2), TRY(0)},
      {SAYS(EVICT_GRANTED), TRY(1)},
      {SAYS(EVICT_REFUSED), SPARE},
      {CHOSEN(1), TRY(0)},
      {SAYS(EVICT_GRANTED), KEEP}}},
    {"all are protected",
     {{LOOK, CHOOSE}, {CHOSEN(1), TRY(0)}, {SAYS(EVICT_REFUSED), SPARE}, {NONE, END(PROTECTED)}}},
    {"granted in the dry run, and not then: another set, with what is gone gone",
     {TWO_ARE_CHOSEN,
      {SAYS(EVICT_GRANTED), EVICT(1)},
      {SAYS(EVICT_REFUSED), SPARE},
      {CHOSEN(1), TRY(0)},
      {SAYS(EVICT_GRANTED), KEEP},
      {KEPT, EVICT(0)},
      {SAYS(EVICT_GRANTED), WAIT},
      {LOOK, ROOM}}},
    {"the same, and the first is enough for another place",
     {TWO_ARE_CHOSEN,
      {SAYS(EVICT_GRANTED), EVICT(1)},
      {SAYS(EVICT_REFUSED), SPARE},
      {CHOSEN(0), KEEP},
      {KEPT, WAIT},
      {SEES(LEFT), WAIT},
      {LOOK, ROOM}}},
    {"a victim is gone while it is tried: perhaps less has to go",
     {{LOOK, CHOOSE},
      {CHOSEN(1), TRY(0)},
      {SAYS(EVICT_GONE), WAIT},
      {LOOK, CHOOSE},
      {CHOSEN(1), TRY(0)}}},
    {"a victim is gone when its turn has come",
     {TWO_ARE_CHOSEN, {SAYS(EVICT_GONE), EVICT(1)}, {SAYS(EVICT_GRANTED), WAIT}}},
    {"a victim's priority rises before it is tried: another set at once",
     {{LOOK, CHOOSE}, {CHOSEN(1), TRY(0)}, {RISEN, CHOOSE}, {CHOSEN(1), TRY(0)}}},
    {"a victim's priority rises between its dry run and its eviction: another set at once",
     {TWO_ARE_CHOSEN,
      {SAYS(EVICT_GRANTED), EVICT(1)},
      {RISEN, CHOOSE},
      {CHOSEN(1), TRY(0)},
      {SAYS(EVICT_GRANTED), KEEP},
      {KEPT, EVICT(0)},
      {SAYS(EVICT_GRANTED), WAIT},
      {LOOK, ROOM}}},
    {"the same, and there is no other set",
     {ONE_IS_CHOSEN, {RISEN, CHOOSE}, {NONE, END(PROTECTED)}}},
    {"no right", {{LOOK, CHOOSE}, {CHOSEN(1), TRY(0)}, {SAYS(EVICT_DENIED), END(DENIED)}}},
    {"the other version of the API",
     {{LOOK, CHOOSE},
      {CHOSEN(1), TRY(0)},
      {SAYS(EVICT_UNSERVED), EVICT_DO_TRY, 0, 'v'},
      {SAYS(EVICT_GRANTED), KEEP}}},
    {"neither version",
     {{LOOK, CHOOSE},
      {CHOSEN(1), TRY(0)},
      {SAYS(EVICT_UNSERVED), EVICT_DO_TRY, 0, 'v'},
      {SAYS(EVICT_UNSERVED), END(UNSERVED)}}},
    {"the API server is away in the dry run, then back",
     {{LOOK, CHOOSE},
      {CHOSEN(1), TRY(0)},
      {SAYS(EVICT_FAILED), WAITS(1000)},
      {LOOK, TRY(0)},
      {SAYS(EVICT_FAILED), WAITS(2000)},
      {LOOK, TRY(0)},
      {SAYS(EVICT_GRANTED), KEEP}}},
    {"the API server is away for good",
     {ONE_IS_CHOSEN,
      {SAYS(EVICT_FAILED), WAITS(1000)},
      {LOOK, EVICT(0)},
      {SAYS(EVICT_FAILED), WAITS(2000)},
      {LOOK, EVICT(0)},
      {SAYS(EVICT_FAILED), WAITS(4000)},
      {LOOK, EVICT(0)},
      {SAYS(EVICT_FAILED), WAITS(8000)},
      {LOOK, EVICT(0)},
      {SAYS(EVICT_FAILED), END(FAILED)}}},
    {"the answer is lost, and it has taken effect",
     {ONE_IS_CHOSEN,
      {SAYS(EVICT_FAILED), WAITS(1000)},
      {SEES(LEAVES | LEFT), WAIT},
      {SEES(LEFT), WAIT},
      {LOOK, ROOM}}},
    {"the same, and the victim has left by then",
     {ONE_IS_CHOSEN,
      {SAYS_SEES(EVICT_FAILED, LEAVES | FITS), WAITS(1000)},
      {SEES(LEAVES | FITS), WAIT},
      {SEES(FITS), ROOM}}},
    {"there is room before all have left",
     {ONE_IS_CHOSEN, {SAYS(EVICT_GRANTED), WAIT}, {SEES(LEFT | FITS), ROOM}}},
    {"the lease is lost between dry run and eviction",
     {{LOOK, CHOOSE}, {CHOSEN(1), TRY(0)}, {SAYS_SEES(EVICT_GRANTED, LOST), END(NOT_LEADING)}}},
    {"the lease is lost with one evicted",
     {TWO_ARE_CHOSEN, {SAYS_SEES(EVICT_GRANTED, LOST), END(NOT_LEADING)}}},
    {"the pod is deleted between dry run and eviction",
     {{LOOK, CHOOSE}, {CHOSEN(1), TRY(0)}, {SAYS_SEES(EVICT_GRANTED, GONE), END(POD_GONE)}}},
    {"the pod is deleted while its victim ends",
     {ONE_IS_CHOSEN, {SAYS(EVICT_GRANTED), WAIT}, {SEES(LEFT | GONE), END(POD_GONE)}}},
    {"a bind is under way, and fails: room is kept once more",
     {ONE_IS_CHOSEN,
      {SAYS(EVICT_GRANTED), WAIT},
      {LOOK, ROOM},
      {SEES(BINDS), WAIT},
      {SEES(BARE), KEEP},
      {KEPT, WAIT},
      {SEES(BOUND), END(BOUND)}}},
    {"a bind is under way when the next would be evicted",
     {TWO_ARE_CHOSEN,
      {SAYS_SEES(EVICT_GRANTED, BINDS), WAIT},
      {LOOK, EVICT(1)},
      {SAYS(EVICT_GRANTED), WAIT}}},
    {"no room can be kept",
     {{LOOK, CHOOSE},
      {CHOSEN(1), TRY(0)},
      {SAYS(EVICT_GRANTED), KEEP},
      {0, EVICT_IN_KEPT, 0, 0, END(NO_ROOM)}}},
    {"a victim does not end",
     {ONE_IS_CHOSEN,
      {SAYS(EVICT_GRANTED), WAIT},
      {EVICT_LEAVE_MS - 1, EVICT_IN_LOOK, 0, LEFT, WAIT},
      {EVICT_LEAVE_MS, EVICT_IN_LOOK, 0, LEFT, END(LINGERS)}}},
    {"it is not bound in time",
     {ONE_IS_CHOSEN,
      {SAYS(EVICT_GRANTED), WAIT},
      {5000, EVICT_IN_LOOK, 0, 0, ROOM},
      {5000 + KEEP_MS - 1, EVICT_IN_LOOK, 0, 0, WAIT},
      {5000 + KEEP_MS, EVICT_IN_LOOK, 0, 0, END(TIME)}}},
};

static struct evict_input input_of(const struct step *s)
{
    struct evict_input in = {.type = s->in,
                             .leads = (s->known & LOST) == 0,
                             .pod = EVICT_POD_PENDING,
                             .fits = (s->known & FITS) != 0,
                             .has_room = (s->known & BARE) == 0,
                             .leaves = (s->known & LEAVES) != 0,
                             .left = (s->known & LEFT) != 0 ? 1 : 0};
    if ((s->known & (BINDS | BOUND)) != 0)
        in.pod = (s->known & BOUND) != 0 ? EVICT_POD_BOUND : EVICT_POD_BINDING;
    if ((s->known & GONE) != 0)
        in.pod = EVICT_POD_GONE;
    if (s->in == EVICT_IN_CHOSEN) {
        in.guarded = s->with == 100;
        in.found = s->with > 0 && !in.guarded;
        in.chosen = in.found ? s->with - 1 : 0;
    }
    in.kept = s->in == EVICT_IN_KEPT && s->with == 1;
    in.answer = s->in == EVICT_IN_ANSWER ? (enum evict_answer)s->with : EVICT_GRANTED;
    return in;
}

static void take(struct evict_machine *m, const struct history *h, size_t i)
{
    const struct step *s = &h->steps[i];
    struct evict_input in = input_of(s);
    struct evict_output out = evict_step(m, &in, s->now);
    ck_assert_msg(out.action == s->want, "%s: step %zu: %d, not %d", h->name, i, out.action,
                  s->want);
    uint64_t detail = out.action == EVICT_DO_WAIT  ? out.pause_ms
                      : out.action == EVICT_DO_END ? (uint64_t)out.end
                                                   : out.at;
    ck_assert_msg(detail == s->detail, "%s: step %zu: detail %llu, not %u", h->name, i,
                  (unsigned long long)detail, s->detail);
    ck_assert_msg(out.spare == (s->also == 's'), "%s: step %zu", h->name, i);
    ck_assert_msg(out.other_version == (s->also == 'v'), "%s: step %zu", h->name, i);
    ck_assert_msg(out.room == (s->also == 'r'), "%s: step %zu", h->name, i);
}

TEST_EACH(a_history, COUNT_OF(histories))
{
    struct evict_machine m;
    const struct history *h = &histories[_i];
    evict_machine_init(&m, &times);
    for (size_t i = 0; i < STEPS_MAX; i++) {
        const struct step *s = &h->steps[i];
        bool is_end = s->want == EVICT_DO_CHOOSE && s->in == EVICT_IN_CHOSEN && s->with == 0;
        if (is_end)
            break;
        take(&m, h, i);
        ck_assert_int_eq(m.phase == EVICT_OVER, s->want == EVICT_DO_END);
    }
}

TEST(it_does_not_choose_for_ever)
{
    struct evict_machine m;
    struct evict_input look = {.type = EVICT_IN_LOOK, .leads = true};
    struct evict_input chosen = {
        .type = EVICT_IN_CHOSEN, .leads = true, .found = true, .chosen = 1};
    struct evict_input no = {.type = EVICT_IN_ANSWER, .leads = true, .answer = EVICT_REFUSED};
    unsigned choices = 1;
    evict_machine_init(&m, &times);
    ck_assert_int_eq(evict_step(&m, &look, 0).action, EVICT_DO_CHOOSE);
    for (;;) {
        ck_assert_int_eq(evict_step(&m, &chosen, 0).action, EVICT_DO_TRY);
        struct evict_output out = evict_step(&m, &no, 0);
        ck_assert(out.spare);
        if (out.action == EVICT_DO_END) {
            ck_assert_int_eq(out.end, EVICT_END_PROTECTED);
            break;
        }
        choices++;
    }
    ck_assert_uint_eq(choices, EVICT_CHOICES);
}
