/* The tables of commands and flags for args.h, and the help text made from them. */
#include "kubectl/args.h"

#include "kubectl/order.h"

#include "core/dialect/card_resources.h"
#include "core/dialect/dialect.h"
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

/* For kubectl: the value comes from the command line, so a NUL follows it. */
static enum errc flags_pass(const struct cli_flag *f, void *args, struct str value,
                            struct err *reterr)
{
    struct kubectl_args *a = args;
    if (value.n == 0)
        return cli_must_be(reterr, value, "not empty");
    if (a->n_passed + 2 > COUNT_OF(a->passed))
        return err_set(reterr, ERR_LIMIT, "there are too many flags for kubectl");
    a->passed[a->n_passed++] = f->name;
    a->passed[a->n_passed++] = value.p;
    return OK;
}

/* kubectl takes the value of a boolean flag only in the same word. */
static enum errc flags_set_insecure(const struct cli_flag *f, void *args, struct str value,
                                    struct err *reterr)
{
    struct kubectl_args *a = args;
    bool insecure = false;
    enum errc code = cli_read_bool(value, &insecure, reterr);
    if (code == OK && a->n_passed == COUNT_OF(a->passed))
        code = err_set(reterr, ERR_LIMIT, "there are too many flags for kubectl");
    if (code == OK)
        a->passed[a->n_passed++] = insecure ? f->name : "--insecure-skip-tls-verify=false";
    return code;
}

static enum errc flags_set_direct(const struct cli_flag *f, void *args, struct str value,
                                  struct err *reterr)
{
    struct kubectl_args *a = args;
    bool direct = false;
    enum errc code = cli_read_bool(value, &direct, reterr);
    (void)f;
    a->way = direct ? KUBECTL_DIRECT : KUBECTL_DAEMON_ONLY;
    return code;
}

static enum errc flags_set_service(const struct cli_flag *f, void *args, struct str value,
                                   struct err *reterr)
{
    struct kubectl_args *a = args;
    struct str namespace;
    struct str name;
    (void)f;
    if (!str_cut(value, '/', &namespace, &name) || namespace.n == 0 || name.n == 0 ||
        memchr(name.p, '/', name.n) != NULL)
        return cli_must_be(reterr, value, "NAMESPACE/NAME");
    a->service_namespace = namespace;
    a->service_name = name;
    return OK;
}

static enum errc flags_set_dialects(const struct cli_flag *f, void *args, struct str value,
                                    struct err *reterr)
{
    struct kubectl_args *a = args;
    struct str bad;
    (void)f;
    if (dialects_parse(value, &a->dialects, &bad))
        return OK;
    char bytes[256];
    struct buf all = BUF_ON(bytes);
    dialects_write(DIALECTS_ALL, &all);
    return err_set(reterr, ERR_RANGE, "\"%.*s\" must be names of dialects, of \"%.*s\"",
                   STR_ARG(value), STR_ARG(buf_str(&all)));
}

static enum errc flags_set_card_resources(const struct cli_flag *f, void *args, struct str value,
                                          struct err *reterr)
{
    struct str bad;
    (void)f;
    (void)args;
    if (!card_resources_check(value, &bad))
        return cli_must_be(reterr, bad, CARD_RESOURCES_EXPECTED);
    card_resources_use(value);
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

static enum errc flags_set_timeout(const struct cli_flag *f, void *args, struct str value,
                                   struct err *reterr)
{
    struct kubectl_args *a = args;
    (void)f;
    if (!flags_read_time(value, &a->timeout_ms))
        return cli_must_be(reterr, value, "a time: 30s, 2m, 500ms, or 0 for no limit");
    a->timeout_given = true;
    return OK;
}

static enum errc flags_set_interval(const struct cli_flag *f, void *args, struct str value,
                                    struct err *reterr)
{
    struct kubectl_args *a = args;
    uint64_t ms = 0;
    (void)f;
    if (!flags_read_time(value, &ms) || ms < INTERVAL_MIN_MS)
        return cli_must_be(reterr, value, "a time of 100ms or more: 5s, 1m");
    a->interval_ms = ms;
    return OK;
}

static enum errc flags_set_sort(const struct cli_flag *f, void *args, struct str value,
                                struct err *reterr)
{
    struct kubectl_args *a = args;
    char bytes[64];
    struct buf words = BUF_ON(bytes);
    unsigned i = 0;
    (void)f;
    for (unsigned by = 1; by < KUBECTL_SORTS; by++)
        buf_printf(&words, "%s%s", by == 1 ? "" : "|", order_name((enum kubectl_sort)by));
    enum errc code = cli_read_word(value, buf_cstr(&words), &i, reterr);
    a->sort = (enum kubectl_sort)(i + 1);
    return code;
}

static const struct cli_flag flags[] = {
    {"--output", "-o", CONNECTING, "FORMAT",
     "table, wide, json, yaml, name, or for top gpushare: its own table (default table)",
     CLI_WORD(struct kubectl_args, output, "table|wide|json|yaml|name|gpushare")},
    {"--namespace", "-n", A_POD | LISTING, "NAMESPACE",
     "namespace of the pods (default: the context's, then \"default\")",
     CLI_TEXT(struct kubectl_args, namespace)},
    {"--all-namespaces", "-A", LISTING, NULL, "pods of all namespaces",
     CLI_BOOL(struct kubectl_args, all_namespaces)},
    {"--selector", "-l", LISTING, "SELECTOR",
     "labels of the pods: app=x, app!=x, 'app in (x, y)', 'app notin (x)', app, '!app'",
     CLI_TEXT(struct kubectl_args, selector)},
    {"--filename", "-f", A_POD, "FILE",
     "file with a Pod, or with an object that creates pods, in YAML or JSON; -: standard input",
     CLI_TEXT(struct kubectl_args, filename)},
    {"--replicas", NULL, BIT(KUBECTL_FIT), "N",
     "number of replicas (default: the file's spec.replicas or spec.parallelism, then 1)",
     CLI_NUMBER(struct kubectl_args, replicas, 1, LIMIT_WHATIF_REPLICAS)},
    {"--no-headers", NULL, PRINTING, NULL, "print only the rows of the table, for scripts",
     CLI_BOOL(struct kubectl_args, no_headers)},
    {"--sort-by", NULL, FIGURES | LISTING, "COLUMN",
     "top: name, used, free, pods; cards: node, used, free, pods; pods: name, node, memory, age; "
     "largest number first, oldest first",
     .set = flags_set_sort},
    {"--watch", "-w", FIGURES | LISTING, NULL,
     "ask again after each --interval, and print the answer if it has changed, until Ctrl-C",
     CLI_BOOL(struct kubectl_args, watch)},
    {"--interval", NULL, FIGURES | LISTING, "TIME",
     "with --watch: time between two requests (default " INTERVAL_DEFAULT ")",
     .set = flags_set_interval},
    {"--color", NULL, PRINTING, "WHEN",
     "auto (on a terminal, unless NO_COLOR is set), always or never (default auto)",
     CLI_WORD(struct kubectl_args, color, "auto|always|never")},
    {"--direct", NULL, REACHING, NULL,
     "read only from the API server; --direct=false: only from the daemon",
     .set = flags_set_direct},
    {"--dialects", NULL, PRINTING, "LIST",
     "what this program reads of the API server: the dialects of cardpack's setting (default all)",
     .set = flags_set_dialects},
    {"--card-resources", NULL, PRINTING, "LIST",
     "the same for the setting card-resources: further resources for cards (default none)",
     .set = flags_set_card_resources},
    {"--service", NULL, REACHING, "NAMESPACE/NAME",
     "Service of the daemon (default kube-system/cardpack)", .set = flags_set_service},
    {"--daemon-url", NULL, REACHING, "URL",
     "address of the daemon, used without kubectl: https, or http on this machine",
     CLI_TEXT(struct kubectl_args, daemon_url)},
    {"--kubeconfig", NULL, CONNECTING, "FILE",
     "kubeconfig file (default: those of KUBECONFIG, then ~/.kube/config)", .set = flags_pass},
    {"--context", NULL, CONNECTING, "NAME",
     "context of the kubeconfig (default: its current context)", .set = flags_pass},
    {"--cluster", NULL, CONNECTING, "NAME", "cluster of the kubeconfig (default: the context's)",
     .set = flags_pass},
    {"--user", NULL, CONNECTING, "NAME", "user of the kubeconfig (default: the context's)",
     .set = flags_pass},
    {"--as", NULL, CONNECTING, "USER", "user to impersonate", .set = flags_pass},
    {"--as-group", NULL, CONNECTING, "GROUP", "group to impersonate; may be repeated",
     .set = flags_pass},
    {"--token", NULL, CONNECTING, "TOKEN", "bearer token for the API server", .set = flags_pass},
    {"--tls-server-name", NULL, CONNECTING, "NAME",
     "expected name in the API server's certificate (default: its host)", .set = flags_pass},
    {"--insecure-skip-tls-verify", NULL, CONNECTING, NULL,
     "do not verify the API server's certificate", .set = flags_set_insecure},
    {"--server", "-s", CONNECTING, "URL",
     "address of the API server, used without kubectl: https, or http on this machine",
     CLI_TEXT(struct kubectl_args, server)},
    {"--certificate-authority", NULL, CONNECTING, "FILE",
     "with --server or --daemon-url: the CA that signed its certificate",
     CLI_TEXT(struct kubectl_args, certificate_authority)},
    {"--token-file", NULL, CONNECTING, "FILE",
     "with --server or --daemon-url: file with the bearer token",
     CLI_TEXT(struct kubectl_args, token_file)},
    {"--request-timeout", NULL, CONNECTING, "TIME",
     "time limit of each request (default " TIMEOUT_DEFAULT "); 0: no limit",
     .set = flags_set_timeout},
    {"--help", "-h", ~0U, NULL, "print this text", .set = NULL},
};

static const struct cli_verb verbs[] = {
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

const struct cli kubectl_cli = {"kubectl cardpack", verbs, COUNT_OF(verbs), flags,
                                COUNT_OF(flags),    32};

bool kubectl_verb_find(struct str name, enum kubectl_command *ret)
{
    unsigned verb = KUBECTL_COMPLETE;
    bool found = cli_find_verb(&kubectl_cli, name, &verb) || str_eq(name, STR("__complete"));
    if (found)
        *ret = (enum kubectl_command)verb;
    return found;
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
    cli_put_flags(&kubectl_cli, ~0U, out);
    buf_put(out, STR("\nExit status: 0 on success, 1 after an error or if doctor finds one, 2 if "
                     "the command line is not "
                     "valid,\n3 if explain or fit find no room.\n"));
}

void kubectl_usage(struct buf *out, enum kubectl_command c)
{
    if (c == KUBECTL_HELP)
        flags_usage_of_all(out);
    else
        cli_put_verb(&kubectl_cli, c, out);
}
