/*
 * Swarm testing: each seed draws its own set of faults, most of them off. With all faults on, a
 * world would never reach bugs that need three events in a row.
 */
#include "sim.h"

#define SOME(n) ((unsigned)((random_next(&random) >> 32) % (n)))

/* The highest rate of each fault, in strikes per thousand occasions. */
static const unsigned most[FAULTS] = {
    [FAULT_REFUSED] = 150,       [FAULT_LOST] = 150,          [FAULT_ANSWER_LOST] = 300,
    [FAULT_ANSWER_CUT] = 150,    [FAULT_SILENT] = 80,         [FAULT_DOUBLED] = 300,
    [FAULT_COPIED] = 300,        [FAULT_THROTTLED] = 200,     [FAULT_5XX] = 200,
    [FAULT_BARE_4XX] = 150,      [FAULT_TOKEN] = 100,         [FAULT_LATE_COMMIT] = 500,
    [FAULT_ODD_409] = 300,       [FAULT_SLOW] = 300,          [FAULT_TORN] = 700,
    [FAULT_RESTART] = 40,        [FAULT_CONTINUE_GONE] = 400, [FAULT_COMPACTION] = 150,
    [FAULT_WATCH_CUT] = 150,     [FAULT_WATCH_GARBLED] = 100, [FAULT_WATCH_SILENT] = 20,
    [FAULT_WATCH_DOUBLED] = 300, [FAULT_WATCH_ERROR] = 150,   [FAULT_WATCH_LAG] = 400,
    [FAULT_KILL] = 40,           [FAULT_STOP] = 30,           [FAULT_PAUSE] = 60,
    [FAULT_TIME_JUMP] = 100,     [FAULT_MEMORY] = 3,          [FAULT_LEASE] = 20,
    [FAULT_ROLLOUT] = 30,        [FAULT_RECREATE] = 300,      [FAULT_EDIT] = 150,
    [FAULT_FOREIGN] = 150,       [FAULT_NODES] = 150,         [FAULT_HEALTH] = 150,
    [FAULT_MOVE] = 60,           [FAULT_IMPATIENT] = 300,     [FAULT_NONSENSE] = 100,
    [FAULT_ORPHAN] = 500,        [FAULT_STALL] = 3,           [FAULT_DENIED] = 60,
};

/* Faults that leave Bindings in doubt. A third of the worlds are small and slow, and have mostly
 * these. */
static const bool of_binds[FAULTS] = {
    [FAULT_LOST] = true,      [FAULT_ANSWER_LOST] = true, [FAULT_SILENT] = true,
    [FAULT_COPIED] = true,    [FAULT_DOUBLED] = true,     [FAULT_5XX] = true,
    [FAULT_THROTTLED] = true, [FAULT_LATE_COMMIT] = true, [FAULT_ODD_409] = true,
    [FAULT_WATCH_LAG] = true,
};

/* Few nodes with several cards: then pods often find room in a node's sum, but on no card.
 * Evictions need that. */
static void make_room_scarce(struct swarm *s)
{
    s->nodes = 1 + s->nodes / 3;
    s->max_cards = 2 + s->max_cards / 2;
    s->actions += 60;
}

static enum policy costs_of(uint64_t seed)
{
    static const enum policy costs[] = {POLICY_UNSET, POLICY_UNSET, POLICY_FGD, POLICY_BID_PRICE};

    return costs[seed % COUNT_OF(costs)];
}

/* Timings of each replica: mostly equal for all; clock rates differ by 0, up to 1 % or up to 3
 * %. */
static void own_draw(struct swarm *s, uint64_t random)
{
    s->costs = costs_of(s->seed);
    static const uint64_t leases_ms[] = {10000, 30000, 10000, 15000};
    static const unsigned drifts_ppm[] = {0, 0, 10000, 30000};
    bool alike = SOME(3) > 0;
    uint64_t first_ms = leases_ms[SOME(COUNT_OF(leases_ms))];
    unsigned most_ppm = drifts_ppm[SOME(COUNT_OF(drifts_ppm))];
    for (unsigned i = 0; i < COUNT_OF(s->own); i++) {
        uint64_t lease_ms = alike ? first_ms : leases_ms[SOME(COUNT_OF(leases_ms))];
        s->own[i].lease_ms = lease_ms;
        s->own[i].renew_ms = lease_ms / 5 * 3;
        s->own[i].retry_ms = lease_ms / 5;
        s->own[i].drift_ppm = (int)SOME(2 * most_ppm + 1) - (int)most_ppm;
    }
}

/* Equal nodes, and pods of which a card holds only one: nodes often have equal scores, and some
 * have the swap hazard. */
static void be_alike(struct swarm *s)
{
    s->alike = true;
    s->nodes = MAX_OF(s->nodes, 3U);
    s->max_cards = MAX_OF(s->max_cards, 2U);
    s->guard = 1; /* prefer */
}

/* Little room, and other pods that need it while a Binding of a dead leader is under way. */
static void be_about_takeovers(struct swarm *s, uint64_t random)
{
    s->replicas = 2 + (unsigned)(random & 1);
    s->elects = true;
    s->nodes = 1;
    s->max_cards = 1;
    s->takeovers = true;
    s->schedulers = 3;
    s->names = 12;
    s->backoff_ms = 120000;
    s->action_ms = 500 + (unsigned)(random >> 8 & 1023);
    s->actions = 60 + (unsigned)(random >> 2 & 63);
    s->permille[FAULT_LATE_COMMIT] = 500;
    s->permille[FAULT_ORPHAN] = 700;
}

/* Slow answers, many chunks and lagging watches are not faults. */
static void be_without_faults(struct swarm *s, uint64_t random)
{
    s->permille[FAULT_SLOW] = SOME(100);
    s->permille[FAULT_TORN] = SOME(500);
    s->permille[FAULT_WATCH_LAG] = SOME(300);
    s->bind_timeout_ms = 25000;
    s->http_timeout_ms = 30000;
}

/* With random numbers of its own, so that all other seeds keep their histories. */
static void claims_draw(struct swarm *s)
{
    uint64_t random = s->seed * 0x9e3779b97f4a7c15U + 3;
    if (SOME(8) > 0 || s->takeovers)
        return;
    s->kinds[KIND_CLAIMS] = true;
    s->partition = SOME(3) == 0;
    s->dra_on = SOME(3) == 0;
    s->kinds[KIND_TABLES] = s->kinds[KIND_TABLES] || SOME(4) > 0;
    s->max_cards = MAX_OF(s->max_cards, 2U);
    s->kinds[KIND_CLASSES] = SOME(2) == 0;
    s->kinds[KIND_EXCLUSIVE] = s->kinds[KIND_EXCLUSIVE] || s->kinds[KIND_CLASSES];
}

/* One or two nodes, for which several pods and replicas compete, and writes whose outcome is not
 * known. */
static void be_about_locks(struct swarm *s, enum plugin plugin, uint64_t random)
{
    static const enum fault doubts[] = {FAULT_LATE_COMMIT, FAULT_ANSWER_LOST, FAULT_SILENT,
                                        FAULT_ORPHAN};

    s->locks = plugin;
    s->nodes = 1 + SOME(2);
    s->schedulers = 3;
    s->names = 4 + SOME(8);
    s->backoff_ms = SOME(2) == 0 ? 0 : 90000; /* a late write then finds the node unchanged */
    s->bind_timeout_ms = 1000 + SOME(6000);
    s->action_ms = 300 + SOME(1000);
    s->actions = 60 + SOME(60);
    for (unsigned i = 0; i < COUNT_OF(doubts); i++) {
        random = random_next(&random);
        s->permille[doubts[i]] = SOME(i == 0 ? 2 : 3) == 0 ? 0 : 20 + SOME(most[doubts[i]]);
    }
}

/* Few nodes with several cards, many pods, and mostly one at a time that waits on a node. Where
 * memory is short, nothing is certain of what cardpack knows. */
static void be_about_managers(struct swarm *s, uint64_t random)
{
    s->nodes = 1 + SOME(2);
    s->max_cards = 2 + SOME(3);
    s->names = 6 + SOME(8);
    s->schedulers = 2 + SOME(3);
    s->actions = 60 + SOME(100);
    s->permille[FAULT_MEMORY] = 0;
    s->guard = SOME(3) > 0 ? 2 : s->guard; /* require */
}

/* In one seed of four, also with numbers of its own. What claims hold is only known of gpushare's
 * cards, and what foreign pods use of a quota is not counted here. */
static void plugins_draw(struct swarm *s)
{
    uint64_t random = s->seed * 0x9e3779b97f4a7c15U + 7;
    if (SOME(4) > 0 || s->kinds[KIND_CLAIMS])
        return;

    static const enum plugin by_writes[] = {PLUGIN_HAMI,    PLUGIN_HAMI,    PLUGIN_TENCENT,
                                            PLUGIN_TENCENT, PLUGIN_VOLCANO, PLUGIN_ELASTIC,
                                            PLUGIN_VGPU,    PLUGIN_VGPU};

    unsigned often = by_writes[SOME(COUNT_OF(by_writes))];
    s->plugins = 1U << PLUGIN_GPUSHARE | 1U << often;
    if (SOME(3) == 0)
        s->plugins |= 1U << (1 + SOME(PLUGINS - 1));
    s->foreign = SOME(2) == 0 && !s->kinds[KIND_QUOTAS];
    if ((s->plugins & (1U << PLUGIN_HAMI | 1U << PLUGIN_VGPU)) != 0)
        s->kinds[KIND_EXCLUSIVE] = false; /* nvidia.com/gpu is HAMi's then, and Volcano's nodes here
                                             have none */
    if (often == PLUGIN_TENCENT)
        be_about_managers(s, random_next(&random));
    bool locked = often == PLUGIN_HAMI || often == PLUGIN_VGPU;
    if (locked && !s->faultless && !s->takeovers && SOME(often == PLUGIN_VGPU ? 4 : 2) == 0)
        be_about_locks(s, often, random_next(&random));
}

/* No deletion of the Lease where renewal may take longer than start-settle: if it were deleted
 * while a process starts, two leaders could result. */
static void spare_leases(struct swarm *s)
{
    for (unsigned i = 0; i < s->replicas; i++)
        s->permille[FAULT_LEASE] = s->own[i].renew_ms > 8000 ? 0 : s->permille[FAULT_LEASE];
}

void settings_draw(struct swarm *s, uint64_t seed)
{
    uint64_t random = seed * 0x2545f4914f6cdd1dU + 1;
    static const uint64_t paces_ms[] = {20, 100, 500, 2000};
    *s = (struct swarm){
        .seed = seed,
        .faultless = SOME(12) == 0,
        .preconditions = SOME(3) > 0,
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
    own_draw(s, random_next(&random));
    s->lag_ms = SOME(4) == 0 ? SOME(20000) : 0;
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
    for (unsigned k = 0; k < KIND_CLAIMS; k++)
        s->kinds[k] = SOME(variety) == 0;
    s->shrink = SOME(2) == 0;
    s->spread = SOME(4) == 0;
    s->guard = SOME(3);
    s->node_spread = SOME(3) == 0;
    s->shortens = SOME(3) == 0;
    s->shortlist = s->shortens ? SOME(4) : 0;
    if (tight) {
        s->nodes = 1 + SOME(2);
        s->max_cards = 1 + SOME(2);
        s->bind_timeout_ms = 1000 + SOME(4000);
        s->action_ms = 500 + SOME(3500);
        s->actions = 30 + SOME(40);
    }
    if (s->kinds[KIND_EVICTIONS])
        make_room_scarce(s);
    else if (SOME(8) == 0)
        be_alike(s);
    uint64_t more = random_next(&random);
    if (!s->faultless && SOME(6) == 0)
        be_about_takeovers(s, more);
    spare_leases(s);
    s->rogue = !s->faultless && SOME(s->takeovers ? 3 : 12) == 0;
    if (s->faultless)
        be_without_faults(s, random);
    claims_draw(s);
    plugins_draw(s);
}
