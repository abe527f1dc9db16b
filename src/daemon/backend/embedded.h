/*
 * The embedded cluster: nodes and pods from a file, and binds in memory, without Kubernetes. It is
 * a backend like the real one, so the code that decides is the same.
 *
 * The file is a Kubernetes List in YAML or JSON (the output of `kubectl get nodes,pods -A -o
 * json`), or several documents. Nodes, Pods and the ConfigMaps that cardpack reads are used, other
 * kinds are ignored. A pod without metadata.uid gets one.
 *
 * Pods can be created and deleted, as at an API server:
 *
 *     POST   /api/v1/namespaces/NS/pods        a Pod in JSON or YAML; answers 201 and the Pod
 *     DELETE /api/v1/namespaces/NS/pods/NAME
 */
#pragma once

#include "core/cache/cache.h"
#include "core/state/measured.h"
#include "daemon/backend/backend.h"
#include "io/http_server.h"

struct embedded;

/* `text` is the file's content, `path` its name for error messages. */
enum errc embedded_new(struct loop *l, struct cache *cache, struct measured *measured,
                       struct str text, struct str path, struct embedded **ret, struct err *reterr)
    _must_use_;
struct embedded *embedded_free(struct embedded *c); /* returns NULL */

struct backend *embedded_interface(struct embedded *c);

/* `rest` is the path below /api/v1/namespaces/. */
void embedded_handle(struct embedded *c, struct http_request *r, struct str rest);
