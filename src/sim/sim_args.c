/*
 * Parses the command line. Flags may come before or after the command, as "--flag value",
 * "--flag=value" or "-f value". A flag that the command does not accept is an error, because the
 * user expects it to have an effect.
 */
#include "sim/sim_args.h"

#include "base/near.h"

#define BIT(c)  (1U << (c))
#define RUNS    (BIT(SIM_REPLAY) | BIT(SIM_CHURN))
#define PLACES  (RUNS | BIT(SIM_FIT) | BIT(SIM_GROW))
#define CLUSTER (BIT(SIM_REPLAY) | BIT(SIM_FIT) | BIT(SIM_GROW))

#define SEEDS_DEFAULT 10

static const struct cli_verb verbs[SIM_COMMANDS] = {
    [SIM_REPLAY] = {"replay", "--nodes FILE --pods FILE ... | --cluster FILE",
                    "let pods arrive one after another on empty nodes, under each policy", NULL, 0},
    [SIM_CHURN] = {"churn", "--nodes FILE --pods FILE ...",
                   "let pods come and go at a constant load, under each policy", NULL, 0},
    [SIM_FIT] = {"fit", "--cluster FILE | --nodes FILE, -f POD",
                 "how many of a pod fit, and what stops the next one", NULL, 0},
    [SIM_GROW] = {"grow", "--cluster FILE --add NODE",
                  "how many nodes to add until the pending pods run", NULL, 0},
    [SIM_COMPLETION] = {"completion", "bash", "print a script for the shell", NULL, 0},
    [SIM_VERSION] = {"version", "", "print the program's version", NULL, 0},
    [SIM_HELP] = {"help", "[COMMAND]", "print this text, or the help of a command", NULL, 0},
};

/* ---- values ---- */

static enum errc sim_args_set_pods(const struct cli_flag *f, void *args, struct str value,
                                   struct err *e)
{
    struct sim_args *a = args;
    (void)f;
    if (a->n_pods == COUNT_OF(a->pods))
        return err_set(e, ERR_LIMIT, "more than %zu files", COUNT_OF(a->pods));
    a->pods[a->n_pods++] = value;
    return OK;
}

static enum errc sim_args_set_policies(const struct cli_flag *f, void *args, struct str value,
                                       struct err *e)
{
    struct sim_args *a = args;
    struct str rest = value;
    unsigned known = 0;
    a->n_policies = 0;
    while (rest.p != NULL) {
        struct str name;
        (void)str_cut(rest, ',', &name, &rest);
        if (a->n_policies == COUNT_OF(a->policies))
            return err_set(e, ERR_LIMIT, "more than %zu policies", COUNT_OF(a->policies));
        if (cli_read_word(name, f->words, &known, e) != OK)
            return ERR_RANGE;
        (void)sim_policy_parse(name, &a->policies[a->n_policies++]);
    }
    return OK;
}

/* "0.95": up to four digits behind the point, more than 0 and at most 10. */
static bool sim_args_read_load(struct str text, double *ret)
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

static enum errc sim_args_set_loads(const struct cli_flag *f, void *args, struct str value,
                                    struct err *e)
{
    struct sim_args *a = args;
    struct str rest = value;
    (void)f;
    a->n_loads = 0;
    while (rest.p != NULL) {
        struct str one;
        (void)str_cut(rest, ',', &one, &rest);
        if (a->n_loads == COUNT_OF(a->loads))
            return err_set(e, ERR_LIMIT, "more than %zu loads", COUNT_OF(a->loads));
        if (!sim_args_read_load(one, &a->loads[a->n_loads++]))
            return err_set(e, ERR_RANGE, "\"%.*s\" must be a load from 0.0001 to 10, such as 0.95",
                           STR_ARG(one));
    }
    return OK;
}

static const struct cli_flag flags[] = {
    {"--nodes", NULL, RUNS | BIT(SIM_FIT), "FILE",
     "nodes of a trace: columns sn, cpu_milli, memory_mib, gpu, model",
     CLI_TEXT(struct sim_args, nodes)},
    {"--pods", NULL, RUNS, "FILE",
     "pods of a trace: columns name, cpu_milli, memory_mib, num_gpu, gpu_milli and perhaps "
     "gpu_spec; may be repeated",
     .set = sim_args_set_pods},
    {"--cluster", NULL, CLUSTER, "FILE",
     "a cluster: what kubectl get nodes,pods -A -o json prints; -: standard input",
     CLI_TEXT(struct sim_args, cluster)},
    {"--policy", NULL, PLACES, "NAME,...",
     "binpack, spread, fgd, bid-price, or for traces bestfit, fgd-paper (default binpack)",
     .set = sim_args_set_policies, .words = SIM_POLICY_WORDS},
    {"--seeds", NULL, RUNS, "N", "number of runs with other random numbers (default 10)",
     CLI_NUMBER(struct sim_args, seeds, 1, LIMIT_SIM_SEEDS)},
    {"--first-seed", NULL, RUNS, "N", "the first seed; the others follow (default 1)",
     CLI_NUMBER(struct sim_args, first_seed, 0, 1000000000)},
    {"--fill", NULL, BIT(SIM_REPLAY), "PERCENT",
     "card memory that arrives, of the capacity (default 130; with --cluster: its pods, once)",
     CLI_NUMBER(struct sim_args, fill, 1, LIMIT_SIM_FILL)},
    {"--in-order", NULL, BIT(SIM_REPLAY), NULL,
     "one run: the pods in the order of the file (of a cluster: of their creation), without copies",
     CLI_BOOL(struct sim_args, in_order)},
    {"--places", NULL, BIT(SIM_REPLAY), "FILE",
     "with --in-order: write the node of each pod (CSV); pods are numbered from 1",
     CLI_TEXT(struct sim_args, places)},
    {"--load", NULL, BIT(SIM_CHURN), "LOAD,...",
     "card memory that the pods would hold, of the capacity (default 0.90,0.95,0.98)",
     .set = sim_args_set_loads},
    {"--filename", "-f", BIT(SIM_FIT), "FILE",
     "file with a Pod, in YAML or JSON; -: standard input", CLI_TEXT(struct sim_args, filename)},
    {"--add", NULL, BIT(SIM_GROW), "NODE",
     "a node to add: cpu=64,memory=256Gi,cards=8,card-memory=80,model=A100",
     CLI_TEXT(struct sim_args, add)},
    {"--ties", NULL, PLACES, "WHEN",
     "order of nodes that are equally good: run (drawn once a run), pod (drawn for each pod) or "
     "name (default run)",
     CLI_WORD(struct sim_args, ties, "run|pod|name")},
    {"--output", "-o", PLACES, "FORMAT", "table, json or csv (default table)",
     CLI_WORD(struct sim_args, output, "table|json|csv")},
    {"--plot", NULL, BIT(SIM_REPLAY), "FILE", "write a picture (SVG): allocated against arrived",
     CLI_TEXT(struct sim_args, plot)},
    {"--jobs", NULL, RUNS, "N", "processes at a time (default: one for each processor)",
     CLI_NUMBER(struct sim_args, jobs, 1, LIMIT_SIM_JOBS)},
    {"--check", NULL, PLACES, NULL, "check every card after every event: slow",
     CLI_BOOL(struct sim_args, checked)},
    {"--help", "-h", ~0U, NULL, "print this text", .set = NULL},
};

static const struct cli cli = {"cardpack-sim", verbs, COUNT_OF(verbs), flags, COUNT_OF(flags), 24};

/* ---- parsing ---- */

struct parser {
    int argc;
    char *const *argv;
    int at;
    struct sim_args *args;
    const struct cli_flag *seen[COUNT_OF(flags)]; /* each once, to check them against the command */
    size_t n_seen;
    bool has_command;
    bool has_shell;
    bool help;
};

static enum errc sim_args_unknown(struct str word, bool flag, struct err *e)
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

static enum errc sim_args_read_flag(struct parser *p, struct str word, struct err *e)
{
    struct str name;
    struct str value;
    (void)str_cut(word, '=', &name, &value);
    const struct cli_flag *f = cli_find_flag(&cli, name);
    if (f == NULL)
        return sim_args_unknown(name, true, e);
    bool repeated = false;
    for (size_t i = 0; i < p->n_seen; i++)
        repeated = repeated || p->seen[i] == f;
    if (!repeated)
        p->seen[p->n_seen++] = f;
    p->help = p->help || f->set == NULL;
    if (f->value == NULL && value.p != NULL)
        return err_set(e, ERR_SYNTAX, "%s takes no value", f->name);
    if (f->value != NULL && value.p == NULL && p->at == p->argc)
        return err_set(e, ERR_SYNTAX, "%s needs a value: %s", f->name, f->value);
    if (f->value != NULL && value.p == NULL)
        value = str_of(p->argv[p->at++]);
    if (f->value != NULL && value.n == 0)
        return err_set(e, ERR_SYNTAX, "%s: the value is empty", f->name);
    return cli_set(f, p->args, value, e);
}

static enum errc sim_args_read_verb(struct str word, enum sim_command *ret, struct err *e)
{
    unsigned verb = 0;
    if (!cli_find_verb(&cli, word, &verb))
        return sim_args_unknown(word, false, e);
    *ret = (enum sim_command)verb;
    return OK;
}

static enum errc sim_args_read_word(struct parser *p, struct str word, struct err *e)
{
    struct sim_args *a = p->args;
    if (word.n > 1 && word.p[0] == '-')
        return sim_args_read_flag(p, word, e);
    if (!p->has_command) {
        p->has_command = true;
        return sim_args_read_verb(word, &a->command, e);
    }
    if (a->command == SIM_HELP && a->subject == SIM_HELP)
        return sim_args_read_verb(word, &a->subject, e);
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

static enum errc sim_args_check_source(const struct sim_args *a, struct err *e)
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

static enum errc sim_args_check_order(const struct parser *p, struct err *e)
{
    const struct cli_flag *fill = cli_find_flag(&cli, STR("--fill"));
    const struct cli_flag *seeds = cli_find_flag(&cli, STR("--seeds"));
    const struct sim_args *a = p->args;
    if (a->places.p != NULL && !a->in_order)
        return err_set(e, ERR_SYNTAX, "replay: --places needs --in-order");
    for (size_t i = 0; i < p->n_seen && a->in_order; i++) {
        if (p->seen[i] == fill || p->seen[i] == seeds)
            return err_set(e, ERR_SYNTAX, "replay: --in-order and %s exclude each other",
                           p->seen[i]->name);
    }
    return OK;
}

static enum errc sim_args_check(const struct parser *p, struct err *e)
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
    return sim_args_check_order(p, e) == OK ? sim_args_check_source(a, e) : e->code;
}

static void sim_args_fill_defaults(struct sim_args *a)
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
        code = sim_args_read_word(&p, str_of(argv[p.at++]), reterr);
    if (code != OK)
        return code;
    if (!p.has_command && !p.help)
        return err_set(reterr, ERR_SYNTAX, "name a command; see cardpack-sim help");
    if (p.help) {
        ret->subject = ret->command;
        ret->command = SIM_HELP;
        return OK;
    }
    code = sim_args_check(&p, reterr);
    sim_args_fill_defaults(ret);
    return code;
}

/* ---- help ---- */

void sim_usage(struct buf *out, enum sim_command c)
{
    if (c != SIM_HELP) {
        cli_put_verb(&cli, c, out);
        return;
    }
    buf_put(out, STR("cardpack-sim shows what placement policies do on a trace, or on a cluster. "
                     "It changes nothing.\n\nCommands:\n"));
    for (size_t i = 0; i < COUNT_OF(verbs); i++) {
        bool bare = verbs[i].usage[0] == '\0';
        buf_printf(out, "  %s%s%s\n      %s\n", verbs[i].name, bare ? "" : " ", verbs[i].usage,
                   verbs[i].text);
    }
    cli_put_flags(&cli, ~0U, out);
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

static void sim_args_put_words(struct buf *out, const char *words)
{
    buf_put(out, STR("            word=${cur%\"${cur##*,}\"}\n"
                     "            mapfile -t COMPREPLY < <(compgen -P \"$word\" -W '"));
    for (const char *p = words; *p != '\0'; p++)
        buf_put(out, *p == '|' ? STR(" ") : (struct str){p, 1});
    buf_put(out, STR("' -- \"${cur##*,}\")\n"));
}

/* After a flag with a value. Of several values with commas the last one is completed. */
static void sim_args_put_values(struct buf *out)
{
    for (size_t i = 0; i < COUNT_OF(flags); i++) {
        const struct cli_flag *f = &flags[i];
        if (f->value == NULL)
            continue;
        buf_printf(out, "        %s%s%s)\n", f->name, f->letter == NULL ? "" : " | ",
                   f->letter == NULL ? "" : f->letter);
        if (f->words != NULL)
            sim_args_put_words(out, f->words);
        else if (str_eq(str_of(f->value), STR("FILE")))
            buf_put(out, STR("            compopt -o filenames 2>/dev/null\n"
                             "            mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n"));
        buf_put(out, STR("            return ;;\n"));
    }
}

/* The words after a command: its flags. */
static void sim_args_put_offers(struct buf *out)
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
    sim_args_put_values(out);
    buf_put(out, STR("    esac\n    case $command in\n        '') offer='"));
    for (size_t c = 0; c < COUNT_OF(verbs); c++)
        buf_printf(out, "%s ", verbs[c].name);
    buf_put(out, STR("' ;;\n"));
    sim_args_put_offers(out);
    buf_put(out, str_of(completion_tail));
}
