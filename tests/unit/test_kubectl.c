/* kubectl-cardpack: its command line, its files of pods, and its shell completion. */
#include "base/limit.h"
#include "kubectl/complete.h"
#include "kubectl/pod_file.h"
#include "unit.h"

#define WORDS_MAX 12

static struct arena arena;
static struct buf out;
static struct err err;

static void setup(void)
{
    arena_init(&arena, 64 * MIB);
    buf_init(&out, MIB);
    err = (struct err)ERR_INIT;
}

static void teardown(void)
{
    buf_done(&out);
    arena_done(&arena);
}

/* Splits a line into words; the first is the program's name. */
static int split(const char *line, char *bytes, char *words[static WORDS_MAX])
{
    int n = 0;
    memcpy(bytes, line, strlen(line) + 1);
    for (char *at = bytes; n < WORDS_MAX; at++) {
        words[n++] = at;
        at = strchrnul(at, ' ');
        if (*at == '\0')
            break;
        *at = '\0';
    }
    return n;
}

static const struct {
    const char *line;
    enum errc code;
    const char *says; /* a part of the error */
} lines[] = {
    {"k top", OK, NULL},
    {"k top -o wide", OK, NULL},
    {"k top -owide", OK, NULL},
    {"k top -o=wide", OK, NULL},
    {"k --output=wide top", OK, NULL},
    {"k cards n1 --no-headers --color never", OK, NULL},
    {"k cards -- -n", OK, NULL},
    {"k explain p -n ns", OK, NULL},
    {"k explain -f -", OK, NULL},
    {"k fit -f x --replicas 10000", OK, NULL},
    {"k top --request-timeout 500ms", OK, NULL},
    {"k top --service a/b:web", OK, NULL},
    {"k top --direct=false", OK, NULL},
    {"k help fit", OK, NULL},
    {"k pods -A -l app", OK, NULL},
    {"k pods -n ns --selector=!x -o wide --server http://127.0.0.1:1", OK, NULL},
    {"k pods p", ERR_SYNTAX, "pods: \"p\" is one word too many; it is: pods [-A]"},
    {"k pods -l=", ERR_RANGE, "--selector: \"\" must be not empty"},
    {"k pods --daemon-url http://127.0.0.1:1", ERR_SYNTAX, "pods takes no --daemon-url: it always"},
    {"k pods --direct", ERR_SYNTAX, "never the daemon"},
    {"k top -A", ERR_SYNTAX, "top takes no --all-namespaces"},
    {"k explain p -l x", ERR_SYNTAX, "explain takes no --selector"},
    {"k fit -h", OK, NULL},
    {"k", OK, NULL},
    {"k tops", ERR_SYNTAX, "unknown command \"tops\""},
    {"k top n1", ERR_SYNTAX, "top: \"n1\" is one word too many; it is: top"},
    {"k cards a b", ERR_SYNTAX, "cards: \"b\" is one word too many"},
    {"k top -x", ERR_SYNTAX, "unknown flag \"-x\""},
    {"k top --out wide", ERR_SYNTAX, "unknown flag \"--out\""},
    {"k top -o", ERR_SYNTAX, "--output needs a value"},
    {"k top -o xml", ERR_RANGE,
     "--output: \"xml\" must be table, wide, json, yaml, name or gpushare"},
    {"k top -o gpushare", OK, NULL},
    {"k explain p -o name", OK, NULL},
    {"k cards -o name", ERR_SYNTAX, "cards: --output: \"name\" is for top, pods and explain"},
    {"k fit -f x -o name", ERR_SYNTAX, "\"name\""},
    {"k version -o name", ERR_SYNTAX, "\"name\""},
    {"k top --sort-by used --watch --interval 100ms", OK, NULL},
    {"k pods -w --interval=1m --sort-by=age", OK, NULL},
    {"k top --sort-by age", ERR_SYNTAX, "top is not sorted by age"},
    {"k cards --sort-by name", ERR_SYNTAX, "cards is not sorted by name"},
    {"k pods --sort-by x", ERR_RANGE, "must be name, node, used, free, pods, memory or age"},
    {"k top --interval 99ms", ERR_RANGE, "\"99ms\" must be a time of 100ms or more"},
    {"k top --interval x", ERR_RANGE, "--interval: \"x\""},
    {"k explain p --watch", ERR_SYNTAX, "explain takes no --watch"},
    {"k explain pod/p", OK, NULL},
    {"k explain node/p", ERR_SYNTAX, "explain: \"node/p\" must be NAME or pod/NAME"},
    {"k explain pod/", ERR_SYNTAX, "must be NAME or pod/NAME"},
    {"k cards pod/p", ERR_SYNTAX, "cards: \"pod/p\" must be NAME or node/NAME"},
    {"k cards -o gpushare", ERR_SYNTAX, "cards: --output: \"gpushare\" is for top only"},
    {"k top -o=", ERR_RANGE, "--output: \"\" must be"},
    {"k top --direct=maybe", ERR_RANGE, "--direct: \"maybe\" must be false or true"},
    {"k top --replicas 3", ERR_SYNTAX, "top takes no --replicas"},
    {"k fit -f x --replicas 0", ERR_RANGE, "--replicas: \"0\" must be a number from 1 to 10000"},
    {"k fit -f x --replicas 10001", ERR_RANGE, "\"10001\""},
    {"k fit -f x --replicas 1e3", ERR_RANGE, "\"1e3\""},
    {"k fit", ERR_SYNTAX, "fit: name the pod's file with -f"},
    {"k explain", ERR_SYNTAX, "explain: name a pod, or a file"},
    {"k explain p -f x", ERR_SYNTAX, "and not both"},
    {"k completion", ERR_SYNTAX, "bash, zsh or fish"},
    {"k top --service cardpack", ERR_RANGE, "--service: \"cardpack\" must be NAMESPACE/NAME"},
    {"k top --service a/b/c", ERR_RANGE, "--service"},
    {"k top --request-timeout 3d", ERR_RANGE, "--request-timeout: \"3d\" must be a time"},
    {"k top --request-timeout ms", ERR_RANGE, "\"ms\""},
    {"k top --server x --daemon-url y", ERR_SYNTAX, "exclude each other"},
    {"k top --server x --context y", ERR_SYNTAX, "--server and --context exclude each other"},
    {"k top --token-file x", ERR_SYNTAX, "--token-file needs --server"},
    {"k top --daemon-url x --direct", ERR_SYNTAX, "--daemon-url and --direct exclude"},
    {"k version -o wide", ERR_SYNTAX, "must be table, json or yaml"},
    {"k help nothing", ERR_SYNTAX, "no command \"nothing\""},
};

static enum errc parse(const char *line, struct kubectl_args *ret)
{
    static char bytes[256];
    static char *words[WORDS_MAX];
    int n = split(line, bytes, words);
    return kubectl_args_parse(n, words, ret, &err);
}

TEST_EACH(line, COUNT_OF(lines))
{
    struct kubectl_args a;
    ck_assert_msg(parse(lines[_i].line, &a) == lines[_i].code, "%s: %s", lines[_i].line, err.text);
    if (lines[_i].says != NULL)
        ck_assert_msg(strstr(err.text, lines[_i].says) != NULL, "%s", err.text);
}

TEST(values)
{
    struct kubectl_args a;
    ck_assert_ok(parse("k explain p -n=ns -oyaml --service s/d:web --request-timeout 2m", &a),
                 &err);
    ck_assert(a.command == KUBECTL_EXPLAIN && a.output == KUBECTL_YAML);
    ck_assert_str_is(a.subject, "p");
    ck_assert_str_is(a.namespace, "ns");
    ck_assert_str_is(a.service_namespace, "s");
    ck_assert_str_is(a.service_name, "d:web");
    ck_assert_uint_eq(a.timeout_ms, 120000);
    ck_assert_ok(parse("k pods -A -lapp=x", &a), &err);
    ck_assert(a.command == KUBECTL_PODS && a.all_namespaces);
    ck_assert_str_is(a.selector, "app=x");
    ck_assert_ok(parse("k explain po/p", &a), &err);
    ck_assert_str_is(a.subject, "p");
    ck_assert_ok(parse("k cards nodes/n --sort-by free -w", &a), &err);
    ck_assert(a.sort == KUBECTL_SORT_FREE && a.watch && a.interval_ms == 2000);
    ck_assert_str_is(a.subject, "n");
    ck_assert_ok(parse("k cards -- -n", &a), &err);
    ck_assert_str_is(a.subject, "-n");
    ck_assert_ok(parse("k top --direct", &a), &err);
    ck_assert(a.way == KUBECTL_DIRECT);
    ck_assert_ok(parse("k top --direct=false --request-timeout 7", &a), &err);
    ck_assert(a.way == KUBECTL_DAEMON_ONLY && a.timeout_ms == 7000);
    ck_assert(a.timeout_given);
    ck_assert_ok(parse("k fit --help", &a), &err);
    ck_assert(a.command == KUBECTL_HELP);
    ck_assert_str_is(a.subject, "fit");
}

/* In the order of the command line, so that a repeated flag means what it means for kubectl. */
TEST(passed)
{
    static const char *const expected[] = {
        "--as-group",   "g",  "--insecure-skip-tls-verify",      "--as-group", "h",
        "--kubeconfig", "/f", "--insecure-skip-tls-verify=false"};
    struct kubectl_args a;
    ck_assert_ok(parse("k top --as-group g --insecure-skip-tls-verify --as-group=h --kubeconfig /f "
                       "--insecure-skip-tls-verify=false",
                       &a),
                 &err);
    ck_assert_uint_eq(a.n_passed, COUNT_OF(expected));
    for (size_t i = 0; i < a.n_passed; i++)
        ck_assert_str_eq(a.passed[i], expected[i]);
    ck_assert(!a.timeout_given);
}

TEST_EACH(too_many_passed, 2)
{
    static char texts[][32] = {"--as=u", "--insecure-skip-tls-verify", "top"};
    char *words[2 + COUNT_OF(((struct kubectl_args *)NULL)->passed)];
    struct kubectl_args a;
    size_t n = COUNT_OF(words);
    words[0] = words[1] = texts[2];
    for (size_t i = 2; i < n; i++)
        words[i] = texts[_i];
    enum errc code = kubectl_args_parse((int)n, words, &a, &err);
    ck_assert_int_eq(code, _i == 0 ? ERR_LIMIT : OK);
    ck_assert(_i > 0 || strcmp(err.text, "--as: there are too many flags for kubectl") == 0);
}

/* Every flag and command has a line of help; what a command does not accept has none. */
TEST(usage)
{
    kubectl_usage(&out, KUBECTL_HELP);
    for (size_t i = 0; i < kubectl_cli.n_flags; i++) {
        const char *name = kubectl_cli.flags[i].name;
        ck_assert_msg(strstr(buf_cstr(&out), name) != NULL, "%s", name);
    }
    buf_clear(&out, 0);
    kubectl_usage(&out, KUBECTL_TOP);
    ck_assert_ptr_null(strstr(buf_cstr(&out), "--replicas"));
    ck_assert_ptr_nonnull(strstr(buf_cstr(&out), "--no-headers"));
}

/* ---- pods ---- */

static const struct {
    const char *text;
    const char *asked; /* -n, or NULL */
    const char *json;  /* NULL: an error */
    uint32_t replicas;
    const char *says;
} pods[] = {
    {"metadata: {name: p}\nspec: {a: 1}", NULL,
     "{\"metadata\":{\"namespace\":\"home\",\"name\":\"p\"},\"spec\":{\"a\":1}}", 1, NULL},
    {"kind: Pod\nmetadata: {namespace: x}", NULL,
     "{\"kind\":\"Pod\",\"metadata\":{\"namespace\":\"x\"}}", 1, NULL},
    {"{\"kind\": \"Pod\", \"metadata\": {\"namespace\": \"x\"}}", "x",
     "{\"kind\":\"Pod\",\"metadata\":{\"namespace\":\"x\"}}", 1, NULL},
    {"spec: {a: 1}", "y", "{\"spec\":{\"a\":1},\"metadata\":{\"namespace\":\"y\"}}", 1, NULL},
    {"metadata: null", NULL, "{\"metadata\":{\"namespace\":\"home\"}}", 1, NULL},
    {"kind: Deployment\nmetadata: {namespace: d}\nspec: {replicas: 7, template: {spec: {a: 1}}}",
     NULL, "{\"spec\":{\"a\":1},\"metadata\":{\"namespace\":\"d\"}}", 7, NULL},
    {"kind: Job\nspec: {parallelism: 3, template: {spec: {}}}", NULL,
     "{\"spec\":{},\"metadata\":{\"namespace\":\"home\"}}", 3, NULL},
    {"kind: CronJob\nspec: {jobTemplate: {spec: {parallelism: 2, template: {spec: {}}}}}", NULL,
     "{\"spec\":{},\"metadata\":{\"namespace\":\"home\"}}", 2, NULL},
    {"kind: DaemonSet\nspec: {replicas: 9, template: {}}", NULL,
     "{\"metadata\":{\"namespace\":\"home\"}}", 1, NULL},
    {"kind: Service\n---\nkind: PodTemplate\ntemplate: {}\n---\nkind: Secret", NULL,
     "{\"metadata\":{\"namespace\":\"home\"}}", 1, NULL},
    {"kind: List\nitems:\n- kind: Service\n- kind: Job\n  metadata: {namespace: j}\n"
     "  spec: {parallelism: 4, template: {spec: {a: 1}}}",
     NULL, "{\"spec\":{\"a\":1},\"metadata\":{\"namespace\":\"j\"}}", 4, NULL},
    {"{\"kind\": \"DeploymentList\", \"items\": [{\"spec\": {\"replicas\": 2, \"template\": {}}}]}",
     NULL, "{\"metadata\":{\"namespace\":\"home\"}}", 2, NULL},
    {"kind: Secret\n---\nkind: List\nitems: [{metadata: {namespace: x}}]\n---\nkind: List\nitems: "
     "[]",
     NULL, "{\"metadata\":{\"namespace\":\"x\"}}", 1, NULL},
    {"kind: List\nitems: []", NULL, NULL, 0, "f.yaml: it is empty"},
    {"kind: List\nitems: 3", NULL, NULL, 0, "nothing in it is a Pod or makes pods: List \"\""},
    {"kind: List\nitems: [{kind: List, items: [{kind: Pod}]}]", NULL, NULL, 0, "makes pods: List"},
    {"kind: List\nitems: [3]", NULL, NULL, 0, "must be an object"},
    {"kind: List\nitems: [{kind: Pod, metadata: {name: a}}]\n---\nkind: Job\nmetadata: {name: b}",
     NULL, NULL, 0, "more than one object makes pods: Pod \"a\", Job \"b\""},
    {"", NULL, NULL, 0, "f.yaml: it is empty"},
    {"a: [", NULL, NULL, 0, "f.yaml: line 2"},
    {"[1]", NULL, NULL, 0, "must be an object"},
    {"kind: Service\nmetadata: {name: s}", NULL, NULL, 0, "makes pods: Service \"s\""},
    {"kind: Pod\nmetadata: {name: a}\n---\nkind: Job\nmetadata: {name: b}", NULL, NULL, 0,
     "more than one object makes pods: Pod \"a\", Job \"b\""},
    {"kind: Deployment\nmetadata: {name: d}\nspec: {}", NULL, NULL, 0,
     "Deployment \"d\": spec.template is missing"},
    {"kind: Job\nmetadata: {name: j}\nspec: 3", NULL, NULL, 0, "Job \"j\": spec must be an object"},
    {"kind: Deployment\nmetadata: {name: d}\nspec: {replicas: many, template: {}}", NULL, NULL, 0,
     "Deployment \"d\": spec.replicas: \"many\" must be 1 to 10000"},
    {"kind: Pod\nmetadata: {name: p, namespace: x}", "y", NULL, 0,
     "metadata.namespace is \"x\", and --namespace \"y\""},
    {"kind: Pod\nmetadata: 3", NULL, NULL, 0, "metadata"},
};

TEST_EACH(pod, COUNT_OF(pods))
{
    struct kubectl_pod p;
    struct str asked = pods[_i].asked == NULL ? STR_NULL : str_of(pods[_i].asked);
    enum errc code =
        kubectl_pod_read(str_of(pods[_i].text), STR("f.yaml"), asked, &arena, &p, &err);
    if (code == OK && p.namespace.n == 0)
        code =
            kubectl_pod_read(str_of(pods[_i].text), STR("f.yaml"), STR("home"), &arena, &p, &err);
    if (pods[_i].json == NULL) {
        ck_assert_int_ne(code, OK);
        ck_assert_msg(strstr(err.text, pods[_i].says) != NULL, "%s", err.text);
        return;
    }
    ck_assert_ok(code, &err);
    ck_assert_str_is(p.json, pods[_i].json);
    ck_assert_uint_eq(p.replicas, pods[_i].replicas);
}

/* ---- completion ---- */

static const struct {
    const char *line; /* a space at its end: the word to complete is empty */
    const char *offered;
} tabs[] = {
    {"to", "top\n:4\n"},
    {"top -o ", "table\nwide\njson\nyaml\nname\ngpushare\n:4\n"},
    {"cards -o ", "table\nwide\njson\nyaml\n:4\n"},
    {"top -o j", "json\n:4\n"},
    {"top --output=j", "--output=json\n:4\n"},
    {"top --output = j", "json\n:4\n"}, /* as bash splits it */
    {"top --output =", "table\nwide\njson\nyaml\nname\ngpushare\n:4\n"},
    {"top --no", "--no-headers\n:4\n"},
    {"top --rep", ":4\n"},
    {"po", "pods\n:4\n"},
    {"pods --all", "--all-namespaces\n:4\n"},
    {"pods --sel", "--selector\n:4\n"},
    {"pods -l ", ":4\n"},
    {"pods --sort-by ", "name\nnode\nmemory\nage\n:4\n"},
    {"cards --sort-by=", "--sort-by=node\n--sort-by=used\n--sort-by=free\n--sort-by=pods\n:4\n"},
    {"top --wa", "--watch\n:4\n"},
    {"explain -o n", "name\n:4\n"},
    {"pods ", ":4\n"},
    {"fit --rep", "--replicas\n:4\n"},
    {"fit -f ", ":0\n"},
    {"fit -f x --co", "--color\n--context\n:4\n"},
    {"--color al", "always\n:4\n"},
    {"completion ", "bash\nzsh\nfish\n:4\n"},
    {"completion bash ", ":4\n"},
    {"help f", "fit\n:4\n"},
    {"nonsense ", ":4\n"},
    {"cards n1 ", ":4\n"},
    {"explain p ", ":4\n"},
    {"explain -f x ", ":4\n"},
    {"cards --context ", ":4\n"},
};

/* Removes the descriptions. */
static void strip(struct buf *text)
{
    size_t n = 0;
    bool said = false;
    for (size_t i = 0; i < text->n; i++) {
        said = text->p[i] == '\t' || (said && text->p[i] != '\n');
        if (!said)
            text->p[n++] = text->p[i];
    }
    text->n = n;
}

TEST_EACH(tab, COUNT_OF(tabs))
{
    char bytes[128];
    char *words[WORDS_MAX];
    struct kubectl_wish wish;
    int n = split(tabs[_i].line, bytes, words);
    kubectl_complete(words, n, &wish, &out);
    ck_assert_int_eq(wish.names, KUBECTL_NO_NAMES);
    strip(&out);
    ck_assert_str_is(buf_str(&out), tabs[_i].offered);
}

static const struct {
    const char *line;
    enum kubectl_names names;
    const char *current;
    const char *prefix;
    const char *namespace; /* NULL: not on the line */
} wishes[] = {
    {"cards n", KUBECTL_NODE_NAMES, "n", "", NULL},
    {"cards --no-headers ", KUBECTL_NODE_NAMES, "", "", NULL},
    {"--context x cards ", KUBECTL_NODE_NAMES, "", "", NULL},
    {"explain tr", KUBECTL_POD_NAMES, "tr", "", NULL},
    {"explain -n ns tr", KUBECTL_POD_NAMES, "tr", "", "ns"},
    {"explain -n ns pod/tr", KUBECTL_POD_NAMES, "tr", "pod/", "ns"},
    {"cards node/", KUBECTL_NODE_NAMES, "", "node/", NULL},
    {"explain -nns tr", KUBECTL_POD_NAMES, "tr", "", "ns"},
    {"explain --namespace=ns ", KUBECTL_POD_NAMES, "", "", "ns"},
    {"explain --namespace = ns ", KUBECTL_POD_NAMES, "", "", "ns"},
    {"pods -n n", KUBECTL_NAMESPACE_NAMES, "n", "", NULL},
    {"explain -n n", KUBECTL_NAMESPACE_NAMES, "n", "", NULL},
    {"explain --namespace=n", KUBECTL_NAMESPACE_NAMES, "n", "--namespace=", NULL},
    {"explain --namespace = n", KUBECTL_NAMESPACE_NAMES, "n", "", NULL},
    {"fit --namespace = ", KUBECTL_NAMESPACE_NAMES, "", "", NULL},
};

TEST_EACH(wish, COUNT_OF(wishes))
{
    char bytes[128];
    char *words[WORDS_MAX];
    struct kubectl_wish w;
    int n = split(wishes[_i].line, bytes, words);
    kubectl_complete(words, n, &w, &out);
    ck_assert_int_eq(w.names, wishes[_i].names);
    ck_assert_str_is(w.current, wishes[_i].current);
    ck_assert_str_is(w.prefix, wishes[_i].prefix);
    if (wishes[_i].namespace == NULL)
        ck_assert_ptr_null(w.args.namespace.p);
    else
        ck_assert_str_is(w.args.namespace, wishes[_i].namespace);
    ck_assert_str_is(w.args.service_name, "cardpack");
    ck_assert_uint_eq(out.n, 0);
}

int main(void)
{
    TCase *t = unit_case("kubectl");
    tcase_add_checked_fixture(t, setup, teardown);
    return unit_run();
}
