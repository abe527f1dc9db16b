/* The C programs of gpu-proof: roles of one program; see main.c. */
#pragma once

#include "base/str.h"

uint64_t now_ms(void);

/* A process that uses CUDA: allocates, says "ready ...", and computes until the time or its input
 * ends. Another first line says why it can't: "refused ..." (no memory), "failed ...", "absent
 * ...". */
int role_client(uint64_t mib, uint64_t seconds);

/* One that stores to a bad address. */
int role_fault(void);

/* Answers questions about NVIDIA's management library. */
int role_nvml(const char *library, uint32_t card);
