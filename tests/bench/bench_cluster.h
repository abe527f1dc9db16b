/*
 * A cluster for measurements: nodes with cards and pods, made through cache_apply and equal in each
 * run; and the JSON that an API server or a scheduler would send for it.
 */
#pragma once

#include "base/buf.h"
#include "core/cache/cache.h"

#define BENCH_CARD_MEM 80

/* The namespace with limits; the pods of the cluster are in others. */
#define BENCH_LIMITED STR("team-limited")

struct bench_cluster {
    size_t first; /* number of the first node: a cluster may extend another */
    size_t nodes;
    uint32_t cards;    /* of each node */
    uint32_t pods;     /* on each node that has pods, spread over its cards */
    int64_t pod_mem;   /* of each pod */
    size_t pods_every; /* only each nth node has pods; 0: every node */
    bool tables;       /* cards have models and uuids; half of the pods are in affinity groups */
    size_t name_bytes; /* with tables: of each model and uuid, no two alike; 0: the usual names */
};

/* Adds the nodes, then the pods. */
void bench_cluster_build(struct cache *c, const struct bench_cluster *g);
void bench_cluster_build_nodes(struct cache *c, const struct bench_cluster *g);
void bench_cluster_build_pods(struct cache *c, const struct bench_cluster *g);

/* Sets limits for BENCH_LIMITED that are never reached. */
void bench_cluster_limit(struct cache *c);

/* The name of a node, like those of cloud providers. */
struct bench_name {
    char bytes[64];
};

struct str bench_node_name(size_t node, struct bench_name *out);

/* A pod's request as JSON: members of labels, annotations and limits, each starting with ','. */
struct wish {
    const char *what;
    const char *labels;
    const char *annotations;
    const char *limits;
    const char *namespace;
    unsigned containers;
};

/* Memory of one card, as most pods ask. */
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
    struct str node;  /* absent: pending */
    struct str phase; /* "Pending" */
    unsigned version; /* of the object */
    struct wish wish;
};

/* A Pod with everything that real ones have: managedFields, environment, volumes, conditions; 7.5
 * KB. */
void bench_write_pod(struct buf *out, const struct pod_text *p);

/* A Node with images, conditions and managedFields; 10 KB. */
void bench_write_node(struct buf *out, size_t node, uint32_t cards, unsigned version);

/* ExtenderArgs with the wish and `n` names, of nodes 0 to n - 1, in an order unlike that in
 * memory. */
void bench_write_args(struct buf *out, const struct wish *wish, size_t n);
