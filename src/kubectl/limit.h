/* The limits of kubectl-cardpack, each with the reason for its number. */
#pragma once

#include "base/limit.h"

/* Memory of kubectl-cardpack for one answer. For 5,000 nodes with eight cards explain returns 4 MB;
 * the list of cards, with a pod on each card, returns 10 MB. */
#define LIMIT_KUBECTL_BYTES (512 * MIB)

/* Time for kubectl to serve or to print a namespace: a fraction of a second, unless its program has
 * to come from a slow disk. */
#define LIMIT_KUBECTL_START_MS UINT64_C(30000)

/* Time for the first request, in which kubectl may log in: the user may have to do that in a
 * browser, with a second factor. */
#define LIMIT_LOGIN_MS UINT64_C(600000)

/* Findings of doctor that are kept: more than a person reads, and as many as the nodes and pods of
 * a cluster that has one mistake everywhere. */
#define LIMIT_FINDINGS ((size_t)10000)

/* Time for the names of one TAB completion: the shell, and with it the user, waits two seconds at
 * most. */
#define LIMIT_NAMES_MS UINT64_C(1600)
