/* The request of CPU and memory of a whole pod, as kube-scheduler computes it
 * (k8s.io/component-helpers/resource, PodRequests). For kube.c. */
#pragma once

#include "core/request/tally.h"
#include "json/jread.h"

/* Quantities as an object has them; absent: not named. */
struct host_texts {
    struct str cpu;
    struct str memory;
};

/* Of the containers of one list. */
struct host_tally {
    struct tally cpu;
    struct tally memory;
    bool names_cpu; /* a container does */
    bool names_memory;
};

/* Adds a container's request. What can't be read counts as 0. */
void kube_host_add(struct host_tally *t, struct host_texts request, enum container_kind kind);

/* What the pod itself requests replaces the sum over its containers, for each resource. Its limit
 * counts if neither it nor a container requests the resource. The overhead is added to either. */
struct host kube_host_of(const struct host_tally *inits, const struct host_tally *mains,
                         struct host_texts limit, struct host_texts request,
                         struct host_texts overhead);

/* A quantity of a resource that only costs depend on: a value of another type counts as absent, and
 * does not fail the object. */
struct str kube_host_read(struct jread *r);
