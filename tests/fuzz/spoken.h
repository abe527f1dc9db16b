/*
 * A request without a connection, whose answer is kept. Defines http_request_respond and
 * http_request_header, so that the server's own are not linked.
 */
#pragma once

#include "base/limit.h"
#include "base/log.h"
#include "io/http_server.h"

#include <fcntl.h>

struct spoken {
    struct http_request request;
    struct arena arena;
    struct buf answer;
    unsigned status; /* 0: not answered yet */
    const char *type;
    unsigned times;
};

static inline void spoken_init(struct spoken *s, struct str method, struct str path,
                               struct str body)
{
    *s = (struct spoken){.status = 0};
    arena_init(&s->arena, 16 * MIB);
    buf_init(&s->answer, 16 * MIB);
    s->request = (struct http_request){.method = method,
                                       .path = path,
                                       .body = body,
                                       .peer = STR("peer"),
                                       .arena = &s->arena,
                                       .answer = &s->answer};
}

static inline void spoken_done(struct spoken *s)
{
    arena_done(&s->arena);
    buf_done(&s->answer);
}

void http_request_respond(struct http_request *r, unsigned status, const char *content_type)
{
    struct spoken *s = CONTAINER_OF(r, struct spoken, request);
    s->times++;
    s->status = status;
    s->type = content_type;
}

void http_request_stream(struct http_request *r, unsigned status, const char *content_type,
                         struct http_stream *st)
{
    http_request_respond(r, status, content_type);
    st->gone(st);
}

void http_stream_wake(struct http_stream *st)
{
    (void)st;
}

void http_request_header(struct http_request *r, const char *name, const char *value)
{
    (void)r;
    (void)name;
    (void)value;
}

struct str http_request_value(struct http_request *r, const char *name)
{
    (void)r;
    (void)name;
    return STR_NULL;
}

struct str http_request_parameter(struct http_request *r, const char *name)
{
    (void)r;
    (void)name;
    return STR_NULL;
}

/* Runs the code that writes log lines, but discards the lines. */
static inline void quiet(void)
{
    static int nowhere = -1;
    if (nowhere < 0) {
        nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
        log_setup(nowhere, LOG_LEVEL_DEBUG, LOG_FORMAT_JSON);
    }
}
