/*
 * The JSON that kube-scheduler exchanges with an extender (k8s.io/kube-scheduler/extender/v1).
 * These Go structs have no tags, so keys are PascalCase. Keys are read without regard to case, as
 * Go's decoder reads them, and written as Go writes them.
 */
#pragma once

#include "core/request/object_views.h"
#include "json/jread.h"
#include "json/jwrite.h"

struct filter_args {
    struct pod_view pod;
    bool has_pod;
    bool by_name;              /* NodeNames was given (nodeCacheCapable); it wins over Nodes */
    bool plain;                /* in the body, names are in quotes, with only a comma between two */
    const struct str *names;   /* of the candidates */
    const struct str *objects; /* if Nodes were sent: each Node's JSON as received */
    size_t n;
};

/* Reads ExtenderArgs of filter and prioritize. An error names the field. The result has views of
 * the body. */
enum errc extender_read_filter(struct str body, struct arena *a, struct filter_args *ret,
                               struct err *reterr) _must_use_;

struct bind_args {
    struct str name;
    struct str namespace;
    struct str uid;
    struct str node;
};

/* Reads ExtenderBindingArgs; all four fields must be present and not empty. */
enum errc extender_read_bind(struct str body, struct arena *a, struct bind_args *ret,
                             struct err *reterr) _must_use_;

/* Writes an ExtenderFilterResult with only an error. In this and all other texts for kube-scheduler
 * a percent sign becomes the word: kube-scheduler uses the texts as formats. */
void extender_write_filter_error(struct buf *out, struct str error);

enum offer {
    OFFER_FITS,
    OFFER_LEFT_OUT, /* feasible, but neither offered nor refused */
    OFFER_REFUSED,
    OFFER_UNRESOLVABLE, /* refused, and no eviction can help */
};

/* Why candidate i is refused; the string is valid until the next call. *ret_common, which is false
 * before: all candidates of its kind have this text and this offer. It is then made once. */
typedef struct str filter_reason_fn(void *ctx, size_t i, bool *ret_common);

/*
 * Writes an ExtenderFilterResult. It contains the offered candidates in the request's form (names
 * or whole objects) and order, and each refused candidate with its reason. Unresolvable ones are in
 * both maps, because schedulers before 1.21 know only FailedNodes. offers: one enum offer for each
 * candidate. kinds: a number for each, see filter_reason_fn; 0 if it is not refused.
 */
void extender_write_filter(struct buf *out, const struct filter_args *args,
                           const unsigned char *offers, const unsigned char *kinds,
                           filter_reason_fn *reason, void *ctx);

/*
 * Writes a HostPriorityList, a bare array: each candidate with its score, in the request's order.
 */
void extender_write_priorities(struct buf *out, const struct filter_args *args,
                               const unsigned char *scores);

/* Writes an empty HostPriorityList. */
void extender_write_no_priorities(struct buf *out);

/* Writes an ExtenderBindingResult: the empty string is success. */
void extender_write_bind(struct buf *out, struct str error);
