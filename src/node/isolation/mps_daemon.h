/*
 * NVIDIA's MPS on this node. One control daemon for each card runs in a DaemonSet of its own, with
 * the pipe directory DIR/UUID; DIR/UUID.shm is the /dev/shm that it shares with its clients.
 * cardpack-node starts no such program: it asks whether the daemons answer.
 */
#pragma once

#include "gpu/gpu_list.h"

/* Clients of one server: NVIDIA's own limit. */
#define MPS_CLIENTS_MAX 48

/* Whether MPS serves the card: it belongs to one process at a time, which is the server, and the
 * socket of its daemon accepts a connection. If not, why says what is missing. */
bool mps_daemon_serves(struct str dir, const struct gpu_card *c, char why[GPU_REASON_BYTES]);
