/* The daemon's verbs over HTTP, with a cache and budgets that the test fills. */
#pragma once

#include "base/limit.h"
#include "base/log.h"
#include "daemon/daemon.h"
#include "extender/extender.h"
#include "raw_conn.h"

#include <fcntl.h>
#include <stdio.h>

static struct stage {
    struct service service;
    struct http_server *server;
    struct backend backend;
    bool ready;
    unsigned outcome; /* of the last request */
    char answer[4096];
} s;

static inline bool is_ready(struct backend *b, struct str *ret_missing)
{
    (void)b;
    *ret_missing = s.ready ? STR("") : STR("the first list of pods is not in yet");
    return s.ready;
}

static inline uint64_t the_term(struct backend *b)
{
    (void)b;
    return s.ready ? 1 : 0;
}

static inline void asked(struct backend *b)
{
    (void)b;
}

static inline void note_outcome(void *ctx, const struct http_request *r, unsigned status)
{
    (void)ctx;
    (void)status;
    s.outcome = r->outcome;
}

#define MEM(n) "\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":\"" n "\"}}"
#define NODE(name, mem, cards)                                                           \
    "{\"kind\":\"Node\",\"metadata\":{\"name\":\"" name "\"},\"status\":{\"capacity\":{" \
    "\"aliyun.com/gpu-mem\":\"" mem "\",\"aliyun.com/gpu-count\":\"" cards "\"}}}\n"
#define BOUND(name, node, card, mem)                                                      \
    "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"" name "\",\"namespace\":\"ns\",\"uid\":" \
    "\"" name "\",\"labels\":{\"app\":\"" name "\"},\"annotations\":{"                    \
    "\"ALIYUN_COM_GPU_MEM_IDX\":\"" card "\"}},\"spec\":{\"nodeName\":\"" node "\","      \
    "\"priority\":0,\"containers\":[{\"name\":\"c\"," MEM(mem) "}]},\"status\":{"         \
                                                               "\"phase\":\"Running\"}}\n"

/* n has two cards of 16, m has one; 10 are used on each. "roomy" is empty. */
static const char world[] = NODE("n", "32", "2") NODE("m", "16", "1") NODE("roomy", "16", "1")
    BOUND("a", "n", "0", "10") BOUND("b", "n", "1", "10") BOUND("c", "m", "0", "10");

static inline void stage_open(void)
{
    struct err e = ERR_INIT;
    s = (struct stage){.service = {.loop = loop_make(), .filtered = daemon_filtered},
                       .ready = true};
    cache_init(&s.service.cache, (struct map_seed){1, 2});
    measured_init(&s.service.measured, (struct map_seed){1, 2}, 0);
    budgets_init(&s.service.budgets, (struct map_seed){3, 4});
    ck_assert_ok(embedded_new(s.service.loop, &s.service.cache, &s.service.measured, str_of(world),
                              STR("world"), &s.service.embedded, &e),
                 &e);
    s.backend = (struct backend){.ready = is_ready, .term = the_term, .asked = asked};
    s.service.backend = &s.backend;
    const struct http_server_settings settings = {.address = STR("127.0.0.1"),
                                                  .max_body = MIB,
                                                  .max_connections = 10,
                                                  .request_timeout_ms = 60000,
                                                  .idle_seconds = 60,
                                                  .stall_ms = 60000,
                                                  .handle = routes_handle,
                                                  .too_large = routes_too_large,
                                                  .answered = note_outcome,
                                                  .ctx = &s.service};
    ck_assert_ok(http_server_new(s.service.loop, &settings, &s.server, &e), &e);
}

static inline void stage_close(void)
{
    s.server = http_server_free(s.server);
    s.service.embedded = embedded_free(s.service.embedded);
    budgets_done(&s.service.budgets);
    measured_done(&s.service.measured);
    evaluation_memo_done(&s.service.evaluation_memo);
    cache_done(&s.service.cache);
    s.service.loop = loop_free(s.service.loop);
}

/* Sends a request; returns the answer's body. */
static inline const char *ask(const char *verb, const char *body)
{
    struct raw_conn p;
    char request[4096];
    int n = snprintf(request, sizeof(request),
                     "POST /gpushare-scheduler/%s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                     "Content-Length: %zu\r\n\r\n%s",
                     verb, strlen(body), body);
    ck_assert(n > 0 && n < (int)sizeof(request));
    raw_conn_connect(&p, s.service.loop, http_server_port(s.server));
    raw_conn_send(&p, (struct str){request, (size_t)n});
    raw_conn_await_end(&p);
    const char *text = buf_cstr(&p.in);
    ck_assert_ptr_nonnull(strstr(text, "HTTP/1.1 200 "));
    text = strstr(text, "\r\n\r\n");
    ck_assert_ptr_nonnull(text);
    (void)snprintf(s.answer, sizeof(s.answer), "%s", text + 4);
    raw_conn_close(&p);
    return s.answer;
}

static inline void answers(const char *verb, const char *body, const char *answer, unsigned outcome)
{
    ck_assert_str_eq(ask(verb, body), answer);
    ck_assert_uint_eq(s.outcome, outcome);
}

#define NAMES(pod, names) "{" pod ",\"NodeNames\":[" names "]}"
