/* Reads a pod from a request body in JSON or YAML. */
#pragma once

#include "objects/kube.h"

/* The body as JSON, in the arena; absent on failure. */
struct str pod_read_json(struct str body, struct arena *a, struct err *reterr);

/* Reads the next value with kube_read_pod; fails if its kind is not Pod. */
void pod_read_object(struct jread *r, struct arena *a, struct pod_view *ret);

enum errc pod_read(struct str body, struct arena *a, struct pod_view *ret, struct err *reterr)
    _must_use_;
