/*
 * A Binding, read from the body of a POST, and its transaction. Kubernetes' BindingREST.Create
 * (pkg/registry/core/pod/storage/storage.go) sets spec.nodeName and merges the Binding's
 * annotations into the pod in one write to etcd, or refuses with 409: the pod is bound, or is being
 * deleted.
 */
#pragma once

#include "api/store.h"

struct posted {
    struct name ns;
    struct name name;
    struct name uid;
    struct name version; /* resourceVersion, its precondition; empty: none */
    struct name node;
    struct name idx;
    struct name dev;
    struct name mem;
    struct name assigned;
    struct name assume;
    struct name on;
    struct grants_object allocation;
    struct grants_object cores;
    enum plugin plugin; /* whose annotations it has */
    bool bare;          /* without annotations */
};

struct outcome {
    unsigned status; /* 201: done */
    const char *reason;
    const char *details;
    char message[256];
};

/* Reads the body of a POST for this pod, and checks that it is one of cardpack's. */
struct posted binding_read(struct str body, struct str ns, struct str name);

/* Merges the annotations into the pod. */
void binding_annotate(const struct posted *b, struct pod_object *p);

/* Whether the Binding is for another version of the pod than this one, and the API server minds. */
bool binding_is_outdated(const struct posted *b, const struct pod_object *p);

/* One transaction: sets nodeName and merges the annotations, or says why not. *ret_slot is the
 * pod's if it is done. */
struct outcome binding_commit(const struct posted *b, unsigned *ret_slot);

/* Replaces the text by the answer's body. */
void outcome_write(struct text *t, const struct outcome *o);
