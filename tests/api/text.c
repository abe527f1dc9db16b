/* Growable text and short names; see text.h. */
#include "api/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static void grow(struct text *t, size_t cap)
{
    char *p = malloc(cap);
    api_check(p != NULL);
    if (t->n > 0)
        memcpy(p, t->p, t->n);
    free(t->p);
    t->p = p;
    t->cap = cap;
}

void text_put(struct text *t, struct str s)
{
    if (t->n + s.n > t->cap)
        grow(t, MAX_OF(t->n + s.n, t->cap * 2 + 256));
    if (s.n > 0)
        memcpy(t->p + t->n, s.p, s.n);
    t->n += s.n;
}

void text_f(struct text *t, const char *format, ...)
{
    char line[256];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    api_check(n >= 0 && (size_t)n < sizeof(line));
    text_put(t, (struct str){line, (size_t)n});
}

void text_quoted(struct text *t, struct str s)
{
    text_put(t, STR("\""));
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        if (c == '"' || c == '\\')
            text_put(t, STR("\\"));
        text_put(t, (struct str){&c, 1});
    }
    text_put(t, STR("\""));
}

void text_done(struct text *t)
{
    free(t->p);
    *t = (struct text){.p = NULL};
}

struct name name_of(const char *prefix, uint64_t number)
{
    struct name n;
    (void)snprintf(n.z, sizeof(n.z), "%s%llu", prefix, (unsigned long long)number);
    return n;
}

struct name name_from(struct str s)
{
    struct name n = {.z = ""};
    memcpy(n.z, s.p == NULL ? "" : s.p, MIN_OF(s.n, sizeof(n.z) - 1));
    return n;
}
