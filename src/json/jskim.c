/*
 * Skips a value by its quotes and brackets. An API server stores, and serves unchanged, what no
 * strict reader accepts: managedFields and the parameters of devices may nest at any depth and hold
 * invalid UTF-8. A value that is not needed must not make its object unreadable.
 */
#include "json/jskim.h"

#include "json/jscan.h"

/* p is behind the opening quote. Returns the position behind the closing one. */
static inline const char *jskim_over_string(const char *p, const char *end)
{
    for (;;) {
        p = jscan_plain(p, end);
        if (p == end)
            return NULL;
        if (*p == '"')
            return p + 1;
        if (*p == '\\' && ++p == end)
            return NULL;
        p++;
    }
}

static bool jskim_ends_scalar(char c)
{
    return (unsigned char)c <= ' ' || memchr(",:\"[]{}", c, 7) != NULL;
}

static const char *jskim_over_scalar(const char *p, const char *end)
{
    const char *begin = p;
    while (p < end && !jskim_ends_scalar(*p))
        p++;
    return p == begin ? NULL : p;
}

const char *jskim_value(const char *p, const char *end)
{
    size_t open = 0;
    while (p < end && (*p == ' ' || *p == '\n' || *p == '\t' || *p == '\r'))
        p++;
    if (p < end && *p != '"' && *p != '{' && *p != '[')
        return jskim_over_scalar(p, end);
    while (p < end) {
        char c = *p++;
        if (c == '"')
            p = jskim_over_string(p, end);
        else if (c == '{' || c == '[')
            open++;
        else if (c == '}' || c == ']')
            open--;
        if (p == NULL || open == 0)
            return p;
    }
    return NULL;
}
