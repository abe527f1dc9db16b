/*
 * Reads and writes the wire format of Protocol Buffers. The reader accepts what Go's does: a varint
 * of at most ten bytes, even if fewer would do, and groups, which it reads over.
 */
#include "kubelet/pb.h"

#include <stdio.h>

#define VARINT_BYTES 10
#define NUMBER_MAX   ((UINT64_C(1) << 29) - 1)
#define END_GROUP    4
#define KEY_NUMBER   1 /* of a map's entry */
#define VALUE_NUMBER 2

/* ---- reading ---- */

struct pb_reader pb_read(struct str bytes, struct err *err)
{
    assert(err->code == OK);
    const char *p = bytes.p == NULL ? "" : bytes.p;
    return (struct pb_reader){.start = p, .at = p, .end = p + bytes.n, .err = err};
}

void pb_fail(struct pb_reader *r, enum errc code, const char *fmt, ...)
{
    if (r->err->code != OK)
        return;
    char text[sizeof(r->err->text)];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    (void)err_set(r->err, code, "%s", text);
}

static bool pb_malformed(struct pb_reader *r, const char *what)
{
    pb_fail(r, ERR_SYNTAX, "%s at byte %zu of a message", what, (size_t)(r->at - r->start));
    return false;
}

static bool pb_varint(struct pb_reader *r, uint64_t *ret)
{
    uint64_t v = 0;
    for (unsigned i = 0; i < VARINT_BYTES; i++) {
        if (r->at + i == r->end)
            return pb_malformed(r, "cut short");
        uint8_t byte = (uint8_t)r->at[i];
        if (i == VARINT_BYTES - 1 && byte > 1)
            break;
        v |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (byte < 0x80) {
            r->at += i + 1;
            *ret = v;
            return true;
        }
    }
    return pb_malformed(r, "a number of more than 64 bits");
}

static bool pb_fixed(struct pb_reader *r, size_t n, uint64_t *ret)
{
    if ((size_t)(r->end - r->at) < n)
        return pb_malformed(r, "cut short");
    uint64_t v = 0;
    for (size_t i = 0; i < n; i++)
        v |= (uint64_t)(uint8_t)r->at[i] << (8 * i);
    r->at += n;
    *ret = v;
    return true;
}

static bool pb_bytes(struct pb_reader *r, struct str *ret)
{
    uint64_t n;
    if (!pb_varint(r, &n))
        return false;
    if (n > (uint64_t)(r->end - r->at))
        return pb_malformed(r, "cut short");
    *ret = (struct str){r->at, (size_t)n};
    r->at += n;
    return true;
}

static bool pb_tag(struct pb_reader *r, uint32_t *ret_number, unsigned *ret_type)
{
    uint64_t tag;
    if (!pb_varint(r, &tag))
        return false;
    if (tag >> 3 == 0 || tag >> 3 > NUMBER_MAX)
        return pb_malformed(r, "a field number that is not allowed");
    *ret_number = (uint32_t)(tag >> 3);
    *ret_type = tag & 7;
    return true;
}

static bool pb_value(struct pb_reader *r, unsigned type, struct pb_field *ret)
{
    switch (type) {
    case PB_VARINT:
        return pb_varint(r, &ret->value);
    case PB_FIXED64:
        return pb_fixed(r, 8, &ret->value);
    case PB_FIXED32:
        return pb_fixed(r, 4, &ret->value);
    case PB_BYTES:
        return pb_bytes(r, &ret->bytes);
    default:
        return pb_malformed(r, "an unknown wire type");
    }
}

/* Reads over a group, behind its start. */
static bool pb_group(struct pb_reader *r, uint32_t number)
{
    uint32_t open[LIMIT_PB_DEPTH] = {number};
    unsigned n = 1;
    while (n > 0) {
        unsigned type;
        struct pb_field f;
        if (r->at == r->end)
            return pb_malformed(r, "cut short");
        if (!pb_tag(r, &number, &type))
            return false;
        if (type == PB_GROUP) {
            if (n == LIMIT_PB_DEPTH)
                return pb_malformed(r, "too many levels");
            open[n++] = number;
        } else if (type == END_GROUP) {
            if (number != open[--n])
                return pb_malformed(r, "the end of another group");
        } else if (!pb_value(r, type, &f)) {
            return false;
        }
    }
    return true;
}

bool pb_next(struct pb_reader *r, struct pb_field *ret)
{
    unsigned type;
    if (r->err->code != OK || r->at == r->end)
        return false;
    *ret = (struct pb_field){.bytes = STR_NULL};
    if (!pb_tag(r, &ret->number, &type))
        return false;
    bool there = type == PB_GROUP ? pb_group(r, ret->number) : pb_value(r, type, ret);
    if (there)
        ret->type = (enum pb_type)type;
    return there;
}

static bool pb_is(struct pb_reader *r, const struct pb_field *f, enum pb_type type)
{
    if (f->type != type)
        pb_fail(r, ERR_SYNTAX, "field %u has wire type %u, expected %u", f->number, f->type, type);
    return f->type == type;
}

static bool pb_is_utf8(struct str s)
{
    while (s.n > 0) {
        uint32_t rune;
        size_t n = (uint8_t)s.p[0] < 0x80 ? 1 : str_utf8(s, &rune);
        if (n == 0)
            return false;
        s.p += n;
        s.n -= n;
    }
    return true;
}

struct str pb_str(struct pb_reader *r, const struct pb_field *f)
{
    if (!pb_is(r, f, PB_BYTES))
        return STR_NULL;
    if (pb_is_utf8(f->bytes))
        return f->bytes;
    pb_fail(r, ERR_SYNTAX, "field %u is not UTF-8", f->number);
    return STR_NULL;
}

bool pb_bool(struct pb_reader *r, const struct pb_field *f)
{
    return pb_is(r, f, PB_VARINT) && f->value != 0;
}

int32_t pb_i32(struct pb_reader *r, const struct pb_field *f)
{
    return pb_is(r, f, PB_VARINT) ? (int32_t)(uint32_t)f->value : 0;
}

int64_t pb_i64(struct pb_reader *r, const struct pb_field *f)
{
    return pb_is(r, f, PB_VARINT) ? (int64_t)f->value : 0;
}

struct pb_reader pb_inner(struct pb_reader *r, const struct pb_field *f)
{
    struct pb_reader none = {.start = "", .at = "", .err = r->err};
    none.end = none.at;
    if (!pb_is(r, f, PB_BYTES))
        return none;
    if (r->depth + 1 == LIMIT_PB_DEPTH) {
        (void)pb_malformed(r, "too many levels");
        return none;
    }
    return (struct pb_reader){.start = f->bytes.p,
                              .at = f->bytes.p,
                              .end = f->bytes.p + f->bytes.n,
                              .depth = r->depth + 1,
                              .err = r->err};
}

void *pb_add(struct pb_reader *r, struct arena *a, void *array, size_t *n, size_t *cap, size_t size)
{
    void *grown = r->err->code != OK ? NULL : arena_grow(a, array, *n, cap, size);
    if (grown == NULL) {
        pb_fail(r, arena_fault(a), "no room for a message's array");
        return NULL;
    }
    memset((char *)grown + *n * size, 0, size);
    (*n)++;
    return grown;
}

void pb_add_str(struct pb_reader *r, struct arena *a, struct pb_strs *to, const struct pb_field *f)
{
    struct str s = pb_str(r, f);
    struct str *grown = pb_add(r, a, to->items, &to->n, &to->cap, sizeof(s));
    if (grown == NULL)
        return;
    to->items = grown;
    to->items[to->n - 1] = s;
}

/* ---- writing ---- */

static size_t pb_print_varint(char bytes[VARINT_BYTES], uint64_t v)
{
    size_t n = 0;
    for (; v >= 0x80; v >>= 7)
        bytes[n++] = (char)(0x80 | (v & 0x7f));
    bytes[n++] = (char)v;
    return n;
}

static void pb_put_varint(struct buf *out, uint64_t v)
{
    char bytes[VARINT_BYTES];
    size_t n = pb_print_varint(bytes, v);
    buf_put(out, (struct str){bytes, n});
}

static void pb_put_tag(struct buf *out, uint32_t number, enum pb_type type)
{
    pb_put_varint(out, (uint64_t)number << 3 | type);
}

void pb_put_item(struct buf *out, uint32_t number, struct str s)
{
    pb_put_tag(out, number, PB_BYTES);
    pb_put_varint(out, s.n);
    buf_put(out, s);
}

void pb_put_str(struct buf *out, uint32_t number, struct str s)
{
    if (s.n > 0)
        pb_put_item(out, number, s);
}

void pb_put_i64(struct buf *out, uint32_t number, int64_t v)
{
    if (v == 0)
        return;
    pb_put_tag(out, number, PB_VARINT);
    pb_put_varint(out, (uint64_t)v);
}

void pb_put_bool(struct buf *out, uint32_t number, bool v)
{
    pb_put_i64(out, number, v);
}

void pb_put_pair(struct buf *out, uint32_t number, struct str key, struct str value)
{
    size_t entry = pb_begin(out, number);
    pb_put_str(out, KEY_NUMBER, key);
    pb_put_str(out, VALUE_NUMBER, value);
    pb_end(out, entry);
}

/* Reserves one byte for the length, which is enough for most messages. */
size_t pb_begin(struct buf *out, uint32_t number)
{
    pb_put_tag(out, number, PB_BYTES);
    buf_putc(out, '\0');
    return out->n;
}

void pb_end(struct buf *out, size_t begun)
{
    char length[VARINT_BYTES];
    if (buf_failed(out))
        return;
    assert(begun > 0 && begun <= out->n);
    size_t size = out->n - begun;
    size_t n = pb_print_varint(length, size);
    if (n > 1 && !buf_reserve(out, n - 1))
        return;
    memmove(out->p + begun + n - 1, out->p + begun, size);
    memcpy(out->p + begun - 1, length, n);
    out->n += n - 1;
}
