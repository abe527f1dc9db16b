/* The metrics of what pods use of the cards. */
#pragma once

#include "node/usage/usage_meter.h"
#include "report/expo.h"

void usage_metrics_write(struct expo *x, const struct usage_meter *m);
