/* TLS on the server's port, asked by our own client: whom it lets in, and files that change. */
#include "certificates.h"
#include "fail_alloc.h"
#include "origin.h"
#include "site.h"
#include "tls.h"

struct shop {
    struct site site;
    struct tls *tls;
    struct path paths[8];
    struct tls_settings settings;
    char url[64];
    unsigned verdict; /* of a client whose certificate is no good */
    char fault[128];  /* of the last one */
    size_t refused;   /* handshakes */
    struct http_client *client;
};

static unsigned admit(void *ctx, const struct http_caller *c)
{
    struct shop *s = ctx;
    if (c->certificate_fault == NULL)
        return 0;
    (void)snprintf(s->fault, sizeof(s->fault), "%s", c->certificate_fault);
    return s->verdict;
}

static void refused(void *ctx, struct str peer, const char *fault)
{
    struct shop *s = ctx;
    ck_assert(str_starts(peer, STR("127.0.0.1:")));
    (void)snprintf(s->fault, sizeof(s->fault), "%s", fault);
    s->refused++;
}

static void shop_open(struct shop *s, const char *ca, const char *names, bool optional)
{
    struct err e = ERR_INIT;
    *s = (struct shop){.verdict = 403};
    s->settings = (struct tls_settings){.cert_file = path_set(&s->paths[0], "server.crt"),
                                        .key_file = path_set(&s->paths[1], "server.key"),
                                        .client_ca_file = path_set(&s->paths[2], ca),
                                        .client_names = str_of(names),
                                        .optional = optional};
    ck_assert_ok(tls_new(&s->settings, &s->tls, &e), &e);
    struct http_server_settings set = settings(&s->site);
    set.tls = s->tls;
    set.admit = ca[0] == '\0' ? NULL : admit;
    set.refused = refused;
    set.admit_ctx = s;
    set.max_body = 8U << 20;
    open_with(&s->site, &set);
    (void)snprintf(s->url, sizeof(s->url), "https://127.0.0.1:%u/echo",
                   http_server_port(s->site.server));
}

/* From now on it is this client that asks; it trusts the CA named. */
static void shop_client(struct shop *s, const char *name, const char *trusts)
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
    ck_assert_ok(http_client_new(s->site.loop, &c, &s->client, &e), &e);
}

static void shop_close(struct shop *s)
{
    s->client = http_client_free(s->client);
    s->site.server = http_server_free(s->site.server);
    s->tls = tls_free(s->tls);
    close_site(&s->site);
}

/* The answer's status; 0: there was none. */
static unsigned ask_with(struct shop *s, struct str body)
{
    struct caller c;
    caller_init(&c, "POST", s->url, "");
    c.call.body = body;
    http_call_start(s->client, &c.call);
    caller_await(s->site.loop, &c);
    unsigned status = c.call.outcome == HTTP_ANSWERED ? c.call.status : 0;
    if (status == 200)
        ck_assert(str_eq(buf_str(&c.call.reply), body));
    caller_end(&c);
    return status;
}

static unsigned ask(struct shop *s)
{
    return ask_with(s, STR("hello"));
}

static const struct {
    const char *ca;
    const char *names;
    const char *client;
    const char *fault; /* NULL: it is let in */
} clients[] = {
    {"ca.crt", "", "client", NULL},
    {"ca.crt", "client.example", "client", NULL},
    {"ca.crt", "x, client", "client", NULL},
    {"ca.crt", "clien,client.exampl,client.example.org", "client",
     "the certificate's name is not in client-names"},
    {"ca.crt", "", "", "there is no certificate"},
    {"ca.crt", "", "stranger", "the certificate is of no CA in client-ca-file"},
    {"ca.crt", "", "expired", "the certificate has expired"},
    {"ca.crt", "", "purpose", "the certificate is not one for client authentication"},
    {"other.crt", "", "stranger", NULL},
    {"other.crt", "", "client", "the certificate is of no CA in client-ca-file"},
    {"", "", "", NULL},
    {"", "", "stranger", NULL},
};

START_TEST(whom_it_lets_in)
{
    struct shop s;
    bool good = clients[_i].fault == NULL;
    shop_open(&s, clients[_i].ca, clients[_i].names, false);
    shop_client(&s, clients[_i].client, "ca.crt");
    for (int again = 0; again < 2; again++)
        ck_assert_uint_eq(ask(&s), good ? 200 : 0);
    ck_assert_str_eq(s.fault, good ? "" : clients[_i].fault);
    ck_assert_uint_eq(s.site.handled, good ? 2 : 0);
    ck_assert(good == (s.refused == 0));
    shop_close(&s);
}

END_TEST

/* Where something else may admit it the handshake succeeds, and the fault is told. */
START_TEST(whom_it_leaves_to_others)
{
    struct shop s;
    if (clients[_i].ca[0] == '\0')
        return;
    bool good = clients[_i].fault == NULL;
    shop_open(&s, clients[_i].ca, clients[_i].names, true);
    shop_client(&s, clients[_i].client, "ca.crt");
    ck_assert_uint_eq(ask(&s), good ? 200 : 403);
    ck_assert_str_eq(s.fault, good ? "" : clients[_i].fault);
    s.verdict = 0;
    ck_assert_uint_eq(ask(&s), 200);
    ck_assert_uint_eq(s.site.handled, good ? 2 : 1);
    ck_assert_uint_eq(s.refused, 0);
    shop_close(&s);
}

END_TEST

START_TEST(large_bodies)
{
    static const size_t sizes[] = {0, 1, 16383, 16384, 16385, 250000, 8U << 20};
    struct shop s;
    struct buf memory;
    shop_open(&s, "ca.crt", "", false);
    shop_client(&s, "client", "ca.crt");
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        struct str body = letters(&memory, sizes[i]);
        ck_assert_uint_eq(ask_with(&s, body), 200);
        buf_done(&memory);
    }
    shop_close(&s);
}

END_TEST

static const struct {
    const char *cert;
    const char *key;
    const char *ca;
    enum errc code;
    const char *error; /* FOLDER stands for the folder */
} bad[] = {
    {"none.crt", "server.key", "ca.crt", ERR_NOTFOUND,
     "tls-cert-file: FOLDER/none.crt: No such file or directory"},
    {"server.crt", "none.key", "ca.crt", ERR_NOTFOUND,
     "tls-key-file: FOLDER/none.key: No such file or directory"},
    {"server.crt", "server.key", "none", ERR_NOTFOUND,
     "client-ca-file: FOLDER/none: No such file or directory"},
    {"empty", "server.key", "ca.crt", ERR_SYNTAX, "tls-cert-file FOLDER/empty: empty"},
    {"server.crt", "empty", "ca.crt", ERR_SYNTAX, "tls-key-file FOLDER/empty: empty"},
    {"server.crt", "server.key", "empty", ERR_SYNTAX, "client-ca-file FOLDER/empty: empty"},
    {"server.key", "server.key", "ca.crt", ERR_SYNTAX, "tls-cert-file FOLDER/server.key: "},
    {"server.crt", "server.crt", "ca.crt", ERR_SYNTAX, "tls-key-file FOLDER/server.crt: "},
    {"server.crt", "server.key", "server.key", ERR_SYNTAX, "client-ca-file FOLDER/server.key: "},
    {"half", "server.key", "ca.crt", ERR_SYNTAX, "tls-cert-file FOLDER/half: "},
    {"server.crt", "server.key", "half", ERR_SYNTAX, "client-ca-file FOLDER/half: "},
    {"server.crt", "locked.key", "ca.crt", ERR_SYNTAX, "tls-key-file FOLDER/locked.key: "},
    {"server.crt", "client.key", "ca.crt", ERR_SYNTAX,
     "tls-key-file FOLDER/client.key: The certificate and the given key do not match."},
};

START_TEST(files_that_cannot_be_used)
{
    struct path paths[3];
    struct err e = ERR_INIT;
    struct tls *tls = NULL;
    char expected[512] = "";
    struct tls_settings set = {.cert_file = path_set(&paths[0], bad[_i].cert),
                               .key_file = path_set(&paths[1], bad[_i].key),
                               .client_ca_file = path_set(&paths[2], bad[_i].ca)};
    run_shell("cd \"$1\" && : > empty && head -c 300 ca.crt > half", certificates_folder);
    ck_assert_int_eq(tls_new(&set, &tls, &e), bad[_i].code);
    const char *at = strstr(bad[_i].error, "FOLDER");
    (void)snprintf(expected, sizeof(expected), "%.*s%s%s", (int)(at - bad[_i].error), bad[_i].error,
                   certificates_folder, at + strlen("FOLDER"));
    ck_assert_msg(str_starts(str_of(e.text), str_of(expected)), "%s, not %s", e.text, expected);
    ck_assert_ptr_null(strstr(e.text, "BEGIN"));
}

END_TEST

START_TEST(what_is_known_of_a_certificate)
{
    struct path paths[2];
    struct err e = ERR_INIT;
    for (int named = 0; named < 2; named++) {
        struct tls *tls = NULL;
        struct tls_settings set = {
            .cert_file = path_set(&paths[0], named ? "server.crt" : "nameless.crt"),
            .key_file = path_set(&paths[1], named ? "server.key" : "nameless.key")};
        ck_assert_ok(tls_new(&set, &tls, &e), &e);
        ck_assert(tls_has_names(tls) == (named != 0));
        ck_assert_int_eq(tls_expires_s(tls) - tls_stale_s(tls), 2 * 86400 / 10);
        tls_free(tls);
    }
}

END_TEST

/* A copy of the shop's files, which the test then replaces. */
static void shop_open_moving(struct shop *s)
{
    struct err e = ERR_INIT;
    shop_open(s, "ca.crt", "", false);
    s->site.server = http_server_free(s->site.server);
    s->tls = tls_free(s->tls);
    run_shell("cd \"$1\" && cp server.crt now.crt && cp server.key now.key && cp ca.crt now.ca",
              certificates_folder);
    s->settings.cert_file = path_set(&s->paths[0], "now.crt");
    s->settings.key_file = path_set(&s->paths[1], "now.key");
    s->settings.client_ca_file = path_set(&s->paths[2], "now.ca");
    ck_assert_ok(tls_new(&s->settings, &s->tls, &e), &e);
    struct http_server_settings set = settings(&s->site);
    set.tls = s->tls;
    set.admit = admit;
    set.refused = refused;
    set.admit_ctx = s;
    ck_assert_ok(http_server_new(s->site.loop, &set, &s->site.server, &e), &e);
    (void)snprintf(s->url, sizeof(s->url), "https://127.0.0.1:%u/echo",
                   http_server_port(s->site.server));
}

START_TEST(a_new_pair_is_taken_and_nobody_is_dropped)
{
    struct shop s;
    struct err e = ERR_INIT;
    shop_open_moving(&s);
    shop_client(&s, "client", "ca.crt");
    ck_assert_uint_eq(ask(&s), 200);
    ck_assert_int_eq(tls_refresh(s.tls, &e), TLS_SAME);
    run_shell("cd \"$1\" && cp server2.crt new && mv new now.crt && cp server2.key new &&"
              " mv new now.key",
              certificates_folder);
    ck_assert_int_eq(tls_refresh(s.tls, &e), TLS_TAKEN);
    ck_assert_int_eq(tls_refresh(s.tls, &e), TLS_SAME);
    /* It would not trust the new one: its connection goes on. */
    ck_assert_uint_eq(ask(&s), 200);
    http_client_forget_connections(s.client);
    ck_assert_uint_eq(ask(&s), 0);
    shop_client(&s, "client", "other.crt");
    ck_assert_uint_eq(ask(&s), 200);
    shop_close(&s);
}

END_TEST

START_TEST(what_cannot_be_used_changes_nothing)
{
    struct shop s;
    struct err e = ERR_INIT;
    shop_open_moving(&s);
    shop_client(&s, "client", "ca.crt");
    /* The certificate has been written, its key has not. */
    run_shell("cp \"$1\"/server2.crt \"$1\"/now.crt", certificates_folder);
    ck_assert_int_eq(tls_refresh(s.tls, &e), TLS_REFUSED);
    ck_assert_ptr_nonnull(strstr(e.text, "do not match"));
    ck_assert_int_eq(tls_refresh(s.tls, &e), TLS_SAME); /* told already */
    ck_assert_uint_eq(ask(&s), 200);
    run_shell("rm \"$1\"/now.key", certificates_folder);
    ck_assert_int_eq(tls_refresh(s.tls, &e), TLS_REFUSED);
    ck_assert_int_eq(tls_refresh(s.tls, &e), TLS_SAME);
    run_shell("cp \"$1\"/server2.key \"$1\"/now.key", certificates_folder);
    ck_assert_int_eq(tls_refresh(s.tls, &e), TLS_TAKEN);
    shop_client(&s, "client", "other.crt");
    ck_assert_uint_eq(ask(&s), 200);
    shop_close(&s);
}

END_TEST

/* His connection began while his CA was good: the next request on it is refused. */
START_TEST(a_ca_that_is_gone_admits_nobody)
{
    struct shop s;
    struct err e = ERR_INIT;
    shop_open_moving(&s);
    shop_client(&s, "client", "ca.crt");
    ck_assert_uint_eq(ask(&s), 200);
    run_shell("cp \"$1\"/other.crt \"$1\"/now.ca", certificates_folder);
    ck_assert_int_eq(tls_refresh(s.tls, &e), TLS_TAKEN);
    ck_assert_uint_eq(ask(&s), 403);
    ck_assert_str_eq(s.fault, "the certificate is of no CA in client-ca-file");
    ck_assert_uint_eq(ask(&s), 0); /* and his next connection */
    ck_assert_uint_eq(s.site.handled, 1);
    shop_client(&s, "stranger", "ca.crt");
    ck_assert_uint_eq(ask(&s), 200);
    shop_close(&s);
}

END_TEST

struct drip {
    struct timer timer;
    struct peer *peer;
    struct str rest;
};

static void drip(struct timer *t)
{
    struct drip *d = CONTAINER_OF(t, struct drip, timer);
    if (d->peer->closed || d->rest.n == 0)
        return;
    peer_send(d->peer, (struct str){d->rest.p, 1});
    d->rest = str_skip(d->rest, 1);
    timer_arm(d->peer->loop, t, 20);
}

/* A record of 512 bytes that begins a handshake. */
#define HELLO "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"

START_TEST(a_handshake_has_a_deadline)
{
    static char record[517] = HELLO;
    struct shop s;
    struct peer p;
    struct err e = ERR_INIT;
    shop_open(&s, "ca.crt", "", false);
    s.site.server = http_server_free(s.site.server);
    struct http_server_settings set = settings(&s.site);
    set.tls = s.tls;
    set.request_timeout_ms = 200;
    ck_assert_ok(http_server_new(s.site.loop, &set, &s.site.server, &e), &e);
    dial(&s.site, &p);
    struct drip d = {.timer = {.fire = drip}, .peer = &p, .rest = {record, sizeof(record)}};
    timer_arm(s.site.loop, &d.timer, 0);
    peer_await_end(&p);
    ck_assert_uint_gt(d.rest.n, 0);
    timer_cancel(&d.timer);
    peer_close(&p);
    shop_close(&s);
}

END_TEST

static const struct str strange[] = {
    {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", 27},
    {"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00", 10},
    {"\x15\x03\x01\x00\x02\x02\x28", 7},
    {"\0\0\0\0\0\0\0\0\0\0\0\0", 12},
};

START_TEST(what_is_no_handshake_is_cut)
{
    struct shop s;
    struct peer p;
    shop_open(&s, "ca.crt", "", false);
    dial(&s.site, &p);
    peer_send(&p, strange[_i]);
    peer_await_end(&p);
    ck_assert_uint_eq(s.site.handled, 0);
    ck_assert_uint_eq(peer_count(&p, "HTTP"), 0);
    shop_client(&s, "client", "ca.crt");
    ck_assert_uint_eq(ask(&s), 200);
    peer_close(&p);
    shop_close(&s);
}

END_TEST

/* Handshakes under way, kept connections and a retired certificate: nothing is left behind. */
START_TEST(an_end_amid_everything)
{
    struct shop s;
    struct peer p[3];
    struct err e = ERR_INIT;
    shop_open_moving(&s);
    shop_client(&s, "client", "ca.crt");
    ck_assert_uint_eq(ask(&s), 200);
    for (int i = 0; i < 3; i++) {
        dial(&s.site, &p[i]);
        peer_send(&p[i], (struct str){HELLO, (size_t)(3 * i)});
    }
    run_turns(s.site.loop, 3);
    run_shell("cd \"$1\" && touch -d '1 hour ago' now.crt", certificates_folder);
    ck_assert_int_eq(tls_refresh(s.tls, &e), TLS_TAKEN);
    s.site.server = http_server_free(s.site.server);
    for (int i = 0; i < 3; i++) {
        peer_await_end(&p[i]);
        peer_close(&p[i]);
    }
    shop_close(&s);
}

END_TEST

static enum errc without_memory(void *ctx)
{
    struct path paths[3];
    struct tls *tls = NULL;
    struct err e = ERR_INIT;
    struct tls_settings set = {.cert_file = path_set(&paths[0], "server.crt"),
                               .key_file = path_set(&paths[1], "server.key"),
                               .client_ca_file = path_set(&paths[2], "ca.crt")};
    (void)ctx;
    enum errc code = tls_new(&set, &tls, &e);
    if (code == OK)
        tls_free(tls);
    return code;
}

START_TEST(memory_runs_out)
{
    ck_assert_uint_gt(fail_alloc_each(without_memory, NULL), 4);
}

END_TEST

int main(void)
{
    no_proxies();
    if (!certificates_make()) {
        certificates_remove();
        return EXIT_FAILURE;
    }
    Suite *s = suite_create("tls");
    TCase *c = tcase_create("tls");
    tcase_set_timeout(c, 60);
    tcase_add_loop_test(c, whom_it_lets_in, 0, COUNT_OF(clients));
    tcase_add_loop_test(c, whom_it_leaves_to_others, 0, COUNT_OF(clients));
    tcase_add_test(c, large_bodies);
    tcase_add_loop_test(c, files_that_cannot_be_used, 0, COUNT_OF(bad));
    tcase_add_test(c, what_is_known_of_a_certificate);
    tcase_add_test(c, a_new_pair_is_taken_and_nobody_is_dropped);
    tcase_add_test(c, what_cannot_be_used_changes_nothing);
    tcase_add_test(c, a_ca_that_is_gone_admits_nobody);
    tcase_add_test(c, a_handshake_has_a_deadline);
    tcase_add_loop_test(c, what_is_no_handshake_is_cut, 0, COUNT_OF(strange));
    tcase_add_test(c, an_end_amid_everything);
    tcase_add_test(c, memory_runs_out);
    suite_add_tcase(s, c);
    int status = unit_main(s);
    certificates_remove();
    return status;
}
