/*
 * What a plain YAML scalar stands for: null, a bool, a number or a string, as Kubernetes' own
 * loader (sigs.k8s.io/yaml) resolves it, with one exception: y, yes, on, n, no and off stay
 * strings, as in YAML 1.2.
 *
 *     null, Null, NULL, ~ and nothing    null
 *     true, True, TRUE, false, ...       a bool
 *     8, +8, 010, 0o10, 0x8, 0b1000, 8_0 a number; a leading 0 means octal unless an 8 or 9 follows
 *     1.5, .5, 1., 1e3                   a number, spelled as JSON wants it
 *     .inf, .nan and their kin           nothing that JSON has
 *     anything else                      a string: so are dates, 1e999 and 0x.. over 64 bits
 */
#pragma once

#include "jread.h"

struct yaml_scalar {
    enum jtype type;  /* JTYPE_NULL, _BOOL, _NUMBER or _STRING; _NONE: JSON cannot say it */
    bool truth;       /* of a bool */
    char number[128]; /* its JSON text, n bytes */
    size_t n;
};

struct yaml_scalar yaml_scalar_resolve(struct str text);

/*
 * The same for a scalar as it stands in a document: quoted ones are strings, and a tag of the core
 * schema ("tag:yaml.org,2002:int"; absent: none) must agree. "!" makes a string of anything.
 */
enum errc yaml_scalar_read(struct str text, bool plain, struct str tag, struct yaml_scalar *ret,
                           struct err *reterr) _must_use_;

/* Whether the tag is absent, "!", or the core schema's `name`. */
bool yaml_tag_allows(struct str tag, struct str name);
