/*
 * Metrics as Prometheus reads them: its text format 0.0.4, and OpenMetrics 1.0. Both come from the
 * same calls, and where they differ is known here alone: a counter's family lacks _total in
 * OpenMetrics, an info is a gauge in the other, only OpenMetrics has units and an end.
 *
 * Numbers are integers with a decimal point in them: exact, of any locale, and quick. Label values
 * may be any bytes; what is no UTF-8 becomes U+FFFD. Failure is the buf's and sticky.
 */
#pragma once

#include "buf.h"

enum expo_format {
    EXPO_TEXT,
    EXPO_OPENMETRICS,
};

enum expo_type {
    EXPO_GAUGE,
    EXPO_COUNTER,
    EXPO_HISTOGRAM,
    EXPO_INFO, /* its samples are 1, and what they say are the labels */
};

struct expo_label {
    const char *key;
    struct str value;
};

struct expo {
    struct buf *out; /* borrowed */
    enum expo_format format;
    enum expo_type type; /* these two: of the family at work */
    struct str name;
};

/*
 * By the Accept header, which may be absent: OpenMetrics where it is asked for by name, in a
 * version that is ours, and not less gladly than the text format.
 */
enum expo_format expo_negotiate(struct str accept);

/* A literal. */
const char *expo_content_type(enum expo_format f);

void expo_init(struct expo *x, struct buf *out, enum expo_format f);

/*
 * What follows are its samples, all of them: a family comes once. The name, without _total and
 * _info, ends in its unit where it has one.
 */
void expo_family(struct expo *x, enum expo_type type, const char *name, const char *help);

void expo_u64(struct expo *x, const struct expo_label *labels, size_t n, uint64_t v);
void expo_i64(struct expo *x, const struct expo_label *labels, size_t n, int64_t v);

/* v / 10^decimals; at most 18. */
void expo_fixed(struct expo *x, const struct expo_label *labels, size_t n, int64_t v,
                unsigned decimals);

/* What is 100 us or quicker, ..., and what takes longer than half a minute. */
#define EXPO_BOUNDS 17
extern const uint64_t expo_bounds_ns[EXPO_BOUNDS];

struct expo_histogram {
    uint64_t counts[EXPO_BOUNDS + 1]; /* each bucket's own; the last one has no bound */
    uint64_t sum_ns;
};

void expo_observe(struct expo_histogram *h, uint64_t ns);
void expo_histogram(struct expo *x, const struct expo_label *labels, size_t n,
                    const struct expo_histogram *h);

/* After the last family. */
void expo_end(struct expo *x);
