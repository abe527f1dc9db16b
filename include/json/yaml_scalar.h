/*
 * The type of a plain YAML scalar: null, a bool, a number or a string, by the rules of Kubernetes'
 * own loader (sigs.k8s.io/yaml). One exception: y, yes, on, n, no and off stay strings, as in YAML
 * 1.2.
 *
 *     null, Null, NULL, ~ and nothing    null
 *     true, True, TRUE, false, ...       a bool
 *     8, +8, 010, 0o10, 0x8, 0b1000, 8_0 a number; a leading 0 means octal unless an 8 or 9 follows
 *     1.5, .5, 1., 1e3                   a number, spelled as JSON requires
 *     .inf, .nan and their variants      no JSON value
 *     anything else                      a string: also dates, 1e999 and 0x.. over 64 bits
 */
#pragma once

#include "json/jread.h"

struct yaml_scalar {
    enum jtype type;  /* JTYPE_NULL, _BOOL, _NUMBER or _STRING; _NONE: JSON has no such value */
    bool truth;       /* value of a bool */
    char number[128]; /* its JSON text, n bytes */
    size_t n;
};

struct yaml_scalar yaml_scalar_resolve(struct str text);

/*
 * The same for a scalar in a document. Quoted scalars are strings, and a tag of the core schema
 * ("tag:yaml.org,2002:int"; absent: none) must agree with the value. "!" makes any scalar a string.
 */
enum errc yaml_scalar_read(struct str text, bool plain, struct str tag, struct yaml_scalar *ret,
                           struct err *reterr) _must_use_;

/* Whether the tag is absent, "!", or the core schema's `name`. */
bool yaml_tag_allows(struct str tag, struct str name);
