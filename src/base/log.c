/*
 * A line is built in a buffer on the stack. Logging never allocates, so it works without memory. A
 * line is always whole and valid UTF-8: a string that is too long is cut after a character, a field
 * that does not fit is left out, and then the line ends in cut=true. The limit for one string keeps
 * a long annotation from displacing the fields behind it.
 */
#include "base/log.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define LINE_MAX_BYTES  ((size_t)4096)
#define VALUE_MAX_BYTES ((size_t)1024) /* escaped, without the quotes */
#define TAIL_BYTES      sizeof(",\"cut\":true}\n")

struct line {
    char bytes[LINE_MAX_BYTES]; /* the last TAIL_BYTES are reserved for log_put_tail */
    size_t n;
    bool full; /* the current field does not fit */
    bool cut;  /* a field or a part of one is left out */
};

static struct {
    int fd;
    enum log_level level;
    enum log_format format;
    bool never_waits;
    uint64_t dropped;
    uint64_t reported; /* of those */
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

/* Appends all of s or nothing. After a failure, later calls append nothing either. */
static void log_put(struct line *l, struct str s)
{
    l->full = l->full || s.n > sizeof(l->bytes) - TAIL_BYTES - l->n;
    if (l->full || s.n == 0)
        return;
    memcpy(l->bytes + l->n, s.p, s.n);
    l->n += s.n;
}

/* As a JSON escape: two surrogates for a rune above U+FFFF. */
static struct str log_escape_rune(uint32_t rune, char escape[static 16])
{
    uint32_t above = rune - 0x10000;
    int n = rune <= 0xffff ? snprintf(escape, 16, "\\u%04x", rune & 0xffff)
                           : snprintf(escape, 16, "\\u%04x\\u%04x", 0xd800 + (above >> 10 & 0x3ff),
                                      0xdc00 + (above & 0x3ff));
    return (struct str){escape, (size_t)n};
}

/* Takes the first character off s and returns it as it is written between quotes. */
static struct str log_take_quoted(struct str *s, char escape[static 16])
{
    uint32_t rune = 0;
    size_t n = str_utf8(*s, &rune);
    struct str out = {s->p, n};
    if (n == 0)
        out = STR("\xef\xbf\xbd");
    else if (rune == '"' || rune == '\\')
        out = (struct str){escape, (size_t)snprintf(escape, 16, "\\%c", (char)rune)};
    else if (str_is_unprintable(rune))
        out = log_escape_rune(rune, escape);
    *s = str_skip(*s, MAX_OF(n, (size_t)1));
    return out;
}

static void log_put_quoted(struct line *l, struct str s)
{
    char escape[16];
    size_t room = VALUE_MAX_BYTES;
    log_put(l, STR("\""));
    while (s.n > 0) {
        struct str character = log_take_quoted(&s, escape);
        if (character.n > room) {
            l->cut = true;
            break;
        }
        log_put(l, character);
        room -= character.n;
    }
    log_put(l, STR("\""));
}

static bool log_is_plain(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (c <= ' ' || c == '"' || c == '=' || c == '\\' || c >= 0x7f)
            return false;
    }
    return s.n > 0 && s.n <= VALUE_MAX_BYTES;
}

static void log_put_value(struct line *l, const struct kv *f)
{
    char digits[24];
    int n = 0;
    switch (f->type) {
    case KV_STR:
        if (sink.format == LOG_FORMAT_LOGFMT && log_is_plain(f->s))
            log_put(l, f->s);
        else
            log_put_quoted(l, f->s);
        return;
    case KV_INT:
        n = snprintf(digits, sizeof(digits), "%" PRId64, f->i);
        break;
    case KV_UINT:
        n = snprintf(digits, sizeof(digits), "%" PRIu64, f->u);
        break;
    case KV_BOOL:
        log_put(l, f->u != 0 ? STR("true") : STR("false"));
        return;
    }
    log_put(l, (struct str){digits, (size_t)n});
}

static void log_put_field(struct line *l, const struct kv *f)
{
    bool json = sink.format == LOG_FORMAT_JSON;
    size_t start = l->n;
    if (start > 0)
        log_put(l, json ? STR(",") : STR(" "));
    log_put(l, json ? (start == 0 ? STR("{\"") : STR("\"")) : STR_NULL);
    log_put(l, str_of(f->key));
    log_put(l, json ? STR("\":") : STR("="));
    log_put_value(l, f);
    if (l->full) {
        l->n = start;
        l->full = false;
        l->cut = true;
    }
}

static void log_put_tail(struct line *l)
{
    bool json = sink.format == LOG_FORMAT_JSON;
    struct str tail = json ? STR("}\n") : STR("\n");
    if (l->cut)
        tail = json ? STR(",\"cut\":true}\n") : STR(" cut=true\n");
    memcpy(l->bytes + l->n, tail.p, tail.n);
    l->n += tail.n;
}

static size_t log_format_time(char *out, size_t size)
{
    struct timespec ts;
    struct tm tm;
    (void)clock_gettime(CLOCK_REALTIME, &ts);
    (void)gmtime_r(&ts.tv_sec, &tm);
    size_t n = strftime(out, size, "%Y-%m-%dT%H:%M:%S", &tm);
    int more = snprintf(out + n, size - n, ".%03ldZ", ts.tv_nsec / 1000000);
    return n + (more < 0 ? 0 : (size_t)more);
}

void log_never_wait(void)
{
    sink.never_waits = true;
}

uint64_t log_dropped(void)
{
    return sink.dropped;
}

/* A pipe that poll reports as writable accepts PIPE_BUF bytes at once, and a line is never
 * longer. */
static bool log_has_room(void)
{
    static_assert(LINE_MAX_BYTES <= PIPE_BUF, "a line that is written whole or not at all");
    struct pollfd p = {.fd = sink.fd, .events = POLLOUT};
    return !sink.never_waits || poll(&p, 1, 0) != 0;
}

static void log_write_line(enum log_level level, const char *message, const struct kv *fields,
                           size_t n)
{
    struct line l = {.n = 0};
    char time_text[40];
    size_t time_n = log_format_time(time_text, sizeof(time_text));
    log_put_field(&l, &kv_str("time", ((struct str){time_text, time_n})));
    log_put_field(&l, &kv_cstr("level", level_names[level]));
    log_put_field(&l, &kv_cstr("msg", message));
    for (size_t i = 0; i < n; i++)
        log_put_field(&l, &fields[i]);
    log_put_tail(&l);
    /* Ignored: there is no other place to report that the log cannot be written. */
    ssize_t ignored = write(sink.fd, l.bytes, l.n);
    (void)ignored;
}

void log_write(enum log_level level, const char *message, const struct kv *fields, size_t n)
{
    int saved_errno = errno;
    bool room = log_has_room();
    if (room && sink.dropped > sink.reported) {
        struct kv lines = kv_uint("lines", sink.dropped - sink.reported);
        sink.reported = sink.dropped;
        log_write_line(LOG_LEVEL_WARN, "log lines were dropped", &lines, 1);
        room = log_has_room();
    }
    if (room)
        log_write_line(level, message, fields, n);
    else
        sink.dropped++;
    errno = saved_errno;
}

static bool log_limit_take(struct log_limit *l, uint64_t now_ms, uint64_t *ret)
{
    *ret = 0;
    if (now_ms - l->since_ms >= LOG_LIMIT_MS) {
        l->since_ms = now_ms;
        l->n = 0;
    }
    if (l->n == LOG_LIMIT_LINES) {
        l->left_out++;
        return false;
    }
    l->n++;
    *ret = l->left_out;
    l->left_out = 0;
    return true;
}

bool log_limit_allows(struct log_limit *l, uint64_t now_ms, const char *message)
{
    uint64_t left_out = 0;
    bool allows = log_limit_take(l, now_ms, &left_out);
    const struct kv fields[] = {kv_cstr("of", message), kv_uint("lines", left_out)};
    if (left_out > 0 && log_enabled(LOG_LEVEL_WARN))
        log_write(LOG_LEVEL_WARN, "lines were left out", fields, COUNT_OF(fields));
    return allows;
}
