/*
 * The scheduler's wire (k8s.io/kube-scheduler/extender/v1): untagged Go structs, so keys are
 * PascalCase. They are read in any case, as Go's own decoder does, and written as Go writes them.
 */
#pragma once

#include "jread.h"
#include "jwrite.h"
#include "view.h"

/* A candidate of the request: its name and, where whole Nodes were sent, the object as it came. */
struct candidate {
    struct str name;
    struct str object;
};

struct filter_args {
    struct pod_view pod;
    bool has_pod;
    bool by_name; /* NodeNames was given (nodeCacheCapable): it wins over Nodes */
    struct candidate *candidates;
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

/* Whether candidate i fits; where it does not, why, and whether eviction could never help. */
struct filter_answer {
    bool fits;
    bool unresolvable;
    struct str reason;
};

typedef struct filter_answer filter_answer_fn(void *ctx, size_t i);

/*
 * An ExtenderFilterResult: in the form of the request (names or whole objects) what fits, in the
 * request's order, and every other candidate with its reason. Unresolvable ones stand in both maps,
 * since schedulers before 1.21 know only FailedNodes. `answer` is called for each candidate three
 * times at most; its reason is valid until its next call.
 */
void extender_write_filter(struct buf *out, const struct filter_args *args,
                           filter_answer_fn *answer, void *ctx);

/* ExtenderBindingResult: the empty string is success. */
void extender_write_bind(struct buf *out, struct str error);
