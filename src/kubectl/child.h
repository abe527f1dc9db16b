/*
 * Runs kubectl as a child process. The kernel kills the child if this process dies. It does not
 * kill what the child has started: the real kubectl if `kubectl` in PATH is a script that runs it
 * without "exec". This is the only code that starts a process; tests/house/symbols.py checks that,
 * and that the daemon does not link it.
 */
#pragma once

#include "io/loop.h"

#include <signal.h>
#include <sys/types.h>

struct kubectl_run {
    const char *const *argv; /* ends with NULL; argv[0] is the program, searched for in PATH */
    bool input;              /* the child inherits standard input; otherwise it reads /dev/null */
    bool quiet;              /* its standard error is not shown */
    uint64_t timeout_ms;     /* for its first line of output */
    volatile sig_atomic_t *running; /* the child's pid until it is ended, then 0; or NULL */
};

struct kubectl_child {
    struct loop *loop; /* NULL: not started */
    volatile sig_atomic_t *running;
    struct loop_fd out;
    struct loop_fd err;
    struct timer deadline;
    struct timer pause; /* then an unfinished line of standard error is shown: it is a prompt */
    pid_t pid;          /* 0: it has ended */
    int status;         /* of waitpid */
    bool has_line;
    bool timed_out;
    bool in_prompt; /* the beginning of the line of standard error is shown already */
    size_t n_line;
    size_t n_text;
    char line[512];  /* the first line of standard output */
    char text[1000]; /* of standard error, not shown yet */
    size_t n_logged;
    char logged[1000]; /* the last error that kubectl proxy logged and answered; its first line */
};

/*
 * Starts the child and waits for its first line of standard output. From then on its standard error
 * is shown, line by line with this program's name, whenever the loop runs. ERR_NOTFOUND: there is
 * no such program in PATH. After an error the child has ended.
 */
enum errc kubectl_child_start(struct kubectl_child *c, struct loop *l, const struct kubectl_run *r,
                              struct err *reterr) _must_use_;

/* The first line, without its end. Valid until kubectl_child_stop. */
struct str kubectl_child_line(const struct kubectl_child *c);

/* Whether the child has closed its standard output; then the child is ended, and the error says how
 * it ended. */
bool kubectl_child_is_gone(struct kubectl_child *c, struct err *reterr);

/*
 * Whether `line`, the first line of an answer, is an error that kubectl proxy has logged. It logs
 * an error before it answers with it, and does not log what a server answers. Always false if the
 * child is quiet.
 */
bool kubectl_child_has_logged(struct kubectl_child *c, struct str line);

/* Ends the child with SIGTERM, or with SIGKILL if that takes too long, and waits for its end. */
void kubectl_child_stop(struct kubectl_child *c);
