/* The objects in the cache's maps: how they come and go. For cache.c and cache_charge.c. */
#pragma once

#include "cache.h"

/* NULL without memory. */
struct node *cache_node_get_or_add(struct cache *c, struct str name);

/* A node that nothing speaks of any more is forgotten. */
void cache_node_release(struct cache *c, struct node *n);

/* Pending; NULL without memory. */
struct pod *cache_pod_add(struct cache *c, struct str uid, struct str namespace, struct str name,
                          const struct request *request);

/* Charged or not is its caller's. */
void cache_pod_set_state(struct cache *c, struct pod *p, enum pod_state state);

/* Of a pod that is charged nowhere, and in no map any more. */
void cache_pod_free(struct cache *c, struct pod *p);

/* The pods of a namespace that name one affinity group and hold a card, as a number. */
struct group {
    struct str key; /* namespace and name; stored behind the struct */
    uint32_t holders;
};

bool cache_group_holds(const struct cache *c, struct str namespace, struct str name);

/* NULL where p names none. Who has it joins, or releases it. ERR_NOMEM: nothing has changed. */
enum errc cache_group_get_or_add(struct cache *c, const struct pod *p, struct str name,
                                 struct group **ret) _must_use_;

/* p holds a card, as one of g, and of no other group any more; g may be NULL. */
void cache_group_join(struct cache *c, struct pod *p, struct group *g);
void cache_group_leave(struct cache *c, struct pod *p);

/* A group without holders is forgotten; g may be NULL. */
void cache_group_release(struct cache *c, struct group *g);

/* It holds nothing any more, and nothing is kept for it. */
void cache_pod_detach(struct cache *c, struct pod *p);

/* A node that a pod is nominated for is remembered, be it unknown; n may be NULL. */
void cache_pod_set_nominated(struct cache *c, struct pod *p, struct node *n);

void cache_pod_remove(struct cache *c, struct pod *p);
