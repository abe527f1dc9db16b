/*
 * Late binding: no guess for which pod the kubelet asks. The answer to Allocate names no card but a
 * CDI device with a random ID. The kubelet's checkpoint keeps that answer with the pod's UID and
 * the container's name. Before it creates the pod's first container it calls PreStartContainer, and
 * then the specs of all the pod's containers are written with the cards that its annotations name
 * (specs.h). The runtime reads them when it creates the containers.
 *
 *     Allocate --> "cardpack.io/alloc=ID" --> checkpoint --> PreStartContainer --> spec of ID
 */
#pragma once

#include "node/kubelet/checkpoint_file.h"
#include "node/kubelet/specs.h"

/* By the versions in a Node's status: the kubelet passes CDI devices on from 1.29, and containerd
 * from 2.0 and cri-o from 1.28 add them to containers unless that is switched off. */
bool late_binding_is_supported(struct str kubelet, struct str runtime);

/* Removes the specs that the checkpoint does not name any more. False: some are left; call it again
 * later. A missing checkpoint removes none: the containers may run. */
bool late_binding_sweep(struct specs *s, const struct checkpoint_file *t);

/* Logs, once each, the pods whose annotations no longer name the cards that their specs have, or,
 * without late binding, their containers. */
void late_binding_log_edits(struct roster *r);
