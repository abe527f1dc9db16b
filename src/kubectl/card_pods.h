/*
 * The pods that hold cards or ask for them, from the API server's list of pods. Only the objects
 * have labels, conditions and a creation time, and the API server itself evaluates the selector.
 * Bindings under way are not in the list: such a pod is shown as pending until it is bound.
 */
#pragma once

#include "core/state/pod_allocation.h"
#include "kubectl/client.h"
#include "kubectl/show.h"

struct card_pods_row {
    struct str namespace;
    struct str name;
    struct str uid;
    struct str node;   /* absent: not bound */
    struct str status; /* its phase, or "Terminating" */
    struct str asks;   /* its request in words */
    struct str reason; /* why it is pending, or has no card; absent: neither */
    const struct share *shares;
    uint32_t n_shares;
    int64_t memory;   /* on all its cards, or requested; in the unit of aliyun.com/gpu-mem */
    uint32_t percent; /* not bound: the part of each card that it requests, if not `memory`; or 0 */
    uint32_t created_s; /* Unix time; 0: unknown */
    int64_t used_mib;   /* really, of all its cards; -1: unknown */
    bool nvidias;       /* it has nothing of HAMi's but the resource that is NVIDIA's, too */
};

struct card_pods {
    struct card_pods_row *rows; /* all in the arena */
    size_t n;
    size_t cap;
    bool measured; /* what is really used is known of some pod */
};

/* Whether NVIDIA's device plugin may serve the pod, whose request has dialect d: the pod asks for
 * nvidia.com/gpu, and has nothing else of HAMi's. Then the node decides. */
bool card_pods_may_be_nvidias(const struct pod_view *v, enum dialect d);

/* Reads the pods of a namespace; absent: of all namespaces. `selector` absent: any labels. */
enum errc kubectl_pods_read(struct kubectl_client *c, struct str namespace, struct str selector,
                            struct arena *a, struct card_pods *ret, struct err *reterr) _must_use_;

/* Adds what the pods really use, from the ConfigMaps of cardpack-node. Without the right to read
 * them nothing is known, and a line says so. */
enum errc kubectl_pods_measure(struct kubectl_client *c, struct card_pods *p, struct err *reterr)
    _must_use_;

/* Sorts the rows for --sort-by. */
enum errc kubectl_pods_sort(struct card_pods *p, enum kubectl_sort by, struct arena *a,
                            struct err *reterr) _must_use_;

/* As a table, or as names; now_s is the Unix time, for ages. */
enum errc kubectl_pods_show(const struct card_pods *p, struct kubectl_look look, uint32_t now_s,
                            struct arena *a, struct buf *out, struct err *reterr) _must_use_;

/* {"pods": [{"namespace", "name", "node", "status", "request", "memory", "placement": [{"card",
 * "memory", "compute"}], "created", "reason"}]} */
void kubectl_pods_write(const struct card_pods *p, struct buf *out);

/* "45s", "7m", "3h12m", "9d": two units at most. */
struct str kubectl_age(uint32_t seconds, struct buf *out);
