/* Finds the names of the dialects in the keys of Pods and Nodes. */
#include "kube_names.h"

#include "core/dialect/card_resources.h"
#include "core/limit.h"
#include "core/quantity.h"

static bool kube_names_are(struct str key, struct str name)
{
    return name.p != NULL && str_eq(key, name);
}

bool kube_names_find(struct str key, unsigned names, struct kube_named *ret)
{
    for (enum dialect d = DIALECT_OWN + 1; d < DIALECT_COUNT; d++) {
        if (!dialect_is_used(d))
            continue;
        const struct dialect_facts *f = dialect_facts(d);
        const struct str all[] = {
            [KUBE_MEM] = f->mem,       [KUBE_CORES] = f->cores,       [KUBE_COUNT] = f->count,
            [KUBE_IDX] = f->idx,       [KUBE_ASSIGNED] = f->assigned, [KUBE_TIME] = f->assume_time,
            [KUBE_ILL] = f->unhealthy, [KUBE_PERCENT] = f->percent,   [KUBE_TABLE] = f->table,
            [KUBE_CORDON] = f->cordon, [KUBE_LOCK] = f->lock,
        };
        for (unsigned i = 0; i < COUNT_OF(all); i++) {
            if ((names >> i & 1) == 0 || !kube_names_are(key, all[i]))
                continue;
            *ret = (struct kube_named){d, (enum kube_name)i};
            return true;
        }
    }
    return false;
}

struct str *kube_names_amount_at(struct amounts_view *of, enum kube_name name)
{
    if (name == KUBE_CORES)
        return &of->cores;
    if (name == KUBE_COUNT)
        return &of->count;
    return name == KUBE_PERCENT ? &of->percent : &of->mem;
}

static struct str *kube_names_said_at(struct said_view *said, enum kube_name name)
{
    if (name == KUBE_IDX)
        return &said->idx;
    return name == KUBE_ASSIGNED ? &said->assigned : &said->assume_time;
}

bool kube_names_take(struct jread *r, struct str key, struct arena *a, struct seat_list *list,
                     struct pod_view *pod)
{
    struct kube_named found;
    if (kube_names_find(key, 1U << KUBE_IDX | 1U << KUBE_ASSIGNED | 1U << KUBE_TIME, &found)) {
        *kube_names_said_at(&pod->said[found.dialect], found.name) = jread_str(r);
        return true;
    }
    for (enum dialect d = DIALECT_OWN + 1; d < DIALECT_COUNT; d++) {
        struct str prefix = dialect_facts(d)->seat;
        if (!dialect_is_used(d) || prefix.p == NULL || !str_starts(key, prefix))
            continue;
        struct seat_view one = {d, str_skip(key, prefix.n), jread_str(r)};
        struct seat_view *grown = arena_grow(a, list->items, list->n, &list->cap, sizeof(one));
        if (grown == NULL) {
            jread_fail(r, arena_fault(a), "no room for the cards of its containers");
            return true;
        }
        list->items = grown;
        list->items[list->n++] = one;
        return true;
    }
    return false;
}

bool kube_names_take_renamed(struct jread *r, struct str key, uint32_t *sum)
{
    struct quantity q;
    struct str text = STR_NULL;
    if (!card_resources_has(key))
        return false;
    if (jread_type(r) == JTYPE_STRING || jread_type(r) == JTYPE_NUMBER)
        text = jread_text(r);
    else
        jread_skip(r);
    if (quantity_parse(str_trim(text), &q) != OK)
        q.value = 1; /* the pod has something of the plugin's cards */
    int64_t all = *sum + MIN_OF(MAX_OF(q.value, 0), (int64_t)LIMIT_CARDS);
    *sum = (uint32_t)MIN_OF(all, (int64_t)UINT16_MAX);
    return true;
}

void kube_names_take_unknown(struct jread *r, struct str key, struct str *ret)
{
    struct quantity q;
    if (card_resources_guess(key) <= card_resources_guess(*ret) ||
        (jread_type(r) != JTYPE_STRING && jread_type(r) != JTYPE_NUMBER))
        jread_skip(r);
    else if (quantity_parse(str_trim(jread_text(r)), &q) != OK || q.value > 0)
        *ret = key;
}
