/*
 * The reader stands at one byte and keeps a stack of what is open around it; the stack serves
 * nesting, the separators and the path of an error alike. `due` says whether a value has to be read
 * now: it turns a decoder that forgets a value, or reads two, into an assertion at its first run.
 *
 * Rejected: an index of structural characters built first (simdjson's way): it costs an array of
 * the document's size, and names of 20 to 60 bytes already go by in two to four steps of 16.
 */
#include "jread.h"

#include "jscan.h"
#include "jskim.h"
#include "jtoken.h"

#include <stdio.h>

/* Of a number that an error quotes. */
#define QUOTE_MAX_BYTES ((size_t)48)

static size_t offset(const struct jread *r)
{
    return (size_t)(r->at - r->start);
}

/* The byte at the reader, after white space, or -1 at the end. */
static inline int peek(struct jread *r)
{
    const char *p = r->at;
    /* Machines write no white space: one comparison where there is none. */
    while (p < r->end && (unsigned char)*p <= ' ' &&
           (*p == ' ' || *p == '\n' || *p == '\t' || *p == '\r'))
        p++;
    r->at = p;
    return p < r->end ? (unsigned char)*p : -1;
}

static enum jtype type_of(int c)
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

static void fail_expected(struct jread *r, const char *expected)
{
    static const char *const names[] = {
        [JTYPE_NULL] = "null",       [JTYPE_BOOL] = "a boolean", [JTYPE_NUMBER] = "a number",
        [JTYPE_STRING] = "a string", [JTYPE_ARRAY] = "a list",   [JTYPE_OBJECT] = "an object",
    };
    int c = peek(r);
    enum jtype type = type_of(c);
    char got[32];
    if (type != JTYPE_NONE)
        (void)snprintf(got, sizeof(got), "%s", names[type]);
    else if (c < 0)
        (void)snprintf(got, sizeof(got), "the end");
    else if (c > ' ' && c < 0x7f)
        (void)snprintf(got, sizeof(got), "'%c'", c);
    else
        (void)snprintf(got, sizeof(got), "byte 0x%02x", (unsigned)c);
    jread_fail(r, ERR_SYNTAX, "expected %s, got %s at offset %zu", expected, got, offset(r));
}

/* One character that is not plain: validates it and moves behind it. */
static bool odd_character(struct jread *r, bool *ret_escaped)
{
    unsigned char c = (unsigned char)*r->at;
    size_t n = 0;
    if (c == '\\') {
        if (jtoken_escape(r->at, r->end, &n) < 0) {
            jread_fail(r, ERR_SYNTAX, "an escape that is not allowed at offset %zu", offset(r));
            return false;
        }
        *ret_escaped = true;
    } else if (c < 0x20) {
        jread_fail(r, ERR_SYNTAX, "a raw control character in a string at offset %zu", offset(r));
        return false;
    } else {
        n = jscan_utf8(r->at, r->end);
        if (n == 0) {
            jread_fail(r, ERR_SYNTAX, "invalid UTF-8 at offset %zu", offset(r));
            return false;
        }
    }
    r->at += n;
    return true;
}

/* The reader is at the opening quote; what is between the quotes as it stands. */
static inline struct str string_scan(struct jread *r, bool *ret_escaped)
{
    const char *begin = ++r->at;
    *ret_escaped = false;
    for (;;) {
        r->at = jscan_plain(r->at, r->end);
        if (r->at >= r->end) {
            jread_fail(r, ERR_SYNTAX, "a string without an end at offset %zu", offset(r));
            return STR_NULL;
        }
        if (*r->at == '"')
            break;
        if (!odd_character(r, ret_escaped))
            return STR_NULL;
    }
    return (struct str){begin, (size_t)(r->at++ - begin)};
}

/* raw has been validated; an escape is never shorter than what it stands for. */
static struct str unescape(struct jread *r, struct str raw)
{
    char *copy = r->arena == NULL ? NULL : arena_alloc(r->arena, raw.n);
    if (copy == NULL) {
        jread_fail(r, r->arena == NULL ? ERR_LIMIT : arena_fault(r->arena),
                   "no room for a string with escapes before offset %zu", offset(r));
        return STR_NULL;
    }
    return (struct str){copy, jtoken_unescape(raw, copy)};
}

static inline struct str string_read(struct jread *r)
{
    bool escaped = false;
    struct str raw = string_scan(r, &escaped);
    return escaped && raw.p != NULL ? unescape(r, raw) : raw;
}

/* The reader is at '-' or a digit. */
static struct str number_scan(struct jread *r)
{
    const char *begin = r->at;
    size_t n = jtoken_number(begin, r->end);
    if (n == 0) {
        jread_fail(r, ERR_SYNTAX, "a malformed number at offset %zu", offset(r));
        return STR_NULL;
    }
    r->at += n;
    return (struct str){begin, n};
}

static bool literal_take(struct jread *r, struct str literal)
{
    if ((size_t)(r->end - r->at) < literal.n || memcmp(r->at, literal.p, literal.n) != 0) {
        jread_fail(r, ERR_SYNTAX, "expected %s at offset %zu", literal.p, offset(r));
        return false;
    }
    r->at += literal.n;
    return true;
}

static bool level_open(struct jread *r, bool array)
{
    if (r->depth == LIMIT_JSON_DEPTH) {
        jread_fail(r, ERR_LIMIT, "nested deeper than %d at offset %zu", LIMIT_JSON_DEPTH,
                   offset(r));
        return false;
    }
    r->at++;
    r->levels[r->depth++] = (struct jread_level){.index = -1, .array = array};
    return true;
}

/* Moves to the next element or member, or behind the closing bracket, which pops the level. */
static inline bool level_next(struct jread *r)
{
    struct jread_level *level = &r->levels[r->depth - 1];
    int close = level->array ? ']' : '}';
    int c = peek(r);
    level->key = STR_NULL;
    if (c == close) {
        r->at++;
        r->depth--;
        return false;
    }
    if (level->index >= 0) {
        if (c != ',') {
            r->depth--;
            fail_expected(r, level->array ? "',' or ']'" : "',' or '}'");
            return false;
        }
        r->at++;
    }
    level->index++;
    return true;
}

/* The name of the next member, escapes left in place, and the colon behind it. */
static inline struct str key_scan(struct jread *r, bool *ret_escaped)
{
    if (peek(r) != '"') {
        fail_expected(r, "a member's name");
        return STR_NULL;
    }
    struct str key = string_scan(r, ret_escaped);
    if (jread_failed(r))
        return STR_NULL;
    r->levels[r->depth - 1].key = key;
    if (peek(r) != ':') {
        fail_expected(r, "':'");
        return STR_NULL;
    }
    r->at++;
    return key;
}

static bool scalar_skip(struct jread *r, int c)
{
    bool ignored = false;
    switch (type_of(c)) {
    case JTYPE_STRING:
        (void)string_scan(r, &ignored);
        break;
    case JTYPE_NUMBER:
        (void)number_scan(r);
        break;
    case JTYPE_NULL:
        return literal_take(r, STR("null"));
    case JTYPE_BOOL:
        return literal_take(r, c == 't' ? STR("true") : STR("false"));
    case JTYPE_NONE:
    case JTYPE_ARRAY:
    case JTYPE_OBJECT:
        fail_expected(r, "a value");
        break;
    }
    return !jread_failed(r);
}

/* With whatever is wrong said, and where: the careful way. */
static void value_walk(struct jread *r)
{
    unsigned base = r->depth;
    bool escaped = false;
    do {
        int c = peek(r);
        bool opens = c == '{' || c == '[';
        if (opens ? !level_open(r, c == '[') : !scalar_skip(r, c))
            return;
        while (r->depth > base && !level_next(r)) {
            if (jread_failed(r))
                return;
        }
        if (r->depth > base && !r->levels[r->depth - 1].array)
            (void)key_scan(r, &escaped);
    } while (r->depth > base && !jread_failed(r));
}

/*
 * Most of an object is skipped, so that has a way of its own: no path is kept, and at whatever is
 * not valid it gives up and has changed nothing. The careful way then finds the same fault again.
 */
static void value_skip(struct jread *r)
{
    const char *behind = jskim_value(r->at, r->end, LIMIT_JSON_DEPTH - r->depth);
    if (behind != NULL)
        r->at = behind;
    else
        value_walk(r);
}

/* Every reading of a value begins here: the byte that it begins with, or -1 after a failure. */
static inline int value_begin(struct jread *r)
{
    if (jread_failed(r))
        return -1;
    assert(r->due);
    r->due = false;
    return peek(r);
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
    enum jtype type = type_of(peek(r));
    if (type == JTYPE_NONE)
        fail_expected(r, "a value");
    return type;
}

static bool level_begin(struct jread *r, bool array)
{
    int c = value_begin(r);
    if (c == (array ? '[' : '{'))
        return level_open(r, array);
    if (c == 'n')
        (void)literal_take(r, STR("null"));
    else if (!jread_failed(r))
        fail_expected(r, array ? "a list" : "an object");
    return false;
}

bool jread_object_begin(struct jread *r)
{
    return level_begin(r, false);
}

bool jread_array_begin(struct jread *r)
{
    return level_begin(r, true);
}

bool jread_object_next(struct jread *r, struct str *ret_key)
{
    if (jread_failed(r))
        return false;
    assert(!r->due && r->depth > 0 && !r->levels[r->depth - 1].array);
    if (!level_next(r))
        return false;
    bool escaped = false;
    struct str key = key_scan(r, &escaped);
    if (escaped && !jread_failed(r)) {
        key = unescape(r, key);
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
    r->due = level_next(r);
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
    int c = value_begin(r);
    if (c == '"')
        return string_read(r);
    if (c == 'n')
        (void)literal_take(r, STR("null"));
    else if (!jread_failed(r))
        fail_expected(r, "a string");
    return STR_NULL;
}

struct str jread_text(struct jread *r)
{
    int c = value_begin(r);
    if (c == '"')
        return string_read(r);
    if (type_of(c) == JTYPE_NUMBER)
        return number_scan(r);
    if (c == 'n')
        (void)literal_take(r, STR("null"));
    else if (!jread_failed(r))
        fail_expected(r, "a string or a number");
    return STR_NULL;
}

int64_t jread_i64(struct jread *r)
{
    int c = value_begin(r);
    int64_t value = 0;
    if (type_of(c) == JTYPE_NUMBER) {
        struct str text = number_scan(r);
        if (!jread_failed(r) && !str_to_i64(text, &value))
            jread_fail(r, ERR_RANGE, "expected an integer within 64 bits, got %.*s%s",
                       (int)MIN_OF(text.n, QUOTE_MAX_BYTES), text.p,
                       text.n > QUOTE_MAX_BYTES ? "..." : "");
    } else if (c == 'n') {
        (void)literal_take(r, STR("null"));
    } else if (!jread_failed(r)) {
        fail_expected(r, "an integer");
    }
    return value;
}

bool jread_bool(struct jread *r)
{
    int c = value_begin(r);
    if (c == 't')
        return literal_take(r, STR("true"));
    if (c == 'f')
        (void)literal_take(r, STR("false"));
    else if (c == 'n')
        (void)literal_take(r, STR("null"));
    else if (!jread_failed(r))
        fail_expected(r, "a boolean");
    return false;
}

struct str jread_raw(struct jread *r)
{
    if (value_begin(r) < 0 && jread_failed(r))
        return STR_NULL;
    const char *begin = r->at;
    value_skip(r);
    return jread_failed(r) ? STR_NULL : (struct str){begin, (size_t)(r->at - begin)};
}

void jread_skip(struct jread *r)
{
    (void)value_begin(r);
    if (!jread_failed(r))
        value_skip(r);
}

enum errc jread_finish(struct jread *r, struct err *reterr)
{
    if (!jread_failed(r)) {
        assert(!r->due && r->depth == 0);
        if (peek(r) >= 0)
            fail_expected(r, "the end");
    }
    if (jread_failed(r) && reterr != NULL)
        *reterr = r->err;
    return r->err.code;
}
