/*
 * The way out, upon SIGTERM or SIGINT: what is waited for, in which order, and for how long at
 * most; docs/reload.md tells it. A second signal ends the loop at once.
 */
#pragma once

#include "notify.h"
#include "reload.h"

struct drain_settings {
    struct service *service;
    const struct settings *parts; /* what is not there yet may come until the loop runs */
    const struct config *config;  /* in force then */
    struct reload *reload;
    struct notify *notify;
};

struct drain {
    struct drain_settings s;
    struct timer delay; /* after the first signal, until nobody new is served */
    struct timer grace;
    struct timer settle; /* after the last request, until no Binding is in doubt */
};

/* Takes the signals. */
enum errc drain_open(struct drain *d, const struct drain_settings *s, struct err *reterr)
    _must_use_;
void drain_close(struct drain *d); /* also of one that was never opened */
