/* The decoded answer of GET .../cards: see inspect_write.h. */
#pragma once

#include "base/arena.h"

struct figures_pod {
    struct str namespace;
    struct str name;
    int64_t used;
    int64_t used_mib; /* really; -1: unknown */
    bool exceeds;     /* that is more than its share */
};

struct figures_card {
    int64_t id; /* -1: for pods of the node that have none of its cards */
    int64_t total;
    int64_t used;
    int64_t free;
    int64_t compute; /* percent in use */
    struct str state;
    struct str model;
    struct str uuid;
    struct str profile;
    int64_t numa;     /* -1: unknown */
    int64_t used_mib; /* really; -1: unknown, as size_mib then */
    int64_t size_mib;
    int64_t busy;             /* percent; -1: unknown */
    struct figures_pod *pods; /* by namespace and name */
    size_t n_pods;
};

struct figures_node {
    struct str name;
    int64_t total;
    int64_t used;
    int64_t free;     /* for new pods by the node's sums; the sum of its cards may be more */
    struct str fault; /* absent: none */
    struct str pool;
    struct figures_card *cards;
    size_t n_cards;
};

struct figures {
    struct figures_node *nodes;
    size_t n;
    struct str error; /* absent: none */
    bool measured;    /* what is really used is known of some card */
};

/* The views in *ret point into the answer or the arena. */
enum errc figures_read(struct str answer, struct arena *a, struct figures *ret, struct err *reterr)
    _must_use_;

/* "MiB" if a card has more than 1024, otherwise "GiB": a guess, because no object names the unit.
 * kubectl inspect guesses MiB above 100, but cards with more than 100 GiB exist. */
const char *figures_unit(const struct figures *f);
