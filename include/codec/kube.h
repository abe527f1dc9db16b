/*
 * Kubernetes objects as far as we read and write them: some forty fields of a Pod, fifteen of a
 * Node. Everything else is skipped unseen, so a release that adds fields breaks nothing, and
 * nothing is ever written back whole.
 */
#pragma once

#include "jread.h"
#include "jwrite.h"
#include "view.h"

/* Each consumes one value; failures are the reader's. Views: the document's, or the arena's. */
void kube_read_pod(struct jread *r, struct arena *a, struct pod_view *ret);
void kube_read_node(struct jread *r, struct arena *a, struct node_view *ret);

/* Of any object: metadata.name. */
struct str kube_read_name(struct jread *r);

struct configmap_view {
    struct str namespace;
    struct str name;
    struct str gpus;  /* data[GPUSHARE_UNHEALTHY_KEY]; absent where it has none */
    struct str quota; /* data[CARDPACK_QUOTA_KEY], the same */
};

void kube_read_configmap(struct jread *r, struct configmap_view *ret);

/* A pod's place on its cards, as it is written into the Binding. */
struct binding {
    struct str namespace;
    struct str name;
    struct str uid;
    struct str node;
    int64_t mem;
    struct str idx; /* empty: a bare Binding without annotations, for a pod that wants no card */
    struct str allocation; /* these two: see allocation.h; empty for most pods */
    struct str cores;
    int64_t card_total; /* of the first card */
    uint64_t assume_ns;
};

/*
 * The Binding with the gpushare annotations, which the API server merges into the pod in the
 * transaction that sets nodeName, and the UID, which newer ones take as a precondition.
 */
void kube_write_binding(struct jwrite *w, const struct binding *b);
