/*
 * Metrics for Prometheus: its text format 0.0.4, and OpenMetrics 1.0. The same calls write both;
 * only this module knows the differences. In OpenMetrics a counter's family has no _total, and
 * there are units and an end marker. In the text format an info is a gauge.
 *
 * Numbers are integers with an inserted decimal point: exact, fast, and independent of the locale.
 * Label values may contain any bytes; invalid UTF-8 becomes U+FFFD. A failure is stored in the buf
 * and sticky.
 */
#pragma once

#include "base/buf.h"

enum expo_format {
    EXPO_TEXT,
    EXPO_OPENMETRICS,
};

enum expo_type {
    EXPO_GAUGE,
    EXPO_COUNTER,
    EXPO_HISTOGRAM,
    EXPO_INFO, /* the value of each sample is 1; the labels hold the information */
};

struct expo_label {
    const char *key;
    struct str value;
};

struct expo {
    struct buf *out; /* borrowed */
    enum expo_format format;
    enum expo_type type; /* type and name: of the current family */
    struct str name;
};

/*
 * Chooses by the Accept header, which may be absent. OpenMetrics is chosen if the header names it,
 * in a supported version, with a q that is not lower than that of the text format.
 */
enum expo_format expo_negotiate(struct str accept);

/* Returns a literal. */
const char *expo_content_type(enum expo_format f);

void expo_init(struct expo *x, struct buf *out, enum expo_format f);

/*
 * Begins a family. Write all of its samples next: a family may appear only once. name is without
 * _total and _info; it ends in the unit if the family has one.
 */
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

/* Call it after the last family. */
void expo_end(struct expo *x);
