/*
 * Random nodes and pods. What the pods hold is counted from the views alone, by the rules of
 * fit.h and pod_allocation.h: slowly, and by another method than theirs.
 */
#pragma once

#include "asked.h"
#include "seeded.h"

#include <stdio.h>

enum {
    CARDS_MOST = 5,
    INDICES = 7, /* some indices have no card */
    PARTS = 5,
    PODS_MOST = 10,
};

static const char *const models[] = {"A10", "A100", "T4"};
static const char *const numbers[] = {"0", "1", "2", "3",  "4",  "5",  "6",
                                      "7", "8", "9", "10", "11", "12", "13"};

/* One pod: its object and its place. */
struct made {
    struct pod_view view;
    struct container_view containers[PARTS];
    char uid[8];
    bool holds;
    bool done; /* its init containers are done, and the cache releases their part */
    struct request request;
    struct evaluation evaluation; /* of the request, once it was made */
    struct placement there;
};

struct trial {
    struct rig rig;
    uint64_t random;
    struct card_view cards[CARDS_MOST];
    struct node_view node;
    uint32_t claimed; /* the card that a ResourceClaim holds whole; INDICES: none */
    uint32_t lent_of; /* the card that one holds a part of; INDICES: none */
    int64_t lent;     /* that part */
    char total[24];
    char limit[24];
    struct made pods[PODS_MOST];
    int n_pods;
    int n_asked;
    uint64_t seed;
    int step;
    unsigned met[VERDICT_COUNT];
};

static inline int draw(struct trial *t, int below)
{
    return (int)seeded_draw(&t->random, (uint32_t)below);
}

static inline bool once_in(struct trial *t, int n)
{
    return draw(t, n) == 0;
}

/* One unit is one byte of the device. */
static inline void claim_card(struct trial *t, const char *uid, const struct card_view *c,
                              int64_t part)
{
    struct dra_device_view device = {.name = STR("d"), .uuid = c->uuid, .memory = c->mem};
    struct dra_result_view held = {.driver = STR("g"),
                                   .pool = str_of(uid),
                                   .device = STR("d"),
                                   .shared = part > 0,
                                   .memory = part > 0 ? part : -1};
    struct cache_event slice = {.type = CACHE_SLICE_SET,
                                .slice = {.name = str_of(uid),
                                          .driver = STR("g"),
                                          .pool = str_of(uid),
                                          .node = t->node.name,
                                          .devices = &device,
                                          .n_devices = 1}};
    struct cache_event claim = {.type = CACHE_CLAIM_SET,
                                .claim = {.uid = str_of(uid), .results = &held, .n_results = 1}};
    ck_assert_int_eq(rig_apply(&t->rig, &slice), OK);
    ck_assert_int_eq(rig_apply(&t->rig, &claim), OK);
}

static inline void make_claims(struct trial *t)
{
    const struct card_view *c = &t->cards[draw(t, (int)t->node.n_cards)];
    t->claimed = t->lent_of = INDICES;
    if (once_in(t, 6)) {
        claim_card(t, "whole", c, 0);
        t->claimed = c->index;
    }
    c = &t->cards[draw(t, (int)t->node.n_cards)];
    if (once_in(t, 6) && c->index != t->claimed) {
        t->lent_of = c->index;
        t->lent = 1 + draw(t, (int)c->mem);
        claim_card(t, "part", c, t->lent);
    }
}

static inline void make_node(struct trial *t)
{
    size_t n = 1 + (size_t)draw(t, CARDS_MOST);
    int64_t sum = 0;
    int64_t short_of = draw(t, 4);
    uint32_t index = 0;
    for (size_t i = 0; i < n; i++) {
        index += once_in(t, 6) && index + (n - i) < INDICES ? 1 : 0;
        t->cards[i] = (struct card_view){.index = index,
                                         .mem = 1 + draw(t, 12),
                                         .numa = draw(t, 3) - 1,
                                         .unhealthy = once_in(t, 12),
                                         .model = str_of(models[draw(t, 3)]),
                                         .uuid = str_of(numbers[index])};
        index++;
        sum += t->cards[i].mem;
    }
    if (once_in(t, 4))
        sum += draw(t, 9) - 4;
    sum = MAX_OF(sum, 1);
    int64_t limit = sum - MIN_OF(sum, short_of);
    (void)snprintf(t->total, sizeof(t->total), "%lld", (long long)sum);
    (void)snprintf(t->limit, sizeof(t->limit), "%lld", (long long)limit);
    t->node = (struct node_view){.name = STR("n"),
                                 .mem = str_of(t->total),
                                 .exclusive = STR("0"),
                                 .mem_allocatable = str_of(once_in(t, 3) ? t->limit : NULL),
                                 .has_cards = true,
                                 .cards = t->cards,
                                 .n_cards = n};
    if (once_in(t, 4))
        t->node.max_pods = str_of(numbers[1 + draw(t, 3)]);
    if (once_in(t, 6))
        t->node.cordoned = str_of(numbers[draw(t, 3)]);
    if (once_in(t, 8))
        t->node.exclusive_cards = str_of(numbers[draw(t, 3)]);
    if (once_in(t, 3))
        t->node.placement = once_in(t, 2) ? STR("binpack") : STR("spread");
    set_node(&t->rig, t->node);
    make_claims(t);
}

static inline void make_containers(struct trial *t, struct made *m)
{
    uint32_t indices[3] = {0}; /* of main containers, and of all others */
    size_t n = 1 + (size_t)(once_in(t, 2) ? 0 : draw(t, PARTS));
    size_t mains = once_in(t, 12) ? 0 : 1 + (size_t)draw(t, (int)n);
    for (size_t i = 0; i < n; i++) {
        bool main = i + mains >= n;
        bool sidecar = once_in(t, 2);
        m->containers[i] =
            (struct container_view){.name = STR("c"),
                                    .mem = str_of(numbers[draw(t, once_in(t, 5) ? 14 : 6)]),
                                    .index = indices[main ? 0 : 1]++,
                                    .kind = main      ? CONTAINER_MAIN
                                            : sidecar ? CONTAINER_SIDECAR
                                                      : CONTAINER_INIT};
        if (once_in(t, 5))
            m->containers[i].cores = once_in(t, 2) ? STR("40") : STR("60");
    }
    m->view.containers = m->containers;
    m->view.n_containers = n;
    m->view.n_mains = (uint32_t)mains;
}

static inline void make_wishes(struct trial *t, struct pod_view *v)
{
    if (once_in(t, 5))
        v->count_label = str_of(numbers[1 + draw(t, 3)]);
    if (once_in(t, 12))
        v->whole_label = GPUSHARE_WHOLE_DEVICE;
    if (once_in(t, 10))
        v->percent = once_in(t, 2) ? STR("50") : STR("34");
    if (once_in(t, 8))
        v->card_model = once_in(t, 2) ? STR("A10*") : STR("!T4");
    if (once_in(t, 8))
        v->affinity = once_in(t, 2) ? STR("g") : STR("h");
    if (once_in(t, 8))
        v->anti_affinity = STR("x");
    if (once_in(t, 4))
        v->card_policy = once_in(t, 2) ? STR("binpack") : STR("spread");
    /* Overhead of a pod on several cards is on none of them, so the model could not count it by
     * card. */
    if (once_in(t, 12) && v->n_containers == 1 && v->count_label.p == NULL)
        v->mem_overhead = STR("1");
}

static inline void make_pod(struct trial *t, struct made *m, int number)
{
    *m = (struct made){.holds = false};
    (void)snprintf(m->uid, sizeof(m->uid), "p%d", number);
    m->view = (struct pod_view){.uid = str_of(m->uid),
                                .namespace = once_in(t, 5) ? STR("other") : STR("ns"),
                                .name = str_of(m->uid)};
    make_containers(t, m);
    make_wishes(t, &m->view);
    if (once_in(t, 15))
        m->containers[0].exclusive = STR("1");
    if (once_in(t, 15)) {
        m->containers[0].mem = STR_NULL;
        m->containers[0].cores = STR_NULL;
        m->containers[0].exclusive = STR("2");
    }
}

/* ---- the rules, implemented again ---- */

struct amount {
    int64_t mem;
    int64_t cores;
};

static inline bool has_lasting(const struct request *r)
{
    for (uint32_t i = 0; i < r->n_demands; i++) {
        if (r->demands[i].kind != CONTAINER_INIT)
            return true;
    }
    return false;
}

static inline bool granted(const struct placement *p, uint32_t container, uint32_t card)
{
    for (uint32_t i = 0; i < p->n; i++) {
        if (p->grants[i].container == container && p->grants[i].card == card)
            return true;
    }
    return false;
}

static inline uint32_t n_cards_of(const struct placement *p)
{
    bool on[INDICES] = {false};
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->n; i++) {
        n += on[p->grants[i].card] ? 0 : 1;
        on[p->grants[i].card] = true;
    }
    return n;
}

/* Goes through the pod's life step by step: what the card must have at the peak. */
static inline struct amount worst(const struct request *r, const struct placement *p, uint32_t card,
                                  bool done)
{
    struct amount now = {0, 0};
    struct amount most = {0, 0};
    uint32_t cards = n_cards_of(p);
    uint32_t home = UINT32_MAX; /* init containers run on the cards of this container */
    for (uint32_t i = 0; i < r->n_demands && home == UINT32_MAX; i++) {
        if (r->demands[i].kind != CONTAINER_INIT || !has_lasting(r))
            home = r->demands[i].index;
    }
    bool whole_pod = p->n == 1 && p->grants[0].container == UINT16_MAX;
    uint32_t parts = request_cards(r);
    for (uint32_t i = 0; i < r->n_demands; i++) {
        const struct demand *d = &r->demands[i];
        struct amount its = {d->mem / parts, d->cores / parts};
        if (d->kind == CONTAINER_INIT) {
            if (!done && (whole_pod || granted(p, home, card))) {
                most.mem = MAX_OF(most.mem, now.mem + its.mem);
                most.cores = MAX_OF(most.cores, now.cores + its.cores);
            }
        } else if (whole_pod || granted(p, d->index, card)) {
            now.mem += its.mem;
            now.cores += its.cores;
            /* Mains run after all init containers: only sidecars count before. */
        }
    }
    most.mem = MAX_OF(most.mem, now.mem);
    most.cores = MAX_OF(most.cores, now.cores);
    if (cards == 1) {
        most.mem = MAX_OF(most.mem, done ? r->lasting_mem : r->mem);
        most.cores = MAX_OF(most.cores, done ? r->lasting_cores : r->cores);
    }
    return most;
}

static inline int64_t costs(const struct request *r, struct amount a, int64_t total)
{
    if (r->whole)
        return MAX_OF(total, a.mem);
    if (r->percent > 0)
        return MAX_OF(a.mem, (total * r->percent + 99) / 100);
    return a.mem;
}

static inline bool on_card(const struct placement *p, uint32_t card)
{
    for (uint32_t i = 0; i < p->n; i++) {
        if (p->grants[i].card == card)
            return true;
    }
    return false;
}

/* What a card holds, counted from the pods. */
struct load {
    int64_t total; /* 0: no such card */
    bool usable;
    int64_t mem;
    int64_t cores;
    int pods;
    int wholes;
    struct str model;
};

struct loads {
    struct load cards[INDICES];
    int64_t used;
    int64_t counted;
    int64_t exclusive;
    int sharing;
};

static inline void count_pod(struct loads *l, const struct made *m)
{
    const struct request *r = &m->request;
    l->counted += r->mem;
    l->exclusive += r->exclusive;
    l->sharing += r->mem > 0 || r->percent > 0 || r->whole ? 1 : 0;
    for (uint32_t c = 0; c < INDICES; c++) {
        if (!on_card(&m->there, c))
            continue;
        struct amount a = worst(r, &m->there, c, m->done);
        int64_t mem = costs(r, a, l->cards[c].total);
        l->cards[c].mem += mem;
        l->cards[c].cores += a.cores;
        l->cards[c].pods++;
        l->cards[c].wholes += r->whole ? 1 : 0;
        l->used += mem;
    }
}

static inline bool is_in(struct str list, uint32_t card)
{
    return list.n == 1 && (uint32_t)(list.p[0] - '0') == card;
}

static inline void count_all(const struct trial *t, struct loads *l)
{
    *l = (struct loads){.used = 0};
    for (size_t i = 0; i < t->node.n_cards; i++) {
        const struct card_view *c = &t->cards[i];
        l->cards[c->index] = (struct load){
            .total = c->mem,
            .usable = !c->unhealthy && !is_in(t->node.cordoned, c->index) &&
                      !is_in(t->node.exclusive_cards, c->index) && t->claimed != c->index,
            .mem = t->lent_of == c->index ? t->lent : 0,
            .model = c->model};
        l->used += l->cards[c->index].mem;
    }
    for (int i = 0; i < t->n_pods; i++) {
        if (t->pods[i].holds)
            count_pod(l, &t->pods[i]);
    }
}
