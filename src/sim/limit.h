/* The limits of cardpack-sim, each with the reason for its number. */
#pragma once

#include "base/limit.h"

/* A file with a trace or with a cluster's objects. A million pods of a trace take 70 MB, and
 * kubectl prints 10 KB for a pod. */
#define LIMIT_SIM_FILE_BYTES (2048 * MIB)

/* What is kept of the files, and the answer. */
#define LIMIT_SIM_BYTES (4096 * MIB)

/* Nodes and rows of pods: more than any cluster has. */
#define LIMIT_SIM_NODES 100000U
#define LIMIT_SIM_PODS  10000000U

/* Columns of a trace's file. */
#define LIMIT_SIM_COLUMNS ((size_t)64)

/* Values of one flag that may have several. */
#define LIMIT_SIM_WORKLOADS ((size_t)64)
#define LIMIT_SIM_POLICIES  ((size_t)8)
#define LIMIT_SIM_LOADS     ((size_t)16)
#define LIMIT_SIM_SEEDS     10000U

/* Arrivals, in percent of the capacity; a result has a figure for each. */
#define LIMIT_SIM_FILL 1000U

/* Processes at a time. */
#define LIMIT_SIM_JOBS 256U

/* Verdicts and scores that a run keeps, by shape and node: 150 shapes on 15,000 nodes take 36 MB. A
 * run with more evaluates nodes anew. */
#define LIMIT_SIM_MEMO_BYTES (128 * MIB)

/* Pods that the command fit places. */
#define LIMIT_SIM_FIT UINT64_C(1000000)
