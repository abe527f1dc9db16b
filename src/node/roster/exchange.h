/*
 * Corrects annotations after the kubelet gave a pod the devices that were meant for another one.
 *
 * What a container has can't change, so the annotations follow it. If pod Q waits on card B and got
 * card A, where pod P waits, both exchange their cards: Q's annotations are set to A, and P, which
 * has nothing yet, is planned on B. P gets what Q leaves, so both must ask for the same in the same
 * parts and with the same wishes. Without such a pod Q is moved alone, if card A has room beside
 * all that is planned there; if it does not run yet, it is marked before, as below.
 *
 * That is for the first cards of a pod. Once its annotations have named what it has, a difference
 * is an edit by a user: the pod is moved back alone, and no other pod gets what the edit named.
 *
 * An API server changes one object at a time. After the first of the two pods moved, one card seems
 * to have room that it has not. So both first get CARDPACK_ANNOTATION_VACATED, then they move, then
 * the annotation is removed from both; the extender binds no pod to this node meanwhile. That
 * annotation and the checkpoint have all that is needed to go on after a restart.
 *
 * A PATCH may be applied late: after the agent that sent it was killed, or after its answer was
 * given up. So each of these names the pod's version, and the API server refuses it when the pod
 * has changed. As long as the pod has not, it is in doubt, and no container of it starts.
 */
#pragma once

#include "node/roster/roster.h"

/* Makes each pod's plan agree with what its containers have. Call it after each change of the
 * roster; without cards, or before the first checkpoint, it does nothing. False: no memory; call it
 * again. */
bool exchange_plan(struct roster *r) _must_use_;

enum exchange_action {
    EXCHANGE_NOTHING,
    EXCHANGE_MARK,   /* write CARDPACK_ANNOTATION_VACATED: the cards that it has now */
    EXCHANGE_MOVE,   /* write the pod's plan as its cards */
    EXCHANGE_FINISH, /* remove CARDPACK_ANNOTATION_VACATED */
    EXCHANGE_ASSIGN, /* all its containers have devices: ASSIGNED is true */
};

struct exchange_step {
    enum exchange_action action;
    struct roster_pod *pod;
    struct card_list vacated; /* of MARK */
    bool assigned;            /* of MOVE and FINISH: all its containers have devices */
};

/* The next write, for a pod that is not busy. Nothing is written for a guess. */
void exchange_next(const struct roster *r, struct exchange_step *ret);

enum exchange_outcome {
    EXCHANGE_WRITTEN,     /* roster_set was called with the answer */
    EXCHANGE_NOT_WRITTEN, /* the API server has refused it */
    EXCHANGE_CONFLICT,    /* the same, because the pod has changed: its new version is awaited */
    EXCHANGE_UNKNOWN,     /* the answer was lost: it may have been written */
};

/*
 * The PATCH of this step is under way, and its end. While a PATCH writes other cards, no container
 * of the pod starts, even if its plan has gone back to what the annotations named before. If the
 * outcome is not known, the plan is written again before a container starts, and the pod is in
 * doubt until it has a newer version, or roster_settle is called.
 */
void exchange_sent(const struct exchange_step *s);
void exchange_answered(struct roster_pod *p, enum exchange_outcome outcome);

#define EXCHANGE_REFUSALS 3

/*
 * The API server has refused to change the pod's annotations, not because of a passing state. True:
 * for the EXCHANGE_REFUSALS'th time in a row. From then on the pod is left alone, so that the
 * exchanges of others go on: it keeps the annotations that it has, and a pod that was to exchange
 * cards with it is a misfit, or finds another one.
 */
bool exchange_refuse(struct roster_pod *p);

/* The same at once, without more tries. */
bool exchange_give_up(struct roster_pod *p);

/* One more try for each pod that is left alone, or whose new version has not come. */
void exchange_retry(struct roster *r);

/* A pod that does not surely run is in doubt. */
bool exchange_is_unsettled(const struct roster *r);

/* The pod's containers have cards that its annotations can't be set to: of another number than it
 * asks for, without room, or because the API server refuses it. Or its devices were lost while it
 * ran, and the new ones are of other cards. The pod has to be deleted. */
bool exchange_is_misfit(const struct roster_pod *p);

/* The annotations are right, but their cards have no room beside other pods: two of them got there
 * by a wrong guess and by the scheduler. It waits until one of them ends. */
bool exchange_is_crowded(const struct roster *r, const struct roster_pod *p);

/*
 * Whether a container of the pod may start: the annotations name the cards that it has, and these
 * have room beside the pods that have started or come before it. Once true it stays true while the
 * annotations are right. After a restart a pod that an agent before this one may have allowed
 * counts as started, until the kubelet asks for its containers (roster_ask); but it needs room
 * itself.
 */
bool exchange_may_start(struct roster *r, struct roster_pod *p);
