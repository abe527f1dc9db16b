/*
 * A cluster to measure on: nodes with cards and pods on them, all through cache_apply, the same on
 * each run. And the JSON that an API server or a scheduler would send of it.
 */
#pragma once

#include "buf.h"
#include "cache.h"

#define GROUND_CARD_MEM 80

/* The namespace that has limits; the pods of the ground are in others. */
#define GROUND_LIMITED STR("team-limited")

struct ground {
    size_t first; /* the number of its first node: a ground may be added to another */
    size_t nodes;
    uint32_t cards;    /* of each */
    uint32_t pods;     /* on each of those that have some, one card after another */
    int64_t pod_mem;   /* of each pod */
    size_t pods_every; /* on every so many nodes; 0: on each */
    bool tables;       /* cards have models and uuids; half of the pods are in affinity groups */
};

/* Nodes, then pods. */
void ground_build(struct cache *c, const struct ground *g);
void ground_build_nodes(struct cache *c, const struct ground *g);
void ground_build_pods(struct cache *c, const struct ground *g);

/* Limits that are never reached, for GROUND_LIMITED. */
void ground_limit(struct cache *c);

/* A name of a node, as clouds give them. */
struct ground_name {
    char bytes[64];
};

struct str ground_node_name(size_t node, struct ground_name *out);

/* What a pod asks for, as JSON: members of labels, annotations and limits, each begins with ','. */
struct wish {
    const char *what;
    const char *labels;
    const char *annotations;
    const char *limits;
    const char *namespace;
    unsigned containers;
};

/* Memory of one card, as most pods. */
#define WISH_PLAIN                                            \
    ((struct wish){.what = "memory of one card",              \
                   .labels = "",                              \
                   .annotations = "",                         \
                   .limits = ",\"aliyun.com/gpu-mem\":\"8\"", \
                   .namespace = "team-00",                    \
                   .containers = 1})

struct pod_text {
    struct str name;
    struct str uid;
    struct str node;  /* absent: it is pending */
    struct str phase; /* "Pending" */
    unsigned version; /* of the object */
    struct wish wish;
};

/* A Pod with all that one comes with: managedFields, environment, volumes, conditions; 7.5 KB. */
void ground_write_pod(struct buf *out, const struct pod_text *p);

/* A Node with images, conditions and managedFields; 10 KB. */
void ground_write_node(struct buf *out, size_t node, uint32_t cards, unsigned version);

/* ExtenderArgs: the wish, and `n` names of 0 to n - 1 in an order that follows no memory. */
void ground_write_args(struct buf *out, const struct wish *wish, size_t n);
