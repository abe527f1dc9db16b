/*
 * One look at all cards through NVML: what each is and how it is. Cards that NVML can't open are
 * left out: the caller knows from earlier scans which are missing.
 *
 * A card in MIG mode is not in the list; its slices are, each as a card of its own. A slice that
 * shares its memory with another compute instance is left out, because the two could use the same
 * memory twice.
 */
#pragma once

#include "gpu/nvml.h"

/* Where the kernel shows devices; a test has folders of its own. Borrowed. */
struct gpu_roots {
    const char *sys;     /* "/sys" */
    const char *proc;    /* "/proc" */
    const char *cgroup;  /* a cgroup of version 2, to ask for its limits; NULL: none */
    uint64_t card_bytes; /* of a card whose memory NVML does not report, as its chip has none of its
                            own (GB10, Thor); 0: it is left out */
};

#define GPU_NOT_ASKED (-1)

/* What the polls say about a card; of a slice: about its parent. */
struct gpu_sample {
    int error;           /* of the first call that failed, NVML_OK if none did */
    char error_text[64]; /* NVML's words for it */
    bool rows_known;
    bool rows_pending;
    bool rows_failure;
    bool ecc_known;
    bool recovery_known;
    uint32_t recovery;    /* enum nvml_recovery, or a newer value */
    bool pages_pending;   /* a retirement of pages takes effect at the next reset */
    uint64_t uncorrected; /* errors since the last reset */
    int limits;           /* answer to the question for limits of memory; GPU_NOT_ASKED */
    int compute_mode;     /* enum nvml_compute_mode; GPU_NOT_ASKED: not known */
};

struct gpu_found {
    char uuid[GPU_UUID_BYTES];
    char parent[GPU_UUID_BYTES]; /* of a slice: the UUID of its card; else empty */
    char pci[GPU_PCI_BYTES];
    char model[GPU_NAME_BYTES];   /* of a slice: of its card */
    char profile[GPU_NAME_BYTES]; /* of a slice: "1g.5gb"; else empty */
    uint64_t total_bytes;         /* with what the driver reserves */
    uint64_t memory_bytes;        /* that pods can have */
    uint32_t minor;               /* N of /dev/nvidiaN; of a slice: of its card */
    int32_t numa;                 /* -1: none */
    bool mig;                     /* a slice */
    uint32_t gpu_instance;
    uint32_t compute_instance;
    uint32_t gpu_cap; /* N of /dev/nvidia-caps/nvidia-capN for the two instances */
    uint32_t compute_cap;
    struct gpu_sample sample;
    struct nvml_device *device; /* for the thread that scanned */
    struct nvml_device *card;   /* the same; of a slice: its card */
};

/* What NVML counts or lists and can't describe. */
struct gpu_left {
    char uuid[GPU_UUID_BYTES];   /* empty: not known; of a slice, maybe its card's */
    char parent[GPU_UUID_BYTES]; /* of a slice: the UUID of its card; else empty */
    int code;                    /* NVML's; NVML_OK: something else is wrong with it */
    bool shared;                 /* a slice whose memory other compute instances use */
    char text[64];               /* NVML's words for the code */
    char why[GPU_REASON_BYTES];  /* what it is, and why it is left out */
};

struct gpu_scan {
    struct gpu_found *items; /* owned; in the order of NVML; slices of a card together */
    size_t n;
    size_t cap;
    uint64_t session; /* how often NVML was opened; the thread sets it */
    uint32_t cards;   /* that NVML counts */
    /* Owned: cards that NVML can't open, and slices without memory of their own. */
    struct gpu_left *left;
    uint32_t left_out; /* how many */
    uint32_t shut;     /* of them, for which NVML has no way to the driver */
    uint32_t away;     /* of them, that are lost or require a reset */
    uint32_t unheard;  /* cards whose events can't be had; the thread sets it */
    char driver[GPU_NAME_BYTES];
};

/*
 * Fills a zeroed scan. The result is NVML's: of the count of cards, or NVML_MEMORY. What fails for
 * one card is in its sample, or the card is left out.
 */
int gpu_scan_read(const struct nvml *n, const struct gpu_roots *roots, struct gpu_scan *ret);

/* Whether a card of the scan before is not in this one, and one does not answer: the scan before,
 * whose samples are read again for that, then says more. */
bool gpu_scan_lacks_faulty(const struct nvml *n, const struct gpu_roots *roots,
                           const struct gpu_scan *now, struct gpu_scan *before);

/* Whether there are cards, and NVML has no way to the driver for any of them: their device nodes
 * may not be opened any more, or the driver is another one than the library's. A card that is away
 * does not count. */
bool gpu_scan_is_shut(const struct gpu_scan *s);

/* What may be the card or slice with this UUID, of the card `whole`; NULL: nothing, NVML does not
 * count it. */
const struct gpu_left *gpu_scan_left(const struct gpu_scan *s, const char *uuid, const char *whole);

/* Into a zeroed scan. False: no memory. */
bool gpu_scan_copy(const struct gpu_scan *from, struct gpu_scan *to);
void gpu_scan_done(struct gpu_scan *s);
