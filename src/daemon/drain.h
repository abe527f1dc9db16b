/*
 * Shutdown upon SIGTERM or SIGINT: what cardpack waits for, in which order, and for how long at
 * most (docs/reload.md). A second signal stops the loop at once.
 */
#pragma once

#include "daemon/reload.h"
#include "io/notify.h"

struct drain_settings {
    struct service *service;
    const struct parts *parts;   /* its members may be NULL now and be set before the loop runs */
    const struct config *config; /* a reload changes it */
    struct reload *reload;
    struct notify *notify;
};

struct drain {
    struct drain_settings s;
    struct timer delay; /* shutdown-delay: new requests are still served until it fires */
    struct timer grace;
    struct timer doubt; /* repeats after the last request, until no Binding is in doubt */
};

/* Installs handlers for both signals. */
enum errc drain_open(struct drain *d, const struct drain_settings *s, struct err *reterr)
    _must_use_;
void drain_close(struct drain *d); /* d may be all zero */
