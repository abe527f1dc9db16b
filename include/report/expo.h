/*
 * Metrics in Prometheus' text format 0.0.4, which every Prometheus reads, version 3 included.
 *
 * Numbers are integers with an inserted decimal point: exact, fast, and independent of the locale.
 * Label values may contain any bytes; invalid UTF-8 becomes U+FFFD. A failure is stored in the buf
 * and sticky.
 */
#pragma once

#include "base/buf.h"

/* Prometheus 3 refuses an answer without a content type that it knows. */
#define EXPO_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"

enum expo_type {
    EXPO_GAUGE,
    EXPO_COUNTER,
    EXPO_HISTOGRAM,
};

struct expo_label {
    const char *key;
    struct str value;
};

struct expo {
    struct buf *out;     /* borrowed */
    enum expo_type type; /* type and name: of the current family */
    struct str name;
};

void expo_init(struct expo *x, struct buf *out);

/* Begins a family. Write all of its samples next: a family may appear only once. */
void expo_family(struct expo *x, enum expo_type type, const char *name, const char *help);

void expo_u64(struct expo *x, const struct expo_label *labels, size_t n, uint64_t v);
void expo_i64(struct expo *x, const struct expo_label *labels, size_t n, int64_t v);

/* Writes v / 10^decimals; decimals is at most 18. */
void expo_fixed(struct expo *x, const struct expo_label *labels, size_t n, int64_t v,
                unsigned decimals);

/* Upper bounds from 100 us to half a minute; longer times go to the last bucket. */
#define EXPO_BOUNDS 17
extern const uint64_t expo_bounds_ns[EXPO_BOUNDS];

struct expo_histogram {
    uint64_t counts[EXPO_BOUNDS +
                    1]; /* of each bucket alone, not cumulative; the last bucket has no bound */
    uint64_t sum_ns;
};

void expo_observe(struct expo_histogram *h, uint64_t ns);
void expo_histogram(struct expo *x, const struct expo_label *labels, size_t n,
                    const struct expo_histogram *h);
