/*
 * Which index a card has. Pods keep the index of their card as an annotation, and NVML's own index
 * is another after a card was lost. So an index stays with a card's UUID, over reboots and lost
 * cards, in a file:
 *
 *     cardpack-cards 1
 *     0 GPU-8a12... 00000000:3B:00.0 - 85899345920
 *     1 MIG-77c0... 00000000:5E:00.0 GPU-5a1f... 5100273664
 *     end 2
 *
 * one line a card: index, UUID, PCI address, UUID of a slice's card or "-", bytes of memory. The
 * last line has the number of cards. An administrator may remove the line of a card that is gone
 * for good, and correct the number.
 */
#pragma once

#include "base/buf.h"
#include "gpu/gpu_scan.h"

struct gpu_record {
    uint32_t index;
    char uuid[GPU_UUID_BYTES];
    char pci[GPU_PCI_BYTES];
    char parent[GPU_UUID_BYTES]; /* empty: a whole card */
    uint64_t memory_bytes;
    bool missing; /* not in the last scan; not in the file */
};

struct gpu_identity {
    struct gpu_record *items; /* owned; by index */
    size_t n;
    size_t cap;
};

void gpu_identity_done(struct gpu_identity *id);

/*
 * Reads the text of a file into an empty identity. On failure it stays empty, and the error names
 * the line. ERR_SYNTAX, ERR_RANGE, ERR_CONFLICT (an index or a UUID is there twice), ERR_NOMEM.
 */
enum errc gpu_identity_read(struct str text, struct gpu_identity *ret, struct err *reterr)
    _must_use_;
void gpu_identity_write(const struct gpu_identity *id, struct buf *out);

/* A missing file is an empty identity and no error. */
enum errc gpu_identity_load(const char *path, struct gpu_identity *ret, struct err *reterr)
    _must_use_;
/* Replaces the file as a whole: after a crash the old or the new one is there. */
enum errc gpu_identity_save(const char *path, const struct gpu_identity *id, struct err *reterr)
    _must_use_;

/* NULL: none. */
struct gpu_record *gpu_identity_find(const struct gpu_identity *id, const char *uuid);

/*
 * Gives each card of a scan its index, and marks the cards that are missing:
 *   - a known UUID keeps its index;
 *   - a missing slice whose card answers was removed by an administrator: its record goes, unless
 *     its index is in use; the same for a card that is in MIG mode now. A slice that NVML counts
 *     and that can't be described was not removed;
 *   - a new card takes the index of a missing one at the same PCI address, else of any missing one
 *     of the same kind, if no pod uses that index;
 *   - else its minor number, as gpushare's plugin counts, and else the lowest free index.
 *
 * in_use says whether pods use an index; NULL: all indices are in use. While no card is known yet,
 * it is not asked for indices without a record: the pods there are those of another plugin.
 * *ret_changed: the records are not those of before, so the file must be written. *ret_left_out:
 * cards that get no index, because all LIMIT_GPU_CARDS are taken. ERR_NOMEM: nothing has changed.
 */
enum errc gpu_identity_match(struct gpu_identity *id, const struct gpu_scan *scan,
                             bool (*in_use)(void *ctx, uint32_t index), void *ctx,
                             bool *ret_changed, uint32_t *ret_left_out) _must_use_;
