/* The flags and variables of cardpack-node, the errors that name them, and --help as a whole. */
#include "node/settings.h"

#include "unit.h"

#include <stdio.h>

#define ARGS_MAX 14

static enum errc parse(const char *const *args, const struct settings_env *env,
                       struct settings *ret, struct err *e)
{
    char *argv[ARGS_MAX + 1] = {(char[]){"cardpack-node"}};
    static char texts[ARGS_MAX][256];
    int n = 1;
    for (size_t i = 0; args[i] != NULL; i++) {
        (void)snprintf(texts[i], sizeof(texts[i]), "%s", args[i]);
        argv[n++] = texts[i];
    }
    return settings_parse(n, argv, env, ret, e);
}

TEST(defaults)
{
    struct err e = ERR_INIT;
    struct settings s;
    const char *const none[] = {NULL};
    const struct settings_env env = {.node_name = STR("gpu-7")};
    ck_assert_ok(parse(none, &env, &s, &e), &e);
    ck_assert_int_eq(s.action, SETTINGS_RUN);
    ck_assert_str_is(s.node_name, "gpu-7");
    ck_assert_str_is(s.kubelet_dir, "/var/lib/kubelet");
    ck_assert_str_is(s.state, "/var/lib/cardpack-node/cards");
    ck_assert_uint_eq(s.kubeconfig.n + s.nvml.n, 0);
    ck_assert_uint_eq(s.unit_bytes, UINT64_C(1) << 30);
    ck_assert_uint_eq(s.reserve_bytes, 0);
    ck_assert_str_is(s.cards, "all");
    ck_assert_str_is(s.listen, "127.0.0.1");
    ck_assert_uint_eq(s.port, 9410);
    ck_assert_uint_eq(s.cooldown_ms, 300000);
    ck_assert_uint_eq(s.usage_interval_ms, 10000);
    ck_assert_uint_eq(s.usage_write_ms, 60000);
    ck_assert(!s.device_nodes && s.disable.p == NULL && s.enable.p == NULL);
    ck_assert(s.late == SETTINGS_LATE_AUTO && str_eq(s.cdi_dir, STR("/var/run/cdi")));
    ck_assert_int_eq(s.log_level, LOG_LEVEL_INFO);
    ck_assert_int_eq(s.log_format, SETTINGS_LOG_AUTO);
    ck_assert_int_eq(s.isolation, SETTINGS_ISOLATION_AUTO);
    ck_assert_str_is(s.cgroup_root, "/sys/fs/cgroup");
    ck_assert(settings_has_card(&s, 7, STR("GPU-1")));
}

TEST(every_flag)
{
    struct err e = ERR_INIT;
    struct settings s;
    const struct settings_env env = {.node_name = STR("other"),
                                     .kubeconfig = STR("/env"),
                                     .log_level = STR("debug"),
                                     .disable = STR("all"),
                                     .enable = STR("79")};
    const char *const first[] = {
        "--node-name=a.b-1", "--kubeconfig",         "/k", "--kubelet-dir=/d", "--state=",
        "--nvml=/n.so",      "--memory-unit=256MiB", NULL};
    const char *const second[] = {"--reserve-memory=512MiB",
                                  "--card-memory=96GiB",
                                  "--cards=0,2,GPU-5a1f",
                                  "--listen=[::1]:0",
                                  "--cooldown=90s",
                                  "--device-nodes=on",
                                  "--late-binding=off",
                                  "--cdi-dir=/etc/cdi",
                                  "--log-level=warn",
                                  "--log-format=logfmt",
                                  "--isolation=mps",
                                  "--cgroup-root=/host/cg",
                                  "--mps-dir=/m",
                                  NULL};
    ck_assert_ok(parse(first, &env, &s, &e), &e);
    ck_assert_str_is(s.node_name, "a.b-1");
    ck_assert_str_is(s.kubeconfig, "/k");
    ck_assert_str_is(s.kubelet_dir, "/d");
    ck_assert_str_is(s.state, "");
    ck_assert_str_is(s.nvml, "/n.so");
    ck_assert_uint_eq(s.unit_bytes, UINT64_C(256) << 20);
    ck_assert_int_eq(s.log_level, LOG_LEVEL_DEBUG);
    ck_assert_str_is(s.disable, "all");
    ck_assert_str_is(s.enable, "79");
    ck_assert_ok(parse(second, &env, &s, &e), &e);
    ck_assert_str_is(s.node_name, "other");
    ck_assert_str_is(s.kubeconfig, "/env");
    ck_assert_uint_eq(s.reserve_bytes, UINT64_C(512) << 20);
    ck_assert_str_is(s.listen, "::1");
    ck_assert(s.port == 0 && s.cooldown_ms == 90000 && s.device_nodes);
    ck_assert(s.late == SETTINGS_LATE_OFF && str_eq(s.cdi_dir, STR("/etc/cdi")));
    ck_assert_int_eq(s.log_level, LOG_LEVEL_WARN);
    ck_assert_int_eq(s.log_format, SETTINGS_LOG_LOGFMT);
    ck_assert_int_eq(s.isolation, SETTINGS_ISOLATION_MPS);
    ck_assert_str_is(s.cgroup_root, "/host/cg");
    ck_assert_str_is(s.mps_dir, "/m");
    ck_assert(settings_has_card(&s, 0, STR("GPU-x")) && settings_has_card(&s, 9, STR("GPU-5a1f")));
    ck_assert(!settings_has_card(&s, 1, STR("GPU-x")) && !settings_has_card(&s, 9, STR("GPU-5a1")));
}

static const struct {
    const char *flag;
    const char *error;
} bad[] = {
    {"--node-name=Gpu",
     "flag --node-name: \"Gpu\": must be the name of a node: lower-case letters, "
     "digits, '-' and '.'"},
    {"--node-name=", "flag --node-name: \"\": must be the name of a node: lower-case letters, "
                     "digits, '-' and '.'"},
    {"--node-name=a..b", "flag --node-name: \"a..b\": must be the name of a node: lower-case "
                         "letters, digits, '-' and '.'"},
    {"--node-name=a.", "flag --node-name: \"a.\": must be the name of a node: lower-case letters, "
                       "digits, '-' and '.'"},
    {"--kubeconfig=/a:/b", "flag --kubeconfig: \"/a:/b\": must be one file, not several"},
    {"--kubelet-dir=var", "flag --kubelet-dir: \"var\": must be an absolute path"},
    {"--state=cards", "flag --state: \"cards\": must be an absolute path, or empty"},
    {"--memory-unit=3", "flag --memory-unit: \"3\": must be GiB, MiB, or whole MiB such as 256MiB, "
                        "up to 1024GiB"},
    {"--memory-unit=gib", "flag --memory-unit: \"gib\": must be GiB, MiB, or whole MiB such as "
                          "256MiB, up to 1024GiB"},
    {"--memory-unit=1025GiB",
     "flag --memory-unit: \"1025GiB\": must be GiB, MiB, or whole MiB such "
     "as 256MiB, up to 1024GiB"},
    {"--card-memory=96", "flag --card-memory: \"96\": must be whole MiB such as 512MiB, or 0"},
    {"--reserve-memory=1KiB",
     "flag --reserve-memory: \"1KiB\": must be whole MiB such as 512MiB, or 0"},
    {"--cards=", "flag --cards: \"\": must be all, or a list of indices and UUIDs such as "
                 "0,2,GPU-5a1f"},
    {"--cards=0,", "flag --cards: \"0,\": must be all, or a list of indices and UUIDs such as "
                   "0,2,GPU-5a1f"},
    {"--cards=1024", "flag --cards: \"1024\": must be all, or a list of indices and UUIDs such as "
                     "0,2,GPU-5a1f"},
    {"--cards=0, 1", "flag --cards: \"0, 1\": must be all, or a list of indices and UUIDs such as "
                     "0,2,GPU-5a1f"},
    {"--cards=a10", "flag --cards: \"a10\": must be all, or a list of indices and UUIDs such as "
                    "0,2,GPU-5a1f"},
    {"--listen=9410", "flag --listen: \"9410\": must be ADDRESS:PORT, such as 127.0.0.1:9410 or "
                      "[::1]:9410"},
    {"--listen=::1:9410", "flag --listen: \"::1:9410\": must be ADDRESS:PORT, such as "
                          "127.0.0.1:9410 or [::1]:9410"},
    {"--listen=localhost:9410", "flag --listen: \"localhost:9410\": must be ADDRESS:PORT, such as "
                                "127.0.0.1:9410 or [::1]:9410"},
    {"--listen=127.0.0.1:65536",
     "flag --listen: \"127.0.0.1:65536\": must be ADDRESS:PORT, such as "
     "127.0.0.1:9410 or [::1]:9410"},
    {"--usage-interval=999ms",
     "flag --usage-interval: \"999ms\": must be a duration from 1s to 1m, such as 10s, or 0"},
    {"--usage-interval=61s",
     "flag --usage-interval: \"61s\": must be a duration from 1s to 1m, such as 10s, or 0"},
    {"--usage-write=0s",
     "flag --usage-write: \"0s\": must be a duration from 1s to 4m, such as 60s"},
    {"--usage-write=5m",
     "flag --usage-write: \"5m\": must be a duration from 1s to 4m, such as 60s"},
    {"--cooldown=5", "flag --cooldown: \"5\": must be a duration from 1s to 24h, such as 5m"},
    {"--cooldown=999ms",
     "flag --cooldown: \"999ms\": must be a duration from 1s to 24h, such as 5m"},
    {"--device-nodes=true", "flag --device-nodes: \"true\": must be on or off"},
    {"--isolation=mig", "flag --isolation: \"mig\": must be auto, none, driver-limits or mps"},
    {"--cgroup-root=/",
     "flag --cgroup-root: \"/\": must be an absolute path, without a slash at its "
     "end"},
    {"--mps-dir=m", "flag --mps-dir: \"m\": must be an absolute path, without a slash at its end"},
    {"--late-binding=yes", "flag --late-binding: \"yes\": must be auto, on or off"},
    {"--cdi-dir=cdi", "flag --cdi-dir: \"cdi\": must be an absolute path"},
    {"--log-level=loud", "flag --log-level: \"loud\": must be debug, info, warn or error"},
    {"--log-format=xml", "flag --log-format: \"xml\": must be auto, logfmt or json"},
    {"--memory-units=GiB", "unknown flag --memory-units, did you mean --memory-unit?"},
    {"--xyz", "unknown flag --xyz; --help lists all"},
    {"--state", "flag --state: its value is missing"},
    {"--version=1", "flag --version takes no value"},
    {"run", "\"run\" is not a flag; --help lists all"},
    {"--", "\"--\" is not a flag; --help lists all"},
};

TEST_EACH(a_bad_flag, COUNT_OF(bad))
{
    struct err e = ERR_INIT;
    struct settings s = {.port = 1};
    const struct settings_env env = {.node_name = STR("n")};
    const char *const args[] = {bad[_i].flag, NULL};
    ck_assert_int_ne(parse(args, &env, &s, &e), OK);
    ck_assert_str_eq(e.text, bad[_i].error);
    ck_assert_uint_eq(s.port, 1);
}

TEST(other_mistakes)
{
    struct err e = ERR_INIT;
    struct settings s;
    const char *const none[] = {NULL};
    const char *const twice[] = {"--state=/a", "--state", "/b", NULL};
    const char *const flag[] = {"--log-level=info", NULL};
    struct settings_env env = {.log_level = STR("info")};
    ck_assert_int_eq(parse(none, &env, &s, &e), ERR_SYNTAX);
    ck_assert_str_eq(e.text, "the name of the node is missing: set --node-name, or the environment "
                             "NODE_NAME from the pod's spec.nodeName");
    env.node_name = STR("n");
    ck_assert_int_eq(parse(twice, &env, &s, &e), ERR_SYNTAX);
    ck_assert_str_eq(e.text, "flag --state is there twice");
    env.log_level = STR("5");
    ck_assert_int_eq(parse(flag, &env, &s, &e), ERR_RANGE);
    ck_assert_str_eq(e.text, "environment LOG_LEVEL: \"5\": must be debug, info, warn or error");
}

TEST(actions)
{
    struct err e = ERR_INIT;
    struct settings s;
    const struct settings_env env = {.log_level = STR("wrong")};
    const char *const help[] = {"--version", "--help", NULL};
    const char *const version[] = {"--version", NULL};
    const char *const letter[] = {"-h", NULL};
    ck_assert_ok(parse(help, &env, &s, &e), &e);
    ck_assert_int_eq(s.action, SETTINGS_HELP);
    ck_assert_ok(parse(letter, &env, &s, &e), &e);
    ck_assert_int_eq(s.action, SETTINGS_HELP);
    ck_assert_ok(parse(version, &env, &s, &e), &e);
    ck_assert_int_eq(s.action, SETTINGS_VERSION);
}

static const char usage[] =
    "cardpack-node offers the GPU cards of a node to the kubelet, and announces them to "
    "cardpack.\n"
    "\n"
    "Flags:\n"
    "  --node-name NAME\n"
    "      name of the node that this machine is (required; environment NODE_NAME)\n"
    "  --kubeconfig FILE\n"
    "      kubeconfig of the API server; without it the service account of the pod, and then "
    "~/.kube/config (default none; environment KUBECONFIG)\n"
    "  --kubelet-dir FOLDER\n"
    "      the kubelet's folder, with device-plugins in it (default /var/lib/kubelet)\n"
    "  --state FILE\n"
    "      file that keeps which index a card has; empty: indices are not kept (default "
    "/var/lib/cardpack-node/cards)\n"
    "  --nvml FILE\n"
    "      NVIDIA's library; without it libnvidia-ml.so.1 (default none)\n"
    "  --memory-unit GiB|MiB|SIZE\n"
    "      memory that one unit of aliyun.com/gpu-mem stands for: GiB, MiB, or whole MiB such as "
    "256MiB (default GiB)\n"
    "  --reserve-memory SIZE\n"
    "      memory of each card that no pod gets, in whole MiB such as 512MiB (default 0)\n"
    "  --card-memory SIZE\n"
    "      memory of each card whose own NVIDIA's library does not report, in whole MiB such as "
    "96GiB; 0: these cards are not offered (default 0)\n"
    "  --cards all|LIST\n"
    "      cards that are offered: all, or indices and UUIDs with commas (default all)\n"
    "  --listen ADDRESS:PORT\n"
    "      address of /healthz, /readyz and /metrics; empty: none (default 127.0.0.1:9410)\n"
    "  --cooldown DURATION\n"
    "      time without a fault until an unhealthy card is healthy again (default 5m)\n"
    "  --device-nodes on|off\n"
    "      give containers the device nodes of their cards, for runtimes without NVIDIA's hook "
    "(default off)\n"
    "  --usage-interval DURATION\n"
    "      how often what pods use of the cards is measured; 0: never (default 10s)\n"
    "  --usage-write DURATION\n"
    "      how often, at most, it is written to the API server (default 60s)\n"
    "  --isolation auto|none|driver-limits|mps\n"
    "      what keeps a container to its share: the driver's own limits, NVIDIA's MPS, or nothing; "
    "auto: what the node has (default auto)\n"
    "  --cgroup-root FOLDER\n"
    "      the node's cgroups of version 2, for the driver's limits (default /sys/fs/cgroup)\n"
    "  --mps-dir FOLDER\n"
    "      folder with a pipe directory of MPS for each card, named by its UUID (default "
    "/run/cardpack/mps)\n"
    "  --late-binding auto|on|off\n"
    "      decide which cards a container gets when it starts, through a CDI spec; auto: with "
    "kubelet 1.29 and containerd 2.0 or cri-o 1.28, or newer ones (default auto)\n"
    "  --cdi-dir FOLDER\n"
    "      folder where the container runtime reads CDI specs (default /var/run/cdi)\n"
    "  --log-level debug|info|warn|error\n"
    "      the lowest level of log lines (default info; environment LOG_LEVEL)\n"
    "  --log-format auto|logfmt|json\n"
    "      form of log lines; auto: logfmt on a terminal, else json (default auto)\n"
    "  --help, -h\n"
    "      print this text\n"
    "  --version\n"
    "      print the version\n"
    "\n"
    "Environment, as NVIDIA's device plugin reads it:\n"
    "  DP_DISABLE_HEALTHCHECKS\n"
    "      faults that do not make a card unhealthy: all, xids, or XIDs with commas\n"
    "  DP_ENABLE_HEALTHCHECKS\n"
    "      XIDs that make a card unhealthy nevertheless\n";

TEST(the_whole_help)
{
    struct buf out;
    buf_init(&out, 65536);
    settings_usage(&out);
    ck_assert_str_eq(buf_cstr(&out), usage);
    buf_done(&out);
}
