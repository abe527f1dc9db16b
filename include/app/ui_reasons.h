/* Why the last filter refused each pod, for a page to show: the most recently refused are kept. */
#pragma once

#include "limit.h"
#include "map.h"
#include "verdict.h"

/* Of a UID: what the API server would allow is shorter by far. */
#define UI_REASON_UID_BYTES 64

struct ui_reason {
    uint64_t noted; /* the higher, the later */
    size_t uid_n;
    char uid[UI_REASON_UID_BYTES];
    unsigned counts[VERDICT_COUNT]; /* nodes */
};

/* A table of fixed size: filter, which tells it of each pod, must not allocate. */
struct ui_reasons {
    uint64_t version; /* another one where a page would be shown another */
    uint64_t noted;
    size_t n;
    struct map_seed seed;
    uint64_t hashes[LIMIT_UI_REASONS]; /* of the UIDs; 0: unused */
    struct ui_reason all[LIMIT_UI_REASONS];
};

void ui_reasons_init(struct ui_reasons *r, struct map_seed seed);

/* What filter has answered: noted where nothing fits, else forgotten. Accepts NULL. */
void ui_reasons_filtered(struct ui_reasons *r, struct str uid,
                         const unsigned counts[static VERDICT_COUNT]);

/* Instead of what was noted of that pod. */
void ui_reasons_note(struct ui_reasons *r, struct str uid,
                     const unsigned counts[static VERDICT_COUNT]);
void ui_reasons_forget(struct ui_reasons *r, struct str uid);

/* NULL: it was not refused, or that was long ago. */
const struct ui_reason *ui_reasons_get(const struct ui_reasons *r, struct str uid);
