/* An embedded cluster whose /metrics is asked for over a real connection. */
#pragma once

#include "base/log.h"
#include "daemon/backend/embedded.h"
#include "daemon/service.h"
#include "raw_conn.h"

#include <stdio.h>
#include <unistd.h>

/* Two nodes with two cards, one node without; a pod of half a card whose name must not appear. */
#define CLUSTER                                                                                    \
    "{\"kind\":\"List\",\"items\":["                                                               \
    "{\"kind\":\"Node\",\"metadata\":{\"name\":\"node-a\",\"labels\":{\"aliyun.accelerator/"       \
    "nvidia_name\":\"O\\\"M\\\"\\\\\\n1\"},\"annotations\":{\"cardpack.io/"                        \
    "cordoned-cards\":\"1\"}},"                                                                    \
    "\"status\":{\"capacity\":{\"aliyun.com/gpu-mem\":\"32\",\"aliyun.com/gpu-count\":\"2\"},"     \
    "\"allocatable\":{\"aliyun.com/gpu-mem\":\"32\"}}},"                                           \
    "{\"kind\":\"Node\",\"metadata\":{\"name\":\"node-b\"},"                                       \
    "\"status\":{\"capacity\":{\"aliyun.com/gpu-mem\":\"48\",\"aliyun.com/gpu-count\":\"2\"},"     \
    "\"allocatable\":{\"aliyun.com/gpu-mem\":\"48\"}}},"                                           \
    "{\"kind\":\"Node\",\"metadata\":{\"name\":\"plain\"},\"status\":{\"capacity\":{}}},"          \
    "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"secretive\",\"namespace\":\"hidden\",\"uid\":"     \
    "\"u-1\",\"annotations\":{\"ALIYUN_COM_GPU_MEM_IDX\":\"0\",\"ALIYUN_COM_GPU_MEM_POD\":\"8\","  \
    "\"ALIYUN_COM_GPU_MEM_DEV\":\"16\",\"ALIYUN_COM_GPU_MEM_ASSIGNED\":\"true\"}},"                \
    "\"spec\":{\"nodeName\":\"node-a\",\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":" \
    "{\"aliyun.com/gpu-mem\":\"8\",\"aliyun.com/gpu-core.percentage\":\"30\"}}}]},"                \
    "\"status\":{\"phase\":\"Running\"}}]}"

struct office {
    struct service service;
    struct http_server *server;
    struct raw_conn peer;
};

static inline void office_open(struct office *o)
{
    struct err e = ERR_INIT;
    log_setup(STDERR_FILENO, LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    *o = (struct office){.service.loop = loop_make(), .service.metrics.max_nodes = 100};
    struct service *s = &o->service;
    list_init(&s->explains);
    cache_init(&s->cache, (struct map_seed){1, 2});
    measured_init(&s->measured, (struct map_seed){1, 2}, 0);
    ck_assert_ok(embedded_new(s->loop, &s->cache, &s->measured, STR(CLUSTER), STR("office"),
                              &s->embedded, &e),
                 &e);
    s->backend = embedded_interface(s->embedded);
    const struct http_server_settings settings = {.address = STR("127.0.0.1"),
                                                  .max_body = MIB,
                                                  .max_connections = 10,
                                                  .request_timeout_ms = 60000,
                                                  .idle_seconds = 60,
                                                  .stall_ms = 60000,
                                                  .handle = routes_handle,
                                                  .too_large = routes_too_large,
                                                  .answered = metrics_answered,
                                                  .ctx = s,
                                                  .counts = &s->metrics.ports[METRICS_MAIN]};
    ck_assert_ok(http_server_new(s->loop, &settings, &o->server, &e), &e);
    raw_conn_connect(&o->peer, s->loop, http_server_port(o->server));
}

static inline void office_close(struct office *o)
{
    raw_conn_close(&o->peer);
    o->server = http_server_free(o->server);
    o->service.embedded = embedded_free(o->service.embedded);
    measured_done(&o->service.measured);
    cache_done(&o->service.cache);
    o->service.loop = loop_free(o->service.loop);
}

static inline bool is_whole(void *ctx)
{
    struct str in = buf_str(&((struct raw_conn *)ctx)->in);
    struct str key = STR("Content-Length: ");
    struct str line;
    struct str rest;
    uint64_t length;
    const char *end = in.n == 0 ? NULL : memmem(in.p, in.n, "\r\n\r\n", 4);
    if (end == NULL)
        return false;
    const char *at = memmem(in.p, (size_t)(end - in.p), key.p, key.n);
    ck_assert_ptr_nonnull(at);
    (void)str_cut(str_skip(in, (size_t)(at - in.p) + key.n), '\r', &line, &rest);
    ck_assert(str_to_u64(line, MIB, &length));
    return in.n == (size_t)(end - in.p) + 4 + length;
}

/* Reads the whole answer; it must contain this text. */
static inline void ask(struct office *o, const char *path, const char *text)
{
    char head[256];
    int n = snprintf(head, sizeof(head), "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path);
    buf_clear(&o->peer.in, SIZE_MAX);
    raw_conn_send(&o->peer, (struct str){head, (size_t)n});
    run_until(o->service.loop, is_whole, &o->peer);
    ck_assert_msg(raw_conn_count(&o->peer, text) > 0, "no \"%s\" in %s", text,
                  buf_cstr(&o->peer.in));
}

static inline bool says(struct office *o, const char *line)
{
    char whole[256];
    int n = snprintf(whole, sizeof(whole), "\n%s\n", line);
    ck_assert_int_lt(n, (int)sizeof(whole));
    return strstr(buf_cstr(&o->peer.in), whole) != NULL;
}

#define METRICS_TEXT "\r\n\r\n# HELP "
