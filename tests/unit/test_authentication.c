/* Which clients a port serves that requires client certificates, tokens, both or neither. */
#include "certificates.h"
#include "client_fixture.h"
#include "daemon/authentication.h"
#include "http_fixture.h"

#include <sys/mman.h>

#define TOKEN  "the-token-of-this-test"
#define OTHER  "another-token-altogether"
#define SECRET "the-token"

struct gate {
    struct http_fixture http;
    struct config config;
    struct authentication *authentication;
    struct path paths[8];
    char url[64];
    int log;
};

enum {
    TLS = 1,
    CA = 2,
    WANTS_TOKEN = 4,
};

static void put_token(const char *token)
{
    char command[256];
    (void)snprintf(command, sizeof(command),
                   "cd \"$1\" && echo '%s' > token.new && mv token.new token", token);
    run_shell(command, certificates_folder);
}

static void gate_open(struct gate *g, unsigned wants)
{
    struct err e = ERR_INIT;
    *g = (struct gate){.log = memfd_create("log", MFD_CLOEXEC)};
    log_setup(g->log, LOG_LEVEL_INFO, LOG_FORMAT_JSON);
    put_token(TOKEN);
    if (wants & TLS) {
        g->config.tls_cert_file = path_set(&g->paths[0], "server.crt");
        g->config.tls_key_file = path_set(&g->paths[1], "server.key");
    }
    if (wants & CA)
        g->config.client_ca_file = path_set(&g->paths[2], "ca.crt");
    if (wants & WANTS_TOKEN)
        g->config.token_file = path_set(&g->paths[3], "token");
    struct http_server_settings set = settings(&g->http);
    set.recheck_ms = 50;
    g->http = (struct http_fixture){.loop = loop_make(), .hop = {.run = hop}};
    ck_assert_ok(authentication_new(g->http.loop, &g->config, &g->authentication, &e), &e);
    authentication_settings(g->authentication, &set);
    ck_assert_ok(http_server_new(g->http.loop, &set, &g->http.server, &e), &e);
    (void)snprintf(g->url, sizeof(g->url), "%s://127.0.0.1:%u/echo", wants & TLS ? "https" : "http",
                   http_server_port(g->http.server));
}

/* Closes the gate; closing logs a pending count. */
static void gate_log(struct gate *g, struct buf *text)
{
    g->http.server = http_server_free(g->http.server);
    g->authentication = authentication_free(g->authentication);
    http_fixture_close(&g->http);
    buf_init(text, 1U << 20);
    ck_assert(buf_reserve(text, 1U << 16));
    ssize_t n = pread(g->log, text->p, 1U << 16, 0);
    ck_assert_int_ge(n, 0);
    text->n = (size_t)n;
    log_setup(STDERR_FILENO, LOG_LEVEL_INFO, LOG_FORMAT_LOGFMT);
    (void)close(g->log);
}

static void gate_close(struct gate *g)
{
    struct buf text;
    gate_log(g, &text);
    ck_assert_ptr_null(memmem(text.p, text.n, SECRET, strlen(SECRET)));
    ck_assert_ptr_null(memmem(text.p, text.n, "PRIVATE", 7));
    buf_done(&text);
}

static unsigned ask(struct gate *g, const char *client, const char *token)
{
    char file[64];
    struct err e = ERR_INIT;
    struct http_client *h = NULL;
    struct recorded_call c;
    struct http_client_settings set = {.ca_file = path_set(&g->paths[4], "ca.crt"),
                                       .allow_http = true};
    if (client[0] != '\0') {
        (void)snprintf(file, sizeof(file), "%s.crt", client);
        set.cert_file = path_set(&g->paths[5], file);
        (void)snprintf(file, sizeof(file), "%s.key", client);
        set.key_file = path_set(&g->paths[6], file);
    }
    ck_assert_ok(http_client_new(g->http.loop, &set, &h, &e), &e);
    recorded_call_init(&c, "POST", g->url, "");
    c.call.body = STR("body");
    c.call.bearer = str_of(token);
    http_call_start(h, &c.call);
    recorded_call_await(g->http.loop, &c);
    unsigned status = c.call.outcome == HTTP_ANSWERED ? c.call.status : 0;
    recorded_call_end(&c);
    http_client_free(h);
    return status;
}

static const struct {
    unsigned wants;
    const char *client;
    const char *token; /* NULL: none */
    unsigned status;   /* 0: no answer */
} cases[] = {
    {0, "", NULL, 200},
    {0, "", OTHER, 200},
    {TLS, "", NULL, 200},
    {TLS | CA, "client", NULL, 200},
    {TLS | CA, "client", OTHER, 200},
    {TLS | CA, "", TOKEN, 0},
    {TLS | CA, "stranger", TOKEN, 0},
    {TLS | CA, "expired", NULL, 0},
    {WANTS_TOKEN, "", TOKEN, 200},
    {WANTS_TOKEN, "", OTHER, 401},
    {WANTS_TOKEN, "", NULL, 401},
    {TLS | WANTS_TOKEN, "", TOKEN, 200},
    {TLS | WANTS_TOKEN, "", OTHER, 401},
    {TLS | WANTS_TOKEN, "client", NULL, 401},
    {TLS | CA | WANTS_TOKEN, "client", NULL, 200},
    {TLS | CA | WANTS_TOKEN, "client", OTHER, 200},
    {TLS | CA | WANTS_TOKEN, "", TOKEN, 200},
    {TLS | CA | WANTS_TOKEN, "stranger", TOKEN, 200},
    {TLS | CA | WANTS_TOKEN, "stranger", OTHER, 401},
    {TLS | CA | WANTS_TOKEN, "expired", NULL, 401},
    {TLS | CA | WANTS_TOKEN, "", NULL, 401},
};

TEST_EACH(who_is_served, COUNT_OF(cases))
{
    struct gate g;
    gate_open(&g, cases[_i].wants);
    for (int again = 0; again < 2; again++)
        ck_assert_uint_eq(ask(&g, cases[_i].client, cases[_i].token), cases[_i].status);
    ck_assert_uint_eq(g.http.handled, cases[_i].status == 200 ? 2 : 0);
    gate_close(&g);
}

/* A request with a newer token makes it look at the file; from then on the old token is
 * invalid. */
TEST(a_token_that_is_replaced)
{
    struct gate g;
    gate_open(&g, WANTS_TOKEN);
    ck_assert_uint_eq(ask(&g, "", TOKEN), 200);
    put_token(OTHER);
    ck_assert_uint_eq(ask(&g, "", OTHER), 200);
    ck_assert_uint_eq(ask(&g, "", TOKEN), 401);
    gate_close(&g);
}

static enum errc change(struct gate *g, const char *server, const char *key, const char *token,
                        struct authentication **draft)
{
    static struct path p[3];
    struct err e = ERR_INIT;
    struct config c = g->config;
    c.tls_cert_file = path_set(&p[0], server);
    c.tls_key_file = path_set(&p[1], key);
    c.token_file = path_set(&p[2], token);
    return authentication_draft(g->authentication, &c, draft, &e);
}

static void count(void *ctx)
{
    ++*(unsigned *)ctx;
}

/* Clients that were admitted for a longer time than one answer must be checked again. */
TEST(changes_are_told)
{
    struct gate g;
    struct authentication *draft = NULL;
    unsigned told = 0;
    gate_open(&g, TLS | CA | WANTS_TOKEN);
    authentication_on_change(g.authentication, count, &told);
    authentication_refresh(g.authentication);
    ck_assert_uint_eq(told, 0);
    put_token(OTHER);
    authentication_refresh(g.authentication);
    ck_assert_uint_eq(told, 1);
    run_shell("echo '" OTHER "' > \"$1\"/token2", certificates_folder);
    ck_assert_int_eq(change(&g, "server.crt", "server.key", "token2", &draft), OK);
    ck_assert_uint_eq(told, 1);
    authentication_become(g.authentication, draft);
    ck_assert_uint_eq(told, 2);
    authentication_on_change(NULL, count, &told);
    gate_close(&g);
}

static void ends_streams(void *ctx)
{
    const struct gate *g = ctx;
    http_server_end_streams(g->http.server);
}

/* By a notice of the change, or by its own look. */
TEST_EACH(a_stream_ends_with_its_token, 2)
{
    struct gate g;
    struct raw_conn p;
    gate_open(&g, WANTS_TOKEN);
    if (_i == 0)
        authentication_on_change(g.authentication, ends_streams, &g);
    dial(&g.http, &p);
    raw_conn_send(
        &p, STR("GET /stream HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " TOKEN "\r\n\r\n"));
    raw_conn_await(&p, "<1>", 1);
    authentication_refresh(g.authentication);
    run_turns(g.http.loop, 20);
    ck_assert_uint_eq(g.http.n_gone, 0);
    put_token(OTHER);
    if (_i == 0)
        authentication_refresh(g.authentication);
    else
        idle_clock_pass(10000); /* the next look at the files */
    await_gone(&g.http, 1);
    ck_assert_uint_eq(raw_conn_count(&p, "\r\n0\r\n\r\n"), 1);
    raw_conn_close(&p);
    gate_close(&g);
}

/* Each file is replaced by a pipe without a writer: no request may wait for the writer. */
TEST(a_pipe_keeps_nobody_waiting)
{
    struct gate g;
    struct authentication *draft = NULL;
    run_shell("cd \"$1\" && mkfifo pipe && cp server.crt a.crt && cp server.key a.key &&"
              " cp ca.crt a.ca",
              certificates_folder);
    gate_open(&g, TLS | CA | WANTS_TOKEN);
    ck_assert_int_eq(change(&g, "a.crt", "a.key", "pipe", &draft), ERR_RANGE);
    ck_assert_int_eq(change(&g, "pipe", "a.key", "token", &draft), ERR_RANGE);
    ck_assert_int_eq(change(&g, "a.crt", "pipe", "token", &draft), ERR_RANGE);
    g.config.client_ca_file = path_set(&g.paths[2], "pipe");
    ck_assert_int_eq(change(&g, "a.crt", "a.key", "token", &draft), ERR_RANGE);
    g.config.client_ca_file = path_set(&g.paths[2], "a.ca");
    ck_assert_int_eq(change(&g, "a.crt", "a.key", "token", &draft), OK);
    authentication_become(g.authentication, draft);
    run_shell("cd \"$1\" && for f in a.crt a.key a.ca token; do ln -f pipe $f; done",
              certificates_folder);
    authentication_refresh(g.authentication);
    ck_assert_uint_eq(ask(&g, "", OTHER), 401); /* this request makes it look, too */
    ck_assert_uint_eq(ask(&g, "", TOKEN), 200);
    ck_assert_uint_eq(ask(&g, "client", NULL), 200);
    run_shell("cd \"$1\" && rm pipe a.crt a.key a.ca token", certificates_folder);
    gate_close(&g);
}

/* Certificate and tokens change at the same moment, or neither does. */
TEST(other_files_in_one_moment)
{
    struct gate g;
    struct authentication *draft = NULL;
    gate_open(&g, TLS | CA | WANTS_TOKEN);
    run_shell("echo '" OTHER "' > \"$1\"/token2", certificates_folder);
    ck_assert_int_eq(change(&g, "server.crt", "server.key", "token", &draft), OK);
    ck_assert_ptr_null(draft);
    ck_assert_int_ne(change(&g, "server.crt", "server2.key", "token2", &draft), OK);
    ck_assert_int_ne(change(&g, "server2.crt", "server2.key", "gone", &draft), OK);
    ck_assert_uint_eq(ask(&g, "", TOKEN), 200);
    ck_assert_uint_eq(ask(&g, "", OTHER), 401);
    ck_assert_int_eq(change(&g, "server.crt", "server.key", "token2", &draft), OK);
    draft = authentication_free(draft); /* the draft is dropped */
    ck_assert_uint_eq(ask(&g, "", TOKEN), 200);
    ck_assert_int_eq(change(&g, "server.crt", "server.key", "token2", &draft), OK);
    authentication_become(g.authentication, draft);
    ck_assert_uint_eq(ask(&g, "", OTHER), 200);
    ck_assert_uint_eq(ask(&g, "", TOKEN), 401);
    ck_assert_int_eq(change(&g, "server2.crt", "server2.key", "token2", &draft), OK);
    authentication_become(g.authentication, draft);
    ck_assert_uint_eq(ask(&g, "", OTHER), 0); /* the client trusts the other CA */
    /* From now on it watches the new files. */
    ck_assert_int_eq(change(&g, "server.crt", "server.key", "token2", &draft), OK);
    authentication_become(g.authentication, draft);
    run_shell("echo '" TOKEN "' > \"$1\"/token2.new && mv \"$1\"/token2.new \"$1\"/token2",
              certificates_folder);
    authentication_refresh(g.authentication);
    ck_assert_uint_eq(ask(&g, "", OTHER), 401);
    ck_assert_uint_eq(ask(&g, "", TOKEN), 200);
    gate_close(&g);
}

/* Same files, but other names are admitted. */
TEST(other_names_alone)
{
    struct gate g;
    struct authentication *draft = NULL;
    struct err e = ERR_INIT;
    gate_open(&g, TLS | CA);
    ck_assert_uint_eq(ask(&g, "client", NULL), 200);
    g.config.client_names = STR("client.example");
    ck_assert_ok(authentication_draft(g.authentication, &g.config, &draft, &e), &e);
    ck_assert_ptr_nonnull(draft);
    authentication_become(g.authentication, draft);
    ck_assert_uint_eq(ask(&g, "client", NULL), 200);
    g.config.client_names = STR("another.example");
    ck_assert_ok(authentication_draft(g.authentication, &g.config, &draft, &e), &e);
    ck_assert_ptr_nonnull(draft);
    authentication_become(g.authentication, draft);
    ck_assert_uint_ne(ask(&g, "client", NULL), 200);
    gate_close(&g);
}

/* The client gets the refusal without its body being read; of a large body not even the end is
 * awaited. */
TEST(what_becomes_of_a_refused_body)
{
    static const size_t sizes[] = {0, 4, 250000, 1U << 20};
    struct gate g;
    struct raw_conn p;
    struct buf memory;
    gate_open(&g, WANTS_TOKEN);
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        struct str body = letters(&memory, sizes[i]);
        dial(&g.http, &p);
        post(&p, "/echo", body);
        raw_conn_await_end(&p);
        ck_assert_uint_eq(raw_conn_count(&p, "HTTP/1.1 401 Unauthorized\r\n"), 1);
        ck_assert_uint_eq(raw_conn_count(&p, "WWW-Authenticate: Bearer\r\n"), 1);
        raw_conn_close(&p);
        buf_done(&memory);
    }
    struct str body = letters(&memory, 8U << 20);
    dial(&g.http, &p);
    raw_conn_send(&p, STR("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 80000000\r\n\r\n"));
    raw_conn_send(&p, body);
    raw_conn_await_end(&p);
    buf_done(&memory);
    raw_conn_close(&p);
    ck_assert_uint_eq(g.http.handled, 0);
    ck_assert_uint_eq(g.http.too_large, 0);
    gate_close(&g);
}

TEST(refusals_are_told_with_a_count)
{
    enum {
        REFUSED = 40
    };
    struct gate g;
    struct buf text;
    size_t lines = 0;
    uint64_t total = 0;
    gate_open(&g, WANTS_TOKEN);
    for (int i = 0; i < REFUSED; i++)
        ck_assert_uint_eq(ask(&g, "", i % 2 == 0 ? OTHER : NULL), 401);
    gate_log(&g, &text);
    for (struct str line, rest = buf_str(&text); rest.p != NULL;) {
        (void)str_cut(rest, '\n', &line, &rest);
        const char *at = memmem(line.p, line.n, "\"count\":", 8);
        if (at == NULL)
            continue;
        uint64_t count = 0;
        struct str digits = str_skip(line, (size_t)(at - line.p) + 8);
        digits.n -= 1;
        ck_assert(str_to_u64(digits, REFUSED, &count));
        ck_assert_ptr_nonnull(memmem(line.p, line.n, "127.0.0.1:", 10));
        total += count;
        lines++;
    }
    ck_assert_uint_eq(total, REFUSED);
    ck_assert_uint_lt(lines, REFUSED / 2);
    buf_done(&text);
}

int main(void)
{
    no_proxies();
    if (!certificates_make()) {
        certificates_remove();
        return EXIT_FAILURE;
    }
    int status = unit_run();
    certificates_remove();
    return status;
}
