/* Attributes and the few macros that all modules use. */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef NDEBUG
#    error "asserts are part of the program in every build: -Db_ndebug=false"
#endif

#define _must_use_           __attribute__((warn_unused_result))
#define _uninitialized_      __attribute__((uninitialized)) /* large, and always written first */
#define _printf_(fmt, first) __attribute__((format(printf, fmt, first)))

#define CACHE_LINE ((size_t)64) /* bytes that the processor's cache loads together */

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define MIN_OF(a, b)    ((a) < (b) ? (a) : (b))
#define MAX_OF(a, b)    ((a) > (b) ? (a) : (b))

/* Where a member is in its struct, for a table of fields; another type than `kind` does not
 * compile. */
#define FIELD_OF(type, member, kind) \
    (offsetof(type, member) + 0 * sizeof(&((type *)NULL)->member == (kind *)NULL))

/* From a member's address to the struct that holds it. */
#define CONTAINER_OF(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))
