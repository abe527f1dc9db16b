/* Base64 (RFC 4648, section 4), the form of bytes in Kubernetes JSON. */
#pragma once

#include "base/arena.h"

/* The text must have padding; white space is ignored. */
enum errc base64_decode(struct str text, struct arena *arena, struct str *ret) _must_use_;
