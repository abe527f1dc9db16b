/* The tables of commands and flags for args.h, and the help text made from them. */
#include "kubectl/args.h"

#include "core/limit.h"

#define BIT(command) (1U << (command))
#define FIGURES      (BIT(KUBECTL_TOP) | BIT(KUBECTL_CARDS))
#define PODS         (BIT(KUBECTL_EXPLAIN) | BIT(KUBECTL_FIT))
#define ASKING       (FIGURES | PODS)
#define REACHING     (ASKING | BIT(KUBECTL_VERSION))

#define TIMEOUT_DEFAULT "30s"

static enum errc must_be(struct err *e, struct str value, const char *what)
{
    return err_set(e, ERR_RANGE, "\"%.*s\" must be %s", STR_ARG(value), what);
}

static enum errc set_text(struct str *field, struct str value, struct err *e)
{
    if (value.n == 0)
        return must_be(e, value, "not empty");
    *field = value;
    return OK;
}

#define TEXT_SETTER(field)                                                                     \
    static enum errc set_##field(struct kubectl_args *a, struct str value, struct err *reterr) \
    {                                                                                          \
        return set_text(&a->field, value, reterr);                                             \
    }

TEXT_SETTER(namespace)
TEXT_SETTER(context)
TEXT_SETTER(kubeconfig)
TEXT_SETTER(server)
TEXT_SETTER(certificate_authority)
TEXT_SETTER(token_file)
TEXT_SETTER(daemon_url)
TEXT_SETTER(filename)

static enum errc set_word(const char *const *words, size_t n, struct str value, unsigned *ret,
                          struct err *e)
{
    char bytes[128];
    struct buf all = {.p = bytes, .cap = sizeof(bytes), .max = sizeof(bytes) - 1};
    for (size_t i = 0; i < n; i++) {
        if (str_eq(value, str_of(words[i]))) {
            *ret = (unsigned)i;
            return OK;
        }
        buf_printf(&all, "%s%s", i == 0 ? "" : i + 1 < n ? ", " : " or ", words[i]);
    }
    bytes[all.n] = '\0';
    return must_be(e, value, bytes);
}

static enum errc set_output(struct kubectl_args *a, struct str value, struct err *reterr)
{
    static const char *const words[] = {"table", "wide", "json", "yaml"};
    unsigned i = 0;
    enum errc code = set_word(words, COUNT_OF(words), value, &i, reterr);
    a->output = (enum kubectl_output)i;
    return code;
}

static enum errc set_color(struct kubectl_args *a, struct str value, struct err *reterr)
{
    static const char *const words[] = {"auto", "always", "never"};
    unsigned i = 0;
    enum errc code = set_word(words, COUNT_OF(words), value, &i, reterr);
    a->color = (enum kubectl_color)i;
    return code;
}

static enum errc set_bool(struct str value, bool *ret, struct err *e)
{
    static const char *const words[] = {"false", "true"};
    unsigned i = 0;
    enum errc code = set_word(words, COUNT_OF(words), value, &i, e);
    *ret = i == 1;
    return code;
}

static enum errc set_no_headers(struct kubectl_args *a, struct str value, struct err *reterr)
{
    return set_bool(value, &a->no_headers, reterr);
}

static enum errc set_direct(struct kubectl_args *a, struct str value, struct err *reterr)
{
    bool direct = false;
    enum errc code = set_bool(value, &direct, reterr);
    a->way = direct ? KUBECTL_DIRECT : KUBECTL_DAEMON_ONLY;
    return code;
}

static enum errc set_help(struct kubectl_args *a, struct str value, struct err *reterr)
{
    (void)a;
    (void)value;
    (void)reterr;
    return OK; /* read_flag handles --help */
}

static enum errc set_service(struct kubectl_args *a, struct str value, struct err *reterr)
{
    struct str namespace;
    struct str name;
    if (!str_cut(value, '/', &namespace, &name) || namespace.n == 0 || name.n == 0 ||
        memchr(name.p, '/', name.n) != NULL)
        return must_be(reterr, value, "NAMESPACE/NAME");
    a->service_namespace = namespace;
    a->service_name = name;
    return OK;
}

static enum errc set_replicas(struct kubectl_args *a, struct str value, struct err *reterr)
{
    uint64_t n = 0;
    if (!str_to_u64(value, LIMIT_WHATIF_REPLICAS, &n) || n == 0)
        return err_set(reterr, ERR_RANGE, "\"%.*s\" must be a number from 1 to %d", STR_ARG(value),
                       LIMIT_WHATIF_REPLICAS);
    a->replicas = (uint32_t)n;
    return OK;
}

/* As kubectl's --request-timeout: "30s", "2m", or seconds; 0: no timeout. */
static enum errc set_timeout(struct kubectl_args *a, struct str value, struct err *reterr)
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
        return must_be(reterr, value, "a time: 30s, 2m, 500ms, or 0 for no limit");
    a->timeout_ms = n * unit;
    return OK;
}

static const struct kubectl_flag flags[] = {
    {"--output", "-o", KUBECTL_ARG_OUTPUT, REACHING, "FORMAT",
     "table, wide, json or yaml (default table)", set_output},
    {"--namespace", "-n", KUBECTL_ARG_NAMESPACE, PODS, "NAMESPACE",
     "of the pod (default: the context's, then \"default\")", set_namespace},
    {"--filename", "-f", KUBECTL_ARG_FILE, PODS, "FILE",
     "a Pod, or what makes pods of a template, in YAML or JSON; - is standard input", set_filename},
    {"--replicas", NULL, KUBECTL_ARG_NUMBER, BIT(KUBECTL_FIT), "N",
     "so many pods (default: the file's spec.replicas or spec.parallelism, then 1)", set_replicas},
    {"--no-headers", NULL, KUBECTL_ARG_NONE, ASKING, NULL, "rows of the table alone, for scripts",
     set_no_headers},
    {"--color", NULL, KUBECTL_ARG_COLOR, ASKING, "WHEN",
     "auto (on a terminal, unless NO_COLOR is set), always or never", set_color},
    {"--direct", NULL, KUBECTL_ARG_NONE, REACHING, NULL,
     "read the API server alone; --direct=false never does that", set_direct},
    {"--service", NULL, KUBECTL_ARG_TEXT, REACHING, "NAMESPACE/NAME",
     "the daemon's Service (default kube-system/cardpack)", set_service},
    {"--daemon-url", NULL, KUBECTL_ARG_TEXT, REACHING, "URL",
     "the daemon's own address instead: https, or http on this machine", set_daemon_url},
    {"--kubeconfig", NULL, KUBECTL_ARG_FILE, REACHING, "FILE",
     "instead of $KUBECONFIG and ~/.kube/config", set_kubeconfig},
    {"--context", NULL, KUBECTL_ARG_TEXT, REACHING, "NAME", "of the kubeconfig", set_context},
    {"--server", "-s", KUBECTL_ARG_TEXT, REACHING, "URL",
     "the API server, without a kubeconfig: as kubectl proxy has it", set_server},
    {"--certificate-authority", NULL, KUBECTL_ARG_FILE, REACHING, "FILE",
     "with --server or --daemon-url: the CA that signed its certificate",
     set_certificate_authority},
    {"--token-file", NULL, KUBECTL_ARG_FILE, REACHING, "FILE",
     "with --server or --daemon-url: the bearer token", set_token_file},
    {"--request-timeout", NULL, KUBECTL_ARG_DURATION, REACHING, "TIME",
     "of each request (default " TIMEOUT_DEFAULT "); 0: none", set_timeout},
    {"--help", "-h", KUBECTL_ARG_NONE, ~0U, NULL, "this text", set_help},
};

static const struct kubectl_verb verbs[] = {
    [KUBECTL_TOP] = {"top", "", "every node: what its cards hold", NULL, 0},
    [KUBECTL_CARDS] = {"cards", "[NODE]", "each card of a node, or of all, and its pods", NULL, 1},
    [KUBECTL_EXPLAIN] = {"explain", "POD | -f FILE", "where a pod fits, and why not elsewhere",
                         "The exit status is 3 where it fits on no node.", 1},
    [KUBECTL_FIT] = {"fit", "-f FILE [--replicas N]", "how many replicas of a pod would fit now",
                     "The exit status is 3 where fewer fit than were asked for.", 0},
    [KUBECTL_COMPLETION] = {"completion", "bash|zsh|fish", "a script that completes commands", NULL,
                            1},
    [KUBECTL_VERSION] = {"version", "", "of this program and of the daemon", NULL, 0},
    [KUBECTL_HELP] = {"help", "[COMMAND]", "this text, or a command's", NULL, 1},
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

static void put_flags(struct buf *out, unsigned commands)
{
    buf_put(out, STR("\nFlags:\n"));
    for (size_t i = 0; i < COUNT_OF(flags); i++) {
        const struct kubectl_flag *f = &flags[i];
        char name[64];
        struct buf b = {.p = name, .cap = sizeof(name), .max = sizeof(name) - 1};
        if ((f->commands & commands) == 0)
            continue;
        if (f->letter != NULL)
            buf_printf(&b, "%s, ", f->letter);
        buf_printf(&b, "%s%s%s", f->name, f->value == NULL ? "" : " ",
                   f->value == NULL ? "" : f->value);
        buf_printf(out, "  %-32.*s %s\n", (int)b.n, b.p, f->text);
    }
}

static void usage_of_all(struct buf *out)
{
    buf_put(out, STR("kubectl cardpack shows what shared GPU cards hold, and why a pod waits. It "
                     "changes nothing.\n\nCommands:\n"));
    for (size_t i = 0; i < COUNT_OF(verbs); i++) {
        char name[64];
        struct buf b = {.p = name, .cap = sizeof(name), .max = sizeof(name) - 1};
        buf_printf(&b, "%s%s%s", verbs[i].name, verbs[i].usage[0] == '\0' ? "" : " ",
                   verbs[i].usage);
        buf_printf(out, "  %-32.*s %s\n", (int)b.n, b.p, verbs[i].text);
    }
    put_flags(out, ~0U);
    buf_put(out, STR("\nExit status: 0, 1 after an error, 2 for a command line that can't be "
                     "meant,\n3 where explain or fit find no room.\n"));
}

void kubectl_usage(struct buf *out, enum kubectl_command c)
{
    if (c == KUBECTL_HELP) {
        usage_of_all(out);
        return;
    }
    const struct kubectl_verb *v = kubectl_verb(c);
    buf_printf(out, "kubectl cardpack %s%s%s\n%s.\n", v->name, v->usage[0] == '\0' ? "" : " ",
               v->usage, v->text);
    if (v->more != NULL)
        buf_printf(out, "%s\n", v->more);
    put_flags(out, BIT(c));
}
