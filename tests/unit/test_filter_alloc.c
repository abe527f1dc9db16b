/* The memory budget of the hot path: after a warm-up, a filter or prioritize of 5,000 names makes
 * no allocation of cardpack's, with a shortlist or without. */
#include "base/limit.h"
#include "base/log.h"
#include "daemon/service.h"
#include "fail_alloc.h"
#include "raw_conn.h"

#include <stdio.h>

#define NODES     5000
#define REFUSED   1667 /* each is in both maps: its cards are too small */
#define WARM_UP   4
#define MEASURED  10
#define REQUESTED "\"aliyun.com/gpu-mem\":\"12\""

struct stage {
    struct service service;
    struct http_server *server;
    struct buf request;
};

/* Every third node is too small, so that the answer holds names and reasons. */
static void write_cluster(struct buf *out)
{
    for (int i = 0; i < NODES; i++) {
        const char *mem = i % 3 == 0 ? "16" : "64";
        buf_printf(out,
                   "{\"kind\":\"Node\",\"metadata\":{\"name\":\"gpu-node-%04d.example\"},"
                   "\"status\":{\"capacity\":{\"aliyun.com/gpu-mem\":\"%s\","
                   "\"aliyun.com/gpu-count\":\"4\"},\"allocatable\":"
                   "{\"aliyun.com/gpu-mem\":\"%s\"}}}\n",
                   i, mem, mem);
    }
    /* A quota of the pod's namespace that is never used up. */
    buf_printf(out, "{\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"cardpack-quota\","
                    "\"namespace\":\"kube-system\"},\"data\":{\"quota.yaml\":"
                    "\"namespaces: {ns: {limits: {memory: 1000}}}\"}}\n");
    ck_assert(!buf_failed(out));
}

static void write_request(struct buf *out, const char *verb)
{
    struct buf body;
    buf_init(&body, MIB);
    buf_printf(&body,
               "{\"Pod\":{\"metadata\":{\"name\":\"p\",\"namespace\":\"ns\",\"uid\":\"u\"},"
               "\"spec\":{\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{" REQUESTED
               "}}}]}},\"Nodes\":null,\"NodeNames\":[");
    for (int i = 0; i < NODES; i++)
        buf_printf(&body, "%s\"gpu-node-%04d.example\"", i == 0 ? "" : ",", i);
    buf_printf(&body, "]}");
    buf_printf(out,
               "POST /gpushare-scheduler/%s HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n\r\n",
               verb, body.n);
    buf_put(out, buf_str(&body));
    ck_assert(!buf_failed(&body) && !buf_failed(out));
    buf_done(&body);
}

static void stage_open(struct stage *s, const char *verb, unsigned shortlist)
{
    struct err e = ERR_INIT;
    struct buf text;
    log_setup(STDERR_FILENO, LOG_LEVEL_WARN, LOG_FORMAT_LOGFMT);
    *s = (struct stage){.service.loop = loop_make(), .service.shortlist = shortlist};
    cache_init(&s->service.cache, (struct map_seed){1, 2});
    measured_init(&s->service.measured, (struct map_seed){1, 2}, 0);
    buf_init(&text, 16 * MIB);
    write_cluster(&text);
    ck_assert_ok(embedded_new(s->service.loop, &s->service.cache, &s->service.measured,
                              buf_str(&text), STR("nodes"), &s->service.embedded, &e),
                 &e);
    buf_done(&text);
    s->service.backend = embedded_interface(s->service.embedded);
    const struct http_server_settings settings = {.address = STR("127.0.0.1"),
                                                  .max_body = MIB,
                                                  .max_connections = 10,
                                                  .request_timeout_ms = 60000,
                                                  .idle_seconds = 60,
                                                  .stall_ms = 60000,
                                                  .handle = routes_handle,
                                                  .too_large = routes_too_large,
                                                  .ctx = &s->service};
    ck_assert_ok(http_server_new(s->service.loop, &settings, &s->server, &e), &e);
    buf_init(&s->request, MIB);
    write_request(&s->request, verb);
}

static void stage_close(struct stage *s)
{
    s->server = http_server_free(s->server);
    s->service.embedded = embedded_free(s->service.embedded);
    measured_done(&s->service.measured);
    evaluation_memo_done(&s->service.evaluation_memo);
    cache_done(&s->service.cache);
    s->service.loop = loop_free(s->service.loop);
    buf_done(&s->request);
}

static const struct {
    const char *verb;
    unsigned shortlist;
    const char *end;
    const char *part;
    size_t parts;
} asked[] = {
    {"filter", 0, "\"Error\":\"\"}", "Insufficient GPU Memory", (size_t)2 * REFUSED},
    {"filter", 1000, "\"Error\":\"\"}", ".example\",\"", 999},
    {"prioritize", 0, "}]", "\"Score\":10", NODES - REFUSED},
};

TEST_EACH(a_verb_allocates_nothing_of_ours, COUNT_OF(asked))
{
    struct stage s;
    struct raw_conn p;
    stage_open(&s, asked[_i].verb, asked[_i].shortlist);
    raw_conn_connect(&p, s.service.loop, http_server_port(s.server));
    for (int i = 0; i < WARM_UP + MEASURED; i++) {
        if (i == WARM_UP)
            fail_alloc_arm(FAIL_NEVER, 0);
        buf_clear(&p.in, SIZE_MAX);
        raw_conn_send(&p, buf_str(&s.request));
        raw_conn_await(&p, asked[_i].end, 1);
        ck_assert_uint_eq(raw_conn_count(&p, asked[_i].part), asked[_i].parts);
    }
    ck_assert_uint_eq(fail_alloc_count(), 0);
    fail_alloc_disarm();
    raw_conn_close(&p);
    stage_close(&s);
}
