/* Configuration from flags, the environment and the file: which one counts, and refusals. */
#include "daemon/config/config.h"

#include "daemon/config/config_table.h"
#include "fail_alloc.h"
#include "unit.h"

#include <stdio.h>

#define MAX_ARGS 8

/* Reads the only file that exists. */
static enum errc read_fake(void *ctx, struct str path, struct buf *out, struct err *reterr)
{
    if (ctx == NULL || !str_eq(path, STR("f.yaml")))
        return err_set(reterr, ERR_NOTFOUND, "%.*s: No such file or directory", STR_ARG(path));
    buf_put(out, str_of(ctx));
    return buf_failed(out) ? err_set(reterr, ERR_NOMEM, "out of memory") : OK;
}

/* args: words with one space between. The words are freed before this returns. */
static enum errc parse_with(const char *args, const struct config_env *env, const char *file,
                            struct config *ret, struct err *err)
{
    char words[512];
    char file_text[4096];
    char *argv[MAX_ARGS + 2] = {words};
    int argc = 1;
    (void)snprintf(words, sizeof(words), "cardpack %s", args);
    (void)snprintf(file_text, sizeof(file_text), "%s", file == NULL ? "" : file);
    for (char *p = words; *p != '\0'; p++) {
        if (*p != ' ')
            continue;
        *p = '\0';
        if (p[1] != '\0')
            argv[argc++] = p + 1;
    }
    ck_assert_int_le(argc, MAX_ARGS);
    enum errc code =
        config_parse(argc, argv, env, read_fake, file == NULL ? NULL : file_text, ret, err);
    memset(words, '#', sizeof(words));
    memset(file_text, '#', sizeof(file_text));
    return code;
}

static const struct config_env no_env;

TEST(defaults)
{
    struct err err = ERR_INIT;
    struct config c;
    ck_assert_ok(parse_with("", &no_env, NULL, &c, &err), &err);
    ck_assert_str_is(c.listen_address, "127.0.0.1");
    ck_assert_uint_eq(c.port, 39999);
    ck_assert(!c.allow_plain_http);
    ck_assert_str_is(c.tls_cert_file, "");
    ck_assert_str_is(c.tls_key_file, "");
    ck_assert_str_is(c.client_ca_file, "");
    ck_assert_str_is(c.client_names, "");
    ck_assert_str_is(c.token_file, "");
    ck_assert_str_is(c.probe_address, "127.0.0.1");
    ck_assert_uint_eq(c.probe_port, 0);
    ck_assert_str_is(c.kubeconfig, "");
    ck_assert_str_is(c.cluster, "");
    ck_assert_int_eq(c.log_level, LOG_LEVEL_INFO);
    ck_assert_int_eq(c.log_format, CONFIG_LOG_FORMAT_AUTO);
    ck_assert_uint_eq(c.max_body, 128 * MIB);
    ck_assert_uint_eq(c.max_connections, 1000);
    ck_assert_uint_eq(c.request_timeout_ms, 30000);
    ck_assert_uint_eq(c.bind_timeout_ms, 25000);
    ck_assert_uint_eq(c.list_page_size, 500);
    ck_assert_uint_eq(c.start_settle_ms, 8000);
    ck_assert_uint_eq(c.shutdown_grace_ms, 25000);
    ck_assert_uint_eq(c.shutdown_delay_ms, 0);
    ck_assert_int_eq(c.action, CONFIG_RUN);
    ck_assert_ptr_null(c.file.p);
    for (size_t i = 0; i < CONFIG_ROW_COUNT; i++)
        ck_assert_int_eq(c.sources[i], CONFIG_FROM_DEFAULT);
    config_done(&c);
}

static const struct config_env env_all = {
    .port = {"1111", 4},
    .log_level = {"warn", 4},
    .kubeconfig = {"/env/k", 6},
};

static const struct config_env env_pod = {
    .pod_name = {"cardpack-a", 10},
    .pod_namespace = {"kube-system", 11},
    .pod_uid = {"0b5c-1", 6},
};

static const struct {
    const char *args;
    const struct config_env *env;
    const char *file;
    const char *printed;
    enum config_row row;
    enum config_source source;
} settings[] = {
    {"--port 1", &no_env, NULL, "1", CONFIG_ROW_port, CONFIG_FROM_FLAG},
    {"--port=1", &no_env, NULL, "1", CONFIG_ROW_port, CONFIG_FROM_FLAG},
    {"--port 1 --port 2", &no_env, NULL, "2", CONFIG_ROW_port, CONFIG_FROM_FLAG},
    {"", &env_all, NULL, "1111", CONFIG_ROW_port, CONFIG_FROM_ENVIRONMENT},
    {"", &env_all, NULL, "warn", CONFIG_ROW_log_level, CONFIG_FROM_ENVIRONMENT},
    {"", &env_all, NULL, "\"/env/k\"", CONFIG_ROW_kubeconfig, CONFIG_FROM_ENVIRONMENT},
    {"", &env_pod, NULL, "\"cardpack-a\"", CONFIG_ROW_pod_name, CONFIG_FROM_ENVIRONMENT},
    {"", &env_pod, NULL, "\"kube-system\"", CONFIG_ROW_pod_namespace, CONFIG_FROM_ENVIRONMENT},
    {"", &env_pod, NULL, "\"0b5c-1\"", CONFIG_ROW_pod_uid, CONFIG_FROM_ENVIRONMENT},
    {"--pod-name p", &env_pod, NULL, "\"p\"", CONFIG_ROW_pod_name, CONFIG_FROM_FLAG},
    {"--config f.yaml", &no_env, "port: 2222", "2222", CONFIG_ROW_port, CONFIG_FROM_FILE},
    {"--config=f.yaml", &no_env, "port: '2222'", "2222", CONFIG_ROW_port, CONFIG_FROM_FILE},
    {"--config f.yaml", &no_env, "{\"port\": 2222}", "2222", CONFIG_ROW_port, CONFIG_FROM_FILE},
    {"--config f.yaml", &no_env, "", "39999", CONFIG_ROW_port, CONFIG_FROM_DEFAULT},
    {"--config f.yaml", &env_all, "port: 2222", "1111", CONFIG_ROW_port, CONFIG_FROM_ENVIRONMENT},
    {"--config f.yaml --port 3", &env_all, "port: 2222", "3", CONFIG_ROW_port, CONFIG_FROM_FLAG},
    {"--config f.yaml", &no_env, "kubeconfig: \"/a\\u0020b\"", "\"/a b\"", CONFIG_ROW_kubeconfig,
     CONFIG_FROM_FILE},
    {"--config f.yaml", &no_env, "max-body: 65536", "64KiB", CONFIG_ROW_max_body, CONFIG_FROM_FILE},
    {"--kubeconfig=", &env_all, NULL, "\"\"", CONFIG_ROW_kubeconfig, CONFIG_FROM_FLAG},
    {"--kubeconfig /a=b", &no_env, NULL, "\"/a=b\"", CONFIG_ROW_kubeconfig, CONFIG_FROM_FLAG},
    {"--kubeconfig=/a=b", &no_env, NULL, "\"/a=b\"", CONFIG_ROW_kubeconfig, CONFIG_FROM_FLAG},
    {"--listen-address ::1", &no_env, NULL, "\"::1\"", CONFIG_ROW_listen_address, CONFIG_FROM_FLAG},
    {"--listen-address :: --allow-plain-http=true", &no_env, NULL, "\"::\"",
     CONFIG_ROW_listen_address, CONFIG_FROM_FLAG},
    {"--probe-address ::", &no_env, NULL, "\"::\"", CONFIG_ROW_probe_address, CONFIG_FROM_FLAG},
    {"--log-format json", &no_env, NULL, "json", CONFIG_ROW_log_format, CONFIG_FROM_FLAG},
    {"--bind-timeout 1m", &no_env, NULL, "1m", CONFIG_ROW_bind_timeout_ms, CONFIG_FROM_FLAG},
    {"--leader-elect=false", &no_env, NULL, "false", CONFIG_ROW_leader_elect, CONFIG_FROM_FLAG},
    {"--leader-elect false", &no_env, NULL, "false", CONFIG_ROW_leader_elect, CONFIG_FROM_FLAG},
    {"--evict-for-cards true --port 1", &no_env, NULL, "true", CONFIG_ROW_evict_for_cards,
     CONFIG_FROM_FLAG},
    {"--evict-for-cards true --port 1", &no_env, NULL, "1", CONFIG_ROW_port, CONFIG_FROM_FLAG},
    {"--node-policy spread", &no_env, NULL, "spread", CONFIG_ROW_node_policy, CONFIG_FROM_FLAG},
    {"--config f.yaml", &no_env, "shortlist: 10", "10", CONFIG_ROW_shortlist, CONFIG_FROM_FILE},
    /* A cluster file comes before the environment's kubeconfig. */
    {"--cluster c", &env_all, NULL, "\"c\"", CONFIG_ROW_cluster, CONFIG_FROM_FLAG},
    {"--cluster c", &env_all, NULL, "\"\"", CONFIG_ROW_kubeconfig, CONFIG_FROM_DEFAULT},
    {"--config f.yaml", &env_all, "cluster: c", "\"\"", CONFIG_ROW_kubeconfig, CONFIG_FROM_DEFAULT},
};

TEST_EACH(setting, COUNT_OF(settings))
{
    struct err err = ERR_INIT;
    struct config c;
    struct buf out;
    enum config_row row = settings[_i].row;
    buf_init(&out, 256);
    ck_assert_ok(parse_with(settings[_i].args, settings[_i].env, settings[_i].file, &c, &err),
                 &err);
    struct config_value v = config_get(&c, row);
    config_value_print(config_table[row].type, &v, &out);
    ck_assert_str_is(buf_str(&out), settings[_i].printed);
    ck_assert_int_eq(c.sources[row], settings[_i].source);
    buf_done(&out);
    config_done(&c);
}

static const struct {
    const char *args;
    enum config_action action;
} actions[] = {
    {"", CONFIG_RUN},
    {"--help", CONFIG_HELP},
    {"-h", CONFIG_HELP},
    {"--version", CONFIG_VERSION},
    {"--version --help", CONFIG_HELP},
    {"--help --version", CONFIG_HELP},
    {"--check-config", CONFIG_CHECK},
    {"--check-config --version", CONFIG_VERSION},
    {"--version --check-config", CONFIG_VERSION},
    /* Nothing after it is read. */
    {"--help --config gone.yaml", CONFIG_HELP},
    {"--version --port x", CONFIG_VERSION},
};

TEST_EACH(action, COUNT_OF(actions))
{
    struct err err = ERR_INIT;
    struct config c;
    ck_assert_ok(parse_with(actions[_i].args, &no_env, NULL, &c, &err), &err);
    ck_assert_int_eq(c.action, actions[_i].action);
    config_done(&c);
}

static const struct config_env env_bad_port = {.port = {"http", 4}};
static const struct config_env env_bad_level = {.log_level = {"loud", 4}};
static const struct config_env env_list = {.kubeconfig = {"/a:/b", 5}};
static const struct config_env env_empty = {.port = {"", 0}};

static const struct {
    const char *args;
    const struct config_env *env;
    const char *file;
    const char *error; /* NULL: valid */
} errors[] = {
    {"", &env_empty, NULL, NULL},
    {"--port 99999", &no_env, NULL, "flag --port: \"99999\": must be 0 to 65535"},
    {"--shortlist 10001", &no_env, NULL, "flag --shortlist: \"10001\": must be 0 to 10000"},
    {"--port=", &no_env, NULL, "flag --port: \"\": must be a number"},
    {"--port", &no_env, NULL, "flag --port: its value is missing"},
    {"--port --help", &no_env, NULL, "flag --port: its value is missing"},
    {"--leader-elect", &no_env, NULL,
     "flag --leader-elect: its value is missing: write --leader-elect=true or "
     "--leader-elect=false"},
    {"--evict-for-cards --port 1", &no_env, NULL,
     "flag --evict-for-cards: its value is missing: write --evict-for-cards=true or "
     "--evict-for-cards=false"},
    {"--leader-elect no", &no_env, NULL, "flag --leader-elect: \"no\": must be true or false"},
    {"--leader-elect=", &no_env, NULL, "flag --leader-elect: \"\": must be true or false"},
    {"--prot 1", &no_env, NULL, "unknown flag --prot, did you mean --port?"},
    {"--listenaddress=::", &no_env, NULL,
     "unknown flag --listenaddress, did you mean --listen-address?"},
    {"--check_config", &no_env, NULL, "unknown flag --check_config, did you mean --check-config?"},
    {"--frobnicate", &no_env, NULL, "unknown flag --frobnicate; --help lists all"},
    {"--a-name-that-is-longer-than-any-name-that-there-is", &no_env, NULL,
     "unknown flag --a-name-that-is-longer-than-any-name-that-there-is; --help lists all"},
    {"--help=yes", &no_env, NULL, "flag --help takes no value"},
    {"--config=", &no_env, NULL, "flag --config: its value is empty"},
    {"port 1", &no_env, NULL, "unexpected argument \"port\"; --help lists all"},
    {"-p 1", &no_env, NULL, "unexpected argument \"-p\"; --help lists all"},
    {"--", &no_env, NULL, "unexpected argument \"--\"; --help lists all"},
    {"--cluster a --kubeconfig b", &no_env, NULL,
     "cluster (flag: \"a\") and kubeconfig (flag: \"b\") exclude each other"},
    {"--cluster a --config f.yaml", &no_env, "kubeconfig: b",
     "cluster (flag: \"a\") and kubeconfig (file: \"b\") exclude each other"},
    {"--leader-elect-lease-duration 9s500ms", &no_env, NULL,
     "leader-elect-lease-duration: must be whole seconds, not 9500ms"},
    {"--leader-elect-lease-duration 9s", &no_env, NULL, NULL},
    {"--leader-elect-lease-duration 8s", &no_env, NULL,
     "leader-elect-renew-deadline (6000ms) must be two thirds of leader-elect-lease-duration "
     "(8000ms) at most"},
    {"--leader-elect-retry-period 3s1ms", &no_env, NULL,
     "leader-elect-retry-period (3001ms) must be half of leader-elect-renew-deadline (6000ms) at "
     "most"},
    {"--leader-elect-resource-name Card", &no_env, NULL,
     "flag --leader-elect-resource-name: \"Card\": must be a name of lower-case letters, digits, "
     "'-' and '.'"},
    {"--listen-address 0.0.0.0", &no_env, NULL,
     "listen-address (flag: \"0.0.0.0\") is not loopback, and the port speaks plain HTTP: set "
     "tls-cert-file and tls-key-file, or allow-plain-http where every client that reaches the "
     "port may bind pods"},
    {"--config f.yaml", &no_env, "listen-address: \"::\"\n",
     "listen-address (file: \"::\") is not loopback, and the port speaks plain HTTP: set "
     "tls-cert-file and tls-key-file, or allow-plain-http where every client that reaches the "
     "port may bind pods"},
    {"--tls-cert-file c", &no_env, NULL,
     "tls-cert-file (flag: \"c\") needs tls-key-file, which is not set"},
    {"--tls-key-file k", &no_env, NULL,
     "tls-key-file (flag: \"k\") needs tls-cert-file, which is not set"},
    {"--client-ca-file a", &no_env, NULL,
     "client-ca-file (flag: \"a\") needs tls-cert-file, which is not set"},
    {"--tls-cert-file c --tls-key-file k --client-names n", &no_env, NULL,
     "client-names (flag: \"n\") needs client-ca-file, which is not set"},
    {"--tls-cert-file c --tls-key-file k --listen-address ::", &no_env, NULL, NULL},
    {"--token-file t", &no_env, NULL, NULL},
    {"--token-file t --listen-address :: --allow-plain-http=true", &no_env, NULL,
     "token-file (flag: \"t\") needs tls-cert-file where listen-address (\"::\") is not loopback: "
     "the token would travel in the clear"},
    {"--client-names a,,b", &no_env, NULL,
     "flag --client-names: \"a,,b\": must be names with one comma between each two, or empty"},
    {"", &env_bad_port, NULL, "environment PORT: \"http\": must be a number"},
    {"--port 1", &env_bad_port, NULL, "environment PORT: \"http\": must be a number"},
    {"", &env_bad_level, NULL,
     "environment LOG_LEVEL: \"loud\": must be debug, info, warn or error"},
    {"", &env_list, NULL, "environment KUBECONFIG: \"/a:/b\": lists several files; name one"},
    {"--config g.yaml", &no_env, "", "config file: g.yaml: No such file or directory"},
    {"--config f.yaml", &no_env, "prot: 1",
     "config file \"f.yaml\": prot: unknown key, did you mean \"port\"?"},
    {"--config f.yaml", &no_env, "listenAddress: 1",
     "config file \"f.yaml\": listenAddress: unknown key, did you mean \"listen-address\"?"},
    {"--config f.yaml", &no_env, "config: 1", "config file \"f.yaml\": config: unknown key"},
    {"--config f.yaml", &no_env, "apiVersion: v1\n",
     "config file \"f.yaml\": apiVersion: unknown key"},
    {"--config f.yaml", &no_env, "port: 017",
     "config file \"f.yaml\": line 1, column 7: \"017\" begins with a zero, which YAML may read as "
     "octal: leave the zero out"},
    {"--config f.yaml", &no_env, "port: 99999",
     "config file \"f.yaml\": port: \"99999\": must be 0 to 65535"},
    {"--config f.yaml", &no_env, "port: 1\nport: 2\n",
     "config file \"f.yaml\": line 2, column 1: the key \"port\" is there already, on line 1"},
    {"--config f.yaml", &no_env, "{\"port\": 1, \"p\\u006frt\": 2}",
     "config file \"f.yaml\": port: the key is there twice"},
    {"--config f.yaml", &no_env, "port:\n", "config file \"f.yaml\": port: has no value"},
    {"--config f.yaml", &no_env, "port: [1]",
     "config file \"f.yaml\": port: expected a single value"},
    {"--config f.yaml", &no_env, "request-timeout: 30",
     "config file \"f.yaml\": request-timeout: \"30\": must be a duration such as 30s, 1m30s or "
     "500ms"},
    {"--config f.yaml", &no_env, "log-level: true",
     "config file \"f.yaml\": log-level: \"true\": must be debug, info, warn or error"},
    {"--config f.yaml", &no_env, "- port: 1",
     "config file \"f.yaml\": expected an object, got a list at offset 0"},
    {"--config f.yaml", &no_env, "port: 1\n x: 2\n",
     "config file \"f.yaml\": line 2, column 3: mapping values are not allowed in this context"},
};

TEST_EACH(error, COUNT_OF(errors))
{
    struct err err = ERR_INIT;
    struct config c = {.port = 7};
    enum errc code = parse_with(errors[_i].args, errors[_i].env, errors[_i].file, &c, &err);
    if (errors[_i].error == NULL) {
        ck_assert_ok(code, &err);
        config_done(&c);
        return;
    }
    ck_assert_str_eq(err.text, errors[_i].error);
    ck_assert(code != OK);
    ck_assert_int_eq(err.code, code);
    ck_assert_uint_eq(c.port, 7);
}

static bool contains(struct buf *text, const char *part)
{
    const char *z = buf_cstr(text);
    return z != NULL && strstr(z, part) != NULL;
}

/* Makes all settings of b come from the file, as in a. */
static void alike_but_for_sources(struct config *a, struct config *b)
{
    struct buf first;
    struct buf second;
    buf_init(&first, 4096);
    buf_init(&second, 4096);
    for (size_t i = 0; i < CONFIG_ROW_COUNT; i++) {
        a->sources[i] = CONFIG_FROM_DEFAULT;
        ck_assert_int_eq(b->sources[i], CONFIG_FROM_FILE);
        b->sources[i] = CONFIG_FROM_DEFAULT;
    }
    config_print(a, &first);
    config_print(b, &second);
    ck_assert(!buf_failed(&first) && str_eq(buf_str(&first), buf_str(&second)));
    buf_done(&first);
    buf_done(&second);
}

static const char printed[] = "listen-address: \"::\" # flag\n"
                              "port: 1111 # environment\n"
                              "allow-plain-http: true # file\n"
                              "tls-cert-file: \"\"\n"
                              "tls-key-file: \"\"\n"
                              "client-ca-file: \"\"\n"
                              "client-names: \"\"\n"
                              "token-file: \"\"\n"
                              "probe-address: \"127.0.0.1\"\n"
                              "probe-port: 0\n"
                              "kubeconfig: \"/env/k\" # environment\n"
                              "cluster: \"\"\n"
                              "log-level: warn # environment\n"
                              "log-format: auto\n"
                              "max-body: 1000000 # file\n"
                              "memory-budget: 256MiB\n"
                              "max-connections: 1000\n"
                              "request-timeout: 30s\n"
                              "bind-timeout: 1s500ms # file\n"
                              "list-page-size: 500\n"
                              "start-settle: 8s\n"
                              "leader-elect: true\n"
                              "leader-elect-lease-duration: 10s\n"
                              "leader-elect-renew-deadline: 6s\n"
                              "leader-elect-retry-period: 2s\n"
                              "leader-elect-resource-name: \"cardpack\"\n"
                              "leader-elect-resource-namespace: \"\"\n"
                              "pod-name: \"\"\n"
                              "pod-namespace: \"\"\n"
                              "pod-uid: \"\"\n"
                              "shrink-after-init: false\n"
                              "node-policy: bid-price\n"
                              "card-policy: binpack\n"
                              "dialects: gpushare\n"
                              "card-resources: \"\"\n"
                              "swap-guard: prefer\n"
                              "dra: auto\n"
                              "shortlist: 0\n"
                              "evict-for-cards: false\n"
                              "evict-for-cards-after: 30s\n"
                              "evict-for-cards-keep: 2m\n"
                              "placed-events: false\n"
                              "metrics-nodes: 5000\n"
                              "shutdown-grace: 0s # flag\n"
                              "shutdown-delay: 0s\n";

TEST(print_reads_back)
{
    struct err err = ERR_INIT;
    struct config c;
    struct config again;
    struct buf first;
    buf_init(&first, 4096);
    ck_assert_ok(parse_with("--config f.yaml --listen-address :: --shutdown-grace 0", &env_all,
                            "max-body: 1000000\nbind-timeout: 1500ms\nallow-plain-http: true", &c,
                            &err),
                 &err);
    config_print(&c, &first);
    size_t whole = first.n;
    ck_assert(contains(&first, "\n# live ("));
    first.n = (size_t)(strstr(buf_cstr(&first), "# live (") - first.p); /* without the comments */
    ck_assert_str_is(buf_str(&first), printed);
    first.p[first.n] = '#';
    first.n = whole;
    ck_assert_ok(parse_with("--config f.yaml", &no_env, buf_cstr(&first), &again, &err), &err);
    alike_but_for_sources(&c, &again);
    buf_done(&first);
    config_done(&c);
    config_done(&again);
}

TEST(usage_names_every_row)
{
    struct buf usage;
    buf_init(&usage, 64 * KIB);
    config_usage(&usage);
    for (size_t i = 0; i < CONFIG_ROW_COUNT; i++) {
        char flag[64];
        (void)snprintf(flag, sizeof(flag), "\n  --%s %s\n", config_table[i].name,
                       config_type_name(config_table[i].type));
        ck_assert_msg(contains(&usage, flag), "no %s", flag);
    }
    ck_assert(contains(&usage, "(default 39999; environment PORT;\n      restart)\n"));
    ck_assert(contains(&usage, "(default none; file)\n"));
    ck_assert(contains(&usage, "(default 25s; restart)\n"));
    ck_assert(contains(&usage, " live)\n"));
    for (struct str line, rest = buf_str(&usage); rest.p != NULL;) {
        (void)str_cut(rest, '\n', &line, &rest);
        ck_assert_uint_le(line.n, 80);
    }
    buf_done(&usage);
}

/* config/cardpack.yaml must contain every key with its default, commented out, and nothing else. */
TEST(example_is_the_table)
{
    const char *root = getenv("CARDPACK_SOURCE");
    struct err err = ERR_INIT;
    struct config c;
    struct buf text;
    char path[4096];
    ck_assert_msg(root != NULL, "CARDPACK_SOURCE is not set: run it through meson test");
    (void)snprintf(path, sizeof(path), "%s/config/cardpack.yaml", root);
    buf_init(&text, LIMIT_FILE_BYTES);
    buf_putc(&text, '\n');
    ck_assert_ok(config_read_file(NULL, str_of(path), &text, &err), &err);
    ck_assert_ok(parse_with("", &no_env, NULL, &c, &err), &err);
    for (size_t i = 0; i < CONFIG_ROW_COUNT; i++) {
        struct config_value v = config_get(&c, (enum config_row)i);
        struct buf line;
        buf_init(&line, 256);
        buf_printf(&line, ".\n%s: ", config_table[i].name);
        config_value_print(config_table[i].type, &v, &line);
        buf_putc(&line, '\n');
        ck_assert_msg(contains(&text, buf_cstr(&line)), "no%s", buf_cstr(&line));
        buf_done(&line);
    }
    config_done(&c);
    char *argv[] = {path, path + 0};
    (void)snprintf(path, sizeof(path), "--config=%s/config/cardpack.yaml", root);
    ck_assert_ok(config_parse(2, argv, &no_env, config_read_file, NULL, &c, &err), &err);
    for (size_t i = 0; i < CONFIG_ROW_COUNT; i++)
        ck_assert_int_eq(c.sources[i], CONFIG_FROM_FILE);
    config_done(&c);
    buf_done(&text);
}

TEST(no_memory)
{
    bool hit = true;
    for (size_t nth = 1; hit; nth++) {
        for (int mode = FAIL_ONCE; mode <= FAIL_FROM_THEN_ON; mode++) {
            struct config c;
            fail_alloc_arm((enum fail_alloc_mode)mode, nth);
            enum errc code = parse_with("--config f.yaml --port 1", &env_all,
                                        "max-body: 1MiB\ncluster: \"\\u0061\"\n", &c, NULL);
            hit = fail_alloc_hit();
            fail_alloc_disarm();
            ck_assert_msg((code != OK) == hit, "allocation %zu: %s", nth, errc_name(code));
            if (code == OK)
                config_done(&c);
        }
    }
}
