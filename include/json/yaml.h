/*
 * Converts YAML to JSON, so that the strict JSON reader reads configuration, kubeconfig and cluster
 * files. A text that begins with '{' counts as JSON and is copied. Plain scalars become null, true,
 * false or numbers by the rules of Kubernetes' own loader (YAML 1.2 core; yes/no/on/off of YAML 1.1
 * stay strings). Quoted scalars are strings; a quoted key stays unchanged. Anchors and aliases are
 * expanded up to the limit of `out`, which stops a "billion laughs" attack. Repeated keys, tags
 * outside the core schema and keys that are not scalars are errors; the message names line and
 * column. No error quotes a value: in a kubeconfig it may be a secret.
 */
#pragma once

#include "base/buf.h"

/* The text must contain exactly one document; an empty text gives "null". */
enum errc yaml_to_json(struct str text, struct buf *out, struct err *reterr) _must_use_;

/*
 * The same for a file of settings. A plain number with a leading zero is an error, because YAML 1.1
 * reads 017 as 15 and YAML 1.2 as 17.
 */
enum errc yaml_to_json_settings(struct str text, struct buf *out, struct err *reterr) _must_use_;

/*
 * Accepts any number of documents. Each becomes one line of JSON that ends in '\n'; empty documents
 * are left out.
 */
enum errc yaml_to_json_lines(struct str text, struct buf *out, struct err *reterr) _must_use_;
