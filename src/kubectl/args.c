/*
 * Parses the command line. Flags may come before or after the command, as "--flag value",
 * "--flag=value", "-f value" and "-fvalue"; after "--" no word is a flag. A flag that the command
 * does not accept is an error, because the user expects it to have an effect.
 */
#include "kubectl/args.h"

#include "kubectl/order.h"

#define TIMEOUT_MS  30000
#define INTERVAL_MS 2000

struct parser {
    int argc;
    char *const *argv;
    int at;
    struct kubectl_args *args;
    const struct cli_flag *seen[64]; /* in their order, to check them against the command */
    size_t n_seen;
    bool has_command;
    bool help;
    bool only_words; /* after "--" */
};

const struct cli_flag *kubectl_flag_split(struct str word, struct str *ret_value)
{
    struct str name = word;
    *ret_value = STR_NULL;
    if (str_starts(word, STR("--"))) {
        (void)str_cut(word, '=', &name, ret_value);
        return cli_find_flag(&kubectl_cli, name);
    }
    name = str_head(word, 2);
    if (word.n > 2) {
        *ret_value = str_skip(word, 2);
        *ret_value = str_starts(*ret_value, STR("=")) ? str_skip(*ret_value, 1) : *ret_value;
    }
    return cli_find_flag(&kubectl_cli, name);
}

static enum errc args_read_flag(struct parser *p, struct str word, struct err *e)
{
    struct str value;
    const struct cli_flag *f = kubectl_flag_split(word, &value);
    if (f == NULL || p->n_seen == COUNT_OF(p->seen))
        return err_set(e, ERR_SYNTAX, "%s flag \"%.*s\"; see kubectl cardpack help",
                       f == NULL ? "unknown" : "too many flags:", STR_ARG(word));
    p->seen[p->n_seen++] = f;
    p->help = p->help || f->set == NULL;
    if (value.p == NULL && f->value != NULL && p->at == p->argc)
        return err_set(e, ERR_SYNTAX, "%s needs a value: %s", f->name, f->value);
    if (value.p == NULL && f->value != NULL)
        value = str_of(p->argv[p->at++]);
    return cli_set(f, p->args, value, e);
}

static enum errc args_read_command(struct parser *p, struct str word, struct err *e)
{
    if (!kubectl_verb_find(word, &p->args->command))
        return err_set(e, ERR_SYNTAX, "unknown command \"%.*s\"; see kubectl cardpack help",
                       STR_ARG(word));
    p->has_command = true;
    if (p->args->command != KUBECTL_COMPLETE)
        return OK;
    p->args->rest = p->argv + p->at;
    p->args->n_rest = p->argc - p->at;
    p->at = p->argc;
    return OK;
}

static enum errc args_read_word(struct parser *p, struct str word, struct err *e)
{
    bool flag = word.n > 1 && word.p[0] == '-' && !p->only_words;
    if (flag && str_eq(word, STR("--"))) {
        p->only_words = true;
        return OK;
    }
    if (flag)
        return args_read_flag(p, word, e);
    if (!p->has_command)
        return args_read_command(p, word, e);
    const struct cli_verb *v = &kubectl_cli.verbs[p->args->command];
    if (p->args->subject.p != NULL || v->subjects == 0)
        return err_set(e, ERR_SYNTAX, "%s: \"%.*s\" is one word too many; it is: %s%s%s", v->name,
                       STR_ARG(word), v->name, v->usage[0] == '\0' ? "" : " ", v->usage);
    if (word.n == 0)
        return err_set(e, ERR_SYNTAX, "%s: a name is empty", v->name);
    p->args->subject = word;
    return OK;
}

/* Whether a flag of the other commands says how to reach the daemon. */
static bool args_is_way_to_daemon(const char *flag)
{
    return strcmp(flag, "--daemon-url") == 0 || strcmp(flag, "--service") == 0 ||
           strcmp(flag, "--direct") == 0;
}

static enum errc args_check_flags(const struct parser *p, struct err *e)
{
    const char *name = kubectl_cli.verbs[p->args->command].name;
    for (size_t i = 0; i < p->n_seen; i++) {
        const char *flag = p->seen[i]->name;
        bool direct_only = p->args->command == KUBECTL_PODS && args_is_way_to_daemon(flag);
        if ((p->seen[i]->commands >> p->args->command & 1) == 0)
            return err_set(e, ERR_SYNTAX, "%s takes no %s%s", name, flag,
                           direct_only ? ": it always reads the API server, never the daemon" : "");
    }
    return OK;
}

static enum errc args_check_ways(const struct kubectl_args *a, struct err *e)
{
    bool own = a->server.n > 0 || a->daemon_url.n > 0;
    if (a->server.n > 0 && a->daemon_url.n > 0 && a->command != KUBECTL_DOCTOR)
        return err_set(e, ERR_SYNTAX, "--server and --daemon-url exclude each other");
    if (own && a->n_passed > 0 && !(a->command == KUBECTL_DOCTOR && a->server.n == 0))
        return err_set(e, ERR_SYNTAX, "%s and %s exclude each other",
                       a->server.n > 0 ? "--server" : "--daemon-url", a->passed[0]);
    if (!own && (a->token_file.n > 0 || a->certificate_authority.n > 0))
        return err_set(e, ERR_SYNTAX, "%s needs --server or --daemon-url",
                       a->token_file.n > 0 ? "--token-file" : "--certificate-authority");
    if (a->daemon_url.n > 0 && a->way == KUBECTL_DIRECT)
        return err_set(e, ERR_SYNTAX, "--daemon-url and --direct exclude each other");
    return OK;
}

static enum errc args_check_output(const struct kubectl_args *a, struct err *e)
{
    const char *name = kubectl_cli.verbs[a->command].name;
    bool has_names =
        a->command == KUBECTL_TOP || a->command == KUBECTL_PODS || a->command == KUBECTL_EXPLAIN;
    if (a->output == KUBECTL_GPUSHARE && a->command != KUBECTL_TOP)
        return err_set(e, ERR_SYNTAX, "%s: --output: \"gpushare\" is for top only", name);
    if (a->output == KUBECTL_NAME && !has_names)
        return err_set(e, ERR_SYNTAX, "%s: --output: \"name\" is for top, pods and explain", name);
    if (a->command == KUBECTL_VERSION && a->output == KUBECTL_WIDE)
        return err_set(e, ERR_SYNTAX, "version: --output: \"wide\" must be table, json or yaml");
    if (!order_has(a->command, a->sort))
        return err_set(e, ERR_SYNTAX, "%s is not sorted by %s", name, order_name(a->sort));
    return OK;
}

/* "pod/train" is the pod train, as kubectl prints and reads it; a card's node likewise. */
static enum errc args_cut_kind(struct kubectl_args *a, struct err *e)
{
    static const char *const kinds[][3] = {{"node", "nodes", "no"}, {"pod", "pods", "po"}};
    bool is_pod = a->command == KUBECTL_EXPLAIN;
    struct str kind;
    struct str name;
    if ((!is_pod && a->command != KUBECTL_CARDS) || !str_cut(a->subject, '/', &kind, &name))
        return OK;
    for (size_t i = 0; i < COUNT_OF(kinds[is_pod]); i++) {
        if (name.n > 0 && str_eq(kind, str_of(kinds[is_pod][i]))) {
            a->subject = name;
            return OK;
        }
    }
    return err_set(e, ERR_SYNTAX, "%s: \"%.*s\" must be NAME or %s/NAME",
                   kubectl_cli.verbs[a->command].name, STR_ARG(a->subject), kinds[is_pod][0]);
}

static enum errc args_check_subject(const struct kubectl_args *a, struct err *e)
{
    bool file = a->filename.n > 0;
    if (a->command == KUBECTL_EXPLAIN && file == (a->subject.n > 0))
        return err_set(e, ERR_SYNTAX, "explain: name a pod, or a file with -f%s",
                       file ? ", and not both" : "");
    if (a->command == KUBECTL_FIT && !file)
        return err_set(e, ERR_SYNTAX, "fit: name the pod's file with -f");
    if (a->command == KUBECTL_COMPLETION && a->subject.n == 0)
        return err_set(e, ERR_SYNTAX, "completion: which shell? bash, zsh or fish");
    return OK;
}

static enum errc args_check(struct parser *p, struct err *e)
{
    struct kubectl_args *a = p->args;
    enum errc code = args_check_flags(p, e);
    if (code == OK)
        code = args_check_ways(a, e);
    if (code == OK)
        code = args_check_output(a, e);
    if (code == OK)
        code = args_check_subject(a, e);
    return code == OK ? args_cut_kind(a, e) : code;
}

static enum errc args_choose_help(struct kubectl_args *a, struct str topic, struct err *e)
{
    enum kubectl_command c = KUBECTL_HELP;
    a->command = KUBECTL_HELP;
    a->subject = topic;
    if (topic.n > 0 && (!kubectl_verb_find(topic, &c) || c == KUBECTL_COMPLETE))
        return err_set(e, ERR_SYNTAX, "help: there is no command \"%.*s\"", STR_ARG(topic));
    return OK;
}

struct kubectl_args kubectl_args_defaults(void)
{
    return (struct kubectl_args){.timeout_ms = TIMEOUT_MS,
                                 .interval_ms = INTERVAL_MS,
                                 .service_namespace = STR("kube-system"),
                                 .service_name = STR("cardpack")};
}

enum errc kubectl_args_parse(int argc, char *const argv[], struct kubectl_args *ret,
                             struct err *reterr)
{
    struct kubectl_args a = kubectl_args_defaults();
    struct parser p = {.argc = argc, .argv = argv, .at = 1, .args = &a};
    enum errc code = OK;
    while (code == OK && p.at < argc) {
        struct str word = str_of(argv[p.at++]);
        code = args_read_word(&p, word, reterr);
    }
    if (code != OK)
        return code;
    if (p.help || !p.has_command)
        code = args_choose_help(
            &a, p.has_command ? str_of(kubectl_cli.verbs[a.command].name) : STR_NULL, reterr);
    else if (a.command == KUBECTL_HELP)
        code = args_choose_help(&a, a.subject, reterr);
    else if (a.command != KUBECTL_COMPLETE)
        code = args_check(&p, reterr);
    if (code == OK)
        *ret = a;
    return code;
}
