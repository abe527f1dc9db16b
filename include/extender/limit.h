/* The limits of extender, each with the reason for its number. */
#pragma once

#include "base/limit.h"

/* Names of nodes in one request. Kubernetes supports 5,000 nodes. */
#define LIMIT_CANDIDATES ((size_t)200000)
