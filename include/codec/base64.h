/* Base64 (RFC 4648, section 4), the form of bytes in Kubernetes JSON. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"

/* The text must have padding; white space is ignored. */
enum errc base64_decode(struct str text, struct arena *arena, struct str *ret) _must_use_;

/* Appends base64 with padding and without white space. */
void base64_encode(struct str bytes, struct buf *out);
