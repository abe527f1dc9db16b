/*
 * Reads JSON. The reader has one position and a stack of the open objects and arrays. The stack
 * serves nesting, separators and the path of an error. `due` says whether a value must be read
 * next. So a decoder that reads no value, or two, fails an assertion at its first run.
 *
 * Rejected: to build an index of structural characters first, as simdjson does. It needs an array
 * of the document's size, and a name of 20 to 60 bytes already takes only two to four steps of 16.
 */
#include "json/jread.h"

#include "json/jscan.h"
#include "json/jskim.h"
#include "json/jtoken.h"
#include "json/limit.h"

#include <stdio.h>

/* How much of a number an error quotes. */
#define QUOTE_MAX_BYTES ((size_t)48)

/* ---- tokens ---- */

static size_t jread_offset(const struct jread *r)
{
    return (size_t)(r->at - r->start);
}

/* Skips white space; returns the next byte, or -1 at the end. */
static inline int jread_peek(struct jread *r)
{
    const char *p = r->at;
    /* Programs write no white space: then this costs one comparison. */
    while (p < r->end && (unsigned char)*p <= ' ' &&
           (*p == ' ' || *p == '\n' || *p == '\t' || *p == '\r'))
        p++;
    r->at = p;
    return p < r->end ? (unsigned char)*p : -1;
}

static enum jtype jread_type_of(int c)
{
    switch (c) {
    case 'n':
        return JTYPE_NULL;
    case 't':
    case 'f':
        return JTYPE_BOOL;
    case '"':
        return JTYPE_STRING;
    case '[':
        return JTYPE_ARRAY;
    case '{':
        return JTYPE_OBJECT;
    default:
        return c == '-' || (c >= '0' && c <= '9') ? JTYPE_NUMBER : JTYPE_NONE;
    }
}

static void jread_fail_expected(struct jread *r, const char *expected)
{
    static const char *const names[] = {
        [JTYPE_NULL] = "null",       [JTYPE_BOOL] = "a boolean", [JTYPE_NUMBER] = "a number",
        [JTYPE_STRING] = "a string", [JTYPE_ARRAY] = "a list",   [JTYPE_OBJECT] = "an object",
    };
    int c = jread_peek(r);
    enum jtype type = jread_type_of(c);
    char got[32];
    if (type != JTYPE_NONE)
        (void)snprintf(got, sizeof(got), "%s", names[type]);
    else if (c < 0)
        (void)snprintf(got, sizeof(got), "the end");
    else if (c > ' ' && c < 0x7f)
        (void)snprintf(got, sizeof(got), "'%c'", c);
    else
        (void)snprintf(got, sizeof(got), "byte 0x%02x", (unsigned)c);
    jread_fail(r, ERR_SYNTAX, "expected %s, got %s at offset %zu", expected, got, jread_offset(r));
}

/* Validates one character that is not plain, and moves behind it. */
static bool jread_odd_character(struct jread *r, bool *ret_escaped)
{
    unsigned char c = (unsigned char)*r->at;
    size_t n = 0;
    if (c == '\\') {
        if (jtoken_escape(r->at, r->end, &n) < 0) {
            jread_fail(r, ERR_SYNTAX, "an escape that is not allowed at offset %zu",
                       jread_offset(r));
            return false;
        }
        *ret_escaped = true;
    } else if (c < 0x20) {
        jread_fail(r, ERR_SYNTAX, "a raw control character in a string at offset %zu",
                   jread_offset(r));
        return false;
    } else {
        n = jscan_utf8(r->at, r->end);
        if (n == 0) {
            jread_fail(r, ERR_SYNTAX, "invalid UTF-8 at offset %zu", jread_offset(r));
            return false;
        }
    }
    r->at += n;
    return true;
}

/* The reader is at the opening quote. Returns the text between the quotes, escapes unchanged. */
static inline struct str jread_string_scan(struct jread *r, bool *ret_escaped)
{
    const char *begin = ++r->at;
    *ret_escaped = false;
    for (;;) {
        r->at = jscan_plain(r->at, r->end);
        if (r->at >= r->end) {
            jread_fail(r, ERR_SYNTAX, "a string without an end at offset %zu", jread_offset(r));
            return STR_NULL;
        }
        if (*r->at == '"')
            break;
        if (!jread_odd_character(r, ret_escaped))
            return STR_NULL;
    }
    return (struct str){begin, (size_t)(r->at++ - begin)};
}

/* raw has been validated. An escape is never shorter than its character. */
static struct str jread_unescape(struct jread *r, struct str raw)
{
    char *copy = r->arena == NULL ? NULL : arena_alloc(r->arena, raw.n);
    if (copy == NULL) {
        jread_fail(r, r->arena == NULL ? ERR_LIMIT : arena_fault(r->arena),
                   "no room for a string with escapes before offset %zu", jread_offset(r));
        return STR_NULL;
    }
    return (struct str){copy, jtoken_unescape(raw, copy)};
}

static inline struct str jread_string_read(struct jread *r)
{
    bool escaped = false;
    struct str raw = jread_string_scan(r, &escaped);
    return escaped && raw.p != NULL ? jread_unescape(r, raw) : raw;
}

/* The reader is at '-' or a digit. */
static struct str jread_number_scan(struct jread *r)
{
    const char *begin = r->at;
    size_t n = jtoken_number(begin, r->end);
    if (n == 0) {
        jread_fail(r, ERR_SYNTAX, "a malformed number at offset %zu", jread_offset(r));
        return STR_NULL;
    }
    r->at += n;
    return (struct str){begin, n};
}

static bool jread_literal_take(struct jread *r, struct str literal)
{
    if ((size_t)(r->end - r->at) < literal.n || memcmp(r->at, literal.p, literal.n) != 0) {
        jread_fail(r, ERR_SYNTAX, "expected %s at offset %zu", literal.p, jread_offset(r));
        return false;
    }
    r->at += literal.n;
    return true;
}

static bool jread_level_open(struct jread *r, bool array)
{
    if (r->depth == LIMIT_JSON_DEPTH) {
        jread_fail(r, ERR_LIMIT, "nested deeper than %d at offset %zu", LIMIT_JSON_DEPTH,
                   jread_offset(r));
        return false;
    }
    r->at++;
    r->levels[r->depth++] = (struct jread_level){.index = -1, .array = array};
    return true;
}

/*
 * Moves to the next element or member. At the closing bracket it moves behind it and pops the
 * level.
 */
static inline bool jread_level_next(struct jread *r)
{
    struct jread_level *level = &r->levels[r->depth - 1];
    int close = level->array ? ']' : '}';
    int c = jread_peek(r);
    level->key = STR_NULL;
    if (c == close) {
        r->at++;
        r->depth--;
        return false;
    }
    if (level->index >= 0) {
        if (c != ',') {
            r->depth--;
            jread_fail_expected(r, level->array ? "',' or ']'" : "',' or '}'");
            return false;
        }
        r->at++;
    }
    level->index++;
    return true;
}

/* Reads the next member's name, escapes unchanged, and the colon after it. */
static inline struct str jread_key_scan(struct jread *r, bool *ret_escaped)
{
    if (jread_peek(r) != '"') {
        jread_fail_expected(r, "a member's name");
        return STR_NULL;
    }
    struct str key = jread_string_scan(r, ret_escaped);
    if (jread_failed(r))
        return STR_NULL;
    r->levels[r->depth - 1].key = key;
    if (jread_peek(r) != ':') {
        jread_fail_expected(r, "':'");
        return STR_NULL;
    }
    r->at++;
    return key;
}

/* Most of an object is skipped. */
static void jread_value_skip(struct jread *r)
{
    const char *behind = jskim_value(r->at, r->end);
    if (behind != NULL)
        r->at = behind;
    else if (jread_type_of(jread_peek(r)) == JTYPE_NONE)
        jread_fail_expected(r, "a value");
    else
        jread_fail(r, ERR_SYNTAX, "a value without an end at offset %zu", jread_offset(r));
}

/* Begins each read of a value. Returns its first byte, or -1 after a failure. */
static inline int jread_value_begin(struct jread *r)
{
    if (jread_failed(r))
        return -1;
    assert(r->due);
    r->due = false;
    return jread_peek(r);
}

void jread_init(struct jread *r, struct str document, struct arena *arena)
{
    r->start = document.p == NULL ? "" : document.p;
    r->at = r->start;
    r->end = r->start + document.n;
    r->arena = arena;
    r->depth = 0;
    r->due = true;
    r->err.code = OK;
    r->err.text[0] = '\0';
}

enum jtype jread_type(struct jread *r)
{
    if (jread_failed(r) || !r->due)
        return JTYPE_NONE;
    enum jtype type = jread_type_of(jread_peek(r));
    if (type == JTYPE_NONE)
        jread_fail_expected(r, "a value");
    return type;
}

static bool jread_level_begin(struct jread *r, bool array)
{
    int c = jread_value_begin(r);
    if (c == (array ? '[' : '{'))
        return jread_level_open(r, array);
    if (c == 'n')
        (void)jread_literal_take(r, STR("null"));
    else if (!jread_failed(r))
        jread_fail_expected(r, array ? "a list" : "an object");
    return false;
}

bool jread_object_begin(struct jread *r)
{
    return jread_level_begin(r, false);
}

bool jread_array_begin(struct jread *r)
{
    return jread_level_begin(r, true);
}

bool jread_object_next(struct jread *r, struct str *ret_key)
{
    if (jread_failed(r))
        return false;
    assert(!r->due && r->depth > 0 && !r->levels[r->depth - 1].array);
    if (!jread_level_next(r))
        return false;
    bool escaped = false;
    struct str key = jread_key_scan(r, &escaped);
    if (escaped && !jread_failed(r)) {
        key = jread_unescape(r, key);
        r->levels[r->depth - 1].key = key;
    }
    if (jread_failed(r))
        return false;
    *ret_key = key;
    r->due = true;
    return true;
}

bool jread_array_next(struct jread *r)
{
    if (jread_failed(r))
        return false;
    assert(!r->due && r->depth > 0 && r->levels[r->depth - 1].array);
    r->due = jread_level_next(r);
    return r->due;
}

size_t jread_str_run(struct jread *r, struct str *ret, size_t max)
{
    size_t n = 0;
    if (jread_failed(r))
        return 0;
    assert(!r->due && r->depth > 0 && r->levels[r->depth - 1].array);
    struct jread_level *level = &r->levels[r->depth - 1];
    for (const char *p = r->at; n < max; r->at = p) {
        if (level->index >= 0 && (p == r->end || *p++ != ','))
            break;
        if (p == r->end || *p++ != '"')
            break;
        const char *close = jscan_plain(p, r->end);
        if (close == r->end || *close != '"')
            break;
        ret[n++] = (struct str){p, (size_t)(close - p)};
        level->index++;
        p = close + 1;
    }
    return n;
}

struct str jread_str(struct jread *r)
{
    int c = jread_value_begin(r);
    if (c == '"')
        return jread_string_read(r);
    if (c == 'n')
        (void)jread_literal_take(r, STR("null"));
    else if (!jread_failed(r))
        jread_fail_expected(r, "a string");
    return STR_NULL;
}

struct str jread_text(struct jread *r)
{
    int c = jread_value_begin(r);
    if (c == '"')
        return jread_string_read(r);
    if (jread_type_of(c) == JTYPE_NUMBER)
        return jread_number_scan(r);
    if (c == 'n')
        (void)jread_literal_take(r, STR("null"));
    else if (!jread_failed(r))
        jread_fail_expected(r, "a string or a number");
    return STR_NULL;
}

struct str jread_member(struct jread *r, struct str name)
{
    struct str ret = STR_NULL;
    struct str key;
    jread_object (r, key) {
        if (str_eq(key, name))
            ret = jread_str(r);
        else
            jread_skip(r);
    }
    return ret;
}

int64_t jread_i64(struct jread *r)
{
    int c = jread_value_begin(r);
    int64_t value = 0;
    if (jread_type_of(c) == JTYPE_NUMBER) {
        struct str text = jread_number_scan(r);
        if (!jread_failed(r) && !str_to_i64(text, &value))
            jread_fail(r, ERR_RANGE, "expected an integer within 64 bits, got %.*s%s",
                       (int)MIN_OF(text.n, QUOTE_MAX_BYTES), text.p,
                       text.n > QUOTE_MAX_BYTES ? "..." : "");
    } else if (c == 'n') {
        (void)jread_literal_take(r, STR("null"));
    } else if (!jread_failed(r)) {
        jread_fail_expected(r, "an integer");
    }
    return value;
}

bool jread_bool(struct jread *r)
{
    int c = jread_value_begin(r);
    if (c == 't')
        return jread_literal_take(r, STR("true"));
    if (c == 'f')
        (void)jread_literal_take(r, STR("false"));
    else if (c == 'n')
        (void)jread_literal_take(r, STR("null"));
    else if (!jread_failed(r))
        jread_fail_expected(r, "a boolean");
    return false;
}

struct str jread_raw(struct jread *r)
{
    if (jread_value_begin(r) < 0 && jread_failed(r))
        return STR_NULL;
    const char *begin = r->at;
    jread_value_skip(r);
    return jread_failed(r) ? STR_NULL : (struct str){begin, (size_t)(r->at - begin)};
}

void jread_skip(struct jread *r)
{
    (void)jread_value_begin(r);
    if (!jread_failed(r))
        jread_value_skip(r);
}

enum errc jread_finish(struct jread *r, struct err *reterr)
{
    if (!jread_failed(r)) {
        assert(!r->due && r->depth == 0);
        if (jread_peek(r) >= 0)
            jread_fail_expected(r, "the end");
    }
    if (jread_failed(r) && reterr != NULL)
        *reterr = r->err;
    return r->err.code;
}
