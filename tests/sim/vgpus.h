/*
 * Volcano's vGPU plugins (docs/dialects.md), one on each of its nodes, and the rules of the oracle.
 * From Project-HAMi/volcano-vgpu-device-plugin, pkg/util/util.go and pkg/plugin/server.go. A plugin
 *
 * - gets a call of the kubelet for the container with cards when a pod is admitted, without the
 *   pod's name. It takes the call for the pod with the smallest vgpu-time of all that exist, in
 *   whatever phase and on whatever node they are, whose vgpu-node is its node and whose list has as
 *   many cards left. Of equal times it takes the last in the list of pods, or else the first;
 * - writes bind-phase and the greatest time to that pod, and removes the node's lock in a second
 *   write some time later, whichever lock that is by then. If it ends between the two, the lock
 *   stays. If its answer is lost, the pod fails although it was served;
 * - fails sometimes: it writes that, removes the lock, and the kubelet refuses the pod.
 *
 * The lock has a time alone. It is the lock of a pod if it was there when the pod was bound. The
 * rules:
 *
 * - At most one pod that cardpack placed waits on a node, and it has a lock, until the plugin has
 *   removed it for another pod. The container that calls gets the cards of its own pod.
 * - By what the plugin has given, no card has more than its memory, compute and number of parts.
 * - A process sets a lock while the lock of a pod that waits is there only again, with the same
 *   text, and does not remove it. It replaces no lock of less than five minutes.
 * - At rest a lock whose pod was not bound is gone, as with HAMi's, and any other one keeps pods
 *   away for five minutes at most.
 */
#pragma once

#include "oracle.h"

void vgpus_reset(void);

/* Whether cardpack must take the pod for one that waits on the node. */
bool vgpu_waits(const struct pod_object *p, unsigned node);

/* A process sets the node's lock, or removes it. Called before the change. */
void vgpus_written(const struct lock_object *lock, unsigned node);

/* A Binding of cardpack has just bound the pod. */
void vgpus_bound(unsigned slot);

/* The kubelet calls the plugin for this pod. */
void vgpus_call(unsigned slot, unsigned node);

/* A kubelet refuses a pod that waits; an administrator removes the lock of a pod that has ended. */
void vgpus_act(void);

/* Whether a lock keeps other pods from the node, and for how long it may. */
bool vgpus_keep_out(unsigned node);
uint64_t vgpus_free_in_ms(unsigned node);
