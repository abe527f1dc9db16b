/* Reading a kubeconfig: contexts, clusters, users, and errors that name the file. */
#include "objects/kubeconfig.h"

#include "fail_alloc.h"
#include "unit.h"

#include <stdio.h>

#define PEM_BASE64 "LS0tLS1CRUdJTiBYLS0tLS0K" /* -----BEGIN X-----\n */

/* A file with one context; its cluster and user have these fields, as flow mappings. */
static enum errc read_with(const char *cluster, const char *user, struct arena *arena,
                           struct kubeconfig *ret, struct err *err)
{
    char text[4096];
    arena_init(arena, (size_t)1 << 20);
    (void)snprintf(text, sizeof(text),
                   "apiVersion: v1\n"
                   "kind: Config\n"
                   "current-context: here\n"
                   "contexts:\n"
                   "- name: here\n"
                   "  context: {cluster: prod, user: admin, namespace: gpu}\n"
                   "clusters:\n"
                   "- name: prod\n"
                   "  cluster: %s\n"
                   "users:\n"
                   "- name: admin\n"
                   "  user: %s\n",
                   cluster, user);
    return kubeconfig_read(str_of(text), STR("/etc/k/conf"), arena, ret, err);
}

TEST(everything)
{
    static const char text[] = "current-context: b\n"
                               "users:\n"
                               "- name: other\n"
                               "  user: {exec: {command: aws}}\n"
                               "- name: u\n"
                               "  user:\n"
                               "    client-certificate: cert.pem\n"
                               "    client-key: /abs/key.pem\n"
                               "    token: secret\n"
                               "    tokenFile: run/token\n"
                               "    as: robot\n"
                               "    as-uid: '17'\n"
                               "    as-groups: [a, b]\n"
                               "    as-user-extra: {scopes: [x, y], reason: [z]}\n"
                               "    exec: null\n"
                               "clusters:\n"
                               "- cluster:\n"
                               "    server: https://10.0.0.1:6443/k8s/\n"
                               "    certificate-authority-data: |\n"
                               "      LS0tLS1CRUdJ\n"
                               "      TiBYLS0tLS0K\n"
                               "    tls-server-name: kubernetes\n"
                               "    proxy-url: socks5://127.0.0.1:1080\n"
                               "    disable-compression: true\n"
                               "    extensions: [{name: x, extension: {a: 1}}]\n"
                               "  name: c\n"
                               "contexts:\n"
                               "- {name: a, context: {cluster: gone, user: gone}}\n"
                               "- {name: b, context: {cluster: c, user: u, namespace: gpu}}\n"
                               "preferences: {colors: true}\n"
                               "apiVersion: v1\n";
    struct err err = ERR_INIT;
    struct arena arena;
    struct kubeconfig k;
    arena_init(&arena, (size_t)1 << 20);
    ck_assert_ok(kubeconfig_read(str_of(text), STR("dir/conf"), &arena, &k, &err), &err);
    ck_assert_str_is(k.server, "https://10.0.0.1:6443/k8s");
    ck_assert_str_is(k.ca_data, "-----BEGIN X-----\n");
    ck_assert_ptr_null(k.ca_file.p);
    ck_assert(!k.insecure_skip_tls_verify);
    ck_assert_str_is(k.tls_server_name, "kubernetes");
    ck_assert_str_is(k.proxy_url, "socks5://127.0.0.1:1080");
    ck_assert_str_is(k.client_cert_file, "dir/cert.pem");
    ck_assert_str_is(k.client_key_file, "/abs/key.pem");
    ck_assert_ptr_null(k.client_cert_data.p);
    ck_assert_str_is(k.token, "secret");
    ck_assert_str_is(k.token_file, "dir/run/token");
    ck_assert_str_is(k.as_user, "robot");
    ck_assert_str_is(k.as_uid, "17");
    ck_assert_uint_eq(k.n_as_groups, 2);
    ck_assert_str_is(k.as_groups[0], "a");
    ck_assert_str_is(k.as_groups[1], "b");
    ck_assert_uint_eq(k.n_as_extra, 3);
    ck_assert_str_is(k.as_extra_keys[1], "scopes");
    ck_assert_str_is(k.as_extra_values[1], "y");
    ck_assert_str_is(k.as_extra_keys[2], "reason");
    ck_assert_str_is(k.as_extra_values[2], "z");
    ck_assert_str_is(k.namespace, "gpu");
    arena_done(&arena);
}

TEST(json)
{
    struct err err = ERR_INIT;
    struct arena arena;
    struct kubeconfig k;
    arena_init(&arena, (size_t)1 << 20);
    ck_assert_ok(
        kubeconfig_read(STR("{\"kind\":\"Config\",\"current-context\":\"a\","
                            "\"contexts\":[{\"name\":\"a\",\"context\":{\"cluster\":\"c\","
                            "\"user\":\"u\"}}],\"clusters\":[{\"name\":\"c\",\"cluster\":"
                            "{\"server\":\"https://h\",\"certificate-authority\":\"ca\"}}],"
                            "\"users\":[{\"name\":\"u\",\"user\":{\"username\":\"x\","
                            "\"password\":\"y \\u0022\"}}]}"),
                        STR("conf"), &arena, &k, &err),
        &err);
    ck_assert_str_is(k.server, "https://h");
    ck_assert_str_is(k.ca_file, "ca");
    ck_assert_str_is(k.username, "x");
    ck_assert_str_is(k.password, "y \"");
    ck_assert_ptr_null(k.namespace.p);
    arena_done(&arena);
}

static const struct {
    const char *cluster;
    const char *user;
    const char *error; /* after the file's name; NULL: valid */
} entries[] = {
    {"{server: 'https://h'}", "{}", NULL},
    {"{server: 'https://h'}", "", NULL}, /* anonymous, as in client-go */
    {"{server: 'https://h'}", "{token: ''}", NULL},
    {"{server: 'https://h', insecure-skip-tls-verify: true}", "{token: a}", NULL},
    {"{server: 'https://h', certificate-authority: a}", "{token: a, tokenFile: b}", NULL},
    {"{server: 'https://h'}",
     "{client-certificate-data: " PEM_BASE64 ", client-key-data: " PEM_BASE64 "}", NULL},
    {"{server: 'https://h'}", "{client-certificate: a, client-key-data: " PEM_BASE64 "}", NULL},
    {"{server: 'https://h'}", "{client-certificate: a, client-key: b, token: c}", NULL},
    {"{server: 'http://127.0.0.1:8080'}", "{}", NULL},
    {"{server: 'http://127.9.9.9'}", "{}", NULL},
    {"{server: 'http://localhost:1/x'}", "{}", NULL},
    {"{server: 'http://[::1]:8080/'}", "{}", NULL},
    {"{server: 'https://h', proxy-url: 'http://p:1'}", "{}", NULL},

    {"{}", "{}", "cluster \"prod\": server is not set"},
    {"{server: ''}", "{}", "cluster \"prod\": server is not set"},
    {"{server: 5}", "{}", "cluster \"prod\": server: expected a string, got a number at offset 10"},
    {"{server: '10.0.0.1:6443'}", "{}",
     "cluster \"prod\": server: \"10.0.0.1:6443\" must begin with \"https://\""},
    {"{server: 'https://'}", "{}",
     "cluster \"prod\": server: \"https://\" must be https://, a host, a port and a path, no more"},
    {"{server: 'https:///x'}", "{}",
     "cluster \"prod\": server: \"https:///x\" must be https://, a host, a port and a path, no "
     "more"},
    {"{server: 'https://u:secret@h'}", "{}",
     "cluster \"prod\": server: a URL with a user (\"@\") is not supported"},
    {"{server: 'u:secret@h:6443'}", "{}",
     "cluster \"prod\": server: a URL with a user (\"@\") is not supported"},
    {"{server: 'https://h?token=secret'}", "{}",
     "cluster \"prod\": server: a URL with a query (\"?\") is not supported"},
    {"{server: \"https://h\\n\"}", "{}", "cluster \"prod\": server: holds a control character"},
    {"{server: 'http://10.0.0.1:8080'}", "{}",
     "cluster \"prod\": server: \"http://10.0.0.1:8080\" would send credentials in the clear; "
     "https is a must but for loopback"},
    {"{server: 'http://127.0.0.1.example.org'}", "{}",
     "cluster \"prod\": server: \"http://127.0.0.1.example.org\" would send credentials in the "
     "clear; https is a must but for loopback"},
    {"{server: 'http://127.0.0'}", "{}",
     "cluster \"prod\": server: \"http://127.0.0\" would send credentials in the clear; https is a "
     "must but for loopback"},
    {"{server: 'http://[::1].example.org'}", "{}",
     "cluster \"prod\": server: \"http://[::1].example.org\" would send credentials in the clear; "
     "https is a must but for loopback"},
    {"{server: 'https://h', certificate-authority: a, certificate-authority-data: " PEM_BASE64 "}",
     "{}",
     "cluster \"prod\": certificate-authority and certificate-authority-data exclude each other"},
    {"{server: 'https://h', certificate-authority-data: '***'}", "{}",
     "cluster \"prod\": certificate-authority-data: not base64"},
    {"{server: 'https://h', certificate-authority-data: AAAA}", "{}",
     "cluster \"prod\": certificate-authority-data: not PEM"},
    {"{server: 'https://h', certificate-authority: a, insecure-skip-tls-verify: true}", "{}",
     "cluster \"prod\": insecure-skip-tls-verify and a certificate-authority exclude each other"},
    {"{server: 'https://h', insecure-skip-tls-verify: 'yes'}", "{}",
     "cluster \"prod\": insecure-skip-tls-verify: expected a boolean, got a string at offset 49"},
    {"{server: 'https://h', proxy-url: 'p:1'}", "{}",
     "cluster \"prod\": proxy-url: must begin with http://, https:// or socks5://"},

    {"{server: 'https://h'}", "{exec: {command: aws, args: [a]}, token: x}",
     "user \"admin\": exec credential plugin \"aws\" is not supported; use a token, tokenFile or "
     "client certificate"},
    {"{server: 'https://h'}", "{exec: {}}",
     "user \"admin\": an exec credential plugin is not supported; use a token, tokenFile or client "
     "certificate"},
    {"{server: 'https://h'}", "{exec: {command: null}}",
     "user \"admin\": an exec credential plugin is not supported; use a token, tokenFile or client "
     "certificate"},
    {"{server: 'https://h'}", "{auth-provider: {name: gcp, config: {a: b}}}",
     "user \"admin\": auth provider \"gcp\" is not supported; use a token, tokenFile or client "
     "certificate"},
    {"{server: 'https://h'}", "{client-certificate: a}",
     "user \"admin\": client-certificate without client-key"},
    {"{server: 'https://h'}", "{client-key: a}",
     "user \"admin\": client-key without client-certificate"},
    {"{server: 'https://h'}", "{client-key: a, client-key-data: " PEM_BASE64 "}",
     "user \"admin\": client-key and client-key-data exclude each other"},
    {"{server: 'https://h'}", "{client-certificate: a, client-certificate-data: " PEM_BASE64 "}",
     "user \"admin\": client-certificate and client-certificate-data exclude each other"},
    {"{server: 'https://h'}", "{token: a, username: b}",
     "user \"admin\": token and username exclude each other"},
    {"{server: 'https://h'}", "{tokenFile: a, password: b}",
     "user \"admin\": token and username exclude each other"},
    {"{server: 'https://h'}", "{password: b}", "user \"admin\": password without username"},
    {"{server: 'https://h'}", "{as-groups: [a]}",
     "user \"admin\": as-uid, as-groups and as-user-extra need \"as\""},
    {"{server: 'https://h'}", "{token: \"a\\r\\nX-Evil: b\"}",
     "user \"admin\": token: holds a control character"},
    {"{server: 'https://h'}", "{as: a, as-groups: [b, \"c\\n\"]}",
     "user \"admin\": as-groups[1]: holds a control character"},
};

TEST_EACH(entry, COUNT_OF(entries))
{
    struct err err = ERR_INIT;
    struct arena arena;
    struct kubeconfig k;
    enum errc code = read_with(entries[_i].cluster, entries[_i].user, &arena, &k, &err);
    if (entries[_i].error == NULL)
        ck_assert_ok(code, &err);
    else {
        struct str text = str_of(err.text);
        struct str prefix = STR("kubeconfig \"/etc/k/conf\": ");
        ck_assert_msg(code != OK, "passed, expected: %s", entries[_i].error);
        ck_assert_int_eq(err.code, code);
        ck_assert(str_starts(text, prefix));
        ck_assert_str_is(str_skip(text, prefix.n), entries[_i].error);
    }
    arena_done(&arena);
}

#define CLUSTERS "clusters: [{name: c, cluster: {server: 'https://h'}}]\n"
#define USERS    "users: [{name: u, user: {}}]\n"
#define CONTEXTS "contexts: [{name: a, context: {cluster: c, user: u}}]\n"

static const struct {
    const char *text;
    const char *error; /* NULL: valid */
} files[] = {
    {"current-context: a\n" CLUSTERS USERS CONTEXTS, NULL},
    {"", "current-context is not set"},
    {"current-context: ''\n" CLUSTERS USERS CONTEXTS, "current-context is not set"},
    {"current-context: b\n" CLUSTERS USERS CONTEXTS, "context \"b\" is not in the file"},
    {"current-context: a\n" CLUSTERS USERS, "context \"a\" is not in the file"},
    {"current-context: a\n" CLUSTERS CONTEXTS, "context \"a\": user \"u\" is not in the file"},
    {"current-context: a\n" USERS CONTEXTS, "context \"a\": cluster \"c\" is not in the file"},
    {"current-context: a\ncontexts: [{name: a, context: {user: u}}]\n",
     "context \"a\": cluster is not set"},
    {"current-context: a\ncontexts: [{name: a, context: {cluster: c}}]\n",
     "context \"a\": user is not set"},
    {"current-context: a\ncontexts: [{name: a}]\n", "context \"a\": cluster is not set"},
    {"current-context: a\n" CLUSTERS CONTEXTS "users: [{name: u}, {name: u}]\n",
     "context \"a\": user \"u\" is there 2 times"},
    {"kind: Pod\n", "kind: is \"Pod\", expected \"Config\""},
    {"apiVersion: v2\n", "apiVersion: is \"v2\", expected \"v1\""},
    {"users: 5\n", "users: expected a list, got a number at offset 9"},
    {"- a\n", "expected an object, got a list at offset 0"},
    {"a: b\n c: d\n", "line 2, column 3: mapping values are not allowed in this context"},
};

TEST_EACH(file, COUNT_OF(files))
{
    struct err err = ERR_INIT;
    struct arena arena;
    struct kubeconfig k;
    arena_init(&arena, (size_t)1 << 20);
    enum errc code = kubeconfig_read(str_of(files[_i].text), STR("conf"), &arena, &k, &err);
    if (files[_i].error == NULL)
        ck_assert_ok(code, &err);
    else {
        struct str prefix = STR("kubeconfig \"conf\": ");
        ck_assert(code != OK);
        ck_assert(str_starts(str_of(err.text), prefix));
        ck_assert_str_is(str_skip(str_of(err.text), prefix.n), files[_i].error);
    }
    arena_done(&arena);
}

/* For every ceiling of the arena: an error, never half an answer. */
TEST(small_arenas)
{
    static const char text[] = "current-context: a\n" CLUSTERS CONTEXTS
                               "users: [{name: u, user: {token: \"a\\u0022\", as: b, "
                               "as-groups: [a], as-user-extra: {c: [d]}}}]\n";
    bool passed = false;
    for (size_t max = 0; max < 8192; max += 64) {
        struct arena arena;
        struct kubeconfig k;
        arena_init(&arena, max);
        enum errc code = kubeconfig_read(str_of(text), STR("conf"), &arena, &k, NULL);
        ck_assert(code == OK || (code == ERR_LIMIT && !passed));
        passed = code == OK;
        arena_done(&arena);
    }
    ck_assert(passed);
}

/* If any allocation fails, those for anchors included, the whole read fails and leaks nothing. */
TEST(no_memory)
{
    static const char text[] = "current-context: &a a\n" CLUSTERS
                               "contexts: [{name: *a, context: {cluster: c, user: &u u}}]\n"
                               "users: [{name: *u, user: {client-certificate-data: " PEM_BASE64
                               ", client-key: \"k\\u0022\", as: b, as-groups: [a]}}]\n";
    bool hit = true;
    for (size_t nth = 1; hit; nth++) {
        for (int mode = FAIL_ONCE; mode <= FAIL_FROM_THEN_ON; mode++) {
            struct arena arena;
            struct kubeconfig k;
            arena_init(&arena, (size_t)1 << 20);
            fail_alloc_arm((enum fail_alloc_mode)mode, nth);
            enum errc code = kubeconfig_read(str_of(text), STR("conf"), &arena, &k, NULL);
            hit = fail_alloc_hit();
            fail_alloc_disarm();
            ck_assert_msg((code != OK) == hit, "allocation %zu: %s", nth, errc_name(code));
            arena_done(&arena);
        }
    }
}
