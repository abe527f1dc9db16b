/*
 * Reads a kubeconfig in two passes. The first notes name and raw JSON of each entry; the second
 * decodes the three entries that the current context names. So an unused entry cannot fail the
 * start, and fields may come in any order. The document is copied into the arena; views point into
 * it.
 */
#include "objects/kubeconfig.h"

#include "objects/kubeconfig_server.h"
#include "json/jread.h"
#include "json/yaml.h"

struct entry {
    struct str name;
    struct str raw; /* JSON of its "cluster", "context" or "user" */
};

struct entries {
    struct entry *items;
    size_t n;
    size_t cap;
};

struct file {
    struct str path;
    struct str directory; /* of relative paths; ends in a slash, or empty */
    struct arena *arena;
    struct err *err;
    struct entries clusters;
    struct entries contexts;
    struct entries users;
    struct str current;
    struct kubeconfig *ret;
};

struct context {
    struct str cluster;
    struct str user;
    struct str namespace;
};

/* A string field and its offset in the result. */
struct field {
    const char *name;
    size_t offset;
};

static const struct field cluster_fields[] = {
    {"server", offsetof(struct kubeconfig, server)},
    {"certificate-authority", offsetof(struct kubeconfig, ca_file)},
    {"certificate-authority-data", offsetof(struct kubeconfig, ca_data)},
    {"tls-server-name", offsetof(struct kubeconfig, tls_server_name)},
    {"proxy-url", offsetof(struct kubeconfig, proxy_url)},
};

static const struct field user_fields[] = {
    {"client-certificate", offsetof(struct kubeconfig, client_cert_file)},
    {"client-certificate-data", offsetof(struct kubeconfig, client_cert_data)},
    {"client-key", offsetof(struct kubeconfig, client_key_file)},
    {"client-key-data", offsetof(struct kubeconfig, client_key_data)},
    {"token", offsetof(struct kubeconfig, token)},
    {"tokenFile", offsetof(struct kubeconfig, token_file)},
    {"username", offsetof(struct kubeconfig, username)},
    {"password", offsetof(struct kubeconfig, password)},
    {"as", offsetof(struct kubeconfig, as_user)},
    {"as-uid", offsetof(struct kubeconfig, as_uid)},
};

static const struct field context_fields[] = {
    {"cluster", offsetof(struct context, cluster)},
    {"user", offsetof(struct context, user)},
    {"namespace", offsetof(struct context, namespace)},
};

/*
 * Reads a string that may become part of a header, a URL or a path; refuses control characters,
 * which could end a line. An empty string counts as absent, as in client-go.
 */
static struct str kubeconfig_read_str(struct jread *r)
{
    struct str s = jread_str(r);
    for (size_t i = 0; i < s.n; i++) {
        if ((unsigned char)s.p[i] < 0x20 || s.p[i] == 0x7f) {
            jread_fail(r, ERR_SYNTAX, "holds a control character");
            return STR_NULL;
        }
    }
    return s.n == 0 ? STR_NULL : s;
}

static bool kubeconfig_read_field(struct jread *r, struct str key, const struct field *fields,
                                  size_t n, void *target)
{
    for (size_t i = 0; i < n; i++) {
        if (!str_eq(key, str_of(fields[i].name)))
            continue;
        struct str value = str_ends(key, STR("-data")) ? jread_str(r) : kubeconfig_read_str(r);
        memcpy((char *)target + fields[i].offset, &value, sizeof(value));
        return true;
    }
    return false;
}

static enum errc kubeconfig_no_memory(struct err *e)
{
    return err_set(e, ERR_LIMIT, "too large");
}

/* [{name: ..., <what>: {...}}, ...] */
static void kubeconfig_read_entries(struct jread *r, const char *what, struct entries *list)
{
    jread_array (r) {
        struct entry e = {.raw = STR("{}")};
        struct str key;
        jread_object (r, key) {
            if (str_eq(key, STR("name")))
                e.name = kubeconfig_read_str(r);
            else if (str_eq(key, str_of(what)))
                e.raw = jread_raw(r);
            else
                jread_skip(r);
        }
        struct entry *items =
            arena_grow(r->arena, list->items, list->n, &list->cap, sizeof(*items));
        if (items == NULL) {
            jread_fail(r, ERR_LIMIT, "too many");
            continue;
        }
        list->items = items;
        list->items[list->n++] = e;
    }
}

static void kubeconfig_read_expected(struct jread *r, struct str expected)
{
    struct str s = jread_str(r);
    if (s.n > 0 && !str_eq(s, expected))
        jread_fail(r, ERR_SYNTAX, "is \"%.*s\", expected \"%.*s\"", STR_ARG(s), STR_ARG(expected));
}

static enum errc kubeconfig_read_file(struct file *f, struct str json)
{
    struct jread r;
    struct str key;
    jread_init(&r, json, f->arena);
    jread_object (&r, key) {
        if (str_eq(key, STR("apiVersion")))
            kubeconfig_read_expected(&r, STR("v1"));
        else if (str_eq(key, STR("kind")))
            kubeconfig_read_expected(&r, STR("Config"));
        else if (str_eq(key, STR("clusters")))
            kubeconfig_read_entries(&r, "cluster", &f->clusters);
        else if (str_eq(key, STR("contexts")))
            kubeconfig_read_entries(&r, "context", &f->contexts);
        else if (str_eq(key, STR("users")))
            kubeconfig_read_entries(&r, "user", &f->users);
        else if (str_eq(key, STR("current-context")))
            f->current = kubeconfig_read_str(&r);
        else
            jread_skip(&r);
    }
    return jread_finish(&r, f->err);
}

static enum errc kubeconfig_find(struct file *f, const struct entries *list, const char *what,
                                 struct str name, struct str *ret_raw)
{
    size_t found = 0;
    for (size_t i = 0; i < list->n; i++) {
        if (!str_eq(list->items[i].name, name))
            continue;
        *ret_raw = list->items[i].raw;
        found++;
    }
    if (found == 1)
        return OK;
    if (found == 0)
        return err_set(f->err, ERR_NOTFOUND, "%s \"%.*s\" is not in the file", what, STR_ARG(name));
    return err_set(f->err, ERR_CONFLICT, "%s \"%.*s\" is there %zu times", what, STR_ARG(name),
                   found);
}

/* An absolute path stays; any other is joined with the directory of the file. */
static enum errc kubeconfig_resolve_path(struct file *f, struct str *path)
{
    size_t dir = f->directory.n;
    if (path->n == 0 || path->p[0] == '/' || dir == 0)
        return OK;
    char *joined = arena_alloc(f->arena, dir + path->n);
    if (joined == NULL)
        return kubeconfig_no_memory(f->err);
    memcpy(joined, f->directory.p, dir);
    memcpy(joined + dir, path->p, path->n);
    *path = (struct str){joined, dir + path->n};
    return OK;
}

/* For a value that may be a file or base64 of PEM, but not both. */
static enum errc kubeconfig_resolve_pem(struct file *f, const char *what, struct str *file,
                                        struct str *data)
{
    if (file->n > 0 && data->n > 0)
        return err_set(f->err, ERR_CONFLICT, "%s and %s-data exclude each other", what, what);
    if (data->n == 0)
        return kubeconfig_resolve_path(f, file);
    enum errc code = base64_decode(*data, f->arena, data);
    if (code == ERR_SYNTAX)
        return err_set(f->err, code, "%s-data: not base64", what);
    if (code != OK)
        return kubeconfig_no_memory(f->err);
    if (memmem(data->p, data->n, "-----BEGIN ", 11) == NULL)
        return err_set(f->err, ERR_SYNTAX, "%s-data: not PEM", what);
    return OK;
}

static enum errc kubeconfig_read_cluster(struct file *f, struct str raw)
{
    struct kubeconfig *k = f->ret;
    struct jread r;
    struct str key;
    jread_init(&r, raw, f->arena);
    jread_object (&r, key) {
        if (str_eq(key, STR("insecure-skip-tls-verify")))
            k->insecure_skip_tls_verify = jread_bool(&r);
        else if (!kubeconfig_read_field(&r, key, cluster_fields, COUNT_OF(cluster_fields), k))
            jread_skip(&r);
    }
    enum errc code = jread_finish(&r, f->err);
    if (code == OK && k->server.n == 0)
        code = err_set(f->err, ERR_SYNTAX, "server is not set");
    if (code == OK && kubeconfig_server_check(&k->server, f->err) != OK)
        code = err_wrap(f->err, "server");
    if (code == OK)
        code = kubeconfig_resolve_pem(f, "certificate-authority", &k->ca_file, &k->ca_data);
    if (code == OK && k->insecure_skip_tls_verify && k->ca_file.n + k->ca_data.n > 0)
        code = err_set(f->err, ERR_CONFLICT,
                       "insecure-skip-tls-verify and a certificate-authority exclude each other");
    return code == OK ? kubeconfig_proxy_check(k->proxy_url, f->err) : code;
}

static size_t kubeconfig_read_list(struct jread *r, struct str **ret)
{
    struct str *items = NULL;
    size_t n = 0;
    size_t cap = 0;
    jread_array (r) {
        struct str item = kubeconfig_read_str(r);
        struct str *more = arena_grow(r->arena, items, n, &cap, sizeof(*items));
        if (more == NULL) {
            jread_fail(r, ERR_LIMIT, "too many");
            continue;
        }
        items = more;
        items[n++] = item;
    }
    *ret = items;
    return n;
}

/* {key: [value, ...]} becomes one pair for each value. */
static void kubeconfig_read_extra(struct jread *r, struct kubeconfig *k)
{
    struct str key;
    size_t keys_cap = 0;
    size_t values_cap = 0;
    k->n_as_extra = 0;
    jread_object (r, key) {
        struct str *values = NULL;
        size_t n = kubeconfig_read_list(r, &values);
        for (size_t i = 0; i < n; i++) {
            struct str *keys =
                arena_grow(r->arena, k->as_extra_keys, k->n_as_extra, &keys_cap, sizeof(*keys));
            struct str *all =
                arena_grow(r->arena, k->as_extra_values, k->n_as_extra, &values_cap, sizeof(*all));
            if (keys == NULL || all == NULL) {
                jread_fail(r, ERR_LIMIT, "too many");
                break;
            }
            k->as_extra_keys = keys;
            k->as_extra_values = all;
            keys[k->n_as_extra] = key;
            all[k->n_as_extra++] = values[i];
        }
    }
}

/* The string that the object has under that key: empty without one, absent for null in place of the
 * object. The object's other fields are ignored. */
static struct str kubeconfig_read_plugin(struct jread *r, const char *name)
{
    struct str plugin = STR("");
    struct str key;
    if (jread_type(r) == JTYPE_NULL) {
        jread_skip(r);
        return STR_NULL;
    }
    jread_object (r, key) {
        if (str_eq(key, str_of(name)))
            plugin = kubeconfig_read_str(r);
        else
            jread_skip(r);
    }
    return plugin.p == NULL ? STR("") : plugin;
}

static enum errc kubeconfig_refuse_plugin(struct file *f, const char *what, struct str name)
{
    if (name.p == NULL)
        return OK;
    if (name.n == 0)
        return err_set(f->err, ERR_DENIED,
                       "an %s is not supported; use a token, tokenFile or client certificate",
                       what);
    return err_set(f->err, ERR_DENIED,
                   "%s \"%.*s\" is not supported; use a token, tokenFile or client certificate",
                   what, STR_ARG(name));
}

static enum errc kubeconfig_check_user(struct file *f)
{
    struct kubeconfig *k = f->ret;
    bool cert = k->client_cert_file.n + k->client_cert_data.n > 0;
    bool key = k->client_key_file.n + k->client_key_data.n > 0;
    bool token = k->token.n + k->token_file.n > 0;
    bool basic = k->username.n + k->password.n > 0;
    if (cert && !key)
        return err_set(f->err, ERR_CONFLICT, "client-certificate without client-key");
    if (key && !cert)
        return err_set(f->err, ERR_CONFLICT, "client-key without client-certificate");
    if (token && basic)
        return err_set(f->err, ERR_CONFLICT, "token and username exclude each other");
    if (basic && k->username.n == 0)
        return err_set(f->err, ERR_CONFLICT, "password without username");
    if (k->as_user.n == 0 && k->as_uid.n + k->n_as_groups + k->n_as_extra > 0)
        return err_set(f->err, ERR_CONFLICT, "as-uid, as-groups and as-user-extra need \"as\"");
    return OK;
}

static enum errc kubeconfig_read_user(struct file *f, struct str raw)
{
    struct kubeconfig *k = f->ret;
    struct str exec = STR_NULL;
    struct str provider = STR_NULL;
    struct jread r;
    struct str key;
    jread_init(&r, raw, f->arena);
    jread_object (&r, key) {
        if (str_eq(key, STR("exec")))
            exec = kubeconfig_read_plugin(&r, "command");
        else if (str_eq(key, STR("auth-provider")))
            provider = kubeconfig_read_plugin(&r, "name");
        else if (str_eq(key, STR("as-groups")))
            k->n_as_groups = kubeconfig_read_list(&r, &k->as_groups);
        else if (str_eq(key, STR("as-user-extra")))
            kubeconfig_read_extra(&r, k);
        else if (!kubeconfig_read_field(&r, key, user_fields, COUNT_OF(user_fields), k))
            jread_skip(&r);
    }
    enum errc code = jread_finish(&r, f->err);
    if (code == OK)
        code = kubeconfig_refuse_plugin(f, "auth provider", provider);
    if (code == OK)
        code = kubeconfig_refuse_plugin(f, "exec credential plugin", exec);
    if (code == OK)
        code = kubeconfig_resolve_pem(f, "client-certificate", &k->client_cert_file,
                                      &k->client_cert_data);
    if (code == OK)
        code = kubeconfig_resolve_pem(f, "client-key", &k->client_key_file, &k->client_key_data);
    if (code == OK)
        code = kubeconfig_resolve_path(f, &k->token_file);
    return code == OK ? kubeconfig_check_user(f) : code;
}

static enum errc kubeconfig_read_context(struct file *f, struct str raw, struct context *ret)
{
    struct jread r;
    struct str key;
    jread_init(&r, raw, f->arena);
    jread_object (&r, key) {
        if (!kubeconfig_read_field(&r, key, context_fields, COUNT_OF(context_fields), ret))
            jread_skip(&r);
    }
    enum errc code = jread_finish(&r, f->err);
    if (code == OK && ret->cluster.n == 0)
        code = err_set(f->err, ERR_SYNTAX, "cluster is not set");
    if (code == OK && ret->user.n == 0)
        code = err_set(f->err, ERR_SYNTAX, "user is not set");
    return code;
}

static enum errc kubeconfig_resolve(struct file *f)
{
    struct context context = {.cluster = STR_NULL};
    struct str raw = STR_NULL;
    if (f->current.n == 0)
        return err_set(f->err, ERR_NOTFOUND, "current-context is not set");
    enum errc code = kubeconfig_find(f, &f->contexts, "context", f->current, &raw);
    if (code != OK)
        return code;
    if (kubeconfig_read_context(f, raw, &context) != OK)
        return err_wrap(f->err, "context \"%.*s\"", STR_ARG(f->current));
    f->ret->namespace = context.namespace;
    code = kubeconfig_find(f, &f->clusters, "cluster", context.cluster, &raw);
    if (code != OK)
        return err_wrap(f->err, "context \"%.*s\"", STR_ARG(f->current));
    if (kubeconfig_read_cluster(f, raw) != OK)
        return err_wrap(f->err, "cluster \"%.*s\"", STR_ARG(context.cluster));
    code = kubeconfig_find(f, &f->users, "user", context.user, &raw);
    if (code != OK)
        return err_wrap(f->err, "context \"%.*s\"", STR_ARG(f->current));
    if (kubeconfig_read_user(f, raw) != OK)
        return err_wrap(f->err, "user \"%.*s\"", STR_ARG(context.user));
    return OK;
}

static enum errc kubeconfig_read_text(struct str text, struct file *f)
{
    struct buf json;
    buf_init(&json, 2 * LIMIT_FILE_BYTES);
    enum errc code = yaml_to_json(text, &json, f->err);
    struct str copy = code == OK ? arena_dup(f->arena, buf_str(&json)) : STR_NULL;
    buf_done(&json);
    if (code == OK && copy.p == NULL)
        code = kubeconfig_no_memory(f->err);
    if (code == OK)
        code = kubeconfig_read_file(f, copy);
    if (code == OK)
        code = kubeconfig_resolve(f);
    return code == OK && arena_failed(f->arena) ? kubeconfig_no_memory(f->err) : code;
}

enum errc kubeconfig_read(struct str text, struct str path, struct arena *arena,
                          struct kubeconfig *ret, struct err *reterr)
{
    struct err err = ERR_INIT;
    struct kubeconfig found = {.server = STR_NULL};
    struct file f = {.path = path, .directory = path, .arena = arena, .err = &err, .ret = &found};
    while (f.directory.n > 0 && path.p[f.directory.n - 1] != '/')
        f.directory.n--;
    enum errc code = kubeconfig_read_text(text, &f);
    if (code == OK) {
        *ret = found;
        return OK;
    }
    (void)err_wrap(&err, "kubeconfig \"%.*s\"", STR_ARG(path));
    return err_set(reterr, code, "%s", err.text);
}
