/* A body that a person sends: JSON or YAML. */
#pragma once

#include "kube.h"

/* As JSON, in the arena; absent on failure. */
struct str pod_read_json(struct str body, struct arena *a, struct err *reterr);

enum errc pod_read(struct str body, struct arena *a, struct pod_view *ret, struct err *reterr)
    _must_use_;
