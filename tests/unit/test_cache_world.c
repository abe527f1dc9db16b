/*
 * The cache in a small world: an API server with its own state, a watch that lags and breaks, lists
 * at any moment, Bindings and GETs with late answers or none. The client resolves its reservations
 * as bind does. The invariants:
 *
 * - no Binding of cardpack over-commits a card;
 * - at rest, the cache equals the API server's objects, no more and no less.
 *
 * CACHE_WORLD_SEED=17 CACHE_WORLD_HISTORIES=1 test_cache_world
 */
#include "cache_world.h"

#include "core/cache/cache.h"

#include <stdio.h>

static enum errc apply(struct world *w, const struct cache_event *e, struct effect *ret)
{
    enum errc code = cache_apply(&w->cache, e, 1, ret);
    cache_check(&w->cache);
    return code;
}

/* Applies one pod's object as an event of this type. */
static enum errc apply_pod(struct world *w, enum cache_event_type type, int uid,
                           const struct object *o)
{
    char uid_text[16];
    char node[16];
    char card[16];
    char mem[16];
    struct effect fx;
    struct container_view c = {.mem = text_of(mem, sizeof(mem), "", o->mem)};
    struct cache_event e = {.type = type,
                            .pod = {.uid = text_of(uid_text, sizeof(uid_text), "u", uid),
                                    .phase = o->terminal ? STR("Succeeded") : STR("Running"),
                                    .deleting = o->deleting,
                                    .containers = &c,
                                    .n_containers = 1}};
    if (o->node >= 0) {
        e.pod.node = text_of(node, sizeof(node), "n", o->node);
        e.pod.idx = text_of(card, sizeof(card), "", o->card);
    }
    return apply(w, &e, &fx);
}

static const struct pod *known(const struct world *w, int uid)
{
    char text[16];
    return cache_pod(&w->cache, text_of(text, sizeof(text), "u", uid));
}

/* The client. */

static enum errc resolve(struct world *w, const struct op *op, enum cache_event_type type,
                         bool read_back)
{
    char uid[16];
    struct effect fx;
    struct cache_event e = {
        .type = type,
        .holder = {.uid = text_of(uid, sizeof(uid), "u", op->uid), .read_back = read_back}};
    return apply(w, &e, &fx);
}

static struct op *free_op(struct world *w, int uid)
{
    struct op *found = NULL;
    for (int i = 0; i < OPS; i++) {
        if (w->ops[i].used && w->ops[i].uid == uid)
            return NULL;
        if (!w->ops[i].used)
            found = &w->ops[i];
    }
    return found;
}

/* The scheduler asks to bind a pod that is unbound, or that it takes as unbound. */
static void client_bind(struct world *w)
{
    char uid_text[16];
    char node_text[16];
    struct effect fx;
    int uid = w->n_pods == 0 ? 0 : w->n_pods - 1 - draw(w, w->n_pods < 12 ? w->n_pods : 12);
    struct op *op = free_op(w, uid);
    if (op == NULL || w->n_pods == 0 || w->pods[uid].node >= 0)
        return;
    int node = draw(w, NODES);
    struct request request = {.mem = w->pods[uid].mem, .lasting_mem = w->pods[uid].mem};
    struct cache_event e = {.type = CACHE_RESERVE,
                            .reserve = {.uid = text_of(uid_text, sizeof(uid_text), "u", uid),
                                        .node = text_of(node_text, sizeof(node_text), "n", node),
                                        .request = &request}};
    /* The client first reads a pod that it does not know; the pod exists when it is reserved. */
    if (known(w, uid) == NULL && !w->pods[uid].exists)
        return;
    if (apply(w, &e, &fx) != OK)
        return;
    *op = (struct op){.used = true, .uid = uid, .node = node, .post_waits = true};
    op->card = (int)fx.card;
}

static void client_cancel(struct world *w, struct op *op)
{
    /* The pod is bound elsewhere or gone: the GET changes nothing beside the watch. */
    if (!op->read.exists || op->read.node < 0 ||
        apply_pod(w, CACHE_POD_READ, op->uid, &op->read) != OK)
        world_assert(w, resolve(w, op, CACHE_CANCEL, false) == OK);
    op->used = false;
}

static void client_confirm(struct world *w, struct op *op, bool read_back)
{
    enum errc code = resolve(w, op, CACHE_CONFIRM, read_back);
    op->used = code == ERR_CONFLICT;
    op->get_waits = op->used;
}

static void client_was_read(struct world *w, struct op *op)
{
    char uid[16];
    struct effect fx;
    bool bound_here = op->read.exists && op->read.node == op->node && op->read.card == op->card;
    if (bound_here) {
        client_confirm(w, op, true);
    } else if (op->verifies) {
        struct cache_event e = {.type = CACHE_POD_GONE,
                                .pod = {.uid = text_of(uid, sizeof(uid), "u", op->uid)}};
        world_assert(w, !op->read.exists);
        world_assert(w, apply(w, &e, &fx) == OK);
        op->used = false;
    } else if (op->read.exists && op->read.node < 0 && !op->read_is_final) {
        op->get_waits = true;
    } else {
        client_cancel(w, op);
    }
}

static void client_receive(struct world *w, struct op *op)
{
    enum answer answer = op->answer;
    op->answer = ANSWER_NONE;
    switch (answer) {
    case ANSWER_CREATED:
        client_confirm(w, op, false);
        break;
    case ANSWER_REFUSED:
        op->read = (struct object){.exists = false};
        client_cancel(w, op);
        break;
    case ANSWER_UNKNOWN:
        op->in_doubt = true;
        op->get_waits = true;
        break;
    case ANSWER_READ:
        client_was_read(w, op);
        break;
    case ANSWER_NONE:
        break;
    }
}

/* Reads each confirmed pod that the list lacks. */
static void client_verify(struct world *w)
{
    size_t cursor = 0;
    uint64_t uid = 0;
    for (const struct pod *p = cache_next_pod(&w->cache, &cursor); p != NULL;
         p = cache_next_pod(&w->cache, &cursor)) {
        if (p->state != POD_CONFIRMED || !p->missing || p->asked)
            continue;
        ck_assert(str_to_u64(str_skip(p->uid, 1), PODS, &uid));
        struct op *op = free_op(w, (int)uid);
        if (op == NULL)
            return;
        *op = (struct op){.used = true, .verifies = true, .uid = (int)uid, .card = p->card};
        op->node = p->node->name.p[1] - '0';
        client_confirm(w, op, false);
        return;
    }
}

static void step_op(struct world *w)
{
    struct op *op = &w->ops[draw(w, OPS)];
    if (!op->used)
        return;
    if (op->post_waits && draw(w, 3) == 0)
        server_bind(w, op);
    else if (op->post_waits && !op->in_doubt && op->answer == ANSWER_NONE && draw(w, 8) == 0)
        op->answer = ANSWER_UNKNOWN; /* a timeout: the Binding takes effect later or never */
    else if (op->answer != ANSWER_NONE)
        client_receive(w, op);
    else if (op->get_waits)
        server_get(w, op);
}

/* The watch and the lists. */

static void watch_deliver(struct world *w)
{
    if (!w->connected || w->n_notes == 0)
        return;
    struct note *n = &w->notes[w->first_note];
    w->first_note = (w->first_note + 1) % NOTES;
    w->n_notes--;
    world_assert(w,
                 apply_pod(w, n->gone ? CACHE_POD_GONE : CACHE_POD_SET, n->uid, &n->object) == OK);
}

static void list_step(struct world *w)
{
    struct effect fx;
    struct cache_event e = {.type = CACHE_LIST_BEGIN, .list = CACHE_PODS};
    if (w->list == LIST_NONE) {
        w->connected = false;
        w->list = LIST_BEGUN;
        world_assert(w, apply(w, &e, &fx) == OK);
    } else if (w->list == LIST_BEGUN) {
        memcpy(w->listed, w->pods, sizeof(w->pods));
        w->n_listed = w->n_pods;
        w->next_listed = 0;
        w->n_notes = 0; /* the watch will continue from here */
        w->list = LIST_READ;
    } else if (w->next_listed < w->n_listed) {
        for (int i = 0; i < 20 && w->next_listed < w->n_listed; i++, w->next_listed++) {
            const struct object *o = &w->listed[w->next_listed];
            world_assert(w, !o->exists || apply_pod(w, CACHE_POD_SET, w->next_listed, o) == OK);
        }
        if (draw(w, 25) == 0)
            w->list = LIST_NONE; /* the list broke off and starts again */
    } else {
        e.type = CACHE_LIST_END;
        world_assert(w, apply(w, &e, &fx) == OK);
        w->list = LIST_NONE;
        w->connected = true;
    }
}

static void world_step(struct world *w, bool drain)
{
    int dice = draw(w, 100);
    if (dice < 40)
        step_op(w);
    else if (dice < 60)
        watch_deliver(w);
    else if (dice < 70 && !w->connected)
        list_step(w);
    else if (dice < 72 && !drain && w->list == LIST_NONE)
        w->connected = false;
    else if (dice < 75)
        client_verify(w);
    else if (!drain && dice < 82)
        server_create(w);
    else if (!drain && dice < 88)
        server_age(w);
    else if (!drain)
        client_bind(w);
}

static bool is_quiet(const struct world *w)
{
    for (int i = 0; i < OPS; i++) {
        if (w->ops[i].used)
            return false;
    }
    size_t cursor = 0;
    for (const struct pod *p = cache_next_pod(&w->cache, &cursor); p != NULL;
         p = cache_next_pod(&w->cache, &cursor)) {
        if (p->missing)
            return false;
    }
    return w->connected && w->n_notes == 0;
}

static void compare(struct world *w)
{
    size_t live = 0;
    for (int i = 0; i < w->n_pods; i++) {
        const struct object *o = &w->pods[i];
        const struct pod *p = known(w, i);
        bool kept = o->exists && !o->terminal;
        world_assert(w, (p != NULL) == kept);
        live += kept ? 1 : 0;
        if (!kept)
            continue;
        world_assert(w, p->request->mem == o->mem && p->card == (o->node < 0 ? -1 : o->card));
        world_assert(w, p->state == (o->node < 0 ? POD_PENDING : POD_BOUND));
    }
    world_assert(w, w->cache.pods.n == live);
}

static void run_episode(struct world *w)
{
    for (int i = 0; i < STEPS; i++, w->step++)
        world_step(w, false);
    for (int i = 0; i < 10000 && !is_quiet(w); i++, w->step++)
        world_step(w, true);
    world_assert(w, is_quiet(w));
    compare(w);
}

static unsigned run_history(uint64_t seed)
{
    struct world *w = calloc(1, sizeof(*w));
    struct effect fx;
    w->random = seed;
    w->seed = seed;
    cache_init(&w->cache, (struct map_seed){seed, 0});
    for (int i = 0; i < NODES; i++) {
        char name[16];
        struct cache_event e = {.type = CACHE_NODE_SET,
                                .node = {.name = text_of(name, sizeof(name), "n", i),
                                         .mem = STR("32"),
                                         .count = STR("2")}};
        world_assert(w, apply(w, &e, &fx) == OK);
    }
    while (!w->connected) /* the client serves nothing before the first list is complete */
        list_step(w);
    for (int episode = 0; episode < EPISODES; episode++)
        run_episode(w);
    unsigned bound = w->bound;
    cache_done(&w->cache);
    free(w);
    return bound;
}

START_TEST(no_card_is_over_committed_and_nothing_leaks)
{
    uint64_t first = seeded_setting("CACHE_WORLD_SEED", 1);
    uint64_t n = seeded_setting("CACHE_WORLD_HISTORIES", 80);
    unsigned bound = 0;
    for (uint64_t i = 0; i < n; i++)
        bound += run_history(first + i);
    ck_assert_uint_gt(bound, 10 * n); /* otherwise the history proves nothing */
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("cache_world");
    TCase *tc = tcase_create("cache_world");
    tcase_set_timeout(tc, 0);
    tcase_add_test(tc, no_card_is_over_committed_and_nothing_leaks);
    suite_add_tcase(suite, tc);
    return unit_main(suite);
}
