/* TLS on the server's port, with cardpack's own client: which clients are admitted, and files that
 * change. */
#include "fail_alloc.h"
#include "tls_fixture.h"

static const struct {
    const char *ca;
    const char *names;
    const char *client;
    const char *fault; /* NULL: admitted */
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

TEST_EACH(whom_it_lets_in, COUNT_OF(clients))
{
    struct tls_fixture s;
    bool good = clients[_i].fault == NULL;
    tls_fixture_open(&s, clients[_i].ca, clients[_i].names, false);
    tls_fixture_client(&s, clients[_i].client, "ca.crt");
    for (int again = 0; again < 2; again++)
        ck_assert_uint_eq(ask(&s), good ? 200 : 0);
    ck_assert_str_eq(s.fault, good ? "" : clients[_i].fault);
    ck_assert_uint_eq(s.http.handled, good ? 2 : 0);
    ck_assert(good == (s.refused == 0));
    tls_fixture_close(&s);
}

/* If another check may admit the client, the handshake succeeds, and the fault is reported. */
TEST_EACH(whom_it_leaves_to_others, COUNT_OF(clients))
{
    struct tls_fixture s;
    if (clients[_i].ca[0] == '\0')
        return;
    bool good = clients[_i].fault == NULL;
    tls_fixture_open(&s, clients[_i].ca, clients[_i].names, true);
    tls_fixture_client(&s, clients[_i].client, "ca.crt");
    ck_assert_uint_eq(ask(&s), good ? 200 : 403);
    ck_assert_str_eq(s.fault, good ? "" : clients[_i].fault);
    s.verdict = 0;
    ck_assert_uint_eq(ask(&s), 200);
    ck_assert_uint_eq(s.http.handled, good ? 2 : 1);
    ck_assert_uint_eq(s.refused, 0);
    tls_fixture_close(&s);
}

TEST(large_bodies)
{
    static const size_t sizes[] = {0, 1, 16383, 16384, 16385, 250000, 8U << 20};
    struct tls_fixture s;
    struct buf memory;
    tls_fixture_open(&s, "ca.crt", "", false);
    tls_fixture_client(&s, "client", "ca.crt");
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        struct str body = letters(&memory, sizes[i]);
        ck_assert_uint_eq(ask_with(&s, body), 200);
        buf_done(&memory);
    }
    tls_fixture_close(&s);
}

/* The handler suspends the connections, as they were suspended during their handshake. */
TEST(answers_that_come_later)
{
    struct tls_fixture s;
    struct recorded_call c[3];
    tls_fixture_open(&s, "ca.crt", "", false);
    for (int again = 0; again < 3; again++) {
        tls_fixture_client(&s, "client", "ca.crt");
        (void)snprintf(strstr(s.url, "/echo"), sizeof("/hold"), "/hold");
        for (int i = 0; i < 3; i++) {
            recorded_call_init(&c[i], "POST", s.url, "");
            c[i].call.body = STR("later");
            http_call_start(s.client, &c[i].call);
        }
        s.http.n_held = 0;
        await_held(&s.http, 3);
        run_turns(s.http.loop, 5);
        for (int i = 0; i < 3; i++)
            respond(s.http.held[i], s.http.held[i]->body);
        for (int i = 0; i < 3; i++) {
            recorded_call_await(s.http.loop, &c[i]);
            ck_assert_uint_eq(c[i].call.status, 200);
            recorded_call_end(&c[i]);
        }
        (void)snprintf(strstr(s.url, "/hold"), sizeof("/echo"), "/echo");
        ck_assert_uint_eq(ask(&s), 200);
    }
    tls_fixture_close(&s);
}

static const struct {
    const char *cert;
    const char *key;
    const char *ca;
    enum errc code;
    const char *error; /* FOLDER is replaced by the folder */
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

TEST_EACH(files_that_cannot_be_used, COUNT_OF(bad))
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

TEST(what_is_known_of_a_certificate)
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

/* A chain is valid until its first certificate expires, whichever that is. */
TEST(an_intermediate_that_ends_before_its_leaf)
{
    static const char *const certs[] = {"chained.crt", "chain.crt"};
    struct path paths[2];
    struct err e = ERR_INIT;
    int64_t expires_s[COUNT_OF(certs)];
    for (size_t i = 0; i < COUNT_OF(certs); i++) {
        struct tls *tls = NULL;
        struct tls_settings set = {.cert_file = path_set(&paths[0], certs[i]),
                                   .key_file = path_set(&paths[1], "chained.key")};
        ck_assert_ok(tls_new(&set, &tls, &e), &e);
        expires_s[i] = tls_expires_s(tls);
        /* A tenth of that certificate's life. */
        ck_assert_int_eq(expires_s[i] - tls_stale_s(tls), (i == 0 ? 20 : 1) * 86400 / 10);
        tls_free(tls);
    }
    /* Both were made within a few minutes: the leaf is valid for some 19 days more. */
    ck_assert_int_gt(expires_s[0] - expires_s[1], INT64_C(18) * 86400);
}

TEST(a_new_pair_is_taken_and_nobody_is_dropped)
{
    struct tls_fixture s;
    struct err e = ERR_INIT;
    tls_fixture_open_moving(&s);
    tls_fixture_client(&s, "client", "ca.crt");
    ck_assert_uint_eq(ask(&s), 200);
    ck_assert_int_eq(tls_refresh(s.tls, &e), TLS_SAME);
    run_shell("cd \"$1\" && cp server2.crt new && mv new now.crt && cp server2.key new &&"
              " mv new now.key",
              certificates_folder);
    ck_assert_int_eq(tls_refresh(s.tls, &e), TLS_TAKEN);
    ck_assert_int_eq(tls_refresh(s.tls, &e), TLS_SAME);
    /* The client would not trust the new certificate, but its connection goes on. */
    ck_assert_uint_eq(ask(&s), 200);
    http_client_forget_connections(s.client);
    ck_assert_uint_eq(ask(&s), 0);
    tls_fixture_client(&s, "client", "other.crt");
    ck_assert_uint_eq(ask(&s), 200);
    tls_fixture_close(&s);
}

TEST(what_cannot_be_used_changes_nothing)
{
    struct tls_fixture s;
    struct err e = ERR_INIT;
    tls_fixture_open_moving(&s);
    tls_fixture_client(&s, "client", "ca.crt");
    /* The certificate has been written, its key not yet. */
    run_shell("cp \"$1\"/server2.crt \"$1\"/now.crt", certificates_folder);
    ck_assert_int_eq(tls_refresh(s.tls, &e), TLS_REFUSED);
    ck_assert_ptr_nonnull(strstr(e.text, "do not match"));
    ck_assert_int_eq(tls_refresh(s.tls, &e), TLS_SAME); /* reported before */
    ck_assert_uint_eq(ask(&s), 200);
    run_shell("rm \"$1\"/now.key", certificates_folder);
    ck_assert_int_eq(tls_refresh(s.tls, &e), TLS_REFUSED);
    ck_assert_int_eq(tls_refresh(s.tls, &e), TLS_SAME);
    run_shell("cp \"$1\"/server2.key \"$1\"/now.key", certificates_folder);
    ck_assert_int_eq(tls_refresh(s.tls, &e), TLS_TAKEN);
    tls_fixture_client(&s, "client", "other.crt");
    ck_assert_uint_eq(ask(&s), 200);
    tls_fixture_close(&s);
}

/*
 * The CA list that last checked the client is freed, and the new one may have the same address:
 * each new list must check the client again.
 */
TEST(every_new_ca_verifies_again)
{
    struct tls_fixture s;
    struct err e = ERR_INIT;
    tls_fixture_open_moving(&s);
    tls_fixture_client(&s, "client", "ca.crt");
    s.verdict = 0; /* admitted, so that the connection stays; the fault is noted */
    for (int i = 0; i < 12; i++) {
        struct path p;
        struct tls_settings other = s.settings;
        struct tls *fresh = NULL;
        other.client_ca_file = path_set(&p, i % 2 == 0 ? "ca.crt" : "other.crt");
        ck_assert_ok(tls_new(&other, &fresh, &e), &e);
        tls_become(s.tls, fresh);
        s.fault[0] = '\0';
        (void)ask(&s);
        ck_assert_msg((s.fault[0] == '\0') == (i % 2 == 0), "turn %d: \"%s\"", i, s.fault);
    }
    ck_assert_uint_eq(s.refused, 0);
    s.settings.client_ca_file = path_set(&s.paths[2], "now.ca");
    struct tls *fresh = NULL;
    ck_assert_ok(tls_new(&s.settings, &fresh, &e), &e);
    tls_become(s.tls, fresh);
    tls_fixture_close(&s);
}

/* The connection began while the client's CA was valid: its next request is refused. */
TEST(a_ca_that_is_gone_admits_nobody)
{
    struct tls_fixture s;
    struct err e = ERR_INIT;
    tls_fixture_open_moving(&s);
    tls_fixture_client(&s, "client", "ca.crt");
    ck_assert_uint_eq(ask(&s), 200);
    run_shell("cp \"$1\"/other.crt \"$1\"/now.ca", certificates_folder);
    ck_assert_int_eq(tls_refresh(s.tls, &e), TLS_TAKEN);
    ck_assert_uint_eq(ask(&s), 403);
    ck_assert_str_eq(s.fault, "the certificate is of no CA in client-ca-file");
    ck_assert_uint_eq(ask(&s), 0); /* and so is its next connection */
    ck_assert_uint_eq(s.http.handled, 1);
    tls_fixture_client(&s, "stranger", "ca.crt");
    ck_assert_uint_eq(ask(&s), 200);
    tls_fixture_close(&s);
}

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

TEST(memory_runs_out)
{
    ck_assert_uint_gt(fail_alloc_each(without_memory, NULL), 4);
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
