/*
 * Runs many jobs, each in a child process, some at a time. A job's result is the bytes that it
 * writes into its buf. Results are taken in the order of jobs, so the output does not depend on how
 * many run at a time or which ends first.
 */
#pragma once

#include "base/buf.h"

struct jobs {
    uint32_t n;
    uint32_t width; /* processes at a time */
    void *ctx;
    /* In the child. */
    enum errc (*run)(void *ctx, uint32_t job, struct buf *ret, struct err *reterr);
    /* In this process; the bytes are valid during the call. */
    enum errc (*take)(void *ctx, uint32_t job, struct str result, struct err *reterr);
    /* For errors: "default, binpack, seed 3". */
    void (*name)(void *ctx, uint32_t job, struct buf *ret);
    bool progress; /* a line on standard error says how many are done */
};

/* Processes at a time: `wanted`, or if that is 0 one for each processor. */
uint32_t jobs_width(uint32_t wanted);

/* Stops at the first job that fails. A child that a signal ends is an error, too. */
enum errc jobs_run(const struct jobs *j, struct err *reterr) _must_use_;
