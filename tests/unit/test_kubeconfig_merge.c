/* Merging several kubeconfig files, as KUBECONFIG with several paths does. */
#include "codec/kubeconfig_merge.h"

#include "base/limit.h"
#include "codec/kubeconfig.h"
#include "unit.h"

static struct arena arena;
static struct buf out;
static struct err err;

static void setup(void)
{
    arena_init(&arena, MIB);
    buf_init(&out, MIB);
}

static void teardown(void)
{
    buf_done(&out);
    arena_done(&arena);
}

#define FIRST                                                           \
    "current-context: a\n"                                              \
    "contexts:\n"                                                       \
    "- {name: a, context: {cluster: one, user: u, namespace: first}}\n" \
    "clusters:\n"                                                       \
    "- {name: one, cluster: {server: 'https://one:1', certificate-authority: ca.crt}}\n"
#define SECOND                                                                                \
    "current-context: b\n"                                                                    \
    "contexts:\n"                                                                             \
    "- {name: a, context: {cluster: two, user: u, namespace: second}}\n"                      \
    "- {name: b, context: {cluster: two, user: u}}\n"                                         \
    "clusters:\n"                                                                             \
    "- {name: one, cluster: {server: 'https://wrong:1'}}\n"                                   \
    "- {name: two, cluster: {server: 'https://two:2', certificate-authority: /abs/ca.crt}}\n" \
    "users:\n"                                                                                \
    "- {name: u, user: {tokenFile: sub/token, client-certificate: c, client-key: k}}\n"

static enum errc merge_both(struct str context, struct kubeconfig *ret)
{
    const struct kubeconfig_file files[] = {{STR("/x/first"), STR(FIRST)},
                                            {STR("/y/z/second"), STR(SECOND)}};
    enum errc code = kubeconfig_merge(files, COUNT_OF(files), context, &arena, &out, &err);
    return code == OK ? kubeconfig_read(buf_str(&out), STR("both"), &arena, ret, &err) : code;
}

/* The first file that names an entry counts; the paths of each file are relative to it. */
START_TEST(two_files)
{
    struct kubeconfig k;
    ck_assert_ok(merge_both(STR_NULL, &k), &err);
    ck_assert_str_is(k.server, "https://one:1");
    ck_assert_str_is(k.namespace, "first");
    ck_assert_str_is(k.ca_file, "/x/ca.crt");
    ck_assert_str_is(k.token_file, "/y/z/sub/token");
    ck_assert_str_is(k.client_cert_file, "/y/z/c");
    ck_assert_str_is(k.client_key_file, "/y/z/k");
}

END_TEST

START_TEST(context_of_the_second)
{
    struct kubeconfig k;
    ck_assert_ok(merge_both(STR("b"), &k), &err);
    ck_assert_str_is(k.server, "https://two:2");
    ck_assert_str_is(k.ca_file, "/abs/ca.crt");
    ck_assert(k.namespace.n == 0);
}

END_TEST

START_TEST(no_such_context)
{
    struct kubeconfig k;
    ck_assert_int_eq(merge_both(STR("c"), &k), ERR_NOTFOUND);
    ck_assert_ptr_nonnull(strstr(err.text, "context \"c\" is not in the file"));
}

END_TEST

/* A file in the working directory: its paths are relative to that, unchanged. */
START_TEST(bare_name)
{
    const struct kubeconfig_file file = {STR("config"), STR(SECOND)};
    struct kubeconfig k;
    ck_assert_ok(kubeconfig_merge(&file, 1, STR_NULL, &arena, &out, &err), &err);
    ck_assert_ok(kubeconfig_read(buf_str(&out), STR("config"), &arena, &k, &err), &err);
    ck_assert_str_is(k.token_file, "sub/token");
}

END_TEST

static const struct {
    const char *command;
    const char *found;
} commands[] = {
    {"aws", "aws"},
    {"./get", "/y/z/./get"},
    {"bin/get", "/y/z/bin/get"},
    {"/opt/get", "/opt/get"},
};

/* A program with a slash in its name is relative to its file; any other is in PATH. */
START_TEST(exec)
{
    struct buf text;
    struct kubeconfig k;
    struct kubeconfig_exec e;
    buf_init(&text, MIB);
    buf_printf(&text,
               "current-context: a\ncontexts: [{name: a, context: {cluster: c, user: u}}]\n"
               "clusters: [{name: c, cluster: {server: 'https://c'}}]\nusers: [{name: u, user: "
               "{exec: {apiVersion: client.authentication.k8s.io/v1beta1, args: [./get], env: "
               "[{name: A, value: b}], command: %s}}}]\n",
               commands[_i].command);
    const struct kubeconfig_file file = {STR("/y/z/conf"), buf_str(&text)};
    ck_assert_ok(kubeconfig_merge(&file, 1, STR_NULL, &arena, &out, &err), &err);
    ck_assert_ok(kubeconfig_read_merged(buf_str(&out), STR("/y/z/conf"), &arena, &k, &e, &err),
                 &err);
    ck_assert_str_is(e.command, commands[_i].found);
    ck_assert_str_is(e.user, "u");
    ck_assert_uint_eq(e.n_args, 1);
    ck_assert_str_is(e.args[0], "./get");
    ck_assert_uint_eq(e.n_env, 1);
    ck_assert(e.interactive == EXEC_IF_AVAILABLE && !e.provide_cluster_info);
    ck_assert_int_eq(
        kubeconfig_read_merged(buf_str(&out), STR("/y/z/conf"), &arena, &k, NULL, &err),
        ERR_DENIED);
    buf_done(&text);
}

END_TEST

/* A relative file: its paths become relative to the working directory once, not twice. */
START_TEST(relative_file)
{
    const struct kubeconfig_file file = {STR("y/z/conf"), STR(SECOND)};
    struct kubeconfig k;
    ck_assert_ok(kubeconfig_merge(&file, 1, STR_NULL, &arena, &out, &err), &err);
    ck_assert_ok(kubeconfig_read_merged(buf_str(&out), STR("y/z/conf"), &arena, &k, NULL, &err),
                 &err);
    ck_assert_str_is(k.token_file, "y/z/sub/token");
    ck_assert_str_is(k.client_key_file, "y/z/k");
}

END_TEST

/* An entry twice in one file is an error, as without a merge. */
START_TEST(twice)
{
    const struct kubeconfig_file file = {STR("f"), STR(FIRST "- {name: one, cluster: {}}\n")};
    struct kubeconfig k;
    ck_assert_ok(kubeconfig_merge(&file, 1, STR_NULL, &arena, &out, &err), &err);
    ck_assert_int_eq(kubeconfig_read(buf_str(&out), STR("f"), &arena, &k, &err), ERR_CONFLICT);
}

END_TEST

static const struct {
    const char *text;
    const char *says;
} broken[] = {
    {"a: [", "kubeconfig \"/y/bad\": line"},
    {"- a", "kubeconfig \"/y/bad\": "},
    {"users: 3", "users"},
    {"users: [3]", "users"},
    {"current-context: [a]", "current-context"},
    {"users: [{name: 3}]", "name"},
};

/* The error names the broken file, not the other one. */
START_TEST(broken_file)
{
    const struct kubeconfig_file files[] = {{STR("/x/first"), STR(FIRST)},
                                            {STR("/y/bad"), str_of(broken[_i].text)}};
    enum errc code = kubeconfig_merge(files, 2, STR_NULL, &arena, &out, &err);
    ck_assert_int_eq(code, ERR_SYNTAX);
    ck_assert_msg(strstr(err.text, broken[_i].says) != NULL, "%s", err.text);
    ck_assert_msg(strstr(err.text, "/y/bad") != NULL, "%s", err.text);
}

END_TEST

int main(void)
{
    Suite *s = suite_create("kubeconfig_merge");
    TCase *t = tcase_create("kubeconfig_merge");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, two_files);
    tcase_add_test(t, context_of_the_second);
    tcase_add_test(t, no_such_context);
    tcase_add_test(t, bare_name);
    tcase_add_loop_test(t, exec, 0, (int)COUNT_OF(commands));
    tcase_add_test(t, relative_file);
    tcase_add_test(t, twice);
    tcase_add_loop_test(t, broken_file, 0, (int)COUNT_OF(broken));
    suite_add_tcase(s, t);
    return unit_main(s);
}
