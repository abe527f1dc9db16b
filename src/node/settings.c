/* One table of settings: their parsers, their defaults, and the text of --help. */
#include "node/settings.h"

#include "base/near.h"
#include "base/value.h"
#include "gpu/limit.h"

#include <sys/socket.h>

#define UNIT_MAX     (UINT64_C(1) << 40) /* no card has a TiB */
#define CARDS_MAX    ((size_t)64 * KIB)
#define NAME_MAX_LEN ((size_t)253)
#define FOLDER_MAX   ((size_t)1024)

/* Reads a value into a field of struct settings. */
typedef enum errc setter(void *field, struct str value, struct err *e);

struct row {
    const char *name;
    const char *value; /* the placeholder of --help; of a word all there are: "auto|on|off" */
    const char *text;  /* the default, which the setter takes; NULL: the setting is required */
    const char *help;
    setter *set;  /* NULL: the field is an enum, in the order of the words */
    size_t field; /* its place in struct settings */
};

#define FIELD(member, type) FIELD_OF(struct settings, member, type)

static enum errc settings_must_be(struct err *e, struct str value, const char *what)
{
    return err_set(e, ERR_RANGE, "\"%.*s\": must be %s", (int)MIN_OF(value.n, (size_t)128), value.p,
                   what);
}

/* ---- values ---- */

static enum errc settings_set_text(void *field, struct str value, struct err *e)
{
    (void)e;
    *(struct str *)field = value;
    return OK;
}

static enum errc settings_set_path(void *field, struct str value, struct err *e)
{
    if (value.n == 0 || value.p[0] != '/')
        return settings_must_be(e, value, "an absolute path");
    return settings_set_text(field, value, e);
}

/* Not "/": the path is joined with what is in the folder. */
static enum errc settings_set_folder(void *field, struct str value, struct err *e)
{
    if (value.n <= 1 || value.n > FOLDER_MAX || value.p[0] != '/' || str_ends(value, STR("/")))
        return settings_must_be(e, value, "an absolute path, without a slash at its end");
    return settings_set_text(field, value, e);
}

static enum errc settings_set_node_name(void *field, struct str value, struct err *e)
{
    if (value.n > NAME_MAX_LEN || !value_is_dns_name(value))
        return settings_must_be(e, value,
                                "the name of a node: lower-case letters, digits, '-' and '.'");
    return settings_set_text(field, value, e);
}

static enum errc settings_set_kubeconfig(void *field, struct str value, struct err *e)
{
    if (memchr(value.p, ':', value.n) != NULL)
        return settings_must_be(e, value, "one file, not several");
    return settings_set_text(field, value, e);
}

static enum errc settings_set_state(void *field, struct str value, struct err *e)
{
    if (value.n > 0 && value.p[0] != '/')
        return settings_must_be(e, value, "an absolute path, or empty");
    return settings_set_text(field, value, e);
}

static enum errc settings_set_unit(void *field, struct str value, struct err *e)
{
    uint64_t n = 0;
    bool word = str_eq(value, STR("GiB")) || str_eq(value, STR("MiB"));
    if (word)
        n = value.p[0] == 'G' ? (uint64_t)1 << 30 : MIB;
    if ((!word && !value_read_size(value, &n)) || n < MIB || n % MIB != 0 || n > UNIT_MAX)
        return settings_must_be(e, value, "GiB, MiB, or whole MiB such as 256MiB, up to 1024GiB");
    *(uint64_t *)field = n;
    return OK;
}

static enum errc settings_set_reserve(void *field, struct str value, struct err *e)
{
    uint64_t n = 0;
    if (!value_read_size(value, &n) || n % MIB != 0 || n > UNIT_MAX)
        return settings_must_be(e, value, "whole MiB such as 512MiB, or 0");
    *(uint64_t *)field = n;
    return OK;
}

/* Digits only: an index; everything else is a UUID. */
static bool settings_is_index(struct str word)
{
    size_t n = 0;
    while (n < word.n && word.p[n] >= '0' && word.p[n] <= '9')
        n++;
    return n == word.n;
}

static enum errc settings_set_cards(void *field, struct str value, struct err *e)
{
    static const char what[] = "all, or a list of indices and UUIDs such as 0,2,GPU-5a1f";
    uint64_t index = 0;
    if (value.n > CARDS_MAX)
        return settings_must_be(e, value, "shorter");
    for (struct str word, rest = value; rest.p != NULL;) {
        (void)str_cut(rest, ',', &word, &rest);
        if (word.n == 0 || word.n >= GPU_UUID_BYTES || str_trim(word).n != word.n ||
            (settings_is_index(word) && !str_to_u64(word, LIMIT_GPU_CARDS - 1, &index)))
            return settings_must_be(e, value, what);
        if (!settings_is_index(word) && !str_eq(value, STR("all")) &&
            !str_starts(word, STR("GPU-")) && !str_starts(word, STR("MIG-")))
            return settings_must_be(e, value, what);
    }
    return settings_set_text(field, value, e);
}

/* "127.0.0.1:9410", "[::1]:9410", or empty: the field is the whole struct. */
static enum errc settings_set_listen(void *field, struct str value, struct err *e)
{
    struct settings *s = field;
    unsigned char bytes[16];
    const char *colon = value.n == 0 ? NULL : memrchr(value.p, ':', value.n);
    uint64_t port = 0;
    s->listen = STR("");
    if (value.n == 0)
        return OK;
    struct str address = {value.p, colon == NULL ? 0 : (size_t)(colon - value.p)};
    bool brackets = str_starts(address, STR("[")) && str_ends(address, STR("]"));
    if (brackets)
        address = (struct str){address.p + 1, address.n - 2};
    if (value_read_address(address, bytes) != (brackets ? AF_INET6 : AF_INET) ||
        !str_to_u64(str_skip(value, (size_t)(colon - value.p) + 1), UINT16_MAX, &port))
        return settings_must_be(e, value, "ADDRESS:PORT, such as 127.0.0.1:9410 or [::1]:9410");
    s->listen = address;
    s->port = (uint16_t)port;
    return OK;
}

static enum errc settings_set_cooldown(void *field, struct str value, struct err *e)
{
    uint64_t *ms = field;
    if (!value_read_duration(value, ms) || *ms < 1000 || *ms > UINT64_C(86400000))
        return settings_must_be(e, value, "a duration from 1s to 24h, such as 5m");
    return OK;
}

static enum errc settings_set_device_nodes(void *field, struct str value, struct err *e)
{
    bool on = str_eq(value, STR("on"));
    *(bool *)field = on;
    return on || str_eq(value, STR("off")) ? OK : settings_must_be(e, value, "on or off");
}

static enum errc settings_set_usage_interval(void *field, struct str value, struct err *e)
{
    uint64_t *ms = field;
    if (!value_read_duration(value, ms) || (*ms != 0 && *ms < 1000) || *ms > 60000)
        return settings_must_be(e, value, "a duration from 1s to 1m, such as 10s, or 0");
    return OK;
}

static enum errc settings_set_usage_write(void *field, struct str value, struct err *e)
{
    uint64_t *ms = field;
    if (!value_read_duration(value, ms) || *ms < 1000 || *ms > 240000)
        return settings_must_be(e, value, "a duration from 1s to 4m, such as 60s");
    return OK;
}

/* ---- the table ---- */

enum settings_row {
    ROW_NODE_NAME,
    ROW_KUBECONFIG,
    ROW_KUBELET_DIR,
    ROW_STATE,
    ROW_NVML,
    ROW_MEMORY_UNIT,
    ROW_RESERVE_MEMORY,
    ROW_CARD_MEMORY,
    ROW_CARDS,
    ROW_LISTEN,
    ROW_COOLDOWN,
    ROW_DEVICE_NODES,
    ROW_USAGE_INTERVAL,
    ROW_USAGE_WRITE,
    ROW_ISOLATION,
    ROW_CGROUP_ROOT,
    ROW_MPS_DIR,
    ROW_LATE_BINDING,
    ROW_CDI_DIR,
    ROW_LOG_LEVEL,
    ROW_LOG_FORMAT,
    ROWS
};

static const struct row rows[ROWS] = {
    [ROW_NODE_NAME] = {"node-name", "NAME", NULL, "name of the node that this machine is",
                       settings_set_node_name, FIELD(node_name, struct str)},
    [ROW_KUBECONFIG] = {"kubeconfig", "FILE", "",
                        "kubeconfig of the API server; without it the service account of the pod, "
                        "and then ~/.kube/config",
                        settings_set_kubeconfig, FIELD(kubeconfig, struct str)},
    [ROW_KUBELET_DIR] = {"kubelet-dir", "FOLDER", "/var/lib/kubelet",
                         "the kubelet's folder, with device-plugins in it", settings_set_path,
                         FIELD(kubelet_dir, struct str)},
    [ROW_STATE] = {"state", "FILE", "/var/lib/cardpack-node/cards",
                   "file that keeps which index a card has; empty: indices are not kept",
                   settings_set_state, FIELD(state, struct str)},
    [ROW_NVML] = {"nvml", "FILE", "", "NVIDIA's library; without it libnvidia-ml.so.1",
                  settings_set_text, FIELD(nvml, struct str)},
    [ROW_MEMORY_UNIT] = {"memory-unit", "GiB|MiB|SIZE", "GiB",
                         "memory that one unit of aliyun.com/gpu-mem stands for: GiB, MiB, or "
                         "whole MiB such as 256MiB",
                         settings_set_unit, FIELD(unit_bytes, uint64_t)},
    [ROW_RESERVE_MEMORY] = {"reserve-memory", "SIZE", "0",
                            "memory of each card that no pod gets, in whole MiB such as 512MiB",
                            settings_set_reserve, FIELD(reserve_bytes, uint64_t)},
    [ROW_CARD_MEMORY] = {"card-memory", "SIZE", "0",
                         "memory of each card whose own NVIDIA's library does not report, in whole "
                         "MiB such as 96GiB; 0: these cards are not offered",
                         settings_set_reserve, FIELD(card_bytes, uint64_t)},
    [ROW_CARDS] = {"cards", "all|LIST", "all",
                   "cards that are offered: all, or indices and UUIDs with commas",
                   settings_set_cards, FIELD(cards, struct str)},
    [ROW_LISTEN] = {"listen", "ADDRESS:PORT", "127.0.0.1:9410",
                    "address of /healthz, /readyz and /metrics; empty: none", settings_set_listen,
                    0},
    [ROW_COOLDOWN] = {"cooldown", "DURATION", "5m",
                      "time without a fault until an unhealthy card is healthy again",
                      settings_set_cooldown, FIELD(cooldown_ms, uint64_t)},
    [ROW_DEVICE_NODES] = {"device-nodes", "on|off", "off",
                          "give containers the device nodes of their cards, for runtimes without "
                          "NVIDIA's hook",
                          settings_set_device_nodes, FIELD(device_nodes, bool)},
    [ROW_USAGE_INTERVAL] = {"usage-interval", "DURATION", "10s",
                            "how often what pods use of the cards is measured; 0: never",
                            settings_set_usage_interval, FIELD(usage_interval_ms, uint64_t)},
    [ROW_USAGE_WRITE] = {"usage-write", "DURATION", "60s",
                         "how often, at most, it is written to the API server",
                         settings_set_usage_write, FIELD(usage_write_ms, uint64_t)},
    [ROW_ISOLATION] = {"isolation", "auto|none|driver-limits|mps", "auto",
                       "what keeps a container to its share: the driver's own limits, NVIDIA's "
                       "MPS, or nothing; auto: what the node has",
                       NULL, FIELD(isolation, unsigned)},
    [ROW_CGROUP_ROOT] = {"cgroup-root", "FOLDER", "/sys/fs/cgroup",
                         "the node's cgroups of version 2, for the driver's limits",
                         settings_set_folder, FIELD(cgroup_root, struct str)},
    [ROW_MPS_DIR] = {"mps-dir", "FOLDER", "/run/cardpack/mps",
                     "folder with a pipe directory of MPS for each card, named by its UUID",
                     settings_set_folder, FIELD(mps_dir, struct str)},
    [ROW_LATE_BINDING] = {"late-binding", "auto|on|off", "auto",
                          "decide which cards a container gets when it starts, through a CDI spec; "
                          "auto: with kubelet 1.29 and containerd 2.0 or cri-o 1.28, or newer ones",
                          NULL, FIELD(late, unsigned)},
    [ROW_CDI_DIR] = {"cdi-dir", "FOLDER", "/var/run/cdi",
                     "folder where the container runtime reads CDI specs", settings_set_path,
                     FIELD(cdi_dir, struct str)},
    [ROW_LOG_LEVEL] = {"log-level", "debug|info|warn|error", "info",
                       "the lowest level of log lines", NULL, FIELD(log_level, unsigned)},
    [ROW_LOG_FORMAT] = {"log-format", "auto|logfmt|json", "auto",
                        "form of log lines; auto: logfmt on a terminal, else json", NULL,
                        FIELD(log_format, unsigned)},
};

/* Flags that are not settings. */
static const char *const other_flags[] = {"help", "version"};

static const struct {
    enum settings_row row;
    const char *name;
    size_t offset;
} variables[] = {
    {ROW_NODE_NAME, "NODE_NAME", offsetof(struct settings_env, node_name)},
    {ROW_KUBECONFIG, "KUBECONFIG", offsetof(struct settings_env, kubeconfig)},
    {ROW_LOG_LEVEL, "LOG_LEVEL", offsetof(struct settings_env, log_level)},
};

static const char *settings_variable(size_t row)
{
    for (size_t i = 0; i < COUNT_OF(variables); i++) {
        if (variables[i].row == row)
            return variables[i].name;
    }
    return NULL;
}

/* ---- the command line ---- */

static enum errc settings_unknown(struct str name, struct err *e)
{
    struct near near = near_to(name);
    for (size_t i = 0; i < ROWS; i++)
        near_offer(&near, str_of(rows[i].name));
    for (size_t i = 0; i < COUNT_OF(other_flags); i++)
        near_offer(&near, str_of(other_flags[i]));
    if (near.found.p == NULL)
        return err_set(e, ERR_SYNTAX, "unknown flag --%.*s; --help lists all", STR_ARG(name));
    return err_set(e, ERR_SYNTAX, "unknown flag --%.*s, did you mean --%.*s?", STR_ARG(name),
                   STR_ARG(near.found));
}

/* Reads "--name value" or "--name=value" at argv[*at] and moves *at behind it. */
static enum errc settings_take_flag(struct settings *s, struct str given[static ROWS], int argc,
                                    char *const argv[], int *at, struct err *e)
{
    struct str name;
    struct str value;
    bool joined = str_cut(str_skip(str_of(argv[*at]), 2), '=', &name, &value);
    size_t row = 0;
    *at += 1;
    for (size_t i = 0; i < COUNT_OF(other_flags); i++) {
        if (!str_eq(name, str_of(other_flags[i])))
            continue;
        if (joined)
            return err_set(e, ERR_SYNTAX, "flag --%.*s takes no value", STR_ARG(name));
        if (s->action != SETTINGS_HELP)
            s->action = i == 0 ? SETTINGS_HELP : SETTINGS_VERSION;
        return OK;
    }
    while (row < ROWS && !str_eq(name, str_of(rows[row].name)))
        row++;
    if (row == ROWS)
        return settings_unknown(name, e);
    if (!joined) {
        if (*at >= argc || str_starts(str_of(argv[*at]), STR("--")))
            return err_set(e, ERR_SYNTAX, "flag --%.*s: its value is missing", STR_ARG(name));
        value = str_of(argv[*at]);
        *at += 1;
    }
    if (given[row].p != NULL)
        return err_set(e, ERR_SYNTAX, "flag --%.*s is there twice", STR_ARG(name));
    given[row] = value;
    return OK;
}

static enum errc settings_take_args(struct settings *s, struct str given[static ROWS], int argc,
                                    char *const argv[], struct err *e)
{
    enum errc code = OK;
    for (int at = 1; at < argc && code == OK;) {
        struct str arg = str_of(argv[at]);
        if (str_eq(arg, STR("-h"))) {
            s->action = SETTINGS_HELP;
            at++;
            continue;
        }
        if (!str_starts(arg, STR("--")) || arg.n == 2)
            return err_set(e, ERR_SYNTAX, "\"%.*s\" is not a flag; --help lists all",
                           STR_ARG(str_head(arg, 64)));
        code = settings_take_flag(s, given, argc, argv, &at, e);
    }
    return code;
}

static enum errc settings_set(struct settings *s, const struct row *row, struct str value,
                              struct err *e)
{
    void *field = (char *)s + row->field;
    char bytes[64];
    struct buf all = BUF_ON(bytes);
    if (row->set != NULL)
        return row->set(field, value, e);
    if (value_read_word(value, row->value, field))
        return OK;
    value_put_words(&all, row->value);
    return settings_must_be(e, value, buf_cstr(&all));
}

static enum errc settings_apply(struct settings *s, const struct settings_env *env,
                                const struct str given[static ROWS], struct err *e)
{
    for (size_t i = 0; i < ROWS; i++) {
        if (rows[i].text != NULL && settings_set(s, &rows[i], str_of(rows[i].text), e) != OK)
            return err_wrap(e, "default of --%s", rows[i].name);
    }
    for (size_t i = 0; i < COUNT_OF(variables); i++) {
        struct str value =
            *(const struct str *)(const void *)((const char *)env + variables[i].offset);
        if (value.n > 0 && settings_set(s, &rows[variables[i].row], value, e) != OK)
            return err_wrap(e, "environment %s", variables[i].name);
    }
    for (size_t i = 0; i < ROWS; i++) {
        if (given[i].p != NULL && settings_set(s, &rows[i], given[i], e) != OK)
            return err_wrap(e, "flag --%s", rows[i].name);
    }
    if (s->node_name.n == 0)
        return err_set(e, ERR_SYNTAX,
                       "the name of the node is missing: set --node-name, or the "
                       "environment NODE_NAME from the pod's spec.nodeName");
    s->disable = env->disable;
    s->enable = env->enable;
    return OK;
}

enum errc settings_parse(int argc, char *const argv[], const struct settings_env *env,
                         struct settings *ret, struct err *reterr)
{
    struct settings s = {.action = SETTINGS_RUN};
    struct str given[ROWS] = {{NULL, 0}};
    enum errc code = settings_take_args(&s, given, argc, argv, reterr);
    if (code == OK && s.action == SETTINGS_RUN)
        code = settings_apply(&s, env, given, reterr);
    if (code == OK)
        *ret = s;
    return code;
}

void settings_usage(struct buf *out)
{
    buf_put(out, STR("cardpack-node offers the GPU cards of a node to the kubelet, and announces "
                     "them to cardpack.\n\nFlags:\n"));
    for (size_t i = 0; i < ROWS; i++) {
        const char *variable = settings_variable(i);
        const char *text = rows[i].text;
        buf_printf(out, "  --%s %s\n      %s (%s%s%s%s)\n", rows[i].name, rows[i].value,
                   rows[i].help, text == NULL ? "required" : "default ",
                   text == NULL      ? ""
                   : text[0] == '\0' ? "none"
                                     : text,
                   variable == NULL ? "" : "; environment ", variable == NULL ? "" : variable);
    }
    buf_put(out, STR("  --help, -h\n      print this text\n"
                     "  --version\n      print the version\n"
                     "\nEnvironment, as NVIDIA's device plugin reads it:\n"
                     "  DP_DISABLE_HEALTHCHECKS\n"
                     "      faults that do not make a card unhealthy: all, xids, or XIDs with "
                     "commas\n"
                     "  DP_ENABLE_HEALTHCHECKS\n"
                     "      XIDs that make a card unhealthy nevertheless\n"));
}

/* ---- questions ---- */

bool settings_has_card(const struct settings *s, uint32_t index, struct str uuid)
{
    uint64_t n = 0;
    if (str_eq(s->cards, STR("all")))
        return true;
    for (struct str word, rest = s->cards; rest.p != NULL;) {
        (void)str_cut(rest, ',', &word, &rest);
        if (settings_is_index(word) ? str_to_u64(word, LIMIT_GPU_CARDS, &n) && n == index
                                    : str_eq(word, uuid))
            return true;
    }
    return false;
}
