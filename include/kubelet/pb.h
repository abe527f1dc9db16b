/*
 * The wire format of Protocol Buffers, limited to what the kubelet's APIs use: varints, strings and
 * nested messages. The reader hands out one field after the other; all fields are read over, so a
 * decoder ignores unknown ones by doing nothing. The first failure is sticky and ends every loop:
 *
 *     struct pb_reader r = pb_read(bytes, &err);
 *     struct pb_field f;
 *     while (pb_next(&r, &f)) {
 *         if (f.number == 1)
 *             name = pb_str(&r, &f);
 *     }
 *     return err.code;
 *
 * Of repeated values of a single field the last wins, because a decoder just assigns. A known field
 * with another wire type fails, as it does in the kubelet. A map is a repeated message {key 1,
 * value 2}.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"

/* Nesting: the kubelet's messages have at most 6 levels. */
#define LIMIT_PB_DEPTH 16

enum pb_type {
    PB_VARINT = 0,
    PB_FIXED64 = 1,
    PB_BYTES = 2, /* strings, bytes and messages */
    PB_GROUP = 3, /* of proto2; read over as a whole */
    PB_FIXED32 = 5,
};

struct pb_field {
    uint32_t number;
    enum pb_type type;
    uint64_t value;   /* PB_VARINT, PB_FIXED64, PB_FIXED32 */
    struct str bytes; /* PB_BYTES: a view into the input */
};

struct pb_reader {
    const char *start;
    const char *at;
    const char *end;
    unsigned depth;
    struct err *err; /* shared with the readers of nested messages */
};

/* err must be ERR_INIT; failures go there. The bytes must outlive the views. */
struct pb_reader pb_read(struct str bytes, struct err *err);

/* False at the end of the message, or after a failure. */
bool pb_next(struct pb_reader *r, struct pb_field *ret);

/* The value of a field. A wrong wire type fails, and so does a string that is not UTF-8. */
struct str pb_str(struct pb_reader *r, const struct pb_field *f);
bool pb_bool(struct pb_reader *r, const struct pb_field *f);
int32_t pb_i32(struct pb_reader *r,
               const struct pb_field *f); /* cut to 32 bits, as protobuf does */
int64_t pb_i64(struct pb_reader *r, const struct pb_field *f);

/* A reader of the nested message. Nesting deeper than LIMIT_PB_DEPTH fails. */
struct pb_reader pb_inner(struct pb_reader *r, const struct pb_field *f);

/* Reports a value that is not allowed. An earlier failure stays. */
void pb_fail(struct pb_reader *r, enum errc code, const char *fmt, ...) _printf_(3, 4);

/*
 * Makes room for one more element, zeroed, in an array in the arena of *n elements of `size` bytes,
 * counts it in *n, and returns the array, which may have moved. NULL: no memory; the reader has
 * failed then, and *n is as before.
 */
void *pb_add(struct pb_reader *r, struct arena *a, void *array, size_t *n, size_t *cap, size_t size)
    _must_use_;

/* A growing array of strings, for repeated string fields. */
struct pb_strs {
    struct str *items;
    size_t n;
    size_t cap;
};

void pb_add_str(struct pb_reader *r, struct arena *a, struct pb_strs *to, const struct pb_field *f);

/*
 * Writers append to a buf, which keeps their failure. As proto3 does, they leave out a single field
 * that has its default: an empty string, 0, false. Strings must be UTF-8.
 */
void pb_put_str(struct buf *out, uint32_t number, struct str s);
void pb_put_bool(struct buf *out, uint32_t number, bool v);
void pb_put_i64(struct buf *out, uint32_t number, int64_t v);

/* An element of a repeated field; an empty string too. */
void pb_put_item(struct buf *out, uint32_t number, struct str s);

/* An entry of a map<string, string>. */
void pb_put_pair(struct buf *out, uint32_t number, struct str key, struct str value);

/* A nested message: what is appended between begin and end. begin returns what end needs. */
size_t pb_begin(struct buf *out, uint32_t number);
void pb_end(struct buf *out, size_t begun);
