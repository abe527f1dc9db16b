/*
 * The command line of kubectl-cardpack: one table of commands and one of flags, from which parsing,
 * help and completion follow.
 */
#pragma once

#include "buf.h"

enum kubectl_command {
    KUBECTL_TOP,
    KUBECTL_CARDS,
    KUBECTL_EXPLAIN,
    KUBECTL_FIT,
    KUBECTL_COMPLETION,
    KUBECTL_VERSION,
    KUBECTL_HELP,
    KUBECTL_COMPLETE, /* hidden: what the shells' scripts ask */
    KUBECTL_COMMANDS
};

enum kubectl_output {
    KUBECTL_TABLE,
    KUBECTL_WIDE,
    KUBECTL_JSON,
    KUBECTL_YAML,
};

enum kubectl_color {
    KUBECTL_COLOR_AUTO,
    KUBECTL_COLOR_ALWAYS,
    KUBECTL_COLOR_NEVER,
};

enum kubectl_way {
    KUBECTL_ANY_WAY,     /* the daemon, or else the API server alone */
    KUBECTL_DIRECT,      /* the API server alone */
    KUBECTL_DAEMON_ONLY, /* or nothing */
};

struct kubectl_args {
    enum kubectl_command command;
    struct str subject; /* a node, a pod, a shell or a command; absent: none */
    enum kubectl_output output;
    enum kubectl_color color;
    enum kubectl_way way;
    bool no_headers;
    struct str namespace; /* these are absent where they are not given */
    struct str context;
    struct str kubeconfig;
    struct str server;
    struct str certificate_authority;
    struct str token_file;
    struct str daemon_url;
    struct str service_namespace; /* of --service; the defaults where it is not given */
    struct str service_name;
    struct str filename; /* "-": standard input */
    uint32_t replicas;   /* 0: not given */
    uint64_t timeout_ms;
    char *const *rest; /* KUBECTL_COMPLETE: the words, n_rest of them */
    int n_rest;
};

enum kubectl_arg {
    KUBECTL_ARG_NONE, /* a flag that is true when it is there; "=false" is taken too */
    KUBECTL_ARG_TEXT,
    KUBECTL_ARG_NAMESPACE,
    KUBECTL_ARG_FILE,
    KUBECTL_ARG_OUTPUT,
    KUBECTL_ARG_COLOR,
    KUBECTL_ARG_NUMBER,
    KUBECTL_ARG_DURATION,
};

struct kubectl_flag {
    const char *name;   /* with its dashes */
    const char *letter; /* or NULL */
    enum kubectl_arg arg;
    unsigned commands; /* a bit for each that takes it */
    const char *value; /* as help shows it; NULL for KUBECTL_ARG_NONE */
    const char *text;
    enum errc (*set)(struct kubectl_args *a, struct str value, struct err *reterr);
};

struct kubectl_verb {
    const char *name;
    const char *usage; /* behind the name */
    const char *text;
    const char *more;  /* help of the command: sentences; or NULL */
    unsigned subjects; /* at most; 0 or 1 */
};

const struct kubectl_flag *kubectl_flags(size_t *ret_n);
const struct kubectl_verb *kubectl_verb(enum kubectl_command c); /* never of KUBECTL_COMPLETE */

/* NULL where there is none of that name ("--output") or letter ("-o"). */
const struct kubectl_flag *kubectl_flag_find(struct str name);
bool kubectl_verb_find(struct str name, enum kubectl_command *ret);

/* The flag of a word, and its value where that is in the same word: "--output=x", "-ox", "-o=x". */
const struct kubectl_flag *kubectl_flag_split(struct str word, struct str *ret_value);

/* Of a command line that says nothing. */
struct kubectl_args kubectl_args_defaults(void);

/* ERR_SYNTAX or ERR_RANGE: it can't be meant; the error names the flag and the value. */
enum errc kubectl_args_parse(int argc, char *const argv[], struct kubectl_args *ret,
                             struct err *reterr) _must_use_;

/* Of all, or of one command. */
void kubectl_usage(struct buf *out, enum kubectl_command c);
