/*
 * Writes JSON. The only state is one flag: the caller keeps the nesting right. Almost all names and
 * keys need no escape and are copied at once.
 */
#include "json/jwrite.h"

#include "json/jscan.h"

void jwrite_init(struct jwrite *w, struct buf *out)
{
    *w = (struct jwrite){.out = out};
}

/* Call it before each key and each value. */
static void jwrite_separate(struct jwrite *w)
{
    if (w->comma)
        buf_putc(w->out, ',');
    w->comma = true;
}

static void jwrite_put_open(struct jwrite *w, char bracket)
{
    jwrite_separate(w);
    buf_putc(w->out, bracket);
    w->comma = false;
}

static void jwrite_put_close(struct jwrite *w, char bracket)
{
    buf_putc(w->out, bracket);
    w->comma = true;
}

void jwrite_object_begin(struct jwrite *w)
{
    jwrite_put_open(w, '{');
}

void jwrite_object_end(struct jwrite *w)
{
    jwrite_put_close(w, '}');
}

void jwrite_array_begin(struct jwrite *w)
{
    jwrite_put_open(w, '[');
}

void jwrite_array_end(struct jwrite *w)
{
    jwrite_put_close(w, ']');
}

/* The byte at p is not plain. Writes the character that begins there and returns its length. */
static size_t jwrite_put_odd(struct buf *out, const char *p, const char *end)
{
    static const char hex[] = "0123456789abcdef";
    static const char controls[] = "\"\\\b\f\n\r\t";
    static const char letters[] = "\"\\bfnrt";
    unsigned char c = (unsigned char)*p;
    if (c >= 0x80) {
        uint32_t rune = 0;
        size_t n = str_utf8((struct str){p, (size_t)(end - p)}, &rune);
        if (n == 0)
            buf_put(out, STR("\xef\xbf\xbd"));
        else if (!str_is_unprintable(rune))
            buf_put(out, (struct str){p, n});
        else if (rune > 0xffff)
            buf_printf(out, "\\u%04x\\u%04x", 0xd7c0 + (rune >> 10), 0xdc00 + (rune & 0x3ff));
        else
            buf_printf(out, "\\u%04x", rune);
        return MAX_OF(n, (size_t)1);
    }
    const char *found = memchr(controls, c, sizeof(controls) - 1);
    if (found != NULL) {
        const char escape[] = {'\\', letters[found - controls]};
        buf_put(out, (struct str){escape, sizeof(escape)});
    } else {
        const char escape[] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 0xf]};
        buf_put(out, (struct str){escape, sizeof(escape)});
    }
    return 1;
}

/* A string's text without its quotes. */
static void jwrite_put_text(struct buf *out, struct str s)
{
    const char *end = s.p + s.n;
    for (const char *p = s.p; p < end;) {
        const char *plain = jscan_plain(p, end);
        buf_put(out, (struct str){p, (size_t)(plain - p)});
        p = plain;
        if (p < end)
            p += jwrite_put_odd(out, p, end);
    }
}

static void jwrite_put_string(struct buf *out, struct str s)
{
    const char *end = s.p + s.n;
    const char *plain = jscan_plain(s.p, end);
    if (plain == end && s.n < out->max && buf_reserve(out, s.n + 2)) {
        char *to = out->p + out->n;
        to[0] = '"';
        memcpy(to + 1, s.p, s.n);
        to[s.n + 1] = '"';
        out->n += s.n + 2;
        return;
    }
    buf_putc(out, '"');
    jwrite_put_text(out, s);
    buf_putc(out, '"');
}

void jwrite_key(struct jwrite *w, struct str key)
{
    assert(key.p != NULL);
    jwrite_separate(w);
    jwrite_put_string(w->out, key);
    buf_putc(w->out, ':');
    w->comma = false;
}

void jwrite_raw_key(struct jwrite *w, struct str json)
{
    jwrite_separate(w);
    buf_put(w->out, json);
    buf_putc(w->out, ':');
    w->comma = false;
}

void jwrite_str(struct jwrite *w, struct str s)
{
    jwrite_separate(w);
    if (s.p == NULL)
        buf_put(w->out, STR("null"));
    else
        jwrite_put_string(w->out, s);
}

void jwrite_str_replacing(struct jwrite *w, struct str s, char c, struct str by)
{
    struct str head;
    assert(s.p != NULL && c > 0);
    jwrite_separate(w);
    buf_putc(w->out, '"');
    while (str_cut(s, c, &head, &s)) {
        jwrite_put_text(w->out, head);
        jwrite_put_text(w->out, by);
    }
    jwrite_put_text(w->out, head);
    buf_putc(w->out, '"');
}

void jwrite_i64(struct jwrite *w, int64_t v)
{
    jwrite_separate(w);
    buf_put_i64(w->out, v);
}

void jwrite_u64(struct jwrite *w, uint64_t v)
{
    jwrite_separate(w);
    buf_put_u64(w->out, v);
}

void jwrite_bool(struct jwrite *w, bool v)
{
    jwrite_separate(w);
    buf_put(w->out, v ? STR("true") : STR("false"));
}

void jwrite_null(struct jwrite *w)
{
    jwrite_separate(w);
    buf_put(w->out, STR("null"));
}

void jwrite_raw(struct jwrite *w, struct str json)
{
    jwrite_separate(w);
    buf_put(w->out, json);
}

void jwrite_str_at(struct jwrite *w, struct str key, struct str s)
{
    jwrite_key(w, key);
    jwrite_str(w, s);
}

void jwrite_i64_at(struct jwrite *w, struct str key, int64_t v)
{
    jwrite_key(w, key);
    jwrite_i64(w, v);
}

void jwrite_u64_at(struct jwrite *w, struct str key, uint64_t v)
{
    jwrite_key(w, key);
    jwrite_u64(w, v);
}

void jwrite_bool_at(struct jwrite *w, struct str key, bool v)
{
    jwrite_key(w, key);
    jwrite_bool(w, v);
}

void jwrite_raw_at(struct jwrite *w, struct str key, struct str json)
{
    jwrite_key(w, key);
    jwrite_raw(w, json);
}

void jwrite_object_at(struct jwrite *w, struct str key)
{
    jwrite_key(w, key);
    jwrite_object_begin(w);
}

void jwrite_array_at(struct jwrite *w, struct str key)
{
    jwrite_key(w, key);
    jwrite_array_begin(w);
}
