/* The answer of explain: see explain.h. */
#pragma once

#include "jwrite.h"
#include "service.h"
#include "view.h"

/* "placement": [{"container", "card", "memory", "compute"}] */
void explain_write_placement(struct jwrite *w, const struct grant *grants, uint32_t n);

/* Into out; the arena is for the order of the nodes. */
enum errc explain_write(const struct service *s, const struct pod_view *pod, struct arena *a,
                        struct buf *out) _must_use_;
