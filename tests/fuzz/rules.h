/* Shared by fuzz targets: a rule that ends the process when it is broken, and reading with jansson
 * for comparison. */
#pragma once

#include "base/str.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

static inline void check(bool holds, const char *rule)
{
    if (holds)
        return;
    (void)fprintf(stderr, "broken: %s\n", rule);
    abort();
}

/* NULL: no comparison is possible. Of a duplicate key jansson keeps one member, and cardpack reads
 * both. */
static inline json_t *jansson_reads(struct str text)
{
    /* A raw NUL is not JSON, but jansson takes one after a number for the end. */
    if (text.n > 0 && memchr(text.p, '\0', text.n) != NULL)
        return NULL;
    return json_loadb(text.p, text.n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
}

/* What a skipped value holds is not checked, so cardpack accepts more than JSON. False for what
 * jansson can't hold, too: jansson then reads no further. */
static inline bool is_json(struct str text)
{
    json_t *json = json_loadb(text.p, text.n, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    json_decref(json);
    return json != NULL;
}

static inline struct str jansson_str(const json_t *value)
{
    if (!json_is_string(value))
        return STR_NULL;
    return (struct str){json_string_value(value), json_string_length(value)};
}

/* A missing or null value must be an absent string. */
static inline void same_text(struct str s, const json_t *value)
{
    struct str theirs = jansson_str(value);
    check((s.p == NULL) == (theirs.p == NULL) && (s.p == NULL || str_eq(s, theirs)),
          "the same text as jansson's");
}

/* Either a string or a number; only a string is compared, because jansson keeps no text of a
 * number. */
static inline void same_text_or_number(struct str s, const json_t *value)
{
    if (json_is_number(value))
        check(s.n > 0, "a number's text");
    else
        same_text(s, value);
}

/* Valid JSON. NULL only for what jansson can't hold: a key with a NUL, a number out of its
 * range. */
static inline json_t *answer_reads(struct str text)
{
    json_error_t error;
    json_t *json = json_loadb(text.p, text.n, JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
    check(json != NULL || json_error_code(&error) == json_error_null_byte_in_key ||
              json_error_code(&error) == json_error_numeric_overflow,
          "an answer is valid JSON");
    return json;
}
