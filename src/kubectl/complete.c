/* Completes commands, flags and their values from the tables of args.h; has the shells' scripts. */
#include "kubectl/complete.h"

#include "kubectl/order.h"

#define OFFER_WORDS ":4\n"
#define OFFER_FILES ":0\n"

struct completion {
    struct str current;           /* the typed part of the current word */
    enum kubectl_command command; /* KUBECTL_COMMANDS: none yet */
    bool has_subject;             /* the command has its subject already */
    const struct cli_flag *owes;  /* the flag whose value comes next; or NULL */
    struct str prefix;            /* "--output=" if the value is in the same word */
    struct kubectl_args args;     /* from the flags before the current word */
};

static const char bash_script[] =
    "# bash completion of kubectl-cardpack\n"
    "_kubectl_cardpack()\n"
    "{\n"
    "    local cur out line rest prefix i files=\n"
    "    local -a words=()\n"
    "    # bash splits words at = and :, also in an address: this joins the parts again.\n"
    "    rest=$COMP_LINE\n"
    "    for ((i = 0; i <= COMP_CWORD; i++)); do\n"
    "        if [[ $i == 0 || $rest == [[:space:]]* ]]; then\n"
    "            words+=(\"${COMP_WORDS[i]}\")\n"
    "        else\n"
    "            words[${#words[@]} - 1]+=${COMP_WORDS[i]}\n"
    "        fi\n"
    "        rest=${rest#\"${rest%%[![:space:]]*}\"}\n"
    "        rest=${rest#\"${COMP_WORDS[i]}\"}\n"
    "    done\n"
    "    cur=${COMP_WORDS[COMP_CWORD]}\n"
    "    [[ $cur == [=:] ]] && cur=\n"
    "    prefix=${words[${#words[@]} - 1]%\"$cur\"}\n"
    "    COMPREPLY=()\n"
    "    out=$(\"${COMP_WORDS[0]}\" __complete \"${words[@]:1}\" 2>/dev/null)\n"
    "    while IFS= read -r line; do\n"
    "        case $line in\n"
    "            :0) files=1 ;;\n"
    "            :*) ;;\n"
    "            *) line=${line%%$'\\t'*} && COMPREPLY+=(\"${line#\"$prefix\"}\") ;;\n"
    "        esac\n"
    "    done <<<\"$out\"\n"
    "    if [[ -n $files ]]; then\n"
    "        compopt -o filenames 2>/dev/null\n"
    "        while IFS= read -r line; do COMPREPLY+=(\"$line\"); done < <(compgen -f -- \"$cur\")\n"
    "    fi\n"
    "}\n"
    "complete -F _kubectl_cardpack kubectl-cardpack\n";

static const char zsh_script[] =
    "#compdef kubectl-cardpack\n"
    "_kubectl_cardpack()\n"
    "{\n"
    "    local line files=\n"
    "    local -a found\n"
    "    while IFS= read -r line; do\n"
    "        case $line in\n"
    "            :0) files=1 ;;\n"
    "            :*) ;;\n"
    "            ?*) found+=(\"${${line%%$'\\t'*}//:/\\\\:}:${line#*$'\\t'}\") ;;\n"
    "        esac\n"
    "    done < <(\"${words[1]}\" __complete \"${(@)words[2,CURRENT]}\" 2>/dev/null)\n"
    "    (( ${#found} )) && _describe 'kubectl-cardpack' found\n"
    "    [[ -n $files ]] && _files\n"
    "    return 0\n"
    "}\n"
    "if [[ ${funcstack[1]} == _kubectl_cardpack ]]; then\n"
    "    _kubectl_cardpack \"$@\"\n"
    "else\n"
    "    compdef _kubectl_cardpack kubectl-cardpack\n"
    "fi\n";

static const char fish_script[] =
    "# fish completion of kubectl-cardpack\n"
    "function __kubectl_cardpack_complete\n"
    "    set -l words (commandline -opc)\n"
    "    set -l current (commandline -ct)\n"
    "    for line in ($words[1] __complete $words[2..-1] \"$current\" 2>/dev/null)\n"
    "        switch $line\n"
    "            case ':0'\n"
    "                __fish_complete_path \"$current\"\n"
    "            case ':*'\n"
    "            case '*'\n"
    "                echo $line\n"
    "        end\n"
    "    end\n"
    "end\n"
    "complete -c kubectl-cardpack -f -a '(__kubectl_cardpack_complete)'\n";

enum errc kubectl_completion(struct str shell, struct buf *out, struct err *reterr)
{
    if (str_eq(shell, STR("bash")))
        buf_put(out, str_of(bash_script));
    else if (str_eq(shell, STR("zsh")))
        buf_put(out, str_of(zsh_script));
    else if (str_eq(shell, STR("fish")))
        buf_put(out, str_of(fish_script));
    else
        return err_set(reterr, ERR_SYNTAX, "completion: \"%.*s\" must be bash, zsh or fish",
                       STR_ARG(shell));
    return OK;
}

/* Ignores an invalid value: the command will report it when it runs. */
static void complete_set_flag(struct completion *c, struct str value)
{
    (void)cli_set(c->owes, &c->args, value, NULL);
    c->owes = NULL;
}

/* Reads a word before the current one. bash passes "=" as a word of its own. */
static void complete_take_word(struct completion *c, struct str word)
{
    struct str value;
    if (str_eq(word, STR("=")))
        return;
    if (c->owes != NULL) {
        complete_set_flag(c, word);
        return;
    }
    if (word.n > 1 && word.p[0] == '-') {
        c->owes = kubectl_flag_split(word, &value);
        if (c->owes != NULL && (value.p != NULL || c->owes->value == NULL))
            complete_set_flag(c, value);
    } else if (c->command != KUBECTL_COMMANDS || !kubectl_verb_find(word, &c->command)) {
        c->has_subject = true; /* the subject, or an unknown word: then nothing is offered */
    }
}

static void complete_offer(struct buf *out, const struct completion *c, const char *word,
                           const char *text)
{
    struct str w = str_of(word);
    if (str_starts(w, c->current))
        buf_printf(out, "%.*s%s\t%s\n", STR_ARG(c->prefix.p == NULL ? STR("") : c->prefix), word,
                   text);
}

static void complete_offer_flags(struct buf *out, const struct completion *c)
{
    for (size_t i = 0; i < kubectl_cli.n_flags; i++) {
        const struct cli_flag *f = &kubectl_cli.flags[i];
        if (c->command == KUBECTL_COMMANDS || (f->commands >> c->command & 1) != 0)
            complete_offer(out, c, f->name, f->text);
    }
}

static void complete_offer_commands(struct buf *out, const struct completion *c)
{
    for (size_t i = 0; i < kubectl_cli.n_verbs; i++)
        complete_offer(out, c, kubectl_cli.verbs[i].name, kubectl_cli.verbs[i].text);
}

/* Offers values of a flag, whose help names their kind. True: the shell should complete file names.
 */
static bool complete_offer_values(struct buf *out, const struct completion *c, struct str value)
{
    if (str_eq(value, STR("FORMAT"))) {
        complete_offer(out, c, "table", "rows and columns");
        complete_offer(out, c, "wide", "with more columns");
        complete_offer(out, c, "json", "for programs");
        complete_offer(out, c, "yaml", "for people and programs");
        if (c->command == KUBECTL_TOP || c->command == KUBECTL_PODS ||
            c->command == KUBECTL_EXPLAIN)
            complete_offer(out, c, "name", "names only, for scripts");
        if (c->command == KUBECTL_TOP)
            complete_offer(out, c, "gpushare", "as kubectl inspect gpushare");
    } else if (str_eq(value, STR("COLUMN"))) {
        for (unsigned by = 1; by < KUBECTL_SORTS; by++) {
            if (order_has(c->command, (enum kubectl_sort)by))
                complete_offer(out, c, order_name((enum kubectl_sort)by), "column");
        }
    } else if (str_eq(value, STR("WHEN"))) {
        complete_offer(out, c, "auto", "on a terminal");
        complete_offer(out, c, "always", "also in a pipe or a file");
        complete_offer(out, c, "never", "plain text");
    }
    return str_eq(value, STR("FILE"));
}

static void complete_offer_subjects(struct buf *out, const struct completion *c)
{
    if (c->has_subject)
        return;
    if (c->command == KUBECTL_COMPLETION) {
        complete_offer(out, c, "bash", "script for bash");
        complete_offer(out, c, "zsh", "script for zsh");
        complete_offer(out, c, "fish", "script for fish");
    } else if (c->command == KUBECTL_HELP) {
        complete_offer_commands(out, c);
    }
}

/* For "--output=j": the flag. The typed part of its value becomes c->current. */
static const struct cli_flag *complete_flag_of_value(struct completion *c)
{
    struct str name;
    struct str value;
    if (!str_starts(c->current, STR("--")) || !str_cut(c->current, '=', &name, &value))
        return NULL;
    c->prefix = (struct str){c->current.p, name.n + 1};
    c->current = value;
    return cli_find_flag(&kubectl_cli, name);
}

/* For "pod/tr": "pod/" becomes the prefix, and the typed part of the name c->current. */
static void complete_cut_kind(struct completion *c)
{
    struct str kind;
    struct str name;
    const char *wanted = c->command == KUBECTL_EXPLAIN ? "pod" : "node";
    if ((c->command != KUBECTL_EXPLAIN && c->command != KUBECTL_CARDS) || c->has_subject ||
        !str_cut(c->current, '/', &kind, &name) || !str_eq(kind, str_of(wanted)))
        return;
    c->prefix = (struct str){c->current.p, kind.n + 1};
    c->current = name;
}

/* The kind of names for the value of flag f; f NULL: for the subject of the command. */
static enum kubectl_names complete_names_of(const struct completion *c, const struct cli_flag *f)
{
    if (f != NULL)
        return str_eq(str_of(f->value), STR("NAMESPACE")) ? KUBECTL_NAMESPACE_NAMES
                                                          : KUBECTL_NO_NAMES;
    if (c->has_subject || str_starts(c->current, STR("-")))
        return KUBECTL_NO_NAMES;
    if (c->command == KUBECTL_CARDS)
        return KUBECTL_NODE_NAMES;
    return c->command == KUBECTL_EXPLAIN && c->args.filename.n == 0 ? KUBECTL_POD_NAMES
                                                                    : KUBECTL_NO_NAMES;
}

static void complete_offer_all(struct buf *out, const struct completion *c,
                               const struct cli_flag *f)
{
    bool files = false;
    if (f != NULL)
        files = complete_offer_values(out, c, str_of(f->value));
    else if (str_starts(c->current, STR("-")))
        complete_offer_flags(out, c);
    else if (c->command == KUBECTL_COMMANDS && !c->has_subject)
        complete_offer_commands(out, c);
    else if (c->command != KUBECTL_COMMANDS)
        complete_offer_subjects(out, c);
    buf_put(out, files ? STR(OFFER_FILES) : STR(OFFER_WORDS));
}

void kubectl_complete(char *const *words, int n, struct kubectl_wish *ret, struct buf *out)
{
    struct completion c = {
        .current = STR(""), .command = KUBECTL_COMMANDS, .args = kubectl_args_defaults()};
    for (int i = 0; i + 1 < n; i++)
        complete_take_word(&c, str_of(words[i]));
    if (n > 0)
        c.current = str_of(words[n - 1]);
    if (str_eq(c.current, STR("=")))
        c.current = STR("");
    const struct cli_flag *f = c.owes != NULL ? c.owes : complete_flag_of_value(&c);
    if (f == NULL)
        complete_cut_kind(&c);
    *ret = (struct kubectl_wish){.names = complete_names_of(&c, f),
                                 .current = c.current,
                                 .prefix = c.prefix.p == NULL ? STR("") : c.prefix,
                                 .args = c.args};
    if (ret->names == KUBECTL_NO_NAMES)
        complete_offer_all(out, &c, f);
}

void kubectl_complete_end(struct buf *out)
{
    buf_put(out, STR(OFFER_WORDS));
}
