/*
 * What pods use of the cards, by the last sample of each card. A sample is: begin, one call for
 * each process and each promise on the card, end. Until its end the figures of the sample before
 * stay. Also decides which pods are over their share, and whether the figures differ from those
 * that were written last. Pure: the time is an argument.
 */
#pragma once

#include "base/arena.h"
#include "gpu/limit.h"
#include "objects/usage.h"

/* Pods on cards: as many as the text of the ConfigMap may have. */
#define USAGE_PODS_MAX ((size_t)1000)

#define USAGE_OVER_SAMPLES  2U                /* in a row until a pod counts as over its share */
#define USAGE_OVER_PAUSE_MS UINT64_C(3600000) /* between two events about a pod and a card */
#define USAGE_CHANGE_BYTES  (UINT64_C(256) << 20) /* a smaller change is not written; nor ... */
#define USAGE_CHANGE_PARTS  100U                  /* ... a smaller part of the card */

struct usage_owner {
    struct str uid;
    struct str namespace;
    struct str name;
};

/* A pod on a card. */
struct usage_use {
    struct usage_owner pod; /* owned */
    uint32_t card;
    bool there;        /* by the last sample it has a process or a promise */
    bool known;        /* bytes is */
    bool partial;      /* bytes is the least: a process has no figure, or may be the pod's */
    bool promises;     /* promised is */
    uint64_t bytes;    /* used */
    uint64_t promised; /* its share of the card, in bytes */
    unsigned overs;    /* samples in a row that were over the share; stops at the limit */
    bool warned;       /* that it is over, at warned_ms; */
    bool below;        /* and it was below again since */
    uint64_t warned_ms;
    bool written; /* the last text has it, with written_bytes */
    uint64_t written_bytes;
    /* of the sample under way */
    uint64_t sample;         /* the last one that found a process or a promise */
    uint64_t process_sample; /* a process */
    uint64_t promise_sample; /* a promise */
    bool sum_known;          /* of a process at least */
    bool sum_partial;        /* not of all */
    uint64_t sum;
    uint64_t sum_promised;
};

struct usage_tally_card {
    uint32_t index;
    char uuid[GPU_UUID_BYTES];
    bool known;       /* used and total are */
    bool other_known; /* other is */
    uint64_t used;
    uint64_t total;
    uint64_t other;        /* of `used`, what no pod uses: the driver, and processes of no pod */
    uint32_t busy_percent; /* USAGE_BUSY_UNKNOWN */
    bool written;
    uint64_t written_bytes;
    uint64_t round; /* the last one that had it */
};

struct usage_tally {
    struct usage_tally_card *cards; /* owned; by index */
    size_t n_cards;
    size_t cap_cards;
    struct usage_use *uses[USAGE_PODS_MAX]; /* owned, in no order */
    size_t n_uses;
    uint64_t round;
    uint64_t sample;
    uint32_t at;       /* the card of the sample under way */
    unsigned missed;   /* its processes whose pod can't be found, or whose memory */
    bool went;         /* what the last text has is not there any more */
    uint64_t left_out; /* pods, since the start: too many, or no memory */
};

/* How the card is, from NVML. */
struct usage_reading {
    uint64_t used_bytes; /* NVML_BYTES_UNKNOWN, as total_bytes */
    uint64_t total_bytes;
    uint32_t busy_percent; /* UINT32_MAX: not known */
};

void usage_tally_init(struct usage_tally *t);
void usage_tally_done(struct usage_tally *t);

/* A round has a sample, or a failure, of each card. Cards that it did not name are gone. */
void usage_tally_round_begin(struct usage_tally *t);
void usage_tally_round_end(struct usage_tally *t);

/* One sample at a time. Strings are copied. ERR_NOMEM, ERR_LIMIT: nothing has changed. */
enum errc usage_tally_begin(struct usage_tally *t, uint32_t index, struct str uuid) _must_use_;
/* A process of the pod; bytes: NVML_BYTES_UNKNOWN. */
void usage_tally_process(struct usage_tally *t, const struct usage_owner *pod, uint64_t bytes);
/* A process that was not found, or in a container that is not known: it may be any pod's. */
void usage_tally_miss(struct usage_tally *t);
/* After all processes of the sample. 0: the pod has a share of another card only; that matters if
 * it has a process here. */
void usage_tally_promise(struct usage_tally *t, const struct usage_owner *pod, uint64_t bytes);
/* Calls `over` for each pod that is to get an event now. */
void usage_tally_end(struct usage_tally *t, const struct usage_reading *r, uint64_t now_ms,
                     void (*over)(void *ctx, const struct usage_use *u), void *ctx);

/* The card's sample failed, or its processes can't be listed: what pods use of it is not known.
 * Memory and load, too, if r is NULL. */
void usage_tally_fail(struct usage_tally *t, uint32_t index, struct str uuid,
                      const struct usage_reading *r);

/* Nothing is known any more. */
void usage_tally_forget(struct usage_tally *t);

/* The pod is gone. */
void usage_tally_gone(struct usage_tally *t, struct str uid);

/* Whether what is known differs so much from the last text that it is to be written. */
bool usage_tally_changed(const struct usage_tally *t);

/* The text's content, without `seen`, in the arena; the pod with most memory first. Views are valid
 * until the tally changes. */
enum errc usage_tally_view(const struct usage_tally *t, struct arena *a, struct usage_view *ret)
    _must_use_;
void usage_tally_written(struct usage_tally *t); /* the view of this tally is about to be sent */

/* Pods that are over their share of a card. */
size_t usage_tally_over(const struct usage_tally *t);
