/* Base64 as RFC 4648 section 4 has it: the form in which Kubernetes carries bytes in JSON. */
#pragma once

#include "arena.h"
#include "buf.h"

/* Standard base64 with padding, white space ignored. */
enum errc base64_decode(struct str text, struct arena *arena, struct str *ret) _must_use_;

/* With padding and without white space, appended. */
void base64_encode(struct str bytes, struct buf *out);
