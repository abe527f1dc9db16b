/*
 * Kubernetes quantities (k8s.io/apimachinery/pkg/api/resource/quantity.go) as whole numbers:
 *
 *     [+-] digits* [. digits*] suffix
 *     suffix = Ki Mi Gi Ti Pi Ei | n u m "" k M G T P E | (e|E)[+-]digits
 *
 * Exact, whatever the number of digits. Unlike Go's code, which wraps or gives 0 above 2^63, a
 * value out of range saturates and says so, and an exponent beyond 30 either way is refused.
 */
#pragma once

#include "err.h"

struct quantity {
    int64_t value;  /* away from zero where it is no whole number, as Quantity.Value(): 500m is 1 */
    bool whole;     /* the value is exact: 2000m is, 1.5 is not */
    bool saturated; /* the value is beyond int64 */
};

/* ERR_SYNTAX: not a quantity. ERR_RANGE: the exponent, or more than 128 bytes. */
enum errc quantity_parse(struct str text, struct quantity *ret) _must_use_;
