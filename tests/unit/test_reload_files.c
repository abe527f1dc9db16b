/* Files that the configuration and the kubeconfig name, while the program runs. */
#include "certificates.h"
#include "reload_rig.h"

#define TURNS 2000

/* Either the certificate or its key is missing at first, and is created later. */
TEST_EACH(a_missing_file_that_appears, 2)
{
    static const char *const missing[] = {"chain.crt", "chained.key"};
    struct rig r;
    struct err e = ERR_INIT;
    char text[512];
    (void)snprintf(text, sizeof(text),
                   "tls-cert-file: %s/server.crt\ntls-key-file: %s/server.key\n",
                   certificates_folder, certificates_folder);
    rig_open(&r, text);
    ck_assert_ok(authentication_new(r.http.loop, &r.config, &r.parts.authentication, &e), &e);
    int64_t expires_s = *authentication_expiry(r.parts.authentication);
    (void)snprintf(text, sizeof(text), "mv \"$1\"/%s \"$1\"/kept", missing[_i]);
    run_shell(text, certificates_folder);
    (void)snprintf(text, sizeof(text),
                   "log-level: error\ntls-cert-file: %s/chain.crt\ntls-key-file: %s/chained.key\n",
                   certificates_folder, certificates_folder);
    put(r.path, text);
    await_total(&r, 1);
    ck_assert_uint_eq(reload_counts(r.reload)->refused, 1);
    ck_assert_uint_eq(told(&r, missing[_i]), 1);
    ck_assert_int_ne(r.config.log_level, LOG_LEVEL_ERROR);
    ck_assert_int_eq(*authentication_expiry(r.parts.authentication), expires_s);
    /* The configuration's file stays unchanged. */
    (void)snprintf(text, sizeof(text), "mv \"$1\"/kept \"$1\"/%s", missing[_i]);
    run_shell(text, certificates_folder);
    for (int i = 0; i < TURNS && total(&r) < 2; i++)
        turn(&r);
    ck_assert_uint_eq(reload_counts(r.reload)->taken, 1);
    ck_assert(!reload_counts(r.reload)->bad);
    ck_assert_int_eq(r.config.log_level, LOG_LEVEL_ERROR);
    ck_assert_int_lt(*authentication_expiry(r.parts.authentication),
                     expires_s); /* its intermediate has a day */
    rig_close(&r);
}

/* The certificate is renewed under its name. Without a signal the program would notice later. */
TEST(a_signal_takes_the_certificate)
{
    struct rig r;
    struct err e = ERR_INIT;
    char text[512];
    run_shell("cp \"$1\"/server.crt \"$1\"/own.crt && cp \"$1\"/server.key \"$1\"/own.key",
              certificates_folder);
    (void)snprintf(text, sizeof(text), "tls-cert-file: %s/own.crt\ntls-key-file: %s/own.key\n",
                   certificates_folder, certificates_folder);
    rig_open(&r, text);
    ck_assert_ok(authentication_new(r.http.loop, &r.config, &r.parts.authentication, &e), &e);
    int64_t expires_s = *authentication_expiry(r.parts.authentication);
    run_shell("cp \"$1\"/chain.crt \"$1\"/own.crt && cp \"$1\"/chained.key \"$1\"/own.key",
              certificates_folder);
    hang_up(&r);
    ck_assert_uint_eq(reload_counts(r.reload)->unchanged, 1);
    ck_assert_int_lt(*authentication_expiry(r.parts.authentication),
                     expires_s); /* its intermediate has a day */
    rig_close(&r);
}

/* An API server with a certificate; it knows its clients by their tokens. */
struct api_server {
    struct http_fixture http;
    struct config config;
    struct authentication *authentication;
    struct path paths[4];
    char url[64];
    struct path ca;
    struct path own;
    struct kubeconfig kubeconfig;
};

static void token_is(const char *name, const char *token)
{
    struct path p;
    (void)path_set(&p, name);
    put(p.text, token);
}

static void api_server_open(struct api_server *a, struct loop *l)
{
    struct err e = ERR_INIT;
    *a = (struct api_server){.http = {.loop = l, .hop = {.run = hop}}};
    struct http_server_settings set = settings(&a->http);
    a->config.tls_cert_file = path_set(&a->paths[0], "server.crt");
    a->config.tls_key_file = path_set(&a->paths[1], "server.key");
    a->config.token_file = path_set(&a->paths[2], "known");
    ck_assert_ok(authentication_new(l, &a->config, &a->authentication, &e), &e);
    authentication_settings(a->authentication, &set);
    ck_assert_ok(http_server_new(l, &set, &a->http.server, &e), &e);
    (void)snprintf(a->url, sizeof(a->url), "https://127.0.0.1:%u",
                   http_server_port(a->http.server));
    a->kubeconfig = (struct kubeconfig){.server = str_of(a->url),
                                        .ca_file = path_set(&a->ca, "ca.crt"),
                                        .token_file = path_set(&a->own, "own")};
}

struct question {
    struct kube_call call;
    bool done;
};

static void answered(struct http_call *http)
{
    CONTAINER_OF(http, struct question, call.http)->done = true;
}

/* The API server's answer to a request of the program. */
static unsigned asks(struct rig *r)
{
    struct question q = {.call.http = {.body = STR("body"), .on_done = answered}};
    kube_call_start(r->parts.api, &q.call, "POST", STR("/echo"));
    for (int i = 0; i < TURNS && !q.done; i++)
        turn(r);
    ck_assert(q.done);
    ck_assert_int_eq(q.call.http.outcome, HTTP_ANSWERED);
    unsigned status = q.call.http.status;
    kube_call_done(&q.call);
    return status;
}

TEST(a_signal_takes_the_token_for_the_api_server)
{
    struct rig r;
    struct err e = ERR_INIT;
    static struct api_server a;
    token_is("known", "a-token-that-is-known\n");
    token_is("own", "a-token-that-is-known\n");
    rig_open(&r, "log-level: debug\n");
    api_server_open(&a, r.http.loop);
    struct kube_api_settings set = {.config = &a.kubeconfig, .user_agent = STR("test/1")};
    ck_assert_ok(kube_api_new(r.http.loop, &set, &r.parts.api, &e), &e);
    ck_assert_uint_eq(asks(&r), 200);
    token_is("known", "another-token-is-known\n");
    token_is("own", "another-token-is-known\n");
    authentication_refresh(a.authentication);
    /* The program read its token less than 50 s ago. */
    ck_assert_uint_eq(asks(&r), 401);
    hang_up(&r);
    ck_assert_uint_eq(asks(&r), 200);
    r.parts.api = kube_api_free(r.parts.api);
    a.http.server = http_server_free(a.http.server);
    a.authentication = authentication_free(a.authentication);
    rig_close(&r);
}

/* A file that has changed must stay unchanged, here for an hour, before it is read: it may be
 * incomplete. */
TEST(a_file_that_has_just_changed_is_not_read)
{
    struct rig r;
    rig_open_resting(&r, "log-level: debug\n", 3600000);
    put(r.path, "log-level: error\n");
    for (int i = 0; i < 30; i++)
        turn(&r);
    ck_assert_uint_eq(total(&r), 0);
    ck_assert_int_eq(r.config.log_level, LOG_LEVEL_DEBUG);
    hang_up(&r); /* a signal says that it is complete */
    ck_assert_uint_eq(reload_counts(r.reload)->taken, 1);
    ck_assert_int_eq(r.config.log_level, LOG_LEVEL_ERROR);
    rig_close(&r);
}

int main(void)
{
    if (!certificates_make()) {
        certificates_remove();
        return EXIT_FAILURE;
    }
    int status = unit_run();
    certificates_remove();
    return status;
}
