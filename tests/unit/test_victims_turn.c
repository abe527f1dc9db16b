/*
 * Victims on nodes of gpu-manager, which chooses cards by an order of its own: more evictions may
 * make it choose a card that the pod may not have. All sets of victims are tried, each in a cache
 * that never had those pods.
 *
 * VICTIMS_SEED=7 VICTIMS_CASES=1 build-test/tests/unit/test_victims_turn
 */
#include "core/preempt/victims.h"
#include "dialect_rig.h"

enum {
    ACTORS = 6
};

struct actor {
    char uid[16];
    char containers[256];
    uint32_t card;
    int32_t priority;
};

struct play {
    uint64_t dice;
    struct actor actors[ACTORS];
    unsigned n;
    const char *ill; /* cards that the pod may not have, and gpu-manager does not know it */
    char containers[512];
};

static uint32_t draw(struct play *p, uint32_t below)
{
    return seeded_draw(&p->dice, below);
}

static void play_init(struct play *p, uint64_t seed)
{
    static const char *const ills[] = {"", "", "0", "1", "0,1", "1,3"};
    *p = (struct play){.dice = seed};
    p->ill = ills[draw(p, COUNT_OF(ills))];
    p->n = 2 + draw(p, ACTORS - 1);
    for (unsigned i = 0; i < p->n; i++) {
        struct actor *a = &p->actors[i];
        (void)snprintf(a->uid, sizeof(a->uid), "p%u", i);
        (void)snprintf(a->containers, sizeof(a->containers),
                       ONE("\"tencent.com/vcuda-core\":\"%u\",\"tencent.com/vcuda-memory\":\"%u\""),
                       10 * (1 + draw(p, 9)), 2 * (1 + draw(p, 8)));
        a->card = draw(p, 4);
        a->priority = (int32_t)draw(p, 7);
    }
    if (draw(p, 4) == 0)
        (void)snprintf(p->containers, sizeof(p->containers),
                       ONE("\"tencent.com/vcuda-core\":\"%u\""), 100 * (1 + draw(p, 2)));
    else if (draw(p, 3) == 0)
        (void)snprintf(p->containers, sizeof(p->containers),
                       TWO("\"tencent.com/vcuda-core\":\"%u\",\"tencent.com/vcuda-memory\":\"%u\"",
                           "\"tencent.com/vcuda-core\":\"%u\",\"tencent.com/vcuda-memory\":\"%u\""),
                       10 * (1 + draw(p, 9)), 2 * (1 + draw(p, 8)), 10 * (1 + draw(p, 9)),
                       2 * (1 + draw(p, 8)));
    else
        (void)snprintf(p->containers, sizeof(p->containers),
                       ONE("\"tencent.com/vcuda-core\":\"%u\",\"tencent.com/vcuda-memory\":\"%u\""),
                       10 * (1 + draw(p, 9)), 2 * (1 + draw(p, 8)));
}

static void fill(const struct play *p, struct rig *r, unsigned gone)
{
    rig_init(r);
    set_node(r, "n", DIALECT_TENCENT);
    if (p->ill[0] != '\0')
        health_set(r, "n", p->ill);
    for (unsigned i = 0; i < p->n; i++) {
        char annotation[64];
        struct object o;
        if ((gone >> i & 1) != 0)
            continue;
        (void)snprintf(annotation, sizeof(annotation), "\"tencent.com/predicate-gpu-idx-0\":\"%u\"",
                       p->actors[i].card);
        object_pod(&o, p->actors[i].uid, p->actors[i].containers, annotation, "n");
        o.pod.priority = p->actors[i].priority;
        o.pod.phase = STR("Running");
        struct cache_event e = {.type = CACHE_POD_SET, .pod = o.pod};
        ck_assert_int_eq(rig_apply(r, &e), OK);
        object_end(&o);
    }
}

static void ask(const struct play *p, const struct rig *r, struct object *ret)
{
    object_pod(ret, "new", p->containers, "", "");
    ck_assert_int_eq(ret->readable, OK);
    ret->request.priority = 5;
    cache_evaluation(&r->cache, STR("new"), &ret->request, &ret->evaluation);
}

static bool fits_without(const struct play *p, unsigned gone)
{
    struct rig r;
    struct object o;
    struct placement there;
    fill(p, &r, gone);
    ask(p, &r, &o);
    bool fits = fit_place(node_of(&r, "n"), &o.evaluation, &there) == VERDICT_FITS;
    object_end(&o);
    rig_done(&r);
    return fits;
}

static struct victims_cost cost_of(const struct play *p, unsigned set)
{
    struct victims_cost cost = {.highest = INT32_MIN};
    for (unsigned i = 0; i < p->n; i++) {
        if ((set >> i & 1) == 0)
            continue;
        cost.n++;
        cost.highest = MAX_OF(cost.highest, p->actors[i].priority);
        cost.sum += (uint64_t)((int64_t)p->actors[i].priority - INT32_MIN);
    }
    return cost;
}

/* The least cost of a set that makes room. False: none does. */
static bool best_of_all(const struct play *p, struct victims_cost *ret)
{
    bool found = false;
    for (unsigned set = 0; set < 1U << p->n; set++) {
        bool allowed = true;
        struct victims_cost cost = cost_of(p, set);
        for (unsigned i = 0; i < p->n; i++)
            allowed = allowed && ((set >> i & 1) == 0 || p->actors[i].priority < 5);
        if (!allowed || (found && victims_cost_cmp(&cost, ret) >= 0) || !fits_without(p, set))
            continue;
        found = true;
        *ret = cost;
    }
    return found;
}

static unsigned answer(const struct play *p, struct victims *ret)
{
    struct rig r;
    struct arena arena;
    struct object o;
    unsigned steps = 1000000;
    unsigned set = 0;
    fill(p, &r, 0);
    arena_init(&arena, MIB);
    ask(p, &r, &o);
    struct victims_question q = {
        .node = node_of(&r, "n"), .evaluation = &o.evaluation, .steps = &steps};
    ck_assert_int_eq(victims_choose(&q, &arena, ret), OK);
    for (uint32_t i = 0; i < ret->cost.n; i++)
        set |= 1U << (ret->pods[i]->uid.p[1] - '0');
    cache_check(&r.cache);
    arena_done(&arena);
    object_end(&o);
    rig_done(&r);
    return set;
}

TEST(no_set_is_better)
{
    uint64_t first = seeded_setting("VICTIMS_SEED", 1);
    uint64_t cases = seeded_setting("VICTIMS_CASES", 400);
    unsigned helped = 0;
    unsigned fewer = 0; /* where it does not help if all pods go that may */
    all_dialects();
    for (uint64_t seed = first; seed < first + cases; seed++) {
        struct play p;
        struct victims got;
        struct victims_cost best;
        unsigned all = 0;
        play_init(&p, seed);
        for (unsigned i = 0; i < p.n; i++)
            all |= p.actors[i].priority < 5 ? 1U << i : 0;
        bool possible = best_of_all(&p, &best);
        unsigned set = answer(&p, &got);
        ck_assert_msg((got.verdict == VERDICT_FITS) == possible, "seed %llu: %s",
                      (unsigned long long)seed, verdict_name(got.verdict));
        if (!possible)
            continue;
        ck_assert_msg(fits_without(&p, set), "seed %llu: %x", (unsigned long long)seed, set);
        ck_assert_msg(victims_cost_cmp(&got.cost, &best) == 0, "seed %llu: %x",
                      (unsigned long long)seed, set);
        helped += got.cost.n > 0 ? 1 : 0;
        fewer += got.cost.n > 0 && !fits_without(&p, all) ? 1 : 0;
    }
    ck_assert_msg(cases < 100 || helped > cases / 5, "only %u of the nodes need victims", helped);
    ck_assert_msg(cases < 100 || fewer > cases / 50, "only %u of the nodes are special", fewer);
}

int main(void)
{
    TCase *t = unit_case("victims_turn");
    tcase_set_timeout(t, 600);
    return unit_run();
}
