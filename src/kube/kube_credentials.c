/*
 * Reads credentials from a kubeconfig or from the files mounted in a pod. The mounted files are
 * turned into a struct kubeconfig, so other code knows one form only. A missing CA file in a
 * cluster is an error: client-go would trust the system's root CAs instead, and send the token to
 * any server with a certificate of theirs. Over plain HTTP (kubeconfig_read allows it for loopback)
 * no credentials are sent, as in client-go: a token that was sent in clear text is no longer a
 * secret.
 */
#include "kube/kube_credentials.h"

#include "base/limit.h"

#include <ctype.h>

#define TOKEN_FRESH_MS  50000
#define TOKEN_MAX_BYTES (64 * KIB)

static struct str kube_credentials_join(struct arena *arena, const struct str *parts, size_t n)
{
    size_t size = 0;
    for (size_t i = 0; i < n; i++)
        size += parts[i].n;
    char *joined = arena_alloc(arena, size);
    if (joined == NULL)
        return STR_NULL;
    char *at = joined;
    for (size_t i = 0; i < n; i++) {
        if (parts[i].n > 0)
            memcpy(at, parts[i].p, parts[i].n);
        at += parts[i].n;
    }
    return (struct str){joined, size};
}

#define JOIN(arena, ...)                                              \
    kube_credentials_join((arena), (const struct str[]){__VA_ARGS__}, \
                          sizeof((const struct str[]){__VA_ARGS__}) / sizeof(struct str))

static enum errc kube_credentials_read_file(struct str path, struct arena *arena, struct str *ret,
                                            struct err *reterr)
{
    if (path.p == NULL)
        return err_set(reterr, ERR_NOMEM, "out of memory");
    struct buf text;
    buf_init(&text, LIMIT_FILE_BYTES);
    enum errc code = file_read(path, &text, reterr);
    if (code == OK) {
        /* An empty file is empty, not absent. */
        *ret = text.n == 0 ? STR("") : arena_dup(arena, buf_str(&text));
        if (ret->p == NULL)
            code = err_set(reterr, ERR_NOMEM, "%.*s: out of memory", STR_ARG(path));
    }
    buf_done(&text);
    return code;
}

static bool kube_credentials_is_host(struct str host)
{
    for (size_t i = 0; i < host.n; i++) {
        unsigned char c = (unsigned char)host.p[i];
        if (!isalnum(c) && c != '.' && c != '-' && c != ':' && c != '_')
            return false;
    }
    return host.n > 0;
}

static enum errc kube_credentials_find_in_cluster(const struct kube_api_settings *s,
                                                  struct arena *arena, struct kube_credentials *ret,
                                                  struct err *reterr)
{
    struct kubeconfig *c = &ret->config;
    uint64_t port = 0;
    if (!kube_credentials_is_host(s->service_host))
        return err_set(reterr, ERR_SYNTAX, "KUBERNETES_SERVICE_HOST is not a host: \"%.*s\"",
                       STR_ARG(s->service_host));
    if (!str_to_u64(s->service_port, UINT16_MAX, &port) || port == 0)
        return err_set(reterr, ERR_SYNTAX, "KUBERNETES_SERVICE_PORT is not a port: \"%.*s\"",
                       STR_ARG(s->service_port));
    bool v6 = memchr(s->service_host.p, ':', s->service_host.n) != NULL;
    c->server = JOIN(arena, STR("https://"), v6 ? STR("[") : STR_NULL, s->service_host,
                     v6 ? STR("]") : STR_NULL, STR(":"), s->service_port);
    c->ca_file = JOIN(arena, s->service_account, STR("/ca.crt"));
    c->token_file = JOIN(arena, s->service_account, STR("/token"));

    struct str content = STR_NULL;
    enum errc code = kube_credentials_read_file(c->ca_file, arena, &content, reterr);
    if (code == OK && str_trim(content).n == 0)
        code = err_set(reterr, ERR_SYNTAX, "%.*s: empty", STR_ARG(c->ca_file));
    if (code != OK) {
        (void)err_wrap(reterr, "in cluster, but its CA cannot be had");
        return code;
    }
    /* Optional: only a default, for the Lease's namespace. */
    struct str file = JOIN(arena, s->service_account, STR("/namespace"));
    if (kube_credentials_read_file(file, arena, &content, NULL) == OK && str_trim(content).n > 0)
        c->namespace = str_trim(content);
    ret->origin = JOIN(arena, c->server, STR(" (in cluster)"));
    return OK;
}

static enum errc kube_credentials_find_in_file(struct str path, struct arena *arena,
                                               struct kube_credentials *ret, struct err *reterr)
{
    struct str text = STR_NULL;
    enum errc code = kube_credentials_read_file(path, arena, &text, reterr);
    if (code == OK)
        code = kubeconfig_read(text, path, arena, &ret->config, reterr);
    ret->origin = JOIN(arena, ret->config.server, STR(" (kubeconfig "), path, STR(")"));
    return code;
}

/* No control characters: a line break in a name would start another header. */
static bool kube_credentials_is_header_value(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (c < 0x20 || c == 0x7f)
            return false;
    }
    return s.n > 0;
}

/* The extra's key becomes part of a header name: lower case, other bytes escaped like client-go. */
static struct str kube_credentials_extra_key(struct arena *arena, struct str key)
{
    static const char hex[] = "0123456789ABCDEF";
    char *out = arena_array(arena, key.n, 3);
    size_t n = 0;
    for (size_t i = 0; out != NULL && i < key.n; i++) {
        unsigned char c = (unsigned char)key.p[i];
        if (isalnum(c) || (c != '\0' && strchr("!#$&'*+-.^_`|~", c) != NULL)) {
            out[n++] = (char)tolower(c);
        } else {
            out[n++] = '%';
            out[n++] = hex[c >> 4];
            out[n++] = hex[c & 15];
        }
    }
    return (struct str){out, n};
}

static enum errc kube_credentials_add_header(struct kube_credentials *c, struct str header,
                                             struct str value, struct err *reterr)
{
    if (!kube_credentials_is_header_value(value))
        return err_set(reterr, ERR_SYNTAX, "impersonation: \"%.*s\" cannot be sent in a header",
                       STR_ARG(value));
    c->headers[c->n_headers++] = header;
    return OK;
}

static enum errc kube_credentials_impersonate(struct kube_credentials *c, struct arena *arena,
                                              struct err *reterr)
{
    const struct kubeconfig *k = &c->config;
    enum errc code = OK;
    size_t n = 2 + k->n_as_groups + k->n_as_extra;
    if (k->as_user.n == 0 && (k->as_uid.n > 0 || n > 2))
        return err_set(reterr, ERR_SYNTAX,
                       "impersonation: uid, groups or extra values without a user");
    c->headers = arena_array(arena, n, sizeof(*c->headers));
    if (c->headers == NULL)
        return err_set(reterr, ERR_NOMEM, "out of memory");
    if (k->as_user.n > 0)
        code = kube_credentials_add_header(c, JOIN(arena, STR("Impersonate-User: "), k->as_user),
                                           k->as_user, reterr);
    if (code == OK && k->as_uid.n > 0)
        code = kube_credentials_add_header(c, JOIN(arena, STR("Impersonate-Uid: "), k->as_uid),
                                           k->as_uid, reterr);
    for (size_t i = 0; code == OK && i < k->n_as_groups; i++)
        code = kube_credentials_add_header(
            c, JOIN(arena, STR("Impersonate-Group: "), k->as_groups[i]), k->as_groups[i], reterr);
    for (size_t i = 0; code == OK && i < k->n_as_extra; i++)
        code =
            kube_credentials_add_header(c,
                                        JOIN(arena, STR("Impersonate-Extra-"),
                                             kube_credentials_extra_key(arena, k->as_extra_keys[i]),
                                             STR(": "), k->as_extra_values[i]),
                                        k->as_extra_values[i], reterr);
    return code;
}

static void kube_credentials_forget_identity(struct kube_credentials *c, struct arena *arena)
{
    struct kubeconfig *k = &c->config;
    bool had = k->token.n > 0 || k->token_file.n > 0 || k->username.n > 0 || k->as_user.n > 0;
    k->token = k->token_file = k->username = k->password = STR_NULL;
    k->as_user = k->as_uid = STR_NULL;
    k->n_as_groups = k->n_as_extra = 0;
    if (had)
        c->origin = JOIN(arena, c->origin, STR(", without credentials: plain http"));
}

enum errc kube_credentials_find(const struct kube_api_settings *s, struct arena *arena,
                                struct kube_credentials *ret, struct err *reterr)
{
    enum errc code;
    *ret = (struct kube_credentials){0};
    if (s->config != NULL) {
        ret->config = *s->config;
        ret->origin = s->config->server;
        code = OK;
    } else if (s->kubeconfig.n > 0) {
        code = kube_credentials_find_in_file(s->kubeconfig, arena, ret, reterr);
    } else if (s->service_host.n > 0 && s->service_port.n > 0) {
        code = kube_credentials_find_in_cluster(s, arena, ret, reterr);
    } else if (s->home.n > 0) {
        code = kube_credentials_find_in_file(JOIN(arena, s->home, STR("/.kube/config")), arena, ret,
                                             reterr);
        if (code != OK)
            (void)err_wrap(reterr, "no kubeconfig is named and this is not in a cluster");
    } else {
        code = err_set(reterr, ERR_NOTFOUND,
                       "no kubeconfig is named, this is not in a cluster, and there is no home "
                       "directory");
    }
    if (code != OK)
        return code;
    ret->tls = str_starts(ret->config.server, STR("https://"));
    if (!ret->tls)
        kube_credentials_forget_identity(ret, arena);
    code = kube_credentials_impersonate(ret, arena, reterr);
    if (code == OK && arena_failed(arena))
        code = err_set(reterr, ERR_NOMEM, "out of memory");
    return code;
}

/* Printable ASCII without space, which includes all that RFC 6750 allows. A line break would start
 * another header. */
static bool kube_credentials_is_token(struct str token)
{
    for (size_t i = 0; i < token.n; i++) {
        unsigned char c = (unsigned char)token.p[i];
        if (c <= 0x20 || c >= 0x7f)
            return false;
    }
    return token.n > 0;
}

static enum errc kube_credentials_token_set(struct kube_token *t, struct str token,
                                            const char *what, struct err *reterr)
{
    if (token.n == 0)
        return err_set(reterr, ERR_SYNTAX, "%s: the token is empty", what);
    if (!kube_credentials_is_token(token))
        return err_set(reterr, ERR_SYNTAX, "%s: holds a character that no token has", what);
    struct buf fresh;
    buf_init(&fresh, TOKEN_MAX_BYTES);
    buf_put(&fresh, token);
    if (buf_failed(&fresh)) {
        buf_done(&fresh);
        return err_set(reterr, ERR_NOMEM, "%s: out of memory", what);
    }
    buf_done(&t->value);
    t->value = fresh;
    return OK;
}

static enum errc kube_credentials_token_read(struct kube_token *t, bool again, uint64_t now_ms,
                                             struct err *reterr)
{
    if (t->file.n == 0)
        return OK;
    struct buf text;
    buf_init(&text, TOKEN_MAX_BYTES);
    enum errc code =
        again ? file_read_again(t->file, &text, reterr) : file_read(t->file, &text, reterr);
    if (code == OK) {
        code = kube_credentials_token_set(t, str_trim(buf_str(&text)), "token file", reterr);
        if (code != OK)
            (void)err_wrap(reterr, "%.*s", STR_ARG(t->file));
    }
    buf_done(&text);
    t->read_ms = now_ms;
    return code;
}

enum errc kube_token_refresh(struct kube_token *t, uint64_t now_ms, struct err *reterr)
{
    return kube_credentials_token_read(t, true, now_ms, reterr);
}

enum errc kube_token_init(struct kube_token *t, const struct kubeconfig *config, uint64_t now_ms,
                          struct err *reterr)
{
    *t = (struct kube_token){.file = config->token_file};
    enum errc code = kube_credentials_token_read(t, false, now_ms, reterr);
    /* As in client-go a token file takes precedence over an inline token. The inline token is used
     * until the file can be read. */
    if (t->value.n == 0 && config->token.n > 0)
        code = kube_credentials_token_set(t, str_trim(config->token), "token", reterr);
    return code;
}

void kube_token_done(struct kube_token *t)
{
    buf_done(&t->value);
}

struct str kube_token_get(struct kube_token *t, uint64_t now_ms)
{
    if (t->file.n > 0 && now_ms - t->read_ms >= TOKEN_FRESH_MS)
        (void)kube_token_refresh(t, now_ms, NULL);
    return t->value.n == 0 ? STR_NULL : buf_str(&t->value);
}
