/* Answers as a person reads them. JSON and YAML are the answer as it is: see jprint.h. */
#pragma once

#include "arena.h"
#include "buf.h"
#include "kubectl_args.h"

/* How it is to look. */
struct kubectl_look {
    bool wide;
    bool heads; /* without them there are rows of the table and nothing else */
    bool color;
};

/* GET .../cards: the table of nodes as kubectl inspect gpushare has it; and that of cards. */
enum errc kubectl_show_top(struct str answer, struct kubectl_look look, struct arena *a,
                           struct buf *out, struct err *reterr) _must_use_;
enum errc kubectl_show_cards(struct str answer, struct kubectl_look look, struct arena *a,
                             struct buf *out, struct err *reterr) _must_use_;

/* The answers of explain and of fit. */
enum errc kubectl_show_explain(struct str answer, struct kubectl_look look, struct arena *a,
                               struct buf *out, struct err *reterr) _must_use_;
enum errc kubectl_show_fit(struct str answer, struct kubectl_look look, struct arena *a,
                           struct buf *out, struct err *reterr) _must_use_;

/* Whether there is room, for the exit status: on any node, and for all replicas. */
enum errc kubectl_answer_fits(struct str answer, enum kubectl_command c, struct arena *a, bool *ret,
                              struct err *reterr) _must_use_;

/* The "error" of an answer of .../cards: no such node. Absent: none. */
enum errc kubectl_answer_error(struct str answer, struct arena *a, struct str *ret,
                               struct err *reterr) _must_use_;
