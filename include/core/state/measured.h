/*
 * What cards and the pods on them really use, as the node's cardpack-node measures it. Placement
 * does not read it: it goes by what pods request.
 *
 * Figures are unknown when they have not come for a while, when they could not be read, and when
 * the node is gone. No clock: the caller passes the time.
 */
#pragma once

#include "base/list.h"
#include "base/map.h"

#define USAGE_BUSY_UNKNOWN UINT32_MAX

struct usage_card {
    uint32_t index;
    uint64_t used_mib, total_mib;
    uint32_t busy_percent; /* USAGE_BUSY_UNKNOWN: unknown */
};

struct usage_pod {
    struct str uid, namespace, name;
    uint32_t card;
    uint64_t used_mib;
};

/* How the kubelet's list of devices (podresources) and a container's annotations differ. */
enum usage_difference_kind {
    USAGE_DIFFERS_CARDS, /* its devices are of other cards than its annotations name */
    USAGE_DIFFERS_OWNER, /* the kubelet's checkpoint says that its devices are another pod's */
    USAGE_DIFFERS_NONE,  /* it should have devices, and the kubelet has none for it */
    USAGE_DIFFERS_KINDS
};

struct usage_difference {
    struct str namespace, name, container;
    enum usage_difference_kind kind;
    struct str annotated; /* cards: "0,2"; "": none */
    struct str given;     /* the same of its devices; "": not known, or none */
};

/* A node's figures as its ConfigMap has them: see objects/usage.h. */
struct usage_view {
    struct str seen;   /* when it was measured: see stamp.h */
    bool asked;        /* the kubelet has listed the devices of containers */
    uint32_t compared; /* if asked: containers with devices */
    struct usage_difference *differences;
    size_t n_differences;
    struct usage_card *cards;
    size_t n_cards;
    struct usage_pod *pods;
    size_t n_pods;
};

#define MEASURED_BUSY_UNKNOWN UINT8_MAX

struct measured_card {
    uint32_t used_mib;
    uint32_t total_mib;
    uint16_t index;
    uint8_t busy_percent; /* MEASURED_BUSY_UNKNOWN: unknown */
};

/* The UID is kept as the table's own hash of it: the cache has the text. */
struct measured_pod {
    uint64_t uid;
    uint32_t used_mib;
    uint16_t card;
};

/* One block, with its name, cards and pods behind it. */
struct measured_node {
    struct str name;      /* key of the map */
    struct list_link age; /* in the table's list; unlinked: its figures are unknown */
    uint64_t came_ms;     /* when figures with this `seen_s` came first */
    uint32_t seen_s;      /* Unix time by the node's clock */
    uint32_t epoch;       /* of the last list that had its ConfigMap */
    bool faulty;          /* its last text could not be read */
    uint16_t n_cards;
    uint16_t n_pods;
    uint16_t n_differences;      /* containers: see usage_difference */
    bool asked;                  /* whether that is known */
    struct measured_card *cards; /* by index */
    struct measured_pod *pods;   /* by uid and card */
};

struct measured {
    struct map nodes;
    struct list ages; /* the nodes whose figures are known, the oldest figures first */
    size_t n_known;   /* of `ages` */
    size_t bytes;     /* of all nodes */
    uint32_t epoch;
    uint64_t lasts_ms; /* older figures are unknown; 0: they never become too old */
};

void measured_init(struct measured *m, struct map_seed seed, uint64_t lasts_ms);
void measured_done(struct measured *m);

/*
 * Takes a node's figures, measured at seen_s. If they are those of the last call, they keep their
 * age: a list that is read again does not make them young. ERR_NOMEM, or ERR_LIMIT above
 * LIMIT_MEASURED_BYTES: the node's figures are unknown.
 */
enum errc measured_set(struct measured *m, struct str node, const struct usage_view *view,
                       uint32_t seen_s, uint64_t now_ms) _must_use_;

/* The node's text could not be read. False: so it was with the last one. */
bool measured_set_faulty(struct measured *m, struct str node);

/* The ConfigMap or the node is gone. Returns whether figures were known. */
bool measured_drop(struct measured *m, struct str node);

/* The name of a node whose figures have become too old; from now on they are unknown. Absent: none,
 * and *ret_wait_ms is the time until there may be one (UINT64_MAX: never). */
struct str measured_expire(struct measured *m, uint64_t now_ms, uint64_t *ret_wait_ms);

/* A list of all ConfigMaps begins: see measured_is_missing. */
void measured_list_begin(struct measured *m);

/* Whether the ConfigMap was not in the list. */
static inline bool measured_is_missing(const struct measured *m, const struct measured_node *n)
{
    return n->epoch != m->epoch;
}

/* Walks all nodes, also those without known figures. Start with *cursor 0; after measured_drop of
 * the returned node, decrement *cursor. */
const struct measured_node *measured_next(const struct measured *m, size_t *cursor);

/* NULL: the node's figures are unknown. m may be NULL. Valid until the next change. */
const struct measured_node *measured_of(const struct measured *m, struct str node);

/* NULL: unknown. n may be NULL. */
const struct measured_card *measured_card_of(const struct measured_node *n, uint32_t card);

/* What a pod uses of a card, in MiB. False: unknown. n may be NULL. */
bool measured_pod_of(const struct measured *m, const struct measured_node *n, struct str uid,
                     uint32_t card, uint32_t *ret_mib);

/*
 * How many MiB one unit of aliyun.com/gpu-mem is: 1024 or 1, from the two sizes of one card. No
 * object names the unit. 0: the sizes do not say it.
 */
uint32_t measured_unit_mib(const struct measured_card *c, int64_t total);

/* Whether a pod that uses so much has more than its share of the card. total and share: the card's
 * and the pod's, in units. A pod with the whole card may use what the card has. */
bool measured_exceeds(const struct measured_card *c, int64_t total, int64_t share,
                      uint32_t used_mib);
