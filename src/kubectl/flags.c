/* The tables of commands and flags for args.h, and the help text made from them. */
#include "kubectl/args.h"

#include "kubectl/order.h"

#include "core/dialect.h"
#include "core/limit.h"

#define BIT(command) (1U << (command))
#define FIGURES      (BIT(KUBECTL_TOP) | BIT(KUBECTL_CARDS))
#define A_POD        (BIT(KUBECTL_EXPLAIN) | BIT(KUBECTL_FIT))
#define LISTING      BIT(KUBECTL_PODS) /* from the API server only */
#define ASKING       (FIGURES | A_POD) /* the daemon, or without it the API server */
/* The daemon, if it answers. */
#define REACHING   (ASKING | BIT(KUBECTL_VERSION) | BIT(KUBECTL_DOCTOR))
#define CONNECTING (REACHING | LISTING)
#define PRINTING   (ASKING | LISTING | BIT(KUBECTL_DOCTOR))

#define TIMEOUT_DEFAULT  "30s"
#define INTERVAL_DEFAULT "2s"
#define INTERVAL_MIN_MS  100

static enum errc flags_must_be(struct err *e, struct str value, const char *what)
{
    return err_set(e, ERR_RANGE, "\"%.*s\" must be %s", STR_ARG(value), what);
}

static enum errc flags_set_text(struct str *field, struct str value, struct err *e)
{
    if (value.n == 0)
        return flags_must_be(e, value, "not empty");
    *field = value;
    return OK;
}

#define TEXT_SETTER(field)                                                                     \
    static enum errc set_##field(struct kubectl_args *a, struct str value, struct err *reterr) \
    {                                                                                          \
        return flags_set_text(&a->field, value, reterr);                                       \
    }

TEXT_SETTER(namespace)
TEXT_SETTER(server)
TEXT_SETTER(certificate_authority)
TEXT_SETTER(token_file)
TEXT_SETTER(daemon_url)
TEXT_SETTER(filename)
TEXT_SETTER(selector)

/* For kubectl: the value comes from the command line, so a NUL follows it. */
static enum errc flags_pass(struct kubectl_args *a, const char *flag, struct str value,
                            struct err *e)
{
    if (value.n == 0)
        return flags_must_be(e, value, "not empty");
    if (a->n_passed + 2 > COUNT_OF(a->passed))
        return err_set(e, ERR_LIMIT, "there are too many flags for kubectl");
    a->passed[a->n_passed++] = flag;
    a->passed[a->n_passed++] = value.p;
    return OK;
}

#define PASSING_SETTER(field, flag)                                                            \
    static enum errc set_##field(struct kubectl_args *a, struct str value, struct err *reterr) \
    {                                                                                          \
        return flags_pass(a, flag, value, reterr);                                             \
    }

PASSING_SETTER(kubeconfig, "--kubeconfig")
PASSING_SETTER(context, "--context")
PASSING_SETTER(cluster, "--cluster")
PASSING_SETTER(user, "--user")
PASSING_SETTER(as, "--as")
PASSING_SETTER(as_group, "--as-group")
PASSING_SETTER(token, "--token")
PASSING_SETTER(tls_server_name, "--tls-server-name")

static enum errc flags_set_word(const char *const *words, size_t n, struct str value, unsigned *ret,
                                struct err *e)
{
    char bytes[128];
    struct buf all = BUF_ON(bytes);
    for (size_t i = 0; i < n; i++) {
        if (str_eq(value, str_of(words[i]))) {
            *ret = (unsigned)i;
            return OK;
        }
        buf_printf(&all, "%s%s", i == 0 ? "" : i + 1 < n ? ", " : " or ", words[i]);
    }
    bytes[all.n] = '\0';
    return flags_must_be(e, value, bytes);
}

static enum errc flags_set_output(struct kubectl_args *a, struct str value, struct err *reterr)
{
    static const char *const words[] = {"table", "wide", "json", "yaml", "name", "gpushare"};
    unsigned i = 0;
    enum errc code = flags_set_word(words, COUNT_OF(words), value, &i, reterr);
    a->output = (enum kubectl_output)i;
    return code;
}

static enum errc flags_set_color(struct kubectl_args *a, struct str value, struct err *reterr)
{
    static const char *const words[] = {"auto", "always", "never"};
    unsigned i = 0;
    enum errc code = flags_set_word(words, COUNT_OF(words), value, &i, reterr);
    a->color = (enum kubectl_color)i;
    return code;
}

static enum errc flags_set_bool(struct str value, bool *ret, struct err *e)
{
    static const char *const words[] = {"false", "true"};
    unsigned i = 0;
    enum errc code = flags_set_word(words, COUNT_OF(words), value, &i, e);
    *ret = i == 1;
    return code;
}

static enum errc flags_set_no_headers(struct kubectl_args *a, struct str value, struct err *reterr)
{
    return flags_set_bool(value, &a->no_headers, reterr);
}

static enum errc flags_set_all_namespaces(struct kubectl_args *a, struct str value,
                                          struct err *reterr)
{
    return flags_set_bool(value, &a->all_namespaces, reterr);
}

static enum errc flags_set_direct(struct kubectl_args *a, struct str value, struct err *reterr)
{
    bool direct = false;
    enum errc code = flags_set_bool(value, &direct, reterr);
    a->way = direct ? KUBECTL_DIRECT : KUBECTL_DAEMON_ONLY;
    return code;
}

/* kubectl takes the value of a boolean flag only in the same word. */
static enum errc flags_set_insecure(struct kubectl_args *a, struct str value, struct err *reterr)
{
    bool insecure = false;
    enum errc code = flags_set_bool(value, &insecure, reterr);
    if (code == OK && a->n_passed == COUNT_OF(a->passed))
        code = err_set(reterr, ERR_LIMIT, "there are too many flags for kubectl");
    if (code == OK)
        a->passed[a->n_passed++] =
            insecure ? "--insecure-skip-tls-verify" : "--insecure-skip-tls-verify=false";
    return code;
}

static enum errc flags_set_help(struct kubectl_args *a, struct str value, struct err *reterr)
{
    (void)a;
    (void)value;
    (void)reterr;
    return OK; /* args_read_flag handles --help */
}

static enum errc flags_set_service(struct kubectl_args *a, struct str value, struct err *reterr)
{
    struct str namespace;
    struct str name;
    if (!str_cut(value, '/', &namespace, &name) || namespace.n == 0 || name.n == 0 ||
        memchr(name.p, '/', name.n) != NULL)
        return flags_must_be(reterr, value, "NAMESPACE/NAME");
    a->service_namespace = namespace;
    a->service_name = name;
    return OK;
}

static enum errc flags_set_dialects(struct kubectl_args *a, struct str value, struct err *reterr)
{
    struct str bad;
    if (dialects_parse(value, &a->dialects, &bad))
        return OK;
    return err_set(reterr, ERR_RANGE, "\"%.*s\" must be names of dialects, as \"%.*s,%.*s\"",
                   STR_ARG(value), STR_ARG(dialect_facts(DIALECT_GPUSHARE)->name),
                   STR_ARG(dialect_facts(DIALECT_VOLCANO)->name));
}

static enum errc flags_set_replicas(struct kubectl_args *a, struct str value, struct err *reterr)
{
    uint64_t n = 0;
    if (!str_to_u64(value, LIMIT_WHATIF_REPLICAS, &n) || n == 0)
        return err_set(reterr, ERR_RANGE, "\"%.*s\" must be a number from 1 to %d", STR_ARG(value),
                       LIMIT_WHATIF_REPLICAS);
    a->replicas = (uint32_t)n;
    return OK;
}

/* As kubectl's --request-timeout: "30s", "2m", "500ms", or seconds. */
static bool flags_read_time(struct str value, uint64_t *ret_ms)
{
    uint64_t n = 0;
    uint64_t unit = 1000;
    struct str digits = value;
    if (str_ends(value, STR("ms")))
        unit = 1;
    else if (str_ends(value, STR("m")))
        unit = 60000;
    else if (str_ends(value, STR("h")))
        unit = 3600000;
    while (digits.n > 0 && (digits.p[digits.n - 1] < '0' || digits.p[digits.n - 1] > '9'))
        digits.n--;
    struct str tail = str_skip(value, digits.n);
    bool known = tail.n == 0 || str_eq(tail, STR("s")) || str_eq(tail, STR("ms")) ||
                 str_eq(tail, STR("m")) || str_eq(tail, STR("h"));
    if (!known || !str_to_u64(digits, 1000000, &n))
        return false;
    *ret_ms = n * unit;
    return true;
}

static enum errc flags_set_timeout(struct kubectl_args *a, struct str value, struct err *reterr)
{
    if (!flags_read_time(value, &a->timeout_ms))
        return flags_must_be(reterr, value, "a time: 30s, 2m, 500ms, or 0 for no limit");
    a->timeout_given = true;
    return OK;
}

static enum errc flags_set_watch(struct kubectl_args *a, struct str value, struct err *reterr)
{
    return flags_set_bool(value, &a->watch, reterr);
}

static enum errc flags_set_interval(struct kubectl_args *a, struct str value, struct err *reterr)
{
    uint64_t ms = 0;
    if (!flags_read_time(value, &ms) || ms < INTERVAL_MIN_MS)
        return flags_must_be(reterr, value, "a time of 100ms or more: 5s, 1m");
    a->interval_ms = ms;
    return OK;
}

static enum errc flags_set_sort(struct kubectl_args *a, struct str value, struct err *reterr)
{
    const char *words[KUBECTL_SORTS - 1];
    unsigned i = 0;
    for (unsigned by = 1; by < KUBECTL_SORTS; by++)
        words[by - 1] = order_name((enum kubectl_sort)by);
    enum errc code = flags_set_word(words, COUNT_OF(words), value, &i, reterr);
    a->sort = (enum kubectl_sort)(i + 1);
    return code;
}

static const struct kubectl_flag flags[] = {
    {"--output", "-o", KUBECTL_ARG_OUTPUT, CONNECTING, "FORMAT",
     "table, wide, json, yaml, name, or for top gpushare: its own table (default table)",
     flags_set_output},
    {"--namespace", "-n", KUBECTL_ARG_NAMESPACE, A_POD | LISTING, "NAMESPACE",
     "namespace of the pods (default: the context's, then \"default\")", set_namespace},
    {"--all-namespaces", "-A", KUBECTL_ARG_NONE, LISTING, NULL, "pods of all namespaces",
     flags_set_all_namespaces},
    {"--selector", "-l", KUBECTL_ARG_TEXT, LISTING, "SELECTOR",
     "labels of the pods: app=x, app!=x, 'app in (x, y)', 'app notin (x)', app, '!app'",
     set_selector},
    {"--filename", "-f", KUBECTL_ARG_FILE, A_POD, "FILE",
     "file with a Pod, or with an object that creates pods, in YAML or JSON; -: standard input",
     set_filename},
    {"--replicas", NULL, KUBECTL_ARG_NUMBER, BIT(KUBECTL_FIT), "N",
     "number of replicas (default: the file's spec.replicas or spec.parallelism, then 1)",
     flags_set_replicas},
    {"--no-headers", NULL, KUBECTL_ARG_NONE, PRINTING, NULL,
     "print only the rows of the table, for scripts", flags_set_no_headers},
    {"--sort-by", NULL, KUBECTL_ARG_SORT, FIGURES | LISTING, "COLUMN",
     "top: name, used, free, pods; cards: node, used, free, pods; pods: name, node, memory, age; "
     "largest number first, oldest first",
     flags_set_sort},
    {"--watch", "-w", KUBECTL_ARG_NONE, FIGURES | LISTING, NULL,
     "ask again after each --interval, and print the answer if it has changed, until Ctrl-C",
     flags_set_watch},
    {"--interval", NULL, KUBECTL_ARG_DURATION, FIGURES | LISTING, "TIME",
     "with --watch: time between two requests (default " INTERVAL_DEFAULT ")", flags_set_interval},
    {"--color", NULL, KUBECTL_ARG_COLOR, PRINTING, "WHEN",
     "auto (on a terminal, unless NO_COLOR is set), always or never (default auto)",
     flags_set_color},
    {"--direct", NULL, KUBECTL_ARG_NONE, REACHING, NULL,
     "read only from the API server; --direct=false: only from the daemon", flags_set_direct},
    {"--dialects", NULL, KUBECTL_ARG_TEXT, PRINTING, "LIST",
     "what this program reads of the API server: the dialects of cardpack's setting (default all)",
     flags_set_dialects},
    {"--service", NULL, KUBECTL_ARG_TEXT, REACHING, "NAMESPACE/NAME",
     "Service of the daemon (default kube-system/cardpack)", flags_set_service},
    {"--daemon-url", NULL, KUBECTL_ARG_TEXT, REACHING, "URL",
     "address of the daemon, used without kubectl: https, or http on this machine", set_daemon_url},
    {"--kubeconfig", NULL, KUBECTL_ARG_FILE, CONNECTING, "FILE",
     "kubeconfig file (default: those of KUBECONFIG, then ~/.kube/config)", set_kubeconfig},
    {"--context", NULL, KUBECTL_ARG_TEXT, CONNECTING, "NAME",
     "context of the kubeconfig (default: its current context)", set_context},
    {"--cluster", NULL, KUBECTL_ARG_TEXT, CONNECTING, "NAME",
     "cluster of the kubeconfig (default: the context's)", set_cluster},
    {"--user", NULL, KUBECTL_ARG_TEXT, CONNECTING, "NAME",
     "user of the kubeconfig (default: the context's)", set_user},
    {"--as", NULL, KUBECTL_ARG_TEXT, CONNECTING, "USER", "user to impersonate", set_as},
    {"--as-group", NULL, KUBECTL_ARG_TEXT, CONNECTING, "GROUP",
     "group to impersonate; may be repeated", set_as_group},
    {"--token", NULL, KUBECTL_ARG_TEXT, CONNECTING, "TOKEN", "bearer token for the API server",
     set_token},
    {"--tls-server-name", NULL, KUBECTL_ARG_TEXT, CONNECTING, "NAME",
     "expected name in the API server's certificate (default: its host)", set_tls_server_name},
    {"--insecure-skip-tls-verify", NULL, KUBECTL_ARG_NONE, CONNECTING, NULL,
     "do not verify the API server's certificate", flags_set_insecure},
    {"--server", "-s", KUBECTL_ARG_TEXT, CONNECTING, "URL",
     "address of the API server, used without kubectl: https, or http on this machine", set_server},
    {"--certificate-authority", NULL, KUBECTL_ARG_FILE, CONNECTING, "FILE",
     "with --server or --daemon-url: the CA that signed its certificate",
     set_certificate_authority},
    {"--token-file", NULL, KUBECTL_ARG_FILE, CONNECTING, "FILE",
     "with --server or --daemon-url: file with the bearer token", set_token_file},
    {"--request-timeout", NULL, KUBECTL_ARG_DURATION, CONNECTING, "TIME",
     "time limit of each request (default " TIMEOUT_DEFAULT "); 0: no limit", flags_set_timeout},
    {"--help", "-h", KUBECTL_ARG_NONE, ~0U, NULL, "print this text", flags_set_help},
};

static const struct kubectl_verb verbs[] = {
    [KUBECTL_TOP] =
        {"top", "", "usage of every node and its cards",
         "The table is at most 100 columns wide: long names are cut, and where there are many "
         "cards\nor large numbers, a card has its usage in percent. -o wide cuts nothing.",
         0},
    [KUBECTL_CARDS] = {"cards", "[NODE]", "each card of a node, or of all nodes, and its pods",
                       NULL, 1},
    [KUBECTL_PODS] =
        {"pods", "[-A] [-l SELECTOR]", "the pods that use cards or ask for them",
         "MEMORY is in the unit of aliyun.com/gpu-mem. REASON is what the scheduler says "
         "of a\npending pod.",
         0},
    [KUBECTL_EXPLAIN] = {"explain", "POD | -f FILE",
                         "on which nodes a pod fits, and why not on the others",
                         "The exit status is 3 if the pod has no node and fits on none.", 1},
    [KUBECTL_FIT] = {"fit", "-f FILE [--replicas N]", "how many replicas of a pod would fit now",
                     "The exit status is 3 if fewer replicas fit than requested.", 0},
    [KUBECTL_DOCTOR] = {"doctor", "", "check the cluster from its nodes to its pods",
                        "Each line has what is right (OK), doubtful (WARN) or wrong (FAIL), and "
                        "what to do.\nThe exit status is 1 if a line is FAIL. With --daemon-url "
                        "cardpack is called there, and\nthe API server as by every other command.",
                        0},
    [KUBECTL_COMPLETION] = {"completion", "bash|zsh|fish", "print a completion script for a shell",
                            NULL, 1},
    [KUBECTL_VERSION] = {"version", "", "versions of this program and of the daemon", NULL, 0},
    [KUBECTL_HELP] = {"help", "[COMMAND]", "print this text, or the help of a command", NULL, 1},
};

const struct kubectl_flag *kubectl_flags(size_t *ret_n)
{
    *ret_n = COUNT_OF(flags);
    return flags;
}

const struct kubectl_verb *kubectl_verb(enum kubectl_command c)
{
    assert((size_t)c < COUNT_OF(verbs));
    return &verbs[c];
}

const struct kubectl_flag *kubectl_flag_find(struct str name)
{
    for (size_t i = 0; i < COUNT_OF(flags); i++) {
        if (str_eq(name, str_of(flags[i].name)) ||
            (flags[i].letter != NULL && str_eq(name, str_of(flags[i].letter))))
            return &flags[i];
    }
    return NULL;
}

bool kubectl_verb_find(struct str name, enum kubectl_command *ret)
{
    for (size_t i = 0; i < COUNT_OF(verbs); i++) {
        if (str_eq(name, str_of(verbs[i].name))) {
            *ret = (enum kubectl_command)i;
            return true;
        }
    }
    if (str_eq(name, STR("__complete"))) {
        *ret = KUBECTL_COMPLETE;
        return true;
    }
    return false;
}

static void flags_put_flags(struct buf *out, unsigned commands)
{
    buf_put(out, STR("\nFlags:\n"));
    for (size_t i = 0; i < COUNT_OF(flags); i++) {
        const struct kubectl_flag *f = &flags[i];
        char name[64];
        struct buf b = BUF_ON(name);
        if ((f->commands & commands) == 0)
            continue;
        if (f->letter != NULL)
            buf_printf(&b, "%s, ", f->letter);
        buf_printf(&b, "%s%s%s", f->name, f->value == NULL ? "" : " ",
                   f->value == NULL ? "" : f->value);
        buf_printf(out, "  %-32.*s %s\n", (int)b.n, b.p, f->text);
    }
}

static void flags_usage_of_all(struct buf *out)
{
    buf_put(out, STR("kubectl cardpack shows the usage of shared GPU cards, and why a pod stays "
                     "Pending. It changes nothing.\n\nCommands:\n"));
    for (size_t i = 0; i < COUNT_OF(verbs); i++) {
        char name[64];
        struct buf b = BUF_ON(name);
        buf_printf(&b, "%s%s%s", verbs[i].name, verbs[i].usage[0] == '\0' ? "" : " ",
                   verbs[i].usage);
        buf_printf(out, "  %-32.*s %s\n", (int)b.n, b.p, verbs[i].text);
    }
    flags_put_flags(out, ~0U);
    buf_put(out, STR("\nExit status: 0 on success, 1 after an error or if doctor finds one, 2 if "
                     "the command line is not "
                     "valid,\n3 if explain or fit find no room.\n"));
}

void kubectl_usage(struct buf *out, enum kubectl_command c)
{
    if (c == KUBECTL_HELP) {
        flags_usage_of_all(out);
        return;
    }
    const struct kubectl_verb *v = kubectl_verb(c);
    buf_printf(out, "kubectl cardpack %s%s%s\n%s.\n", v->name, v->usage[0] == '\0' ? "" : " ",
               v->usage, v->text);
    if (v->more != NULL)
        buf_printf(out, "%s\n", v->more);
    flags_put_flags(out, BIT(c));
}
