/*
 * Announces to the cluster which cards this node has, and how they are:
 *   - ConfigMap kube-system/unhealthy-gpu-NODE, key gpus: the unhealthy cards, as with gpushare;
 *   - of the node the annotations cardpack.io/cards and cardpack.io/late-binding, the label
 *     cardpack.io/isolation, and aliyun.com/gpu-count in capacity and allocatable, all in one PATCH
 *     of its status: so table and count fit together at every moment. Again whenever the node
 * differs, because the kubelet zeroes the count when it starts without its checkpoint;
 *   - events on the node when a card becomes unhealthy, begins to need a reset, or recovers.
 *
 * Everything is sent in the background and repeated until it has succeeded. At the end nothing is
 * withdrawn: the pods go on, and the cards are still there.
 *
 * The order for a card that becomes unhealthy: first the ConfigMap, so that cardpack places no pod
 * on it, and then the kubelet. announce_has_written says when the kubelet may get it.
 */
#pragma once

#include "kube/events.h"
#include "node/announce/announce_write.h"
#include "node/announce/own_node.h"

struct announce;

#define ANNOUNCE_TELL_MS UINT64_C(5000) /* the kubelet waits no longer for the ConfigMap */

/* Since the start. */
struct announce_counts {
    uint64_t maps;  /* ConfigMap written */
    uint64_t nodes; /* node written */
    uint64_t failures;
    uint64_t drifts; /* the node was not as it had been written */
};

struct announce_settings {
    struct loop *loop;
    struct kube_api *api; /* must outlive it, as events */
    struct str node;
    struct events *events;      /* NULL: no events */
    uint64_t tell_ms;           /* 0: ANNOUNCE_TELL_MS */
    void (*written)(void *ctx); /* what announce_has_written says has changed; must not free it */
    void *ctx;
};

enum errc announce_new(const struct announce_settings *s, struct announce **ret, struct err *reterr)
    _must_use_;
struct announce *announce_free(struct announce *a); /* returns NULL */

/* What is to be announced, by index; sends nothing if it is as before. Strings are copied. */
void announce_cards(struct announce *a, const struct announce_card *cards, size_t n,
                    enum isolation isolation, bool late);

/* The node as the watch shows it. */
void announce_see(struct announce *a, const struct own_node_view *node);

/* Whether the kubelet may get this card as unhealthy: the ConfigMap has it, or could not
 * be written in time. */
bool announce_has_written(const struct announce *a, uint32_t index);

/* Why something is not announced; empty: all is, or only the newest change is under way. */
struct str announce_trouble(const struct announce *a);
const struct announce_counts *announce_counts(const struct announce *a);
