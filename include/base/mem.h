/* The only caller of malloc. arena, buf, map and the cache's objects allocate through it, so that a
 * test can make each allocation fail. */
#pragma once

#include "base/macro.h"

/* Zeroed; NULL when there is no memory. size > 0. */
void *mem_alloc(size_t size) _must_use_;

/* As realloc: the new part is not zeroed; on NULL the old block is unchanged. */
void *mem_resize(void *p, size_t size) _must_use_;

/* Accepts NULL. */
void mem_free(void *p);
