/*
 * Converts YAML to JSON. libyaml's events are written as JSON one by one, without a tree. An anchor
 * is stored as the range of output of its node, so an alias is a copy of bytes. The work is linear
 * in text and output, and the output has a limit. The keys of open mappings are also stored as
 * ranges. They are sorted when the mapping ends, so that repeated keys are neighbours. libyaml does
 * not recurse and looks ahead at most 1024 characters, so too deep nesting is refused before it
 * costs much.
 */
#include "json/yaml.h"

#include "base/map.h"
#include "json/jwrite.h"
#include "json/limit.h"
#include "json/yaml_scalar.h"

#include <stdio.h>
#include <stdlib.h>
/* libyaml's header; the included json/yaml.h has the same file name */
#include <yaml.h> /* NOLINT(readability-duplicate-include) */

struct anchor {
    struct str name;
    size_t start; /* of its JSON in the output */
    size_t end;   /* 0 while its node is open */
    unsigned height;
};

struct key {
    size_t start; /* of its JSON in the output, with the colon */
    size_t n;
    size_t line;
    size_t column;
};

struct level {
    bool mapping;
    bool key_next;
    struct anchor *anchor; /* NULL: none */
    size_t first_key;      /* bytes of conversion.keys that belong to outer mappings */
    unsigned height;       /* nesting height of its highest node so far; 0 for a scalar */
};

struct conversion {
    yaml_parser_t parser;
    bool lines;
    bool no_octals;
    struct str text;
    struct buf *out;
    struct jwrite w;
    size_t documents;
    size_t document_start;
    unsigned depth;
    struct level levels[LIMIT_JSON_DEPTH + 1]; /* the first is for the document */
    struct buf keys;                           /* struct key, of all open mappings */
    struct arena arena;
    struct map anchors;
    struct err err;
};

static enum errc yaml_fail_at(struct conversion *c, yaml_mark_t at, enum errc code, const char *fmt,
                              ...) _printf_(4, 5);

static enum errc yaml_fail_at(struct conversion *c, yaml_mark_t at, enum errc code, const char *fmt,
                              ...)
{
    char text[192];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    return err_set(&c->err, code, "line %zu, column %zu: %s", at.line + 1, at.column + 1, text);
}

/* For "%.*s" in an error: quotes only the start. */
static struct str yaml_cut(struct str s)
{
    s.n = MIN_OF(s.n, (size_t)60);
    return s;
}

static enum errc yaml_parser_failed(struct conversion *c)
{
    const yaml_parser_t *p = &c->parser;
    yaml_mark_t at = p->problem_mark;
    const char *problem = p->problem == NULL ? "cannot be read" : p->problem;
    if (p->error == YAML_MEMORY_ERROR)
        return err_set(&c->err, ERR_NOMEM, "out of memory");
    if (p->error == YAML_READER_ERROR) {
        at = (yaml_mark_t){0};
        for (size_t i = 0; i < MIN_OF(p->problem_offset, c->text.n); i++) {
            at.column = c->text.p[i] == '\n' ? 0 : at.column + 1;
            at.line += c->text.p[i] == '\n' ? 1 : 0;
        }
    }
    if (p->context == NULL)
        return yaml_fail_at(c, at, ERR_SYNTAX, "%s", problem);
    return yaml_fail_at(c, at, ERR_SYNTAX, "%s %s", problem, p->context);
}

static enum errc yaml_output_failed(const struct buf *out, struct err *reterr)
{
    if (buf_fault(out) == ERR_NOMEM)
        return err_set(reterr, ERR_NOMEM, "out of memory");
    return err_set(reterr, ERR_LIMIT, "the text, as JSON, does not fit into %zu bytes", out->max);
}

static struct level *yaml_top(struct conversion *c)
{
    return &c->levels[c->depth];
}

static bool yaml_at_key(struct conversion *c)
{
    return yaml_top(c)->mapping && yaml_top(c)->key_next;
}

static void yaml_value_done(struct conversion *c, unsigned height)
{
    struct level *l = yaml_top(c);
    l->key_next = l->mapping;
    l->height = MAX_OF(l->height, height);
}

static size_t yaml_next_start(const struct conversion *c)
{
    return c->out->n + (c->w.comma ? 1 : 0);
}

/* A later anchor hides an earlier one of the same name, as YAML defines. */
static enum errc yaml_anchor_begin(struct conversion *c, const yaml_event_t *e,
                                   const yaml_char_t *name, struct anchor **ret)
{
    *ret = NULL;
    if (name == NULL)
        return OK;
    struct anchor *a = arena_alloc(&c->arena, sizeof(*a));
    struct str key = arena_dup(&c->arena, str_of((const char *)name));
    if (a == NULL || key.p == NULL)
        return yaml_fail_at(c, e->start_mark, ERR_LIMIT, "too many anchors");
    *a = (struct anchor){.name = key, .start = yaml_next_start(c)};
    (void)map_del(&c->anchors, key);
    if (map_put(&c->anchors, a) != OK)
        return err_set(&c->err, ERR_NOMEM, "out of memory");
    *ret = a;
    return OK;
}

static void yaml_anchor_end(struct conversion *c, struct anchor *a, unsigned height)
{
    if (a == NULL)
        return;
    a->end = c->out->n;
    a->height = height;
}

static enum errc yaml_on_alias(struct conversion *c, const yaml_event_t *e)
{
    struct str name = str_of((const char *)e->data.alias.anchor);
    const struct anchor *a = map_get(&c->anchors, name);
    if (yaml_at_key(c))
        return yaml_fail_at(c, e->start_mark, ERR_SYNTAX, "a key cannot be an alias");
    if (a == NULL)
        return yaml_fail_at(c, e->start_mark, ERR_SYNTAX,
                            "unknown alias (an unquoted \"*\" begins one)");
    if (a->end == 0)
        return yaml_fail_at(c, e->start_mark, ERR_SYNTAX, "an alias within its own anchor");
    if (c->depth + a->height > LIMIT_JSON_DEPTH)
        return yaml_fail_at(c, e->start_mark, ERR_LIMIT, "nested deeper than %d levels",
                            LIMIT_JSON_DEPTH);
    size_t n = a->end - a->start;
    /* Reserve first: source and target of the copy are the same buffer. */
    if (!buf_reserve(c->out, n + 1))
        return yaml_output_failed(c->out, &c->err);
    jwrite_raw(&c->w, (struct str){c->out->p + a->start, n});
    yaml_value_done(c, a->height);
    return OK;
}

/* "017", "-007", "0_7": a leading zero and more digits. */
static bool yaml_is_octal(struct str text)
{
    if (text.n > 0 && (text.p[0] == '-' || text.p[0] == '+'))
        text = str_skip(text, 1);
    if (text.n < 2 || text.p[0] != '0')
        return false;
    for (size_t i = 1; i < text.n; i++) {
        if ((text.p[i] < '0' || text.p[i] > '9') && text.p[i] != '_')
            return false;
    }
    return true;
}

static enum errc yaml_read_scalar(struct conversion *c, const yaml_event_t *e,
                                  struct yaml_scalar *ret)
{
    struct str text = {(const char *)e->data.scalar.value, e->data.scalar.length};
    struct err why = ERR_INIT;
    if (c->no_octals && e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE && yaml_is_octal(text))
        return yaml_fail_at(
            c, e->start_mark, ERR_SYNTAX,
            "\"%.*s\" begins with a zero, which YAML may read as octal: leave the zero out",
            (int)MIN_OF(text.n, (size_t)32), text.p);
    enum errc code = yaml_scalar_read(text, e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE,
                                      str_of((const char *)e->data.scalar.tag), ret, &why);
    return code == OK ? OK : yaml_fail_at(c, e->start_mark, code, "%s", why.text);
}

static enum errc yaml_on_key(struct conversion *c, const yaml_event_t *e)
{
    struct str text = {(const char *)e->data.scalar.value, e->data.scalar.length};
    struct yaml_scalar s = {.type = JTYPE_NULL};
    if (e->data.scalar.anchor != NULL)
        return yaml_fail_at(c, e->start_mark, ERR_SYNTAX, "a key cannot have an anchor");
    if (e->data.scalar.plain_implicit && str_eq(text, STR("<<")))
        return yaml_fail_at(c, e->start_mark, ERR_SYNTAX,
                            "the merge key \"<<\" is not supported; spell the fields out");
    enum errc code = yaml_read_scalar(c, e, &s);
    if (code != OK)
        return code;
    if (s.type == JTYPE_NULL)
        return yaml_fail_at(c, e->start_mark, ERR_SYNTAX, "a key cannot be null");
    if (s.type == JTYPE_NUMBER)
        text = (struct str){s.number, s.n};
    else if (s.type == JTYPE_BOOL)
        text = s.truth ? STR("true") : STR("false");
    struct key key = {
        .start = yaml_next_start(c),
        .line = e->start_mark.line,
        .column = e->start_mark.column,
    };
    jwrite_key(&c->w, text);
    key.n = c->out->n - key.start;
    buf_put(&c->keys, (struct str){(const char *)&key, sizeof(key)});
    if (buf_failed(&c->keys))
        return err_set(&c->err, ERR_NOMEM, "out of memory");
    yaml_top(c)->key_next = false;
    return OK;
}

static enum errc yaml_on_scalar(struct conversion *c, const yaml_event_t *e)
{
    struct str text = {(const char *)e->data.scalar.value, e->data.scalar.length};
    struct yaml_scalar s = {.type = JTYPE_NULL};
    struct anchor *anchor = NULL;
    if (yaml_at_key(c))
        return yaml_on_key(c, e);
    enum errc code = yaml_read_scalar(c, e, &s);
    if (code == OK)
        code = yaml_anchor_begin(c, e, e->data.scalar.anchor, &anchor);
    if (code != OK)
        return code;
    if (s.type == JTYPE_NULL)
        jwrite_null(&c->w);
    else if (s.type == JTYPE_BOOL)
        jwrite_bool(&c->w, s.truth);
    else if (s.type == JTYPE_NUMBER)
        jwrite_raw(&c->w, (struct str){s.number, s.n});
    else
        jwrite_str(&c->w, text);
    yaml_anchor_end(c, anchor, 0);
    yaml_value_done(c, 0);
    return OK;
}

static enum errc yaml_on_begin(struct conversion *c, const yaml_event_t *e, bool mapping)
{
    struct str tag =
        str_of((const char *)(mapping ? e->data.mapping_start.tag : e->data.sequence_start.tag));
    struct level l = {.mapping = mapping, .key_next = mapping, .first_key = c->keys.n};
    if (yaml_at_key(c))
        return yaml_fail_at(c, e->start_mark, ERR_SYNTAX, "a key must be a scalar");
    if (c->depth == LIMIT_JSON_DEPTH)
        return yaml_fail_at(c, e->start_mark, ERR_LIMIT, "nested deeper than %d levels",
                            LIMIT_JSON_DEPTH);
    if (!yaml_tag_allows(tag, mapping ? STR("map") : STR("seq")))
        return yaml_fail_at(c, e->start_mark, ERR_SYNTAX, "a tag that is not supported here");
    enum errc code = yaml_anchor_begin(
        c, e, mapping ? e->data.mapping_start.anchor : e->data.sequence_start.anchor, &l.anchor);
    if (code != OK)
        return code;
    if (mapping)
        jwrite_object_begin(&c->w);
    else
        jwrite_array_begin(&c->w);
    c->levels[++c->depth] = l;
    return OK;
}

/* Compares by bytes; of equal keys the earlier is first. */
static int yaml_compare_keys(const void *left, const void *right, void *output)
{
    const struct key *a = left;
    const struct key *b = right;
    const char *bytes = output;
    int order = str_cmp((struct str){bytes + a->start, a->n}, (struct str){bytes + b->start, b->n});
    if (order != 0)
        return order;
    return a->start < b->start ? -1 : 1;
}

static enum errc yaml_check_keys(struct conversion *c, size_t first_key)
{
    size_t n = (c->keys.n - first_key) / sizeof(struct key);
    if (n < 2)
        return OK;
    struct key *keys = (struct key *)(void *)(c->keys.p + first_key);
    qsort_r(keys, n, sizeof(*keys), yaml_compare_keys, c->out->p);
    for (size_t i = 1; i < n; i++) {
        struct str a = {c->out->p + keys[i - 1].start, keys[i - 1].n};
        struct str b = {c->out->p + keys[i].start, keys[i].n};
        if (!str_eq(a, b))
            continue;
        yaml_mark_t at = {.line = keys[i].line, .column = keys[i].column};
        b.n--; /* without the colon */
        return yaml_fail_at(c, at, ERR_SYNTAX, "the key %.*s is there already, on line %zu",
                            STR_ARG(yaml_cut(b)), keys[i - 1].line + 1);
    }
    return OK;
}

static enum errc yaml_on_end(struct conversion *c)
{
    const struct level *l = yaml_top(c);
    assert(c->depth > 0);
    if (l->mapping) {
        enum errc code = yaml_check_keys(c, l->first_key);
        if (code != OK)
            return code;
        c->keys.n = l->first_key;
        jwrite_object_end(&c->w);
    } else
        jwrite_array_end(&c->w);
    yaml_anchor_end(c, l->anchor, l->height + 1);
    c->depth--;
    yaml_value_done(c, l->height + 1);
    return OK;
}

static enum errc yaml_on_document(struct conversion *c, const yaml_event_t *e)
{
    if (c->documents > 0 && !c->lines)
        return yaml_fail_at(c, e->start_mark, ERR_SYNTAX,
                            "a second document; there must be one only");
    c->documents++;
    c->document_start = c->out->n;
    jwrite_init(&c->w, c->out);
    map_done(&c->anchors);
    arena_reset(&c->arena);
    return OK;
}

static void yaml_on_document_end(struct conversion *c)
{
    struct str json = str_skip(buf_str(c->out), c->document_start);
    if (!c->lines)
        return;
    if (str_eq(json, STR("null")))
        c->out->n = c->document_start;
    else
        buf_putc(c->out, '\n');
}

static enum errc yaml_on_event(struct conversion *c, const yaml_event_t *e)
{
    switch (e->type) {
    case YAML_DOCUMENT_START_EVENT:
        return yaml_on_document(c, e);
    case YAML_DOCUMENT_END_EVENT:
        yaml_on_document_end(c);
        return OK;
    case YAML_ALIAS_EVENT:
        return yaml_on_alias(c, e);
    case YAML_SCALAR_EVENT:
        return yaml_on_scalar(c, e);
    case YAML_SEQUENCE_START_EVENT:
        return yaml_on_begin(c, e, false);
    case YAML_MAPPING_START_EVENT:
        return yaml_on_begin(c, e, true);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        return yaml_on_end(c);
    case YAML_STREAM_END_EVENT:
        if (c->documents == 0 && !c->lines)
            buf_put(c->out, STR("null"));
        return OK;
    case YAML_NO_EVENT:
    case YAML_STREAM_START_EVENT:
        break;
    }
    return OK;
}

static enum errc yaml_convert_events(struct conversion *c)
{
    for (bool more = true; more;) {
        yaml_event_t e;
        if (yaml_parser_parse(&c->parser, &e) == 0)
            return yaml_parser_failed(c);
        enum errc code = yaml_on_event(c, &e);
        more = e.type != YAML_STREAM_END_EVENT;
        yaml_event_delete(&e);
        if (code != OK)
            return code;
        if (buf_failed(c->out))
            return yaml_output_failed(c->out, &c->err);
    }
    return OK;
}

static enum errc yaml_convert(struct str text, bool lines, bool no_octals, struct buf *out,
                              struct err *reterr)
{
    struct conversion c = {.lines = lines, .no_octals = no_octals, .text = text, .out = out};
    if (yaml_parser_initialize(&c.parser) == 0)
        return err_set(reterr, ERR_NOMEM, "out of memory");
    yaml_parser_set_input_string(&c.parser, (const unsigned char *)(text.p == NULL ? "" : text.p),
                                 text.n);
    jwrite_init(&c.w, out);
    /* A key needs at least one byte of the text. */
    buf_init(&c.keys, (text.n + 1) * sizeof(struct key));
    arena_init(&c.arena, LIMIT_YAML_ANCHORS);
    /* A fixed seed is safe: an operator writes the names and has no reason to make them collide. */
    map_init(&c.anchors, offsetof(struct anchor, name), (struct map_seed){0, 0});
    enum errc code = yaml_convert_events(&c);
    map_done(&c.anchors);
    arena_done(&c.arena);
    buf_done(&c.keys);
    yaml_parser_delete(&c.parser);
    return code == OK ? OK : err_set(reterr, code, "%s", c.err.text);
}

static bool yaml_is_json(struct str text)
{
    text = str_trim(text);
    return text.n > 0 && text.p[0] == '{';
}

static enum errc yaml_one_document(struct str text, bool no_octals, struct buf *out,
                                   struct err *reterr)
{
    if (!yaml_is_json(text))
        return yaml_convert(text, false, no_octals, out, reterr);
    buf_put(out, text);
    return buf_failed(out) ? yaml_output_failed(out, reterr) : OK;
}

enum errc yaml_to_json(struct str text, struct buf *out, struct err *reterr)
{
    return yaml_one_document(text, false, out, reterr);
}

enum errc yaml_to_json_settings(struct str text, struct buf *out, struct err *reterr)
{
    return yaml_one_document(text, true, out, reterr);
}

/*
 * Writes consecutive JSON documents, one on each line, without white space outside strings. Checks
 * only nesting and strings; the reader of a line validates it.
 */
static enum errc yaml_json_to_lines(struct str text, struct buf *out, struct err *reterr)
{
    size_t depth = 0;
    bool in_string = false;
    for (size_t i = 0; i < text.n && !buf_failed(out); i++) {
        char ch = text.p[i];
        bool space = ch == ' ' || ch == '\t' || ch == '\n' || ch == '\r';
        if (in_string && ch == '\\' && i + 1 < text.n)
            buf_putc(out, text.p[i++]);
        else if (ch == '"')
            in_string = !in_string;
        else if (!in_string && (ch == '{' || ch == '['))
            depth++;
        else if (!in_string && depth > 0 && (ch == '}' || ch == ']'))
            depth--;
        else if (space && !in_string)
            continue;
        else if (depth == 0)
            return err_set(reterr, ERR_SYNTAX, "expected a JSON object at offset %zu", i);
        buf_putc(out, text.p[i]);
        if (depth == 0 && !in_string)
            buf_putc(out, '\n');
    }
    if (buf_failed(out))
        return yaml_output_failed(out, reterr);
    if (depth > 0 || in_string)
        return err_set(reterr, ERR_SYNTAX, "the JSON ends before its last brace");
    return OK;
}

enum errc yaml_to_json_lines(struct str text, struct buf *out, struct err *reterr)
{
    return yaml_is_json(text) ? yaml_json_to_lines(text, out, reterr)
                              : yaml_convert(text, true, false, out, reterr);
}
