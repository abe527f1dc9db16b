/*
 * One line an event: a constant message, which can be grepped and counted, and typed fields. The
 * level is checked before the fields are evaluated. A line is one write(2), so lines of several
 * processes never mix. Control characters are escaped and invalid UTF-8 becomes U+FFFD, so a pod's
 * annotation cannot forge a line. A line holds 4 KiB, a string in it 1 KiB. A longer one is cut,
 * the line stays well-formed and ends in cut=true. errno is preserved.
 *
 *   log_info("bound", kv_str("pod", name), kv_int("mem", request.mem));
 *
 * The sink is the only mutable state of the process outside main's own.
 */
#pragma once

#include "base/str.h"

enum log_level {
    LOG_LEVEL_DEBUG,
    LOG_LEVEL_INFO,
    LOG_LEVEL_WARN, /* always something that an operator can act on */
    LOG_LEVEL_ERROR,
};

enum log_format {
    LOG_FORMAT_LOGFMT, /* time=... level=info msg=bound pod=ns/name */
    LOG_FORMAT_JSON,
};

enum kv_type {
    KV_STR,
    KV_INT,
    KV_UINT,
    KV_BOOL,
};

struct kv {
    const char *key; /* a literal that needs no escape in either format */
    enum kv_type type;
    struct str s;
    int64_t i;
    uint64_t u;
};

#define kv_str(k, v)  ((struct kv){.key = (k), .type = KV_STR, .s = (v)})
#define kv_cstr(k, v) ((struct kv){.key = (k), .type = KV_STR, .s = str_of(v)})
#define kv_int(k, v)  ((struct kv){.key = (k), .type = KV_INT, .i = (v)})
#define kv_uint(k, v) ((struct kv){.key = (k), .type = KV_UINT, .u = (v)})
#define kv_bool(k, v) ((struct kv){.key = (k), .type = KV_BOOL, .u = (v) ? 1 : 0})

/* Sets the descriptor, the lowest level and the format. Before the first call: stderr, info,
 * logfmt. */
void log_setup(int fd, enum log_level level, enum log_format format);
bool log_enabled(enum log_level level);

/*
 * For a process that must not block on its log. A line for which the sink has no room at once is
 * dropped and counted; before the next line that has room, a line reports the count. Without this
 * call a write waits for room. The descriptor does not become non-blocking, because other processes
 * share it.
 */
void log_never_wait(void);

/* Lines that were dropped since the process began. */
uint64_t log_dropped(void);

/* A rate limit for lines with one cause: LOG_LIMIT_LINES are written in LOG_LIMIT_MS. Starts as
 * zeros. */
#define LOG_LIMIT_LINES 10
#define LOG_LIMIT_MS    UINT64_C(10000)

struct log_limit {
    uint64_t since_ms;
    unsigned n;
    uint64_t left_out;
};

/* Whether to write one more line. The first one after lines that were left out is preceded by a
 * line "lines were left out" with their number and `message`. */
bool log_limit_allows(struct log_limit *l, uint64_t now_ms, const char *message);

void log_write(enum log_level level, const char *message, const struct kv *fields, size_t n);

#define LOG_AT(level, message, ...)                                                    \
    do {                                                                               \
        if (log_enabled(level)) {                                                      \
            const struct kv log_fields_[] = {{0}, ##__VA_ARGS__};                      \
            log_write((level), (message), log_fields_ + 1, COUNT_OF(log_fields_) - 1); \
        }                                                                              \
    } while (0)

#define log_debug(message, ...) LOG_AT(LOG_LEVEL_DEBUG, message, ##__VA_ARGS__)
#define log_info(message, ...)  LOG_AT(LOG_LEVEL_INFO, message, ##__VA_ARGS__)
#define log_warn(message, ...)  LOG_AT(LOG_LEVEL_WARN, message, ##__VA_ARGS__)
#define log_error(message, ...) LOG_AT(LOG_LEVEL_ERROR, message, ##__VA_ARGS__)
