/* What the node enforces of the shares of its cards, from what is known of the cards, the setting
 * `isolation` and the node's labels. Pure. */
#pragma once

#include "core/state/isolation.h"
#include "gpu/gpu_list.h"
#include "node/settings.h"

struct enforce_facts {
    bool cgroup2;   /* the setting `cgroup-root` is a tree of version 2 */
    bool mps_label; /* the node has the label cardpack.io/mps: "true" */
    /* Whether MPS serves the card: verified. */
    bool (*mps_serves)(void *ctx, const struct gpu_card *c);
    void *ctx;
};

struct enforce {
    enum isolation means; /* what containers are given; UNKNOWN: as before */
    enum isolation label; /* what is verified, and announced; UNKNOWN: as before */
    const char *lack;     /* why the label is not what was asked for; NULL: it is */
};

struct enforce enforce_decide(const struct settings *s, const struct enforce_facts *f,
                              const struct gpu_card *cards, size_t n);
