/* The lists of Dynamic Resource Allocation, which not every API server has. */
#pragma once

#include "kubectl/client.h"

/* Whether the API server serves resource.k8s.io/v1. One without it denies the lists to a user who
 * may not read them, so that their answer does not tell. */
enum errc kubectl_dra_is_served(struct kubectl_client *c, bool *ret, struct err *reterr) _must_use_;
