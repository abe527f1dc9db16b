/* A node with two or three cards and pods, for which a set of victims is chosen. */
#pragma once

#include "cache_rig.h"
#include "core/dialect/gpushare.h"
#include "core/preempt/victims.h"

#include <stdio.h>

/* A pod on the node "n"; its name is its UID. */
struct actor {
    const char *uid;
    const char *mem;
    int card;  /* -1: bound without a card */
    int other; /* a second card, an equal part on each; 0: none, as it is after the first */
    const char *cores;
    const char *exclusive;
    int priority;
    const char *app; /* label; NULL: none */
    bool whole;
    bool deleting;
    const char *anti;
    const char *beside;
};

static inline void actor_apply(struct rig *r, struct actor p)
{
    char idx[32];
    uint64_t mem = 0;
    ck_assert(p.mem == NULL || str_to_u64(str_of(p.mem), INT32_MAX, &mem));
    struct container_view c = {.name = STR("c"),
                               .mem = str_of(p.mem),
                               .cores = str_of(p.cores),
                               .exclusive = str_of(p.exclusive)};
    struct label_view labels[] = {{STR("app"), str_of(p.app)}, {STR("tier"), STR("x")}};
    struct grant_view grants[] = {{.card = (uint32_t)p.card, .mem = (int64_t)mem / 2},
                                  {.card = (uint32_t)p.other, .mem = (int64_t)mem / 2}};
    struct cache_event e = {.type = CACHE_POD_SET};
    if (p.other > p.card && p.card >= 0)
        (void)snprintf(idx, sizeof(idx), "%d,%d", p.card, p.other);
    else
        (void)snprintf(idx, sizeof(idx), "%d", p.card);
    e.pod = (struct pod_view){.uid = str_of(p.uid),
                              .namespace = STR("ns"),
                              .name = str_of(p.uid),
                              .node = STR("n"),
                              .phase = STR("Running"),
                              .priority = p.priority,
                              .deleting = p.deleting,
                              .idx = p.card < 0 ? STR_NULL : str_of(idx),
                              .whole_label = p.whole ? GPUSHARE_WHOLE_DEVICE : STR_NULL,
                              .count_label = p.other > 0 ? STR("2") : STR_NULL,
                              .anti_affinity = str_of(p.anti),
                              .affinity = str_of(p.beside),
                              .labels = labels,
                              .n_labels = p.app == NULL ? 0 : 2,
                              .containers = &c,
                              .n_containers = 1,
                              .n_mains = 1};
    if (p.other > 0) {
        e.pod.has_allocation = true;
        e.pod.grants = grants;
        e.pod.n_grants = 2;
    }
    ck_assert_int_eq(rig_apply(r, &e), OK);
}

/* A PodDisruptionBudget of ns for the pods of one app. */
static inline void budget_put(struct budgets *b, const char *app, int64_t allowed)
{
    struct str value = str_of(app);
    struct requirement_view need = {
        .key = STR("app"), .op = REQUIREMENT_IN, .values = &value, .n_values = 1};
    struct budget_view view = {.namespace = STR("ns"),
                               .name = value,
                               .selects = true,
                               .requirements = &need,
                               .n_requirements = 1,
                               .allowed = allowed};
    ck_assert_int_eq(budgets_set(b, &view), OK);
}

#define STEPS 100000

struct victims_rig {
    struct rig rig;
    struct budgets budgets;
    struct arena arena;
    struct victims_question q;
    struct request request;
    struct evaluation evaluation;
    unsigned steps;
    struct victims got;
};

/* Cards of 16 each. */
static inline void victims_rig_init(struct victims_rig *s, const char *mem, const char *cards)
{
    *s = (struct victims_rig){.steps = STEPS};
    rig_init(&s->rig);
    budgets_init(&s->budgets, (struct map_seed){3, 4});
    arena_init(&s->arena, MIB);
    node_set(&s->rig, "n", mem, cards, NULL);
    s->request = (struct request){.priority = 100,
                                  .namespace = STR("ns"),
                                  .n_demands = 1,
                                  .demands = {{.kind = CONTAINER_MAIN}}};
    s->evaluation.request = &s->request;
    s->q = (struct victims_question){
        .evaluation = &s->evaluation, .budgets = &s->budgets, .steps = &s->steps};
}

static inline void victims_rig_done(struct victims_rig *s)
{
    arena_done(&s->arena);
    budgets_done(&s->budgets);
    rig_done(&s->rig);
}

static inline void want(struct victims_rig *s, int64_t mem)
{
    s->request.mem = s->request.lasting_mem = s->request.demands[0].mem = mem;
}

/* The victims as "a b", by card and name; or the text that no set helps. */
static inline const char *choose(struct victims_rig *s)
{
    static char text[256];
    struct buf b = BUF_ON(text);
    text[0] = '\0';
    s->q.node = node_of(&s->rig, "n");
    cache_evaluation(&s->rig.cache, STR("new"), &s->request, &s->evaluation);
    ck_assert_int_eq(victims_choose(&s->q, &s->arena, &s->got), OK);
    cache_check(&s->rig.cache);
    if (s->got.verdict != VERDICT_FITS)
        return verdict_name(s->got.verdict);
    for (uint32_t i = 0; i < s->got.cost.n; i++)
        buf_printf(&b, "%s%.*s", i == 0 ? "" : " ", STR_ARG(s->got.pods[i]->uid));
    return text;
}

static inline void nominate(struct rig *r, const char *uid, const char *mem, int priority)
{
    struct container_view c = {.name = STR("c"), .mem = str_of(mem)};
    struct cache_event e = {.type = CACHE_POD_SET,
                            .pod = {.uid = str_of(uid),
                                    .namespace = STR("ns"),
                                    .name = str_of(uid),
                                    .nominated = STR("n"),
                                    .phase = STR("Pending"),
                                    .priority = priority,
                                    .containers = &c,
                                    .n_containers = 1,
                                    .n_mains = 1}};
    ck_assert_int_eq(rig_apply(r, &e), OK);
}
