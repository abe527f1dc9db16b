/*
 * The command line of kubectl-cardpack: one table of commands and one of flags. Parsing, help and
 * completion all use these tables.
 */
#pragma once

#include "base/cli.h"

enum kubectl_command {
    KUBECTL_TOP,
    KUBECTL_CARDS,
    KUBECTL_PODS,
    KUBECTL_EXPLAIN,
    KUBECTL_FIT,
    KUBECTL_DOCTOR,
    KUBECTL_COMPLETION,
    KUBECTL_VERSION,
    KUBECTL_HELP,
    KUBECTL_COMPLETE, /* hidden: called by the completion scripts */
    KUBECTL_COMMANDS
};

enum kubectl_output {
    KUBECTL_TABLE,
    KUBECTL_WIDE,
    KUBECTL_JSON,
    KUBECTL_YAML,
    KUBECTL_NAME,     /* "node/n1", "pod/p" */
    KUBECTL_GPUSHARE, /* top: the table of kubectl inspect gpushare */
};

enum kubectl_sort {
    KUBECTL_SORT_NONE, /* as the answer has the rows */
    KUBECTL_SORT_NAME,
    KUBECTL_SORT_NODE,
    KUBECTL_SORT_USED,
    KUBECTL_SORT_FREE,
    KUBECTL_SORT_PODS,
    KUBECTL_SORT_MEMORY,
    KUBECTL_SORT_AGE,
    KUBECTL_SORTS
};

enum kubectl_color {
    KUBECTL_COLOR_AUTO,
    KUBECTL_COLOR_ALWAYS,
    KUBECTL_COLOR_NEVER,
};

enum kubectl_way {
    KUBECTL_ANY_WAY,     /* the daemon; without it the API server alone */
    KUBECTL_DIRECT,      /* the API server alone */
    KUBECTL_DAEMON_ONLY, /* the daemon; without it fail */
};

struct kubectl_args {
    enum kubectl_command command;
    struct str subject; /* a node, a pod, a shell or a command; absent: none */
    enum kubectl_output output;
    enum kubectl_color color;
    enum kubectl_way way;
    bool no_headers;
    bool all_namespaces;
    bool watch;
    uint64_t interval_ms; /* of watch */
    enum kubectl_sort sort;
    struct str namespace; /* this and the next: absent if not given */
    struct str server;
    struct str certificate_authority;
    struct str token_file;
    struct str daemon_url;
    struct str service_namespace; /* of --service; the default if not given */
    struct str service_name;
    struct str filename; /* "-": standard input */
    struct str selector; /* of labels; absent if not given */
    uint32_t replicas;   /* 0: not given */
    unsigned dialects;   /* a bit for each that is read; 0: not given, all are */
    uint64_t timeout_ms;
    bool timeout_given;
    const char *passed[24]; /* flags and values for kubectl, n_passed of them */
    size_t n_passed;
    char *const *rest; /* KUBECTL_COMPLETE: the words, n_rest of them */
    int n_rest;
};

extern const struct cli kubectl_cli; /* without KUBECTL_COMPLETE */

/* Also KUBECTL_COMPLETE. */
bool kubectl_verb_find(struct str name, enum kubectl_command *ret);

/* The flag of a word, and its value if the word contains it: "--output=x", "-ox", "-o=x". */
const struct cli_flag *kubectl_flag_split(struct str word, struct str *ret_value);

/* The arguments of an empty command line. */
struct kubectl_args kubectl_args_defaults(void);

/* ERR_SYNTAX or ERR_RANGE: invalid; the error names the flag and the value. */
enum errc kubectl_args_parse(int argc, char *const argv[], struct kubectl_args *ret,
                             struct err *reterr) _must_use_;

/* The help of one command; of KUBECTL_HELP: of all commands. */
void kubectl_usage(struct buf *out, enum kubectl_command c);
