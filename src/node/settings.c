/* One table of settings: their parsers, their defaults, and the text of --help. */
#include "node/settings.h"

#include "base/cli.h"
#include "base/near.h"
#include "base/value.h"
#include "gpu/limit.h"

#include <sys/socket.h>

#define UNIT_MAX     (UINT64_C(1) << 40) /* no card has a TiB */
#define CARDS_MAX    ((size_t)64 * KIB)
#define NAME_MAX_LEN ((size_t)253)
#define FOLDER_MAX   1024
#define FOLDER_WORDS "an absolute path, without a slash at its end"

/* What a row has after its text: a field, and how it is read. Its words say what a value must be.
 */
#define FIELD(setter, member, type) \
    .set = settings_set_##setter, .field = FIELD_OF(struct settings, member, type)

static enum errc settings_must_be(struct err *e, struct str value, const char *what)
{
    return err_set(e, ERR_RANGE, "\"%.*s\": must be %s", (int)MIN_OF(value.n, (size_t)128), value.p,
                   what);
}

/* ---- values ---- */

static void *settings_field(const struct cli_flag *f, void *settings)
{
    return (char *)settings + f->field;
}

static enum errc settings_set_text(const struct cli_flag *f, void *settings, struct str value,
                                   struct err *e)
{
    (void)e;
    *(struct str *)settings_field(f, settings) = value;
    return OK;
}

/* min: its length, so that it is not empty, or not "/", which is joined with what is in the
 * folder. With a max it has no slash at its end. */
static enum errc settings_set_path(const struct cli_flag *f, void *settings, struct str value,
                                   struct err *e)
{
    bool folder = f->max > 0;
    if (value.n < f->min || (value.n > 0 && value.p[0] != '/') ||
        (folder && (value.n > f->max || str_ends(value, STR("/")))))
        return settings_must_be(e, value, f->words);
    return settings_set_text(f, settings, value, e);
}

static enum errc settings_set_node_name(const struct cli_flag *f, void *settings, struct str value,
                                        struct err *e)
{
    if (value.n > NAME_MAX_LEN || !value_is_dns_name(value))
        return settings_must_be(e, value, f->words);
    return settings_set_text(f, settings, value, e);
}

static enum errc settings_set_kubeconfig(const struct cli_flag *f, void *settings, struct str value,
                                         struct err *e)
{
    if (memchr(value.p, ':', value.n) != NULL)
        return settings_must_be(e, value, f->words);
    return settings_set_text(f, settings, value, e);
}

/* Whole MiB. Where it can't be 0, the name of a unit is one of it. */
static enum errc settings_set_size(const struct cli_flag *f, void *settings, struct str value,
                                   struct err *e)
{
    uint64_t n = UINT64_MAX;
    if (f->min > 0 && str_eq(value, STR("GiB")))
        n = (uint64_t)1 << 30;
    else if (f->min > 0 && str_eq(value, STR("MiB")))
        n = MIB;
    else
        (void)value_read_size(value, &n);
    if (n < f->min || n % MIB != 0 || n > UNIT_MAX)
        return settings_must_be(e, value, f->words);
    *(uint64_t *)settings_field(f, settings) = n;
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

static enum errc settings_set_cards(const struct cli_flag *f, void *settings, struct str value,
                                    struct err *e)
{
    uint64_t index = 0;
    if (value.n > CARDS_MAX)
        return settings_must_be(e, value, "shorter");
    for (struct str word, rest = value; rest.p != NULL;) {
        (void)str_cut(rest, ',', &word, &rest);
        if (word.n == 0 || word.n >= GPU_UUID_BYTES || str_trim(word).n != word.n ||
            (settings_is_index(word) && !str_to_u64(word, LIMIT_GPU_CARDS - 1, &index)))
            return settings_must_be(e, value, f->words);
        if (!settings_is_index(word) && !str_eq(value, STR("all")) &&
            !str_starts(word, STR("GPU-")) && !str_starts(word, STR("MIG-")))
            return settings_must_be(e, value, f->words);
    }
    return settings_set_text(f, settings, value, e);
}

/* "127.0.0.1:9410", "[::1]:9410", or empty. */
static enum errc settings_set_listen(const struct cli_flag *f, void *settings, struct str value,
                                     struct err *e)
{
    struct settings *s = settings;
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
        return settings_must_be(e, value, f->words);
    s->listen = address;
    s->port = (uint16_t)port;
    return OK;
}

static enum errc settings_set_duration(const struct cli_flag *f, void *settings, struct str value,
                                       struct err *e)
{
    uint64_t ms = 0;
    if (!value_read_duration(value, &ms) || ms < f->min || ms > f->max)
        return settings_must_be(e, value, f->words);
    *(uint64_t *)settings_field(f, settings) = ms;
    return OK;
}

/* 0: never. */
static enum errc settings_set_interval(const struct cli_flag *f, void *settings, struct str value,
                                       struct err *e)
{
    uint64_t ms = 1;
    if (!value_read_duration(value, &ms) || ms != 0)
        return settings_set_duration(f, settings, value, e);
    *(uint64_t *)settings_field(f, settings) = 0;
    return OK;
}

/* The field is an enum, in the order of the words. */
static enum errc settings_set_word(const struct cli_flag *f, void *settings, struct str value,
                                   struct err *e)
{
    char bytes[64];
    struct buf all = BUF_ON(bytes);
    if (value_read_word(value, f->value, settings_field(f, settings)))
        return OK;
    value_put_words(&all, f->value);
    return settings_must_be(e, value, buf_cstr(&all));
}

static enum errc settings_set_switch(const struct cli_flag *f, void *settings, struct str value,
                                     struct err *e)
{
    bool on = str_eq(value, STR("on"));
    *(bool *)settings_field(f, settings) = on;
    return on || str_eq(value, STR("off")) ? OK : settings_must_be(e, value, "on or off");
}

/* ---- the table ---- */

static const struct cli_flag flags[] = {
    {"--node-name", NULL, 0, "NAME", "name of the node that this machine is",
     FIELD(node_name, node_name, struct str), .variable = "NODE_NAME",
     .words = "the name of a node: lower-case letters, digits, '-' and '.'"},
    {"--kubeconfig", NULL, 0, "FILE",
     "kubeconfig of the API server; without it the service account of the pod, and then "
     "~/.kube/config",
     FIELD(kubeconfig, kubeconfig, struct str), .initial = "", .variable = "KUBECONFIG",
     .words = "one file, not several"},
    {"--kubelet-dir", NULL, 0, "FOLDER", "the kubelet's folder, with device-plugins in it",
     FIELD(path, kubelet_dir, struct str), .initial = "/var/lib/kubelet", .min = 1,
     .words = "an absolute path"},
    {"--state", NULL, 0, "FILE",
     "file that keeps which index a card has; empty: indices are not kept",
     FIELD(path, state, struct str), .initial = "/var/lib/cardpack-node/cards",
     .words = "an absolute path, or empty"},
    {"--nvml", NULL, 0, "FILE", "NVIDIA's library; without it libnvidia-ml.so.1",
     FIELD(text, nvml, struct str), .initial = ""},
    {"--memory-unit", NULL, 0, "GiB|MiB|SIZE",
     "memory that one unit of aliyun.com/gpu-mem stands for: GiB, MiB, or whole MiB such as 256MiB",
     FIELD(size, unit_bytes, uint64_t), .initial = "GiB", .min = MIB,
     .words = "GiB, MiB, or whole MiB such as 256MiB, up to 1024GiB"},
    {"--reserve-memory", NULL, 0, "SIZE",
     "memory of each card that no pod gets, in whole MiB such as 512MiB",
     FIELD(size, reserve_bytes, uint64_t), .initial = "0",
     .words = "whole MiB such as 512MiB, or 0"},
    {"--card-memory", NULL, 0, "SIZE",
     "memory of each card whose own NVIDIA's library does not report, in whole MiB such as 96GiB; "
     "0: these cards are not offered",
     FIELD(size, card_bytes, uint64_t), .initial = "0", .words = "whole MiB such as 512MiB, or 0"},
    {"--cards", NULL, 0, "all|LIST",
     "cards that are offered: all, or indices and UUIDs with commas",
     FIELD(cards, cards, struct str), .initial = "all",
     .words = "all, or a list of indices and UUIDs such as 0,2,GPU-5a1f"},
    {"--listen", NULL, 0, "ADDRESS:PORT", "address of /healthz, /readyz and /metrics; empty: none",
     FIELD(listen, listen, struct str), .initial = "127.0.0.1:9410",
     .words = "ADDRESS:PORT, such as 127.0.0.1:9410 or [::1]:9410"},
    {"--cooldown", NULL, 0, "DURATION",
     "time without a fault until an unhealthy card is healthy again",
     FIELD(duration, cooldown_ms, uint64_t), .initial = "5m", .min = 1000, .max = 86400000,
     .words = "a duration from 1s to 24h, such as 5m"},
    {"--device-nodes", NULL, 0, "on|off",
     "give containers the device nodes of their cards, for runtimes without NVIDIA's hook",
     FIELD(switch, device_nodes, bool), .initial = "off"},
    {"--usage-interval", NULL, 0, "DURATION",
     "how often what pods use of the cards is measured; 0: never",
     FIELD(interval, usage_interval_ms, uint64_t), .initial = "10s", .min = 1000, .max = 60000,
     .words = "a duration from 1s to 1m, such as 10s, or 0"},
    {"--usage-write", NULL, 0, "DURATION", "how often, at most, it is written to the API server",
     FIELD(duration, usage_write_ms, uint64_t), .initial = "60s", .min = 1000, .max = 240000,
     .words = "a duration from 1s to 4m, such as 60s"},
    {"--isolation", NULL, 0, "auto|none|driver-limits|mps",
     "what keeps a container to its share: the driver's own limits, NVIDIA's MPS, or nothing; "
     "auto: what the node has",
     FIELD(word, isolation, unsigned), .initial = "auto"},
    {"--cgroup-root", NULL, 0, "FOLDER", "the node's cgroups of version 2, for the driver's limits",
     FIELD(path, cgroup_root, struct str), .initial = "/sys/fs/cgroup", .min = 2, .max = FOLDER_MAX,
     .words = FOLDER_WORDS},
    {"--mps-dir", NULL, 0, "FOLDER",
     "folder with a pipe directory of MPS for each card, named by its UUID",
     FIELD(path, mps_dir, struct str), .initial = "/run/cardpack/mps", .min = 2, .max = FOLDER_MAX,
     .words = FOLDER_WORDS},
    {"--late-binding", NULL, 0, "auto|on|off",
     "decide which cards a container gets when it starts, through a CDI spec; auto: with kubelet "
     "1.29 and containerd 2.0 or cri-o 1.28, or newer ones",
     FIELD(word, late, unsigned), .initial = "auto"},
    {"--cdi-dir", NULL, 0, "FOLDER", "folder where the container runtime reads CDI specs",
     FIELD(path, cdi_dir, struct str), .initial = "/var/run/cdi", .min = 1,
     .words = "an absolute path"},
    {"--log-level", NULL, 0, "debug|info|warn|error", "the lowest level of log lines",
     FIELD(word, log_level, unsigned), .initial = "info", .variable = "LOG_LEVEL"},
    {"--log-format", NULL, 0, "auto|logfmt|json",
     "form of log lines; auto: logfmt on a terminal, else json", FIELD(word, log_format, unsigned),
     .initial = "auto"},
    {"--help", "-h", 0, NULL, "print this text", .set = NULL},
    {"--version", NULL, 0, NULL, "print the version", .set = NULL},
};

static const struct cli cli = {.flags = flags, .n_flags = COUNT_OF(flags)};

static struct str settings_environment(const struct settings_env *env, const char *variable)
{
    struct str name = str_of(variable);
    return str_eq(name, STR("NODE_NAME"))    ? env->node_name
           : str_eq(name, STR("KUBECONFIG")) ? env->kubeconfig
           : str_eq(name, STR("LOG_LEVEL"))  ? env->log_level
                                             : STR_NULL;
}

/* ---- the command line ---- */

struct parser {
    int argc;
    char *const *argv;
    int at;
    struct settings settings;
    struct str given[COUNT_OF(flags)]; /* absent: not given */
};

static enum errc settings_unknown(struct str name, struct err *e)
{
    struct near near = near_to(str_skip(name, 2));
    for (size_t i = 0; i < COUNT_OF(flags); i++)
        near_offer(&near, str_skip(str_of(flags[i].name), 2));
    if (near.found.p == NULL)
        return err_set(e, ERR_SYNTAX, "unknown flag %.*s; --help lists all", STR_ARG(name));
    return err_set(e, ERR_SYNTAX, "unknown flag %.*s, did you mean --%.*s?", STR_ARG(name),
                   STR_ARG(near.found));
}

/* Reads "--name value", "--name=value" or "-h". */
static enum errc settings_take_flag(struct parser *p, struct str word, struct err *e)
{
    struct str name;
    struct str value;
    (void)str_cut(word, '=', &name, &value);
    const struct cli_flag *f = cli_find_flag(&cli, name);
    if (!str_eq(word, STR("-h")) && (!str_starts(word, STR("--")) || word.n == 2))
        return err_set(e, ERR_SYNTAX, "\"%.*s\" is not a flag; --help lists all",
                       STR_ARG(str_head(word, 64)));
    if (f == NULL)
        return settings_unknown(name, e);
    if (f->value == NULL && value.p != NULL)
        return err_set(e, ERR_SYNTAX, "flag %s takes no value", f->name);
    if (f->value == NULL) {
        if (p->settings.action != SETTINGS_HELP)
            p->settings.action = f->letter != NULL ? SETTINGS_HELP : SETTINGS_VERSION;
        return OK;
    }
    if (value.p == NULL && (p->at == p->argc || str_starts(str_of(p->argv[p->at]), STR("--"))))
        return err_set(e, ERR_SYNTAX, "flag %s: its value is missing", f->name);
    if (value.p == NULL)
        value = str_of(p->argv[p->at++]);
    if (p->given[f - flags].p != NULL)
        return err_set(e, ERR_SYNTAX, "flag %s is there twice", f->name);
    p->given[f - flags] = value;
    return OK;
}

static enum errc settings_apply(struct parser *p, const struct settings_env *env, struct err *e)
{
    struct settings *s = &p->settings;
    for (const struct cli_flag *f = flags; f < flags + COUNT_OF(flags); f++) {
        if (f->initial != NULL && f->set(f, s, str_of(f->initial), e) != OK)
            return err_wrap(e, "default of %s", f->name);
    }
    for (const struct cli_flag *f = flags; f < flags + COUNT_OF(flags); f++) {
        struct str value = settings_environment(env, f->variable);
        if (value.n > 0 && f->set(f, s, value, e) != OK)
            return err_wrap(e, "environment %s", f->variable);
    }
    for (const struct cli_flag *f = flags; f < flags + COUNT_OF(flags); f++) {
        struct str value = p->given[f - flags];
        if (value.p != NULL && f->set(f, s, value, e) != OK)
            return err_wrap(e, "flag %s", f->name);
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
    struct parser p = {.argc = argc, .argv = argv, .at = 1};
    enum errc code = OK;
    while (code == OK && p.at < argc)
        code = settings_take_flag(&p, str_of(argv[p.at++]), reterr);
    if (code == OK && p.settings.action == SETTINGS_RUN)
        code = settings_apply(&p, env, reterr);
    if (code == OK)
        *ret = p.settings;
    return code;
}

void settings_usage(struct buf *out)
{
    buf_put(out, STR("cardpack-node offers the GPU cards of a node to the kubelet, and announces "
                     "them to cardpack.\n\nFlags:\n"));
    for (const struct cli_flag *f = flags; f < flags + COUNT_OF(flags); f++) {
        bool letter = f->letter != NULL;
        buf_printf(out, "  %s%s%s\n      %s", f->name,
                   letter             ? ", "
                   : f->value != NULL ? " "
                                      : "",
                   letter             ? f->letter
                   : f->value != NULL ? f->value
                                      : "",
                   f->text);
        if (f->value != NULL && f->initial == NULL)
            buf_put(out, STR(" (required"));
        else if (f->value != NULL)
            buf_printf(out, " (default %s", f->initial[0] == '\0' ? "none" : f->initial);
        if (f->variable != NULL)
            buf_printf(out, "; environment %s", f->variable);
        buf_put(out, f->value != NULL ? STR(")\n") : STR("\n"));
    }
    buf_put(out, STR("\nEnvironment, as NVIDIA's device plugin reads it:\n"
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
