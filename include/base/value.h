/* Durations and sizes as settings and flags have them. What is printed reads back as the same
 * number. */
#pragma once

#include "base/buf.h"

/* "30s", "1m30s", "500ms", "0": in ms. False: not a duration, or beyond 64 bits. */
bool value_read_duration(struct str text, uint64_t *ret_ms);

/* "32MiB", "64KiB", "1GiB", "4096": in bytes. False: not a size, or beyond 64 bits. */
bool value_read_size(struct str text, uint64_t *ret_bytes);

void value_put_duration(struct buf *out, uint64_t ms);
void value_put_size(struct buf *out, uint64_t bytes);
