/*
 * Kubernetes quantities (k8s.io/apimachinery/pkg/api/resource/quantity.go) as whole numbers:
 *
 *     [+-] digits* [. digits*] suffix
 *     suffix = Ki Mi Gi Ti Pi Ei | n u m "" k M G T P E | (e|E)[+-]digits
 *
 * The result is exact for any number of digits. Go's code wraps or returns 0 above 2^63. Here a
 * value out of range saturates and sets `saturated`, and an exponent beyond 30 or -30 is refused.
 */
#pragma once

#include "base/err.h"

struct quantity {
    int64_t value;  /* rounded away from zero, as Quantity.Value(): 500m is 1 */
    bool whole;     /* the value is exact: 2000m is, 1.5 is not */
    bool saturated; /* the value is beyond int64 */
};

/* ERR_SYNTAX: not a quantity. ERR_RANGE: the exponent is too large, or the text has over 128
 * bytes. */
enum errc quantity_parse(struct str text, struct quantity *ret) _must_use_;

/* The same in thousandths, as Quantity.MilliValue(): 500m is 500, 2 is 2000. */
enum errc quantity_parse_milli(struct str text, struct quantity *ret) _must_use_;
