/*
 * Step machine of the leader's label: which call to the API server comes next. A pure function from
 * state and input to the next action; leader_label.c performs the actions.
 *
 *     not wanted:  remove it from the own pod, once
 *     wanted:      add it to the own pod -> list -> remove it from another pod that has it -> list
 *                                            ^                                                 |
 *                                            +--- every LEADER_LABEL_CHECK_MS, also without ---+
 *
 * What the own pod carries is unknown at first: the container may have been started again in the
 * pod of an earlier leader. The list finds pods of former leaders that could not remove their
 * label, and an own label that a person has removed.
 *
 * One call is under way at a time, and no call is cancelled: a cancelled one might take effect
 * after the next one. A failed call is repeated after a pause that doubles.
 */
#pragma once

#include "base/macro.h"

#define LEADER_LABEL_CHECK_MS     UINT64_C(30000)
#define LEADER_LABEL_RETRY_MS     UINT64_C(250)
#define LEADER_LABEL_RETRY_MAX_MS UINT64_C(16000)

enum leader_label_action_type {
    LEADER_LABEL_REST, /* nothing until the next input */
    LEADER_LABEL_WAIT, /* an LEADER_LABEL_ON_TIMER after delay_ms */
    LEADER_LABEL_ADD,
    LEADER_LABEL_REMOVE,
    LEADER_LABEL_LIST,
    LEADER_LABEL_REMOVE_OTHER, /* from the pod that the last list found */
};

enum leader_label_event {
    LEADER_LABEL_ON_WISH, /* `wanted` has changed; at any time */
    LEADER_LABEL_ON_TIMER,
    LEADER_LABEL_ON_DONE,
    LEADER_LABEL_ON_GONE,   /* the pod is gone, or another pod has its name */
    LEADER_LABEL_ON_FAILED, /* it may have taken effect */
};

struct leader_label_input {
    enum leader_label_event event;
    bool wanted; /* ON_WISH: the own pod shall have the label */
    bool own;    /* ON_DONE of a list: the own pod has it */
    bool other;  /* ON_DONE of a list: another pod has it */
};

struct leader_label_action {
    enum leader_label_action_type type;
    uint64_t delay_ms;
};

enum leader_label_own {
    LEADER_LABEL_UNKNOWN,
    LEADER_LABEL_ABSENT,
    LEADER_LABEL_PRESENT,
};

/* All zero at first; the first input is LEADER_LABEL_ON_TIMER or LEADER_LABEL_ON_WISH. */
struct leader_label_state {
    bool wanted;
    enum leader_label_own own;
    enum leader_label_action_type call; /* under way; LEADER_LABEL_REST: none */
    bool other;                         /* another pod has it, by the last list */
    bool checked;                       /* a list is in that is young enough */
    unsigned failures;                  /* since a whole round has succeeded, or a new wish */
};

/* `random`: for the pause after a failure. */
struct leader_label_action leader_label_step(struct leader_label_state *s,
                                             const struct leader_label_input *in, uint64_t random);
