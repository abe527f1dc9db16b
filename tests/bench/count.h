/* Counts our allocations: the linker's --wrap leads mem_alloc and mem_resize by here. */
#pragma once

#include <stddef.h>

/* Since the start. */
size_t count_allocations(void);
