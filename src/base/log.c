/*
 * A line is built in a buffer on the stack: logging never allocates, so it works when memory is
 * out. What is too long is cut by value and by field, never by byte, so a line is always whole and
 * valid UTF-8: a string ends at a character that still fits its share, a field that does not fit
 * the line is left out, and the line then ends in cut=true. The share keeps one long annotation
 * from pushing out the fields behind it.
 */
#include "log.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define LINE_MAX_BYTES  ((size_t)4096)
#define VALUE_MAX_BYTES ((size_t)1024) /* escaped, without the quotes */
#define TAIL_BYTES      sizeof(",\"cut\":true}\n")

struct line {
    char bytes[LINE_MAX_BYTES]; /* the last TAIL_BYTES are put_tail's */
    size_t n;
    bool full; /* the field at hand does not fit */
    bool cut;  /* a field or a part of one is left out */
};

static struct {
    int fd;
    enum log_level level;
    enum log_format format;
} sink = {.fd = STDERR_FILENO, .level = LOG_LEVEL_INFO, .format = LOG_FORMAT_LOGFMT};

static const char *const level_names[] = {
    [LOG_LEVEL_DEBUG] = "debug",
    [LOG_LEVEL_INFO] = "info",
    [LOG_LEVEL_WARN] = "warn",
    [LOG_LEVEL_ERROR] = "error",
};

void log_setup(int fd, enum log_level level, enum log_format format)
{
    sink.fd = fd;
    sink.level = level;
    sink.format = format;
}

bool log_enabled(enum log_level level)
{
    return level >= sink.level;
}

bool log_level_parse(struct str name, enum log_level *ret)
{
    for (size_t i = 0; i < COUNT_OF(level_names); i++) {
        if (str_eq_nocase(name, str_of(level_names[i]))) {
            *ret = (enum log_level)i;
            return true;
        }
    }
    return false;
}

/* All of s or nothing; what follows a failure is dropped as well. */
static void put(struct line *l, struct str s)
{
    l->full = l->full || s.n > sizeof(l->bytes) - TAIL_BYTES - l->n;
    if (l->full || s.n == 0)
        return;
    memcpy(l->bytes + l->n, s.p, s.n);
    l->n += s.n;
}

/*
 * Whether a reader or a terminal could take it for the end of a line or for a command: the C0 and
 * C1 controls, and Unicode's two separators of lines.
 */
static bool is_control(uint32_t rune)
{
    return rune < 0x20 || (rune >= 0x7f && rune < 0xa0) || rune == 0x2028 || rune == 0x2029;
}

/* The first character of s as it stands between quotes; s goes on behind it. */
static struct str take_quoted(struct str *s, char escape[static 8])
{
    uint32_t rune = 0;
    size_t n = str_utf8(*s, &rune);
    struct str out = {s->p, n};
    if (n == 0)
        out = STR("\xef\xbf\xbd");
    else if (rune == '"' || rune == '\\')
        out = (struct str){escape, (size_t)snprintf(escape, 8, "\\%c", (char)rune)};
    else if (is_control(rune))
        out = (struct str){escape, (size_t)snprintf(escape, 8, "\\u%04x", (unsigned)rune & 0xffff)};
    *s = str_skip(*s, MAX_OF(n, (size_t)1));
    return out;
}

static void put_quoted(struct line *l, struct str s)
{
    char escape[8];
    size_t room = VALUE_MAX_BYTES;
    put(l, STR("\""));
    while (s.n > 0) {
        struct str character = take_quoted(&s, escape);
        if (character.n > room) {
            l->cut = true;
            break;
        }
        put(l, character);
        room -= character.n;
    }
    put(l, STR("\""));
}

static bool is_plain(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (c <= ' ' || c == '"' || c == '=' || c == '\\' || c >= 0x7f)
            return false;
    }
    return s.n > 0 && s.n <= VALUE_MAX_BYTES;
}

static void put_value(struct line *l, const struct kv *f)
{
    char digits[24];
    int n = 0;
    switch (f->type) {
    case KV_STR:
        if (sink.format == LOG_FORMAT_LOGFMT && is_plain(f->s))
            put(l, f->s);
        else
            put_quoted(l, f->s);
        return;
    case KV_INT:
        n = snprintf(digits, sizeof(digits), "%" PRId64, f->i);
        break;
    case KV_UINT:
        n = snprintf(digits, sizeof(digits), "%" PRIu64, f->u);
        break;
    case KV_BOOL:
        put(l, f->u != 0 ? STR("true") : STR("false"));
        return;
    }
    put(l, (struct str){digits, (size_t)n});
}

static void put_field(struct line *l, const struct kv *f)
{
    bool json = sink.format == LOG_FORMAT_JSON;
    size_t start = l->n;
    if (start > 0)
        put(l, json ? STR(",") : STR(" "));
    put(l, json ? (start == 0 ? STR("{\"") : STR("\"")) : STR_NULL);
    put(l, str_of(f->key));
    put(l, json ? STR("\":") : STR("="));
    put_value(l, f);
    if (l->full) {
        l->n = start;
        l->full = false;
        l->cut = true;
    }
}

static void put_tail(struct line *l)
{
    bool json = sink.format == LOG_FORMAT_JSON;
    struct str tail = json ? STR("}\n") : STR("\n");
    if (l->cut)
        tail = json ? STR(",\"cut\":true}\n") : STR(" cut=true\n");
    memcpy(l->bytes + l->n, tail.p, tail.n);
    l->n += tail.n;
}

static size_t format_time(char *out, size_t size)
{
    struct timespec ts;
    struct tm tm;
    (void)clock_gettime(CLOCK_REALTIME, &ts);
    (void)gmtime_r(&ts.tv_sec, &tm);
    size_t n = strftime(out, size, "%Y-%m-%dT%H:%M:%S", &tm);
    int more = snprintf(out + n, size - n, ".%03ldZ", ts.tv_nsec / 1000000);
    return n + (more < 0 ? 0 : (size_t)more);
}

void log_write(enum log_level level, const char *message, const struct kv *fields, size_t n)
{
    int saved_errno = errno;
    struct line l = {.n = 0};
    char time_text[40];
    size_t time_n = format_time(time_text, sizeof(time_text));
    put_field(&l, &kv_str("time", ((struct str){time_text, time_n})));
    put_field(&l, &kv_cstr("level", level_names[level]));
    put_field(&l, &kv_cstr("msg", message));
    for (size_t i = 0; i < n; i++)
        put_field(&l, &fields[i]);
    put_tail(&l);
    /* A log that cannot be written has nobody to tell. */
    ssize_t ignored = write(sink.fd, l.bytes, l.n);
    (void)ignored;
    errno = saved_errno;
}
