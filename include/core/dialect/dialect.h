/*
 * Dialects: how a device plugin that shares cards has its pods and nodes described, and what it
 * does with that. Each was read in the plugin's source:
 * AliyunContainerService/gpushare-device-plugin, volcano-sh/devices, elastic-ai/elastic-gpu-agent,
 * tkestack/gpu-manager, Project-HAMi/volcano-vgpu-device-plugin, Project-HAMi/HAMi.
 *
 * A node speaks one dialect, and a pod is placed on nodes that speak its own. So all memory of a
 * node is in one unit, that of its plugin.
 */
#pragma once

#include "base/buf.h"

enum dialect {
    DIALECT_GPUSHARE, /* gpushare's plugin, and cardpack-node */
    DIALECT_VOLCANO,  /* Volcano's device plugin, strategy "share" */
    DIALECT_ELASTIC,  /* elastic-gpu-agent, plugin "gpushare" */
    DIALECT_TENCENT,  /* gpu-manager */
    DIALECT_VGPU,     /* Volcano's vGPU device plugin, which comes from HAMi's */
    DIALECT_HAMI,     /* HAMi's device plugin */
    DIALECT_COUNT
};

/* The dialect of cardpack-node: pods can have several cards, percentages and wishes, and placement
 * policies learn from them. */
#define DIALECT_OWN DIALECT_GPUSHARE

/* How the plugin finds the pod that a call of the kubelet is for. */
enum dialect_match {
    DIALECT_MATCH_SUM,   /* the container's memory is the sum of a pod's containers */
    DIALECT_MATCH_MEM,   /* a container of the pod asks for as much memory */
    DIALECT_MATCH_ORDER, /* as it is called, and by its own choice of cards (plugin_choice.h):
                            gpu-manager refuses a container whose call it took for another pod's,
                            even on the same card, and one for which it would choose another card
                            than the annotation's */
    DIALECT_MATCH_IDS,   /* by the IDs of its devices: pods are never confused */
    DIALECT_MATCH_LOCK,  /* the pod that waits, whichever it is: one at a time may wait on a node */
};

struct dialect_facts {
    struct str name;  /* as in the setting dialects and in DIALECT_LABEL */
    struct str mem;   /* of a container, and in a node's capacity */
    struct str cores; /* percent of a card's compute; absent: the dialect has no such resource */
    struct str count; /* in a node's capacity: how many cards; absent: a hundredth of `cores` */
    /* Annotations of a pod, absent if the dialect has none. */
    struct str idx;         /* the cards of the whole pod: "1", or "0,2"; with `table` a list of
                               devices, see core/state/vgpu.h */
    struct str seat;        /* prefix of the annotations with the cards of one container, before
                               the container's name */
    bool seat_index;        /* or before its index in spec.containers */
    struct str assumed;     /* "true" from the Binding on */
    struct str node;        /* the pod's node */
    struct str assigned;    /* "true" when the plugin has handed the cards out */
    struct str assume_time; /* Unix time in nanoseconds, by which the plugin orders pods */
    /* Of a node: the indices of its ill cards. */
    struct str unhealthy;
    /* The rest is only of HAMi's family, whose pods name their cards by UUID. Then `count` is a
     * container's number of cards, and in a node's capacity the number of all parts of cards. */
    struct str table;   /* annotation of a node: its cards */
    struct str cordon;  /* annotation of a node: the UUIDs of cards that get no new pods */
    struct str percent; /* of a container: of the memory of each card */
    struct str todo;    /* annotation of a pod: those of its devices that are not handed out yet */
    struct str time;    /* annotation of a pod: when it was bound, in seconds */
    struct str lock;    /* annotation of a node: a pod waits there for the plugin */
    bool lock_owner;    /* the lock names the pod */
    bool inits_first;   /* the list has a part for each init container, and each part is closed */
    bool lingers;       /* the plugin serves also a pod that runs or has ended, oldest first */
    const char *unit;   /* of its memory, for people */
    enum dialect_match match;
    bool inits;    /* init containers and sidecars can have cards */
    bool one;      /* one container of a pod can have cards */
    bool multiple; /* 100 of `cores` are a whole card, and memory then has no meaning */
    bool both;     /* a container with memory needs cores, too */
};

/* On a node, label: its dialect, where its resources do not say which. */
#define DIALECT_LABEL STR("cardpack.io/dialect")

const struct dialect_facts *dialect_facts(enum dialect d);

/* Whether the annotations with a container's cards have its name in their keys. */
bool dialect_names_containers(enum dialect d);

/* Whether its `count` has the name of the resource of NVIDIA's plugin, GPUSHARE_RESOURCE_EXCLUSIVE.
 */
bool dialect_has_nvidias(enum dialect d);

/* The dialect that is read and has NVIDIA's name for its cards; false: none. ret may be NULL. */
bool dialect_find_nvidias(enum dialect *ret);

/* Whether pods name their cards by UUID, from the node's own table: HAMi's family. */
bool dialect_has_uuids(enum dialect d);

/* The value of dialect_facts.assigned while the pod waits, and when it was served. */
struct str dialect_waits(enum dialect d);
struct str dialect_served(enum dialect d);

/* False: no dialect has this name. */
bool dialect_parse(struct str name, enum dialect *ret);

/* A set of dialects, a bit for each. */
#define DIALECT_BIT(d) (1U << (unsigned)(d))
#define DIALECTS_ALL   (DIALECT_BIT(DIALECT_COUNT) - 1)

/* A list as "gpushare,volcano". False: *ret_bad is the first name that is not one, or is there
 * twice; absent if the list is empty. */
bool dialects_parse(struct str list, unsigned *ret, struct str *ret_bad);

/* The names of a set, as dialects_parse reads them. */
void dialects_write(unsigned set, struct buf *out);

/*
 * The dialects that this process reads in objects. At first DIALECT_OWN alone. A pod that uses
 * no other resources than those of dialects that are not read is like a pod without a GPU request,
 * and a node is not shared. Call dialects_use before any object is read; kubectl-cardpack does so
 * again between the nodes and the pods.
 */
void dialects_use(unsigned set);
bool dialect_is_used(enum dialect d);
