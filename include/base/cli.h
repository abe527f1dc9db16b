/*
 * The command line of a program: a table of the flags, and one of the commands if it has them, as
 * "cardpack-sim replay --seeds 3" does; for parsing, help and completion. Which words are flags,
 * and which flags go together, is up to the program.
 */
#pragma once

#include "base/buf.h"

struct cli_flag;

/* Reads a value into args, the program's struct. ERR_RANGE or ERR_LIMIT: "\"x\" must be ...". */
typedef enum errc cli_setter(const struct cli_flag *f, void *args, struct str value,
                             struct err *reterr);

struct cli_flag {
    const char *name;   /* with its dashes */
    const char *letter; /* or NULL */
    unsigned commands;  /* bit set: the commands that accept the flag */
    const char *value;  /* as help shows it; NULL: a boolean flag */
    const char *text;
    cli_setter *set;   /* NULL: --help, which sets nothing */
    size_t field;      /* in args; the next ones: for the setters below */
    const char *words; /* "table|json|csv"; for another setter: what its error asks for */
    uint32_t min;
    uint32_t max;
    /* For a program that reads all its settings so, and not only flags: */
    const char *initial;  /* the value that it has by default; NULL: it is required */
    const char *variable; /* of the environment; NULL: none */
};

/* What a row has after its text. The type of the field is checked. */
#define CLI_TEXT(args, member) \
    .set = cli_set_text, .field = FIELD_OF(args, member, struct str) /* not empty */
#define CLI_BOOL(args, member) .set = cli_set_bool, .field = FIELD_OF(args, member, bool)
#define CLI_WORD(args, member, list) \
    .set = cli_set_word, .field = FIELD_OF(args, member, unsigned), .words = (list) /* an enum */
#define CLI_NUMBER(args, member, least, most) \
    .set = cli_set_number, .field = FIELD_OF(args, member, uint32_t), .min = (least), .max = (most)

cli_setter cli_set_text;
cli_setter cli_set_bool;
cli_setter cli_set_word;
cli_setter cli_set_number;

struct cli_verb {
    const char *name;
    const char *usage; /* the arguments after the name */
    const char *text;
    const char *more;  /* more sentences for the command's help; or NULL */
    unsigned subjects; /* the most that it accepts: 0 or 1 */
};

struct cli {
    const char *program; /* as the user calls it */
    const struct cli_verb *verbs;
    size_t n_verbs;
    const struct cli_flag *flags;
    size_t n_flags;
    int width; /* of a flag with its value, in the help */
};

/* By name ("--output") or letter ("-o"); NULL: no such flag. */
const struct cli_flag *cli_find_flag(const struct cli *c, struct str name);

/* The index of a command. */
bool cli_find_verb(const struct cli *c, struct str name, unsigned *ret);

/* Calls the setter. The error names the flag. A boolean flag without a value has "true". */
enum errc cli_set(const struct cli_flag *f, void *args, struct str value, struct err *reterr);

/* For setters. ERR_RANGE: "\"x\" must be a, b or c". */
enum errc cli_must_be(struct err *e, struct str value, const char *what);
enum errc cli_read_bool(struct str value, bool *ret, struct err *reterr) _must_use_;
enum errc cli_read_word(struct str value, const char *words, unsigned *ret, struct err *reterr)
    _must_use_;

/* Those that one of the commands accepts, as a part of the help. */
void cli_put_flags(const struct cli *c, unsigned commands, struct buf *out);

/* The help of one command. */
void cli_put_verb(const struct cli *c, unsigned verb, struct buf *out);
