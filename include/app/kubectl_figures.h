/* The answer of GET .../cards, read: see inspect_write.h. */
#pragma once

#include "arena.h"

struct figures_pod {
    struct str namespace;
    struct str name;
    int64_t used;
};

struct figures_card {
    int64_t id; /* -1: pods of the node without a card of it */
    int64_t total;
    int64_t used;
    int64_t free;
    int64_t compute; /* percent that is held */
    struct str state;
    struct str model;
    struct str uuid;
    struct str profile;
    int64_t numa;             /* -1: not said */
    struct figures_pod *pods; /* by namespace and name */
    size_t n_pods;
};

struct figures_node {
    struct str name;
    int64_t total;
    int64_t used;
    int64_t free;     /* what its sums leave for new pods, however much its cards have */
    struct str fault; /* absent: none */
    struct str pool;
    struct figures_card *cards;
    size_t n_cards;
};

struct figures {
    struct figures_node *nodes;
    size_t n;
    struct str error; /* absent: none */
};

/* Views: the answer's, or the arena's. */
enum errc figures_read(struct str answer, struct arena *a, struct figures *ret, struct err *reterr)
    _must_use_;

/* "GiB", or "MiB" where a card has more than 1024: nobody says it. kubectl inspect guesses so above
 * 100 already, which a card may have in GiB. */
const char *figures_unit(const struct figures *f);
