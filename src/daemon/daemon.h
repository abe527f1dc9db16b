/*
 * Builds all parts of the program from a configuration, on a loop, and frees them again. main.c
 * adds what belongs to the process: the command line, the limit of descriptors, the supervisor, the
 * sandbox and the turns of the loop. The simulation runs the same parts on its own loop.
 */
#pragma once

#include "daemon/drain.h"
#include "daemon/reload.h"
#include "daemon/service.h"

/* "HOST_8f3c1d20aa41c5e7": names a process, because two processes may have the same host name. */
#define DAEMON_IDENTITY_BYTES 128

/* Everything here is borrowed until daemon_close. */
struct daemon_settings {
    struct loop *loop;
    struct config *config; /* parsed from argc, argv and env; a reload writes to it */
    int argc;
    char *const *argv;
    struct config_env env;
    struct notify *notify;
    struct str host;         /* host name, for the identity in the Lease */
    struct str service_host; /* KUBERNETES_SERVICE_HOST and so on, for a pod without a kubeconfig */
    struct str service_port;
    struct str home;      /* the folder of .kube/config */
    unsigned connections; /* max-connections, or fewer where descriptors are short */
};

struct daemon {
    struct daemon_settings s;
    char identity[DAEMON_IDENTITY_BYTES]; /* empty with the embedded cluster */
    struct service service;
    struct parts parts;
    struct reload *reload;
    struct drain drain;
};

/* Call daemon_close after a failure too: it frees what was opened. d must not move until then. */
enum errc daemon_open(struct daemon *d, const struct daemon_settings *s, struct err *reterr)
    _must_use_;
/* Callback `filtered` of struct service: counts it, and passes it to the page and the evictor. */
struct str daemon_filtered(struct service *s, const struct filter_args *args,
                           const struct candidates *j);

void daemon_close(struct daemon *d); /* d may be all zero; does not free the loop */
