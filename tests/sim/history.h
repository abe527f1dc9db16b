/* Runs one seed's history: creates the nodes first, and frees all memory at the end. */
#pragma once

#include "sim.h"

/* Lets simulated time go on for `ms`. */
void history_go_on(uint64_t ms);

/* Returns the trace's hash. A failed check prints the seed, the step and the trace's tail, and ends
 * the process. */
uint64_t history_run(uint64_t seed, uint64_t most_steps);
