/* kubectl as a child process of kubectl-cardpack: shell scripts stand in for kubectl. */
#include "base/file.h"
#include "base/limit.h"
#include "fail_alloc.h"
#include "kubectl/client.h"
#include "kubectl/limit.h"
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SERVES "echo \"Starting to serve on ${2#*=}\"\n"
#define STAYS  "exec sleep 600\n"

static char folder[] = "/tmp/cardpack-test-proxy-XXXXXX";
static struct arena arena;
static struct err err;
static struct loop *loop;
static struct kubectl_proxy proxy;
static struct kubectl_client client;
static struct kubectl_args args;

static const char *const files[] = {"bin/kubectl", "args", "stdin", "ignored", "shown", "pid"};

static const char *in_folder(const char *name)
{
    static char path[128];
    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

/* The script's working directory is the test's folder. */
static void write_kubectl(const char *body)
{
    FILE *f = fopen(in_folder("bin/kubectl"), "w");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_ge(fprintf(f, "#!/bin/sh\n%s", body), 0);
    ck_assert_int_eq(fclose(f), 0);
    ck_assert_int_eq(chmod(in_folder("bin/kubectl"), 0700), 0);
}

static struct str content(const char *name)
{
    struct buf text;
    buf_init(&text, 64 * KIB);
    ck_assert_ok(file_read(str_of(in_folder(name)), &text, &err), &err);
    return arena_keep(&arena, &text);
}

static void set_path(const char *path)
{
    ck_assert_int_eq(setenv("PATH", path, 1), 0);
}

static void setup(void)
{
    char path[128];
    arena_init(&arena, MIB);
    err = (struct err)ERR_INIT;
    args = kubectl_args_defaults();
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(mkdir(in_folder("bin"), 0700), 0);
    ck_assert_int_eq(mkdir(in_folder("run"), 0700), 0);
    (void)snprintf(path, sizeof(path), "%s/bin:/usr/bin:/bin", folder);
    set_path(path);
    ck_assert_int_eq(setenv("XDG_RUNTIME_DIR", in_folder("run"), 1), 0);
    ck_assert_int_eq(chdir(folder), 0);
    ck_assert_ok(loop_new(&loop, &err), &err);
}

/* rmdir of "run" shows that nothing is left in it. */
static void teardown(void)
{
    loop = loop_free(loop);
    for (size_t i = 0; i < COUNT_OF(files); i++)
        (void)unlink(in_folder(files[i]));
    ck_assert_int_eq(rmdir(in_folder("run")), 0);
    ck_assert_int_eq(rmdir(in_folder("bin")), 0);
    ck_assert_int_eq(rmdir(folder), 0);
    arena_done(&arena);
}

/* The clock of the loop, for a test whose script must be in time however slow the machine is. */
static bool clock_stands;

/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name) */
int clock_gettime(clockid_t clock, struct timespec *ret)
{
    int rc = (int)syscall(SYS_clock_gettime, clock, ret);
    if (clock == CLOCK_BOOTTIME && clock_stands)
        *ret = (struct timespec){0}; /* the loop's time does not go back: it stands */
    return rc;
}

/* Standard error goes to the file "shown" from now on. */
static void keep_shown(void)
{
    int fd = open(in_folder("shown"), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
    ck_assert_int_eq(dup2(fd, STDERR_FILENO), STDERR_FILENO);
    (void)close(fd);
}

static enum errc start(void)
{
    /* A test in the background inherits ignored signals. */
    (void)signal(SIGHUP, SIG_DFL);
    (void)signal(SIGQUIT, SIG_DFL);
    return kubectl_proxy_start(&proxy, loop, &args, &err);
}

static const char *folder_of_socket(void)
{
    static char path[sizeof(proxy.socket)];
    (void)snprintf(path, sizeof(path), "%.*s", (int)(strlen(proxy.socket) - strlen("/socket")),
                   proxy.socket);
    return path;
}

/* It gets the user's flags, no standard input, no blocked or ignored signal; only the user may
 * reach its socket. It ends with the proxy, and the socket's folder is removed. */
TEST(serves)
{
    struct stat st;
    args.passed[args.n_passed++] = "--context";
    args.passed[args.n_passed++] = "a b";
    write_kubectl("printf '%s|' \"$@\" >args\ncat >stdin\n"
                  "grep -E 'Sig(Blk|Ign)' /proc/self/status >ignored\n" SERVES STAYS);
    ck_assert_ok(start(), &err);
    char expected[512];
    (void)snprintf(
        expected, sizeof(expected),
        "proxy|--unix-socket=%s|--accept-hosts=^kubectl$|--reject-paths=^$|--context|a b|",
        proxy.socket);
    ck_assert_str_is(content("args"), expected);
    ck_assert_uint_eq(content("stdin").n, 0);
    ck_assert_str_is(content("ignored"), "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
    ck_assert(str_starts(str_of(proxy.socket), str_of(in_folder("run/kubectl-cardpack-"))));
    const char *made = folder_of_socket();
    ck_assert_int_eq(stat(made, &st), 0);
    ck_assert_uint_eq(st.st_mode & 07777, 0700);
    pid_t pid = proxy.child.pid;
    ck_assert_int_eq(kill(pid, 0), 0);
    ck_assert(!kubectl_child_is_gone(&proxy.child, &err));
    kubectl_proxy_stop(&proxy);
    ck_assert_int_eq(kill(pid, 0), -1);
    ck_assert_int_eq(stat(made, &st), -1);
    kubectl_proxy_stop(&proxy);
}

static const struct {
    const char *script;
    const char *says;
} broken[] = {
    {"exit 3\n", "kubectl proxy: ended with exit status 3"},
    {"kill -9 $$\n", "kubectl proxy: ended by signal 9"},
    {"echo Error from server\n" STAYS, "kubectl proxy: it prints \"Error from server\""},
    {"while :; do printf 0123456789 || exit; done\n",
     "kubectl proxy: its first line has more than 512 bytes"},
    {"exec >&-\n" STAYS, "kubectl proxy: ended by signal "},
};

TEST_EACH(failure, COUNT_OF(broken))
{
    write_kubectl(broken[_i].script);
    ck_assert_int_ne(start(), OK);
    ck_assert_msg(strncmp(err.text, broken[_i].says, strlen(broken[_i].says)) == 0, "%s", err.text);
}

/* Not even in the working directory. */
TEST_EACH(missing, 3)
{
    static const char *const paths[] = {"", "/nowhere", ".:bin:/nowhere"};
    write_kubectl(SERVES STAYS);
    set_path(paths[_i]);
    ck_assert_int_eq(start(), ERR_NOTFOUND);
    ck_assert_str_eq(err.text,
                     "kubectl: there is no such program in PATH; without it, use --server "
                     "or --daemon-url");
    args.command = KUBECTL_EXPLAIN;
    struct str namespace;
    ck_assert_int_eq(kubectl_context_namespace(loop, &args, UINT64_MAX, &arena, &namespace, &err),
                     ERR_NOTFOUND);
}

TEST(unusable)
{
    write_kubectl("");
    keep_shown();
    FILE *f = fopen(in_folder("bin/kubectl"), "w");
    ck_assert_ptr_nonnull(f);
    (void)fputs("no program", f);
    ck_assert_int_eq(fclose(f), 0);
    ck_assert_int_eq(start(), ERR_UNAVAILABLE);
    ck_assert_str_eq(err.text, "kubectl proxy: ended with exit status 127");
    struct str shown = content("shown");
    ck_assert(str_ends(shown, STR("/bin/kubectl: Exec format error\n")));
}

/* A child that does not print its line in time is ended, if needed by SIGKILL. */
TEST_EACH(deadline, 2)
{
    static const char *const scripts[] = {STAYS, "trap '' TERM\nwhile :; do :; done\n"};
    const char *const argv[] = {"kubectl", NULL};
    struct kubectl_run run = {.argv = argv, .timeout_ms = 50};
    struct kubectl_child child;
    write_kubectl(scripts[_i]);
    ck_assert_int_eq(kubectl_child_start(&child, loop, &run, &err), ERR_TIMEOUT);
    ck_assert_str_eq(err.text, "it has printed nothing within 1 s");
    ck_assert_int_eq(child.pid, 0);
}

/* Replaces the function that child.c calls: this signal comes right before the program runs. */
static int signo_before; /* 0: none */

/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name) */
int execv(const char *path, char *const argv[])
{
    if (signo_before != 0)
        (void)raise(signo_before);
    return execve(path, argv, environ);
}

/* What our handler of the signal would do, it does not do in a child: kubectl proxy serves on. */
TEST(a_signal_before_the_program_runs)
{
    struct str namespace;
    write_kubectl(SERVES STAYS);
    ck_assert_ok(start(), &err);
    signo_before = SIGHUP;
    ck_assert_ok(kubectl_context_namespace(loop, &args, UINT64_MAX, &arena, &namespace, &err),
                 &err);
    signo_before = 0;
    ck_assert_str_is(namespace, "default");
    ck_assert_int_eq(access(folder_of_socket(), F_OK), 0);
    ck_assert(!kubectl_child_is_gone(&proxy.child, &err));
    kubectl_proxy_stop(&proxy);
}

static volatile sig_atomic_t running;
static sig_atomic_t seen;

static void see_running(struct timer *t)
{
    (void)t;
    seen = running;
}

/* A handler of signals knows the pid while the child starts, and not after the child is reaped. */
TEST(tells_its_pid)
{
    const char *const argv[] = {"kubectl", NULL};
    struct kubectl_run run = {.argv = argv, .timeout_ms = 300, .running = &running};
    struct kubectl_child child;
    struct timer early = {.fire = see_running};
    write_kubectl("echo $$ >pid\n" STAYS);
    timer_arm(loop, &early, 10);
    ck_assert_int_eq(kubectl_child_start(&child, loop, &run, &err), ERR_TIMEOUT);
    ck_assert_int_gt(seen, 0);
    ck_assert_int_eq(running, 0);
    write_kubectl("echo line\n");
    run.timeout_ms = LIMIT_KUBECTL_START_MS;
    ck_assert_ok(kubectl_child_start(&child, loop, &run, &err), &err);
    ck_assert_int_eq(running, child.pid);
    while (!kubectl_child_is_gone(&child, &err))
        (void)usleep(1000);
    ck_assert_int_eq(running, 0);
}

/* Standard error is printable, has a prefix on each line, and shows a prompt before its end. */
TEST(says)
{
    write_kubectl("printf 'one\\n\\n\\033[1mtwo\\n' >&2\nprintf 'Name: ' >&2\n"
                  "until grep -q 'Name: ' shown; do :; done\n"
                  "echo 'joe' >&2\n"
                  "echo 'E1123 x.go:1] Error while proxying request: no\n\nhint' >&2\n"
                  "printf end >&2\n" SERVES STAYS);
    keep_shown();
    ck_assert_ok(start(), &err);
    kubectl_proxy_stop(&proxy);
    ck_assert_str_is(content("shown"), "kubectl cardpack: one\nkubectl cardpack: \\x1b[1mtwo\n"
                                       "kubectl cardpack: Name: joe\nkubectl cardpack: hint\n"
                                       "kubectl cardpack: end\n");
}

/* TAB completion waits for kubectl less than two seconds; here it does not run out of them. */
TEST(quiet)
{
    clock_stands = true;
    args.command = KUBECTL_COMPLETE;
    write_kubectl("echo noise >&2\n" SERVES STAYS);
    keep_shown();
    ck_assert_ok(start(), &err);
    kubectl_proxy_stop(&proxy);
    ck_assert_uint_eq(content("shown").n, 0);
}

/* However this process ends, kubectl ends; except with SIGKILL, the socket's folder goes as well.
 */
TEST_EACH(dies_with_us, 4)
{
    static const int signals[] = {SIGKILL, SIGINT, SIGTERM, SIGHUP};
    int status = 0;
    uint64_t kubectl = 0;
    ck_assert_int_eq(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    write_kubectl("echo $$ >pid\necho \"${2#*=}\" >args\n" SERVES STAYS);
    pid_t pid = fork();
    if (pid == 0) {
        if (signals[_i] != SIGKILL)
            (void)signal(signals[_i], SIG_DFL); /* check has its own handler */
        if (start() == OK)
            (void)raise(signals[_i]);
        _exit(1);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == signals[_i]);
    ck_assert(str_to_u64(str_trim(content("pid")), INT32_MAX, &kubectl));
    ck_assert_int_eq(waitpid((pid_t)kubectl, &status, 0), (pid_t)kubectl);
    ck_assert(WIFSIGNALED(status));
    struct str made = str_trim(content("args"));
    char path[sizeof(proxy.socket)];
    ck_assert(str_ends(made, STR("/socket")));
    (void)snprintf(path, sizeof(path), "%.*s", (int)(made.n - strlen("/socket")), made.p);
    ck_assert_int_eq(rmdir(path), signals[_i] == SIGKILL ? 0 : -1);
}

/* In place of the real kubectl: listens on the socket until a signal ends it. */
static int serve(const char *path)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    FILE *f = fopen("pid", "w");
    (void)snprintf(at.sun_path, sizeof(at.sun_path), "%s", path);
    if (f != NULL && fprintf(f, "%d", (int)getpid()) >= 0 && fclose(f) == 0 &&
        bind(fd, (const struct sockaddr *)&at, sizeof(at)) == 0 && listen(fd, 1) == 0) {
        (void)printf("Starting to serve on %s\n", path);
        (void)fflush(stdout);
        (void)pause();
    }
    (void)close(fd);
    return 1;
}

/* kubectl in PATH is a script without exec: the process that it has started ends, too. */
TEST_EACH(ends_the_real_kubectl, 4)
{
    static const int signals[] = {0, SIGINT, SIGTERM, SIGHUP};
    char self[128];
    char script[256];
    uint64_t kubectl = 0;
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self));
    ck_assert(n > 0 && (size_t)n < sizeof(self));
    ck_assert_int_eq(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    (void)snprintf(script, sizeof(script), "'%.*s' serve \"${2#*=}\"\nexit 1\n", (int)n, self);
    write_kubectl(script);
    pid_t pid = fork();
    if (pid == 0) {
        if (signals[_i] != 0)
            (void)signal(signals[_i], SIG_DFL); /* check has its own handler */
        enum errc code = start();
        if (code == OK && signals[_i] != 0)
            (void)raise(signals[_i]);
        kubectl_proxy_stop(&proxy);
        _exit(code == OK ? 0 : 1);
    }
    int status = 0;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, signals[_i]); /* no exit status, or the signal's number */
    ck_assert(str_to_u64(content("pid"), INT32_MAX, &kubectl));
    while (kill((pid_t)kubectl, 0) == 0) { /* the script may reap it, or leave that to us */
        (void)waitpid((pid_t)kubectl, NULL, WNOHANG);
        (void)usleep(1000);
    }
    while (waitpid(-1, NULL, 0) > 0)
        ;
}

static const struct {
    const char *script;
    const char *namespace;
} contexts[] = {
    {"printf '%s|' \"$@\" >args\necho ns\n", "ns"},
    {"echo\n", "default"},
    {"echo 'error: current-context must exist' >&2\nexit 1\n", "default"},
};

TEST_EACH(of_context, COUNT_OF(contexts))
{
    struct str namespace;
    args.passed[args.n_passed++] = "--user";
    args.passed[args.n_passed++] = "u";
    (void)unsetenv("KUBERNETES_SERVICE_HOST");
    write_kubectl(contexts[_i].script);
    keep_shown();
    ck_assert_ok(kubectl_context_namespace(loop, &args, UINT64_MAX, &arena, &namespace, &err),
                 &err);
    ck_assert_str_is(namespace, contexts[_i].namespace);
    ck_assert_uint_eq(content("shown").n, 0);
    if (_i == 0)
        ck_assert_str_is(content("args"),
                         "config|view|--minify|--output=jsonpath={.contexts[0].context.namespace}"
                         "{\"\\n\"}|--user|u|");
}

/* ---- requests through the socket ---- */

/* A process that gives one answer on the socket, and then closes it. */
static pid_t answer_once(const char *answer)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    (void)snprintf(at.sun_path, sizeof(at.sun_path), "%s", client.proxy.socket);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(fd, (const struct sockaddr *)&at, sizeof(at)), 0);
    ck_assert_int_eq(listen(fd, 1), 0);
    pid_t pid = fork();
    if (pid == 0) {
        char head[1024];
        int one = accept(fd, NULL, NULL);
        ssize_t n = read(one, head, sizeof(head) - 1);
        head[n > 0 ? n : 0] = '\0';
        bool asked = strstr(head, "GET /version HTTP/1.1\r\nHost: kubectl\r\n") == head;
        (void)dprintf(one, "%s", asked ? answer : "HTTP/1.1 400 Bad Request\r\n\r\n");
        _exit(0);
    }
    (void)close(fd);
    return pid;
}

#define LOG(text) "echo 'E1123 x.go:1] Error while proxying request: " text "' >&2\n"

static const struct {
    const char *logs; /* what kubectl does before it serves */
    const char *answer;
    enum errc code;
    bool answered;
    const char *says;
} answers[] = {
    {"", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", OK, true, ""},
    {"", "HTTP/1.1 500 X\r\nContent-Length: 10\r\n\r\n {\"a\": 1}\n", OK, true, ""},
    {LOG("dial tcp: x"), "HTTP/1.1 500 X\r\nContent-Length: 12\r\n\r\ndial tcp: x\n",
     ERR_UNAVAILABLE, false, "kubectl proxy: dial tcp: x"},
    {LOG("log in\n\nhow"), "HTTP/1.1 500 X\r\nContent-Length: 11\r\n\r\nlog in\n\nhow",
     ERR_UNAVAILABLE, false, "kubectl proxy: log in"},
    {"", "", ERR_UNAVAILABLE, false, "GET /version: "},
    /* A plain 500 of a server behind the Service. */
    {"", "HTTP/1.1 500 X\r\nContent-Length: 6\r\n\r\noops!\n", OK, true, ""},
    {LOG("dial tcp: x"), "HTTP/1.1 500 X\r\nContent-Length: 6\r\n\r\noops!\n", OK, true, ""},
};

TEST_EACH(request, COUNT_OF(answers))
{
    (void)setenv("http_proxy", "http://127.0.0.1:1", 1);
    char script[256];
    args.timeout_given = _i == 0;
    (void)snprintf(script, sizeof(script), "%s" SERVES STAYS, answers[_i].logs);
    write_kubectl(script);
    ck_assert_ok(kubectl_client_open(&client, &args, &err), &err);
    pid_t pid = answer_once(answers[_i].answer);
    enum errc code = kubectl_client_call(&client, "GET", STR("/version"), STR_NULL, &err);
    ck_assert_int_eq(code, answers[_i].code);
    ck_assert(client.is_answered == answers[_i].answered);
    ck_assert_uint_eq(client.call.http.timeout_ms, _i == 0 ? args.timeout_ms : LIMIT_LOGIN_MS);
    ck_assert_msg(strncmp(err.text, answers[_i].says, strlen(answers[_i].says)) == 0, "%s",
                  err.text);
    kubectl_client_close(&client);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
}

/* The error says how kubectl ended. */
TEST(lost)
{
    write_kubectl(SERVES STAYS);
    ck_assert_ok(kubectl_client_open(&client, &args, &err), &err);
    ck_assert_int_eq(kill(client.proxy.child.pid, SIGKILL), 0);
    siginfo_t info;
    ck_assert_int_eq(waitid(P_PID, (id_t)client.proxy.child.pid, &info, WEXITED | WNOWAIT), 0);
    ck_assert_int_eq(kubectl_client_call(&client, "GET", STR("/version"), STR_NULL, &err),
                     ERR_UNAVAILABLE);
    ck_assert_str_eq(err.text, "kubectl proxy: ended by signal 9");
    ck_assert(!client.is_answered);
    kubectl_client_close(&client);
}

static enum errc open_and_close(void *ctx)
{
    struct arena own;
    struct str namespace;
    (void)ctx;
    arena_init(&own, MIB);
    enum errc code = kubectl_client_open(&client, &args, &err);
    if (code == OK)
        code = kubectl_client_namespace(&client, &own, &namespace, &err);
    kubectl_client_close(&client);
    arena_done(&own);
    return code;
}

TEST(no_memory)
{
    write_kubectl("[ \"$1\" = proxy ] || { echo ns; exit; }\n" SERVES STAYS);
    ck_assert_uint_gt(fail_alloc_each(open_and_close, NULL), 0);
}

/* For a bad address the error names the flag, and kubectl is not started. */
TEST(address)
{
    write_kubectl("echo >ran\n");
    args.daemon_url = STR("http://host");
    ck_assert_int_eq(kubectl_client_open(&client, &args, &err), ERR_DENIED);
    ck_assert(str_starts(str_of(err.text), STR("--daemon-url: \"http://host\" would send")));
    kubectl_client_close(&client);
    args.daemon_url = STR_NULL;
    args.server = STR("host:1");
    err = (struct err)ERR_INIT;
    ck_assert_int_eq(kubectl_client_open(&client, &args, &err), ERR_SYNTAX);
    ck_assert_str_eq(err.text, "--server: \"host:1\" must begin with \"https://\"");
    kubectl_client_close(&client);
    args.server = STR("http://127.0.0.1:1");
    args.token_file = STR("/token");
    err = (struct err)ERR_INIT;
    ck_assert_int_eq(kubectl_client_open(&client, &args, &err), ERR_DENIED);
    ck_assert(str_starts(str_of(err.text), STR("--token-file: a token is sent over https only")));
    kubectl_client_close(&client);
    ck_assert_int_ne(access(in_folder("ran"), F_OK), 0);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "serve") == 0)
        return serve(argv[2]);
    TCase *t = unit_case("kubectl_proxy");
    tcase_add_checked_fixture(t, setup, teardown);
    return unit_run();
}
