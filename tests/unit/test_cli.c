/* Tables of flags and commands: the values that a row takes, its errors, and the help. */
#include "base/cli.h"

#include "unit.h"

struct args {
    struct str name;
    unsigned word;
    uint32_t number;
    bool loud;
};

static const struct cli_verb verbs[] = {
    {"run", "FILE", "run it", "More of it.", 1},
    {"stop", "", "stop it", NULL, 0},
};

static const struct cli_flag flags[] = {
    {"--name", "-n", 1, "NAME", "its name", CLI_TEXT(struct args, name)},
    {"--word", NULL, 3, "WORD", "one of them", CLI_WORD(struct args, word, "a|b|c")},
    {"--number", NULL, 2, "N", "how many", CLI_NUMBER(struct args, number, 2, 9)},
    {"--loud", NULL, 2, NULL, "say so", CLI_BOOL(struct args, loud)},
    {"--help", "-h", ~0U, NULL, "print this text", .set = NULL},
};

static const struct cli cli = {"it", verbs, COUNT_OF(verbs), flags, COUNT_OF(flags), 12};

static const struct {
    const char *flag;
    const char *value; /* NULL: none */
    const char *says;  /* NULL: it is taken */
} values[] = {
    {"--name", "x", NULL},
    {"-n", "x", NULL},
    {"--name", "", "--name: \"\" must be not empty"},
    {"--word", "c", NULL},
    {"--word", "d", "--word: \"d\" must be a, b or c"},
    {"--number", "9", NULL},
    {"--number", "1", "--number: \"1\" must be a number from 2 to 9"},
    {"--number", "10", "--number: \"10\" must be a number from 2 to 9"},
    {"--loud", NULL, NULL},
    {"--loud", "false", NULL},
    {"--loud", "no", "--loud: \"no\" must be false or true"},
    {"-h", NULL, NULL},
};

TEST_EACH(a_value, COUNT_OF(values))
{
    struct err e = ERR_INIT;
    struct args a = {.name = STR_NULL};
    const struct cli_flag *f = cli_find_flag(&cli, str_of(values[_i].flag));
    ck_assert_ptr_nonnull(f);
    enum errc code = cli_set(f, &a, str_of(values[_i].value), &e);
    if (values[_i].says != NULL) {
        ck_assert_int_eq(code, ERR_RANGE);
        ck_assert_str_eq(e.text, values[_i].says);
        return;
    }
    ck_assert_ok(code, &e);
    ck_assert(str_eq(a.name, f == &flags[0] ? STR("x") : STR("")));
    ck_assert_uint_eq(a.word, f == &flags[1] ? 2 : 0);
    ck_assert_uint_eq(a.number, f == &flags[2] ? 9 : 0);
    ck_assert(a.loud == (f == &flags[3] && values[_i].value == NULL));
}

TEST(by_name)
{
    unsigned verb = 7;
    ck_assert(cli_find_flag(&cli, STR("--nam")) == NULL);
    ck_assert(cli_find_flag(&cli, STR("-n")) == &flags[0]);
    ck_assert(!cli_find_verb(&cli, STR("sto"), &verb) && verb == 7);
    ck_assert(cli_find_verb(&cli, STR("stop"), &verb) && verb == 1);
}

TEST(help)
{
    char bytes[512];
    struct buf out = BUF_ON(bytes);
    cli_put_verb(&cli, 0, &out);
    ck_assert_str_is(buf_str(&out), "it run FILE\nrun it.\nMore of it.\n\nFlags:\n"
                                    "  -n, --name NAME its name\n"
                                    "  --word WORD  one of them\n"
                                    "  -h, --help   print this text\n");
    buf_clear(&out, sizeof(bytes));
    cli_put_verb(&cli, 1, &out);
    ck_assert_str_is(buf_str(&out), "it stop\nstop it.\n\nFlags:\n"
                                    "  --word WORD  one of them\n"
                                    "  --number N   how many\n"
                                    "  --loud       say so\n"
                                    "  -h, --help   print this text\n");
}
