/*
 * What a pod costs, and what a node has, by the objects alone: the rules of gpushare.h and
 * holding.h once more, as naively as they can be written.
 */
#pragma once

#include "store.h"

/* What it has of one card. */
struct slice {
    int64_t card;
    int64_t mem;
    int64_t cores;
};

struct slices {
    unsigned n;
    struct slice at[MAX_GRANTS]; /* by card */
};

/* ---- what a pod asks for, by the formula of component-helpers ---- */

int64_t pod_object_mem(const struct pod_object *p);
int64_t pod_object_cores(const struct pod_object *p);
int64_t pod_object_exclusive(const struct pod_object *p);

/* The same once the init containers are done. */
int64_t pod_object_lasting_mem(const struct pod_object *p);
int64_t pod_object_lasting_cores(const struct pod_object *p);

/* Whether a container's part is placed at all. */
bool container_object_asks(const struct pod_object *p, unsigned container);

/* Its key in an allocation. */
unsigned container_object_key(const struct pod_object *p, unsigned container);

bool pod_object_named(const struct pod_object *p);  /* some container names gpu-mem */
bool pod_object_shares(const struct pod_object *p); /* it wants shared cards */
bool pod_object_wants(const struct pod_object *p);  /* or those that are given out whole */
bool pod_object_bad(const struct pod_object *p);    /* it contradicts itself */
bool pod_object_plain(const struct pod_object *p);  /* memory of one card, and nothing else */
unsigned pod_object_cards(const struct pod_object *p);
bool pod_object_may_part(const struct pod_object *p); /* its containers, on several cards */

/* A part of it on several cards: rounded up. */
int64_t part_of(int64_t whole, unsigned parts);

/* ---- what it has, by its annotations ---- */

/* The card that its index names; -1: none. */
int64_t pod_object_card(const struct pod_object *p);

/* What lasts, or with the init containers' peak. */
void pod_object_slices(const struct pod_object *p, bool lasting, struct slices *ret);
const struct slice *slice_on(const struct slices *s, int64_t card); /* NULL: none */

/* What it costs on a card of that size. */
int64_t slice_charge(const struct pod_object *p, const struct slice *s, int64_t total);

/* ---- nodes ---- */

/* One more than the highest index, 0 where the node is not usable; how many there are of them. */
int64_t node_object_cards(const struct node_object *n);
bool node_object_has_card(const struct node_object *n, int64_t card);
int64_t node_object_card_size(const struct node_object *n, int64_t card);
bool node_object_card_usable(const struct node_object *n, int64_t card); /* by the node's word */
int64_t node_object_limit(const struct node_object *n);
int64_t node_object_max_pods(const struct node_object *n); /* INT64_MAX: any number */
bool node_object_divided(const struct node_object *n);     /* some cards are another plugin's */

/* Whether the pod will have a card of that model and UUID. */
bool pod_object_allows(const struct pod_object *p, const struct node_object *n, int64_t card);

/* How it says so: the text of its annotations. */
const char *model_text(int8_t model);
const char *model_wish_text(unsigned wish);

/* "0, 2" */
bool name_lists(const struct name *n, int64_t card);

/* Decimal. */
bool name_is(const struct name *n, int64_t value);
