/*
 * Any bytes come back from their encoding, with white space anywhere in it. An accepted text is,
 * apart from white space, the encoding of the bytes that were read. As in Go the last digit may
 * have unused bits.
 */
#include "base/buf.h"
#include "base/limit.h"
#include "rules.h"
#include "json/base64.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* With a line break after every `line` characters; 0: none. */
static void encode(struct str s, size_t line, struct buf *out)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t n = 0;
    for (size_t i = 0; i < s.n; i += 3) {
        uint32_t bits = 0;
        for (size_t k = 0; k < 3; k++)
            bits = bits << 8 | (i + k < s.n ? (unsigned char)s.p[i + k] : 0);
        for (size_t k = 0; k < 4; k++) {
            buf_put(out,
                    i + k > s.n ? STR("=") : (struct str){&digits[bits >> (18 - 6 * k) & 63], 1});
            if (line > 0 && ++n % line == 0)
                buf_put(out, STR("\r\n"));
        }
    }
}

static void strip(struct str s, struct buf *out)
{
    for (size_t i = 0; i < s.n; i++) {
        if (memchr(" \t\r\n", s.p[i], 4) == NULL)
            buf_putc(out, s.p[i]);
    }
}

static bool same(struct str strict, struct str text)
{
    for (size_t i = 0; i < strict.n && i < text.n; i++) {
        bool last = i + 1 < strict.n && strict.p[i + 1] == '=';
        if (strict.p[i] != text.p[i] && !last)
            return false;
    }
    return strict.n == text.n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = {(const char *)data, size};
    struct str read;
    struct buf encoded;
    struct buf stripped;
    struct arena arena;
    arena_init(&arena, MIB);
    buf_init(&encoded, MIB);
    buf_init(&stripped, MIB);
    encode(text, size == 0 ? 0 : data[0] % 8, &encoded);
    check(base64_decode(buf_str(&encoded), &arena, &read) == OK && str_eq(read, text),
          "what is encoded is read back");
    if (base64_decode(text, &arena, &read) == OK) {
        buf_clear(&encoded, SIZE_MAX);
        encode(read, 0, &encoded);
        strip(text, &stripped);
        check(same(buf_str(&encoded), buf_str(&stripped)), "only the encoding is accepted");
    }
    buf_done(&encoded);
    buf_done(&stripped);
    arena_done(&arena);
    return 0;
}
