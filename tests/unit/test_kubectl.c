/* kubectl-cardpack: its command line, its files of pods, and its shell completion. */
#include "base/limit.h"
#include "kubectl/complete.h"
#include "kubectl/pod.h"
#include "kubectl/show.h"
#include "report/table.h"
#include "unit.h"

#include <stdio.h>

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
    {"k pods --daemon-url http://127.0.0.1:1", ERR_SYNTAX, "pods takes no --daemon-url"},
    {"k pods --direct", ERR_SYNTAX, "pods takes no --direct"},
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
     "--output: \"xml\" must be table, wide, json, yaml or gpushare"},
    {"k top -o gpushare", OK, NULL},
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

START_TEST(line)
{
    struct kubectl_args a;
    ck_assert_msg(parse(lines[_i].line, &a) == lines[_i].code, "%s: %s", lines[_i].line, err.text);
    if (lines[_i].says != NULL)
        ck_assert_msg(strstr(err.text, lines[_i].says) != NULL, "%s", err.text);
}

END_TEST

START_TEST(values)
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

END_TEST

/* In the order of the command line, so that a repeated flag means what it means for kubectl. */
START_TEST(passed)
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

END_TEST

START_TEST(too_many_passed)
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

END_TEST

/* Usage on no card is not a card's, and lowers what is free. A card of 139 is in GiB. */
START_TEST(top_of_node)
{
    struct kubectl_look look = {.wide = true, .heads = true};
    struct str answer =
        STR("{\"nodes\": [{\"name\": \"n\", \"totalGPU\": 278, \"usedGPU\": 210, \"devs\": ["
            "{\"id\": 0, \"totalGPU\": 139, \"usedGPU\": 0, \"freeGPU\": 139},"
            "{\"id\": 1, \"totalGPU\": 139, \"usedGPU\": 0, \"state\": \"cordoned\"},"
            "{\"id\": -1, \"usedGPU\": 210, \"state\": \"none\"}]}]}");
    ck_assert_ok(kubectl_show_top(answer, look, &arena, &out, &err), &err);
    const char *text = buf_cstr(&out);
    ck_assert_msg(strstr(text, "GPU Memory(GiB)") != NULL, "%s", text);
    ck_assert_msg(strstr(text, "   75%     68        68      0") != NULL, "%s", text);
    ck_assert_msg(strstr(text, "1 of 2 cards closed\n") != NULL, "%s", text);
}

END_TEST

/* Nodes with n_cards cards of that size, and one pod's usage on each. */
static struct str answer_of(const char *const *names, size_t n, unsigned n_cards, long size)
{
    struct buf b;
    buf_init(&b, MIB);
    for (size_t i = 0; i < n; i++) {
        buf_printf(&b, "%s{\"name\": \"%s\", \"totalGPU\": %ld, \"usedGPU\": %ld, \"devs\": [",
                   i == 0 ? "{\"nodes\": [" : ", ", names[i], n_cards * size, size / 2);
        for (unsigned k = 0; k < n_cards; k++)
            buf_printf(&b, "%s{\"id\": %u, \"totalGPU\": %ld, \"usedGPU\": %ld}",
                       k == 0 ? "" : ", ", k, size, k == 0 ? size / 2 : 0);
        buf_put(&b, STR("]}"));
    }
    buf_put(&b, STR("]}"));
    return arena_keep(&arena, &b);
}

static const char long_name[] = "ip-10-0-112-231.eu-west-1.compute.internal";

/* Cards and size of a card; the row of the node with the long name in the default table. */
static const struct {
    unsigned cards;
    long size;
    const char *head;
    const char *row;
} budgets[] = {
    {2, 16, "GPU0   GPU1   MEMORY(GiB)\n",
     "\nip-10-0-112-231.eu-west-1.compute.internal   8/16   0/16   8/32\n"},
    {8, 80, "GPU7   MEMORY(GiB)\n",
     "\nip-10-0-112-23\xe2\x80\xa6mpute.internal   40/80   0/80   0/80   0/80   0/80   0/80   0/80 "
     "  "
     "0/80   40/640\n"},
    {8, 81920, "GPU7   MEMORY(MiB)\n",
     "\nip-10-0-112-23\xe2\x80\xa6mpute.internal   50%    0%     0%     0%     0%     0%     0%    "
     " 0%  "
     "   40960/655360\n"},
    {16, 16, "GPU8   MEMORY(GiB)\n",
     "\nip-10-0-112\xe2\x80\xa6te.internal   50%    0%     0%     0%     0%     0%     0%     0%   "
     "  0% "
     "    8/256\n"},
};

/* The default table has at most 100 columns; the others cut nothing and have every card. */
START_TEST(width_of_top)
{
    static const char *const names[] = {"n", long_name};
    struct str answer = answer_of(names, 2, budgets[_i].cards, budgets[_i].size);
    struct kubectl_look look = {.heads = true};
    ck_assert_ok(kubectl_show_top(answer, look, &arena, &out, &err), &err);
    const char *text = buf_cstr(&out);
    ck_assert_msg(strstr(text, budgets[_i].head) != NULL, "%s", text);
    ck_assert_msg(strstr(text, budgets[_i].row) != NULL, "%s", text);
    for (struct str one, rest = buf_str(&out); rest.n > 0;) {
        (void)str_cut(rest, '\n', &one, &rest);
        ck_assert_msg(text_width(one) <= 100, "%.*s", STR_ARG(one));
    }
    bool said =
        strstr(text, "\nSome cards are in no column: see kubectl cardpack cards.\n") != NULL;
    ck_assert(said == (budgets[_i].cards == 16));
    static const struct kubectl_look full[] = {
        {.wide = true, .heads = true}, {.gpushare = true, .heads = true}, {.heads = false}};
    for (size_t i = 0; i < COUNT_OF(full); i++) {
        char cell[128];
        (void)snprintf(cell, sizeof(cell), "%s   %ld/%ld", long_name, budgets[_i].size / 2,
                       budgets[_i].size);
        buf_clear(&out, 0);
        ck_assert_ok(kubectl_show_top(answer, full[i], &arena, &out, &err), &err);
        text = buf_cstr(&out);
        ck_assert_msg(strstr(text, cell) != NULL, "%s", text);
        (void)snprintf(cell, sizeof(cell), "GPU%u(Allocated/Total)", budgets[_i].cards - 1);
        ck_assert_msg((strstr(text, cell) != NULL) == full[i].heads, "%s", text);
    }
}

END_TEST

/* A new pod gets no more than the node has left. If that is less than the cards have, both are
 * printed. */
START_TEST(cards_of_narrow_node)
{
    struct kubectl_look look = {.wide = true, .heads = true};
    struct str answer =
        STR("{\"nodes\": [{\"name\": \"n\", \"totalGPU\": 32, \"usedGPU\": 18, \"freeGPU\": 3, "
            "\"devs\": [{\"id\": 0, \"totalGPU\": 16, \"usedGPU\": 9, \"freeGPU\": 7},"
            "{\"id\": 1, \"totalGPU\": 16, \"usedGPU\": 14, \"freeGPU\": 2}]},"
            "{\"name\": \"wide\", \"totalGPU\": 16, \"usedGPU\": 0, \"freeGPU\": 16, \"devs\": ["
            "{\"id\": 0, \"totalGPU\": 16, \"usedGPU\": 0, \"freeGPU\": 16}]}]}");
    ck_assert_ok(kubectl_show_cards(answer, look, &arena, &out, &err), &err);
    const char *text = buf_cstr(&out);
    static const char *const rows[] = {
        "NODE   CARD   SIZE(GiB)   USED   FREE   COMPUTE",
        "n         0          16      9      3        0%",
        "n         1          16     14      2        0%",
        "wide      0          16      0     16        0%",
        "   UNUSED   PODS\n",
        "        7   -\n",
        "\nn: its cards have 9 free, of which the node leaves 3 for new pods\n",
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        ck_assert_msg(strstr(text, rows[i]) != NULL, "%s is not in\n%s", rows[i], text);
    ck_assert_ptr_null(strstr(text, "wide: its cards"));
    buf_clear(&out, 0);
    ck_assert_ok(kubectl_show_top(answer, look, &arena, &out, &err), &err);
    text = buf_cstr(&out);
    ck_assert_msg(strstr(text, "18/32              56%      3         3") != NULL, "%s", text);
}

END_TEST

/* An answer of explain with that pod and that error; it fits on no node. */
#define EXPLAINED(pod, error)                                                          \
    "{\"pod\": {\"namespace\": \"ns\", \"name\": \"p\", " pod                          \
    "}, \"request\": {\"text\": \"8\"}, "                                              \
    "\"error\": \"" error                                                              \
    "\", \"nodes\": 1, \"fit\": 0, \"refused\": {}, \"verdicts\": [{\"node\": \"n\", " \
    "\"fits\": false, \"reason\": \"no room\"}]}"
#define REFUSED(more) "\"state\": \"pending\", \"condition\": {\"status\": \"False\"" more "}"

static const struct {
    const char *answer;
    const char *text;
    bool fits;
} explained[] = {
    {EXPLAINED("\"state\": \"pending\"", ""),
     "pod ns/p, pending, asks for 8: it fits on 0 of 1 node\n"
     "NODE   FITS   PLACE   REASON\nn      no     -       no room\n",
     false},
    {EXPLAINED(REFUSED(", \"reason\": \"Unschedulable\", \"message\": \"0/1\\u001b\""), ""),
     "pod ns/p, pending, asks for 8: it fits on 0 of 1 node\n"
     "NODE   FITS   PLACE   REASON\nn      no     -       no room\nthe scheduler says: 0/1\\x1b\n",
     false},
    {EXPLAINED(REFUSED(", \"reason\": \"SchedulingGated\""), "bad"),
     "pod ns/p, pending: its request can't be read: bad\nthe scheduler says: SchedulingGated\n",
     false},
    {EXPLAINED(
         "\"state\": \"bound\", \"node\": \"n\", \"placement\": [{\"card\": 0, \"memory\": 8}, "
         "{\"card\": 2, \"memory\": 8, \"compute\": 30}], \"condition\": {\"status\": \"True\", "
         "\"since\": \"2026-11-22T05:40:00Z\", \"message\": \"x\"}",
         ""),
     "pod ns/p, bound on node n since 2026-11-22T05:40:00Z, asks for 8\n"
     "NODE   PLACE\nn      0:8 2:8(30%)\n",
     true},
    {EXPLAINED("\"state\": \"bound\", \"node\": \"n\", \"placement\": []", "bad"),
     "pod ns/p, bound on node n: its request can't be read: bad\nNODE   PLACE\nn      -\n", true},
    {EXPLAINED(
         "\"state\": \"reserved\", \"node\": \"n\", \"placement\": [{\"card\": 0, \"memory\": 8}], "
         "\"condition\": {\"status\": \"False\", \"since\": \"2026-11-22T05:40:00Z\"}",
         ""),
     "pod ns/p, reserved on node n, asks for 8\nNODE   PLACE\nn      0:8\n", true},
    {EXPLAINED("\"state\": \"ended\", \"node\": \"n\"", ""),
     "pod ns/p, ended on node n, asks for 8\n", true},
};

/* Where a bound pod is; one reason for all nodes once; what the scheduler says of a pending pod. */
START_TEST(explained_pod)
{
    struct kubectl_look look = {.heads = true};
    struct str answer = str_of(explained[_i].answer);
    bool fits = !explained[_i].fits;
    ck_assert_ok(kubectl_show_explain(answer, look, &arena, &out, &err), &err);
    ck_assert_str_eq(buf_cstr(&out), explained[_i].text);
    ck_assert_ok(kubectl_answer_fits(answer, KUBECTL_EXPLAIN, &arena, &fits, &err), &err);
    ck_assert(fits == explained[_i].fits);
}

END_TEST

/* Every flag and command has a line of help; what a command does not accept has none. */
START_TEST(usage)
{
    size_t n = 0;
    const struct kubectl_flag *flags = kubectl_flags(&n);
    kubectl_usage(&out, KUBECTL_HELP);
    for (size_t i = 0; i < n; i++)
        ck_assert_msg(strstr(buf_cstr(&out), flags[i].name) != NULL, "%s", flags[i].name);
    buf_clear(&out, 0);
    kubectl_usage(&out, KUBECTL_TOP);
    ck_assert_ptr_null(strstr(buf_cstr(&out), "--replicas"));
    ck_assert_ptr_nonnull(strstr(buf_cstr(&out), "--no-headers"));
}

END_TEST

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

START_TEST(pod)
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

END_TEST

/* ---- completion ---- */

static const struct {
    const char *line; /* a space at its end: the word to complete is empty */
    const char *offered;
} tabs[] = {
    {"to", "top\n:4\n"},
    {"top -o ", "table\nwide\njson\nyaml\ngpushare\n:4\n"},
    {"cards -o ", "table\nwide\njson\nyaml\n:4\n"},
    {"top -o j", "json\n:4\n"},
    {"top --output=j", "--output=json\n:4\n"},
    {"top --output = j", "json\n:4\n"}, /* as bash splits it */
    {"top --output =", "table\nwide\njson\nyaml\ngpushare\n:4\n"},
    {"top --no", "--no-headers\n:4\n"},
    {"top --rep", ":4\n"},
    {"po", "pods\n:4\n"},
    {"pods --all", "--all-namespaces\n:4\n"},
    {"pods --sel", "--selector\n:4\n"},
    {"pods -l ", ":4\n"},
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

START_TEST(tab)
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

END_TEST

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
    {"explain -nns tr", KUBECTL_POD_NAMES, "tr", "", "ns"},
    {"explain --namespace=ns ", KUBECTL_POD_NAMES, "", "", "ns"},
    {"explain --namespace = ns ", KUBECTL_POD_NAMES, "", "", "ns"},
    {"pods -n n", KUBECTL_NAMESPACE_NAMES, "n", "", NULL},
    {"explain -n n", KUBECTL_NAMESPACE_NAMES, "n", "", NULL},
    {"explain --namespace=n", KUBECTL_NAMESPACE_NAMES, "n", "--namespace=", NULL},
    {"explain --namespace = n", KUBECTL_NAMESPACE_NAMES, "n", "", NULL},
    {"fit --namespace = ", KUBECTL_NAMESPACE_NAMES, "", "", NULL},
};

START_TEST(wish)
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

END_TEST

int main(void)
{
    Suite *s = suite_create("kubectl");
    TCase *t = tcase_create("kubectl");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_loop_test(t, line, 0, (int)COUNT_OF(lines));
    tcase_add_test(t, values);
    tcase_add_test(t, passed);
    tcase_add_loop_test(t, too_many_passed, 0, 2);
    tcase_add_test(t, usage);
    tcase_add_test(t, top_of_node);
    tcase_add_loop_test(t, width_of_top, 0, (int)COUNT_OF(budgets));
    tcase_add_test(t, cards_of_narrow_node);
    tcase_add_loop_test(t, explained_pod, 0, (int)COUNT_OF(explained));
    tcase_add_loop_test(t, pod, 0, (int)COUNT_OF(pods));
    tcase_add_loop_test(t, tab, 0, (int)COUNT_OF(tabs));
    tcase_add_loop_test(t, wish, 0, (int)COUNT_OF(wishes));
    suite_add_tcase(s, t);
    return unit_main(s);
}
