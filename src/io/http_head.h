/* Private to the HTTP server: whether a request's head can be read in only one way. */
#pragma once

#include "base/macro.h"

#include <microhttpd.h>

struct http_head {
    const char *target;  /* in libmicrohttpd's buffer, not decoded yet */
    const char *version; /* in the same buffer: where it is if the first line is well formed */
    const char *fault;   /* of the first line, a literal; NULL: none so far */
};

/*
 * For MHD_OPTION_STRICT_FOR_CLIENT. 0 if this module checks the whole head: libmicrohttpd 0.9.75
 * would check the Host itself and send the head of its error answer twice.
 */
int http_head_strictness(void);

/* Call it with the request line. target is libmicrohttpd's, followed by a NUL. */
void http_head_begin(struct http_head *h, const char *target);

/*
 * Call it when all headers are received. Returns why the request must be refused, a literal; NULL:
 * it is good. A strict reader understands a good head in the same way, with a body of the same
 * length. method and version are those of libmicrohttpd's access handler.
 */
const char *http_head_fault(const struct http_head *h, struct MHD_Connection *mhd,
                            const char *method, const char *version);
