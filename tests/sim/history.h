/* One seed's history, from the first node to the last byte of memory. */
#pragma once

#include "sim.h"

/* Returns the trace's hash; what is wrong ends the process with seed, step and the trace's tail. */
uint64_t history_run(uint64_t seed, uint64_t most_steps);
