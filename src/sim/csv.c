/* Reads comma-separated fields. */
#include "sim/csv.h"

#include "base/buf.h"

/* As many bytes of a value as an error shows. */
#define SHOWN ((size_t)64)

static enum errc csv_split(struct csv *c, struct str line, struct str *fields, size_t *ret_n,
                           struct err *reterr)
{
    struct str rest = line;
    size_t n = 0;
    while (rest.p != NULL) {
        struct str field;
        (void)str_cut(rest, ',', &field, &rest);
        if (n == LIMIT_SIM_COLUMNS)
            return err_set(reterr, ERR_LIMIT, "%.*s:%lu: more than %zu fields", STR_ARG(c->path),
                           c->line, LIMIT_SIM_COLUMNS);
        fields[n] = str_trim(field);
        if (str_starts(fields[n], STR("\"")))
            return err_set(reterr, ERR_SYNTAX, "%.*s:%lu: field %zu: quotes are not read",
                           STR_ARG(c->path), c->line, n + 1);
        n++;
    }
    *ret_n = n;
    return OK;
}

/* The next line that is not blank; false at the end. */
static bool csv_line(struct csv *c, struct str *ret)
{
    while (c->rest.n > 0) {
        struct str line;
        (void)str_cut(c->rest, '\n', &line, &c->rest);
        c->line++;
        if (str_trim(line).n > 0) {
            *ret = line;
            return true;
        }
    }
    return false;
}

enum errc csv_open(struct csv *c, struct str path, struct str text, struct err *reterr)
{
    struct str line;
    *c = (struct csv){.path = path, .rest = text};
    if (str_starts(text, STR("\xef\xbb\xbf")))
        c->rest = str_skip(text, 3);
    if (!csv_line(c, &line))
        return err_set(reterr, ERR_SYNTAX, "%.*s: it is empty", STR_ARG(path));
    return csv_split(c, line, c->heads, &c->n, reterr);
}

size_t csv_column_if(const struct csv *c, const char *name)
{
    for (size_t i = 0; i < c->n; i++) {
        if (str_eq(c->heads[i], str_of(name)))
            return i;
    }
    return SIZE_MAX;
}

enum errc csv_column(const struct csv *c, const char *name, size_t *ret, struct err *reterr)
{
    char names[128];
    struct buf b = BUF_ON(names);
    *ret = csv_column_if(c, name);
    if (*ret != SIZE_MAX)
        return OK;
    for (size_t i = 0; i < c->n; i++)
        buf_printf(&b, "%s%.*s", i == 0 ? "" : ",", (int)MIN_OF(c->heads[i].n, SHOWN),
                   c->heads[i].p);
    return err_set(reterr, ERR_NOTFOUND, "%.*s:%lu: no column %s among %.*s", STR_ARG(c->path),
                   c->line, name, STR_ARG(buf_str(&b)));
}

enum errc csv_next(struct csv *c, bool *ret_more, struct err *reterr)
{
    struct str line;
    size_t n = 0;
    *ret_more = csv_line(c, &line);
    if (!*ret_more)
        return OK;
    enum errc code = csv_split(c, line, c->fields, &n, reterr);
    if (code == OK && n != c->n)
        return err_set(reterr, ERR_SYNTAX, "%.*s:%lu: %zu fields where the first line names %zu",
                       STR_ARG(c->path), c->line, n, c->n);
    return code;
}

enum errc csv_refuse(const struct csv *c, size_t column, const char *why, struct err *reterr)
{
    struct str value = str_head(c->fields[column], SHOWN);
    return err_set(reterr, ERR_RANGE, "%.*s:%lu: %.*s: \"%.*s\" %s", STR_ARG(c->path), c->line,
                   STR_ARG(c->heads[column]), STR_ARG(value), why);
}

enum errc csv_u64(const struct csv *c, size_t column, uint64_t max, uint64_t *ret,
                  struct err *reterr)
{
    char why[64];
    struct buf b = BUF_ON(why);
    if (str_to_u64(c->fields[column], max, ret))
        return OK;
    buf_printf(&b, "is not a whole number from 0 to %llu", (unsigned long long)max);
    return csv_refuse(c, column, buf_cstr(&b), reterr);
}
