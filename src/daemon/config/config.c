/*
 * Parses the settings. The result depends only on the arguments, the environment and the content
 * that the callback reads. Sources are applied from the weakest to the strongest. A wrong value is
 * an error even if a stronger source overrides it, since that source may be missing at the next
 * start.
 */
#include "daemon/config/config.h"

#include "base/file.h"
#include "base/value.h"
#include "daemon/config/config_table.h"
#include "json/jread.h"
#include "json/yaml.h"

/* For the file as JSON, and for copies of some strings. */
#define ARENA_MAX (4 * LIMIT_FILE_BYTES)

struct parse {
    struct config c;
    const struct config_env *env;
    config_read_fn *read;
    void *read_ctx;
    struct str flags[CONFIG_ROW_COUNT]; /* absent: not given */
    struct err err;
};

static enum errc config_set(struct parse *p, enum config_row row, struct str text,
                            enum config_source source, struct err *reterr)
{
    const struct config_spec *spec = &config_table[row];
    struct config_value v;
    struct str owned = arena_dup(&p->c.arena, text);
    if (owned.p == NULL)
        return err_set(reterr, arena_fault(&p->c.arena), "no room for it");
    enum errc code = config_value_parse(spec->type, owned, spec->min, spec->max, &v, reterr);
    if (code != OK)
        return code;
    config_put(&p->c, row, &v);
    p->c.sources[row] = source;
    return OK;
}

static enum errc config_apply_defaults(struct parse *p)
{
    for (size_t i = 0; i < CONFIG_ROW_COUNT; i++) {
        enum errc code = config_set(p, (enum config_row)i, str_of(config_table[i].text),
                                    CONFIG_FROM_DEFAULT, &p->err);
        if (code != OK)
            return err_wrap(&p->err, "default of %s", config_table[i].name);
    }
    return OK;
}

static enum errc config_unknown_flag(struct parse *p, struct str name)
{
    const char *nearest = config_nearest(name, true);
    if (nearest == NULL)
        return err_set(&p->err, ERR_SYNTAX, "unknown flag --%.*s; --help lists all", STR_ARG(name));
    return err_set(&p->err, ERR_SYNTAX, "unknown flag --%.*s, did you mean --%s?", STR_ARG(name),
                   nearest);
}

/* Handles flags that select an action; false: the flag is another one. */
static bool config_take_action(struct parse *p, struct str name)
{
    enum config_action action = CONFIG_RUN;
    if (str_eq(name, STR("help")))
        action = CONFIG_HELP;
    else if (str_eq(name, STR("version")))
        action = CONFIG_VERSION;
    else if (str_eq(name, STR("check-config")))
        action = CONFIG_CHECK;
    else
        return false;
    /* --help has precedence over --version, and both over --check-config, in any order. */
    if (p->c.action == CONFIG_RUN || p->c.action == CONFIG_CHECK || action == CONFIG_HELP)
        p->c.action = action;
    return true;
}

/* A flag of type bool needs its value too, so that "--name false" means what it says. */
static enum errc config_missing_value(struct parse *p, struct str name, enum config_type type)
{
    if (type != CONFIG_BOOL)
        return err_set(&p->err, ERR_SYNTAX, "flag --%.*s: its value is missing", STR_ARG(name));
    return err_set(&p->err, ERR_SYNTAX,
                   "flag --%.*s: its value is missing: write --%.*s=true or --%.*s=false",
                   STR_ARG(name), STR_ARG(name), STR_ARG(name));
}

/* Reads "--name value" or "--name=value" at argv[*at] and moves *at behind it. */
static enum errc config_take_flag(struct parse *p, int argc, char *const argv[], int *at)
{
    struct str name;
    struct str value;
    enum config_row row = CONFIG_ROW_COUNT;
    bool joined = str_cut(str_skip(str_of(argv[*at]), 2), '=', &name, &value);
    *at += 1;
    if (config_take_action(p, name)) {
        if (joined)
            return err_set(&p->err, ERR_SYNTAX, "flag --%.*s takes no value", STR_ARG(name));
        return OK;
    }
    bool is_file = str_eq(name, STR("config"));
    if (!is_file && !config_find(name, &row))
        return config_unknown_flag(p, name);
    if (!joined) {
        if (*at >= argc || str_starts(str_of(argv[*at]), STR("--")))
            return config_missing_value(p, name, is_file ? CONFIG_PATH : config_table[row].type);
        value = str_of(argv[*at]);
        *at += 1;
    }
    if (!is_file)
        p->flags[row] = value;
    else if (value.n == 0)
        return err_set(&p->err, ERR_SYNTAX, "flag --config: its value is empty");
    else
        p->c.file = value;
    return OK;
}

static enum errc config_take_arguments(struct parse *p, int argc, char *const argv[])
{
    for (int at = 1; at < argc;) {
        struct str arg = str_of(argv[at]);
        if (str_eq(arg, STR("-h"))) {
            (void)config_take_action(p, STR("help"));
            at++;
            continue;
        }
        if (!str_starts(arg, STR("--")) || arg.n == 2)
            return err_set(&p->err, ERR_SYNTAX, "unexpected argument \"%.*s\"; --help lists all",
                           STR_ARG(arg));
        enum errc code = config_take_flag(p, argc, argv, &at);
        if (code != OK)
            return code;
    }
    return OK;
}

/* The text of a scalar, in the form that a flag has. */
static struct str config_read_scalar(struct jread *r)
{
    switch (jread_type(r)) {
    case JTYPE_BOOL:
        return jread_bool(r) ? STR("true") : STR("false");
    case JTYPE_STRING:
    case JTYPE_NUMBER:
        return jread_text(r);
    case JTYPE_NULL:
        jread_skip(r);
        jread_fail(r, ERR_SYNTAX, "has no value");
        return STR_NULL;
    case JTYPE_NONE:
    case JTYPE_ARRAY:
    case JTYPE_OBJECT:
        break;
    }
    jread_skip(r);
    jread_fail(r, ERR_SYNTAX, "expected a single value");
    return STR_NULL;
}

static void config_read_key(struct parse *p, struct jread *r, struct str key, bool *seen)
{
    enum config_row row = CONFIG_ROW_COUNT;
    struct err why = ERR_INIT;
    if (!config_find(key, &row)) {
        const char *nearest = config_nearest(key, false);
        jread_skip(r);
        if (nearest == NULL)
            jread_fail(r, ERR_SYNTAX, "unknown key");
        else
            jread_fail(r, ERR_SYNTAX, "unknown key, did you mean \"%s\"?", nearest);
        return;
    }
    struct str text = config_read_scalar(r);
    if (jread_failed(r))
        return;
    if (seen[row]) {
        jread_fail(r, ERR_SYNTAX, "the key is there twice");
        return;
    }
    seen[row] = true;
    enum errc code = config_set(p, row, text, CONFIG_FROM_FILE, &why);
    if (code != OK)
        jread_fail(r, code, "%s", why.text);
}

static enum errc config_read_json(struct parse *p, struct str json)
{
    bool seen[CONFIG_ROW_COUNT] = {false};
    struct jread r;
    struct str key;
    jread_init(&r, json, &p->c.arena);
    jread_object (&r, key) {
        config_read_key(p, &r, key, seen);
    }
    return jread_finish(&r, &p->err);
}

static enum errc config_apply_file(struct parse *p)
{
    struct buf text;
    struct buf json;
    if (p->c.file.p == NULL)
        return OK;
    buf_init(&text, LIMIT_FILE_BYTES);
    buf_init(&json, 2 * LIMIT_FILE_BYTES);
    enum errc code = p->read(p->read_ctx, p->c.file, &text, &p->err);
    if (code != OK)
        (void)err_wrap(&p->err, "config file");
    else if (yaml_to_json_settings(buf_str(&text), &json, &p->err) != OK ||
             config_read_json(p, buf_str(&json)) != OK)
        code = err_wrap(&p->err, "config file \"%.*s\"", STR_ARG(p->c.file));
    buf_done(&json);
    buf_done(&text);
    return code;
}

static struct str config_environment_of(const struct config_env *env, const char *name)
{
    const struct {
        struct str name;
        struct str value;
    } all[] = {
        {STR("PORT"), env->port},
        {STR("LOG_LEVEL"), env->log_level},
        {STR("KUBECONFIG"), env->kubeconfig},
        {STR("POD_NAME"), env->pod_name},
        {STR("POD_NAMESPACE"), env->pod_namespace},
        {STR("POD_UID"), env->pod_uid},
    };

    for (size_t i = 0; name != NULL && i < COUNT_OF(all); i++) {
        if (str_eq(str_of(name), all[i].name))
            return all[i].value;
    }
    return STR_NULL;
}

static enum errc config_apply_environment(struct parse *p)
{
    for (size_t i = 0; i < CONFIG_ROW_COUNT; i++) {
        const char *name = config_table[i].environment;
        struct str value = config_environment_of(p->env, name);
        if (value.n == 0)
            continue;
        if (i == CONFIG_ROW_kubeconfig && memchr(value.p, ':', value.n) != NULL)
            return err_set(&p->err, ERR_SYNTAX,
                           "environment %s: \"%.*s\": lists several files; name one", name,
                           STR_ARG(value));
        if (config_set(p, (enum config_row)i, value, CONFIG_FROM_ENVIRONMENT, &p->err) != OK)
            return err_wrap(&p->err, "environment %s", name);
    }
    return OK;
}

static enum errc config_apply_flags(struct parse *p)
{
    for (size_t i = 0; i < CONFIG_ROW_COUNT; i++) {
        if (p->flags[i].p == NULL)
            continue;
        if (config_set(p, (enum config_row)i, p->flags[i], CONFIG_FROM_FLAG, &p->err) != OK)
            return err_wrap(&p->err, "flag --%s", config_table[i].name);
    }
    return OK;
}

/* Checks client-go's rules, and the rule of two thirds that election_step.h explains. */
static enum errc config_check_election(struct parse *p)
{
    const struct config *c = &p->c;
    if (c->lease_ms % CONFIG_SECOND != 0)
        return err_set(&p->err, ERR_RANGE,
                       "leader-elect-lease-duration: must be whole seconds, not %llums",
                       (unsigned long long)c->lease_ms);
    if (c->renew_deadline_ms > c->lease_ms / 3 * 2)
        return err_set(&p->err, ERR_CONFLICT,
                       "leader-elect-renew-deadline (%llums) must be two thirds of "
                       "leader-elect-lease-duration (%llums) at most",
                       (unsigned long long)c->renew_deadline_ms, (unsigned long long)c->lease_ms);
    if (c->retry_period_ms > c->renew_deadline_ms / 2)
        return err_set(&p->err, ERR_CONFLICT,
                       "leader-elect-retry-period (%llums) must be half of "
                       "leader-elect-renew-deadline (%llums) at most",
                       (unsigned long long)c->retry_period_ms,
                       (unsigned long long)c->renew_deadline_ms);
    return OK;
}

static enum errc config_check_cluster(struct parse *p)
{
    struct config *c = &p->c;
    enum config_source from = c->sources[CONFIG_ROW_kubeconfig];
    enum errc code = config_check_port(c, &p->err);
    if (code != OK)
        return code;
    if (c->cluster.n == 0 || c->kubeconfig.n == 0)
        return OK;
    if (from == CONFIG_FROM_ENVIRONMENT) {
        c->kubeconfig = STR("");
        c->sources[CONFIG_ROW_kubeconfig] = CONFIG_FROM_DEFAULT;
        return OK;
    }
    return err_set(&p->err, ERR_CONFLICT,
                   "cluster (%s: \"%.*s\") and kubeconfig (%s: \"%.*s\") exclude each other",
                   config_source_name(c->sources[CONFIG_ROW_cluster]), STR_ARG(c->cluster),
                   config_source_name(from), STR_ARG(c->kubeconfig));
}

static enum errc config_check_together(struct parse *p)
{
    enum errc code = config_check_election(p);
    return code == OK ? config_check_cluster(p) : code;
}

static enum errc config_parse_args(struct parse *p, int argc, char *const argv[])
{
    enum errc code = config_apply_defaults(p);
    if (code == OK)
        code = config_take_arguments(p, argc, argv);
    if (code != OK || p->c.action == CONFIG_HELP || p->c.action == CONFIG_VERSION)
        return code;
    if (p->c.file.p != NULL) {
        p->c.file = arena_dup(&p->c.arena, p->c.file);
        if (p->c.file.p == NULL)
            return err_set(&p->err, arena_fault(&p->c.arena), "no room for it");
    }
    code = config_apply_file(p);
    if (code == OK)
        code = config_apply_environment(p);
    if (code == OK)
        code = config_apply_flags(p);
    return code == OK ? config_check_together(p) : code;
}

enum errc config_parse(int argc, char *const argv[], const struct config_env *env,
                       config_read_fn *read, void *read_ctx, struct config *ret, struct err *reterr)
{
    struct parse p = {.env = env, .read = read, .read_ctx = read_ctx};
    arena_init(&p.c.arena, ARENA_MAX);
    enum errc code = config_parse_args(&p, argc, argv);
    if (code == OK) {
        *ret = p.c;
        return OK;
    }
    arena_done(&p.c.arena);
    return err_set(reterr, code, "%s", p.err.text);
}

void config_done(struct config *c)
{
    arena_done(&c->arena);
}

enum errc config_read_file(void *ctx, struct str path, struct buf *out, struct err *reterr)
{
    (void)ctx;
    return file_read(path, out, reterr);
}

/* ---- the settings of the port, together ---- */

/* A setting that has no meaning without another one. */
static const struct {
    enum config_row row;
    enum config_row needed;
} needs[] = {
    {CONFIG_ROW_tls_cert_file, CONFIG_ROW_tls_key_file},
    {CONFIG_ROW_tls_key_file, CONFIG_ROW_tls_cert_file},
    {CONFIG_ROW_client_ca_file, CONFIG_ROW_tls_cert_file},
    {CONFIG_ROW_client_names, CONFIG_ROW_client_ca_file},
};

/* A client that reaches the port can bind pods: no combination may be less secure than it reads. */
enum errc config_check_port(const struct config *c, struct err *reterr)
{
    for (size_t i = 0; i < COUNT_OF(needs); i++) {
        struct str text = config_get(c, needs[i].row).text;
        if (text.n > 0 && config_get(c, needs[i].needed).text.n == 0)
            return err_set(reterr, ERR_CONFLICT, "%s (%s: \"%.*s\") needs %s, which is not set",
                           config_table[needs[i].row].name,
                           config_source_name(c->sources[needs[i].row]), STR_ARG(text),
                           config_table[needs[i].needed].name);
    }
    if (c->memory_budget < c->max_body)
        return err_set(
            reterr, ERR_CONFLICT,
            "memory-budget (%s: %zu bytes) is less than max-body (%s: %zu bytes): such a "
            "body would never be taken",
            config_source_name(c->sources[CONFIG_ROW_memory_budget]), c->memory_budget,
            config_source_name(c->sources[CONFIG_ROW_max_body]), c->max_body);
    if (c->token_file.n > 0 && c->tls_cert_file.n == 0 && !value_is_loopback(c->listen_address))
        return err_set(reterr, ERR_CONFLICT,
                       "token-file (%s: \"%.*s\") needs tls-cert-file where listen-address "
                       "(\"%.*s\") is not loopback: the token would travel in the clear",
                       config_source_name(c->sources[CONFIG_ROW_token_file]),
                       STR_ARG(c->token_file), STR_ARG(c->listen_address));
    if (c->tls_cert_file.n > 0 || c->allow_plain_http || value_is_loopback(c->listen_address))
        return OK;
    return err_set(reterr, ERR_DENIED,
                   "listen-address (%s: \"%.*s\") is not loopback, and the port speaks plain HTTP: "
                   "set tls-cert-file and tls-key-file, or allow-plain-http where every client "
                   "that reaches the port may bind pods",
                   config_source_name(c->sources[CONFIG_ROW_listen_address]),
                   STR_ARG(c->listen_address));
}
