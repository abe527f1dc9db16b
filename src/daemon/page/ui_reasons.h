/* Why filter refused each pod the last time, for the page. Keeps the most recently refused pods. */
#pragma once

#include "base/map.h"
#include "daemon/limit.h"
#include "report/evaluate.h"

/* Longest UID; those of the API server are much shorter. */
#define UI_REASON_UID_BYTES 64

/* A quota's reason with a namespace and a pool of 63 bytes each; a longer one is left out. */
#define UI_REASON_QUOTA_BYTES 224

struct ui_reason {
    uint64_t noted; /* order of the notes: higher is later */
    size_t uid_n;
    char uid[UI_REASON_UID_BYTES];
    unsigned counts[VERDICT_COUNT]; /* nodes by verdict */

    struct ui_figures {  /* of struct shortfall, in bytes that can be compared */
        int64_t largest; /* TOO_LARGE */
        int64_t free;  /* NO_CARD_FREE. -1: other cards of such a node are feasible, but too few */
        int64_t left;  /* NODE_FULL */
        int64_t cores; /* NO_CORES; -1 as above */
        uint64_t denial; /* enum verdict of `quota` */
    } most;

    size_t quota_n;
    char quota[UI_REASON_QUOTA_BYTES]; /* why a quota refuses, as explain says it */
};

/* A table of fixed size, because filter, which writes it, must not allocate here. */
struct ui_reasons {
    uint64_t version; /* changes whenever the page would show something else */
    uint64_t noted;
    size_t n;
    struct map_seed seed;
    uint64_t hashes[LIMIT_UI_REASONS]; /* of the UIDs; 0: unused */
    struct ui_reason all[LIMIT_UI_REASONS];
};

void ui_reasons_init(struct ui_reasons *r, struct map_seed seed);

/*
 * Takes the result of a filter request: notes a pod without a feasible node, and forgets any other.
 * Accepts NULL.
 */
void ui_reasons_filtered(struct ui_reasons *r, struct str uid, const struct candidates *j);

/* Replaces the pod's note. */
void ui_reasons_note(struct ui_reasons *r, struct str uid, const struct candidates *j);
void ui_reasons_forget(struct ui_reasons *r, struct str uid);

/* NULL: not refused, or so long ago that newer notes have replaced it. */
const struct ui_reason *ui_reasons_get(const struct ui_reasons *r, struct str uid);
