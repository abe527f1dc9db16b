/* Every event with each of its allocations failing: the event takes effect completely, or not at
 * all. */
#include "cache_rig.h"
#include "fail_alloc.h"

#include <stdio.h>

enum {
    DUMP_BYTES = 16384
};

static int by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* Writes all visible state of the cache, in a fixed order. */
static void dump(const struct cache *c, char to[DUMP_BYTES])
{
    char lines[160][200];
    size_t n = 0;
    size_t cursor = 0;
    for (const struct node *x = cache_next_node(c, &cursor); x != NULL;
         x = cache_next_node(c, &cursor)) {
        ck_assert_uint_lt(n, COUNT_OF(lines));
        int used = snprintf(
            lines[n], sizeof(lines[n]),
            "node %.*s %d %u %u %lld %lld %lld %lld %lld %u %llu %lld %lld:", STR_ARG(x->name),
            x->fault, x->epoch, x->health_epoch, (long long)x->total, (long long)x->limit,
            (long long)x->remainder, (long long)x->used, (long long)x->unplaced, x->n_pods,
            (unsigned long long)x->assume_ns, (long long)x->host_total.cpu,
            (long long)x->host_used.cpu);
        for (uint32_t i = 0; i < x->n_cards && used < 180; i++)
            used += snprintf(lines[n] + used, sizeof(lines[n]) - (size_t)used, " %lld/%lld%s",
                             (long long)x->cards[i].used, (long long)x->cards[i].total,
                             x->cards[i].unhealthy ? "!" : "");
        n++;
    }
    cursor = 0;
    for (const struct pod *p = cache_next_pod(c, &cursor); p != NULL;
         p = cache_next_pod(c, &cursor)) {
        struct str node = p->node == NULL ? STR("-") : p->node->name;
        struct str keeper = p->keeper == NULL ? STR("-") : p->keeper->name;
        ck_assert_uint_lt(n, COUNT_OF(lines));
        (void)snprintf(lines[n++], sizeof(lines[0]),
                       "pod %.*s %d %d%d%d%d%d %u %lld %.*s %.*s %d %llu %u %d %d %u",
                       STR_ARG(p->uid), p->state, p->seen, p->missing, p->asked, pod_awaits(p),
                       p->deleting, p->epoch, (long long)p->request->mem, STR_ARG(node),
                       STR_ARG(keeper), p->card, (unsigned long long)p->assume_ns,
                       p->request->cards, p->request->priority, p->group != NULL,
                       labels_count(p->labels));
    }
    (void)snprintf(lines[n++], sizeof(lines[0]), "groups %zu nodes %zu", c->groups.n, c->nodes.n);
    for (uint32_t i = 0; i < c->cardless.n; i++) {
        const struct cardless_pod *x = cardless_pods_at(&c->cardless, i);
        ck_assert_uint_lt(n, COUNT_OF(lines));
        (void)snprintf(lines[n++], sizeof(lines[0]), "other %llu %.*s %lld %u",
                       (unsigned long long)x->key[0], STR_ARG(x->node->name),
                       (long long)x->host.cpu, x->epoch);
    }
    qsort(lines, n, sizeof(lines[0]), by_text);
    size_t at = 0;
    for (size_t i = 0; i < n; i++)
        at += (size_t)snprintf(to + at, DUMP_BYTES - at, "%s\n", lines[i]);
}

/* A pod that asks for no card. */
static enum errc other(struct rig *r, const char *uid, const char *node, int64_t cpu)
{
    struct cache_event e = {.type = CACHE_POD_SET,
                            .pod = {.uid = str_of(uid),
                                    .namespace = STR("ns"),
                                    .name = str_of(uid),
                                    .node = str_of(node),
                                    .host = {.cpu = cpu}}};
    return rig_apply(r, &e);
}

/* `more`: the number of other objects of each kind, so that the next one makes its map grow. */
static void start(struct rig *r, unsigned more)
{
    rig_init(r);
    node_set(r, "n", "32", "2", NULL);
    node_set(r, "m", "32", "2", NULL);
    health_set(r, "m", "1");
    pod_set(r, .uid = "pending");
    pod_set(r, .uid = "bound", .node = "n", .idx = "0");
    pod_set(r, .uid = "orphan", .node = "ghost");
    ck_assert_int_eq(other(r, "other", "n", 100), OK);
    ck_assert_int_eq(reserve(r, "reserved", "n", 4), OK);
    list_begin(r, CACHE_PODS);
    list_begin(r, CACHE_NODES);
    for (unsigned i = 0; i < more; i++) {
        char name[16];
        (void)snprintf(name, sizeof(name), "more-%u", i);
        node_set(r, name, "32", "2", NULL);
        pod_set(r, .uid = name);
    }
    for (unsigned i = 1; more > 0 && i < 64; i++) { /* the next one makes the table grow */
        char name[16];
        (void)snprintf(name, sizeof(name), "other-%u", i);
        ck_assert_int_eq(other(r, name, "n", i), OK);
    }
}

static enum errc new_node(struct rig *r)
{
    struct cache_event e = {.type = CACHE_NODE_SET,
                            .node = {.name = STR("new"), .mem = STR("32"), .count = STR("2")}};
    return rig_apply(r, &e);
}

static enum errc more_cards(struct rig *r)
{
    struct cache_event e = {.type = CACHE_NODE_SET,
                            .node = {.name = STR("n"), .mem = STR("64"), .count = STR("4")}};
    return rig_apply(r, &e);
}

static enum errc ghost_appears(struct rig *r)
{
    struct cache_event e = {.type = CACHE_NODE_SET,
                            .node = {.name = STR("ghost"), .mem = STR("64"), .count = STR("4")}};
    return rig_apply(r, &e);
}

static enum errc new_health(struct rig *r)
{
    struct cache_event e = {.type = CACHE_HEALTH_SET,
                            .health = {.node = STR("n"), .gpus = STR("0")}};
    return rig_apply(r, &e);
}

static enum errc health_of_a_stranger(struct rig *r)
{
    struct cache_event e = {.type = CACHE_HEALTH_SET,
                            .health = {.node = STR("new"), .gpus = STR("0")}};
    return rig_apply(r, &e);
}

static enum errc new_pending(struct rig *r)
{
    return pod_event(r, CACHE_POD_SET, (struct shown){.uid = "new"});
}

static enum errc new_bound(struct rig *r)
{
    return pod_event(r, CACHE_POD_SET, (struct shown){.uid = "new", .node = "n", .idx = "1"});
}

static enum errc new_orphan(struct rig *r)
{
    return pod_event(r, CACHE_POD_SET, (struct shown){.uid = "new", .node = "new", .idx = "1"});
}

static enum errc pending_is_bound_to_a_stranger(struct rig *r)
{
    return pod_event(r, CACHE_POD_SET, (struct shown){.uid = "pending", .node = "new"});
}

static enum errc bound_moves_to_a_stranger(struct rig *r)
{
    return pod_event(
        r, CACHE_POD_SET,
        (struct shown){.uid = "bound", .mem = "3", .node = "new", .assigned = "false"});
}

static enum errc bound_is_labelled(struct rig *r)
{
    return pod_event(r, CACHE_POD_SET,
                     (struct shown){.uid = "bound", .node = "n", .idx = "0", .app = "web"});
}

static enum errc labelled_moves(struct rig *r)
{
    return pod_event(r, CACHE_POD_SET,
                     (struct shown){.uid = "bound", .node = "new", .idx = "0", .app = "web"});
}

static enum errc reserved_is_bound_to_a_stranger(struct rig *r)
{
    return pod_event(r, CACHE_POD_SET, (struct shown){.uid = "reserved", .node = "new"});
}

static enum errc reserved_is_read_elsewhere(struct rig *r)
{
    return pod_event(r, CACHE_POD_READ, (struct shown){.uid = "reserved", .node = "new"});
}

static enum errc reserve_for_a_stranger(struct rig *r)
{
    return reserve(r, "new", "n", 8);
}

/* A pod of group g and priority 3, pending or bound. */
static enum errc grouped(struct rig *r, enum cache_event_type type, const char *uid,
                         const char *node, const char *nominated)
{
    struct container_view c = {.name = STR("c"), .mem = STR("6")};
    struct cache_event e = {.type = type,
                            .pod = {.uid = str_of(uid),
                                    .namespace = STR("ns"),
                                    .name = str_of(uid),
                                    .node = str_of(node),
                                    .nominated = str_of(nominated),
                                    .idx = STR("1"),
                                    .affinity = STR("g"),
                                    .count_label = node == NULL ? STR("2") : STR_NULL,
                                    .priority = 3,
                                    .deleting = node != NULL,
                                    .containers = &c,
                                    .n_containers = 1}};
    return rig_apply(r, &e);
}

static enum errc pending_is_edited(struct rig *r)
{
    return grouped(r, CACHE_POD_SET, "pending", NULL, NULL);
}

static enum errc pending_is_nominated(struct rig *r)
{
    return grouped(r, CACHE_POD_SET, "pending", NULL, "n");
}

static enum errc pending_is_edited_and_nominated_for_a_stranger(struct rig *r)
{
    return grouped(r, CACHE_POD_SET, "pending", NULL, "new");
}

static enum errc new_nominated(struct rig *r)
{
    return grouped(r, CACHE_POD_SET, "new", NULL, "new");
}

static enum errc pending_of_a_group_is_bound(struct rig *r)
{
    return grouped(r, CACHE_POD_SET, "pending", "n", NULL);
}

static enum errc bound_joins_a_group(struct rig *r)
{
    return grouped(r, CACHE_POD_SET, "bound", "n", NULL);
}

static enum errc new_of_a_group_is_bound_to_a_stranger(struct rig *r)
{
    return grouped(r, CACHE_POD_SET, "new", "new", NULL);
}

static enum errc reserved_is_read_and_joins_a_group(struct rig *r)
{
    return grouped(r, CACHE_POD_READ, "reserved", "m", NULL);
}

static enum errc new_other(struct rig *r)
{
    return other(r, "new", "n", 7);
}

static enum errc new_other_of_a_stranger(struct rig *r)
{
    return other(r, "new", "new", 7);
}

static enum errc other_moves_to_a_stranger(struct rig *r)
{
    return other(r, "other", "new", 7);
}

static enum errc other_asks_for_a_card(struct rig *r)
{
    return pod_event(r, CACHE_POD_SET, (struct shown){.uid = "other", .node = "n", .idx = "0"});
}

static enum errc bound_asks_for_no_card(struct rig *r)
{
    return other(r, "bound", "new", 7);
}

static const struct {
    enum errc (*apply)(struct rig *r);
    size_t allocations; /* at least so many; 0: it must not fail */
} cases[] = {
    {new_node, 2},
    {more_cards, 1},
    {ghost_appears, 1},
    {new_health, 1},
    {health_of_a_stranger, 2},
    {new_pending, 1},
    {new_bound, 1},
    {new_orphan, 2},
    {pending_is_bound_to_a_stranger, 1},
    {bound_moves_to_a_stranger, 1},
    {bound_is_labelled, 1},
    {labelled_moves, 3},
    {reserved_is_bound_to_a_stranger, 1},
    {reserved_is_read_elsewhere, 1},
    {reserve_for_a_stranger, 1},
    {pending_is_edited, 1},
    {pending_is_nominated, 1},
    {pending_is_edited_and_nominated_for_a_stranger, 2},
    {new_nominated, 3},
    {pending_of_a_group_is_bound, 3},
    {bound_joins_a_group, 3},
    {new_of_a_group_is_bound_to_a_stranger, 5},
    {reserved_is_read_and_joins_a_group, 3},
    {new_other, 0},
    {new_other_of_a_stranger, 1},
    {other_moves_to_a_stranger, 1},
    {other_asks_for_a_card, 1},
    {bound_asks_for_no_card, 1},
};

/* Returns the number of its allocations. */
static size_t fail_each(size_t i, unsigned more, enum fail_alloc_mode mode)
{
    for (size_t nth = 1;; nth++) {
        char before[DUMP_BYTES];
        char after[DUMP_BYTES];
        struct rig r;
        start(&r, more);
        dump(&r.cache, before);
        fail_alloc_arm(mode, nth);
        enum errc code = cases[i].apply(&r);
        fail_alloc_disarm();
        bool hit = fail_alloc_hit();
        dump(&r.cache, after);
        ck_assert_int_eq(code, hit ? ERR_NOMEM : OK);
        ck_assert_int_eq(strcmp(before, after) == 0, hit);
        ck_assert(!hit || !r.fx.changed);
        rig_done(&r);
        if (!hit)
            return nth - 1;
    }
}

TEST_EACH(an_event_happens_whole_or_not_at_all, COUNT_OF(cases))
{
    size_t most = 0;
    for (unsigned more = 0; more < 12; more++) {
        size_t n = fail_each((size_t)_i, more, FAIL_ONCE);
        ck_assert_uint_eq(fail_each((size_t)_i, more, FAIL_FROM_THEN_ON), n);
        ck_assert_uint_ge(n, cases[_i].allocations);
        most = MAX_OF(most, n);
    }
    ck_assert_uint_le(most, 8);
}

/* Events that free memory, and events that resolve a reservation, need no memory. */
TEST(most_events_can_not_fail)
{
    struct rig r;
    start(&r, 0);
    ck_assert_int_eq(reserve(&r, "pending", "n", 2), OK);
    fail_alloc_arm(FAIL_FROM_THEN_ON, 1);
    ck_assert_int_eq(confirm(&r, "pending", false), OK);
    cancel(&r, "reserved");
    pod_gone(&r, "orphan");
    pod_gone(&r, "bound");
    ck_assert_int_eq(other(&r, "other", "m", 7), OK);
    ck_assert_int_eq(other(&r, "other", "m", 0), OK);
    node_gone(&r, "n");
    health_gone(&r, "m");
    list_end(&r, CACHE_PODS);
    list_end(&r, CACHE_NODES);
    fail_alloc_disarm();
    rig_done(&r);
}
