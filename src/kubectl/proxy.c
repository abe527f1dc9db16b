/*
 * Starts `kubectl proxy` on a socket in a new folder with mode 0700. Its checks against web pages,
 * of the Host header and of paths, protect a TCP port: the Host header gets a name of ours, and the
 * check of paths is off, because it would also refuse a pod "exec" in a namespace "pods".
 *
 * The handler of SIGHUP, SIGINT, SIGQUIT and SIGTERM ends kubectl and removes the folder. SIGKILL
 * and every other signal that ends this process leave the folder behind.
 *
 * If kubectl in PATH is a script that runs the real kubectl without exec, our child is the script.
 * The socket leads to the real kubectl: the kernel says which process listens there. A process
 * group for both would be simpler, but kubectl could not read from the terminal any more, and the
 * group's end would also end a browser that a credential plugin has opened.
 */
#include "kubectl/proxy.h"

#include "base/file.h"
#include "kubectl/limit.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define FOLDER "kubectl-cardpack-XXXXXX"
#define SOCKET "/socket"

#define SERVICE_ACCOUNT "/var/run/secrets/kubernetes.io/serviceaccount/"

/* ---- what a signal must end ---- */

static struct {
    volatile sig_atomic_t kubectl; /* its pid; 0: none */
    volatile sig_atomic_t made;    /* the folder exists */
    char folder[sizeof(((struct kubectl_proxy *)NULL)->socket)];
    char socket[sizeof(((struct kubectl_proxy *)NULL)->socket)];
} ends;

static void proxy_remove_folder(void)
{
    if (!ends.made)
        return;
    (void)unlink(ends.socket);
    (void)rmdir(ends.folder);
    ends.made = false;
}

/* The process that listens on the socket; 0: none. Only calls that are safe in a handler. */
static pid_t proxy_find_server(void)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    struct ucred server = {.pid = 0};
    socklen_t n = sizeof(server);
    _Static_assert(sizeof(at.sun_path) == sizeof(ends.socket), "any path of ours fits");
    memcpy(at.sun_path, ends.socket, sizeof(at.sun_path));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return 0;
    if (connect(fd, (const struct sockaddr *)&at, sizeof(at)) != 0 ||
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &server, &n) != 0)
        server.pid = 0;
    (void)close(fd);
    return server.pid;
}

/* Ends the server if it is not our child, which kubectl_child_stop ends. */
static void proxy_end_server(void)
{
    pid_t server = ends.made ? proxy_find_server() : 0;
    if (server > 0 && server != ends.kubectl && server != getpid())
        (void)kill(server, SIGTERM);
}

/* Only calls that are safe in a handler. SA_RESETHAND: the raised signal has its default action. */
static void proxy_on_signal(int signo)
{
    proxy_end_server();
    if (ends.kubectl > 0)
        (void)kill(ends.kubectl, SIGTERM);
    proxy_remove_folder();
    (void)raise(signo);
}

/* A signal that the caller ignores, as nohup does, stays ignored. */
static void proxy_catch_signals(void)
{
    static const int signals[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};
    struct sigaction own = {.sa_handler = proxy_on_signal, .sa_flags = (int)SA_RESETHAND};
    (void)sigemptyset(&own.sa_mask);
    for (size_t i = 0; i < COUNT_OF(signals); i++) {
        struct sigaction old;
        if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler == SIG_DFL)
            (void)sigaction(signals[i], &own, NULL);
    }
}

/* ---- the folder ---- */

static bool proxy_make_folder_in(const char *parent)
{
    int n = snprintf(ends.folder, sizeof(ends.folder), "%s/" FOLDER, parent);
    if (parent[0] != '/' || n < 0 || (size_t)n + sizeof(SOCKET) > sizeof(ends.socket))
        return false;
    if (mkdtemp(ends.folder) == NULL)
        return false;
    (void)snprintf(ends.socket, sizeof(ends.socket), "%.*s" SOCKET, n, ends.folder);
    ends.made = true;
    return true;
}

static enum errc proxy_make_folder(struct err *e)
{
    const char *const parents[] = {getenv("XDG_RUNTIME_DIR"), getenv("TMPDIR"), "/tmp"};
    for (size_t i = 0; i < COUNT_OF(parents); i++) {
        if (parents[i] != NULL && proxy_make_folder_in(parents[i]))
            return OK;
    }
    return err_set(e, ERR_UNAVAILABLE, "no folder for a socket can be made in /tmp: %s",
                   strerror(errno));
}

/* ---- kubectl ---- */

static struct kubectl_run proxy_prepare(const struct kubectl_args *a, const char *const *argv)
{
    bool tab = a->command == KUBECTL_COMPLETE; /* at the prompt of a shell */
    bool taken = tab || str_eq(a->filename, STR("-"));
    return (struct kubectl_run){.argv = argv,
                                .input = !taken && isatty(STDIN_FILENO) == 1,
                                .quiet = tab,
                                .timeout_ms = tab ? LIMIT_NAMES_MS : LIMIT_KUBECTL_START_MS};
}

/* The user's flags after ours; both lists end with NULL. */
static void proxy_join(const char **argv, const char *const *own, const struct kubectl_args *a)
{
    size_t n = 0;
    for (; own[n] != NULL; n++)
        argv[n] = own[n];
    for (size_t i = 0; i < a->n_passed; i++)
        argv[n++] = a->passed[i];
    argv[n] = NULL;
}

static enum errc proxy_explain(enum errc code, const char *what, struct err *e)
{
    if (code == ERR_NOTFOUND)
        return err_set(e, code,
                       "kubectl: there is no such program in PATH; without it, use --server or "
                       "--daemon-url");
    return code == OK ? OK : err_wrap(e, "%s", what);
}

enum errc kubectl_proxy_start(struct kubectl_proxy *p, struct loop *l, const struct kubectl_args *a,
                              struct err *reterr)
{
    char socket[sizeof(p->socket) + 16];
    const char *argv[8 + COUNT_OF(a->passed)];
    proxy_catch_signals();
    enum errc code = proxy_make_folder(reterr);
    if (code != OK)
        return code;
    (void)snprintf(socket, sizeof(socket), "--unix-socket=%s", ends.socket);
    proxy_join(argv,
               (const char *const[]){"kubectl", "proxy", socket, "--accept-hosts=^kubectl$",
                                     "--reject-paths=^$", NULL},
               a);
    struct kubectl_run run = proxy_prepare(a, argv);
    run.running = &ends.kubectl;
    code = proxy_explain(kubectl_child_start(&p->child, l, &run, reterr), "kubectl proxy", reterr);
    if (code == OK && !str_starts(kubectl_child_line(&p->child), STR("Starting to serve on "))) {
        code = err_set(reterr, ERR_UNAVAILABLE, "kubectl proxy: it prints \"%.*s\"",
                       STR_ARG(kubectl_child_line(&p->child)));
    }
    if (code != OK) {
        kubectl_proxy_stop(p);
        return code;
    }
    (void)snprintf(p->socket, sizeof(p->socket), "%s", ends.socket);
    return OK;
}

void kubectl_proxy_stop(struct kubectl_proxy *p)
{
    proxy_end_server();
    kubectl_child_stop(&p->child);
    proxy_remove_folder();
}

/* ---- the namespace ---- */

/* In a pod of the cluster a context without a namespace, or none, has that of the pod. */
static enum errc proxy_find_own(struct arena *arena, struct str *ret, struct err *e)
{
    struct str given = str_of(getenv("POD_NAMESPACE"));
    struct buf text;
    bool in_pod = str_of(getenv("KUBERNETES_SERVICE_HOST")).n > 0 &&
                  str_of(getenv("KUBERNETES_SERVICE_PORT")).n > 0 &&
                  access(SERVICE_ACCOUNT "token", R_OK) == 0;
    buf_init(&text, KIB);
    if (in_pod && given.n == 0 && file_read(STR(SERVICE_ACCOUNT "namespace"), &text, NULL) == OK)
        given = str_trim(buf_str(&text));
    *ret = arena_dup(arena, in_pod && given.n > 0 ? given : STR("default"));
    buf_done(&text);
    return ret->p == NULL ? err_set(e, ERR_NOMEM, "out of memory") : OK;
}

/* An empty configuration is an error for --minify; the caller's next request shows other errors. */
enum errc kubectl_context_namespace(struct loop *l, const struct kubectl_args *a,
                                    uint64_t timeout_ms, struct arena *arena, struct str *ret,
                                    struct err *reterr)
{
    static const char *const view[] = {
        "kubectl",
        "config",
        "view",
        "--minify",
        "--output=jsonpath={.contexts[0].context.namespace}{\"\\n\"}",
        NULL};
    const char *argv[8 + COUNT_OF(a->passed)];
    struct kubectl_child child;
    proxy_join(argv, view, a);
    struct kubectl_run run = proxy_prepare(a, argv);
    run.input = false;
    run.quiet = true;
    run.timeout_ms = MIN_OF(run.timeout_ms, timeout_ms);
    enum errc code = kubectl_child_start(&child, l, &run, reterr);
    struct str line = code == OK ? str_trim(kubectl_child_line(&child)) : STR_NULL;
    *ret = line.n > 0 ? arena_dup(arena, line) : STR_NULL;
    kubectl_child_stop(&child);
    if (code != OK && code != ERR_UNAVAILABLE)
        return proxy_explain(code, "kubectl config view", reterr);
    if (line.n > 0)
        return ret->p == NULL ? err_set(reterr, ERR_NOMEM, "out of memory") : OK;
    return proxy_find_own(arena, ret, reterr);
}
