/*
 * Starts kubectl with fork, because only the child itself can ask the kernel for PR_SET_PDEATHSIG.
 * The child stays in the process group, so that it can read from the terminal and Ctrl-C ends both.
 *
 * PATH is searched here and not by execvp, so that a folder such as "." in it cannot start a
 * program from the user's working directory. Go refuses that as well.
 */
#include "kubectl/child.h"

#include "base/buf.h"
#include "kubectl/say.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define GRACE_MS    300 /* between SIGTERM and SIGKILL */
#define PROMPT_MS   UINT64_C(200)
#define STEP_BYTES  4096
#define DRAIN_STEPS 64
#define ARGS_MAX    64
#define NOT_RUN     127

/* kubectl proxy logs its own answers so. The line is not shown: the answer's text is the error. */
#define LOGGED STR("Error while proxying request: ")

/* ---- starting ---- */

static bool child_is_program(const char *file)
{
    struct stat st;
    return stat(file, &st) == 0 && S_ISREG(st.st_mode) && access(file, X_OK) == 0;
}

static bool child_find_program(const char *name, char file[static PATH_MAX])
{
    for (struct str folder, rest = str_of(getenv("PATH")); rest.p != NULL;) {
        struct buf b = buf_on(file, PATH_MAX);
        (void)str_cut(rest, ':', &folder, &rest);
        if (!str_starts(folder, STR("/")))
            continue;
        buf_put(&b, folder);
        buf_putc(&b, '/');
        buf_put(&b, str_of(name));
        if (buf_failed(&b))
            continue;
        file[b.n] = '\0';
        if (child_is_program(file))
            return true;
    }
    return false;
}

/*
 * In the child. Until execv it has the handlers of this program, which remove the folder of kubectl
 * proxy and end it. So fork is called with all signals blocked, and the handlers go first. Signals
 * that the user ignores stay ignored.
 */
static void child_drop_handlers(const sigset_t *mask)
{
    for (int signo = 1; signo < NSIG; signo++) {
        struct sigaction old;
        if (sigaction(signo, NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            (void)signal(signo, SIG_DFL);
    }
    (void)sigprocmask(SIG_SETMASK, mask, NULL);
}

/* In the child. The loop ignores SIGPIPE; a program expects the default. */
_Noreturn static void child_become(const char *file, const struct kubectl_run *r, pid_t parent,
                                   int out, int err)
{
    char *argv[ARGS_MAX + 1];
    size_t n = 0;
    while (r->argv[n] != NULL)
        n++;
    assert(n < COUNT_OF(argv));
    memcpy(argv, r->argv, (n + 1) * sizeof(*argv)); /* execv does not change the strings */
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    bool ready = prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent && null >= 0 &&
                 (r->input || dup2(null, STDIN_FILENO) >= 0) && dup2(out, STDOUT_FILENO) >= 0 &&
                 dup2(r->quiet ? null : err, STDERR_FILENO) >= 0;
    (void)signal(SIGPIPE, SIG_DFL);
    if (ready)
        (void)execv(file, argv);
    if (!r->quiet)
        (void)dprintf(err, "%s: %s\n", file, strerror(errno));
    _exit(NOT_RUN);
}

static enum errc child_spawn(struct kubectl_child *c, const char *file, const struct kubectl_run *r,
                             struct err *e)
{
    int out[2] = {-1, -1};
    int err[2] = {-1, -1};
    pid_t self = getpid();
    sigset_t all;
    sigset_t mask;
    (void)sigfillset(&all);
    (void)sigprocmask(SIG_SETMASK, &all, &mask);
    if (pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0)
        c->pid = -1;
    else
        c->pid = fork();
    if (c->pid == 0) {
        child_drop_handlers(&mask);
        child_become(file, r, self, out[1], err[1]);
    }
    enum errc code =
        c->pid < 0 ? err_set(e, ERR_UNAVAILABLE, "cannot be started: %s", strerror(errno)) : OK;
    c->pid = c->pid < 0 ? 0 : c->pid;
    if (c->running != NULL)
        *c->running = c->pid;
    (void)sigprocmask(SIG_SETMASK, &mask, NULL); /* after the handler of signals can know the pid */
    c->out.fd = out[0];
    c->err.fd = err[0];
    if (out[1] >= 0)
        (void)close(out[1]);
    if (err[1] >= 0)
        (void)close(err[1]);
    if (code == OK &&
        (fcntl(out[0], F_SETFL, O_NONBLOCK) != 0 || fcntl(err[0], F_SETFL, O_NONBLOCK) != 0))
        code = err_set(e, ERR_UNAVAILABLE, "cannot be started: %s", strerror(errno));
    if (code == OK)
        code = loop_fd_add(c->loop, &c->out, e);
    return code == OK ? loop_fd_add(c->loop, &c->err, e) : code;
}

/* ---- its output ---- */

static void child_forget(struct loop_fd *f)
{
    if (f->fd < 0)
        return;
    loop_fd_del(f);
    (void)close(f->fd);
    f->fd = -1;
}

static void child_take_line(struct kubectl_child *c, struct str bytes)
{
    for (size_t i = 0; i < bytes.n && !c->has_line; i++) {
        if (bytes.p[i] == '\n' || c->n_line == sizeof(c->line)) {
            c->has_line = true;
            loop_stop(c->loop);
            return;
        }
        c->line[c->n_line++] = bytes.p[i];
    }
}

/* True: the line is the log line of an error that kubectl proxy also answers. */
static bool child_note_logged(struct kubectl_child *c, struct str text)
{
    const char *at = memmem(text.p, text.n, LOGGED.p, LOGGED.n);
    if (at == NULL)
        return false;
    struct str error = str_trim(str_skip(text, (size_t)(at - text.p) + LOGGED.n));
    memcpy(c->logged, error.p, error.n);
    c->n_logged = error.n;
    return true;
}

/* Shows the text so far: a whole line, or with `ends` false the beginning of one. */
static void child_show(struct kubectl_child *c, bool ends)
{
    struct str text = {c->text, c->n_text};
    bool hidden = child_note_logged(c, text);
    timer_cancel(&c->pause);
    c->n_text = 0;
    if (!c->in_prompt && (hidden || str_trim(text).n == 0))
        return;
    kubectl_say_part(text, !c->in_prompt, ends);
    c->in_prompt = !ends;
}

static void child_on_pause(struct timer *t)
{
    child_show(CONTAINER_OF(t, struct kubectl_child, pause), false);
}

static void child_take_text(struct kubectl_child *c, struct str bytes)
{
    for (size_t i = 0; i < bytes.n; i++) {
        if (bytes.p[i] == '\n' || c->n_text == sizeof(c->text))
            child_show(c, true);
        if (bytes.p[i] != '\n')
            c->text[c->n_text++] = bytes.p[i];
    }
    if (c->n_text > 0)
        timer_arm(c->loop, &c->pause, PROMPT_MS);
}

/* Reads what the pipe has now. False: it has ended. */
static bool child_read_on(struct kubectl_child *c, struct loop_fd *f)
{
    char bytes[STEP_BYTES];
    ssize_t n = read(f->fd, bytes, sizeof(bytes));
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
    if (n <= 0) {
        child_forget(f);
        return false;
    }
    if (f == &c->out)
        child_take_line(c, (struct str){bytes, (size_t)n});
    else
        child_take_text(c, (struct str){bytes, (size_t)n});
    return true;
}

static void child_on_out(struct loop_fd *f, uint32_t events)
{
    struct kubectl_child *c = CONTAINER_OF(f, struct kubectl_child, out);
    (void)events;
    if (!child_read_on(c, f) && !c->has_line)
        loop_stop(c->loop);
}

static void child_on_err(struct loop_fd *f, uint32_t events)
{
    (void)events;
    (void)child_read_on(CONTAINER_OF(f, struct kubectl_child, err), f);
}

static void child_on_deadline(struct timer *t)
{
    struct kubectl_child *c = CONTAINER_OF(t, struct kubectl_child, deadline);
    c->timed_out = true;
    loop_stop(c->loop);
}

/* ---- its end ---- */

/* Waits until the child has closed its standard output, as it does when it ends. */
static void child_await_end(const struct kubectl_child *c)
{
    struct pollfd p = {.fd = c->out.fd, .events = POLLIN};
    char bytes[STEP_BYTES];
    for (int i = 0; i < DRAIN_STEPS && p.fd >= 0; i++) {
        if (poll(&p, 1, GRACE_MS) != 1 || read(p.fd, bytes, sizeof(bytes)) <= 0)
            return;
    }
}

/* Reads what is in the pipe. A process that the child has started may keep the pipe open. */
static void child_read_text(struct kubectl_child *c)
{
    struct pollfd p = {.fd = c->err.fd, .events = POLLIN};
    for (int i = 0; i < DRAIN_STEPS && c->err.fd >= 0 && poll(&p, 1, 0) == 1; i++)
        (void)child_read_on(c, &c->err);
}

bool kubectl_child_has_logged(struct kubectl_child *c, struct str line)
{
    child_read_text(c);
    return c->n_logged > 0 && str_starts(line, (struct str){c->logged, c->n_logged});
}

static void child_drain_text(struct kubectl_child *c)
{
    child_read_text(c);
    if (c->n_text > 0 || c->in_prompt)
        child_show(c, true);
}

void kubectl_child_stop(struct kubectl_child *c)
{
    if (c->loop == NULL)
        return;
    if (c->running != NULL)
        *c->running = 0; /* after waitpid its number may be another process's */
    if (c->pid > 0) {
        (void)kill(c->pid, SIGTERM);
        child_await_end(c);
        (void)kill(c->pid, SIGKILL); /* no effect on a process that has ended */
        while (waitpid(c->pid, &c->status, 0) < 0 && errno == EINTR)
            ;
        c->pid = 0;
    }
    child_drain_text(c);
    timer_cancel(&c->deadline);
    timer_cancel(&c->pause);
    child_forget(&c->out);
    child_forget(&c->err);
    c->loop = NULL;
}

static enum errc child_say_end(const struct kubectl_child *c, struct err *e)
{
    if (WIFSIGNALED(c->status))
        return err_set(e, ERR_UNAVAILABLE, "ended by signal %d", WTERMSIG(c->status));
    return err_set(e, ERR_UNAVAILABLE, "ended with exit status %d", WEXITSTATUS(c->status));
}

bool kubectl_child_is_gone(struct kubectl_child *c, struct err *reterr)
{
    struct pollfd p = {.fd = c->out.fd, .events = POLLIN};
    if (c->loop == NULL || (p.fd >= 0 && (poll(&p, 1, 0) != 1 || (p.revents & POLLIN) != 0)))
        return false;
    kubectl_child_stop(c);
    (void)child_say_end(c, reterr);
    return true;
}

/* ---- life ---- */

static enum errc child_await_line(struct kubectl_child *c, uint64_t timeout_ms, struct err *e)
{
    timer_arm(c->loop, &c->deadline, timeout_ms);
    enum errc code = loop_run(c->loop, e);
    timer_cancel(&c->deadline);
    if (code != OK || (c->has_line && c->n_line < sizeof(c->line)))
        return code;
    if (c->has_line)
        return err_set(e, ERR_LIMIT, "its first line has more than %zu bytes", sizeof(c->line));
    if (c->timed_out)
        return err_set(e, ERR_TIMEOUT, "it has printed nothing within %llu s",
                       (unsigned long long)(timeout_ms + 999) / 1000);
    kubectl_child_stop(c);
    return child_say_end(c, e);
}

enum errc kubectl_child_start(struct kubectl_child *c, struct loop *l, const struct kubectl_run *r,
                              struct err *reterr)
{
    char file[PATH_MAX];
    *c = (struct kubectl_child){
        .loop = l,
        .running = r->running,
        .out = {.fd = -1, .events = EPOLLIN, .ready = child_on_out},
        .err = {.fd = -1, .events = EPOLLIN, .ready = child_on_err},
        .deadline = {.fire = child_on_deadline},
        .pause = {.fire = child_on_pause},
    };
    enum errc code = OK;
    if (!child_find_program(r->argv[0], file))
        code = err_set(reterr, ERR_NOTFOUND, "there is no such program in PATH");
    if (code == OK)
        code = child_spawn(c, file, r, reterr);
    if (code == OK)
        code = child_await_line(c, r->timeout_ms, reterr);
    if (code != OK)
        kubectl_child_stop(c);
    return code;
}

struct str kubectl_child_line(const struct kubectl_child *c)
{
    return (struct str){c->line, c->n_line};
}
