/*
 * Reads a cluster from what `kubectl get nodes,pods -A -o json` prints: a List with both kinds, in
 * JSON or YAML; other kinds are skipped. The objects are decoded as the daemon decodes them. Pods
 * that have ended are left out.
 */
#pragma once

#include "sim/workload.h"

/* Pods in the order of their creation, then by namespace and name. The text may be freed
 * afterwards. */
enum errc dump_read(struct str path, struct str text, struct arena *a, struct sim_workload *ret,
                    struct err *reterr) _must_use_;
