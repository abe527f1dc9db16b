/* Login programs of a kubeconfig (exec): shell scripts here, run as kubectl-cardpack runs them. */
#include "base/limit.h"
#include "kubectl/login.h"
#include "unit.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define V1     "client.authentication.k8s.io/v1"
#define SECRET "s3cret"
#define SAY(status) \
    "echo '{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1 "\",\"status\":" status "}'\n"

static char folder[] = "/tmp/cardpack-test-login-XXXXXX";
static struct arena arena;
static struct buf text;
static struct err err;
static struct kube_api_settings settings;
static struct kubectl_login way;
static struct str hint;
static char *environment[] = {NULL, (char[]){"KEPT=yes"}, (char[]){"CHANGED=old"},
                              (char[]){"KUBERNETES_EXEC_INFO=old"}, NULL};

static const char *const files[] = {"teller",  "args", "env",    "stdin", "ignored",
                                    "blocked", "info", "ca.crt", "pid",   "ran"};

static char *print(const char *head, const char *middle, const char *tail)
{
    size_t size = strlen(head) + strlen(middle) + strlen(tail) + 1;
    char *text_z = arena_alloc(&arena, size);
    ck_assert_ptr_nonnull(text_z);
    ck_assert_int_ge(snprintf(text_z, size, "%s%s%s", head, middle, tail), 0);
    return text_z;
}

static char *in_folder(const char *name)
{
    return print(folder, "/", name);
}

static void write_script(const char *name, const char *body)
{
    FILE *f = fopen(in_folder(name), "w");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_ge(fprintf(f, "#!/bin/sh\n%s", body), 0);
    ck_assert_int_eq(fclose(f), 0);
    ck_assert_int_eq(chmod(in_folder(name), 0700), 0);
}

static const char *content(const char *name)
{
    char bytes[4096] = "";
    FILE *f = fopen(in_folder(name), "r");
    ck_assert_msg(f != NULL, "%s", name);
    size_t n = fread(bytes, 1, sizeof(bytes) - 1, f);
    ck_assert_int_eq(fclose(f), 0);
    return arena_dup(&arena, (struct str){bytes, n + 1}).p;
}

static void setup(void)
{
    arena_init(&arena, 16 * MIB);
    buf_init(&text, MIB);
    err = (struct err)ERR_INIT;
    ck_assert_ptr_nonnull(mkdtemp(folder));
    environment[0] = print("PATH=", folder, ":/usr/bin:/bin");
    way = (struct kubectl_login){.environment = environment,
                                 .path = str_skip(str_of(environment[0]), 5),
                                 .timeout_ms = 60000};
    int null = open("/dev/null", O_RDONLY);
    ck_assert_int_eq(dup2(null, STDIN_FILENO), STDIN_FILENO);
    (void)close(null);
}

static void teardown(void)
{
    for (size_t i = 0; i < COUNT_OF(files); i++)
        (void)unlink(in_folder(files[i]));
    ck_assert_int_eq(rmdir(folder), 0);
    buf_done(&text);
    arena_done(&arena);
}

#define SERVER "server: 'https://h:1'"

/* A kubeconfig whose cluster and user have these members. */
static enum errc login_with(const char *cluster, const char *user)
{
    buf_clear(&text, MIB);
    buf_printf(&text,
               "current-context: c\ncontexts: [{name: c, context: {cluster: k, user: u}}]\n"
               "clusters:\n- {name: k, cluster: {%s}}\nusers:\n- {name: u, user: {%s}}\n",
               cluster, user);
    settings =
        (struct kube_api_settings){.kubeconfig = STR("conf"), .kubeconfig_text = buf_str(&text)};
    return kubectl_login(&way, &arena, &settings, &hint, &err);
}

static enum errc login(const char *exec)
{
    struct buf user;
    buf_init(&user, MIB);
    buf_printf(&user, "exec: {apiVersion: " V1 ", interactiveMode: Never, %s}", exec);
    enum errc code = login_with(SERVER, buf_cstr(&user));
    buf_done(&user);
    return code;
}

START_TEST(token)
{
    write_script("teller", SAY("{\"token\":\"" SECRET "\"}"));
    ck_assert_ok(login("command: teller"), &err);
    ck_assert_str_is(settings.login->token, SECRET);
    struct kube_credentials found;
    ck_assert_ok(kube_credentials_find(&settings, &arena, &found, &err), &err);
    ck_assert_str_is(found.config.token, SECRET);
    ck_assert_ptr_null(memmem(found.origin.p, found.origin.n, SECRET, strlen(SECRET)));
    settings.login = NULL; /* the daemon never runs one */
    ck_assert_int_eq(kube_credentials_find(&settings, &arena, &found, &err), ERR_DENIED);
}

END_TEST

START_TEST(certificate)
{
    write_script("teller", SAY("{\"clientCertificateData\":\"-----BEGIN A-----\\\\n\","
                               "\"clientKeyData\":\"-----BEGIN B-----\\\\n\"}"));
    ck_assert_ok(login("command: teller"), &err);
    struct kube_credentials found;
    ck_assert_ok(kube_credentials_find(&settings, &arena, &found, &err), &err);
    ck_assert_str_is(found.config.client_cert_data, "-----BEGIN A-----\n");
    ck_assert_str_is(found.config.client_key_data, "-----BEGIN B-----\n");
    ck_assert_ptr_null(found.config.token.p);
}

END_TEST

/* The program gets its arguments unchanged, the kubeconfig's environment, no standard input, and
 * the default action for SIGPIPE. */
START_TEST(what_it_gets)
{
    write_script("teller", "cd \"$(dirname \"$0\")\"\nprintf '%s|' \"$@\" >args\nenv | sort >env\n"
                           "cat >stdin\ngrep SigIgn /proc/self/status >ignored\n"
                           "grep SigBlk /proc/self/status >blocked\n" SAY("{\"token\":\"t\"}"));
    ck_assert_ok(
        login("command: teller, args: [a, '', \"b c\\n$d\"], env: [{name: CHANGED, value: x},"
              "{name: CHANGED, value: 'new = it'}, {name: EMPTY}]"),
        &err);
    ck_assert_str_eq(content("args"), "a||b c\n$d|");
    ck_assert_str_eq(content("stdin"), "");
    const char *env = content("env");
    ck_assert_msg(strstr(env, "\nEMPTY=\n") != NULL, "%s", env);
    ck_assert_msg(strstr(env, "KEPT=yes\n") != NULL, "%s", env);
    ck_assert_msg(strstr(env, "CHANGED=new = it\n") != NULL, "%s", env);
    ck_assert_msg(strstr(env, "old") == NULL && strstr(env, "CHANGED=x") == NULL, "%s", env);
    ck_assert_msg(strstr(env, "KUBERNETES_EXEC_INFO={\"kind\":\"ExecCredential\",\"apiVersion\":"
                              "\"" V1 "\",\"spec\":{\"interactive\":false}}\n") != NULL,
                  "%s", env);
    const char *ignored =
        content("ignored"); /* the first of its last four digits has SIGPIPE's bit */
    ck_assert_msg(ignored[strlen(ignored) - 5] == '0', "%s", ignored);
    ck_assert_str_eq(content("blocked"), "SigBlk:\t0000000000000000\n");
}

END_TEST

/* The CA file is read for the program; the rest of the cluster is passed unchanged. */
START_TEST(cluster_info)
{
    write_script("teller", "echo \"$KUBERNETES_EXEC_INFO\" >\"$(dirname \"$0\")/info\"\n" SAY(
                               "{\"token\":\"t\"}"));
    FILE *f = fopen(in_folder("ca.crt"), "w");
    ck_assert_ptr_nonnull(f);
    (void)fputs("CA", f);
    ck_assert_int_eq(fclose(f), 0);
    struct buf cluster;
    buf_init(&cluster, 4096);
    buf_printf(&cluster,
               SERVER ", certificate-authority: %s, tls-server-name: n, proxy-url: 'http://p', "
                      "extensions: [{name: other, extension: 1}, {name: "
                      "client.authentication.k8s.io/exec, extension: {audience: [x]}}]",
               in_folder("ca.crt"));
    const char *exec = "exec: {apiVersion: " V1
                       ", interactiveMode: IfAvailable, provideClusterInfo: true, command: teller}";
    ck_assert_ok(login_with(buf_cstr(&cluster), exec), &err);
    ck_assert_str_eq(content("info"),
                     "{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1
                     "\",\"spec\":{\"cluster\":{\"server\":\"https://h:1\",\"tls-server-name\":"
                     "\"n\",\"certificate-authority-data\":\"Q0E=\",\"proxy-url\":\"http://p\","
                     "\"config\":{\"audience\":[\"x\"]}},\"interactive\":false}}\n");
    ck_assert_int_eq(unlink(in_folder("ca.crt")), 0);
    ck_assert_int_eq(login_with(buf_cstr(&cluster), exec), ERR_NOTFOUND);
    ck_assert_msg(strstr(err.text, "user \"u\": exec \"teller\": certificate-authority: /tmp/") !=
                      NULL,
                  "%s", err.text);
    buf_done(&cluster);
}

END_TEST

/* Found by its path or by PATH, but not in the working directory. */
START_TEST(where_it_is)
{
    char exec[256];
    write_script("teller", SAY("{\"token\":\"t\"}"));
    ck_assert_int_eq(chdir(folder), 0);
    ck_assert_ok(login("command: ./teller"), &err);
    (void)snprintf(exec, sizeof(exec), "command: %s", in_folder("teller"));
    ck_assert_ok(login(exec), &err);
    way.path = STR(":.:/usr/bin:/bin:");
    ck_assert_int_eq(login("command: teller, installHint: \"one\\ntwo\""), ERR_NOTFOUND);
    ck_assert_str_eq(err.text, "user \"u\": exec \"teller\": there is no such program in PATH");
    ck_assert_str_is(hint, "one\ntwo");
    ck_assert_int_eq(login("command: ./nobody"), ERR_NOTFOUND);
    ck_assert_str_eq(err.text,
                     "user \"u\": exec \"./nobody\": it can't be run: No such file or directory");
    way.path = STR_NULL;
    ck_assert_int_eq(login("command: teller"), ERR_NOTFOUND);
    ck_assert_int_eq(chdir("/"), 0);
}

END_TEST

static const struct {
    const char *script;
    const char *says;
} broken[] = {
    {"echo " SECRET "; exit 3\n", "user \"u\": exec \"teller\": it ended with exit status 3"},
    {"echo " SECRET "; kill -9 $$\n", "it was ended by signal 9"},
    {"echo " SECRET "\n", "what it prints is no ExecCredential: expected an object"},
    {"", "what it prints is no ExecCredential: kind"},
    {SAY("{\"token\":\"" SECRET " \"}"), "status.token: holds a character that no token has"},
    {SAY("{\"token\":\"t\",\"clientCertificateData\":\"-----BEGIN " SECRET "\"}"),
     "status.clientCertificateData without clientKeyData"},
    {"while :; do echo " SECRET " || exit; done\n", "it prints more than 1048576 bytes"},
};

START_TEST(failure)
{
    write_script("teller", broken[_i].script);
    ck_assert_int_ne(login("command: teller"), OK);
    ck_assert_msg(strstr(err.text, broken[_i].says) != NULL, "%s", err.text);
    ck_assert_msg(strstr(err.text, SECRET) == NULL, "%s", err.text);
    ck_assert_msg(strstr(err.text, "user \"u\": exec \"teller\": ") == err.text, "%s", err.text);
    ck_assert_ptr_null(hint.p);
}

END_TEST

static uint64_t now_ms(void)
{
    struct timespec t;
    ck_assert_int_eq(clock_gettime(CLOCK_MONOTONIC, &t), 0);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* A program that does not end is terminated, if needed by SIGKILL. */
START_TEST(deadline)
{
    static const char *const scripts[] = {"exec sleep 600\n",
                                          "trap '' TERM\nwhile :; do :; done\n"};
    uint64_t began = now_ms();
    way.timeout_ms = 50;
    write_script("teller", scripts[_i]);
    ck_assert_int_eq(login("command: teller"), ERR_TIMEOUT);
    ck_assert_str_eq(err.text, "user \"u\": exec \"teller\": it has not ended within 1 s");
    ck_assert_uint_lt(now_ms() - began, 300000); /* not as long as the sleep */
}

END_TEST

/* A background process that keeps its standard output is not awaited. */
START_TEST(left_behind)
{
    uint64_t began = now_ms();
    write_script("teller",
                 SAY("{\"token\":\"t\"}") "sleep 600 &\necho $! >\"$(dirname \"$0\")/pid\"\n");
    ck_assert_ok(login("command: teller"), &err);
    ck_assert_str_is(settings.login->token, "t");
    ck_assert_uint_lt(now_ms() - began, 300000);
    uint64_t pid = 0;
    ck_assert(str_to_u64(str_trim(str_of(content("pid"))), INT32_MAX, &pid) && pid > 1);
    ck_assert_int_eq(kill((pid_t)pid, SIGTERM), 0);
}

END_TEST

static const struct {
    const char *user;
    const char *says; /* NULL: the program is not run, because it is not needed */
} others[] = {
    {"exec: {apiVersion: " V1 ", command: teller, interactiveMode: Never}, token: own", NULL},
    {"exec: {apiVersion: " V1 ", command: teller, interactiveMode: Never}, username: own", NULL},
    {"exec: {apiVersion: " V1 ", command: teller, interactiveMode: Never}, client-certificate: a, "
     "client-key: b",
     NULL},
    {"token: own", NULL},
    {"exec: null", NULL},
    {"exec: {apiVersion: " V1 ", command: teller, interactiveMode: Always}",
     "user \"u\": exec \"teller\": interactiveMode is Always, and standard input is no terminal"},
    {"exec: {apiVersion: " V1 ", command: teller}", "user \"u\": exec: interactiveMode is not set"},
    {"exec: {apiVersion: " V1 ", command: teller, interactiveMode: Ever}",
     "user \"u\": exec: interactiveMode: \"Ever\" must be Never, IfAvailable or Always"},
    {"exec: {apiVersion: client.authentication.k8s.io/v1alpha1, command: teller}",
     "user \"u\": exec: apiVersion: client.authentication.k8s.io/v1alpha1 is gone since kubectl"},
    {"exec: {apiVersion: v1, command: teller}", "exec: apiVersion: \"v1\" must be client."},
    {"exec: {command: teller}", "exec: apiVersion is not set"},
    {"exec: {apiVersion: " V1 ", interactiveMode: Never}", "exec: command is not set"},
    {"exec: {apiVersion: " V1 ", interactiveMode: Never, command: teller, args: [\"a\\0\"]}",
     "exec.args[0]: holds a NUL"},
    {"exec: {apiVersion: " V1 ", interactiveMode: Never, command: teller, env: [{name: 'a=b'}]}",
     "exec.env[0]: name: holds a \"=\""},
    {"exec: {apiVersion: " V1 ", interactiveMode: Never, command: teller, env: [{value: b}]}",
     "exec.env[0]: name is not set"},
    {"auth-provider: {name: gcp}", "auth provider \"gcp\" is not supported"},
};

/* Credentials in the kubeconfig count before the program, and errors in it come before it runs. */
START_TEST(not_run)
{
    write_script("teller", "touch \"$(dirname \"$0\")/ran\"\nexit 1\n");
    enum errc code = login_with(SERVER, others[_i].user);
    if (others[_i].says == NULL) {
        ck_assert_ok(code, &err);
    } else {
        ck_assert_int_ne(code, OK);
        ck_assert_msg(strstr(err.text, others[_i].says) != NULL, "%s", err.text);
    }
    ck_assert_int_ne(access(in_folder("ran"), F_OK), 0);
}

END_TEST

/* Over plain HTTP no identity is sent, so no login is needed; in a pod there is no exec. */
START_TEST(nobody_to_ask)
{
    write_script("teller", "touch \"$(dirname \"$0\")/ran\"\nexit 1\n");
    struct kube_credentials found;
    ck_assert_ok(login_with("server: 'http://127.0.0.1:1'",
                            "exec: {apiVersion: " V1 ", command: teller, interactiveMode: Never}"),
                 &err);
    ck_assert_ok(kube_credentials_find(&settings, &arena, &found, &err), &err);
    settings = (struct kube_api_settings){.service_host = STR("h"), .service_port = STR("1")};
    ck_assert_ok(kubectl_login(&way, &arena, &settings, &hint, &err), &err);
    ck_assert_int_ne(access(in_folder("ran"), F_OK), 0);
}

END_TEST

/* v1beta1 needs no interactiveMode; with -f - there is no input for the program. */
START_TEST(older)
{
    write_script("teller",
                 "echo '{\"kind\":\"ExecCredential\",\"apiVersion\":"
                 "\"client.authentication.k8s.io/v1beta1\",\"status\":{\"token\":\"t\"}}'\n");
    ck_assert_ok(
        login_with(SERVER,
                   "exec: {apiVersion: client.authentication.k8s.io/v1beta1, command: teller}"),
        &err);
    ck_assert_str_is(settings.login->token, "t");
    way.input_taken = "what -f - reads";
    ck_assert_int_eq(
        login_with(SERVER, "exec: {apiVersion: " V1 ", command: teller, interactiveMode: Always}"),
        ERR_DENIED);
    ck_assert_msg(strstr(err.text, "standard input is what -f - reads") != NULL, "%s", err.text);
}

END_TEST

int main(void)
{
    Suite *s = suite_create("kubectl_login");
    TCase *t = tcase_create("kubectl_login");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, token);
    tcase_add_test(t, certificate);
    tcase_add_test(t, what_it_gets);
    tcase_add_test(t, cluster_info);
    tcase_add_test(t, where_it_is);
    tcase_add_loop_test(t, failure, 0, (int)COUNT_OF(broken));
    tcase_add_loop_test(t, deadline, 0, 2);
    tcase_add_test(t, left_behind);
    tcase_add_loop_test(t, not_run, 0, (int)COUNT_OF(others));
    tcase_add_test(t, nobody_to_ask);
    tcase_add_test(t, older);
    suite_add_tcase(s, t);
    return unit_main(s);
}
