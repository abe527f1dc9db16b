/*
 * What one pod asks for: the effective request that the kubelet and the scheduler agree on
 * (k8s.io/component-helpers/resource: sidecars add up, init containers run one at a time).
 */
#pragma once

#include "err.h"
#include "view.h"

/*
 * A request beyond this is larger than any card, whatever the unit (an EiB in MiB). Charges of
 * bound pods are cut to it, so that no sum on a node can overflow.
 */
#define REQUEST_MEM_MAX ((int64_t)1 << 40)

struct request {
    int64_t mem; /* on one card, in the plugin's unit; 0: wants no card */
};

/*
 * ERR_SYNTAX or ERR_RANGE with the container, the field and the value in reterr: "container \"c0\":
 * aliyun.com/gpu-mem: \"1.5\" is not a whole number". *ret is then what a pod that is bound all the
 * same is charged: the containers that can be read, rounded up, and at most REQUEST_MEM_MAX.
 */
enum errc request_read(const struct pod_view *pod, struct request *ret, struct err *reterr)
    _must_use_;
