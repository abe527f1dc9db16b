/*
 * Cuts a list or a stream into pieces, with a state machine over bytes. In a list, everything
 * except punctuation is a piece: keys, values of unknown keys, the metadata, items. A piece ends
 * where its brackets close. A piece that is completely inside a chunk is used in place; any other
 * is collected in `hold`. The strict reader validates keys and unknown values, and decoders
 * validate the other pieces, so every byte is validated. Therefore the size limit of a piece
 * applies to unknown values too.
 *
 * The outcome, including the text of an error, does not depend on the chunks.
 */
#include "json/jcut.h"

#include "json/jread.h"
#include "json/jscan.h"

enum state {
    AT_START,     /* expects the list */
    AT_FIRST_KEY, /* expects a key or '}' */
    AT_KEY,
    AT_COLON,
    AT_VALUE,
    AT_FIRST_ITEM, /* expects an item or ']' */
    AT_ITEM,
    BEHIND_ITEM,  /* expects ',' or ']' */
    BEHIND_VALUE, /* expects ',' or '}' */
    AT_END,
    IN_NESTED, /* in a piece that is a string, an object or an array */
    IN_BARE,   /* in a piece that is a number or a literal */
};

enum part {
    PART_KEY,
    PART_OTHER,    /* the value of an unknown key */
    PART_METADATA, /* the value of "metadata" */
    PART_KIND,     /* the value of "kind" */
    PART_ITEMS,    /* the value of "items" */
    PART_ITEM,
};

void jcut_init(struct jcut *c, enum jcut_mode mode, size_t max_piece, jcut_fn *fn, void *ctx)
{
    *c = (struct jcut){.mode = mode, .fn = fn, .ctx = ctx, .state = AT_START};
    buf_init(&c->hold, max_piece);
}

void jcut_done(struct jcut *c)
{
    buf_done(&c->hold);
}

void jcut_reset(struct jcut *c)
{
    struct buf hold = c->hold;
    buf_clear(&hold, LIMIT_KEEP_BYTES);
    *c = (struct jcut){.mode = c->mode, .fn = c->fn, .ctx = c->ctx, .state = AT_START};
    c->hold = hold;
}

static bool jcut_is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

static bool jcut_is_failed(const struct jcut *c)
{
    return c->err.code != OK;
}

static void jcut_fail_at(struct jcut *c, const char *what, uint64_t offset)
{
    (void)err_set(&c->err, ERR_SYNTAX, "%s at offset %llu", what, (unsigned long long)offset);
}

/* Whether n more bytes fit into the piece that began at c->begin. */
static bool jcut_fits(struct jcut *c, size_t n)
{
    if (n <= c->hold.max - c->hold.n)
        return true;
    (void)err_set(&c->err, ERR_LIMIT, "the %s at offset %llu is larger than the limit of %zu bytes",
                  c->mode == JCUT_LIST ? "value" : "line", (unsigned long long)c->begin,
                  c->hold.max);
    return false;
}

static bool jcut_hold_put(struct jcut *c, struct str bytes)
{
    buf_put(&c->hold, bytes);
    if (!buf_failed(&c->hold))
        return true;
    (void)err_set(&c->err, ERR_NOMEM, "no memory for the %zu bytes at offset %llu",
                  c->hold.n + bytes.n, (unsigned long long)c->begin);
    return false;
}

/* Returns the whole piece that ends with `last`: from `hold` if it began in an earlier chunk. */
static bool jcut_piece_join(struct jcut *c, struct str last, struct str *ret)
{
    *ret = last;
    if (c->hold.n == 0)
        return true;
    if (!jcut_hold_put(c, last))
        return false;
    *ret = buf_str(&c->hold);
    return true;
}

static void jcut_deliver(struct jcut *c, enum jcut_piece kind, struct str piece)
{
    enum errc code = c->fn(c->ctx, kind, piece, &c->err);
    if (code == OK)
        c->err.code = OK;
    else if (c->err.code == OK)
        (void)err_set(&c->err, code, "refused what begins at offset %llu",
                      (unsigned long long)c->begin);
}

static bool jcut_validate(struct jcut *c, struct str json)
{
    struct jread r;
    jread_init(&r, json, NULL);
    jread_skip(&r);
    if (jread_finish(&r, &c->err) == OK)
        return true;
    (void)err_wrap(&c->err, "from offset %llu on", (unsigned long long)c->begin);
    return false;
}

/* Refuses a repeated key: it could hide half of a list. */
static bool jcut_is_first(struct jcut *c, bool *seen, const char *name)
{
    if (*seen)
        (void)err_set(&c->err, ERR_SYNTAX, "a second %s at offset %llu", name,
                      (unsigned long long)c->begin);
    *seen = true;
    return !jcut_is_failed(c);
}

static void jcut_key_end(struct jcut *c, struct str quoted)
{
    c->part = PART_OTHER;
    if (str_eq(quoted, STR("\"items\""))) {
        c->part = PART_ITEMS;
        (void)jcut_is_first(c, &c->seen_items, "\"items\"");
    } else if (str_eq(quoted, STR("\"metadata\""))) {
        c->part = PART_METADATA;
        (void)jcut_is_first(c, &c->seen_metadata, "\"metadata\"");
    } else if (str_eq(quoted, STR("\"kind\""))) {
        c->part = PART_KIND;
        (void)jcut_is_first(c, &c->seen_kind, "\"kind\"");
    }
}

static void jcut_piece_end(struct jcut *c, struct str piece)
{
    switch ((enum part)c->part) {
    case PART_KEY:
        c->state = AT_COLON;
        if (jcut_validate(c, piece))
            jcut_key_end(c, piece);
        return;
    case PART_OTHER:
        c->state = BEHIND_VALUE;
        (void)jcut_validate(c, piece);
        return;
    case PART_METADATA:
        c->state = BEHIND_VALUE;
        jcut_deliver(c, JCUT_METADATA, piece);
        return;
    case PART_KIND:
        c->state = BEHIND_VALUE;
        jcut_deliver(c, JCUT_KIND, piece);
        return;
    case PART_ITEMS:
        c->state = BEHIND_VALUE;
        if (!str_eq(piece, STR("null")))
            jcut_fail_at(c, "expected a list of items", c->begin);
        return;
    case PART_ITEM:
        c->state = BEHIND_ITEM;
        jcut_deliver(c, JCUT_ITEM, piece);
        return;
    }
}

/* The number of bytes that belong to the nested piece; *ret_closed: it ends there. */
static size_t jcut_nested_length(struct jcut *c, struct str s, bool *ret_closed)
{
    const char *at = s.p;
    const char *end = s.p + s.n;
    bool closed = false;
    while (at < end && !closed) {
        if (c->escaped) {
            c->escaped = false;
            at++;
        } else if (c->in_string) {
            at = jscan_plain(at, end);
            if (at == end)
                break;
            c->escaped = *at == '\\';
            c->in_string = *at != '"';
            closed = !c->in_string && c->depth == 0;
            at++;
        } else {
            char b = *at++;
            if (b == '"')
                c->in_string = true;
            else if (b == '{' || b == '[')
                c->depth++;
            else if (b == '}' || b == ']')
                closed = --c->depth == 0;
        }
    }
    *ret_closed = closed;
    return (size_t)(at - s.p);
}

static size_t jcut_bare_length(struct str s, bool *ret_closed)
{
    size_t n = 0;
    while (n < s.n && !jcut_is_space(s.p[n]) && memchr(",:]}[{\"", s.p[n], 7) == NULL)
        n++;
    *ret_closed = n < s.n;
    return n;
}

static size_t jcut_piece_take(struct jcut *c, struct str s)
{
    bool closed = false;
    size_t n =
        c->state == IN_NESTED ? jcut_nested_length(c, s, &closed) : jcut_bare_length(s, &closed);
    struct str piece = {s.p, n};
    if (!jcut_fits(c, n))
        return n;
    if (!closed) {
        (void)jcut_hold_put(c, piece);
    } else if (jcut_piece_join(c, piece, &piece)) {
        jcut_piece_end(c, piece);
        c->hold.n = 0;
    }
    return n;
}

/* Consumes nothing: the first byte is part of the piece. */
static size_t jcut_piece_begin(struct jcut *c, enum part part, char first)
{
    c->part = part;
    c->begin = c->offset;
    c->depth = 0;
    c->state = first == '"' || first == '{' || first == '[' ? IN_NESTED : IN_BARE;
    return 0;
}

static size_t jcut_value_begin(struct jcut *c, enum part part, char first)
{
    if (memchr(",:]}", first, 4) == NULL)
        return jcut_piece_begin(c, part, first);
    jcut_fail_at(c, "expected a value", c->offset);
    return 0;
}

/* yes: goes to `next`; otherwise fails with `what`. */
static size_t jcut_punctuation(struct jcut *c, bool yes, enum state next, const char *what)
{
    if (!yes) {
        jcut_fail_at(c, what, c->offset);
        return 0;
    }
    c->state = next;
    return 1;
}

/* Handles one byte between pieces (no white space); returns how many bytes are consumed. */
static size_t jcut_between(struct jcut *c, char b)
{
    switch ((enum state)c->state) {
    case AT_START:
        return jcut_punctuation(c, b == '{', AT_FIRST_KEY, "expected an object");
    case AT_FIRST_KEY:
        if (b == '}')
            return jcut_punctuation(c, true, AT_END, "");
        c->state = AT_KEY;
        return 0;
    case AT_KEY:
        if (b == '"')
            return jcut_piece_begin(c, PART_KEY, b);
        return jcut_punctuation(c, false, AT_END, "expected a member's name");
    case AT_COLON:
        return jcut_punctuation(c, b == ':', AT_VALUE, "expected ':'");
    case AT_VALUE:
        if (c->part == PART_ITEMS && b == '[')
            return jcut_punctuation(c, true, AT_FIRST_ITEM, "");
        return jcut_value_begin(c, (enum part)c->part, b);
    case AT_FIRST_ITEM:
        if (b == ']')
            return jcut_punctuation(c, true, BEHIND_VALUE, "");
        return jcut_value_begin(c, PART_ITEM, b);
    case AT_ITEM:
        return jcut_value_begin(c, PART_ITEM, b);
    case BEHIND_ITEM:
        if (b == ']')
            return jcut_punctuation(c, true, BEHIND_VALUE, "");
        return jcut_punctuation(c, b == ',', AT_ITEM, "expected ',' or ']'");
    case BEHIND_VALUE:
        if (b == '}')
            return jcut_punctuation(c, true, AT_END, "");
        return jcut_punctuation(c, b == ',', AT_KEY, "expected ',' or '}'");
    case AT_END:
    case IN_NESTED:
    case IN_BARE:
        break;
    }
    return jcut_punctuation(c, false, AT_END, "expected the end");
}

static void jcut_push_list(struct jcut *c, struct str s)
{
    while (s.n > 0 && !jcut_is_failed(c)) {
        size_t n = 1;
        if (c->state >= IN_NESTED)
            n = jcut_piece_take(c, s);
        else if (!jcut_is_space(*s.p))
            n = jcut_between(c, *s.p);
        s = str_skip(s, n);
        c->offset += n;
    }
}

static void jcut_line_end(struct jcut *c, struct str line)
{
    size_t blank = 0;
    while (blank < line.n && jcut_is_space(line.p[blank]))
        blank++;
    if (blank < line.n)
        jcut_deliver(c, JCUT_ITEM, line);
    c->hold.n = 0;
}

static void jcut_push_lines(struct jcut *c, struct str s)
{
    struct str line;
    struct str rest = s;
    while (rest.n > 0 && !jcut_is_failed(c)) {
        bool ends = str_cut(rest, '\n', &line, &rest);
        if (!jcut_fits(c, line.n))
            return;
        if (!ends) {
            (void)jcut_hold_put(c, line);
        } else if (jcut_piece_join(c, line, &line)) {
            jcut_line_end(c, line);
            c->begin = c->offset + (uint64_t)(s.n - rest.n);
        }
    }
    c->offset += s.n;
}

enum errc jcut_push(struct jcut *c, struct str chunk, struct err *reterr)
{
    if (!jcut_is_failed(c) && chunk.n > 0) {
        if (c->mode == JCUT_LIST)
            jcut_push_list(c, chunk);
        else
            jcut_push_lines(c, chunk);
    }
    if (jcut_is_failed(c) && reterr != NULL)
        *reterr = c->err;
    return c->err.code;
}

enum errc jcut_finish(struct jcut *c, struct err *reterr)
{
    if (!jcut_is_failed(c)) {
        if (c->mode == JCUT_LINES)
            jcut_line_end(c, buf_str(&c->hold));
        else if (c->state != AT_END)
            jcut_fail_at(c, "the list is cut short", c->offset);
        else if (!c->seen_items)
            jcut_fail_at(c, "a list without \"items\"", c->offset);
    }
    if (jcut_is_failed(c) && reterr != NULL)
        *reterr = c->err;
    return c->err.code;
}
