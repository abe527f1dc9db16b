/*
 * The embedded cluster: nodes and pods from a file, binds in memory, no Kubernetes anywhere. It is
 * a backend like the real one, so everything that decides is the same code.
 *
 * The file is a Kubernetes List in YAML or JSON (what `kubectl get nodes,pods -A -o json` prints),
 * or several documents. Nodes, Pods and the unhealthy-gpu- ConfigMaps are taken, other kinds left
 * out. A pod without metadata.uid gets one.
 *
 * So that there is something to schedule, pods come and go as at an API server:
 *
 *     POST   /api/v1/namespaces/NS/pods        a Pod in JSON or YAML; answers 201 and the Pod
 *     DELETE /api/v1/namespaces/NS/pods/NAME
 */
#pragma once

#include "backend.h"
#include "cache.h"
#include "http_server.h"

struct cluster;

/* `text` is the file's content, `path` its name for errors. */
enum errc cluster_new(struct loop *l, struct cache *cache, struct str text, struct str path,
                      struct cluster **ret, struct err *reterr) _must_use_;
struct cluster *cluster_free(struct cluster *c); /* returns NULL */

struct backend *cluster_interface(struct cluster *c);

/* `rest` is the path below /api/v1/namespaces/. */
void cluster_handle(struct cluster *c, struct http_request *r, struct str rest);
