/* The body of the PATCH that carries out one step of exchange.h: a merge patch of a pod's
 * annotations, with the UID as its precondition, and the version that the roster has. ASSIGN, and
 * all of a pod whose cards are known, have no version: they say what stays true. Pure. */
#pragma once

#include "base/buf.h"
#include "node/roster/exchange.h"

/* ERR_NOMEM, ERR_LIMIT: out is not complete. */
enum errc pod_patch_write(struct buf *out, const struct roster *r, const struct exchange_step *step)
    _must_use_;
