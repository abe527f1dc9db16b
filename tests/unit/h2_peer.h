/* The other end of an HTTP/2 connection, frame by frame: it can send what no correct library would
 * send, and keeps each frame that comes. Only the compression of headers is nghttp2's. */
#pragma once

#include "raw_conn.h"

#include <nghttp2/nghttp2.h>
#include <stdio.h>
#include <sys/un.h>

#define H2_FRAME_HEAD  ((size_t)9)
#define H2_FRAME_BYTES ((size_t)16384)
#define H2_PREFACE     "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

struct h2_frame {
    uint8_t type;
    uint8_t flags;
    uint32_t stream;
    char *text; /* the payload; of HEADERS a line "name: value" for each */
    size_t n;
};

struct h2_peer {
    struct raw_conn conn;
    nghttp2_hd_deflater *deflater;
    nghttp2_hd_inflater *inflater;
    struct h2_frame frames[1024];
    size_t n;
};

static inline void h2_adopt(struct h2_peer *p, struct loop *l, int fd)
{
    *p = (struct h2_peer){.n = 0};
    raw_conn_adopt(&p->conn, l, fd);
    ck_assert_int_eq(nghttp2_hd_deflate_new(&p->deflater, 4096), 0);
    ck_assert_int_eq(nghttp2_hd_inflate_new(&p->inflater), 0);
}

static inline void h2_connect(struct h2_peer *p, struct loop *l, const char *path)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    (void)snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
    h2_adopt(p, l, fd);
}

static inline void h2_close(struct h2_peer *p)
{
    for (size_t i = 0; i < p->n; i++)
        free(p->frames[i].text);
    p->n = 0;
    nghttp2_hd_deflate_del(p->deflater);
    nghttp2_hd_inflate_del(p->inflater);
    raw_conn_close(&p->conn);
}

/* ---- what it sends ---- */

static inline void h2_put_u32(struct buf *b, uint32_t v)
{
    for (unsigned shift = 32; shift > 0; shift -= 8)
        buf_putc(b, (char)(uint8_t)(v >> (shift - 8)));
}

/* The length of a frame is that of its payload, or a lie. */
static inline void h2_put_frame_head(struct h2_peer *p, size_t n, uint8_t type, uint8_t flags,
                                     uint32_t stream)
{
    char bytes[16];
    struct buf head = BUF_ON(bytes);
    h2_put_u32(&head, (uint32_t)n << 8 | type);
    buf_putc(&head, (char)flags);
    h2_put_u32(&head, stream);
    raw_conn_send(&p->conn, buf_str(&head));
}

static inline void h2_put_frame(struct h2_peer *p, uint8_t type, uint8_t flags, uint32_t stream,
                                struct str payload)
{
    h2_put_frame_head(p, payload.n, type, flags, stream);
    raw_conn_send(&p->conn, payload);
}

/* RST_STREAM, WINDOW_UPDATE */
static inline void h2_put_number(struct h2_peer *p, uint8_t type, uint32_t stream, uint32_t v)
{
    char bytes[8];
    struct buf b = BUF_ON(bytes);
    h2_put_u32(&b, v);
    h2_put_frame(p, type, 0, stream, buf_str(&b));
}

static inline void h2_put_setting(struct h2_peer *p, uint16_t id, uint32_t v)
{
    char bytes[8];
    struct buf b = BUF_ON(bytes);
    buf_putc(&b, (char)(id >> 8));
    buf_putc(&b, (char)id);
    h2_put_u32(&b, v);
    h2_put_frame(p, NGHTTP2_SETTINGS, 0, 0, buf_str(&b));
}

static inline void h2_put_goaway(struct h2_peer *p, uint32_t last, uint32_t code)
{
    char bytes[16];
    struct buf b = BUF_ON(bytes);
    h2_put_u32(&b, last);
    h2_put_u32(&b, code);
    h2_put_frame(p, NGHTTP2_GOAWAY, 0, 0, buf_str(&b));
}

/* nghttp2's headers have pointers to bytes that it could change; it does not. */
static inline uint8_t *h2_bytes(const char *text)
{
    uint8_t *ret = NULL;
    memcpy(&ret, &text, sizeof(ret));
    return ret;
}

/* lines: "name: value", each with its end of line */
static inline void h2_put_headers(struct h2_peer *p, uint8_t flags, uint32_t stream,
                                  const char *lines)
{
    static uint8_t block[100000];
    nghttp2_nv pairs[32];
    size_t n = 0;
    struct str line;
    struct str rest = str_of(lines);
    while (rest.n > 0) {
        (void)str_cut(rest, '\n', &line, &rest);
        const char *colon = memmem(line.p + 1, line.n - 1, ": ", 2);
        ck_assert(colon != NULL && n < COUNT_OF(pairs));
        size_t name_n = (size_t)(colon - line.p);
        pairs[n++] = (nghttp2_nv){.name = h2_bytes(line.p),
                                  .value = h2_bytes(colon + 2),
                                  .namelen = name_n,
                                  .valuelen = line.n - name_n - 2};
    }
    ssize_t all = nghttp2_hd_deflate_hd(p->deflater, block, sizeof(block), pairs, n);
    ck_assert_int_ge(all, 0);
    struct str left = {(const char *)block, (size_t)all};
    uint8_t type = NGHTTP2_HEADERS;
    do {
        struct str piece = str_head(left, H2_FRAME_BYTES);
        left = str_skip(left, piece.n);
        h2_put_frame(p, type, left.n == 0 ? flags | NGHTTP2_FLAG_END_HEADERS : flags, stream,
                     piece);
        type = NGHTTP2_CONTINUATION;
        flags = 0;
    } while (left.n > 0);
}

/* A gRPC message in one DATA frame; its flag and its length may be a lie. */
static inline void h2_put_message(struct h2_peer *p, uint8_t flags, uint32_t stream, char flag,
                                  uint32_t length, struct str bytes)
{
    char prefix[8];
    struct buf b = BUF_ON(prefix);
    buf_putc(&b, flag);
    h2_put_u32(&b, length);
    h2_put_frame_head(p, b.n + bytes.n, NGHTTP2_DATA, flags, stream);
    raw_conn_send(&p->conn, buf_str(&b));
    raw_conn_send(&p->conn, bytes);
}

/* ---- what comes ---- */

static inline void h2_inflate(struct h2_peer *p, struct h2_frame *f, struct str block)
{
    struct buf lines;
    buf_init(&lines, 1 << 20);
    for (;;) {
        nghttp2_nv nv;
        int flags = 0;
        ssize_t n =
            nghttp2_hd_inflate_hd2(p->inflater, &nv, &flags, (const uint8_t *)block.p, block.n, 1);
        ck_assert_int_ge(n, 0);
        block = str_skip(block, (size_t)n);
        if ((flags & NGHTTP2_HD_INFLATE_EMIT) != 0)
            buf_printf(&lines, "%.*s: %.*s\n", (int)nv.namelen, (const char *)nv.name,
                       (int)nv.valuelen, (const char *)nv.value);
        if ((flags & NGHTTP2_HD_INFLATE_FINAL) != 0)
            break;
    }
    ck_assert_int_eq(nghttp2_hd_inflate_end_headers(p->inflater), 0);
    f->n = lines.n;
    f->text = strdup(buf_cstr(&lines));
    buf_done(&lines);
}

static inline uint32_t h2_u32(const char *p)
{
    const uint8_t *b = (const uint8_t *)p;
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

/* Takes the whole frames out of what has come. */
static inline void h2_take(struct h2_peer *p)
{
    struct buf *in = &p->conn.in;
    if (in->n >= sizeof(H2_PREFACE) - 1 && memcmp(in->p, H2_PREFACE, 3) == 0)
        raw_conn_consume(in, sizeof(H2_PREFACE) - 1);
    while (in->n >= H2_FRAME_HEAD) {
        size_t n = h2_u32(in->p) >> 8;
        if (in->n < H2_FRAME_HEAD + n)
            return;
        ck_assert_uint_lt(p->n, COUNT_OF(p->frames));
        struct h2_frame *f = &p->frames[p->n++];
        *f = (struct h2_frame){
            .type = (uint8_t)in->p[3], .flags = (uint8_t)in->p[4], .stream = h2_u32(in->p + 5)};
        struct str payload = {in->p + H2_FRAME_HEAD, n};
        if (f->type == NGHTTP2_HEADERS) {
            h2_inflate(p, f, payload);
        } else {
            f->text = malloc(n + 1);
            ck_assert_ptr_nonnull(f->text);
            memcpy(f->text, payload.p, n);
            f->n = n;
        }
        raw_conn_consume(in, H2_FRAME_HEAD + n);
    }
}

struct h2_wants {
    struct h2_peer *peer;
    uint8_t type;
    uint8_t flags;
    uint32_t stream;
    size_t nth;
    const struct h2_frame *found;
};

static inline bool h2_got(void *ctx)
{
    struct h2_wants *w = ctx;
    size_t n = 0;
    h2_take(w->peer);
    for (size_t i = 0; i < w->peer->n && w->found == NULL; i++) {
        const struct h2_frame *f = &w->peer->frames[i];
        if (f->type == w->type && f->stream == w->stream && (f->flags & w->flags) == w->flags &&
            ++n == w->nth)
            w->found = f;
    }
    return w->found != NULL;
}

/* Waits for the nth frame of a type, a stream, and with these flags. */
static inline const struct h2_frame *h2_await_here(struct h2_peer *p, uint8_t type, uint8_t flags,
                                                   uint32_t stream, size_t nth, struct here here)
{
    struct h2_wants w = {.peer = p, .type = type, .flags = flags, .stream = stream, .nth = nth};
    run_until_here(p->conn.loop, h2_got, &w, here);
    return w.found;
}

#define h2_await(p, type, flags, stream, nth) \
    h2_await_here(p, type, flags, stream, nth, HERE("h2_await(" #type ", " #stream ")"))

/* Whether such a frame has come already. */
static inline bool h2_has(struct h2_peer *p, uint8_t type, uint32_t stream)
{
    struct h2_wants w = {.peer = p, .type = type, .stream = stream, .nth = 1};
    return h2_got(&w);
}

/* The bytes of all DATA of a stream. */
static inline void h2_gather(struct h2_peer *p, uint32_t stream, struct buf *out)
{
    h2_take(p);
    for (size_t i = 0; i < p->n; i++) {
        const struct h2_frame *f = &p->frames[i];
        if (f->type == NGHTTP2_DATA && f->stream == stream)
            buf_put(out, (struct str){f->text, f->n});
    }
}
