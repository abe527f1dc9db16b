/* The texts in gRPC's headers, and the framing of messages: a flag byte, a length of four bytes
 * with the highest first, the bytes. A message may be cut into DATA frames at any byte. */
#include "grpc_text.h"

#define TIMEOUT_DIGITS 8
#define TIMEOUT_MAX    UINT64_C(99999999)

bool grpc_text_is_content_type(struct str s)
{
    struct str name = STR("application/grpc");
    if (!str_starts(s, name))
        return false;
    s = str_skip(s, name.n);
    return s.n == 0 || s.p[0] == '+' || s.p[0] == ';';
}

bool grpc_text_read_timeout(struct str s, uint64_t *ret_ms)
{
    uint64_t v;
    if (s.n < 2 || s.n > TIMEOUT_DIGITS + 1 ||
        !str_to_u64((struct str){s.p, s.n - 1}, TIMEOUT_MAX, &v))
        return false;
    switch (s.p[s.n - 1]) {
    case 'H':
        v *= 3600000;
        break;
    case 'M':
        v *= 60000;
        break;
    case 'S':
        v *= 1000;
        break;
    case 'm':
        break;
    case 'u':
        v = (v + 999) / 1000;
        break;
    case 'n':
        v = (v + 999999) / 1000000;
        break;
    default:
        return false;
    }
    *ret_ms = v;
    return true;
}

void grpc_text_put_timeout(struct buf *out, uint64_t ms)
{
    bool fits = ms <= TIMEOUT_MAX;
    buf_put_u64(out, fits ? ms : MIN_OF(ms / 1000, TIMEOUT_MAX));
    buf_putc(out, fits ? 'm' : 'S');
}

void grpc_text_encode(struct buf *out, struct str text)
{
    for (size_t i = 0; i < text.n; i++) {
        uint8_t c = (uint8_t)text.p[i];
        if (c < 0x20 || c > 0x7e || c == '%')
            buf_printf(out, "%%%02X", c);
        else
            buf_putc(out, (char)c);
    }
}

static int grpc_text_hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

void grpc_text_decode(struct buf *out, struct str encoded)
{
    for (size_t i = 0; i < encoded.n; i++) {
        bool escape = encoded.p[i] == '%' && encoded.n - i > 2;
        int high = escape ? grpc_text_hex(encoded.p[i + 1]) : -1;
        int low = escape ? grpc_text_hex(encoded.p[i + 2]) : -1;
        if (high < 0 || low < 0) {
            buf_putc(out, encoded.p[i]);
        } else {
            buf_putc(out, (char)(high << 4 | low));
            i += 2;
        }
    }
}

void grpc_text_put_message(struct buf *out, struct str message)
{
    assert(message.n <= UINT32_MAX);
    /* Reserved as one piece: half a message must not remain. */
    if (!buf_reserve(out, GRPC_PREFIX_BYTES + message.n))
        return;
    buf_putc(out, '\0');
    for (unsigned shift = 32; shift > 0; shift -= 8)
        buf_putc(out, (char)(uint8_t)(message.n >> (shift - 8)));
    buf_put(out, message);
}

void grpc_inbox_init(struct grpc_inbox *in, size_t max, struct mem_account *account)
{
    *in = (struct grpc_inbox){.prefix_n = 0};
    buf_init(&in->message, max);
    in->message.account = account;
}

void grpc_inbox_done(struct grpc_inbox *in)
{
    buf_done(&in->message);
}

static enum grpc_status grpc_text_prefix(struct grpc_inbox *in, struct err *reterr)
{
    in->length = 0;
    for (size_t i = 1; i < GRPC_PREFIX_BYTES; i++)
        in->length = in->length << 8 | in->prefix[i];
    enum grpc_status status = GRPC_OK;
    if (in->prefix[0] == 1) {
        status = GRPC_UNIMPLEMENTED;
        (void)err_set(reterr, ERR_SYNTAX, "compressed messages are not supported");
    } else if (in->prefix[0] != 0) {
        status = GRPC_INTERNAL;
        (void)err_set(reterr, ERR_SYNTAX, "a message with flags %u", in->prefix[0]);
    } else if (in->length > in->message.max) {
        status = GRPC_RESOURCE_EXHAUSTED;
        (void)err_set(reterr, ERR_LIMIT, "a message of %zu bytes, at most %zu are allowed",
                      in->length, in->message.max);
    }
    return status;
}

enum grpc_status grpc_inbox_feed(struct grpc_inbox *in, struct str bytes, struct err *reterr)
{
    while (bytes.n > 0 && in->prefix_n < GRPC_PREFIX_BYTES) {
        in->prefix[in->prefix_n++] = (uint8_t)bytes.p[0];
        bytes = str_skip(bytes, 1);
        enum grpc_status status =
            in->prefix_n == GRPC_PREFIX_BYTES ? grpc_text_prefix(in, reterr) : GRPC_OK;
        if (status != GRPC_OK)
            return status;
    }
    if (bytes.n > in->length - in->message.n) {
        (void)err_set(reterr, ERR_SYNTAX, "more than one message");
        return GRPC_INTERNAL;
    }
    buf_put(&in->message, bytes);
    if (!buf_failed(&in->message))
        return GRPC_OK;
    (void)err_set(reterr, buf_fault(&in->message), "no memory for a message of %zu bytes",
                  in->length);
    return GRPC_RESOURCE_EXHAUSTED;
}

enum grpc_status grpc_inbox_end(const struct grpc_inbox *in, struct err *reterr)
{
    if (in->prefix_n == GRPC_PREFIX_BYTES && in->message.n == in->length)
        return GRPC_OK;
    (void)err_set(reterr, ERR_SYNTAX,
                  in->prefix_n == 0 ? "no message" : "a message that is cut short");
    return GRPC_INTERNAL;
}
