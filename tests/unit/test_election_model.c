/*
 * Random histories of several replicas and one Lease: lost, late and overtaken answers, and
 * processes that stop and continue. Two replicas never lead at once, unless a user deletes or edits
 * the Lease; even then at most one decides. A new leader knows when the previous one ended; in
 * quiet times exactly one replica leads.
 *
 * CARDPACK_SEED=17 CARDPACK_SEEDS=1 test_election_model
 */
#include "kube/election_step.h"
#include "seeded.h"

enum {
    REPLICAS = 3,
    CALL_TIMEOUT = 3000,
    FAULTY_MS = 120000,
    QUIET_MS = 60000,
    SETTLE_MS = 8000, /* the same as in leadership.c */
};

#define NEVER UINT64_MAX

struct lease {
    bool exists;
    unsigned version;
    int holder; /* -1: none */
    bool released;
    unsigned transitions;
    unsigned spec;
    unsigned wanted; /* 0: not wanted */
    int wanted_by;
};

/* A call. It reaches the server at `arrives`, or never; its answer reaches the replica at
 * `answered`. */
struct call {
    bool out;
    enum election_do what;
    enum election_write write;
    unsigned over; /* the version that it replaces */
    uint64_t arrives;
    uint64_t answered;
    uint64_t given_up;
    struct election_input answer;
    struct lease seen;
};

struct replica {
    struct election_state state;
    uint64_t skew; /* of the replica's clock */
    uint64_t timer;
    uint64_t paused_until;
    uint64_t decides_from; /* by the replica's clock */
    struct call call;
    struct call ghost; /* a call that was given up; it may still arrive */
    struct lease known;
    bool knows;
};

static struct world {
    uint64_t seed;
    uint64_t random;
    uint64_t now;
    bool faults;
    bool deleted; /* a user deleted or edited the Lease */
    struct lease lease;
    struct replica replicas[REPLICAS];
    unsigned wins;
} w;

static const struct election_times times = {10000, 6000, 2000};

static uint32_t draw(uint32_t below)
{
    return seeded_draw(&w.random, below);
}

static void perform(int i, struct election_action a);

static void feed(int i, const struct election_input *in)
{
    struct replica *r = &w.replicas[i];
    perform(i, election_step(&r->state, in, w.now + r->skew, draw(UINT32_MAX)));
}

static void send_call(int i, enum election_do what, enum election_write write)
{
    struct replica *r = &w.replicas[i];
    bool slow = w.faults && draw(6) == 0;
    r->call = (struct call){.out = true,
                            .what = what,
                            .write = write,
                            .over = r->known.version,
                            .arrives = w.now + draw(slow ? 5000 : 30),
                            .given_up = w.now + CALL_TIMEOUT};
    r->call.answered = r->call.arrives + draw(slow ? 5000 : 30);
    if (w.faults && draw(10) == 0)
        r->call.answered = NEVER;
    if (w.faults && draw(10) == 0)
        r->call.arrives = r->call.answered = NEVER;
}

/* The winner must know until when another replica may have led. */
static void check_won(int winner, struct election_action a)
{
    struct replica *r = &w.replicas[winner];
    w.wins++;
    r->decides_from = a.handed_over ? 0 : a.ended_ms + SETTLE_MS;
    for (int i = 0; i < REPLICAS; i++) {
        const struct replica *other = &w.replicas[i];
        /* A leader that still has to wait does not decide. */
        if (i == winner || other->state.leads_until_ms <= other->decides_from)
            continue;
        uint64_t until = other->state.leads_until_ms - other->skew;
        /* A replica that starts just when the Lease is deleted can't know; settling takes longer
         * than that. */
        uint64_t ended = a.ended_ms - r->skew + (w.deleted ? SETTLE_MS : 0);
        bool leads = election_leads(&other->state, w.now + other->skew);
        ck_assert_msg(!leads || w.deleted, "seed %llu: two lead", (unsigned long long)w.seed);
        ck_assert_msg(a.handed_over || until <= ended, "seed %llu: ended at %llu, led until %llu",
                      (unsigned long long)w.seed, (unsigned long long)ended,
                      (unsigned long long)until);
    }
}

static void perform(int i, struct election_action a)
{
    struct replica *r = &w.replicas[i];
    switch (a.what) {
    case ELECTION_DO_NOTHING:
        break;
    case ELECTION_DO_WAIT:
        r->timer = w.now + a.delay_ms;
        break;
    case ELECTION_DO_READ:
    case ELECTION_DO_CREATE:
    case ELECTION_DO_WRITE:
        r->timer = NEVER;
        if (r->call.out)
            r->ghost = r->call;
        send_call(i, a.what, a.write);
        break;
    }
    if (a.news == ELECTION_WON)
        check_won(i, a);
    const struct election_input release = {.event = ELECTION_ON_RELEASE};
    /* A leader that still has to wait for the previous one must not release the Lease. */
    if (a.news == ELECTION_ASKED_FOR && draw(2) == 0 && w.now + r->skew >= r->decides_from)
        feed(i, &release);
}

/* The API server handles the call. */
static void serve(int i, struct call *c)
{
    struct lease *l = &w.lease;
    bool read = c->what == ELECTION_DO_READ;
    bool fits = c->what == ELECTION_DO_CREATE ? !l->exists : l->exists && c->over == l->version;
    c->arrives = NEVER;
    c->answer.event = ELECTION_ON_READ;
    if (read && !l->exists)
        c->answer.event = ELECTION_ON_ABSENT;
    if (!read)
        c->answer.event = fits ? ELECTION_ON_WROTE : ELECTION_ON_CONFLICT;
    if (!read && fits) {
        l->exists = true;
        l->version++;
        if (c->write == ELECTION_WRITE_WANT) {
            l->wanted = l->version;
            l->wanted_by = i;
        } else {
            l->spec = l->version;
            l->released = c->write == ELECTION_WRITE_RELEASE;
            l->transitions += c->write == ELECTION_WRITE_ACQUIRE ? 1 : 0;
            l->holder = l->released ? -1 : i;
        }
    }
    c->seen = *l;
}

static void answer(int i)
{
    struct replica *r = &w.replicas[i];
    struct call c = r->call;
    struct election_input in = c.answer;
    r->call.out = false;
    if (in.event == ELECTION_ON_READ || in.event == ELECTION_ON_WROTE) {
        in.held = c.seen.holder >= 0;
        in.mine = c.seen.holder == i;
        in.released = c.seen.released;
        in.taken = r->knows && c.seen.transitions != r->known.transitions;
        in.duration_ms = times.lease_ms;
        in.changed = !r->knows || c.seen.spec != r->known.spec;
        in.wanted_changed = r->knows && c.seen.wanted != r->known.wanted;
        in.wanted_by_other = c.seen.wanted > 0 && c.seen.wanted_by != i;
        r->known = c.seen;
        r->knows = true;
    }
    feed(i, &in);
}

static void give_up(int i)
{
    const struct election_input failed = {.event = ELECTION_ON_FAILED};
    struct replica *r = &w.replicas[i];
    r->ghost = r->call;
    r->call.out = false;
    feed(i, &failed);
}

/* When the next event of a replica that is not paused is due. */
static uint64_t replica_due(const struct replica *r)
{
    uint64_t due = r->call.out ? MIN_OF(r->call.answered, r->call.given_up) : r->timer;
    return due == NEVER ? NEVER : MAX_OF(due, r->paused_until);
}

static uint64_t next_due(void)
{
    uint64_t due = w.now + 500; /* leaves time for the random events below */
    for (int i = 0; i < REPLICAS; i++) {
        const struct replica *r = &w.replicas[i];
        due = MIN_OF(due, replica_due(r));
        if (r->call.out)
            due = MIN_OF(due, r->call.arrives);
        due = MIN_OF(due, r->ghost.out ? r->ghost.arrives : NEVER);
    }
    return MAX_OF(due, w.now);
}

static void happen(int i)
{
    const struct election_input timer = {.event = ELECTION_ON_TIMER};
    struct replica *r = &w.replicas[i];
    if (r->ghost.out && r->ghost.arrives <= w.now)
        serve(i, &r->ghost);
    if (r->call.out && r->call.arrives <= w.now)
        serve(i, &r->call);
    if (replica_due(r) > w.now)
        return;
    if (!r->call.out) {
        r->timer = NEVER;
        feed(i, &timer);
    } else if (r->call.answered <= w.now && r->call.answered <= r->call.given_up) {
        answer(i);
    } else {
        give_up(i);
    }
}

static void take_chances(void)
{
    int i = (int)draw(REPLICAS);
    struct replica *r = &w.replicas[i];
    const struct election_input asked = {.event = ELECTION_ON_ASKED};
    if (w.now >= r->paused_until && draw(8) == 0)
        feed(i, &asked);
    if (!w.faults)
        return;
    if (draw(40) == 0)
        r->paused_until = w.now + draw(20000);
    if (draw(400) == 0) { /* a user deletes the Lease */
        w.lease = (struct lease){.version = w.lease.version, .holder = -1};
        w.deleted = true;
    }
    if (w.lease.exists && draw(400) == 0) { /* a user edits the Lease */
        w.lease.version++;
        w.lease.spec = w.lease.version;
        w.lease.holder = (int)draw(REPLICAS + 1) - 1;
        w.lease.released = false;
        w.deleted = true;
    }
}

static unsigned leaders(bool deciding)
{
    unsigned n = 0;
    for (int i = 0; i < REPLICAS; i++) {
        const struct replica *r = &w.replicas[i];
        uint64_t now = w.now + r->skew;
        n += election_leads(&r->state, now) && (!deciding || now >= r->decides_from) ? 1 : 0;
    }
    return n;
}

static void live(uint64_t until)
{
    while (w.now < until) {
        uint64_t due = next_due();
        bool chance = due >= w.now + 500;
        w.now = due;
        if (chance)
            take_chances();
        for (int i = 0; i < REPLICAS; i++)
            happen(i);
        ck_assert_msg(leaders(w.deleted) <= 1, "seed %llu: two at once",
                      (unsigned long long)w.seed);
    }
}

static void one(uint64_t seed)
{
    w = (struct world){.seed = seed, .random = seed, .now = 1000000, .faults = true};
    w.lease.holder = -1;
    for (int i = 0; i < REPLICAS; i++) {
        w.replicas[i].skew = draw(1000000);
        w.replicas[i].timer = w.now + draw(1000);
        election_state_init(&w.replicas[i].state, &times);
    }
    live(w.now + FAULTY_MS);
    w.faults = false;
    live(w.now + QUIET_MS);
    uint64_t led = 0;
    for (unsigned i = 0; i < 20; i++) {
        live(w.now + 100);
        led += leaders(true);
    }
    ck_assert_msg(led > 0, "seed %llu: no replica leads", (unsigned long long)seed);
    ck_assert_uint_gt(w.wins, 0);
}

TEST(test_histories)
{
    uint64_t from = seeded_setting("CARDPACK_SEED", 1);
    uint64_t count = seeded_setting("CARDPACK_SEEDS", 1000);
    for (uint64_t seed = from; seed < from + count; seed++)
        one(seed);
}

int main(void)
{
    TCase *tc = unit_case("all");
    tcase_set_timeout(tc, 0);
    return unit_run();
}
