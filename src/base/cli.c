/* Values and help of the flags and commands in a program's tables. */
#include "base/cli.h"

#include "base/value.h"

enum errc cli_must_be(struct err *e, struct str value, const char *what)
{
    return err_set(e, ERR_RANGE, "\"%.*s\" must be %s", STR_ARG(value), what);
}

enum errc cli_read_word(struct str value, const char *words, unsigned *ret, struct err *reterr)
{
    char bytes[128];
    struct buf all = BUF_ON(bytes);
    if (value_read_word(value, words, ret))
        return OK;
    value_put_words(&all, words);
    return cli_must_be(reterr, value, buf_cstr(&all));
}

enum errc cli_read_bool(struct str value, bool *ret, struct err *reterr)
{
    unsigned i = 0;
    enum errc code = cli_read_word(value, "false|true", &i, reterr);
    *ret = i == 1;
    return code;
}

static void *cli_field(const struct cli_flag *f, void *args)
{
    return (char *)args + f->field;
}

enum errc cli_set_text(const struct cli_flag *f, void *args, struct str value, struct err *reterr)
{
    if (value.n == 0)
        return cli_must_be(reterr, value, "not empty");
    *(struct str *)cli_field(f, args) = value;
    return OK;
}

enum errc cli_set_bool(const struct cli_flag *f, void *args, struct str value, struct err *reterr)
{
    return cli_read_bool(value, cli_field(f, args), reterr);
}

enum errc cli_set_word(const struct cli_flag *f, void *args, struct str value, struct err *reterr)
{
    return cli_read_word(value, f->words, cli_field(f, args), reterr);
}

enum errc cli_set_number(const struct cli_flag *f, void *args, struct str value, struct err *reterr)
{
    uint64_t n = 0;
    if (!str_to_u64(value, f->max, &n) || n < f->min)
        return err_set(reterr, ERR_RANGE, "\"%.*s\" must be a number from %u to %u", STR_ARG(value),
                       f->min, f->max);
    *(uint32_t *)cli_field(f, args) = (uint32_t)n;
    return OK;
}

enum errc cli_set(const struct cli_flag *f, void *args, struct str value, struct err *reterr)
{
    if (value.p == NULL && f->value == NULL)
        value = STR("true");
    return f->set == NULL || f->set(f, args, value, reterr) == OK ? OK
                                                                  : err_wrap(reterr, "%s", f->name);
}

const struct cli_flag *cli_find_flag(const struct cli *c, struct str name)
{
    for (size_t i = 0; i < c->n_flags; i++) {
        const struct cli_flag *f = &c->flags[i];
        if (str_eq(name, str_of(f->name)) || (f->letter != NULL && str_eq(name, str_of(f->letter))))
            return f;
    }
    return NULL;
}

bool cli_find_verb(const struct cli *c, struct str name, unsigned *ret)
{
    for (size_t i = 0; i < c->n_verbs; i++) {
        if (str_eq(name, str_of(c->verbs[i].name))) {
            *ret = (unsigned)i;
            return true;
        }
    }
    return false;
}

void cli_put_flags(const struct cli *c, unsigned commands, struct buf *out)
{
    buf_put(out, STR("\nFlags:\n"));
    for (const struct cli_flag *f = c->flags; f < c->flags + c->n_flags; f++) {
        char name[64];
        struct buf b = BUF_ON(name);
        if ((f->commands & commands) == 0)
            continue;
        if (f->letter != NULL)
            buf_printf(&b, "%s, ", f->letter);
        buf_printf(&b, "%s%s%s", f->name, f->value == NULL ? "" : " ",
                   f->value == NULL ? "" : f->value);
        buf_printf(out, "  %-*.*s %s\n", c->width, (int)b.n, b.p, f->text);
    }
}

void cli_put_verb(const struct cli *c, unsigned verb, struct buf *out)
{
    const struct cli_verb *v = &c->verbs[verb];
    buf_printf(out, "%s %s%s%s\n%s.\n", c->program, v->name, v->usage[0] == '\0' ? "" : " ",
               v->usage, v->text);
    if (v->more != NULL)
        buf_printf(out, "%s\n", v->more);
    cli_put_flags(c, 1U << verb, out);
}
