/*
 * Errors are values. A function that can fail returns an enum errc. If a person may read why it
 * failed, it also fills a struct err on the caller's stack; a failure path never allocates. Each
 * caller may put context in front of the text: "pod team-a/train-0: expected a digit at offset 3".
 */
#pragma once

#include "base/str.h"

#include <stdarg.h>

enum errc {
    OK = 0,
    ERR_SYNTAX,      /* bytes that break the grammar of their format */
    ERR_RANGE,       /* a value outside what its field allows */
    ERR_LIMIT,       /* over one of our own ceilings */
    ERR_NOMEM,       /* the allocator failed */
    ERR_NOTFOUND,    /* no such object */
    ERR_CONFLICT,    /* contradicts the present state */
    ERR_DENIED,      /* not allowed */
    ERR_UNAVAILABLE, /* not now; may work later */
    ERR_TIMEOUT,     /* a deadline passed */
    ERR_CANCELED,    /* the caller canceled it */
    ERR_INTERNAL,    /* a bug, here or in a library */
    ERRC_COUNT
};

struct err {
    enum errc code;
    char text[256]; /* NUL-terminated, cut where longer */
};

#define ERR_INIT ((struct err){.code = OK, .text = ""})

/* Returns `code`, so that a failure is one statement. e may be NULL. An argument may be e->text. */
enum errc err_set(struct err *e, enum errc code, const char *fmt, ...) _printf_(3, 4);

/* Puts context in front of e->text and returns e->code. The callee has filled e, so e->code must
 * not be OK. If e is NULL the code is lost (ERR_INTERNAL): return the callee's own code instead. */
enum errc err_wrap(struct err *e, const char *fmt, ...) _printf_(2, 3);

/* "syntax", "not found", ...: for logs and metrics. */
const char *errc_name(enum errc code);

/* The HTTP status for our own routes, those that are not extender verbs. */
unsigned errc_http_status(enum errc code);
