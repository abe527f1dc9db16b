/*
 * Child processes instead of threads: the cache has no lock, a job that crashes says which one it
 * is, and the trace that was read once is shared until a child writes to it.
 */
#include "sim/jobs.h"

#include "base/mem.h"
#include "sim/limit.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* A result: some figures for each percent of arrivals. */
#define RESULT_BYTES (4 * MIB)

struct job {
    pid_t pid; /* 0: not started, or ended */
    int fd;    /* reads the result; -1: none */
    bool done;
    struct buf bytes;
};

struct crew {
    const struct jobs *jobs;
    struct job *all;
    uint32_t started;
    uint32_t running;
    uint32_t taken; /* all before it are taken */
};

uint32_t jobs_width(uint32_t wanted)
{
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    if (wanted > 0)
        return wanted;
    return n < 1 ? 1 : (uint32_t)MIN_OF(n, (long)LIMIT_SIM_JOBS);
}

static bool jobs_send(int fd, struct str bytes)
{
    while (bytes.n > 0) {
        ssize_t n = write(fd, bytes.p, bytes.n);
        if (n < 0 && errno != EINTR)
            return false;
        bytes = str_skip(bytes, n < 0 ? 0 : (size_t)n);
    }
    return true;
}

/* A child ends with this process, and without running its exit handlers. */
static _Noreturn void jobs_work(const struct jobs *j, uint32_t job, int fd)
{
    struct err e = ERR_INIT;
    struct buf result;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    buf_init(&result, RESULT_BYTES);
    enum errc code = j->run(j->ctx, job, &result, &e);
    if (code == OK && buf_failed(&result))
        code = err_set(&e, buf_fault(&result), "the result is too large");
    bool sent = jobs_send(fd, code == OK ? buf_str(&result) : str_of(e.text));
    _exit(code == OK && sent ? EXIT_SUCCESS : EXIT_FAILURE);
}

static enum errc jobs_start(struct crew *c, struct err *e)
{
    uint32_t job = c->started;
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return err_set(e, ERR_UNAVAILABLE, "a pipe can't be opened: %s", strerror(errno));
    pid_t pid = fork();
    if (pid == 0) {
        (void)close(ends[0]);
        jobs_work(c->jobs, job, ends[1]);
    }
    (void)close(ends[1]);
    if (pid < 0) {
        (void)close(ends[0]);
        return err_set(e, ERR_UNAVAILABLE, "a process can't be started: %s", strerror(errno));
    }
    c->all[job].pid = pid;
    c->all[job].fd = ends[0];
    buf_init(&c->all[job].bytes, RESULT_BYTES);
    c->started++;
    c->running++;
    return OK;
}

static enum errc jobs_fail(const struct crew *c, uint32_t job, const char *why, struct err *e)
{
    char text[256];
    struct buf b = BUF_ON(text);
    c->jobs->name(c->jobs->ctx, job, &b);
    return err_set(e, ERR_INTERNAL, "%.*s: %s", STR_ARG(buf_str(&b)), why);
}

/* The child has closed its end. */
static enum errc jobs_end(struct crew *c, uint32_t job, struct err *e)
{
    struct job *it = &c->all[job];
    char why[64];
    int status = 0;
    while (waitpid(it->pid, &status, 0) < 0 && errno == EINTR)
        continue;
    (void)close(it->fd);
    it->pid = 0;
    it->fd = -1;
    it->done = true;
    c->running--;
    if (WIFSIGNALED(status)) {
        (void)snprintf(why, sizeof(why), "its process was ended by signal %d", WTERMSIG(status));
        return jobs_fail(c, job, why, e);
    }
    if (buf_failed(&it->bytes))
        return jobs_fail(c, job, "its result can't be kept", e);
    if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS)
        return OK;
    const char *text = buf_cstr(&it->bytes);
    return jobs_fail(c, job, text == NULL || text[0] == '\0' ? "its process has failed" : text, e);
}

static enum errc jobs_read(struct crew *c, uint32_t job, struct err *e)
{
    char bytes[16384];
    ssize_t n = read(c->all[job].fd, bytes, sizeof(bytes));
    if (n < 0 && errno == EINTR)
        return OK;
    if (n > 0) {
        buf_put(&c->all[job].bytes, (struct str){bytes, (size_t)n});
        return OK;
    }
    return jobs_end(c, job, e);
}

/* Waits for bytes of any child, and reads them. */
static enum errc jobs_wait(struct crew *c, struct err *e)
{
    struct pollfd fds[LIMIT_SIM_JOBS];
    uint32_t of[LIMIT_SIM_JOBS];
    nfds_t n = 0;
    enum errc code = OK;
    for (uint32_t i = c->taken; i < c->started; i++) {
        if (c->all[i].pid == 0)
            continue;
        of[n] = i;
        fds[n++] = (struct pollfd){.fd = c->all[i].fd, .events = POLLIN};
    }
    assert(n > 0);
    if (poll(fds, n, -1) < 0)
        return errno == EINTR ? OK : err_set(e, ERR_INTERNAL, "poll: %s", strerror(errno));
    for (nfds_t i = 0; i < n && code == OK; i++) {
        if (fds[i].revents != 0)
            code = jobs_read(c, of[i], e);
    }
    return code;
}

/* Takes the results up to the first job that still runs. */
static enum errc jobs_take(struct crew *c, struct err *e)
{
    enum errc code = OK;
    while (code == OK && c->taken < c->jobs->n && c->all[c->taken].done) {
        struct job *it = &c->all[c->taken];
        code = c->jobs->take(c->jobs->ctx, c->taken, buf_str(&it->bytes), e);
        buf_done(&it->bytes);
        c->taken++;
    }
    return code;
}

static void jobs_tell(const struct crew *c, bool ended)
{
    if (!c->jobs->progress)
        return;
    (void)fprintf(stderr, "\r\033[K");
    if (!ended)
        (void)fprintf(stderr, "%u of %u runs done", c->started - c->running, c->jobs->n);
    (void)fflush(stderr);
}

static enum errc jobs_turn(struct crew *c, struct err *e)
{
    enum errc code = OK;
    while (code == OK && c->running < c->jobs->width && c->started < c->jobs->n)
        code = jobs_start(c, e);
    if (code == OK)
        code = jobs_wait(c, e);
    return code == OK ? jobs_take(c, e) : code;
}

static void jobs_clear(struct crew *c)
{
    for (uint32_t i = 0; i < c->started; i++) {
        struct job *it = &c->all[i];
        if (it->pid != 0) {
            (void)kill(it->pid, SIGKILL);
            while (waitpid(it->pid, NULL, 0) < 0 && errno == EINTR)
                continue;
            (void)close(it->fd);
        }
        buf_done(&it->bytes);
    }
    mem_free(c->all);
}

enum errc jobs_run(const struct jobs *j, struct err *reterr)
{
    struct crew c = {.jobs = j};
    enum errc code = OK;
    assert(j->n > 0 && j->width > 0 && j->width <= LIMIT_SIM_JOBS);
    c.all = mem_alloc(j->n * sizeof(*c.all));
    if (c.all == NULL)
        return err_set(reterr, ERR_NOMEM, "out of memory");
    while (code == OK && c.taken < j->n) {
        jobs_tell(&c, false);
        code = jobs_turn(&c, reterr);
    }
    jobs_tell(&c, true);
    jobs_clear(&c);
    return code;
}
