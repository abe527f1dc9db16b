/*
 * The agents of gpu-manager (docs/dialects.md), one on each of its nodes, and the rules of the
 * oracle. From tkestack/gpu-manager, pkg/services/allocator/nvidia/allocator.go and
 * pkg/algorithm/nvidia/share.go. An agent
 *
 * - gets a call of the kubelet for each container when a pod is admitted, without the pod's name.
 * It takes the call for the oldest pod that waits and has a container with as much compute; for one
 *   that it has begun to serve, before all others;
 * - chooses the card by itself, by its own account: for a part of a card the one with the least
 *   compute left, then the least memory, the fewest processes, the lowest index. It refuses the
 * call if the annotation names another card. For whole cards it takes any free ones, and does not
 *   compare;
 * - when the container starts, some time later, it refuses a pod whose call it took for another
 *   pod's. Else it writes the cards that it gave, and that the pod is assigned;
 * - forgets a pod that has ended, and one that is being deleted as soon as no container of it runs;
 * - keeps its account when it is restarted, but not which pod it has begun to serve.
 *
 * The rules: if cardpack knows all that the agent may know when it decides, it decides for the
 * cards that the agent would choose. If nothing has changed since, the agent does not refuse the
 * pod, and gives it these cards. It gives no whole card that the pod may not have. At rest the
 * annotations of a pod that runs say what the agent gave; and rest.c compares them with what
 * cardpack charges.
 */
#pragma once

#include "oracle.h"

void managers_reset(void);

/* An object has changed. */
void managers_changed(const struct change *c);

/* Notes what the process knew of the pod's node when it decided. */
void managers_note(struct decision *d, const struct proc *p);

/* The kubelet goes on with this pod of gpu-manager, which is pending. */
void managers_run(unsigned slot);

/* An agent is restarted, or looks for annotations of running pods that others have edited. */
void managers_act(void);

/* All agents do the latter. */
void managers_settle(void);

/* At rest. */
void managers_check(void);
