/* The limits of json, each with the reason for its number. */
#pragma once

#include "base/limit.h"

/* Nesting of JSON. Kubernetes objects stay below 30. The reader is iterative, so this bounds its
 * state. */
#define LIMIT_JSON_DEPTH 64

/* Memory for the anchors of one YAML document: some 100,000 anchors. */
#define LIMIT_YAML_ANCHORS (16 * MIB)
