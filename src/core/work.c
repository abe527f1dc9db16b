/* Counts the steps of one request, and caches which models and uuids the pod's lists allow. */
#include "core/work.h"

#include "base/sort.h"
#include "core/limit.h"
#include "core/pattern.h"

void work_begin(struct work *w, size_t nodes)
{
    w->steps = 0;
    w->looks = LIMIT_APART_LOOKS;
    w->cut = false;
    w->nodes = (uint32_t)MIN_OF(nodes, (size_t)UINT32_MAX);
    w->models = w->uuids = STR_NULL;
    w->n_items = 0;
}

enum errc work_fail(struct err *reterr)
{
    return err_set(reterr, ERR_LIMIT,
                   "the pod's request takes more than %llu steps on these nodes, the limit for one "
                   "question",
                   (unsigned long long)LIMIT_REQUEST_STEPS);
}

static bool work_is_list(struct str list, struct str known)
{
    return list.p == known.p && list.n == known.n;
}

/* To hash a name, or to compare it. */
static uint64_t work_steps_of(struct str name)
{
    return 1 + name.n / LIMIT_STEP_BYTES;
}

/* A model replaces another one with the same place; the other one is then matched again. */
static struct work_model *work_place_of(struct work *w, struct str model)
{
    uint32_t hash = UINT32_C(2166136261);
    for (size_t i = 0; i < model.n; i++)
        hash = (hash ^ (unsigned char)model.p[i]) * UINT32_C(16777619);
    return &w->seen[(hash ^ hash >> 16) % COUNT_OF(w->seen)];
}

bool work_allows_model(struct work *w, struct str list, struct str model)
{
    uint64_t compared = 0;
    if (w == NULL)
        return pattern_list_allows(list, model, true, &compared);
    if (!work_is_list(list, w->models)) {
        memset(w->seen, 0, sizeof(w->seen));
        w->models = list;
    }
    struct work_model *seen = work_place_of(w, model);
    w->steps += work_steps_of(model);
    if (seen->known && str_eq(seen->name, model))
        return seen->allowed;
    w->cut = w->cut || work_is_over(w);
    if (work_is_over(w))
        return false;
    *seen = (struct work_model){model, true, pattern_list_allows(list, model, true, &compared)};
    w->steps += list.n + compared / LIMIT_STEP_BYTES;
    return seen->allowed;
}

/* Among equal names the one that excludes comes first, because it has precedence. */
static bool work_is_before(const void *ctx, uint32_t a, uint32_t b)
{
    const struct work_item *items = ctx;
    int order = str_cmp_nocase(items[a].name, items[b].name);
    if (order != 0)
        return order < 0;
    return items[a].excludes != items[b].excludes ? items[a].excludes : a < b;
}

static void work_read_uuids(struct work *w, struct str list)
{
    struct work_item read[LIMIT_WISH_ITEMS] = {{.excludes = false}};
    uint32_t order[LIMIT_WISH_ITEMS];
    uint32_t n = 0;
    w->uuids = list;
    w->excludes_only = true;
    w->steps += list.n;
    while (list.n > 0) {
        struct work_item item = {.excludes = false};
        item.name = pattern_list_next(&list, &item.excludes);
        if (item.name.n == 0)
            continue;
        assert(n < LIMIT_WISH_ITEMS);
        w->excludes_only = w->excludes_only && item.excludes;
        order[n] = n;
        read[n++] = item;
    }
    sort_by(order, n, work_is_before, read);
    for (uint32_t i = 0; i < n; i++)
        w->items[i] = read[order[i]];
    w->n_items = n;
}

bool work_allows_uuid(struct work *w, struct str list, struct str uuid)
{
    uint64_t compared = 0;
    if (w == NULL)
        return pattern_list_allows(list, uuid, false, &compared);
    if (!work_is_list(list, w->uuids))
        work_read_uuids(w, list);
    assert(w->n_items <= LIMIT_WISH_ITEMS);
    uint32_t low = 0;
    for (uint32_t high = w->n_items; low < high; w->steps += work_steps_of(uuid)) {
        uint32_t middle = low + (high - low) / 2;
        if (str_cmp_nocase(w->items[middle].name, uuid) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == w->n_items || str_cmp_nocase(w->items[low].name, uuid) != 0)
        return w->excludes_only;
    return !w->items[low].excludes;
}

uint64_t work_looks(const struct work *w, uint64_t least)
{
    return MAX_OF(w->looks / MAX_OF(w->nodes, 1U), least);
}

void work_looked(struct work *w, uint64_t looks, bool cut)
{
    w->cut = w->cut || cut;
    w->steps += looks;
    w->looks -= MIN_OF(w->looks, looks);
}
