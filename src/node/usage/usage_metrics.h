/* The metrics of what pods use of the cards. */
#pragma once

#include "codec/expo.h"
#include "node/usage/usage_meter.h"

void usage_metrics_write(struct expo *x, const struct usage_meter *m);
