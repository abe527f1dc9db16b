/* Changes to a Pod's JSON that an API server would make; for the embedded cluster. */
#pragma once

#include "objects/kube.h"

struct pod_edit {
    struct str namespace;
    struct str uid;
    const struct binding *binding; /* NULL: none */
};

/*
 * Writes `pod` with namespace and UID set, and a status if it has none. With a binding also sets
 * spec.nodeName and merges the annotations, as the API server does. Copies everything else
 * unchanged.
 */
enum errc pod_edit_write(struct str pod, const struct pod_edit *edit, struct arena *a,
                         struct buf *out, struct err *reterr) _must_use_;
