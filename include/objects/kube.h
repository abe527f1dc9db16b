/*
 * Kubernetes objects, limited to the fields that we read and write: about forty of a Pod, fifteen
 * of a Node. All others are skipped. So a release that adds fields breaks nothing, and no object is
 * written back as a whole.
 */
#pragma once

#include "core/request/object_views.h"
#include "json/jread.h"
#include "json/jwrite.h"

/*
 * Each reads one value; failures are stored in the reader. Views point into the document or the
 * arena.
 */
void kube_read_pod(struct jread *r, struct arena *a, struct pod_view *ret);
void kube_read_node(struct jread *r, struct arena *a, struct node_view *ret);

/* The annotation of a pod that cardpack reads and whose name, cardpack.io/..., is nearest to key.
 * Absent: none is near. */
struct str kube_near_annotation(struct str key);

/* The text of a member of a part, such as "metadata", of any object; absent: it has none. */
struct str kube_read_of(struct jread *r, struct str part, struct str wanted);

/*
 * Of a pod that kube_read_pod could not read for the reason `why`: uid, name, namespace, nodeName,
 * phase and deletionTimestamp, each as far as it can be read, and `fault`. So the pod can be
 * charged to its node, and be released.
 */
void kube_read_pod_anyway(struct str json, struct arena *a, struct str why, struct pod_view *ret);

/* The metadata of any object, as far as these two. */
void kube_read_place(struct jread *r, struct str *ret_namespace, struct str *ret_name);

struct configmap_view {
    struct str namespace;
    struct str name;
    struct str gpus;  /* data[GPUSHARE_UNHEALTHY_KEY]; absent: no such key */
    struct str quota; /* data[CARDPACK_QUOTA_KEY]; absent: no such key */
    struct str usage; /* data[USAGE_KEY]; absent: no such key */
};

void kube_read_configmap(struct jread *r, struct configmap_view *ret);

/* An annotation of a Binding: the cards of one container. */
struct binding_seat {
    struct str key;
    struct str cards;
};

/* The pod's cards, as the Binding contains them. */
struct binding {
    enum dialect dialect; /* gpushare's annotations, or those of another dialect */
    struct str namespace;
    struct str name;
    struct str uid;
    uint64_t version; /* resourceVersion of the pod that was judged; 0: not known */
    struct str node;
    int64_t mem;
    struct str idx; /* empty: a bare Binding without annotations, for a pod without a card */
    const struct binding_seat *seats; /* of a dialect that has an annotation for each container */
    size_t n_seats;
    struct str allocation; /* this and cores: see allocation.h; empty for most pods */
    struct str cores;
    bool vacated; /* the pod has CARDPACK_ANNOTATION_VACATED: empty it, no exchange has set it */
    int64_t card_total; /* of the first card */
    uint64_t assume_ns;
};

/*
 * Writes the Binding with the annotations of its dialect and the UID. The API server copies the
 * annotations to the pod in the transaction that sets nodeName. API servers from 1.27 on check the
 * UID and the resourceVersion as preconditions (registry/core/pod/storage, BindingREST), older ones
 * ignore both.
 */
void kube_write_binding(struct jwrite *w, const struct binding *b);
