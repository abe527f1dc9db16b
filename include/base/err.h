/*
 * Errors are values. A fallible function returns an enum errc, and where a person may read why it
 * failed it also fills a struct err on the caller's stack: no allocation on a failure path. Context
 * is added on the way up, outermost first: "pod team-a/train-0: expected a digit at offset 3".
 */
#pragma once

#include "str.h"

#include <stdarg.h>

enum errc {
    OK = 0,
    ERR_SYNTAX,      /* bytes that don't follow their grammar */
    ERR_RANGE,       /* a value outside what its field allows */
    ERR_LIMIT,       /* over a ceiling of ours */
    ERR_NOMEM,       /* the allocator said no */
    ERR_NOTFOUND,    /* no such object */
    ERR_CONFLICT,    /* contradicts what is already so */
    ERR_DENIED,      /* not allowed */
    ERR_UNAVAILABLE, /* not now; may work later */
    ERR_TIMEOUT,     /* a deadline passed */
    ERR_CANCELED,    /* given up by the one who asked */
    ERR_INTERNAL,    /* a bug, here or in a library */
    ERRC_COUNT
};

struct err {
    enum errc code;
    char text[256]; /* NUL-terminated, cut where longer */
};

#define ERR_INIT ((struct err){.code = OK, .text = ""})

/* Returns `code`: a failure is one statement. e may be NULL, and its text an argument. */
enum errc err_set(struct err *e, enum errc code, const char *fmt, ...) _printf_(3, 4);

/*
 * Puts context in front and returns the code that is there, which must not be OK: who failed has
 * filled e. Without an e the code is lost (ERR_INTERNAL): return the callee's own code instead.
 */
enum errc err_wrap(struct err *e, const char *fmt, ...) _printf_(2, 3);

/* "syntax", "not found", ...: for logs and metrics. */
const char *errc_name(enum errc code);

/* The HTTP status of a route of ours that is not an extender verb. */
unsigned errc_http_status(enum errc code);
