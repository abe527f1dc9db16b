/* A body that a person sends: JSON or YAML. */
#pragma once

#include "kube.h"

/* As JSON, in the arena; absent on failure. */
struct str pod_read_json(struct str body, struct arena *a, struct err *reterr);

/* The next value, as kube_read_pod; another kind than Pod is refused. */
void pod_read_object(struct jread *r, struct arena *a, struct pod_view *ret);

enum errc pod_read(struct str body, struct arena *a, struct pod_view *ret, struct err *reterr)
    _must_use_;
