/*
 * Swarm testing: each seed has faults of its own, most of them off. A world where everything fails
 * at once never gets far enough for what takes three things in a row.
 */
#include "sim.h"

/* The most that a fault strikes, of a thousand occasions, where it is on. */
static const unsigned most[FAULTS] = {
    [FAULT_REFUSED] = 150,       [FAULT_LOST] = 150,        [FAULT_ANSWER_LOST] = 300,
    [FAULT_ANSWER_CUT] = 150,    [FAULT_SILENT] = 80,       [FAULT_DOUBLED] = 300,
    [FAULT_THROTTLED] = 200,     [FAULT_5XX] = 200,         [FAULT_BARE_404] = 150,
    [FAULT_TOKEN] = 100,         [FAULT_LATE_COMMIT] = 500, [FAULT_ODD_409] = 300,
    [FAULT_SLOW] = 300,          [FAULT_TORN] = 700,        [FAULT_RESTART] = 40,
    [FAULT_CONTINUE_GONE] = 400, [FAULT_COMPACTION] = 150,  [FAULT_WATCH_CUT] = 150,
    [FAULT_WATCH_GARBLED] = 100, [FAULT_WATCH_SILENT] = 20, [FAULT_WATCH_DOUBLED] = 300,
    [FAULT_WATCH_ERROR] = 150,   [FAULT_WATCH_LAG] = 400,   [FAULT_KILL] = 40,
    [FAULT_STOP] = 30,           [FAULT_PAUSE] = 60,        [FAULT_TIME_JUMP] = 100,
    [FAULT_MEMORY] = 3,          [FAULT_LEASE] = 20,        [FAULT_RELOAD] = 100,
    [FAULT_RECREATE] = 300,      [FAULT_EDIT] = 150,        [FAULT_FOREIGN] = 150,
    [FAULT_NODES] = 150,         [FAULT_HEALTH] = 150,      [FAULT_MOVE] = 60,
    [FAULT_IMPATIENT] = 300,     [FAULT_NONSENSE] = 100,
};

/* What leaves Bindings in doubt: a third of the worlds are small and slow, and all about these. */
static const bool of_binds[FAULTS] = {
    [FAULT_LOST] = true,        [FAULT_ANSWER_LOST] = true, [FAULT_SILENT] = true,
    [FAULT_DOUBLED] = true,     [FAULT_5XX] = true,         [FAULT_THROTTLED] = true,
    [FAULT_LATE_COMMIT] = true, [FAULT_ODD_409] = true,     [FAULT_WATCH_LAG] = true,
};

/* Few nodes of several cards: else there is seldom one that has what none of its cards has. */
static void make_room_scarce(struct settings *s)
{
    s->nodes = 1 + s->nodes / 3;
    s->max_cards = 2 + s->max_cards / 2;
    s->actions += 60;
}

void settings_draw(struct settings *s, uint64_t seed)
{
    uint64_t random = seed * 0x2545f4914f6cdd1dU + 1;
    static const uint64_t paces_ms[] = {20, 100, 500, 2000};
#define SOME(n) ((unsigned)((random_next(&random) >> 32) % (n)))
    *s = (struct settings){
        .seed = seed,
        .faultless = SOME(12) == 0,
        .uid_precondition = SOME(3) > 0,
        .replicas = 1 + SOME(3) * SOME(2),
        .nodes = 1 + SOME(4),
        .max_cards = 1 + SOME(4),
        .schedulers = 1 + SOME(4),
        .names = 2 + SOME(12),
        .episodes = 1 + SOME(3),
        .actions = 20 + SOME(80),
        .bind_timeout_ms = SOME(3) == 0 ? 1000 + SOME(5000) : 25000,
        .http_timeout_ms = SOME(3) == 0 ? 1000 + SOME(5000) : 30000,
    };
    s->elects = s->replicas > 1 || SOME(4) == 0;
    s->lease_ms = SOME(2) == 0 ? 10000 : 30000;
    s->renew_ms = s->lease_ms / 5 * 3;
    s->retry_ms = s->lease_ms / 5;
    s->deny_leases = s->replicas == 1 && s->elects && SOME(6) == 0;
    s->backoff_ms = SOME(2) == 0 ? 0 : 1000 + SOME(90000);
    s->page_size = SOME(2) == 0 ? 500 : 1 + SOME(5);
    s->action_ms = paces_ms[SOME(COUNT_OF(paces_ms))];
    unsigned share = 2 + SOME(6);
    bool tight = SOME(3) == 0;
    for (unsigned f = 0; f < FAULTS; f++) {
        bool on = SOME(tight && of_binds[f] ? 2 : share) == 0;
        unsigned permille = 1 + SOME(most[f]);
        s->permille[f] = on && !s->faultless ? permille : 0;
    }
    unsigned variety = SOME(4) == 0 ? 20 : 2 + SOME(3);
    for (unsigned k = 0; k < KINDS; k++)
        s->kinds[k] = SOME(variety) == 0;
    s->shrink = SOME(2) == 0;
    s->spread = SOME(4) == 0;
    if (tight) {
        s->nodes = 1 + SOME(2);
        s->max_cards = 1 + SOME(2);
        s->bind_timeout_ms = 1000 + SOME(4000);
        s->action_ms = 500 + SOME(3500);
        s->actions = 30 + SOME(40);
    }
    if (s->kinds[KIND_EVICTIONS])
        make_room_scarce(s);
    /* Who deletes it while a process starts may make two leaders where renewing takes longer than
     * start-settle: then nobody does. */
    if (s->renew_ms > 8000)
        s->permille[FAULT_LEASE] = 0;
    /* Slow and torn are no faults. */
    if (s->faultless) {
        s->permille[FAULT_SLOW] = SOME(100);
        s->permille[FAULT_TORN] = SOME(500);
        s->permille[FAULT_WATCH_LAG] = SOME(300);
        s->bind_timeout_ms = 25000;
        s->http_timeout_ms = 30000;
    }
#undef SOME
}
