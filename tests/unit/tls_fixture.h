/* An HTTP server (http_fixture.h) with TLS, and a client of it. */
#pragma once

#include "certificates.h"
#include "client_fixture.h"
#include "http_fixture.h"
#include "io/tls.h"

struct tls_fixture {
    struct http_fixture http;
    struct tls *tls;
    struct path paths[8];
    struct tls_settings settings;
    char url[64];
    unsigned verdict; /* the status for a client with a bad certificate */
    char fault[128];  /* the last client's fault */
    size_t refused;   /* refused handshakes */
    struct http_client *client;
};

static inline unsigned admit(void *ctx, const struct http_caller *c)
{
    struct tls_fixture *s = ctx;
    if (c->certificate_fault == NULL)
        return 0;
    (void)snprintf(s->fault, sizeof(s->fault), "%s", c->certificate_fault);
    return s->verdict;
}

static inline void refused(void *ctx, struct str peer, const char *fault)
{
    struct tls_fixture *s = ctx;
    ck_assert(str_starts(peer, STR("127.0.0.1:")));
    (void)snprintf(s->fault, sizeof(s->fault), "%s", fault);
    s->refused++;
}

static inline void tls_fixture_open(struct tls_fixture *s, const char *ca, const char *names,
                                    bool optional)
{
    struct err e = ERR_INIT;
    *s = (struct tls_fixture){.verdict = 403};
    s->settings = (struct tls_settings){.cert_file = path_set(&s->paths[0], "server.crt"),
                                        .key_file = path_set(&s->paths[1], "server.key"),
                                        .client_ca_file = path_set(&s->paths[2], ca),
                                        .client_names = str_of(names),
                                        .optional = optional};
    ck_assert_ok(tls_new(&s->settings, &s->tls, &e), &e);
    struct http_server_settings set = settings(&s->http);
    set.tls = s->tls;
    set.admit = ca[0] == '\0' ? NULL : admit;
    set.refused = refused;
    set.admit_ctx = s;
    set.max_body = 8U << 20;
    open_with(&s->http, &set);
    (void)snprintf(s->url, sizeof(s->url), "https://127.0.0.1:%u/echo",
                   http_server_port(s->http.server));
}

/* From now on requests come from this client, which trusts this CA. */
static inline void tls_fixture_client(struct tls_fixture *s, const char *name, const char *trusts)
{
    char file[64];
    struct err e = ERR_INIT;
    s->client = http_client_free(s->client);
    struct http_client_settings c = {.ca_file = path_set(&s->paths[3], trusts)};
    if (name[0] != '\0') {
        (void)snprintf(file, sizeof(file), "%s.crt", name);
        c.cert_file = path_set(&s->paths[4], file);
        (void)snprintf(file, sizeof(file), "%s.key", name);
        c.key_file = path_set(&s->paths[5], file);
    }
    ck_assert_ok(http_client_new(s->http.loop, &c, &s->client, &e), &e);
}

static inline void tls_fixture_close(struct tls_fixture *s)
{
    s->client = http_client_free(s->client);
    s->http.server = http_server_free(s->http.server);
    s->tls = tls_free(s->tls);
    http_fixture_close(&s->http);
}

/* Returns the answer's status; 0: no answer. */
static inline unsigned ask_with(struct tls_fixture *s, struct str body)
{
    struct recorded_call c;
    recorded_call_init(&c, "POST", s->url, "");
    c.call.body = body;
    http_call_start(s->client, &c.call);
    recorded_call_await(s->http.loop, &c);
    unsigned status = c.call.outcome == HTTP_ANSWERED ? c.call.status : 0;
    if (status == 200)
        ck_assert(str_eq(buf_str(&c.call.reply), body));
    recorded_call_end(&c);
    return status;
}

static inline unsigned ask(struct tls_fixture *s)
{
    return ask_with(s, STR("hello"));
}

/* Opens a copy of the server's files, which the test then replaces. */
static inline void tls_fixture_open_moving(struct tls_fixture *s)
{
    struct err e = ERR_INIT;
    tls_fixture_open(s, "ca.crt", "", false);
    s->http.server = http_server_free(s->http.server);
    s->tls = tls_free(s->tls);
    run_shell("cd \"$1\" && cp server.crt now.crt && cp server.key now.key && cp ca.crt now.ca",
              certificates_folder);
    s->settings.cert_file = path_set(&s->paths[0], "now.crt");
    s->settings.key_file = path_set(&s->paths[1], "now.key");
    s->settings.client_ca_file = path_set(&s->paths[2], "now.ca");
    ck_assert_ok(tls_new(&s->settings, &s->tls, &e), &e);
    struct http_server_settings set = settings(&s->http);
    set.tls = s->tls;
    set.admit = admit;
    set.refused = refused;
    set.admit_ctx = s;
    ck_assert_ok(http_server_new(s->http.loop, &set, &s->http.server, &e), &e);
    (void)snprintf(s->url, sizeof(s->url), "https://127.0.0.1:%u/echo",
                   http_server_port(s->http.server));
}
