/*
 * One line an event: a constant message, which can be grepped and counted, and typed fields. Level
 * is checked before anything is evaluated; one write(2) a line, so lines of several processes never
 * mix; control characters are escaped and what is not UTF-8 becomes U+FFFD, so a pod's annotation
 * cannot forge a line. A line holds 4 KiB, a string in it 1 KiB: what is longer is cut without
 * breaking the line, which then says cut=true. errno is kept.
 *
 *     log_info("bound", kv_str("pod", name), kv_int("mem", request.mem));
 *
 * The sink is the only mutable state of the process outside main's own.
 */
#pragma once

#include "str.h"

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

/* Where lines go and from which level on. Before the first call: stderr, logfmt, info. */
void log_setup(int fd, enum log_level level, enum log_format format);
bool log_enabled(enum log_level level);
void log_write(enum log_level level, const char *message, const struct kv *fields, size_t n);

/* "debug", "info", "warn", "error". */
bool log_level_parse(struct str name, enum log_level *ret);

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
