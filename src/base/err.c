/* Fills struct err. The text is formatted in a local buffer first, because the old e->text may be
 * an argument of the new text. */
#include "base/err.h"

#include <stdio.h>

static const struct {
    const char *name;
    unsigned http_status;
} errc_table[ERRC_COUNT] = {
    [OK] = {"ok", 200},
    [ERR_SYNTAX] = {"syntax", 400},
    [ERR_RANGE] = {"range", 400},
    [ERR_LIMIT] = {"limit", 413},
    [ERR_NOMEM] = {"out of memory", 503},
    [ERR_NOTFOUND] = {"not found", 404},
    [ERR_CONFLICT] = {"conflict", 409},
    [ERR_DENIED] = {"denied", 403},
    [ERR_UNAVAILABLE] = {"unavailable", 503},
    [ERR_TIMEOUT] = {"timeout", 504},
    [ERR_CANCELED] = {"canceled", 503},
    [ERR_INTERNAL] = {"internal", 500},
};

enum errc err_set(struct err *e, enum errc code, const char *fmt, ...)
{
    if (e == NULL)
        return code;
    char text[sizeof(e->text)] = "";
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    e->code = code;
    memcpy(e->text, text, sizeof(text));
    return code;
}

enum errc err_wrap(struct err *e, const char *fmt, ...)
{
    if (e == NULL)
        return ERR_INTERNAL;
    assert(e->code != OK);
    char joined[2 * sizeof(e->text) + 2];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(joined, sizeof(e->text), fmt, args);
    va_end(args);
    size_t used = n < 0 ? 0 : MIN_OF((size_t)n, sizeof(e->text) - 1);
    (void)snprintf(joined + used, sizeof(joined) - used, ": %s", e->text);
    size_t keep = MIN_OF(strlen(joined), sizeof(e->text) - 1);
    memcpy(e->text, joined, keep);
    e->text[keep] = '\0';
    return e->code;
}

const char *errc_name(enum errc code)
{
    assert((unsigned)code < ERRC_COUNT);
    return errc_table[code].name;
}

unsigned errc_http_status(enum errc code)
{
    assert((unsigned)code < ERRC_COUNT);
    return errc_table[code].http_status;
}
