/* An event recorder and the API server that it writes to: shared by its tests. */
#pragma once

#include "kube/events.h"
#include "on_loop.h"
#include "script_server.h"

#define POST_P          "POST /base/api/v1/namespaces/ns/events HTTP/1.1\r\n"
#define STATUS(message) "{\"kind\":\"Status\",\"message\":\"" message "\"}"

static struct {
    struct loop *loop;
    struct script_server server;
    struct kube_api *api;
    struct events *events;
    char path[64];
    size_t wanted;
    bool drained;
    unsigned notes;
    uint64_t lost;
    struct err why;
} rig;

static inline void set_up(void)
{
    (void)snprintf(rig.path, sizeof(rig.path), "/tmp/cardpack-test-events-XXXXXX");
    int fd = mkstemp(rig.path);
    ck_assert_int_ge(fd, 0);
    (void)close(fd);
    rig.loop = loop_make();
}

static inline void on_note(void *ctx, uint64_t lost, const struct err *why)
{
    ck_assert_ptr_eq(ctx, &rig);
    rig.notes++;
    rig.lost += lost;
    rig.why = *why;
}

static inline const struct events_settings *settings(void)
{
    static struct events_settings s;
    s = (struct events_settings){.loop = rig.loop,
                                 .api = rig.api,
                                 .retry_ms = 1,
                                 .drain_ms = 60000,
                                 .note = on_note,
                                 .ctx = &rig};
    return &s;
}

static inline void serve(const struct script_step *steps, size_t n)
{
    struct err e = ERR_INIT;
    struct kube_api_settings s = {.kubeconfig = str_of(rig.path), .user_agent = STR("cardpack")};
    script_start(&rig.server, rig.loop, steps, n);
    script_kubeconfig(&rig.server, rig.path);
    ck_assert_ok(kube_api_new(rig.loop, &s, &rig.api, &e), &e);
    ck_assert_ok(events_new(settings(), &rig.events, &e), &e);
}

static inline void tear_down(void)
{
    rig.events = events_free(rig.events);
    rig.api = kube_api_free(rig.api);
    script_stop(&rig.server);
    rig.loop = loop_free(rig.loop);
    (void)unlink(rig.path);
}

static inline void on_drained(void *ctx)
{
    ck_assert_ptr_eq(ctx, &rig);
    ck_assert(!rig.drained);
    rig.drained = true;
}

/* Runs until every posted event is sent or dropped. */
static inline void drain(void)
{
    events_drain(rig.events, on_drained, &rig);
    ck_assert(!rig.drained);
    run_until(rig.loop, until_flag, &rig.drained);
}

static inline bool has_asked(void *ctx)
{
    (void)ctx;
    return rig.server.n_requests >= rig.wanted;
}

static inline void await_requests(size_t n)
{
    rig.wanted = n;
    run_until(rig.loop, has_asked, NULL);
}

static inline void happens(const char *pod, const char *message)
{
    struct event_subject p = {STR("ns"), str_of(pod), STR("u-1")};
    events_post(rig.events, &p, EVENT_WARNING, STR("FailedBinding"), str_of(message));
}

static inline size_t said(const char *text)
{
    size_t n = 0;
    for (const char *at = buf_cstr(&rig.server.heads); (at = strstr(at, text)) != NULL; at++)
        n++;
    return n;
}
