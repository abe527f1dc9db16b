/*
 * Who is told of a setting that changes while cardpack runs. What can fail is done first, on the
 * side; then all of it takes effect at once, and nothing of that can fail.
 */
#pragma once

#include "budget_feed.h"
#include "evictor.h"
#include "guard.h"
#include "kube_backend.h"
#include "service.h"

/* NULL: there is none. */
struct settings {
    struct service *service;
    struct kube_api *api;
    struct kube_backend *kube;
    struct budget_feed *budgets;
    struct guard *guard;
    struct http_server *server;
    struct http_server *probes;
};

struct settings_draft {
    struct guard *guard;
    struct evictor *evictor;
};

/* `fresh` is what config_merge has made. */
enum errc settings_prepare(const struct settings *s, const struct config *fresh,
                           struct settings_draft *ret, struct err *reterr) _must_use_;
void settings_drop(struct settings_draft *d);
void settings_commit(const struct settings *s, const struct config *c, struct settings_draft *d);

/* How lines are written, and which. */
void settings_log(const struct config *c);

/* *ret is NULL where nobody is to be evicted. */
enum errc settings_evictor(const struct settings *s, const struct config *c, struct evictor **ret,
                           struct err *reterr) _must_use_;
