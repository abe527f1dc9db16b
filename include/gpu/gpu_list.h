/*
 * The cards of a node with index and health: what scans, events and the state file say, together.
 * Pure but for the state file, which the caller reads and writes.
 */
#pragma once

#include "gpu/gpu_health.h"
#include "gpu/gpu_identity.h"

/* Views are valid as long as the list does not change. */
struct gpu_card {
    uint32_t index; /* ours: stays with the UUID */
    struct str uuid;
    struct str pci;     /* "00000000:3B:00.0", in capitals */
    struct str model;   /* empty if the card was not seen since the start */
    struct str profile; /* of a slice: "1g.5gb"; else empty */
    struct str parent;  /* of a slice: the UUID of its card; else empty */
    uint64_t memory_bytes;
    uint32_t minor;        /* N of /dev/nvidiaN; of a slice: of its card; valid if seen */
    int32_t numa;          /* -1: none */
    bool mig;              /* a slice */
    uint32_t gpu_instance; /* of a slice, as the next three */
    uint32_t compute_instance;
    uint32_t gpu_cap; /* N of /dev/nvidia-caps/nvidia-capN */
    uint32_t compute_cap;
    bool seen;        /* since the start: model, minor, ... are known */
    bool missing;     /* NVML does not list it now; then it is unhealthy */
    int limits;       /* NVML's answer to the question for limits of memory; GPU_NOT_ASKED */
    int compute_mode; /* enum nvml_compute_mode; GPU_NOT_ASKED: not known */
    enum gpu_level health;
    struct str reason; /* empty if healthy */
    bool needs_reset;  /* see gpu_health_needs_reset */
};

struct gpu_entry {
    uint32_t index;
    bool seen;
    bool missing;
    bool taken; /* pods have slices of the card, which is not in MIG mode now, or have the whole
                   card of this slice */
    struct gpu_found found; /* as last seen; before that: what the state file has */
    struct gpu_health health;
};

struct gpu_list {
    struct gpu_identity identity;
    struct gpu_entry *entries; /* owned; by index */
    struct gpu_card *cards;    /* owned; views of the entries, and of no_driver */
    size_t n;
    uint64_t session;  /* of the last scan */
    uint32_t no_index; /* cards of the last scan that are not in the list: all indices are taken */
    bool unlisted_reset; /* a card that is left out, and has no index, requires a reset */
    struct gpu_health_rules rules;
    char no_driver[GPU_REASON_BYTES]; /* why no card can be used; empty: they can */
};

void gpu_list_init(struct gpu_list *l, const struct gpu_health_rules *rules);
void gpu_list_done(struct gpu_list *l);

/* The cards of the state file: missing until a scan finds them. Takes the identity's memory, also
 * on failure. ERR_NOMEM. */
enum errc gpu_list_load(struct gpu_list *l, struct gpu_identity *id) _must_use_;

/*
 * A scan: matches indices, and feeds the polls. Of a card that is known the scan gets the size that
 * it had. *ret_changed: a card's index, data or health is not
 * what it was. *ret_save: the identity must be written. ERR_NOMEM: the list has not changed.
 */
enum errc gpu_list_scan(struct gpu_list *l, struct gpu_scan *scan,
                        bool (*in_use)(void *ctx, uint32_t index), void *ctx, uint64_t now_ms,
                        bool *ret_changed, bool *ret_save) _must_use_;

/*
 * An XID of the card with this UUID; of a slice: of its card. gpu_instance: NVML_NO_INSTANCE, or
 * the slice's. Returns whether a card has changed.
 */
bool gpu_list_xid(struct gpu_list *l, const char *uuid, uint64_t xid, uint32_t gpu_instance,
                  uint64_t now_ms);

/* Whether a card that is not gone waits for its reset, and no pod uses it. */
bool gpu_list_awaits_reset(const struct gpu_list *l, bool (*in_use)(void *ctx, uint32_t index),
                           void *ctx);

/* The driver does not answer: no card can be used until the next scan. resets: when it
 * answers again the cards have been reset. Returns whether a card has changed. */
bool gpu_list_no_driver(struct gpu_list *l, const char *reason, bool resets);

/* By index; NULL: none. */
const struct gpu_card *gpu_list_find(const struct gpu_list *l, uint32_t index);
