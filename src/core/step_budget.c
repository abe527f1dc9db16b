/* Counts the steps of one request, and caches which models and uuids the pod's lists allow. */
#include "core/step_budget.h"

#include "base/sort.h"
#include "core/limit.h"
#include "core/pattern.h"

void step_budget_begin(struct step_budget *budget, size_t nodes)
{
    budget->steps = 0;
    budget->looks = LIMIT_APART_LOOKS;
    budget->cut = false;
    budget->nodes = (uint32_t)MIN_OF(nodes, (size_t)UINT32_MAX);
    budget->models = budget->uuids = STR_NULL;
    budget->n_items = 0;
}

enum errc step_budget_fail(struct err *reterr)
{
    return err_set(reterr, ERR_LIMIT,
                   "the pod's request takes more than %llu steps on these nodes, the limit for one "
                   "question",
                   (unsigned long long)LIMIT_REQUEST_STEPS);
}

static bool step_budget_is_list(struct str list, struct str known)
{
    return list.p == known.p && list.n == known.n;
}

/* To hash a name, or to compare it. */
static uint64_t step_budget_steps_of(struct str name)
{
    return 1 + name.n / LIMIT_STEP_BYTES;
}

/* A model replaces another one with the same place; the other one is then matched again. */
static struct step_budget_model *step_budget_place_of(struct step_budget *budget, struct str model)
{
    uint32_t hash = UINT32_C(2166136261);
    for (size_t i = 0; i < model.n; i++)
        hash = (hash ^ (unsigned char)model.p[i]) * UINT32_C(16777619);
    return &budget->seen[(hash ^ hash >> 16) % COUNT_OF(budget->seen)];
}

bool step_budget_matches_model(struct step_budget *budget, struct str list, struct str model)
{
    uint64_t compared = 0;
    if (budget == NULL)
        return pattern_list_allows(list, model, true, &compared);
    if (!step_budget_is_list(list, budget->models)) {
        memset(budget->seen, 0, sizeof(budget->seen));
        budget->models = list;
    }
    struct step_budget_model *seen = step_budget_place_of(budget, model);
    budget->steps += step_budget_steps_of(model);
    if (seen->known && str_eq(seen->name, model))
        return seen->allowed;
    budget->cut = budget->cut || step_budget_is_spent(budget);
    if (step_budget_is_spent(budget))
        return false;
    *seen =
        (struct step_budget_model){model, true, pattern_list_allows(list, model, true, &compared)};
    budget->steps += list.n + compared / LIMIT_STEP_BYTES;
    return seen->allowed;
}

/* Among equal names the one that excludes comes first, because it has precedence. */
static bool step_budget_is_before(const void *ctx, uint32_t a, uint32_t b)
{
    const struct step_budget_item *items = ctx;
    int order = str_cmp_nocase(items[a].name, items[b].name);
    if (order != 0)
        return order < 0;
    return items[a].excludes != items[b].excludes ? items[a].excludes : a < b;
}

static void step_budget_read_uuids(struct step_budget *budget, struct str list)
{
    struct step_budget_item read[LIMIT_WISH_ITEMS] = {{.excludes = false}};
    uint32_t order[LIMIT_WISH_ITEMS];
    uint32_t n = 0;
    budget->uuids = list;
    budget->excludes_only = true;
    budget->steps += list.n;
    while (list.n > 0) {
        struct step_budget_item item = {.excludes = false};
        item.name = pattern_list_next(&list, &item.excludes);
        if (item.name.n == 0)
            continue;
        assert(n < LIMIT_WISH_ITEMS);
        budget->excludes_only = budget->excludes_only && item.excludes;
        order[n] = n;
        read[n++] = item;
    }
    sort_by(order, n, step_budget_is_before, read);
    for (uint32_t i = 0; i < n; i++)
        budget->items[i] = read[order[i]];
    budget->n_items = n;
}

bool step_budget_matches_uuid(struct step_budget *budget, struct str list, struct str uuid)
{
    uint64_t compared = 0;
    if (budget == NULL)
        return pattern_list_allows(list, uuid, false, &compared);
    if (!step_budget_is_list(list, budget->uuids))
        step_budget_read_uuids(budget, list);
    assert(budget->n_items <= LIMIT_WISH_ITEMS);
    uint32_t low = 0;
    for (uint32_t high = budget->n_items; low < high; budget->steps += step_budget_steps_of(uuid)) {
        uint32_t middle = low + (high - low) / 2;
        if (str_cmp_nocase(budget->items[middle].name, uuid) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == budget->n_items || str_cmp_nocase(budget->items[low].name, uuid) != 0)
        return budget->excludes_only;
    return !budget->items[low].excludes;
}

uint64_t step_budget_looks(const struct step_budget *budget, uint64_t least)
{
    return MAX_OF(budget->looks / MAX_OF(budget->nodes, 1U), least);
}

void step_budget_looked(struct step_budget *budget, uint64_t looks, bool cut)
{
    budget->cut = budget->cut || cut;
    budget->steps += looks;
    budget->looks -= MIN_OF(budget->looks, looks);
}
