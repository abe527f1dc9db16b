/*
 * Reads an exec with the defaults and errors of client-go's clientcmd. In v1 interactiveMode has no
 * default: the author of the kubeconfig must set it.
 */
#include "codec/kubeconfig_exec.h"

#define PREFIX "client.authentication.k8s.io/"

/* Refuses NUL, which would end an argument or an environment variable. */
static struct str read_text(struct jread *r)
{
    struct str s = jread_str(r);
    if (s.n > 0 && memchr(s.p, '\0', s.n) != NULL) {
        jread_fail(r, ERR_SYNTAX, "holds a NUL");
        return STR_NULL;
    }
    return s.p == NULL ? STR("") : s;
}

static void read_args(struct jread *r, struct kubeconfig_exec *e)
{
    size_t cap = 0;
    e->n_args = 0;
    jread_array (r) {
        struct str arg = read_text(r);
        struct str *args = arena_grow(r->arena, e->args, e->n_args, &cap, sizeof(*args));
        if (args == NULL) {
            jread_fail(r, ERR_LIMIT, "too many");
            continue;
        }
        e->args = args;
        args[e->n_args++] = arg;
    }
}

static void read_variable(struct jread *r, struct str *ret_name, struct str *ret_value)
{
    struct str key;
    *ret_name = STR("");
    *ret_value = STR("");
    jread_object (r, key) {
        if (str_eq(key, STR("name")))
            *ret_name = read_text(r);
        else if (str_eq(key, STR("value")))
            *ret_value = read_text(r);
        else
            jread_skip(r);
    }
    if (ret_name->n == 0)
        jread_fail(r, ERR_SYNTAX, "name is not set");
    else if (memchr(ret_name->p, '=', ret_name->n) != NULL)
        jread_fail(r, ERR_SYNTAX, "name: holds a \"=\"");
}

static void read_env(struct jread *r, struct kubeconfig_exec *e)
{
    size_t names_cap = 0;
    size_t values_cap = 0;
    e->n_env = 0;
    jread_array (r) {
        struct str name;
        struct str value;
        read_variable(r, &name, &value);
        struct str *names =
            arena_grow(r->arena, e->env_names, e->n_env, &names_cap, sizeof(*names));
        struct str *values =
            arena_grow(r->arena, e->env_values, e->n_env, &values_cap, sizeof(*values));
        if (names == NULL || values == NULL) {
            jread_fail(r, ERR_LIMIT, "too many");
            continue;
        }
        e->env_names = names;
        e->env_values = values;
        names[e->n_env] = name;
        values[e->n_env++] = value;
    }
}

static void check_version(struct jread *r, struct str version)
{
    if (version.n == 0)
        jread_fail(r, ERR_SYNTAX, "apiVersion is not set");
    else if (str_eq(version, STR(PREFIX "v1alpha1")))
        jread_fail(r, ERR_DENIED,
                   "apiVersion: " PREFIX "v1alpha1 is gone since kubectl 1.24; update the program "
                   "and let it write this kubeconfig again, with v1 or v1beta1");
    else if (!str_eq(version, EXEC_VERSION_V1) && !str_eq(version, EXEC_VERSION_V1BETA1))
        jread_fail(r, ERR_SYNTAX, "apiVersion: \"%.*s\" must be " PREFIX "v1 or " PREFIX "v1beta1",
                   STR_ARG(version));
}

static void check_mode(struct jread *r, struct str mode, struct kubeconfig_exec *e)
{
    if (mode.n == 0 && str_eq(e->version, EXEC_VERSION_V1BETA1))
        mode = STR("IfAvailable");
    if (str_eq(mode, STR("Never")))
        e->interactive = EXEC_NEVER;
    else if (str_eq(mode, STR("IfAvailable")))
        e->interactive = EXEC_IF_AVAILABLE;
    else if (str_eq(mode, STR("Always")))
        e->interactive = EXEC_ALWAYS;
    else if (mode.n > 0)
        jread_fail(r, ERR_SYNTAX, "interactiveMode: \"%.*s\" must be Never, IfAvailable or Always",
                   STR_ARG(mode));
    else
        jread_fail(r, ERR_SYNTAX,
                   "interactiveMode is not set; v1 needs it: Never, IfAvailable or Always");
}

void kubeconfig_exec_read(struct jread *r, struct kubeconfig_exec *ret)
{
    struct str key;
    struct str mode = STR_NULL;
    jread_object (r, key) {
        if (str_eq(key, STR("apiVersion")))
            ret->version = read_text(r);
        else if (str_eq(key, STR("command")))
            ret->command = read_text(r);
        else if (str_eq(key, STR("args")))
            read_args(r, ret);
        else if (str_eq(key, STR("env")))
            read_env(r, ret);
        else if (str_eq(key, STR("installHint")))
            ret->hint = jread_str(r);
        else if (str_eq(key, STR("interactiveMode")))
            mode = jread_str(r);
        else if (str_eq(key, STR("provideClusterInfo")))
            ret->provide_cluster_info = jread_bool(r);
        else
            jread_skip(r);
    }
    if (ret->command.n == 0)
        jread_fail(r, ERR_SYNTAX, "command is not set");
    check_version(r, ret->version);
    check_mode(r, mode, ret);
}

void kubeconfig_exec_read_extensions(struct jread *r, struct kubeconfig_exec *ret)
{
    jread_array (r) {
        struct str name = STR_NULL;
        struct str raw = STR_NULL;
        struct str key;
        jread_object (r, key) {
            if (str_eq(key, STR("name")))
                name = jread_str(r);
            else if (str_eq(key, STR("extension")))
                raw = jread_raw(r);
            else
                jread_skip(r);
        }
        if (str_eq(name, STR(PREFIX "exec")))
            ret->cluster_config = raw;
    }
}
