/* Adds and removes objects of the cache's maps. For cache.c and cache_charge.c. */
#pragma once

#include "core/cache/cache.h"

/* NULL: allocation failed. */
struct node *cache_node_get_or_add(struct cache *c, struct str name);

/* Forgets the node if no Node object, pod or ConfigMap refers to it. */
void cache_node_release(struct cache *c, struct node *n);

/* A new pending pod. NULL: allocation failed. */
struct pod *cache_pod_add(struct cache *c, struct str uid, struct str namespace, struct str name,
                          const struct request *request);

/* Counts what a new pod asks for, for the policies with costs. */
void cache_learn(struct cache *c, const struct request *request);

/* Sets the state and the list of pending pods. The caller changes the charge. */
void cache_pod_set_state(struct cache *c, struct pod *p, enum pod_state state);

/* Frees a pod that is charged nowhere and in no map any more. */
void cache_pod_free(struct cache *c, struct pod *p);

/* The number of pods of a namespace that name one affinity group and hold a card. */
struct group {
    struct str key; /* namespace and name; stored behind the struct */
    uint32_t holders;
};

bool cache_group_holds(const struct cache *c, struct str namespace, struct str name);

/* *ret is NULL if p names no group. The caller then joins the group at once: a group has holders
 * between any two events. ERR_NOMEM: nothing has changed. */
enum errc cache_group_get_or_add(struct cache *c, const struct pod *p, struct str name,
                                 struct group **ret) _must_use_;

/* p holds a card as a member of g, and leaves its old group; g may be NULL. The last pod that
 * leaves a group removes it. */
void cache_group_join(struct cache *c, struct pod *p, struct group *g);
void cache_group_leave(struct cache *c, struct pod *p);

/* Releases what the pod holds and what is kept for it. */
void cache_pod_detach(struct cache *c, struct pod *p);

/* Sets the node that the pod is nominated for. The cache remembers it even if the API server has no
 * such node. n may be NULL. */
void cache_pod_set_nominated(struct cache *c, struct pod *p, struct node *n);

void cache_pod_remove(struct cache *c, struct pod *p);
