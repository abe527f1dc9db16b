/*
 * Parses the command line. Flags may come before or after the command, as "--flag value",
 * "--flag=value" or "-f value". A flag that the command does not accept is an error, because the
 * user expects it to have an effect.
 */
#include "sim/args.h"

#include "base/near.h"

#define BIT(c)  (1U << (c))
#define RUNS    (BIT(SIM_REPLAY) | BIT(SIM_CHURN))
#define PLACES  (RUNS | BIT(SIM_FIT) | BIT(SIM_GROW))
#define CLUSTER (BIT(SIM_REPLAY) | BIT(SIM_FIT) | BIT(SIM_GROW))

#define SEEDS_DEFAULT 10

struct sim_flag {
    const char *name;   /* with its dashes */
    const char *letter; /* or NULL */
    unsigned commands;  /* bit set: the commands that accept the flag */
    const char *value;  /* as help shows it; NULL: the flag has none */
    const char *text;
    enum errc (*set)(struct sim_args *a, struct str value, struct err *reterr);
    const char *words; /* what completion offers; NULL: files for a FILE, else nothing */
};

struct sim_verb {
    const char *name;
    const char *usage;
    const char *text;
};

static const struct sim_verb verbs[SIM_COMMANDS] = {
    [SIM_REPLAY] = {"replay", "--nodes FILE --pods FILE ... | --cluster FILE",
                    "let pods arrive one after another on empty nodes, under each policy"},
    [SIM_CHURN] = {"churn", "--nodes FILE --pods FILE ...",
                   "let pods come and go at a constant load, under each policy"},
    [SIM_FIT] = {"fit", "--cluster FILE | --nodes FILE, -f POD",
                 "how many of a pod fit, and what stops the next one"},
    [SIM_GROW] = {"grow", "--cluster FILE --add NODE",
                  "how many nodes to add until the pending pods run"},
    [SIM_COMPLETION] = {"completion", "bash", "print a script for the shell"},
    [SIM_VERSION] = {"version", "", "print the program's version"},
    [SIM_HELP] = {"help", "[COMMAND]", "print this text, or the help of a command"},
};

/* ---- values ---- */

static enum errc args_set_nodes(struct sim_args *a, struct str value, struct err *e)
{
    (void)e;
    a->nodes = value;
    return OK;
}

static enum errc args_set_cluster(struct sim_args *a, struct str value, struct err *e)
{
    (void)e;
    a->cluster = value;
    return OK;
}

static enum errc args_set_filename(struct sim_args *a, struct str value, struct err *e)
{
    (void)e;
    a->filename = value;
    return OK;
}

static enum errc args_set_plot(struct sim_args *a, struct str value, struct err *e)
{
    (void)e;
    a->plot = value;
    return OK;
}

static enum errc args_set_places(struct sim_args *a, struct str value, struct err *e)
{
    (void)e;
    a->places = value;
    return OK;
}

static enum errc args_set_in_order(struct sim_args *a, struct str value, struct err *e)
{
    (void)value;
    (void)e;
    a->in_order = true;
    return OK;
}

static enum errc args_set_add(struct sim_args *a, struct str value, struct err *e)
{
    (void)e;
    a->add = value;
    return OK;
}

static enum errc args_set_checked(struct sim_args *a, struct str value, struct err *e)
{
    (void)value;
    (void)e;
    a->checked = true;
    return OK;
}

static enum errc args_set_help(struct sim_args *a, struct str value, struct err *e)
{
    (void)a;
    (void)value;
    (void)e;
    return OK; /* args_read_flag handles --help */
}

static enum errc args_set_pods(struct sim_args *a, struct str value, struct err *e)
{
    if (a->n_pods == COUNT_OF(a->pods))
        return err_set(e, ERR_LIMIT, "more than %zu files", COUNT_OF(a->pods));
    a->pods[a->n_pods++] = value;
    return OK;
}

static enum errc args_set_policies(struct sim_args *a, struct str value, struct err *e)
{
    struct str rest = value;
    a->n_policies = 0;
    while (rest.p != NULL) {
        struct str name;
        (void)str_cut(rest, ',', &name, &rest);
        if (a->n_policies == COUNT_OF(a->policies))
            return err_set(e, ERR_LIMIT, "more than %zu policies", COUNT_OF(a->policies));
        if (!sim_policy_parse(name, &a->policies[a->n_policies++]))
            return err_set(e, ERR_RANGE, "\"%.*s\" must be %s", STR_ARG(name), sim_policy_names());
    }
    return OK;
}

static enum errc args_set_number(struct str value, uint32_t least, uint32_t most, uint32_t *ret,
                                 struct err *e)
{
    uint64_t n = 0;
    if (!str_to_u64(value, most, &n) || n < least)
        return err_set(e, ERR_RANGE, "\"%.*s\" must be a number from %u to %u", STR_ARG(value),
                       least, most);
    *ret = (uint32_t)n;
    return OK;
}

static enum errc args_set_seeds(struct sim_args *a, struct str value, struct err *e)
{
    return args_set_number(value, 1, LIMIT_SIM_SEEDS, &a->seeds, e);
}

static enum errc args_set_first_seed(struct sim_args *a, struct str value, struct err *e)
{
    return args_set_number(value, 0, 1000000000, &a->first_seed, e);
}

static enum errc args_set_fill(struct sim_args *a, struct str value, struct err *e)
{
    return args_set_number(value, 1, LIMIT_SIM_FILL, &a->fill, e);
}

static enum errc args_set_jobs(struct sim_args *a, struct str value, struct err *e)
{
    return args_set_number(value, 1, LIMIT_SIM_JOBS, &a->jobs, e);
}

/* "0.95": up to four digits behind the point, more than 0 and at most 10. */
static bool args_read_load(struct str text, double *ret)
{
    struct str whole;
    struct str part;
    uint64_t units = 0;
    uint64_t digits = 0;
    double scale = 1;
    (void)str_cut(text, '.', &whole, &part);
    if (!str_to_u64(whole, 10, &units) || (part.p != NULL && !str_to_u64(part, 9999, &digits)))
        return false;
    for (size_t i = 0; i < part.n; i++)
        scale *= 10;
    *ret = (double)units + (double)digits / scale;
    return *ret > 0 && *ret <= 10;
}

static enum errc args_set_loads(struct sim_args *a, struct str value, struct err *e)
{
    struct str rest = value;
    a->n_loads = 0;
    while (rest.p != NULL) {
        struct str one;
        (void)str_cut(rest, ',', &one, &rest);
        if (a->n_loads == COUNT_OF(a->loads))
            return err_set(e, ERR_LIMIT, "more than %zu loads", COUNT_OF(a->loads));
        if (!args_read_load(one, &a->loads[a->n_loads++]))
            return err_set(e, ERR_RANGE, "\"%.*s\" must be a load from 0.0001 to 10, such as 0.95",
                           STR_ARG(one));
    }
    return OK;
}

static enum errc args_set_word(const char *const *words, size_t n, struct str value, unsigned *ret,
                               struct err *e)
{
    char all[64];
    struct buf b = BUF_ON(all);
    for (size_t i = 0; i < n; i++) {
        if (str_eq(value, str_of(words[i]))) {
            *ret = (unsigned)i;
            return OK;
        }
        buf_printf(&b, "%s%s", i == 0 ? "" : i + 1 < n ? ", " : " or ", words[i]);
    }
    return err_set(e, ERR_RANGE, "\"%.*s\" must be %.*s", STR_ARG(value), STR_ARG(buf_str(&b)));
}

static enum errc args_set_ties(struct sim_args *a, struct str value, struct err *e)
{
    static const char *const words[] = {"run", "pod", "name"};
    unsigned i = 0;
    enum errc code = args_set_word(words, COUNT_OF(words), value, &i, e);
    a->ties = (enum sim_ties)i;
    return code;
}

static enum errc args_set_output(struct sim_args *a, struct str value, struct err *e)
{
    static const char *const words[] = {"table", "json", "csv"};
    unsigned i = 0;
    enum errc code = args_set_word(words, COUNT_OF(words), value, &i, e);
    a->output = (enum sim_output)i;
    return code;
}

static const struct sim_flag flags[] = {
    {"--nodes", NULL, RUNS | BIT(SIM_FIT), "FILE",
     "nodes of a trace: columns sn, cpu_milli, memory_mib, gpu, model", args_set_nodes, NULL},
    {"--pods", NULL, RUNS, "FILE",
     "pods of a trace: columns name, cpu_milli, memory_mib, num_gpu, gpu_milli and perhaps "
     "gpu_spec; may be repeated",
     args_set_pods, NULL},
    {"--cluster", NULL, CLUSTER, "FILE",
     "a cluster: what kubectl get nodes,pods -A -o json prints; -: standard input",
     args_set_cluster, NULL},
    {"--policy", NULL, PLACES, "NAME,...",
     "binpack, spread, fgd, bid-price, or for traces bestfit, fgd-paper (default binpack)",
     args_set_policies, SIM_POLICY_WORDS},
    {"--seeds", NULL, RUNS, "N", "number of runs with other random numbers (default 10)",
     args_set_seeds, NULL},
    {"--first-seed", NULL, RUNS, "N", "the first seed; the others follow (default 1)",
     args_set_first_seed, NULL},
    {"--fill", NULL, BIT(SIM_REPLAY), "PERCENT",
     "card memory that arrives, of the capacity (default 130; with --cluster: its pods, once)",
     args_set_fill, NULL},
    {"--in-order", NULL, BIT(SIM_REPLAY), NULL,
     "one run: the pods in the order of the file (of a cluster: of their creation), without copies",
     args_set_in_order, NULL},
    {"--places", NULL, BIT(SIM_REPLAY), "FILE",
     "with --in-order: write the node of each pod (CSV); pods are numbered from 1", args_set_places,
     NULL},
    {"--load", NULL, BIT(SIM_CHURN), "LOAD,...",
     "card memory that the pods would hold, of the capacity (default 0.90,0.95,0.98)",
     args_set_loads, NULL},
    {"--filename", "-f", BIT(SIM_FIT), "FILE",
     "file with a Pod, in YAML or JSON; -: standard input", args_set_filename, NULL},
    {"--add", NULL, BIT(SIM_GROW), "NODE",
     "a node to add: cpu=64,memory=256Gi,cards=8,card-memory=80,model=A100", args_set_add, NULL},
    {"--ties", NULL, PLACES, "WHEN",
     "order of nodes that are equally good: run (drawn once a run), pod (drawn for each pod) or "
     "name (default run)",
     args_set_ties, "run pod name"},
    {"--output", "-o", PLACES, "FORMAT", "table, json or csv (default table)", args_set_output,
     "table json csv"},
    {"--plot", NULL, BIT(SIM_REPLAY), "FILE", "write a picture (SVG): allocated against arrived",
     args_set_plot, NULL},
    {"--jobs", NULL, RUNS, "N", "processes at a time (default: one for each processor)",
     args_set_jobs, NULL},
    {"--check", NULL, PLACES, NULL, "check every card after every event: slow", args_set_checked,
     NULL},
    {"--help", "-h", ~0U, NULL, "print this text", args_set_help, NULL},
};

/* ---- parsing ---- */

struct parser {
    int argc;
    char *const *argv;
    int at;
    struct sim_args *args;
    const struct sim_flag *seen[COUNT_OF(flags)]; /* each once, to check them against the command */
    size_t n_seen;
    bool has_command;
    bool has_shell;
    bool help;
};

static enum errc args_unknown(struct str word, bool flag, struct err *e)
{
    struct near near = near_to(word);
    for (size_t i = 0; flag && i < COUNT_OF(flags); i++)
        near_offer(&near, str_of(flags[i].name));
    for (size_t i = 0; !flag && i < COUNT_OF(verbs); i++)
        near_offer(&near, str_of(verbs[i].name));
    bool found = near.found.p != NULL;
    return err_set(e, ERR_SYNTAX, "unknown %s \"%.*s\"%s%.*s; see cardpack-sim help",
                   flag ? "flag" : "command", STR_ARG(str_head(word, 64)),
                   found ? ", perhaps " : "", (int)near.found.n, found ? near.found.p : "");
}

static const struct sim_flag *args_find_flag(struct str name)
{
    for (size_t i = 0; i < COUNT_OF(flags); i++) {
        if (str_eq(name, str_of(flags[i].name)) ||
            (flags[i].letter != NULL && str_eq(name, str_of(flags[i].letter))))
            return &flags[i];
    }
    return NULL;
}

static enum errc args_read_flag(struct parser *p, struct str word, struct err *e)
{
    struct str name;
    struct str value;
    (void)str_cut(word, '=', &name, &value);
    const struct sim_flag *f = args_find_flag(name);
    if (f == NULL)
        return args_unknown(name, true, e);
    bool repeated = false;
    for (size_t i = 0; i < p->n_seen; i++)
        repeated = repeated || p->seen[i] == f;
    if (!repeated)
        p->seen[p->n_seen++] = f;
    p->help = p->help || f->set == args_set_help;
    if (f->value == NULL && value.p != NULL)
        return err_set(e, ERR_SYNTAX, "%s takes no value", f->name);
    if (f->value != NULL && value.p == NULL && p->at == p->argc)
        return err_set(e, ERR_SYNTAX, "%s needs a value: %s", f->name, f->value);
    if (f->value != NULL && value.p == NULL)
        value = str_of(p->argv[p->at++]);
    if (f->value != NULL && value.n == 0)
        return err_set(e, ERR_SYNTAX, "%s: the value is empty", f->name);
    return f->set(p->args, value, e) == OK ? OK : err_wrap(e, "%s", f->name);
}

static bool args_find_verb(struct str name, enum sim_command *ret)
{
    for (size_t i = 0; i < COUNT_OF(verbs); i++) {
        if (str_eq(name, str_of(verbs[i].name))) {
            *ret = (enum sim_command)i;
            return true;
        }
    }
    return false;
}

static enum errc args_read_word(struct parser *p, struct str word, struct err *e)
{
    struct sim_args *a = p->args;
    if (word.n > 1 && word.p[0] == '-')
        return args_read_flag(p, word, e);
    if (!p->has_command) {
        p->has_command = true;
        return args_find_verb(word, &a->command) ? OK : args_unknown(word, false, e);
    }
    if (a->command == SIM_HELP && a->subject == SIM_HELP)
        return args_find_verb(word, &a->subject) ? OK : args_unknown(word, false, e);
    if (a->command == SIM_COMPLETION && !p->has_shell) {
        p->has_shell = true;
        return str_eq(word, STR("bash"))
                   ? OK
                   : err_set(e, ERR_RANGE, "completion: \"%.*s\" must be bash",
                             STR_ARG(str_head(word, 64)));
    }
    return err_set(e, ERR_SYNTAX, "%s: \"%.*s\" is one word too many; it is: %s %s",
                   verbs[a->command].name, STR_ARG(str_head(word, 64)), verbs[a->command].name,
                   verbs[a->command].usage);
}

/* ---- checks of combinations ---- */

static enum errc args_check_source(const struct sim_args *a, struct err *e)
{
    const char *name = verbs[a->command].name;
    bool runs = (RUNS >> a->command & 1) != 0;
    if (a->command != SIM_CHURN && a->cluster.p != NULL && (a->nodes.p != NULL || a->n_pods > 0))
        return err_set(e, ERR_SYNTAX, "%s: --cluster and %s exclude each other", name,
                       a->nodes.p != NULL ? "--nodes" : "--pods");
    if (a->cluster.p != NULL)
        return OK;
    if (a->command == SIM_GROW)
        return err_set(e, ERR_SYNTAX, "grow: name the cluster's file with --cluster");
    if (a->nodes.p == NULL)
        return err_set(e, ERR_SYNTAX, "%s: name a file with --nodes%s", name,
                       a->command == SIM_CHURN ? "" : " or --cluster");
    if (runs && a->n_pods == 0)
        return err_set(e, ERR_SYNTAX, "%s: name a file with --pods", name);
    return OK;
}

static enum errc args_check_order(const struct parser *p, struct err *e)
{
    const struct sim_args *a = p->args;
    if (a->places.p != NULL && !a->in_order)
        return err_set(e, ERR_SYNTAX, "replay: --places needs --in-order");
    for (size_t i = 0; i < p->n_seen && a->in_order; i++) {
        if (p->seen[i]->set == args_set_fill || p->seen[i]->set == args_set_seeds)
            return err_set(e, ERR_SYNTAX, "replay: --in-order and %s exclude each other",
                           p->seen[i]->name);
    }
    return OK;
}

static enum errc args_check(const struct parser *p, struct err *e)
{
    const struct sim_args *a = p->args;
    for (size_t i = 0; i < p->n_seen; i++) {
        if ((p->seen[i]->commands >> a->command & 1) == 0)
            return err_set(e, ERR_SYNTAX, "%s takes no %s", verbs[a->command].name,
                           p->seen[i]->name);
    }
    if (a->command == SIM_COMPLETION && !p->has_shell)
        return err_set(e, ERR_SYNTAX, "completion: name the shell: bash");
    if (a->command >= SIM_COMPLETION)
        return OK;
    if (a->command == SIM_FIT && a->filename.p == NULL)
        return err_set(e, ERR_SYNTAX, "fit: name the pod's file with -f");
    if (a->command == SIM_GROW && a->add.p == NULL)
        return err_set(e, ERR_SYNTAX, "grow: name the node to add with --add");
    if ((a->command == SIM_FIT || a->command == SIM_GROW) && a->n_policies > 1)
        return err_set(e, ERR_SYNTAX, "%s: one policy only", verbs[a->command].name);
    for (size_t i = 0; a->cluster.p != NULL && i < a->n_policies; i++) {
        if (a->policies[i].bestfit)
            return err_set(e, ERR_SYNTAX, "--policy: bestfit is for traces only");
    }
    return args_check_order(p, e) == OK ? args_check_source(a, e) : e->code;
}

static void args_fill_defaults(struct sim_args *a)
{
    static const double loads[] = {0.90, 0.95, 0.98};
    if (a->n_policies == 0)
        (void)sim_policy_parse(STR("binpack"), &a->policies[a->n_policies++]);
    for (size_t i = 0; i < COUNT_OF(loads) && a->n_loads == i; i++)
        a->loads[a->n_loads++] = loads[i];
}

enum errc sim_args_parse(int argc, char *const argv[], struct sim_args *ret, struct err *reterr)
{
    struct parser p = {.argc = argc, .argv = argv, .at = 1, .args = ret};
    enum errc code = OK;
    *ret = (struct sim_args){
        .command = SIM_HELP, .subject = SIM_HELP, .seeds = SEEDS_DEFAULT, .first_seed = 1};
    while (code == OK && p.at < argc)
        code = args_read_word(&p, str_of(argv[p.at++]), reterr);
    if (code != OK)
        return code;
    if (!p.has_command && !p.help)
        return err_set(reterr, ERR_SYNTAX, "name a command; see cardpack-sim help");
    if (p.help) {
        ret->subject = ret->command;
        ret->command = SIM_HELP;
        return OK;
    }
    code = args_check(&p, reterr);
    args_fill_defaults(ret);
    return code;
}

/* ---- help ---- */

static void args_put_flags(struct buf *out, unsigned commands)
{
    buf_put(out, STR("\nFlags:\n"));
    for (size_t i = 0; i < COUNT_OF(flags); i++) {
        const struct sim_flag *f = &flags[i];
        char name[64];
        struct buf b = BUF_ON(name);
        if ((f->commands & commands) == 0)
            continue;
        if (f->letter != NULL)
            buf_printf(&b, "%s, ", f->letter);
        buf_printf(&b, "%s%s%s", f->name, f->value == NULL ? "" : " ",
                   f->value == NULL ? "" : f->value);
        buf_printf(out, "  %-24.*s %s\n", (int)b.n, b.p, f->text);
    }
}

void sim_usage(struct buf *out, enum sim_command c)
{
    if (c != SIM_HELP) {
        buf_printf(out, "cardpack-sim %s%s%s\n%s.\n", verbs[c].name,
                   verbs[c].usage[0] == '\0' ? "" : " ", verbs[c].usage, verbs[c].text);
        args_put_flags(out, BIT(c));
        return;
    }
    buf_put(out, STR("cardpack-sim shows what placement policies do on a trace, or on a cluster. "
                     "It changes nothing.\n\nCommands:\n"));
    for (size_t i = 0; i < COUNT_OF(verbs); i++) {
        bool bare = verbs[i].usage[0] == '\0';
        buf_printf(out, "  %s%s%s\n      %s\n", verbs[i].name, bare ? "" : " ", verbs[i].usage,
                   verbs[i].text);
    }
    args_put_flags(out, ~0U);
    buf_put(out, STR("\nExit status: 0 on success, 1 after an error, 2 if the command line is not "
                     "valid,\n3 if fit or grow find no room.\n"));
}

/* ---- completion ---- */

static const char completion_head[] =
    "# bash completion of cardpack-sim\n"
    "_cardpack_sim()\n"
    "{\n"
    "    local cur=${COMP_WORDS[COMP_CWORD]} "
    "prev=${COMP_WORDS[COMP_CWORD - 1]} word command='' offer=''\n"
    "    # bash splits --flag=value at =.\n"
    "    [[ $prev == = ]] && prev=${COMP_WORDS[COMP_CWORD - 2]}\n"
    "    [[ $cur == = ]] && cur=\n"
    "    for word in \"${COMP_WORDS[@]:1:COMP_CWORD - 1}\"; do\n"
    "        case $word in\n";

static const char completion_tail[] =
    "    esac\n"
    "    mapfile -t COMPREPLY < <(compgen -W \"$offer\" -- \"$cur\")\n"
    "}\n"
    "complete -F _cardpack_sim cardpack-sim\n";

/* After a flag with a value. Of several values with commas the last one is completed. */
static void args_put_values(struct buf *out)
{
    for (size_t i = 0; i < COUNT_OF(flags); i++) {
        const struct sim_flag *f = &flags[i];
        if (f->value == NULL)
            continue;
        buf_printf(out, "        %s%s%s)\n", f->name, f->letter == NULL ? "" : " | ",
                   f->letter == NULL ? "" : f->letter);
        if (f->words != NULL)
            buf_printf(out,
                       "            word=${cur%%\"${cur##*,}\"}\n"
                       "            mapfile -t COMPREPLY < <(compgen -P \"$word\" -W '%s' -- "
                       "\"${cur##*,}\")\n",
                       f->words);
        else if (str_eq(str_of(f->value), STR("FILE")))
            buf_put(out, STR("            compopt -o filenames 2>/dev/null\n"
                             "            mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n"));
        buf_put(out, STR("            return ;;\n"));
    }
}

/* The words after a command: its flags. */
static void args_put_offers(struct buf *out)
{
    for (size_t c = 0; c < COUNT_OF(verbs); c++) {
        buf_printf(out, "        %s) offer='", verbs[c].name);
        if (c == SIM_COMPLETION)
            buf_put(out, STR("bash "));
        for (size_t k = 0; k < COUNT_OF(verbs) && c == SIM_HELP; k++)
            buf_printf(out, "%s ", verbs[k].name);
        for (size_t i = 0; i < COUNT_OF(flags); i++) {
            if ((flags[i].commands >> c & 1) != 0)
                buf_printf(out, "%s ", flags[i].name);
        }
        buf_put(out, STR("' ;;\n"));
    }
}

void sim_completion(struct buf *out)
{
    buf_put(out, str_of(completion_head));
    for (size_t c = 0; c < COUNT_OF(verbs); c++)
        buf_printf(out, "            %s%s", verbs[c].name,
                   c + 1 < COUNT_OF(verbs) ? " |\\\n" : ") command=$word && break ;;\n");
    buf_put(out, STR("        esac\n    done\n    COMPREPLY=()\n    case $prev in\n"));
    args_put_values(out);
    buf_put(out, STR("    esac\n    case $command in\n        '') offer='"));
    for (size_t c = 0; c < COUNT_OF(verbs); c++)
        buf_printf(out, "%s ", verbs[c].name);
    buf_put(out, STR("' ;;\n"));
    args_put_offers(out);
    buf_put(out, str_of(completion_tail));
}
