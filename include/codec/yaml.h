/*
 * YAML to JSON, so that configuration, kubeconfig and cluster files go through the one strict
 * reader. Text that begins with '{' is taken as JSON and copied. Plain scalars become null, true,
 * false or numbers by the rules that Kubernetes' own loader has (YAML 1.2 core; YAML 1.1's
 * yes/no/on/off stay strings); quoted ones are strings; a quoted key stays what it is. Anchors and
 * aliases are expanded, bounded by the ceiling of `out` (a billion laughs end there). Doubled keys,
 * tags of other types than the core schema's and keys that are not scalars are errors that name
 * line and column. No error quotes a value: in a kubeconfig it may be a secret.
 */
#pragma once

#include "buf.h"

/* Exactly one document; an empty text gives "null". */
enum errc yaml_to_json(struct str text, struct buf *out, struct err *reterr) _must_use_;

/* Any number of documents: each becomes one line of JSON ending in '\n'; empty documents are left
 * out. */
enum errc yaml_to_json_lines(struct str text, struct buf *out, struct err *reterr) _must_use_;
