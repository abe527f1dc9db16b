/* The API server of test_cache_world.c: its objects, its watch and its answers, with their
 * delays. */
#pragma once

#include "core/cache/cache.h"
#include "seeded.h"

#include <stdio.h>

enum {
    NODES = 2,
    CARDS = 2,
    CARD_SIZE = 16,
    PODS = 300, /* per history; a UID is never used again */
    NOTES = 1024,
    OPS = 8,
    EPISODES = 20, /* per history; each has busy steps, then a comparison at rest */
    STEPS = 80
};

struct object {
    bool exists;
    bool terminal;
    bool deleting;
    int mem;
    int node; /* -1: unbound */
    int card;
};

struct note {
    int uid;
    bool gone;
    struct object object;
};

enum list_phase {
    LIST_NONE,
    LIST_BEGUN,
    LIST_READ, /* read by the server; arrives object by object */
};

enum answer {
    ANSWER_NONE,
    ANSWER_CREATED,
    ANSWER_REFUSED,
    ANSWER_UNKNOWN,
    ANSWER_READ,
};

struct op {
    bool used;
    bool verifies; /* reads a confirmed pod that a list lacked; no Binding */
    int uid;
    int node;
    int card;
    bool post_waits; /* the Binding has not reached the server, or waits there */
    bool get_waits;
    enum answer answer; /* under way to the client */
    bool in_doubt;
    struct object read;
    bool read_is_final; /* read when no Binding was under way */
};

struct world {
    struct cache cache; /* the client's; the rest is the server's or under way */
    struct object pods[PODS];
    int n_pods;
    struct note notes[NOTES];
    int first_note;
    int n_notes;
    enum list_phase list;
    struct object listed[PODS];
    int n_listed;
    int next_listed;
    bool connected;
    struct op ops[OPS];
    uint64_t random;
    uint64_t seed;
    unsigned step;
    unsigned bound; /* counts of what this history tried */
};

#define world_assert(w, condition)                                                          \
    do {                                                                                    \
        if (!(condition))                                                                   \
            ck_abort_msg("seed %llu step %u: %s", (unsigned long long)(w)->seed, (w)->step, \
                         #condition);                                                       \
    } while (0)

static inline int draw(struct world *w, int below)
{
    return (int)seeded_draw(&w->random, (uint32_t)below);
}

static inline struct str text_of(char *to, size_t size, const char *prefix, int number)
{
    int n = snprintf(to, size, "%s%d", prefix, number);
    return (struct str){to, (size_t)n};
}

static inline void publish(struct world *w, int uid)
{
    world_assert(w, w->n_notes < NOTES);
    w->notes[(w->first_note + w->n_notes++) % NOTES] =
        (struct note){.uid = uid, .gone = !w->pods[uid].exists, .object = w->pods[uid]};
}

static inline void server_create(struct world *w)
{
    if (w->n_pods == PODS)
        return;
    int uid = w->n_pods++;
    w->pods[uid] = (struct object){.exists = true, .mem = 1 + draw(w, CARD_SIZE), .node = -1};
    publish(w, uid);
}

/* The pod ends, is marked for deletion, is bound to a node by another client, or is deleted. */
static inline void server_age(struct world *w)
{
    if (w->n_pods == 0)
        return;
    const struct op *op = &w->ops[draw(w, OPS)];
    int uid = op->used ? op->uid : draw(w, w->n_pods); /* preferably one with a bind under way */
    struct object *o = &w->pods[uid];
    if (!o->exists)
        return;
    switch (draw(w, 6)) {
    case 0:
        o->terminal = o->terminal || o->node >= 0 || draw(w, 4) == 0;
        break;
    case 1:
        o->deleting = true;
        break;
    case 2:
        o->node = o->node < 0 && !o->deleting ? NODES : o->node;
        break;
    default:
        o->exists = false;
        break;
    }
    publish(w, uid);
}

static inline void check_cards(struct world *w, int node, int card)
{
    int sum = 0;
    for (int i = 0; i < w->n_pods; i++) {
        const struct object *o = &w->pods[i];
        if (o->exists && !o->terminal && o->node == node && o->card == card)
            sum += o->mem;
    }
    world_assert(w, sum <= CARD_SIZE);
}

static inline void server_bind(struct world *w, struct op *op)
{
    struct object *o = &w->pods[op->uid];
    op->post_waits = false;
    bool possible = o->exists && o->node < 0 && !o->deleting;
    if (possible) {
        o->node = op->node;
        o->card = op->card;
        publish(w, op->uid);
        check_cards(w, op->node, op->card);
        w->bound++;
    }
    if (op->answer == ANSWER_NONE && !op->in_doubt)
        op->answer = draw(w, 4) == 0 ? ANSWER_UNKNOWN : possible ? ANSWER_CREATED : ANSWER_REFUSED;
}

static inline void server_get(struct world *w, struct op *op)
{
    op->get_waits = false;
    op->read = w->pods[op->uid];
    op->read_is_final = !op->post_waits;
    op->answer = ANSWER_READ;
}
