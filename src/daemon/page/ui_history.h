/* The last hour of the cluster's totals, in fixed memory: a sample for each minute. */
#pragma once

#include "core/cache/cache.h"
#include "json/jwrite.h"

#define UI_HISTORY_SAMPLES 60
#define UI_HISTORY_MS      60000

struct ui_sample {
    int64_t total; /* memory, in the device plugin's unit */
    int64_t used;
    int64_t free;    /* the most that a card has free for a new pod */
    int64_t pending; /* waiting pods, as many as the page counts */
};

struct ui_history {
    struct ui_sample samples[UI_HISTORY_SAMPLES]; /* a ring */
    size_t next;                                  /* where the next sample goes */
    uint64_t taken;                               /* how many there were in all */
};

/* Adds the present totals; the oldest sample of a full ring goes. Reads every node and pending
 * pod. */
void ui_history_take(struct ui_history *h, const struct cache *c);

/* {"total":[...],"used":[...],"free":[...],"pending":[...]}: the oldest sample first. */
void ui_history_write(struct jwrite *w, const struct ui_history *h);
