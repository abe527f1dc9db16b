/*
 * Privileges that the process drops by itself, however it was started. The manifests ask the
 * container runtime for most of them. This module also covers a start without a container runtime,
 * and a manifest that lacks a setting.
 *
 * Call these in this order while the process has one thread (most settings apply to one thread
 * only):
 *   confine_process       before the process reads a secret
 *   (bind the ports)      with CAP_NET_BIND_SERVICE, if the process has it
 *   confine_capabilities  drops that last capability
 *
 * After confine_process, root has only the access of an ordinary user. It can read a file that root
 * owns, also after a rotation. It cannot read a file of another user that is closed to others: this
 * fails at the start, not only at the first rotation. The process can execute no program. A
 * debugger or another process of the same user can neither attach to it nor read its memory.
 */
#pragma once

#include "base/macro.h"

enum confine_step {
    CONFINE_PRIVILEGES,   /* no_new_privs: a set-uid program gives no privilege back */
    CONFINE_MEMORY,       /* not dumpable: only root can use /proc/PID/mem and ptrace */
    CONFINE_CORE,         /* no core file, because it would hold tokens and keys */
    CONFINE_FILES,        /* umask 077 */
    CONFINE_DESCRIPTORS,  /* enough for the connections, up to the hard limit */
    CONFINE_EXEC,         /* a seccomp filter lets execve fail with EACCES */
    CONFINE_BOUNDING,     /* both the bounding set and the ambient set are empty */
    CONFINE_CAPABILITIES, /* effective, permitted and inheritable are empty */
    CONFINE_STEPS
};

/*
 * Both return the steps that failed, one bit each: 1 << step. The debug log names each of them. A
 * process without CAP_SETPCAP keeps its bounding set. This is no failure, because no_new_privs
 * makes that set worthless.
 */
unsigned confine_process(void);
unsigned confine_capabilities(void);
