/* Prints answers as tables for people. For JSON and YAML output see jprint.h. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "kubectl/args.h"

struct kubectl_look {
    bool wide;
    bool names;    /* "node/n1" alone; top: of each node, explain: of each feasible one */
    bool gpushare; /* top: the columns of kubectl inspect gpushare */
    bool heads;    /* false: print only the rows of the table */
    bool color;
    enum kubectl_sort sort;
};

/*
 * The answer of GET .../cards as a table of nodes, or of cards. The table of nodes is at most 100
 * columns wide if wide and gpushare are false and heads is true.
 */
enum errc kubectl_show_top(struct str answer, struct kubectl_look look, struct arena *a,
                           struct buf *out, struct err *reterr) _must_use_;
enum errc kubectl_show_cards(struct str answer, struct kubectl_look look, struct arena *a,
                             struct buf *out, struct err *reterr) _must_use_;

/* The answers of explain and of fit. */
enum errc kubectl_show_explain(struct str answer, struct kubectl_look look, struct arena *a,
                               struct buf *out, struct err *reterr) _must_use_;
enum errc kubectl_show_fit(struct str answer, struct kubectl_look look, struct arena *a,
                           struct buf *out, struct err *reterr) _must_use_;

/* Whether there is room, for the exit status: explain: on some node, or the pod has a node already;
 * fit: for all replicas. */
enum errc kubectl_answer_fits(struct str answer, enum kubectl_command c, struct arena *a, bool *ret,
                              struct err *reterr) _must_use_;

/* The "error" of an answer of GET .../cards, for a node that does not exist. Absent: none. */
enum errc kubectl_answer_error(struct str answer, struct arena *a, struct str *ret,
                               struct err *reterr) _must_use_;
