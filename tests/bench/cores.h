/*
 * Assigns programs to cores. If the kernel chooses, a client and its server share a core in one run
 * and wake each other across cores in the next: the same request then differs by some 70 us.
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#define CORES_MAX 2

/* Finds the first cores that this process may use; returns how many: 1 or 2. */
size_t cores_find(size_t cores[static CORES_MAX]);

/* Pins this thread and what it starts later: children and their threads. */
void cores_pin(size_t core);

/* Ends the benchmark if a thread of the process may run on another core. */
void cores_check(pid_t pid, size_t core);
