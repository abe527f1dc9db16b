/*
 * A JSON document for people: indented, or as YAML. Both say the same as the document, with its
 * members in their order. The document must be valid: it is an answer of ours.
 */
#pragma once

#include "arena.h"
#include "buf.h"

/* Four spaces a level, as kubectl prints; ends in a newline. */
enum errc jprint_json(struct str document, struct arena *arena, struct buf *out, struct err *reterr)
    _must_use_;

/*
 * Block style. A string stands plain where YAML of whatever version reads nothing else in it;
 * otherwise in double quotes, with what no terminal should get escaped.
 */
enum errc jprint_yaml(struct str document, struct arena *arena, struct buf *out, struct err *reterr)
    _must_use_;
