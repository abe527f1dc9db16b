/* Credentials for the API server: kubeconfig, service account, tokens and certificates. */
#include "fail_alloc.h"
#include "kube/kube_credentials.h"
#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define ARENA_BYTES ((size_t)1 << 22)

static char directory[] = "/tmp/cardpack-test-credentials-XXXXXX";
static struct arena arena;

static const char *const files[] = {"token", "ca.crt", "namespace", ".kube/config", "config"};

static struct str path_of(const char *name)
{
    struct buf b;
    buf_init(&b, 4096);
    buf_printf(&b, "%s/%s", directory, name);
    struct str path = arena_dup(&arena, buf_str(&b));
    buf_done(&b);
    return path;
}

static const char *z(struct str s)
{
    char *copy = arena_alloc(&arena, s.n + 1);
    ck_assert_ptr_nonnull(copy);
    return memcpy(copy, s.p, s.n);
}

static void write_file(const char *name, const char *text)
{
    FILE *f = fopen(z(path_of(name)), "w");
    ck_assert_ptr_nonnull(f);
    (void)fputs(text, f);
    ck_assert_int_eq(fclose(f), 0);
}

static void set_up(void)
{
    arena_init(&arena, ARENA_BYTES);
    ck_assert_ptr_nonnull(mkdtemp(directory));
    ck_assert_int_eq(mkdir(z(path_of(".kube")), 0700), 0);
}

static void tear_down(void)
{
    for (size_t i = 0; i < COUNT_OF(files); i++)
        (void)unlink(z(path_of(files[i])));
    (void)rmdir(z(path_of(".kube")));
    (void)rmdir(directory);
    arena_done(&arena);
}

#define USER_TOKEN "- {name: u, user: {token: s3cret}}"

static void write_kubeconfig(const char *name, const char *server, const char *user)
{
    struct buf b;
    buf_init(&b, 65536);
    buf_printf(&b,
               "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
               "clusters:\n- {name: k, cluster: {server: \"%s\"}}\n"
               "contexts:\n- {name: c, context: {cluster: k, user: u, namespace: ns}}\n"
               "users:\n%s\n",
               server, user);
    write_file(name, buf_cstr(&b));
    buf_done(&b);
}

static struct kube_api_settings in_cluster(const char *host, const char *port)
{
    return (struct kube_api_settings){
        .service_host = str_of(host),
        .service_port = str_of(port),
        .service_account = str_of(directory),
        .home = str_of(directory),
    };
}

static enum errc find(const struct kube_api_settings *s, struct kube_credentials *ret,
                      struct err *e)
{
    *e = ERR_INIT;
    return kube_credentials_find(s, &arena, ret, e);
}

TEST_EACH(test_in_cluster, 8)
{
    static const struct {
        const char *host;
        const char *port;
        const char *server; /* NULL: refused */
    } cases[] = {
        {"10.0.0.1", "443", "https://10.0.0.1:443"},
        {"fd00::1", "6443", "https://[fd00::1]:6443"},
        {"kubernetes.default", "443", "https://kubernetes.default:443"},
        {"10.0.0.1", "0", NULL},
        {"10.0.0.1", "65536", NULL},
        {"10.0.0.1", "https", NULL},
        {"evil/path", "443", NULL},
        {"user@host", "443", NULL},
    };
    struct kube_api_settings s = in_cluster(cases[_i].host, cases[_i].port);
    struct kube_credentials c;
    struct err e;
    write_file("token", "t0ken\n");
    write_file("ca.crt", "-----BEGIN CERTIFICATE-----\n");
    write_file("namespace", "kube-system\n");
    if (cases[_i].server == NULL) {
        ck_assert_int_eq(find(&s, &c, &e), ERR_SYNTAX);
        return;
    }
    ck_assert_ok(find(&s, &c, &e), &e);
    ck_assert_str_is(c.config.server, cases[_i].server);
    ck_assert_str_is(c.config.namespace, "kube-system");
    ck_assert(str_ends(c.config.ca_file, STR("/ca.crt")));
    ck_assert(str_ends(c.config.token_file, STR("/token")));
    ck_assert(str_ends(c.origin, STR(" (in cluster)")));
    ck_assert(c.tls);
}

TEST(test_in_cluster_needs_ca_and_token)
{
    struct kube_api_settings s = in_cluster("10.0.0.1", "443");
    struct kube_credentials c;
    struct kube_token t;
    struct err e;
    write_kubeconfig(".kube/config", "https://elsewhere", USER_TOKEN);
    ck_assert_int_eq(find(&s, &c, &e), ERR_NOTFOUND);
    ck_assert_ptr_nonnull(strstr(e.text, "ca.crt"));
    write_file("ca.crt", " \n");
    ck_assert_int_eq(find(&s, &c, &e), ERR_SYNTAX);
    write_file("ca.crt", "PEM");
    ck_assert_ok(find(&s, &c, &e), &e);
    ck_assert_int_eq(kube_token_init(&t, &c.config, 0, &e), ERR_NOTFOUND);
    kube_token_done(&t);
    write_file("token", "\n");
    ck_assert_int_eq(kube_token_init(&t, &c.config, 0, &e), ERR_SYNTAX);
    ck_assert_ptr_nonnull(strstr(e.text, "empty"));
    kube_token_done(&t);
}

TEST(test_precedence)
{
    struct kube_api_settings s = in_cluster("10.0.0.1", "443");
    struct kube_credentials c;
    struct err e;
    write_file("ca.crt", "PEM");
    write_kubeconfig("config", "https://named", USER_TOKEN);
    write_kubeconfig(".kube/config", "https://home", USER_TOKEN);
    s.kubeconfig = path_of("config");
    ck_assert_ok(find(&s, &c, &e), &e);
    ck_assert_str_is(c.config.server, "https://named");
    ck_assert_str_is(c.config.namespace, "ns");
    ck_assert(str_ends(c.origin, STR("/config)")));

    s.kubeconfig = STR_NULL;
    ck_assert_ok(find(&s, &c, &e), &e);
    ck_assert_str_is(c.config.server, "https://10.0.0.1:443");

    s.service_port = STR_NULL;
    ck_assert_ok(find(&s, &c, &e), &e);
    ck_assert_str_is(c.config.server, "https://home");

    s.home = STR_NULL;
    ck_assert_int_eq(find(&s, &c, &e), ERR_NOTFOUND);

    /* A file that is named but missing is never replaced by another. */
    s = in_cluster("10.0.0.1", "443");
    s.kubeconfig = path_of("missing");
    ck_assert_int_eq(find(&s, &c, &e), ERR_NOTFOUND);
    ck_assert_ptr_nonnull(strstr(e.text, "missing"));
}

/* A given configuration counts before all other sources. */
TEST(test_given)
{
    struct kube_credentials found;
    struct err err = ERR_INIT;
    struct kubeconfig config = {.server = STR("https://h"), .token_file = STR("dir/token")};
    struct kube_api_settings s = {.config = &config, .kubeconfig = STR("/nowhere")};
    ck_assert_ok(kube_credentials_find(&s, &arena, &found, &err), &err);
    ck_assert_str_is(found.config.token_file, "dir/token");
    ck_assert_str_is(found.origin, "https://h");
    ck_assert(found.tls);
}

TEST(test_plain_http_carries_no_identity)
{
    struct kube_api_settings s = {.kubeconfig = path_of("config")};
    struct kube_credentials c;
    struct kube_token t;
    struct err e;
    write_kubeconfig("config", "http://127.0.0.1:8080",
                     "- {name: u, user: {token: s3cret, as: admin, as-groups: [g]}}");
    ck_assert_ok(find(&s, &c, &e), &e);
    ck_assert(!c.tls);
    ck_assert_uint_eq(c.n_headers, 0);
    ck_assert_ok(kube_token_init(&t, &c.config, 0, &e), &e);
    ck_assert_ptr_null(kube_token_get(&t, 0).p);
    ck_assert(str_ends(c.origin, STR("without credentials: plain http")));
    kube_token_done(&t);
}

TEST(test_impersonation)
{
    static const char *const expected[] = {
        "Impersonate-User: jane",
        "Impersonate-Uid: 7",
        "Impersonate-Group: a",
        "Impersonate-Group: b",
        "Impersonate-Extra-acme.com%2Fscope: view",
    };
    struct kube_api_settings s = {.kubeconfig = path_of("config")};
    struct kube_credentials c;
    struct err e;
    write_kubeconfig("config", "https://h",
                     "- {name: u, user: {token: s3cret, as: jane, as-uid: \"7\", "
                     "as-groups: [a, b], as-user-extra: {Acme.com/scope: [view]}}}");
    ck_assert_ok(find(&s, &c, &e), &e);
    ck_assert_uint_eq(c.n_headers, COUNT_OF(expected));
    for (size_t i = 0; i < COUNT_OF(expected); i++)
        ck_assert_str_is(c.headers[i], expected[i]);
}

TEST_EACH(test_refused, 5)
{
    static const struct {
        const char *server;
        const char *user;
    } cases[] = {
        {"https://h", "- {name: u, user: {token: s3cret, as: \"a\\r\\nX-Evil: 1\"}}"},
        {"https://h", "- {name: u, user: {token: s3cret, as: a, as-groups: [\"\"]}}"},
        {"https://h", "- {name: u, user: {token: s3cret, as-groups: [a]}}"},
        {"https://user:password@h", USER_TOKEN},
        {"http://example.com", USER_TOKEN},
    };
    struct kube_api_settings s = {.kubeconfig = path_of("config")};
    struct kube_credentials c;
    struct err e;
    write_kubeconfig("config", cases[_i].server, cases[_i].user);
    ck_assert_int_ne(find(&s, &c, &e), OK);
    ck_assert_ptr_null(strstr(e.text, "s3cret"));
}

TEST(test_token_is_re_read_after_50_s)
{
    struct kubeconfig config = {.token_file = path_of("token"), .token = STR("inline")};
    struct kube_token t;
    struct err e = ERR_INIT;
    write_file("token", "  one \n");
    ck_assert_ok(kube_token_init(&t, &config, 1000, &e), &e);
    write_file("token", "two");
    ck_assert_str_is(kube_token_get(&t, 1000), "one");
    ck_assert_str_is(kube_token_get(&t, 50999), "one");
    ck_assert_str_is(kube_token_get(&t, 51000), "two");
    write_file("token", "three");
    ck_assert_str_is(kube_token_get(&t, 51001), "two");
    ck_assert_ok(kube_token_refresh(&t, 51002, &e), &e);
    ck_assert_str_is(kube_token_get(&t, 51003), "three");
    kube_token_done(&t);
}

TEST_EACH(test_bad_token_file_keeps_the_old_token, 5)
{
    static const char *const bad[] = {"", " \n\t", "two\r\nX-Evil: 1", "two words", "caf\xc3\xa9"};
    struct kubeconfig config = {.token_file = path_of("token")};
    struct kube_token t;
    struct err e = ERR_INIT;
    write_file("token", "one");
    ck_assert_ok(kube_token_init(&t, &config, 0, &e), &e);
    write_file("token", bad[_i]);
    ck_assert_int_eq(kube_token_refresh(&t, 1, &e), ERR_SYNTAX);
    ck_assert_ptr_null(strstr(e.text, "two"));
    ck_assert_str_is(kube_token_get(&t, 2), "one");
    ck_assert_int_eq(unlink(z(path_of("token"))), 0);
    ck_assert_int_eq(kube_token_refresh(&t, 3, &e), ERR_NOTFOUND);
    ck_assert_str_is(kube_token_get(&t, 60000), "one");
    ck_assert_int_eq(mkfifo(z(path_of("token")), 0600), 0); /* no wait for a writer */
    ck_assert_int_eq(kube_token_refresh(&t, 60001, &e), ERR_RANGE);
    ck_assert_str_is(kube_token_get(&t, 200000), "one");
    kube_token_done(&t);
}

TEST(test_token_beside_a_file)
{
    struct kubeconfig config = {.token_file = path_of("token"), .token = STR("inline")};
    struct kube_token t;
    struct err e = ERR_INIT;
    ck_assert_ok(kube_token_init(&t, &config, 0, &e), &e);
    ck_assert_str_is(kube_token_get(&t, 0), "inline");
    write_file("token", "filed");
    ck_assert_str_is(kube_token_get(&t, 50000), "filed");
    kube_token_done(&t);
}

static enum errc find_and_read_token(void *ctx)
{
    struct arena scratch;
    struct kube_credentials c;
    struct kube_token t = {.read_ms = 0};
    struct err e = ERR_INIT;
    arena_init(&scratch, ARENA_BYTES);
    enum errc code = kube_credentials_find(ctx, &scratch, &c, &e);
    if (code == OK)
        code = kube_token_init(&t, &c.config, 0, &e);
    if (code == OK) {
        ck_assert_str_is(kube_token_get(&t, 0), "s3cret");
        ck_assert(str_ends(c.origin, STR(")")));
    }
    kube_token_done(&t);
    arena_done(&scratch);
    /* jread can't tell why its arena refused */
    return code == ERR_LIMIT ? ERR_NOMEM : code;
}

TEST(test_out_of_memory)
{
    struct kube_api_settings s = in_cluster("fd00::1", "443");
    write_file("ca.crt", "PEM");
    write_file("token", "s3cret");
    ck_assert_uint_gt(fail_alloc_each(find_and_read_token, &s), 2);

    s = (struct kube_api_settings){.kubeconfig = path_of("config")};
    write_kubeconfig("config", "https://h",
                     "- {name: u, user: {token: s3cret, as: jane, as-groups: [a, b], "
                     "as-user-extra: {Acme.com/scope: [view]}}}");
    ck_assert_uint_gt(fail_alloc_each(find_and_read_token, &s), 2);
}

int main(void)
{
    TCase *t = unit_case("kube_credentials");
    tcase_add_checked_fixture(t, set_up, tear_down);
    return unit_run();
}
