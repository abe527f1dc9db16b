/* The names of dialects behind gpushare's, whose names the readers compare themselves. For kube.c.
 */
#pragma once

#include "core/request/object_views.h"
#include "json/jread.h"

/* The names of a dialect: see struct dialect_facts. */
enum kube_name {
    KUBE_MEM,
    KUBE_CORES,
    KUBE_COUNT,
    KUBE_IDX,
    KUBE_ASSIGNED,
    KUBE_TIME,
    KUBE_ILL,
    KUBE_PERCENT,
    KUBE_TABLE,
    KUBE_CORDON,
    KUBE_LOCK
};

/* Which of the names of a dialect in use a key is. */
struct kube_named {
    enum dialect dialect;
    enum kube_name name;
};

struct seat_list {
    struct seat_view *items;
    size_t n;
    size_t cap;
};

/* Finds the key among `names` (a bit for each) of the dialects in use. False: it is not there. */
bool kube_names_find(struct str key, unsigned names, struct kube_named *ret);

/* Where an amount of a container belongs: KUBE_MEM, CORES, COUNT or PERCENT. */
struct str *kube_names_amount_at(struct amounts_view *of, enum kube_name name);

/* Reads the value of an annotation of a pod. False: it is not one of these, and nothing was read.
 */
bool kube_names_take(struct jread *r, struct str key, struct arena *a, struct seat_list *list,
                     struct pod_view *pod);

/* Adds an amount of core/dialect/card_resources.h. False: the key is no such name, and nothing was
 * read. */
bool kube_names_take_renamed(struct jread *r, struct str key, uint32_t *sum);

/* Of a node's resources that card_resources_guess takes for cards, *ret keeps the likeliest,
 * if there is some of it. Takes the value. */
void kube_names_take_unknown(struct jread *r, struct str key, struct str *ret);
