/*
 * TLS of the HTTP client with `openssl s_server`. The test makes the certificates: a CA, a second
 * CA that signed nothing, a server for 127.0.0.1, one for "kubernetes" alone, and a client.
 */
#include "client_fixture.h"

#include <curl/curl.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>

static const char certificates[] =
    "cd \"$1\" || exit 1\n"
    "ca() { openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2"
    " -subj \"/CN=$1\" -keyout $1.key -out $1.crt; }\n"
    "leaf() { openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"
    " -subj \"/CN=$1\" -keyout $1.key -out $1.csr &&"
    " echo \"subjectAltName=$2\" > $1.ext &&"
    " openssl x509 -req -days 2 -in $1.csr -extfile $1.ext"
    " -CA ca.crt -CAkey ca.key -CAcreateserial -out $1.crt; }\n"
    "{ ca ca && ca other && leaf address IP:127.0.0.1 && leaf name DNS:kubernetes &&"
    " leaf client DNS:client; } > log 2>&1\n";

struct tls {
    struct loop *loop;
    struct http_client *client;
    char dir[64];
    char path[8][128]; /* strings that the settings borrow */
    size_t n_paths;
    pid_t server;
    int output;
    char url[64];
};

static void run_shell(const char *script, const char *argument)
{
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        (void)execlp("sh", "sh", "-c", script, "sh", argument, (char *)NULL);
        _exit(127);
    }
    int status = 0;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
}

static struct str path_of(struct tls *t, const char *name)
{
    ck_assert_uint_lt(t->n_paths, COUNT_OF(t->path));
    char *path = t->path[t->n_paths++];
    (void)snprintf(path, sizeof(t->path[0]), "%s/%s", t->dir, name);
    return str_of(path);
}

static struct str contents_of(struct tls *t, const char *name)
{
    static char text[4][4096];
    static size_t used;
    char *at = text[used++ % COUNT_OF(text)];
    int fd = open(path_of(t, name).p, O_RDONLY | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ssize_t n = read(fd, at, sizeof(text[0]));
    ck_assert_int_gt(n, 0);
    (void)close(fd);
    return (struct str){at, (size_t)n};
}

/* Reads "ACCEPT 127.0.0.1:43211". */
static void read_port(struct tls *t)
{
    char text[4096];
    size_t n = 0;
    const char *line = NULL;
    while (line == NULL || strchr(line, '\n') == NULL) {
        ssize_t more = read(t->output, text + n, sizeof(text) - 1 - n);
        ck_assert_int_gt(more, 0);
        n += (size_t)more;
        text[n] = '\0';
        line = strstr(text, "ACCEPT ");
    }
    int port = 0;
    for (const char *c = strrchr(line, ':') + 1; *c >= '0' && *c <= '9'; c++)
        port = port * 10 + (*c - '0');
    (void)snprintf(t->url, sizeof(t->url), "https://127.0.0.1:%d/", port);
}

static void serve(struct tls *t, const char *who, bool asks_for_client)
{
    char cert[32];
    char key[32];
    int out[2];
    (void)snprintf(cert, sizeof(cert), "%s.crt", who);
    (void)snprintf(key, sizeof(key), "%s.key", who);
    ck_assert_int_eq(pipe2(out, O_CLOEXEC), 0);
    t->server = fork();
    ck_assert_int_ge(t->server, 0);
    if (t->server == 0) {
        int quiet = open("/dev/null", O_WRONLY | O_CLOEXEC);
        if (chdir(t->dir) == 0 && dup2(out[1], STDOUT_FILENO) >= 0 &&
            dup2(quiet, STDERR_FILENO) >= 0)
            (void)execlp("openssl", "openssl", "s_server", "-accept", "127.0.0.1:0", "-www",
                         "-cert", cert, "-key", key, asks_for_client ? "-Verify" : "-verify_quiet",
                         asks_for_client ? "1" : "-verify_quiet", "-CAfile", "ca.crt",
                         "-verify_return_error", (char *)NULL);
        _exit(127);
    }
    (void)close(out[1]);
    t->output = out[0];
    read_port(t);
}

static void tls_open(struct tls *t, const char *who, bool asks_for_client)
{
    *t = (struct tls){.loop = loop_make(), .dir = "/tmp/http_tls.XXXXXX"};
    ck_assert_ptr_nonnull(mkdtemp(t->dir));
    run_shell(certificates, t->dir);
    serve(t, who, asks_for_client);
}

static void connect_with(struct tls *t, const struct http_client_settings *s)
{
    struct err e = ERR_INIT;
    ck_assert_ok(http_client_new(t->loop, s, &t->client, &e), &e);
}

static void tls_close(struct tls *t)
{
    t->client = http_client_free(t->client);
    (void)kill(t->server, SIGKILL);
    ck_assert_int_eq(waitpid(t->server, NULL, 0), t->server);
    (void)close(t->output);
    run_shell("rm -r \"$1\"", t->dir);
    loop_free(t->loop);
}

static enum http_outcome ask(struct tls *t, struct err *ret)
{
    struct recorded_call c;
    recorded_call_init(&c, "GET", t->url, "");
    http_call_start(t->client, &c.call);
    recorded_call_await(t->loop, &c);
    enum http_outcome outcome = c.call.outcome;
    if (outcome == HTTP_ANSWERED)
        ck_assert_uint_eq(c.call.status, 200);
    *ret = c.call.err;
    recorded_call_end(&c);
    return outcome;
}

static const struct {
    const char *server;
    const char *ca_file;
    const char *ca_data;
    bool insecure;
    const char *name;
    enum http_outcome outcome;
} trusts[] = {
    {"address", "ca.crt", NULL, false, NULL, HTTP_ANSWERED},
    {"address", NULL, "ca.crt", false, NULL, HTTP_ANSWERED},
    {"address", "other.crt", NULL, false, NULL, HTTP_NOT_SENT},
    {"address", NULL, "other.crt", false, NULL, HTTP_NOT_SENT},
    {"address", NULL, NULL, false, NULL, HTTP_NOT_SENT},
    {"address", "no-such-file", NULL, false, NULL, HTTP_NOT_SENT},
    {"address", NULL, NULL, true, NULL, HTTP_ANSWERED},
    {"address", "ca.crt", NULL, false, "kubernetes", HTTP_NOT_SENT},
    {"name", "ca.crt", NULL, false, NULL, HTTP_NOT_SENT},
    {"name", "ca.crt", NULL, false, "kubernetes", HTTP_ANSWERED},
    {"name", "ca.crt", NULL, false, "127.0.0.1", HTTP_NOT_SENT},
    {"name", "other.crt", NULL, false, "kubernetes", HTTP_NOT_SENT},
};

TEST_EACH(whom_the_client_trusts, COUNT_OF(trusts))
{
    struct tls t;
    struct err e = ERR_INIT;
    tls_open(&t, trusts[_i].server, false);
    struct http_client_settings s = {.insecure = trusts[_i].insecure,
                                     .tls_server_name = str_of(trusts[_i].name)};
    if (trusts[_i].ca_file != NULL)
        s.ca_file = path_of(&t, trusts[_i].ca_file);
    if (trusts[_i].ca_data != NULL)
        s.ca_data = contents_of(&t, trusts[_i].ca_data);
    connect_with(&t, &s);
    for (int again = 0; again < 2; again++) {
        ck_assert_int_eq(ask(&t, &e), trusts[_i].outcome);
        ck_assert_int_eq(e.code, trusts[_i].outcome == HTTP_ANSWERED ? OK : ERR_UNAVAILABLE);
    }
    tls_close(&t);
}

TEST(a_rotated_ca_file_is_picked_up)
{
    struct tls t;
    struct err e = ERR_INIT;
    tls_open(&t, "address", false);
    struct http_client_settings s = {.ca_file = path_of(&t, "current")};
    run_shell("cd \"$1\" && cp other.crt current", t.dir);
    connect_with(&t, &s);
    ck_assert_int_eq(ask(&t, &e), HTTP_NOT_SENT);
    run_shell("cd \"$1\" && cp ca.crt current", t.dir);
    ck_assert_int_eq(ask(&t, &e), HTTP_ANSWERED);
    run_shell("cd \"$1\" && cp other.crt current", t.dir);
    ck_assert_int_eq(ask(&t, &e), HTTP_NOT_SENT);
    tls_close(&t);
}

/* ---- the system's CAs ---- */

static void write_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    (void)close(fd);
}

/* Makes mounts that only this process sees; false: the kernel forbids that to this user. */
static bool own_mounts(void)
{
    char map[32];
    (void)snprintf(map, sizeof(map), "0 %u 1", (unsigned)getuid());
    if (unshare(CLONE_NEWNS) != 0) {
        if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0)
            return false;
        write_text("/proc/self/uid_map", map);
        (void)prctl(PR_SET_DUMPABLE, 1); /* so that LeakSanitizer can attach */
    }
    ck_assert_int_eq(mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
    return true;
}

/* Mounts the folder and the file that libcurl trusts by default, with only this CA. */
static bool trust_by_system(struct tls *t, const char *ca)
{
    char script[512];
    const curl_version_info_data *v = curl_version_info(CURLVERSION_NOW);
    if (v->capath == NULL || v->cainfo == NULL || !own_mounts())
        return false;
    ck_assert_int_eq(mount("tmpfs", v->capath, "tmpfs", 0, NULL), 0);
    (void)snprintf(script, sizeof(script),
                   "cp \"$1/%s\" %s/system.pem && openssl rehash %s > \"$1/log\" 2>&1 &&"
                   " case %s in %s/*) cp \"$1/%s\" %s;; esac",
                   ca, v->capath, v->capath, v->cainfo, v->capath, ca, v->cainfo);
    run_shell(script, t->dir);
    return true;
}

/* The server's certificate is from the system's CA. */
static const struct {
    const char *ca_file;
    const char *ca_data;
    enum http_outcome outcome;
} system_trusts[] = {
    {NULL, NULL, HTTP_ANSWERED},
    {"other.crt", NULL, HTTP_NOT_SENT},
    {NULL, "other.crt", HTTP_NOT_SENT},
    {"ca.crt", "other.crt", HTTP_NOT_SENT},
    {"other.crt", "ca.crt", HTTP_ANSWERED},
    {"no-such-file", NULL, HTTP_NOT_SENT},
    {"empty", NULL, HTTP_NOT_SENT},
    {NULL, "garbage", HTTP_NOT_SENT},
};

TEST_EACH(with_a_ca_given_no_other_counts, COUNT_OF(system_trusts))
{
    struct tls t;
    struct err e = ERR_INIT;
    struct http_client_settings s = {.insecure = false};
    tls_open(&t, "address", false);
    run_shell("cd \"$1\" && : > empty && echo nothing > garbage", t.dir);
    if (system_trusts[_i].ca_file != NULL)
        s.ca_file = path_of(&t, system_trusts[_i].ca_file);
    if (system_trusts[_i].ca_data != NULL)
        s.ca_data = contents_of(&t, system_trusts[_i].ca_data);
    if (trust_by_system(&t, "ca.crt")) {
        connect_with(&t, &s);
        ck_assert_int_eq(ask(&t, &e), system_trusts[_i].outcome);
    } else {
        (void)fputs("# not run: no mount namespaces here, or libcurl trusts no folder\n", stderr);
    }
    tls_close(&t);
}

/* libcurl would wait for the pipe's writer, and the whole process with it. */
TEST(a_pipe_keeps_nobody_waiting)
{
    struct tls t;
    struct err e = ERR_INIT;
    tls_open(&t, "address", false);
    struct http_client_settings s = {.ca_file = path_of(&t, "current")};
    run_shell("cd \"$1\" && mkfifo current", t.dir);
    connect_with(&t, &s);
    ck_assert_int_eq(ask(&t, &e), HTTP_NOT_SENT);
    ck_assert_ptr_nonnull(strstr(e.text, "no regular file"));
    run_shell("cd \"$1\" && rm current && cp ca.crt current", t.dir);
    ck_assert_int_eq(ask(&t, &e), HTTP_ANSWERED);
    tls_close(&t);
}

enum identity {
    NONE,
    FILES,
    DATA,
    IDENTITIES,
};

TEST_EACH(a_client_certificate, IDENTITIES)
{
    struct tls t;
    struct err e = ERR_INIT;
    tls_open(&t, "address", true);
    struct http_client_settings s = {.ca_file = path_of(&t, "ca.crt")};
    if (_i == FILES) {
        s.cert_file = path_of(&t, "client.crt");
        s.key_file = path_of(&t, "client.key");
    } else if (_i == DATA) {
        s.cert_data = contents_of(&t, "client.crt");
        s.key_data = contents_of(&t, "client.key");
    }
    connect_with(&t, &s);
    enum http_outcome outcome = ask(&t, &e);
    if (_i == NONE)
        ck_assert_int_ne(outcome, HTTP_ANSWERED);
    else
        ck_assert_int_eq(outcome, HTTP_ANSWERED);
    tls_close(&t);
}

int main(void)
{
    no_proxies();
    return unit_run();
}
