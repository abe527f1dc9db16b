/*
 * Prints a JSON document for people: indented, or as YAML. Both keep the content and the order of
 * the members. The document must be valid: it is one of our own answers.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"

/* Indents by four spaces, as kubectl does; ends in a newline. */
enum errc jprint_json(struct str document, struct arena *arena, struct buf *out, struct err *reterr)
    _must_use_;

/*
 * Block style. A string is unquoted if every YAML version reads it as the same string. Otherwise it
 * is in double quotes, and characters that are unsafe for a terminal are escaped.
 */
enum errc jprint_yaml(struct str document, struct arena *arena, struct buf *out, struct err *reterr)
    _must_use_;
