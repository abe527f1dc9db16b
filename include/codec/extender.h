/*
 * The scheduler's wire (k8s.io/kube-scheduler/extender/v1): untagged Go structs, so keys are
 * PascalCase. They are read in any case, as Go's own decoder does, and written as Go writes them.
 */
#pragma once

#include "jread.h"
#include "jwrite.h"
#include "view.h"

struct filter_args {
    struct pod_view pod;
    bool has_pod;
    bool by_name; /* NodeNames was given (nodeCacheCapable): it wins over Nodes */
    bool plain;   /* names stand as they came, in their quotes, with a comma between two */
    const struct str *names;   /* of the candidates */
    const struct str *objects; /* and where Nodes were sent, each as it came */
    size_t n;
};

/* ExtenderArgs of filter and prioritize. An error names the field. */
enum errc extender_read_filter(struct str body, struct arena *a, struct filter_args *ret,
                               struct err *reterr) _must_use_;

struct bind_args {
    struct str name;
    struct str namespace;
    struct str uid;
    struct str node;
};

/* ExtenderBindingArgs; all four must be there and not empty. */
enum errc extender_read_bind(struct str body, struct arena *a, struct bind_args *ret,
                             struct err *reterr) _must_use_;

/* An ExtenderFilterResult that only says what went wrong. */
void extender_write_filter_error(struct buf *out, struct str error);

enum offer {
    OFFER_FITS,
    OFFER_LEFT_OUT, /* it fits, and is neither offered nor refused */
    OFFER_REFUSED,
    OFFER_UNRESOLVABLE, /* refused, and no eviction could ever help */
};

/* Why candidate i is refused; valid until the next call. */
typedef struct str filter_reason_fn(void *ctx, size_t i);

/*
 * An ExtenderFilterResult: in the form of the request (names or whole objects) what fits, in the
 * request's order, and every refused candidate with its reason. Unresolvable ones stand in both
 * maps, since schedulers before 1.21 know only FailedNodes. offers: an enum offer of each
 * candidate.
 */
void extender_write_filter(struct buf *out, const struct filter_args *args,
                           const unsigned char *offers, filter_reason_fn *reason, void *ctx);

/* A HostPriorityList, a bare array: each candidate with its score, in the request's order. */
void extender_write_priorities(struct buf *out, const struct filter_args *args,
                               const unsigned char *scores);

/* One that gives nobody anything. */
void extender_write_no_priorities(struct buf *out);

/* ExtenderBindingResult: the empty string is success. */
void extender_write_bind(struct buf *out, struct str error);
