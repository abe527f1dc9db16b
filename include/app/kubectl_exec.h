/*
 * Runs another program and takes what it prints: the one place of all that starts a process. It is
 * part of kubectl-cardpack and of no other program; tests/house/symbols.py sees to that.
 */
#pragma once

#include "arena.h"
#include "buf.h"

struct kubectl_program {
    struct str command; /* with a slash it is a file; else it is looked for in path */
    const struct str *args;
    size_t n_args;
    const struct str *names; /* n_env variables beside those of `environment`, or in their place */
    const struct str *values;
    size_t n_env;
    char *const *environment; /* NULL at its end */
    struct str path;          /* as PATH; folders in it that are not absolute are left out */
    bool input;               /* it gets our standard input; else there is none */
    bool quiet;          /* what it says on standard error goes nowhere, else where ours goes */
    uint64_t timeout_ms; /* then it is ended */
};

/*
 * What it prints is appended to out, up to out's ceiling. OK: it ended with 0. ERR_NOTFOUND: there
 * is no such program. The error does not name it and holds nothing of what it printed.
 */
enum errc kubectl_exec(const struct kubectl_program *p, struct arena *a, struct buf *out,
                       struct err *reterr) _must_use_;
