/*
 * Applies changed settings to the running parts, in two steps: settings_prepare does all that can
 * fail, on drafts; settings_commit applies everything at once and cannot fail.
 */
#pragma once

#include "daemon/backend/budget_feed.h"
#include "daemon/backend/kube_backend.h"
#include "daemon/evict/evictor.h"
#include "daemon/guard.h"
#include "daemon/service.h"

/* The parts that have changeable settings; a part that does not exist is NULL. */
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

/* `fresh` is a result of config_merge. Pass *ret to settings_commit or settings_drop. */
enum errc settings_prepare(const struct settings *s, const struct config *fresh,
                           struct settings_draft *ret, struct err *reterr) _must_use_;
void settings_drop(struct settings_draft *d);
void settings_commit(const struct settings *s, const struct config *c, struct settings_draft *d);

/* Sets the format and the level of the log. */
void settings_log(const struct config *c);

/* *ret is NULL where evict-for-cards is off or the cluster is embedded. */
enum errc settings_evictor(const struct settings *s, const struct config *c, struct evictor **ret,
                           struct err *reterr) _must_use_;
