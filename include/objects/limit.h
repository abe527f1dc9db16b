/* The limits of objects, each with the reason for its number. */
#pragma once

#include "base/limit.h"

/* The table of a node's cards, as text: the API server accepts as much for all annotations of an
 * object. */
#define LIMIT_CARDS_TEXT (256 * KIB)

/* A card's model, uuid or profile. A label's value has at most 63 bytes, a uuid from NVIDIA 40. */
#define LIMIT_CARD_NAME ((size_t)256)

/* Only the first LIMIT_LABELS labels of a pod are compared with PodDisruptionBudgets. */
#define LIMIT_LABELS ((size_t)256)

/* The allocation annotation (which container has which card): REQUEST_GRANTS_MAX entries of some 30
 * bytes, times two. A longer one on a bound pod was not written by us and is not read. */
#define LIMIT_ALLOCATION_BYTES (32 * KIB)

/* Values, requirements and names of pods of one PodDisruptionBudget that are compared. Real ones
 * have a few. Of one with more only its existence counts: it selects all pods of its namespace. */
#define LIMIT_BUDGET_TERMS ((size_t)1024)

/* The quota ConfigMap's text: limits of some thousand namespaces. libyaml reads 1 MiB in about 100
 * ms, and the process does nothing else meanwhile. */
#define LIMIT_QUOTA_TEXT (256 * KIB)

/* The same as JSON, with the anchors expanded. */
#define LIMIT_QUOTA_JSON (1 * MIB)

/* What a node's cards and pods use, as text: most of a ConfigMap of a node with a thousand pods. */
#define LIMIT_USAGE_TEXT (256 * KIB)

/* Containers in it whose cards differ from their annotations: the rest is
 * left out, because one is enough to look at the node. */
#define LIMIT_USAGE_DIFFERENCES ((size_t)64)

/* A list of cards in it: 64 of the largest index, 1023. */
#define LIMIT_USAGE_CARD_LIST ((size_t)320)

/* A name, a namespace or a UID in it. Kubernetes' names have at most 253 bytes. */
#define LIMIT_USAGE_NAME ((size_t)253)

/* Memory in it, in MiB: no card has 4 PiB, and a figure takes 32 bits. */
#define LIMIT_USAGE_MIB UINT64_C(0xffffffff)
