/* What the handlers of requests share. main.c makes it and outlives them all. */
#pragma once

#include "backend.h"
#include "bind.h"
#include "cache.h"
#include "cluster.h"
#include "http_server.h"

struct service {
    struct loop *loop;
    struct cache cache;
    struct backend *backend;
    struct binder *binder;
    struct cluster *cluster; /* NULL: a real one */
    bool draining;           /* on the way out: not ready any more */
};

/* Answers r by the table of routes; for struct http_server_settings. */
void routes_handle(void *service, struct http_request *r);
void routes_too_large(void *service, struct http_request *r, uint64_t body_bytes);

/* POST .../filter: which of the request's nodes can hold its pod. Changes nothing. */
void filter_handle(struct service *s, struct http_request *r);

/* GET .../inspect and .../inspect/NODE: gpushare's JSON. `node` absent: all that have cards. */
void inspect_handle(struct service *s, struct http_request *r, struct str node);

/* Ready to decide; if not, why. */
bool service_ready(const struct service *s, struct str *ret_missing);
