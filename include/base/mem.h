/*
 * The only door to malloc: arena, buf, map and the cache's objects come through here, so that an
 * allocation that fails has few sources and a test can make each of them fail.
 */
#pragma once

#include "macro.h"

/* Zeroed; NULL when there is no memory. size > 0. */
void *mem_alloc(size_t size) _must_use_;

/* As realloc: what is added is not zeroed; on NULL the old block stays as it was. */
void *mem_resize(void *p, size_t size) _must_use_;

/* Accepts NULL. */
void mem_free(void *p);
