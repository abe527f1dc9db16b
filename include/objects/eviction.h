/* The body of a POST to a pod's eviction subresource. */
#pragma once

#include "json/jwrite.h"

struct eviction {
    struct str namespace;
    struct str name;
    struct str uid; /* of the pod to evict: a newer pod with the same name stays */
    bool beta;      /* policy/v1beta1, the only version before Kubernetes 1.22 */
};

/* A failure is stored in the buf. */
void eviction_write(struct jwrite *w, const struct eviction *e);
