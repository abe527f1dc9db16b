/* A running program that reloads its configuration, and its log. */
#pragma once

#include "daemon/authentication.h"
#include "daemon/reload.h"
#include "daemon/service.h"
#include "http_fixture.h"

#include <signal.h>
#include <sys/mman.h>

struct rig {
    struct http_fixture http;
    struct service service;
    struct parts parts;
    struct config config;
    struct reload *reload;
    struct config_env env;
    char path[64];
    char flag[80];
    char *argv[4];
    int log;
};

static inline void put(const char *path, const char *text)
{
    char fresh[160];
    (void)snprintf(fresh, sizeof(fresh), "%s.new", path);
    FILE *f = fopen(fresh, "we");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_ge(fputs(text, f), 0);
    ck_assert_int_eq(fclose(f), 0);
    ck_assert_int_eq(rename(fresh, path), 0);
}

static inline void rig_open_resting(struct rig *r, const char *text, uint64_t rest_ms)
{
    struct err e = ERR_INIT;
    *r = (struct rig){.log = memfd_create("log", MFD_CLOEXEC)};
    static char name[] = "cardpack";
    static char format[] = "--log-format=json";
    (void)snprintf(r->path, sizeof(r->path), "/tmp/reload.%d", getpid());
    (void)snprintf(r->flag, sizeof(r->flag), "--config=%s", r->path);
    r->argv[0] = name;
    r->argv[1] = r->flag;
    r->argv[2] = format;
    put(r->path, text);
    reload_block();
    ck_assert_ok(config_parse(3, r->argv, &r->env, config_read_file, NULL, &r->config, &e), &e);
    ck_assert_int_eq(dup2(r->log, STDERR_FILENO), STDERR_FILENO);
    reload_set_log(&r->config);
    http_fixture_open(&r->http);
    r->service.loop = r->http.loop;
    r->parts = (struct parts){.service = &r->service};
    struct reload_settings set = {.parts = &r->parts,
                                  .config = &r->config,
                                  .argc = 3,
                                  .argv = r->argv,
                                  .env = r->env,
                                  .look_ms = 5,
                                  .rest_ms = rest_ms};
    ck_assert_ok(reload_new(&set, &r->reload, &e), &e);
}

static inline void rig_open(struct rig *r, const char *text)
{
    rig_open_resting(r, text, 5);
}

static inline void rig_close(struct rig *r)
{
    reload_stop(r->reload);
    r->parts.authentication = authentication_free(r->parts.authentication);
    http_fixture_close(&r->http);
    r->reload = reload_free(r->reload);
    config_done(&r->config);
    (void)unlink(r->path);
    (void)close(r->log);
}

/* How many lines of the log contain `part`. */
static inline size_t told(const struct rig *r, const char *part)
{
    static char text[1U << 18];
    ssize_t n = pread(r->log, text, sizeof(text) - 1, 0);
    ck_assert_int_ge(n, 0);
    text[n] = '\0';
    size_t count = 0;
    for (const char *at = text; (at = strstr(at, part)) != NULL; at++)
        count++;
    return count;
}

static inline uint64_t total(const struct rig *r)
{
    const struct reload_counts *c = reload_counts(r->reload);
    return c->taken + c->unchanged + c->refused;
}

struct turn {
    struct timer timer;
    struct loop *loop;
};

static inline void turned(struct timer *t)
{
    loop_stop(CONTAINER_OF(t, struct turn, timer)->loop);
}

static inline void turn(struct rig *r)
{
    struct err e = ERR_INIT;
    struct turn t = {.timer = {.fire = turned}, .loop = r->http.loop};
    timer_arm(r->http.loop, &t.timer, 1);
    ck_assert_ok(loop_run(r->http.loop, &e), &e);
}

static inline void await_total(struct rig *r, uint64_t wanted)
{
    run_while(r->http.loop, total(r) < wanted);
    ck_assert_uint_eq(total(r), wanted);
}

static inline void hang_up(struct rig *r)
{
    uint64_t before = total(r);
    ck_assert_int_eq(kill(getpid(), SIGHUP), 0);
    await_total(r, before + 1);
}
