/*
 * Prints JSON with one loop over the reader and a stack of its own, which the reader's depth limit
 * bounds. The printer learns that an object or array is empty only when it asks for the first
 * member. So the opening bracket is written after that.
 */
#include "json/jprint.h"

#include "json/jread.h"
#include "json/jwrite.h"
#include "json/limit.h"

struct printer;

struct form {
    /* The first or a later member of the object or array at that depth begins. */
    void (*member)(struct printer *p, bool array, bool first, struct str key);
    void (*end)(struct printer *p, bool array, bool empty);
    void (*scalar)(struct printer *p);
};

struct level {
    bool array;
    bool begun; /* a member was printed */
};

struct printer {
    const struct form *form;
    struct jread r;
    struct buf *out;
    unsigned depth;
    bool inline_next; /* YAML: the next member is on the line of the preceding "- " */
    struct level levels[LIMIT_JSON_DEPTH];
};

static void jprint_put_spaces(struct buf *out, unsigned n)
{
    while (n-- > 0)
        buf_putc(out, ' ');
}

static void jprint_put_line(struct printer *p, unsigned depth, unsigned step)
{
    buf_putc(p->out, '\n');
    jprint_put_spaces(p->out, depth * step);
}

static void jprint_put_json_string(struct buf *out, struct str s)
{
    struct jwrite w;
    jwrite_init(&w, out);
    jwrite_str(&w, s.p == NULL ? STR("") : s);
}

/* ---- JSON ---- */

static void jprint_json_member(struct printer *p, bool array, bool first, struct str key)
{
    if (first)
        buf_putc(p->out, array ? '[' : '{');
    else
        buf_putc(p->out, ',');
    jprint_put_line(p, p->depth, 4);
    if (array)
        return;
    jprint_put_json_string(p->out, key);
    buf_put(p->out, STR(": "));
}

static void jprint_json_end(struct printer *p, bool array, bool empty)
{
    if (empty) {
        buf_put(p->out, array ? STR("[]") : STR("{}"));
        return;
    }
    jprint_put_line(p, p->depth, 4);
    buf_putc(p->out, array ? ']' : '}');
}

static void jprint_json_scalar(struct printer *p)
{
    if (jread_type(&p->r) == JTYPE_STRING)
        jprint_put_json_string(p->out, jread_str(&p->r));
    else
        buf_put(p->out, jread_raw(&p->r));
}

/* ---- YAML ---- */

/* Words that some YAML version or YAML reader does not read as a string. */
static bool jprint_is_reserved(struct str s)
{
    static const char *const words[] = {"null", "true", "false", "yes", "no",  "on",
                                        "off",  "y",    "n",     "inf", "nan", "infinity"};
    for (size_t i = 0; i < COUNT_OF(words); i++) {
        if (str_eq_nocase(s, str_of(words[i])))
            return true;
    }
    return false;
}

/* Begins with a letter, which excludes numbers and dates, and contains no YAML indicator. */
static bool jprint_is_plain(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        bool inner = (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.' || c == '/' ||
                     (c == ' ' && i + 1 < s.n);
        if (!letter && (i == 0 || !inner))
            return false;
    }
    return s.n > 0 && !jprint_is_reserved(s);
}

static void jprint_put_yaml_string(struct buf *out, struct str s)
{
    if (jprint_is_plain(s)) {
        buf_put(out, s);
        return;
    }
    buf_putc(out, '"');
    while (s.n > 0) {
        uint32_t rune = 0xfffd;
        size_t n = str_utf8(s, &rune);
        if (n == 0 || str_is_unprintable(rune) || rune == 0xfffd)
            buf_printf(out, rune > 0xffff ? "\\U%08X" : "\\u%04X", rune);
        else if (rune == '"' || rune == '\\')
            buf_printf(out, "\\%c", (char)rune);
        else
            buf_put(out, (struct str){s.p, n});
        s = str_skip(s, n == 0 ? 1 : n);
    }
    buf_putc(out, '"');
}

/* Every nested value is indented by two; also an array in an object, relative to its key. */
static void jprint_yaml_member(struct printer *p, bool array, bool first, struct str key)
{
    (void)first;
    if (!p->inline_next && p->out->n > 0)
        jprint_put_line(p, p->depth - 1, 2);
    p->inline_next = array;
    if (array) {
        buf_put(p->out, STR("- "));
        return;
    }
    jprint_put_yaml_string(p->out, key);
    buf_putc(p->out, ':');
}

static void jprint_yaml_space(struct printer *p)
{
    if (p->out->n > 0 && !p->inline_next)
        buf_putc(p->out, ' ');
    p->inline_next = false;
}

static void jprint_yaml_end(struct printer *p, bool array, bool empty)
{
    if (!empty)
        return;
    jprint_yaml_space(p);
    buf_put(p->out, array ? STR("[]") : STR("{}"));
}

static void jprint_yaml_scalar(struct printer *p)
{
    jprint_yaml_space(p);
    if (jread_type(&p->r) == JTYPE_STRING)
        jprint_put_yaml_string(p->out, jread_str(&p->r));
    else
        buf_put(p->out, jread_raw(&p->r));
}

/* ---- both ---- */

static const struct form as_json = {jprint_json_member, jprint_json_end, jprint_json_scalar};
static const struct form as_yaml = {jprint_yaml_member, jprint_yaml_end, jprint_yaml_scalar};

/* Prints the next value if it is a scalar. Otherwise opens it; its first member is printed next. */
static void jprint_print_value(struct printer *p)
{
    enum jtype type = jread_type(&p->r);
    if (type != JTYPE_ARRAY && type != JTYPE_OBJECT) {
        p->form->scalar(p);
        return;
    }
    bool array = type == JTYPE_ARRAY;
    if (array ? jread_array_begin(&p->r) : jread_object_begin(&p->r))
        p->levels[p->depth++] = (struct level){.array = array};
}

/* Prints one member of the innermost open object or array, or its end. */
static void jprint_print_next(struct printer *p)
{
    struct level *l = &p->levels[p->depth - 1];
    struct str key = STR_NULL;
    if (l->array ? jread_array_next(&p->r) : jread_object_next(&p->r, &key)) {
        p->form->member(p, l->array, !l->begun, key);
        l->begun = true;
        jprint_print_value(p);
    } else {
        p->depth--;
        p->form->end(p, l->array, !l->begun);
    }
}

static enum errc jprint_print(const struct form *form, struct str document, struct arena *arena,
                              struct buf *out, struct err *reterr)
{
    struct printer p = {.form = form, .out = out};
    jread_init(&p.r, document, arena);
    jprint_print_value(&p);
    while (p.depth > 0 && !jread_failed(&p.r))
        jprint_print_next(&p);
    buf_putc(out, '\n');
    enum errc code = jread_finish(&p.r, reterr);
    if (code == OK && buf_failed(out))
        code = err_set(reterr, buf_fault(out), "the answer is too large to print");
    return code;
}

enum errc jprint_json(struct str document, struct arena *arena, struct buf *out, struct err *reterr)
{
    return jprint_print(&as_json, document, arena, out, reterr);
}

enum errc jprint_yaml(struct str document, struct arena *arena, struct buf *out, struct err *reterr)
{
    return jprint_print(&as_yaml, document, arena, out, reterr);
}
