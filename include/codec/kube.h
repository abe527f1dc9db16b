/*
 * Kubernetes objects as far as we read and write them: about fifteen fields of a Pod, five of a
 * Node. Everything else is skipped unseen, so a release that adds fields breaks nothing, and
 * nothing is ever written back whole.
 */
#pragma once

#include "jread.h"
#include "jwrite.h"
#include "view.h"

/* Each consumes one value; failures are the reader's. Views: the document's, or the arena's. */
void kube_read_pod(struct jread *r, struct arena *a, struct pod_view *ret);
void kube_read_node(struct jread *r, struct node_view *ret);

struct configmap_view {
    struct str namespace;
    struct str name;
    struct str gpus; /* data[GPUSHARE_UNHEALTHY_KEY]; absent where it has none */
};

void kube_read_configmap(struct jread *r, struct configmap_view *ret);

/* A pod's place on a card, as it is written into the Binding. */
struct binding {
    struct str namespace;
    struct str name;
    struct str uid;
    struct str node;
    int64_t mem; /* 0: a bare Binding without annotations, for a pod that wants no card */
    uint32_t card;
    int64_t card_total;
    uint64_t assume_ns;
};

/*
 * The Binding with the five gpushare annotations, which the API server merges into the pod in the
 * transaction that sets nodeName, and the UID, which newer ones take as a precondition.
 */
void kube_write_binding(struct jwrite *w, const struct binding *b);
