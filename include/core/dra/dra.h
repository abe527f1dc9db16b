/*
 * What Dynamic Resource Allocation (resource.k8s.io/v1) has given away: the devices that
 * ResourceClaims hold, and what the ResourceSlices say of them. DRA names a device by driver, pool
 * and name; its slice names the node, and the UUID or PCI address by which it is joined to a card.
 *
 *   - A device is held as long as a claim's status.allocation names it, reserved for a pod or not.
 *   - Several slices of a pool may have a device of one name: the one of the newest generation
 *     counts. The allocator uses the newest complete generation only, but a device that was
 *     allocated earlier is held all the same, so completeness does not matter here.
 *   - A slice that is gone, or has lost a device, is kept while a claim holds that device and no
 *     other slice names it: the kubelet deletes the slices of a driver that restarts, and the pods
 *     go on.
 *
 * The store knows no cards. Each change marks the nodes that it may concern; the cache then asks
 * which devices are held there.
 */
#pragma once

#include "base/intern.h"
#include "base/list.h"
#include "base/map.h"
#include "core/uuid.h"

/* The longest name of a driver, of a pool and of a node that is stored, as the API server has it.
 */
#define DRA_NAME_MAX ((size_t)253)

/* Before the name of a DeviceClass: its implicit extended resource name, which every class has
 * since Kubernetes 1.34, beside spec.extendedResourceName. No node offers it: kube-scheduler makes
 * a claim for each pod that requests it. */
#define DRA_CLASS_PREFIX STR("deviceclass.resource.kubernetes.io/")

struct dra_device_view {
    struct str name;
    struct str node;   /* where each device names its own; else absent */
    struct str uuid;   /* absent: unknown, as the next two */
    struct str parent; /* of a MIG device: the UUID of its GPU */
    uint64_t pci;      /* dra_pci; 0: unknown */
    int64_t memory;    /* capacity in bytes; 0: unknown */
};

/* Devices without UUID, parent and PCI address can be left out: nothing joins them to a card. */
struct dra_slice_view {
    struct str name;
    struct str driver;
    struct str pool;
    struct str node; /* of all its devices; absent: each names its own, or they have none */
    int64_t generation;
    const struct dra_device_view *devices;
    size_t n_devices;
};

/* One device that a claim holds. Those with adminAccess are left out: they take nothing. */
struct dra_result_view {
    struct str driver;
    struct str pool;
    struct str device;
    bool shared;    /* it has a shareID: other claims may hold other parts of the device */
    int64_t memory; /* shared: consumed, in bytes; -1: unknown */
};

struct dra_claim_view {
    struct str uid;
    struct str namespace;
    struct str name;
    const struct dra_result_view *results;
    size_t n_results;
};

/* A DeviceClass. */
struct dra_class_view {
    struct str name;
    struct str resource; /* spec.extendedResourceName; absent: none */
};

/* A node that a slice names. */
struct dra_node {
    struct str name;
    uint32_t refs;          /* stored devices there */
    struct list uses;       /* struct dra_use.on_node: the held devices there */
    struct list_link dirty; /* in the store's `dirty` */
};

/* What a slice says of a held device, as in dra_device_view. The texts are in `rooms`, or belong to
 * the store. */
struct dra_facts {
    struct str uuid;
    struct str parent;
    uint64_t pci;
    int64_t memory;
    struct uuid_room rooms[2];
};

/* Whether the device of a use is a card that the cache knows. */
enum dra_joined {
    DRA_UNKNOWN, /* no slice names the device, with something to join it by */
    DRA_NO_CARD, /* it is no card of a node that the cache knows */
    DRA_CARD,
    DRA_JOINED_COUNT
};

/* A device that a claim holds, whole or in part. */
struct dra_use {
    struct list_link in_pool;
    struct list_link on_node; /* of `node` */
    struct dra_pool *pool;
    const struct dra_slice *slice; /* that names the device; NULL: none does */
    struct dra_node *node;         /* NULL: the device has none, and can't be a card */
    struct str device;
    int64_t memory;
    bool shared;
    enum dra_joined joined; /* the cache sets it, and `card` */
    uint32_t card;          /* DRA_CARD: the first that the device is joined to */
};

struct dra_claim {
    struct str uid;
    uint32_t epoch; /* of the last list that contained it */
    uint32_t n_uses;
    struct dra_use uses[];
};

/* A class whose extended resource is GPUSHARE_RESOURCE_EXCLUSIVE. */
struct dra_class {
    struct str name;
    uint32_t epoch;
};

struct dra {
    struct map slices;          /* by name */
    struct map pools;           /* by driver and name */
    struct map claims;          /* by UID; only those that hold a device */
    struct map nodes;           /* struct dra_node by name */
    struct map classes;         /* struct dra_class by name */
    struct intern_table shapes; /* of the slices; see core/dra/dra_pack.h */
    struct list dirty;          /* nodes whose held devices may have changed, or that have slices
                                   now, or none any more */
};

/* "0000:3b:00.0" and "00000000:3B:00.0" as one number, never 0; 0: not such an address. */
uint64_t dra_pci(struct str text);

void dra_init(struct dra *d, struct map_seed seed);
void dra_done(struct dra *d);

/* ERR_NOMEM: nothing has changed. `epoch`: of the last list of this kind that began. */
enum errc dra_set_slice(struct dra *d, const struct dra_slice_view *view, uint32_t epoch)
    _must_use_;
enum errc dra_set_claim(struct dra *d, const struct dra_claim_view *view, uint32_t epoch)
    _must_use_;
enum errc dra_set_class(struct dra *d, const struct dra_class_view *view, uint32_t epoch)
    _must_use_;
void dra_drop_slice(struct dra *d, struct str name);
void dra_drop_claim(struct dra *d, struct str uid);
void dra_drop_class(struct dra *d, struct str name);

/* Drops what a list of this epoch did not contain. Returns how many objects. */
unsigned dra_sweep_slices(struct dra *d, uint32_t epoch);
unsigned dra_sweep_claims(struct dra *d, uint32_t epoch);
unsigned dra_sweep_classes(struct dra *d, uint32_t epoch);

/* A node that is marked, which the call unmarks; valid until the next change. NULL: none. */
struct dra_node *dra_next_dirty(struct dra *d);

/* After dra_next_dirty: forgets the node if no slice names it any more. */
void dra_release_node(struct dra *d, struct dra_node *x);

/* Of the use's device, which a slice names. */
void dra_use_facts(const struct dra_use *u, struct dra_facts *ret);

/* NULL: no slice names the node. */
struct dra_node *dra_node(const struct dra *d, struct str name);

/* Whether a class gives out whole cards under the name that NVIDIA's device plugin uses. */
static inline bool dra_serves_cards(const struct dra *d)
{
    return d->classes.n > 0;
}

/* How many devices claims hold, by what is known of each. */
void dra_count(const struct dra *d, uint64_t ret[static DRA_JOINED_COUNT]);

/* For tests: asserts every invariant. */
void dra_check(const struct dra *d);
