/* Prints to standard error. The text may come from another program: it cannot steer a terminal. */
#include "kubectl/say.h"

#include "report/table.h"

#include <stdio.h>

#define TEXT_MAX 1024
#define SAID_MAX 8

void kubectl_say_part(struct str text, bool begins, bool ends)
{
    char bytes[4 * TEXT_MAX]; /* one byte becomes at most four */
    struct buf shown = BUF_ON(bytes);
    buf_put_printable(&shown, str_head(text, TEXT_MAX - 1));
    (void)fprintf(stderr, "%s%.*s%s", begins ? "kubectl cardpack: " : "", STR_ARG(buf_str(&shown)),
                  ends ? "\n" : "");
}

void kubectl_say(const char *fmt, ...)
{
    char text[TEXT_MAX];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    kubectl_say_part(str_of(text), true, true);
}

void kubectl_say_once(const char *fmt, ...)
{
    static char said[SAID_MAX][TEXT_MAX];
    static size_t n;
    char text[TEXT_MAX];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    for (size_t i = 0; i < n; i++) {
        if (strcmp(said[i], text) == 0)
            return;
    }
    if (n < SAID_MAX)
        memcpy(said[n++], text, sizeof(text));
    kubectl_say_part(str_of(text), true, true);
}
