/*
 * What the process gives up of its own accord, whoever started it and however. The manifests ask
 * the container's runtime for most of this; here it holds where there is none, and where somebody
 * forgot.
 *
 * In this order, while there is one thread, since most of it is a thread's own:
 *   confine_process       before anything is read that is secret
 *   ports are bound       with CAP_NET_BIND_SERVICE, if it was there
 *   confine_capabilities  the last of them goes
 *
 * From confine_process on root is a user like any other: what root owns can be read, and read again
 * when it is rotated; a file of somebody else's that is closed to others cannot, from the start and
 * not only at its first rotation. No program can be executed any more, and a debugger or another
 * process of this user can neither attach nor read the memory.
 */
#pragma once

#include "macro.h"

enum confine_step {
    CONFINE_PRIVILEGES,   /* no_new_privs: no set-uid program gives any back */
    CONFINE_MEMORY,       /* not dumpable: /proc/PID/mem and ptrace are root's */
    CONFINE_CORE,         /* no core file, which would hold token and keys */
    CONFINE_FILES,        /* umask 077 */
    CONFINE_DESCRIPTORS,  /* as many as the connections need, where the hard limit lets us */
    CONFINE_EXEC,         /* execve fails with EACCES, by a seccomp filter */
    CONFINE_BOUNDING,     /* nothing could ever be gained from the bounding or ambient set */
    CONFINE_CAPABILITIES, /* effective, permitted and inheritable are empty */
    CONFINE_STEPS
};

/*
 * Both return the steps that could not be done, a bit each, 1 << step; each is in the debug log. A
 * process without CAP_SETPCAP keeps its bounding set, which no_new_privs makes worthless: that is
 * no failure.
 */
unsigned confine_process(void);
unsigned confine_capabilities(void);
