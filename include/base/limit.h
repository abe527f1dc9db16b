/* The limits of base, and those that every library shares: each with the reason for its number.
 * Other folders have a limit.h of their own. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

/* One object of a list or a watch. An API server takes objects of at most 3 MiB, and JSON may write
 * six bytes for one. */
#define LIMIT_OBJECT_BYTES (24 * MIB)

/* The memory to read it into: 3 MiB hold some 30,000 containers, and each takes half a KiB in a
 * list that grows by doubling. */
#define LIMIT_OBJECT_ARENA (64 * MIB)

/* How much memory of a request's body, answer and arena is kept for the next request on any
 * connection. */
#define LIMIT_KEEP_BYTES (1 * MIB)

/* Configuration, kubeconfig and credential files. */
#define LIMIT_FILE_BYTES (4 * MIB)

/* How long a read of a pipe waits until a process opens the pipe for writing. */
#define LIMIT_PIPE_WRITER_MS 5000
