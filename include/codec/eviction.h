/* The body of a POST to a pod's eviction subresource. */
#pragma once

#include "jwrite.h"

struct eviction {
    struct str namespace;
    struct str name;
    struct str uid; /* of the pod that is meant: another one of that name stays */
    bool beta;      /* policy/v1beta1: before 1.22 there was no other */
};

/* Failure is the buf's. */
void eviction_write(struct jwrite *w, const struct eviction *e);
