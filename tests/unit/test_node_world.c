/* Runs the world of node_world.h at random. */
#include "node_world_faults.h"
#include "node_world_patches.h"

/* What an agent before it has sent takes effect before it lists the pods, or later, or never. */
static void start_agent(struct world *w)
{
    struct roster_card cards[CARDS];
    for (size_t i = 0; i < COUNT_OF(w->patches); i++) {
        uint64_t fate = draw(w, 3);
        if (fate == 0)
            (void)patch_step(w, &w->patches[i]);
        w->patches[i].on = w->patches[i].on && fate == 2;
    }
    NOTE("the agent starts\n");
    forget_lost(w);
    roster_done(&w->roster);
    roster_init(&w->roster);
    for (uint32_t c = 0; c < CARDS; c++)
        cards[c] = (struct roster_card){.index = c, .total = TOTAL};
    roster_set_cards(&w->roster, cards, CARDS);
    w->head = w->tail = 0;
    for (unsigned i = 0; i < w->n_pods; i++)
        show(w, i, &w->pods[i].now);
    read_checkpoint(w, true);
    w->up = true;
}

/* The extender: cards at random among those with room. */
static void bind_pod(struct world *w)
{
    if (w->n_pods == PODS || is_exchanging(w))
        return;
    struct wpod *p = &w->pods[w->n_pods];
    *p = (struct wpod){.kind = w->plain || draw(w, 3) > 0 ? KIND_PLAIN : (enum kind)draw(w, KINDS)};
    (void)snprintf(p->uid, sizeof(p->uid), "p%u", w->n_pods);
    p->n_containers = p->kind == KIND_PAIR || p->kind == KIND_INIT ? 2 : 1;
    p->sizes[0] = draw(w, 2) > 0 ? 4 : 2;
    p->sizes[1] = draw(w, 2) > 0 ? 4 : 2;
    p->created_s = 1000 + (uint32_t)draw(w, 20);
    uint32_t need = p->kind == KIND_TWO ? 2 : 1;
    uint32_t first = (uint32_t)draw(w, CARDS + 1 - need);
    for (uint32_t i = 0; i < CARDS && p->now.n_said < need; i++) {
        uint32_t c = need == 2 ? i + first : (first + i) % CARDS;
        if (c < CARDS && said_on(w, c) + size_of(p) / need <= TOTAL)
            p->now.said[p->now.n_said++] = (struct grant){.card = c, .mem = size_of(p) / need};
    }
    if (p->now.n_said < need)
        return;
    if (p->kind == KIND_PAIR) {
        p->now.n_said = 2;
        p->now.said[1] = (struct grant){.card = p->now.said[0].card, .mem = p->sizes[1]};
        p->now.said[1].container = 1;
        p->now.said[0].mem = p->sizes[0];
    }
    p->life = LIFE_BOUND;
    p->stubborn = (w->faults & REFUSALS) != 0 && draw(w, 6) == 0;
    w->kubelet_order[w->n_order++] = w->n_pods;
    w->n_pods++;
    tell(w, w->n_pods - 1);
}

static bool allocate(struct world *w, unsigned i)
{
    struct wpod *p = &w->pods[i];
    struct pod_match match;
    struct err e = ERR_INIT;
    struct pod_match_call call = {.n = p->sizes[p->n_given]};
    if (!w->up)
        return false;
    read_checkpoint(w, true);
    MUST(exchange_plan(&w->roster), "no memory");
    if (w->late) {
        p->late[p->n_given++] = true;
        w->n.given++;
        return true;
    }
    if (pod_match_find(&w->roster, &call, &match, &e) != OK) {
        hear(w, true);
        MUST(exchange_plan(&w->roster), "no memory");
        if (pod_match_find(&w->roster, &call, &match, &e) != OK) {
            ck_assert_msg(!w->plain || w->faults != 0, "seed %llu: %s is refused: %s",
                          (unsigned long long)w->seed, p->uid, e.text);
            w->n.refused++;
            return false;
        }
    }
    pod_match_store(&w->roster, &match);
    NOTE("%s %u gets the %u of %.*s, first %u\n", p->uid, p->n_given, match.cards.n,
         STR_ARG(match.pod->uid), match.cards.cards[0]);
    w->n.given++;
    w->n.swaps += !str_eq(match.pod->uid, str_of(p->uid));
    p->has[p->n_given++] = match.cards;
    return true;
}

static void admit(struct world *w, unsigned i)
{
    struct wpod *p = &w->pods[i];
    while (p->n_given < p->n_containers) {
        if (!allocate(w, i)) {
            fail_pod(w, i);
            return;
        }
        check_cards(w);
        if (draw(w, 60) == 0) { /* between the answer and the next question */
            kill_agent(w);
            if (draw(w, 2) == 0 && !w->up)
                start_agent(w);
        }
    }
    if (!w->plain && draw(w, 40) == 0) { /* another resource is short */
        fail_pod(w, i);
        return;
    }
    w->n.admitted++;
    if (draw(w, 2) == 0) /* the kubelet writes that it waits for its image */
        tell(w, i);
    p->life = p->life == LIFE_RUNS ? LIFE_RUNS : LIFE_ADMITTED;
}

static void admit_next(struct world *w)
{
    unsigned best = 0;
    if (w->n_order == 0 || !w->up)
        return;
    if (w->mode == 1)
        best = (unsigned)draw(w, w->n_order);
    for (unsigned i = 1; w->mode == 2 && i < w->n_order; i++)
        if (w->pods[w->kubelet_order[i]].created_s < w->pods[w->kubelet_order[best]].created_s)
            best = i;
    unsigned pod = w->kubelet_order[best];
    memmove(&w->kubelet_order[best], &w->kubelet_order[best + 1],
            (w->n_order - best - 1) * sizeof(unsigned));
    w->n_order--;
    if (w->pods[pod].life != LIFE_ENDED && w->pods[pod].n_given < w->pods[pod].n_containers)
        admit(w, pod);
}

static unsigned index_of(const struct roster_pod *p)
{
    uint64_t i = 0;
    MUST(str_to_u64(str_skip(p->uid, 1), PODS, &i), "no pod of this world");
    return (unsigned)i;
}

static void print_vacated(char out[16], const struct card_list *l)
{
    size_t n = 0;
    for (uint32_t i = 0; i < l->n; i++) {
        if (i > 0)
            out[n++] = ',';
        out[n++] = (char)('0' + l->cards[i]);
    }
    out[n] = '\0';
}

/* The agent sends one PATCH, if there is one to send. */
static bool mend(struct world *w)
{
    struct exchange_step s;
    struct patch *free = NULL;
    for (size_t i = 0; i < COUNT_OF(w->patches); i++)
        free = w->patches[i].on ? free : &w->patches[i];
    if (!w->up || free == NULL)
        return false;
    MUST(exchange_plan(&w->roster), "no memory");
    exchange_next(&w->roster, &s);
    if (s.action == EXCHANGE_NOTHING)
        return false;
    unsigned i = index_of(s.pod);
    *free = (struct patch){.on = true, .pod = i, .action = s.action};
    free->version = s.action == EXCHANGE_ASSIGN ? 0 : s.pod->version;
    free->to.assigned = s.assigned;
    if (s.action == EXCHANGE_MARK || s.action == EXCHANGE_FINISH)
        print_vacated(free->to.vacated, &s.vacated);
    if (s.action == EXCHANGE_MOVE) {
        free->to.n_said = s.pod->plan.n;
        ck_assert(s.pod->plan.n <= 4);
        memcpy(free->to.said, s.pod->plan.grants, s.pod->plan.n * sizeof(struct grant));
        w->n.moved++;
    }
    w->n.marked += s.action == EXCHANGE_MARK;
    exchange_sent(&s);
    NOTE("patch %s action %d plan %u@%u\n", w->pods[i].uid, (int)s.action, s.pod->plan.n,
         s.pod->plan.n > 0 ? s.pod->plan.grants[0].card : 0);
    return true;
}

/* The specs of the pod's containers are written. */
static void bind_late(struct world *w, struct wpod *p, struct roster_pod *r)
{
    for (unsigned k = 0; k < p->n_given; k++) {
        if (!p->late[k] || p->has[k].n > 0)
            continue;
        roster_cards_of(r, r->containers[k].demand, &r->said, &p->has[k]);
        ck_assert_uint_gt(p->has[k].n, 0);
        r->containers[k].has = p->has[k];
        w->n.bound++;
    }
}

static void start_containers(struct world *w, unsigned i)
{
    struct wpod *p = &w->pods[i];
    if (p->life != LIFE_ADMITTED || !w->up)
        return;
    read_checkpoint(w, false);
    MUST(exchange_plan(&w->roster), "no memory");
    struct roster_pod *r = roster_find(&w->roster, str_of(p->uid));
    for (unsigned k = 0; r != NULL && k < p->n_containers; k++)
        roster_ask(r, k == 0 ? STR("a") : STR("b"));
    if (r == NULL || !exchange_may_start(&w->roster, r))
        return;
    NOTE("%s starts\n", p->uid);
    bind_late(w, p, r);
    if (!w->quiet && draw(w, 20) == 0)
        return; /* the answer is lost, or the image is missing: the kubelet tries again */
    p->life = LIFE_RUNS;
    p->has_run = true;
    memcpy(p->on, p->has, sizeof(p->on));
    p->edited = p->edited && !is_right(p); /* the agent has not heard of it */
}

/* A list of the pods ends the doubts after this time. */
static void relist(struct world *w)
{
    if (is_patch_left(w))
        return;
    hear(w, true);
    roster_settle(&w->roster);
}

static void step(struct world *w)
{
    switch (draw(w, 14)) {
    case 0:
    case 1:
    case 2:
        bind_pod(w);
        break;
    case 3:
    case 4:
        hear(w, draw(w, 3) == 0);
        break;
    case 5:
    case 6:
        admit_next(w);
        break;
    case 7:
        if (w->n_pods > 0)
            start_containers(w, (unsigned)draw(w, w->n_pods));
        break;
    case 8:
        (void)mend(w);
        break;
    case 9:
    case 10:
        (void)patch_step(w, &w->patches[draw(w, COUNT_OF(w->patches))]);
        break;
    case 11:
        if (w->n_pods > 0 && draw(w, 2) == 0) {
            unsigned i = (unsigned)draw(w, w->n_pods);
            if (w->pods[i].life == LIFE_RUNS)
                fail_pod(w, i);
            report(w, (unsigned)draw(w, w->n_pods));
        }
        break;
    case 12:
        if (draw(w, 8) == 0)
            kill_agent(w);
        else if (!w->up)
            start_agent(w);
        break;
    default:
        if (w->up && draw(w, 4) == 0)
            relist(w);
        if (w->binding != GUESSED && draw(w, 10) == 0)
            change_world(w);
        if (w->faults != 0 && draw(w, 4) == 0)
            add_fault(w);
        if (draw(w, 12) == 0)
            restart_kubelet(w);
        break;
    }
    check_cards(w);
}

static void settle(struct world *w)
{
    w->quiet = true;
    for (int round = 0; round < 4 * PODS; round++) {
        if (!w->up)
            start_agent(w);
        if (round < 3 * PODS && round % 32 == 0)
            exchange_retry(&w->roster);
        relist(w);
        hear(w, true);
        admit_next(w);
        read_checkpoint(w, false);
        while (mend(w))
            ;
        for (size_t i = 0; i < COUNT_OF(w->patches); i++) {
            (void)patch_step(w, &w->patches[i]);
            (void)patch_step(w, &w->patches[i]);
        }
        for (unsigned i = 0; i < w->n_pods; i++)
            start_containers(w, i);
        for (unsigned i = 0; i < w->n_pods; i++)
            report(w, i);
        check_cards(w);
    }
}

/* Its containers have cards that its annotations can't be set to. */
static bool is_misfit(const struct world *w, const struct wpod *p)
{
    const struct roster_pod *r = roster_find(&w->roster, str_of(p->uid));
    ck_assert_ptr_nonnull(r);
    return exchange_is_misfit(r);
}

/* The annotations give its card more than it has: after a wrong guess among pods of other shapes.
 */
static bool is_crowded(const struct world *w, const struct wpod *p)
{
    const struct roster_pod *r = roster_find(&w->roster, str_of(p->uid));
    bool full = false;
    ck_assert_ptr_nonnull(r);
    for (uint32_t k = 0; k < p->now.n_said; k++) {
        uint32_t card = p->now.said[k].card;
        full = full || said_on(w, card) > TOTAL || card >= CARDS;
    }
    return full && p->life != LIFE_RUNS && exchange_is_crowded(&w->roster, r);
}

static void check_quiet(struct world *w)
{
    for (unsigned i = 0; i < w->n_pods; i++) {
        const struct wpod *p = &w->pods[i];
        if (p->life == LIFE_ENDED)
            continue;
        if (is_misfit(w, p)) {
            bool may = !w->plain || w->binding == SWITCHED || w->faults != 0;
            ck_assert(may && (p->life != LIFE_RUNS || (w->faults & LOSSES) != 0));
            w->n.misfits++;
            continue;
        }
        if ((!w->plain || w->faults != 0) && is_crowded(w, p)) {
            w->n.crowded++;
            continue;
        }
        if ((p->life != LIFE_RUNS || !is_right(p)) && node_world_traces())
            print_world(w);
        ck_assert_msg(p->life == LIFE_RUNS, "seed %llu: %s does not start",
                      (unsigned long long)w->seed, p->uid);
        if (p->forgotten)
            continue;
        bool written = p->now.assigned || p->stubborn || p->n_given < p->n_containers;
        ck_assert_msg(written && p->now.vacated[0] == '\0' && is_right(p),
                      "seed %llu: the annotations of %s are not as its containers",
                      (unsigned long long)w->seed, p->uid);
    }
}

static void run(uint64_t seed, bool plain, enum binding binding, unsigned faults, struct world *sum)
{
    struct world *w = calloc(1, sizeof(*w));
    ck_assert_ptr_nonnull(w);
    w->random = w->seed = seed;
    w->plain = plain;
    w->binding = binding;
    w->faults = faults;
    w->old_kubelet = (faults & LOSSES) != 0 && draw(w, 2) == 0;
    w->late = binding == LATE || binding == EDITED;
    w->mode = (int)draw(w, 3);
    start_agent(w);
    for (int i = 0; i < 1200; i++)
        step(w);
    settle(w);
    check_quiet(w);
    sum->n.given += w->n.given;
    sum->n.swaps += w->n.swaps;
    sum->n.marked += w->n.marked;
    sum->n.moved += w->n.moved;
    sum->n.refused += w->n.refused;
    sum->n.over_view += w->n.over_view;
    sum->n.misfits += w->n.misfits;
    sum->n.crowded += w->n.crowded;
    sum->n.admitted += w->n.admitted;
    sum->n.bound += w->n.bound;
    sum->n.edited += w->n.edited;
    sum->n.reboots += w->n.reboots;
    sum->n.losses += w->n.losses;
    sum->n.again += w->n.again;
    sum->n.patches_refused += w->n.patches_refused;
    sum->n.forgotten += w->n.forgotten;
    sum->n.landed_late += w->n.landed_late;
    sum->n.conflicts += w->n.conflicts;
    roster_done(&w->roster);
    free(w);
}

static uint64_t number_of(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    uint64_t n = otherwise;
    if (text != NULL)
        ck_assert(str_to_u64(str_of(text), UINT64_MAX, &n));
    return n;
}

static void many(bool plain, enum binding binding, unsigned faults, struct world *sum)
{
    static const char *const names[] = {"guessed", "late", "switched", "edited"};
    uint64_t first = number_of("SEED", number_of("FROM", 1));
    uint64_t n = getenv("SEED") == NULL ? number_of("SEEDS", faults == 0 ? 80 : 40) : 1;
    memset(sum, 0, sizeof(*sum));
    for (uint64_t seed = first; seed < first + n; seed++) {
        if (node_world_traces())
            (void)fprintf(stderr, "seed %llu\n", (unsigned long long)seed);
        run(seed, plain, binding, faults, sum);
    }
    (void)fprintf(
        stderr,
        "# %s, %s, faults %u: %u devices given, %u to another pod than guessed, %u pods admitted, "
        "%u "
        "moves, %u marks, %u refused, %u misfits, %u crowded, %u moments over by the annotations, "
        "%u bound late, %u edits, %u reboots, %u lost checkpoints, %u pods allocated again, %u "
        "refused PATCHes, %u pods that an agent can't know, %u PATCHes late, %u conflicts\n",
        plain ? "plain" : "mixed", names[binding], faults, sum->n.given, sum->n.swaps,
        sum->n.admitted, sum->n.moved, sum->n.marked, sum->n.refused, sum->n.misfits,
        sum->n.crowded, sum->n.over_view, sum->n.bound, sum->n.edited, sum->n.reboots,
        sum->n.losses, sum->n.again, sum->n.patches_refused, sum->n.forgotten, sum->n.landed_late,
        sum->n.conflicts);
    ck_assert(!plain || faults != 0 || sum->n.refused == 0);
    ck_assert_uint_gt(sum->n.landed_late, 0);
}

static struct world sum;

START_TEST(no_card_holds_more_than_its_size)
{
    many(false, _i == 0 ? GUESSED : SWITCHED, 0, &sum);
    ck_assert_uint_lt(sum.n.crowded, 1 + sum.n.admitted / 1000);
    ck_assert_uint_gt(sum.n.swaps, 0);
    ck_assert_uint_gt(sum.n.marked, 0);
    ck_assert((sum.n.bound > 0) == (_i == 1));
}

/* Pods of one container on one card, and no admission fails: none is refused, and the annotations
 * put more on a card than its size only while the extender binds no pod to the node. */
START_TEST(plain_pods_are_all_served)
{
    many(true, _i == 0 ? GUESSED : SWITCHED, 0, &sum);
    ck_assert_uint_gt(sum.n.swaps, 0);
    ck_assert_uint_gt(sum.n.marked, 0);
    ck_assert_uint_eq(sum.n.crowded, 0);
    /* An exchange that the setting and a restart interrupt may leave a pod that has to be deleted.
     */
    ck_assert_uint_lt(sum.n.misfits, 1 + sum.n.admitted / 1000);
}

/* All pods start on the cards that were promised: no annotation is ever written anew. */
START_TEST(nothing_is_exchanged_with_late_binding)
{
    many(_i == 1, LATE, 0, &sum);
    ck_assert_uint_eq(sum.n.swaps + sum.n.moved + sum.n.marked, 0);
    ck_assert_uint_eq(sum.n.refused + sum.n.misfits + sum.n.crowded + sum.n.over_view, 0);
    ck_assert_uint_gt(sum.n.bound, 0);
    ck_assert_uint_gt(sum.n.reboots, 0);
}

/* What runs stays where it is, and its annotations come back. */
START_TEST(edited_annotations_are_set_back)
{
    many(false, EDITED, 0, &sum);
    ck_assert_uint_gt(sum.n.edited, 0);
    ck_assert_uint_gt(sum.n.moved, 0);
    ck_assert_uint_eq(sum.n.misfits, 0);
}

static const struct {
    bool plain;
    enum binding binding;
    unsigned faults;
} fault_mixes[] = {
    {false, GUESSED, WILD_EDITS},
    {true, GUESSED, WILD_EDITS},
    {false, GUESSED, LOSSES},
    {true, GUESSED, LOSSES},
    {false, GUESSED, REFUSALS},
    {true, GUESSED, REFUSALS},
    {false, SWITCHED, WILD_EDITS | LOSSES | REFUSALS},
};

/* No card holds more than its size, and what runs is where its annotations say. */
START_TEST(faults_of_users_and_of_the_cluster_do_no_harm)
{
    unsigned faults = fault_mixes[_i].faults;
    if (number_of("MIX", (uint64_t)_i) != (uint64_t)_i)
        return; /* only one of them is wanted */
    many(fault_mixes[_i].plain, fault_mixes[_i].binding, faults, &sum);
    ck_assert((faults & WILD_EDITS) == 0 || sum.n.edited > 0);
    ck_assert((faults & LOSSES) == 0 || (sum.n.losses > 0 && sum.n.again > 0));
    ck_assert((faults & REFUSALS) == 0 || sum.n.patches_refused > 0);
    ck_assert_uint_lt(sum.n.forgotten, 1 + sum.n.admitted / 100);
    ck_assert(sum.n.forgotten == 0 || ((faults & WILD_EDITS) != 0 && (faults & LOSSES) != 0));
}

int main(void)
{
    TCase *t = unit_case("world");
    tcase_set_timeout(t, 0);
    tcase_add_loop_test(t, no_card_holds_more_than_its_size, 0, 2);
    tcase_add_loop_test(t, plain_pods_are_all_served, 0, 2);
    tcase_add_loop_test(t, nothing_is_exchanged_with_late_binding, 0, 2);
    tcase_add_test(t, edited_annotations_are_set_back);
    t = unit_case("faults");
    tcase_set_timeout(t, 0);
    tcase_add_loop_test(t, faults_of_users_and_of_the_cluster_do_no_harm, 0, COUNT_OF(fault_mixes));
    return unit_run();
}
