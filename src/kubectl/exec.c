/*
 * Runs one child program. The child is in the same process group, so that it can read from the
 * terminal and Ctrl-C ends both. kubectl_exec waits for the child itself, not for the child's own
 * children that still have the pipe open. After any error the child is ended and reaped before
 * kubectl_exec returns.
 *
 * PATH is searched here and not by posix_spawnp, so that a folder such as "." in it can't start a
 * program from the user's working directory. Go refuses that as well.
 */
#include "kubectl/exec.h"

#include "io/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define READ_STEP ((size_t)4096)
#define GRACE_MS  UINT64_C(300) /* between SIGTERM and SIGKILL */

struct run {
    const struct kubectl_program *program;
    struct loop *loop;
    struct loop_fd pipe;
    struct timer deadline;
    struct buf *out;
    struct err err; /* why the child is ended */
    pid_t pid;
    int status;
    bool asked; /* SIGTERM was sent */
};

static char *to_z(struct arena *a, struct str s)
{
    char *z = arena_alloc(a, s.n + 1);
    if (z != NULL && s.n > 0)
        memcpy(z, s.p, s.n);
    return z;
}

static bool is_program(const char *file)
{
    struct stat st;
    return stat(file, &st) == 0 && S_ISREG(st.st_mode) && access(file, X_OK) == 0;
}

static enum errc find_program(const struct kubectl_program *p, struct arena *a, char **ret,
                              struct err *e)
{
    *ret = to_z(a, p->command);
    if (p->command.n == 0 || memchr(p->command.p, '/', p->command.n) != NULL)
        return OK;
    for (struct str folder, rest = p->path; rest.p != NULL;) {
        char file[PATH_MAX];
        struct buf b = {.p = file, .cap = sizeof(file), .max = sizeof(file) - 1};
        (void)str_cut(rest, ':', &folder, &rest);
        if (!str_starts(folder, STR("/")))
            continue;
        buf_put(&b, folder);
        buf_putc(&b, '/');
        buf_put(&b, p->command);
        if (buf_failed(&b))
            continue;
        file[b.n] = '\0';
        if (is_program(file)) {
            *ret = to_z(a, buf_str(&b));
            return OK;
        }
    }
    return err_set(e, ERR_NOTFOUND, "there is no such program in PATH");
}

static char **make_arguments(const struct kubectl_program *p, struct arena *a)
{
    char **argv = arena_array(a, p->n_args + 2, sizeof(*argv));
    if (argv == NULL)
        return NULL;
    argv[0] = to_z(a, p->command);
    for (size_t i = 0; i < p->n_args; i++)
        argv[i + 1] = to_z(a, p->args[i]);
    return argv;
}

static bool is_set(const struct kubectl_program *p, size_t from, struct str name)
{
    for (size_t i = from; i < p->n_env; i++) {
        if (str_eq(p->names[i], name))
            return true;
    }
    return false;
}

/* If a name occurs several times, the last one counts. */
static char **make_environment(const struct kubectl_program *p, struct arena *a)
{
    size_t n = 0;
    while (p->environment != NULL && p->environment[n] != NULL)
        n++;
    char **env = arena_array(a, n + p->n_env + 1, sizeof(*env));
    if (env == NULL)
        return NULL;
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        struct str name;
        struct str value;
        (void)str_cut(str_of(p->environment[i]), '=', &name, &value);
        if (!is_set(p, 0, name))
            env[at++] = p->environment[i];
    }
    for (size_t i = 0; i < p->n_env; i++) {
        struct str name = p->names[i];
        struct str value = p->values[i];
        char *entry = is_set(p, i + 1, name) ? NULL : arena_alloc(a, name.n + value.n + 2);
        if (entry == NULL)
            continue;
        memcpy(entry, name.p, name.n);
        entry[name.n] = '=';
        if (value.n > 0)
            memcpy(entry + name.n + 1, value.p, value.n);
        env[at++] = entry;
    }
    return env;
}

/* Sets standard output first: the pipe may be descriptor 0 or 2, which the next actions replace. */
static int arrange(const struct kubectl_program *p, int out, posix_spawn_file_actions_t *actions)
{
    int error = posix_spawn_file_actions_adddup2(actions, out, STDOUT_FILENO);
    if (error == 0 && !p->input)
        error = posix_spawn_file_actions_addopen(actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (error == 0 && p->quiet)
        error = posix_spawn_file_actions_addopen(actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    return error;
}

/* Restores the default signals for the child: the loop ignores SIGPIPE and blocks SIGCHLD. */
static int spawn(struct run *r, const char *file, char *const *argv, char *const *env, int out)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    sigset_t none;
    sigset_t defaults;
    (void)sigemptyset(&none);
    (void)sigemptyset(&defaults);
    (void)sigaddset(&defaults, SIGPIPE);
    int error = posix_spawn_file_actions_init(&actions);
    if (error != 0)
        return error;
    error = posix_spawnattr_init(&attr);
    if (error != 0) {
        (void)posix_spawn_file_actions_destroy(&actions);
        return error;
    }
    error = arrange(r->program, out, &actions);
    if (error == 0)
        error = posix_spawnattr_setsigmask(&attr, &none);
    if (error == 0)
        error = posix_spawnattr_setsigdefault(&attr, &defaults);
    if (error == 0)
        error = posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    if (error == 0)
        error = posix_spawn(&r->pid, file, &actions, &attr, argv, env);
    (void)posix_spawnattr_destroy(&attr);
    (void)posix_spawn_file_actions_destroy(&actions);
    return error;
}

static void forget_pipe(struct run *r)
{
    if (r->pipe.fd < 0)
        return;
    loop_fd_del(&r->pipe);
    (void)close(r->pipe.fd);
    r->pipe.fd = -1;
}

/* Signals the child. Never kills pid 0, which would be the whole process group. */
static void end_it(struct run *r)
{
    forget_pipe(r);
    if (r->pid <= 0)
        return;
    (void)kill(r->pid, r->asked ? SIGKILL : SIGTERM);
    if (!r->asked)
        timer_arm(r->loop, &r->deadline, GRACE_MS);
    r->asked = true;
}

static void on_deadline(struct timer *t)
{
    struct run *r = CONTAINER_OF(t, struct run, deadline);
    if (!r->asked)
        (void)err_set(&r->err, ERR_TIMEOUT, "it has not ended within %llu s",
                      (unsigned long long)(r->program->timeout_ms + 999) / 1000);
    end_it(r);
}

/* Reads what the pipe has now. */
static void take(struct run *r)
{
    while (r->pipe.fd >= 0) {
        char bytes[READ_STEP];
        ssize_t n = read(r->pipe.fd, bytes, sizeof(bytes));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n <= 0) {
            forget_pipe(r);
            return;
        }
        buf_put(r->out, (struct str){bytes, (size_t)n});
        if (buf_failed(r->out)) {
            (void)err_set(&r->err, buf_fault(r->out), "it prints more than %zu bytes", r->out->max);
            end_it(r);
        }
    }
}

static void on_pipe(struct loop_fd *f, uint32_t events)
{
    (void)events;
    take(CONTAINER_OF(f, struct run, pipe));
}

static void on_child(void *ctx, int signo)
{
    struct run *r = ctx;
    (void)signo;
    if (r->pid <= 0 || waitpid(r->pid, &r->status, WNOHANG) != r->pid)
        return;
    r->pid = 0;
    take(r);
    loop_stop(r->loop);
}

static enum errc start(struct run *r, const char *file, char *const *argv, char *const *env,
                       struct err *e)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
        return err_set(e, ERR_UNAVAILABLE, "pipe: %s", strerror(errno));
    r->pipe.fd = ends[0];
    /* The child's end of the pipe must block: programs expect that of standard output. */
    enum errc code = fcntl(ends[1], F_SETFL, 0) == 0
                         ? loop_fd_add(r->loop, &r->pipe, e)
                         : err_set(e, ERR_UNAVAILABLE, "pipe: %s", strerror(errno));
    int error = code == OK ? spawn(r, file, argv, env, ends[1]) : 0;
    (void)close(ends[1]);
    if (error != 0)
        code = err_set(e, error == ENOENT || error == ENOTDIR ? ERR_NOTFOUND : ERR_UNAVAILABLE,
                       "it can't be run: %s", strerror(error));
    return code;
}

static enum errc judge(const struct run *r, struct err *e)
{
    if (r->err.code != OK)
        return err_set(e, r->err.code, "%s", r->err.text);
    if (WIFSIGNALED(r->status))
        return err_set(e, ERR_UNAVAILABLE, "it was ended by signal %d", WTERMSIG(r->status));
    if (WEXITSTATUS(r->status) != 0)
        return err_set(e, ERR_UNAVAILABLE, "it ended with exit status %d", WEXITSTATUS(r->status));
    return OK;
}

static enum errc run(struct run *r, const char *file, char *const *argv, char *const *env,
                     struct err *e)
{
    enum errc code = loop_signal(r->loop, SIGCHLD, on_child, r, e);
    if (code == OK)
        code = start(r, file, argv, env, e);
    if (code == OK) {
        timer_arm(r->loop, &r->deadline, r->program->timeout_ms);
        code = loop_run(r->loop, e);
    }
    timer_cancel(&r->deadline);
    forget_pipe(r);
    if (r->pid > 0) { /* the loop has failed */
        (void)kill(r->pid, SIGKILL);
        (void)waitpid(r->pid, &r->status, 0);
    }
    return code == OK ? judge(r, e) : code;
}

enum errc kubectl_exec(const struct kubectl_program *p, struct arena *a, struct buf *out,
                       struct err *reterr)
{
    struct run r = {.program = p,
                    .out = out,
                    .pipe = {.fd = -1, .events = EPOLLIN, .ready = on_pipe},
                    .deadline = {.fire = on_deadline}};
    char *file = NULL;
    enum errc code = find_program(p, a, &file, reterr);
    if (code != OK)
        return code;
    char **argv = make_arguments(p, a);
    char **env = make_environment(p, a);
    if (arena_failed(a))
        return err_set(reterr, arena_fault(a), "its arguments are too large");
    code = loop_new(&r.loop, reterr);
    if (code == OK)
        code = run(&r, file, argv, env, reterr);
    if (r.loop != NULL)
        r.loop = loop_free(r.loop);
    return code;
}
