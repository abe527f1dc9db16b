/* The few changes that an API server makes to a Pod, made to its JSON: for the embedded cluster. */
#pragma once

#include "kube.h"

struct pod_edit {
    struct str namespace;
    struct str uid;
    const struct binding *binding; /* NULL: none */
};

/*
 * Writes `pod` with namespace and UID set, a status if it has none, and what the binding brings:
 * spec.nodeName and its annotations, as the API server merges them. All else is copied as it
 * stands.
 */
enum errc pod_edit_write(struct str pod, const struct pod_edit *edit, struct arena *a,
                         struct buf *out, struct err *reterr) _must_use_;
