/*
 * The locks of nodes whose device plugin is HAMi's (docs/dialects.md; Volcano's lock: vgpus.h): GET
 * and PATCH of a node at the simulated API server, the plugin that serves the pod which the lock
 * names, and the rules of the oracle:
 *
 * - At most one pod that cardpack placed waits for the plugin on a node, and the lock names it: a
 *   call of the kubelet for its container then gets the cards of no other pod.
 * - A lock of a pod that waits is neither replaced nor removed.
 * - At rest a lock whose pod was not bound is gone, unless the process that set it has ended. It is
 *   not known who removes the lock of a pod that was bound and then ended before the plugin served
 *   it: nobody does, and it expires.
 *
 * A PATCH may commit later than its answer, or after its sender has died, as a Binding may.
 */
#pragma once

#include "oracle.h"

void locks_reset(void);

/* Whether a pod waits on the node for this plugin of HAMi's family. */
bool locks_wait(unsigned node, enum plugin plugin);

/* Whether nothing but cardpack and the plugin decides which pod waits. */
bool locks_strict(void);

/* An object has changed. */
void locks_changed(const struct change *c);

/* A Binding of cardpack has just bound the pod. */
void locks_bound(const struct order *o, unsigned slot);

/* The kubelet calls the plugin for the containers of this pod, which waits. */
void locks_call(unsigned slot);

/* Whether no lock is left that its process has to remove. */
bool locks_settled(void);

/* An administrator, or a program that ended, leaves a lock that can't be true on a node. */
void locks_act(void);

/* Whether cardpack may refuse the pod on the node for a lock: it does so while the lock is not
 * known to have ended, but not directly after the plugin has served a pod. */
bool locks_may_refuse(unsigned node, const struct pod_object *p);

/* Whether a lock of another pod keeps this one from being bound to the node. */
bool locks_keep_out(unsigned node, const struct pod_object *p);
