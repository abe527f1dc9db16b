/*
 * A node in motion, without I/O: an extender that binds pods, a kubelet that admits them in any
 * order, and the agent's matches and exchanges. Messages arrive late, the agent is killed, the
 * kubelet restarts. After each step no card may hold more than its size, by what containers really
 * have; when all is quiet each container has the cards that its pod's annotations name. With late
 * binding a container has none until it starts.
 *
 * The world keeps its own books, from what the agent answered and wrote, and uses none of the
 * roster's sums.
 */
#pragma once

#include "base/log.h"
#include "node/roster/exchange.h"
#include "node/roster/pod_match.h"
#include "unit.h"

#include <stdio.h>

#define PODS  96
#define CARDS 4
#define TOTAL 16

enum kind {
    KIND_PLAIN,
    KIND_PAIR, /* two containers */
    KIND_INIT, /* an init container, then a container */
    KIND_TWO,  /* one container on two cards */
    KINDS
};

enum binding {
    GUESSED,
    LATE,
    SWITCHED, /* the setting changes now and then */
    EDITED,   /* late, and annotations of pods are edited to other cards */
};

/* What happens besides; any of them. */
enum {
    WILD_EDITS = 1, /* users edit annotations to any card, in guess mode, too */
    LOSSES = 2,     /* the kubelet loses its checkpoint */
    REFUSALS = 4,   /* the API server refuses each PATCH of some pods */
};

enum life {
    LIFE_NONE,
    LIFE_BOUND,    /* the kubelet has not admitted it */
    LIFE_ADMITTED, /* all its containers have devices */
    LIFE_RUNS,
    LIFE_ENDED,
};

struct copy {        /* what the annotations say */
    uint32_t n_said; /* 0: no cards */
    struct grant said[4];
    char vacated[16]; /* "": no such annotation */
    bool assigned;
    bool ended;
    bool runs;
    uint64_t version;
};

struct wpod {
    char uid[8];
    enum kind kind;
    enum life life;
    bool at_kubelet; /* the kubelet's watch has shown it */
    uint32_t created_s;
    int64_t sizes[2];
    unsigned n_containers;
    unsigned n_given; /* containers with devices in the checkpoint, in order */
    bool late[2];
    struct card_list has[2]; /* by the checkpoint; of a late one: none until it starts */
    struct card_list on[2];  /* where its containers run */
    bool edited;             /* by a user, since it started */
    bool stubborn;           /* the API server refuses to change it */
    bool has_run;
    bool forgotten;  /* where it runs is written nowhere any more */
    struct copy now; /* on the API server */
};

struct message { /* to the agent's watch */
    unsigned pod;
    struct copy copy;
};

struct patch {
    bool on;
    bool done; /* the API server has answered */
    bool ok;
    bool refused;
    bool conflict; /* the pod has another version */
    bool left; /* the agent that sent it has ended, or waits no more: its answer reaches no agent */
    unsigned pod;
    uint64_t version; /* of the pod that it is for; 0: of any */
    enum exchange_action action;
    struct copy to; /* what it writes; when done: the pod in the answer */
};

struct world {
    uint64_t seed;
    uint64_t random;
    uint64_t version;
    unsigned n_pods;
    struct wpod pods[PODS];
    struct message queue[4096];
    size_t head, tail;
    unsigned kubelet_order[PODS];
    unsigned n_order;
    struct patch patches[24];
    struct roster roster;
    bool up;
    bool quiet; /* no more faults */
    int mode;   /* the kubelet's order: 0 of the watch, 1 random, 2 by creation */
    enum binding binding;
    unsigned faults;
    bool old_kubelet; /* it asks for the devices of running containers again, if it lost them; no
                         agent ends after that, because the next one can't know */
    bool late;        /* the next Allocate is answered without a guess */
    bool plain;       /* pods of one container on one card only */

    struct {
        unsigned given, swaps, moved, marked, refused, over_view, admitted, misfits, crowded, bound,
            edited, reboots, losses, again, patches_refused, forgotten, landed_late, conflicts;
    } n;
};

/* TRACE=1 prints what happens. */
static bool node_world_traces(void)
{
    static int traces = -1;
    if (traces < 0)
        traces = getenv("TRACE") != NULL;
    return traces != 0;
}

#define NOTE(...)                               \
    do {                                        \
        if (node_world_traces())                \
            (void)fprintf(stderr, __VA_ARGS__); \
    } while (0)

/* ck_assert writes into a file each time, which would take half of the time here. */
#define MUST(condition, ...)           \
    do {                               \
        if (!(condition))              \
            ck_abort_msg(__VA_ARGS__); \
    } while (0)

static uint64_t draw(struct world *w, uint64_t below)
{
    w->random += 0x9e3779b97f4a7c15;
    uint64_t z = w->random;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return (z ^ (z >> 31)) % below;
}

/* What a pod that is on one card holds of it. */
static int64_t size_of(const struct wpod *p)
{
    if (p->kind == KIND_PAIR)
        return p->sizes[0] + p->sizes[1];
    return p->kind == KIND_INIT ? MAX_OF(p->sizes[0], p->sizes[1]) : p->sizes[0];
}

static int64_t said_on(const struct world *w, uint32_t card)
{
    int64_t sum = 0;
    for (unsigned i = 0; i < w->n_pods; i++) {
        const struct wpod *p = &w->pods[i];
        for (uint32_t k = 0; p->life != LIFE_ENDED && k < p->now.n_said; k++) {
            if (p->now.said[k].card == card)
                sum += p->kind == KIND_INIT ? size_of(p) / p->now.n_said : p->now.said[k].mem;
        }
    }
    return sum;
}

static int64_t real_on(const struct world *w, uint32_t card)
{
    int64_t sum = 0;
    for (unsigned i = 0; i < w->n_pods; i++) {
        const struct wpod *p = &w->pods[i];
        int64_t most = 0;
        int64_t all = 0;
        if (p->life != LIFE_RUNS || p->forgotten)
            continue;
        for (unsigned k = 0; k < p->n_containers; k++) {
            int64_t size = card_list_has(&p->on[k], card) ? p->sizes[k] / p->on[k].n : 0;
            most = MAX_OF(most, size);
            all += size;
        }
        sum += p->kind == KIND_INIT ? most : all;
    }
    return sum;
}

static void print_world(const struct world *w)
{
    for (unsigned i = 0; i < w->n_pods; i++) {
        const struct wpod *p = &w->pods[i];
        if (p->life == LIFE_ENDED)
            continue;
        (void)fprintf(stderr, "%s kind %d life %d sizes %d %d: said", p->uid, (int)p->kind,
                      (int)p->life, (int)p->sizes[0], (int)p->sizes[1]);
        for (uint32_t k = 0; k < p->now.n_said; k++)
            (void)fprintf(stderr, " %u:%d@%u", p->now.said[k].container, (int)p->now.said[k].mem,
                          p->now.said[k].card);
        (void)fprintf(stderr, "; has");
        for (unsigned k = 0; k < p->n_given; k++)
            for (uint32_t c = 0; c < p->has[k].n; c++)
                (void)fprintf(stderr, " %u@%u", k, p->has[k].cards[c]);
        (void)fprintf(stderr, "; runs on");
        for (unsigned k = 0; k < p->n_containers; k++)
            for (uint32_t c = 0; c < p->on[k].n; c++)
                (void)fprintf(stderr, " %u@%u", k, p->on[k].cards[c]);
        (void)fprintf(stderr, "; vacated %s\n", p->now.vacated);
    }
}

/* The extender binds no pod to the node meanwhile. */
static bool is_exchanging(const struct world *w)
{
    for (unsigned i = 0; i < w->n_pods; i++) {
        if (w->pods[i].life != LIFE_ENDED && w->pods[i].now.vacated[0] != '\0')
            return true;
    }
    return false;
}

static bool is_said(const struct wpod *p, unsigned container, uint32_t card)
{
    for (uint32_t i = 0; i < p->now.n_said; i++) {
        const struct grant *g = &p->now.said[i];
        if (g->card == card && (g->container == container || p->kind != KIND_PAIR))
            return true;
    }
    return false;
}

/* Whether the annotations name where the containers run. */
static bool is_right(const struct wpod *p)
{
    for (unsigned k = 0; k < p->n_containers; k++) {
        if (p->on[k].n == 0 || (p->kind != KIND_PAIR && p->on[k].n != p->now.n_said))
            return false;
        for (uint32_t c = 0; c < p->on[k].n; c++)
            if (!is_said(p, k, p->on[k].cards[c]))
                return false;
    }
    return p->now.n_said > 0;
}

static void check_running(struct world *w)
{
    for (unsigned i = 0; i < w->n_pods; i++) {
        const struct wpod *p = &w->pods[i];
        bool wrong = p->life == LIFE_RUNS && !p->edited && !is_right(p);
        if (wrong && node_world_traces())
            print_world(w);
        MUST(!wrong, "seed %llu: %s runs on other cards than its annotations name",
             (unsigned long long)w->seed, p->uid);
    }
}

static void check_cards(struct world *w)
{
    check_running(w);
    for (uint32_t c = 0; c < CARDS; c++) {
        bool over = said_on(w, c) > TOTAL;
        bool wrong = over && w->plain && w->faults == 0 && !is_exchanging(w);
        if (node_world_traces() && (real_on(w, c) > TOTAL || wrong))
            print_world(w);
        MUST(real_on(w, c) <= TOTAL, "seed %llu: card %u holds %d of %d",
             (unsigned long long)w->seed, c, (int)real_on(w, c), TOTAL);
        MUST(!wrong, "seed %llu: the annotations put %d on card %u", (unsigned long long)w->seed,
             (int)said_on(w, c), c);
        w->n.over_view += over;
    }
}

static void tell(struct world *w, unsigned pod)
{
    w->pods[pod].now.version = ++w->version;
    w->pods[pod].now.ended = w->pods[pod].life == LIFE_ENDED;
    MUST(w->tail < COUNT_OF(w->queue), "too many messages");
    NOTE("tell %s@%llu life %d\n", w->pods[pod].uid, (unsigned long long)w->version,
         (int)w->pods[pod].life);
    w->queue[w->tail++] = (struct message){.pod = pod, .copy = w->pods[pod].now};
}

/* The agent reads a copy of a pod. */
static void show(struct world *w, unsigned pod, const struct copy *copy)
{
    const struct wpod *p = &w->pods[pod];
    NOTE("show %s@%llu said %u@%u vacated %s\n", p->uid, (unsigned long long)copy->version,
         copy->n_said, copy->said[0].card, copy->vacated);
    static const struct str sizes[] = {STR("0"), STR("1"), STR("2"), STR("3"), STR("4"),
                                       STR("5"), STR("6"), STR("7"), STR("8")};
    char index[8];
    struct container_view containers[2];
    struct grant_view grants[4];
    struct pod_view v = {.uid = str_of(p->uid),
                         .namespace = STR("ns"),
                         .name = str_of(p->uid),
                         .node = STR("n"),
                         .phase = copy->ended  ? STR("Failed")
                                  : copy->runs ? STR("Running")
                                               : STR("Pending"),
                         .created_s = p->created_s,
                         .assigned = copy->assigned ? STR("true") : STR("false"),
                         .n_mains = p->kind == KIND_PAIR ? 2 : 1,
                         .containers = containers,
                         .n_containers = p->n_containers};
    v.vacated = str_of(copy->vacated);
    for (unsigned i = 0; i < p->n_containers; i++) {
        bool init = p->kind == KIND_INIT && i == 0;
        containers[i] = (struct container_view){.name = i == 0 ? STR("a") : STR("b"),
                                                .mem = sizes[p->sizes[i]],
                                                .index = p->kind == KIND_PAIR ? i : 0,
                                                .kind = init ? CONTAINER_INIT : CONTAINER_MAIN};
    }
    if (p->kind == KIND_TWO)
        v.count_label = STR("2");
    v.has_allocation = copy->n_said > 1;
    v.grants = grants;
    v.n_grants = copy->n_said > 1 ? copy->n_said : 0;
    for (uint32_t i = 0; i < copy->n_said; i++)
        grants[i] = (struct grant_view){.card = copy->said[i].card,
                                        .mem = copy->said[i].mem,
                                        .container = copy->said[i].container};
    if (copy->n_said == 1) {
        index[0] = (char)('0' + copy->said[0].card);
        v.idx = (struct str){index, 1};
    }
    MUST(roster_set(&w->roster, &v, copy->version) == OK, "no memory");
}

static void hear(struct world *w, bool all)
{
    while (w->up && w->head < w->tail) {
        show(w, w->queue[w->head].pod, &w->queue[w->head].copy);
        w->head++;
        if (!all)
            return;
    }
}

static bool read_checkpoint_once(struct world *w, bool after_allocate)
{
    bool known = true;
    MUST(exchange_plan(&w->roster), "no memory");
    roster_truth_begin(&w->roster);
    for (unsigned i = 0; i < w->n_pods; i++) {
        struct wpod *p = &w->pods[i];
        for (unsigned k = 0; p->life != LIFE_ENDED && k < p->n_given; k++)
            known &= roster_truth(&w->roster, str_of(p->uid), k == 0 ? STR("a") : STR("b"),
                                  &p->has[k], p->late[k]);
    }
    roster_truth_end(&w->roster, after_allocate);
    return known;
}

/* The kubelet's watch may be ahead of ours: then ours catches up first. */
static void read_checkpoint(struct world *w, bool after_allocate)
{
    if (read_checkpoint_once(w, after_allocate))
        return;
    hear(w, true);
    (void)read_checkpoint_once(w, after_allocate);
}
