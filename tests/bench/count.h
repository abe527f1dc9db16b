/* Counts cardpack's allocations: the linker's --wrap redirects mem_alloc and mem_resize to this
 * file. */
#pragma once

#include <stddef.h>

/* The number since the process started. */
size_t count_allocations(void);
