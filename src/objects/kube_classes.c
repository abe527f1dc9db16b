/* Collects the implicit resource names of DeviceClasses from the containers of a pod. */
#include "kube_classes.h"

#include "core/dialect/card_resources.h"
#include "core/dialect/gpushare.h"
#include "core/dra/dra.h"

static struct class_request_view *kube_classes_find(struct class_list *l, struct str class)
{
    for (size_t i = l->open; i < l->n; i++) {
        if (str_eq(l->items[i].class, class))
            return &l->items[i];
    }
    return NULL;
}

static void kube_classes_add(struct class_list *l, struct jread *r, struct class_request_view c)
{
    if (l->n == KUBE_CLASSES_MAX)
        return;
    struct class_request_view *grown =
        arena_grow(l->arena, l->items, l->n, &l->cap, sizeof(*l->items));
    if (grown == NULL) {
        jread_fail(r, arena_fault(l->arena), "no room for its DeviceClasses");
        return;
    }
    l->items = grown;
    l->items[l->n++] = c;
}

void kube_classes_join(struct class_list *l, struct jread *r, const struct class_list *more)
{
    for (size_t i = 0; i < more->n; i++)
        kube_classes_add(l, r, more->items[i]);
}

bool kube_classes_take(struct class_list *l, struct jread *r, struct str key, bool requested)
{
    if (!str_starts(key, DRA_CLASS_PREFIX))
        return false;
    enum jtype type = jread_type(r);
    if (type != JTYPE_STRING && type != JTYPE_NUMBER) {
        jread_skip(r);
        return true;
    }
    struct class_request_view now = {.class = str_skip(key, DRA_CLASS_PREFIX.n),
                                     .amount = jread_text(r),
                                     .requested = requested};
    struct class_request_view *old = kube_classes_find(l, now.class);
    if (old == NULL)
        kube_classes_add(l, r, now);
    else if (requested || !old->requested)
        *old = now;
    return true;
}

void kube_classes_close(struct class_list *l, enum container_kind kind)
{
    for (; l->open < l->n; l->open++)
        l->items[l->open].kind = kind;
}

static unsigned kube_classes_read_mapping(struct jread *r)
{
    struct str resource = STR_NULL;
    struct str key;
    jread_object (r, key) {
        if (str_eq(key, STR("resourceName")))
            resource = jread_str(r);
        else
            jread_skip(r);
    }
    if (str_eq(resource, GPUSHARE_RESOURCE_EXCLUSIVE))
        return CLAIMS_CARDS;
    return card_resources_has(resource) ? CLAIMS_RENAMED : 0;
}

unsigned kube_classes_read_status(struct jread *r)
{
    unsigned claims = 0;
    struct str key;
    if (jread_type(r) != JTYPE_OBJECT) {
        jread_skip(r);
        return 0;
    }
    jread_object (r, key) {
        if (!str_eq(key, STR("requestMappings"))) {
            jread_skip(r);
            continue;
        }
        jread_array (r)
            claims |= kube_classes_read_mapping(r);
    }
    return claims;
}
