/*
 * Runs another program and reads its output. This is the only code that starts a process. It is
 * part of kubectl-cardpack only; tests/house/symbols.py checks that.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"

struct kubectl_program {
    struct str command; /* with a slash: a file; otherwise searched in path */
    const struct str *args;
    size_t n_args;
    const struct str *names; /* n_env variables, which add to or replace those of `environment` */
    const struct str *values;
    size_t n_env;
    char *const *environment; /* ends with NULL */
    struct str path;          /* as PATH; relative folders in it are ignored */
    bool input;               /* it inherits standard input; otherwise it reads /dev/null */
    bool quiet;               /* its standard error goes to /dev/null; otherwise it is inherited */
    uint64_t timeout_ms;      /* after this time the program is ended */
};

/*
 * Appends the program's output to out, up to out's limit. OK: its exit status is 0. ERR_NOTFOUND:
 * there is no such program. The error text does not name the program and contains none of its
 * output.
 */
enum errc kubectl_exec(const struct kubectl_program *p, struct arena *a, struct buf *out,
                       struct err *reterr) _must_use_;
