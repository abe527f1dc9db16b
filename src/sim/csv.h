/* Rows of a file with comma-separated fields and a line of column names. No field of a trace needs
 * quotes, and none is accepted with them. */
#pragma once

#include "base/err.h"
#include "sim/limit.h"

struct csv {
    struct str path; /* for errors */
    struct str rest;
    unsigned long line; /* of the row read last; the first line is 1 */
    struct str heads[LIMIT_SIM_COLUMNS];
    struct str fields[LIMIT_SIM_COLUMNS]; /* of the row read last; they view the text */
    size_t n;                             /* columns */
};

/* Reads the line of column names. */
enum errc csv_open(struct csv *c, struct str path, struct str text, struct err *reterr) _must_use_;

/* The column of this name. ERR_NOTFOUND: there is none, and the error names the columns that there
 * are. */
enum errc csv_column(const struct csv *c, const char *name, size_t *ret, struct err *reterr)
    _must_use_;

/* The same; SIZE_MAX: there is none. */
size_t csv_column_if(const struct csv *c, const char *name);

/* Reads the next row; blank lines are skipped. *ret_more false: there is no more. */
enum errc csv_next(struct csv *c, bool *ret_more, struct err *reterr) _must_use_;

/* A field of the row: "FILE:LINE: COLUMN: "VALUE" ..." is the error. */
enum errc csv_u64(const struct csv *c, size_t column, uint64_t max, uint64_t *ret,
                  struct err *reterr) _must_use_;

/* Fails for a value of the row. */
enum errc csv_refuse(const struct csv *c, size_t column, const char *why, struct err *reterr);
