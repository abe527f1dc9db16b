/* The limits that several modules of this folder share, with the reason for each number. */
#pragma once

#include "base/limit.h"

/* Cards of a node, slices included: the most that a node card table may have. Indices are below
 * it. */
#define LIMIT_GPU_CARDS 1024

/* A UUID has 40 or 41 bytes, MIG's old form 60; NVML's own buffer for it has 96. */
#define GPU_UUID_BYTES 96

/* "00000000:3B:00.0"; NVML's own buffer has 32. */
#define GPU_PCI_BYTES 32

/* NVML's own buffer for the name of a card has 96 bytes. */
#define GPU_NAME_BYTES 96

/* A reason in words, for an event and a log line. */
#define GPU_REASON_BYTES 192

/* Processes on one card in one answer. MPS serves 60 clients; without it, processes take a gigabyte
 * for each 3 or 4. */
#define LIMIT_GPU_PROCESSES 4096

/* Events that wait for the loop. NVML delivers one for each error; a broken card may deliver
 * thousands, which say nothing new. */
#define LIMIT_GPU_EVENTS 256

/* The state file: one line of at most 200 bytes for each card. */
#define LIMIT_GPU_STATE_BYTES (512 * KIB)
