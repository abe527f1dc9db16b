/* Private to grpc: the texts in gRPC's headers, and the framing of messages in DATA. */
#pragma once

#include "base/buf.h"
#include "grpc/grpc_status.h"

/* "application/grpc", also with "+proto" or a parameter behind it. */
bool grpc_text_is_content_type(struct str s);

/* A grpc-timeout: one to eight digits and one of H M S m u n. Rounded up to ms. */
bool grpc_text_read_timeout(struct str s, uint64_t *ret_ms);

/* Writes a grpc-timeout; cut to what eight digits of seconds can say. */
void grpc_text_put_timeout(struct buf *out, uint64_t ms);

/* A grpc-message: all but printable ASCII, and '%', as %XX. A broken %XX is read as it is. */
void grpc_text_encode(struct buf *out, struct str text);
void grpc_text_decode(struct buf *out, struct str encoded);

/* nghttp2's headers have pointers to bytes that it could change; it does not. */
static inline uint8_t *grpc_bytes(const char *text)
{
    uint8_t *ret = NULL;
    memcpy(&ret, &text, sizeof(ret));
    return ret;
}

#define GRPC_PREFIX_BYTES ((size_t)5)

/* Appends a message: a flag byte, its length, its bytes. */
void grpc_text_put_message(struct buf *out, struct str message);

/* Reads the one message of a request or a reply, as it arrives. */
struct grpc_inbox {
    struct buf message; /* owned; its ceiling is the largest message */
    uint8_t prefix[GRPC_PREFIX_BYTES];
    size_t prefix_n;
    size_t length; /* with the whole prefix */
};

void grpc_inbox_init(struct grpc_inbox *in, size_t max, struct mem_account *account);
void grpc_inbox_done(struct grpc_inbox *in);

/* GRPC_OK: goes on. Otherwise the status for the peer, with the reason in reterr. */
enum grpc_status grpc_inbox_feed(struct grpc_inbox *in, struct str bytes, struct err *reterr)
    _must_use_;

/* GRPC_OK: there is exactly one whole message. */
enum grpc_status grpc_inbox_end(const struct grpc_inbox *in, struct err *reterr) _must_use_;
