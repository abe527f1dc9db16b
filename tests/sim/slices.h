/*
 * What a pod costs and what a node has, from the objects alone: the rules of gpushare.h and
 * pod_allocation.h, implemented again as simply as possible.
 */
#pragma once

#include "api/store.h"
#include "sim.h"

/* A pod's part of one card. */
struct slice {
    int64_t card;
    int64_t mem;
    int64_t cores;
    unsigned
        takers; /* of HAMi's cards: containers that have it, if several of the pod have cards */
};

#define NOWHERE INT32_MAX /* a card that no node has */

struct slices {
    unsigned n;
    struct slice at[MAX_GRANTS + MAX_CONTAINERS]; /* by card */
};

/* ---- what a pod asks for, by the formula of Kubernetes' component-helpers ---- */

int64_t pod_object_mem(const struct pod_object *p);
int64_t pod_object_cores(const struct pod_object *p);
int64_t pod_object_exclusive(const struct pod_object *p);
struct host pod_object_host(const struct pod_object *p);

/* The same after the init containers are done. */
int64_t pod_object_lasting_mem(const struct pod_object *p);
int64_t pod_object_lasting_cores(const struct pod_object *p);

/* Whether the container asks for a part of a card. */
bool container_object_asks(const struct pod_object *p, unsigned container);

/* The container's key in an allocation. */
unsigned container_object_key(const struct pod_object *p, unsigned container);

bool pod_object_named(const struct pod_object *p);  /* some container names gpu-mem */
bool pod_object_shares(const struct pod_object *p); /* it asks for shared cards */
bool pod_object_wants(const struct pod_object *p);  /* it asks for shared or exclusive cards */
bool pod_object_bad(const struct pod_object *p);    /* its requests contradict each other */
bool pod_object_plain(const struct pod_object *p);  /* it asks for memory of one card, and nothing
                                                     * else */
unsigned pod_object_cards(const struct pod_object *p);
bool pod_object_is_own(const struct pod_object *p);   /* each of several containers has HAMi's cards
                                                       * of its own */
bool pod_object_may_part(const struct pod_object *p); /* its containers may be on different cards */

/* whole / parts, rounded up. */
int64_t part_of(int64_t whole, unsigned parts);

/* ---- what a pod holds, by its annotations ---- */

/* The card in its index annotation; -1: none, or several. */
int64_t pod_object_card(const struct pod_object *p);

/* The cards that the index names, each once, and how many. What is no number is left out. */
#define SAID_MAX 8
unsigned pod_object_said(const struct pod_object *p, int64_t cards[static SAID_MAX]);

/* Whether the index, which may be a list, names this card. */
bool pod_object_names(const struct pod_object *p, int64_t card);

/* What the pod holds on each card: only what lasts, or with the init containers' peak. */
void pod_object_slices(const struct pod_object *p, bool lasting, struct slices *ret);
/* The same on this node as it is now. HAMi's pods name cards by UUID: one that the node's table
 * does not have is NOWHERE. */
void pod_object_slices_on(const struct pod_object *p, const struct node_object *n, bool lasting,
                          struct slices *ret);
const struct slice *slice_on(const struct slices *s, int64_t card); /* NULL: none */

/* How many of the card's places for pods the slice takes. */
static inline unsigned slice_takers(const struct slice *s)
{
    return s->takers == 0 ? 1 : s->takers;
}

int64_t hami_part(unsigned percent, int64_t total); /* HAMi's percentage of a card */

/* What a slice costs on a card of size `total`. */
int64_t slice_charge(const struct pod_object *p, const struct slice *s, int64_t total);

/* ---- nodes ---- */

/* One more than the highest card index; 0: the node is not usable. */
int64_t node_object_cards(const struct node_object *n);
bool node_object_has_card(const struct node_object *n, int64_t card);
int64_t node_object_card_size(const struct node_object *n, int64_t card);
struct card_object node_object_row(const struct node_object *n, int64_t card); /* size 0: none */
bool node_object_given(const struct node_object *n, int64_t card);             /* to DRA */
bool node_object_card_usable(const struct node_object *n, int64_t card); /* by its annotations */
int64_t node_object_limit(const struct node_object *n);
int64_t node_object_max_pods(const struct node_object *n, int64_t card); /* INT64_MAX: any number */
enum plugin node_object_plugin(const struct node_object *n); /* that its resources show */
bool node_object_divided(const struct node_object *n);       /* some cards are another plugin's */

/* Whether the pod's amounts are in another plugin's unit than the node's: each of its cards then
 * counts as held whole, or the whole node, if its cards are not known. */
/* Only of these the kubelet gives pods anything. A node that does not exist may have all. */
bool node_object_offers(const struct node_object *n, enum plugin plugin);
bool node_object_offers_exclusive(const struct node_object *n);
bool node_object_is_foreign(const struct node_object *n, const struct pod_object *p);

/* Whether the card's model and UUID match the pod's selection. */
bool pod_object_allows(const struct pod_object *p, const struct node_object *n, int64_t card);

/* Whether the node enforces shares, if the pod asks for a share and for isolation; and serves it if
 * it asks for several cards. */
bool node_object_isolates(const struct node_object *n, const struct pod_object *p);

int node_object_numa(const struct node_object *n, int64_t card); /* -1: not known */
int8_t node_object_model(const struct node_object *n, int64_t card);

/* Whether the ConfigMap says that the card is unhealthy. */
bool health_object_ill(const struct health_object *h, int64_t card);

/* Whether a list such as "0, 2" names the card. */
bool name_lists(const struct name *n, int64_t card);

/* Whether the name is this decimal number. */
bool name_is(const struct name *n, int64_t value);
