/* ExecCredential objects: what a login program is given, and what its output means. */
#include "codec/exec_credential.h"

#include "base/limit.h"
#include "fail_alloc.h"
#include "unit.h"

#define V1     "client.authentication.k8s.io/v1"
#define V1BETA "client.authentication.k8s.io/v1beta1"
#define PEM    "-----BEGIN X-----\\n"
#define SECRET "s3cret"

static struct arena arena;
static struct buf out;
static struct err err;

static void setup(void)
{
    arena_init(&arena, 8 * MIB);
    buf_init(&out, MIB);
    err = (struct err)ERR_INIT;
}

static void teardown(void)
{
    buf_done(&out);
    arena_done(&arena);
}

/* Byte for byte what client-go writes, except members that it omits when they are empty. */
START_TEST(told)
{
    struct kubeconfig_exec e = {.version = STR(V1), .cluster_config = STR("{\"a\":[1]}")};
    struct kubeconfig k = {.server = STR("https://h:1"),
                           .tls_server_name = STR("name"),
                           .proxy_url = STR("http://p"),
                           .insecure_skip_tls_verify = true};
    exec_credential_write(&e, &k, STR("Q0E="), false, &out);
    ck_assert_str_is(buf_str(&out), "{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1
                                    "\",\"spec\":{\"interactive\":false}}");
    buf_clear(&out, 0);
    e.provide_cluster_info = true;
    e.disable_compression = true;
    exec_credential_write(&e, &k, STR("Q0E="), true, &out);
    ck_assert_str_is(buf_str(&out),
                     "{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1
                     "\",\"spec\":{\"cluster\":{\"server\":\"https://h:1\",\"tls-server-name\":"
                     "\"name\",\"insecure-skip-tls-verify\":true,\"certificate-authority-data\":"
                     "\"Q0E=\",\"proxy-url\":\"http://p\",\"disable-compression\":true,\"config\":"
                     "{\"a\":[1]}},\"interactive\":true}}");
    buf_clear(&out, 0);
    k = (struct kubeconfig){.server = STR("https://h:1")};
    e = (struct kubeconfig_exec){.version = STR(V1BETA), .provide_cluster_info = true};
    exec_credential_write(&e, &k, STR_NULL, false, &out);
    ck_assert_str_is(
        buf_str(&out),
        "{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1BETA
        "\",\"spec\":{\"cluster\":{\"server\":\"https://h:1\"},\"interactive\":false}}");
}

END_TEST

#define ANSWER(status) \
    "{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1 "\",\"status\":" status "}"

static const struct {
    const char *text;
    const char *token; /* NULL: none */
    bool cert;
    uint32_t expires_s;
} good[] = {
    {ANSWER("{\"token\":\"a.b-c\"}"), "a.b-c", false, 0},
    {ANSWER("{\"token\":\"t\",\"more\":{}}") "\n", "t", false, 0},
    {ANSWER("{\"clientCertificateData\":\"" PEM "\",\"clientKeyData\":\"" PEM "\"}"), NULL, true,
     0},
    {ANSWER("{\"token\":\"t\",\"clientCertificateData\":\"" PEM "\",\"clientKeyData\":\"" PEM
            "\"}"),
     "t", true, 0},
    {ANSWER("{\"token\":\"t\",\"clientCertificateData\":\"\",\"clientKeyData\":null}"), "t", false,
     0},
    {ANSWER("{\"token\":\"t\",\"expirationTimestamp\":null}"), "t", false, 0},
    {ANSWER("{\"token\":\"t\",\"expirationTimestamp\":\"2026-11-22T05:40:00Z\"}"), "t", false,
     1795326000},
    {ANSWER("{\"token\":\"t\",\"expirationTimestamp\":\"2026-11-22T06:40:00+01:00\"}"), "t", false,
     1795326000},
    {ANSWER("{\"token\":\"t\",\"expirationTimestamp\":\"2026-11-22T05:10:00.123-00:30\"}"), "t",
     false, 1795326000},
    {ANSWER("{\"token\":\"t\",\"expirationTimestamp\":\"9999-12-31T23:59:59Z\"}"), "t", false,
     UINT32_MAX},
    {ANSWER("{\"token\":\"t\",\"expirationTimestamp\":\"0001-01-01T00:00:00Z\"}"), "t", false, 0},
    {"kind: ExecCredential\napiVersion: " V1 "\nstatus:\n  token: from-yaml\n", "from-yaml", false,
     0},
};

START_TEST(answered)
{
    struct exec_credential c;
    ck_assert_ok(exec_credential_read(str_of(good[_i].text), STR(V1), &arena, &c, &err), &err);
    if (good[_i].token == NULL)
        ck_assert_ptr_null(c.token.p);
    else
        ck_assert_str_is(c.token, good[_i].token);
    ck_assert(good[_i].cert == (c.cert.n > 0) && good[_i].cert == (c.key.n > 0));
    ck_assert_uint_eq(c.expires_s, good[_i].expires_s);
}

END_TEST

static const struct {
    const char *text;
    const char *says;
} bad[] = {
    {"", "kind: \"\" must be ExecCredential"},
    {SECRET, "expected an object, got a string at offset 0"},
    {"{\"token\": " SECRET "}", "at offset 10"},
    {"{\"token\": \"" SECRET, ""},
    {"[1]", "expected an object, got a list at offset 0"},
    {"a: b: " SECRET, "line 1, column 5"},
    {"{\"kind\":\"Status\",\"apiVersion\":\"" V1 "\"}", "kind: \"Status\" must be ExecCredential"},
    {"{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1BETA "\",\"status\":{\"token\":\"t\"}}",
     "apiVersion: \"" V1BETA "\" must be " V1 ", as the kubeconfig has it"},
    {"{\"kind\":\"ExecCredential\",\"status\":{\"token\":\"t\"}}", "apiVersion: \"\" must be " V1},
    {"{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1 "\"}", "status is not there"},
    {ANSWER("null"), "status is not there"},
    {ANSWER("{}"), "status has neither a token nor a certificate with its key"},
    {ANSWER("{\"token\":\"\"}"), "status has neither a token nor a certificate with its key"},
    {ANSWER("[]"), "status: expected an object, got a list"},
    {ANSWER("{\"token\":7}"), "status.token: expected a string, got a number"},
    {ANSWER("{\"token\":\"" SECRET "\\n\"}"), "status.token: holds a character that no token has"},
    {ANSWER("{\"token\":\"" SECRET " x\"}"), "status.token: holds a character that no token has"},
    {ANSWER("{\"clientCertificateData\":\"" PEM "\"}"),
     "status.clientCertificateData without clientKeyData"},
    {ANSWER("{\"token\":\"t\",\"clientKeyData\":\"" PEM "\"}"),
     "status.clientKeyData without clientCertificateData"},
    {ANSWER("{\"clientCertificateData\":\"" PEM "\",\"clientKeyData\":\"" SECRET "\"}"),
     "status.clientKeyData: not PEM"},
    {ANSWER("{\"token\":\"t\",\"expirationTimestamp\":\"tomorrow\"}"),
     "status.expirationTimestamp: is no time such as"},
    {ANSWER("{\"token\":\"t\",\"expirationTimestamp\":\"2026-11-22T05:40:00\"}"), "is no time"},
    {ANSWER("{\"token\":\"t\",\"expirationTimestamp\":\"2026-11-22T05:40:00.Z\"}"), "is no time"},
    {ANSWER("{\"token\":\"t\",\"expirationTimestamp\":\"2026-11-22T05:40:00+1:00\"}"),
     "is no time"},
    {ANSWER("{\"token\":\"t\",\"expirationTimestamp\":1795326000}"), "expected a string"},
};

START_TEST(refused)
{
    struct exec_credential c;
    ck_assert_int_ne(exec_credential_read(str_of(bad[_i].text), STR(V1), &arena, &c, &err), OK);
    ck_assert_msg(strstr(err.text, bad[_i].says) != NULL, "%s", err.text);
    ck_assert_msg(strstr(err.text, SECRET) == NULL && strstr(err.text, "s3c") == NULL, "%s",
                  err.text);
}

END_TEST

START_TEST(no_memory)
{
    struct str text =
        STR("kind: ExecCredential\napiVersion: " V1 "\nstatus: {token: \"t\\u0041\"}");
    bool hit = true;
    for (size_t nth = 1; hit; nth++) {
        for (int mode = FAIL_ONCE; mode <= FAIL_FROM_THEN_ON; mode++) {
            struct exec_credential c;
            struct arena small;
            arena_init(&small, MIB);
            fail_alloc_arm((enum fail_alloc_mode)mode, nth);
            enum errc code = exec_credential_read(text, STR(V1), &small, &c, NULL);
            hit = fail_alloc_hit();
            fail_alloc_disarm();
            ck_assert_msg((code != OK) == hit, "allocation %zu: %s", nth, errc_name(code));
            arena_done(&small);
        }
    }
}

END_TEST

int main(void)
{
    Suite *s = suite_create("exec_credential");
    TCase *t = tcase_create("exec_credential");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, told);
    tcase_add_loop_test(t, answered, 0, (int)COUNT_OF(good));
    tcase_add_loop_test(t, refused, 0, (int)COUNT_OF(bad));
    tcase_add_test(t, no_memory);
    suite_add_tcase(s, t);
    return unit_main(s);
}
