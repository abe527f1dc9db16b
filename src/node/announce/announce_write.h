/* What announce.c writes: the node card table, the list of unhealthy cards, and the bodies of its
 * requests. Pure. */
#pragma once

#include "core/state/isolation.h"
#include "gpu/gpu_health.h"
#include "json/jwrite.h"

/* Views are borrowed. */
struct announce_card {
    uint32_t index;
    int64_t units; /* of aliyun.com/gpu-mem */
    int32_t numa;  /* -1: none */
    enum gpu_level health;
    struct str reason; /* if not healthy */
    bool needs_reset;  /* see gpu_health_needs_reset */
    struct str uuid;
    struct str pci;
    struct str model;   /* this and profile: empty if not known */
    struct str profile; /* of a slice */
};

/* The value of the annotation cardpack.io/cards. Cards without a unit are left out, because the
 * table may not have them; nothing at all if no card is left. */
void announce_write_cards(struct buf *out, const struct announce_card *cards, size_t n);

/* "0,2": the unhealthy cards. */
void announce_write_ill(struct buf *out, const struct announce_card *cards, size_t n);

struct announce_node {
    struct str cards; /* empty: the node has no card, and nothing is announced of it */
    size_t count;
    enum isolation isolation;
    bool late; /* containers get their cards late */
};

/* The merge patch of nodes/NAME/status: annotations, label, capacity and allocatable. */
void announce_write_node(struct buf *out, const struct announce_node *n);

/* The merge patch of the ConfigMap; with a name also the whole object, to make it. */
void announce_write_map(struct buf *out, struct str name, struct str ill);
