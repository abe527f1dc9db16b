/*
 * Writes the input of a credential plugin and reads its answer, by client-go's rules
 * (plugin/pkg/client/auth/exec). Like client-go it accepts an answer in YAML too. Errors quote only
 * kind and apiVersion, which are no secrets. They are cut short, because a faulty program may put
 * something else there.
 */
#include "codec/exec_credential.h"

#include "codec/jwrite.h"
#include "codec/limit.h"
#include "codec/stamp.h"
#include "codec/yaml.h"

#define QUOTED_MAX 40

static void put_member(struct jwrite *w, const char *key, struct str value)
{
    if (value.n == 0)
        return;
    jwrite_key(w, str_of(key));
    jwrite_str(w, value);
}

static void put_flag(struct jwrite *w, const char *key, bool value)
{
    if (!value)
        return;
    jwrite_key(w, str_of(key));
    jwrite_bool(w, value);
}

static void put_cluster(struct jwrite *w, const struct kubeconfig_exec *e,
                        const struct kubeconfig *k, struct str ca)
{
    jwrite_key(w, STR("cluster"));
    jwrite_object_begin(w);
    put_member(w, "server", k->server);
    put_member(w, "tls-server-name", k->tls_server_name);
    put_flag(w, "insecure-skip-tls-verify", k->insecure_skip_tls_verify);
    put_member(w, "certificate-authority-data", ca);
    put_member(w, "proxy-url", k->proxy_url);
    put_flag(w, "disable-compression", e->disable_compression);
    if (e->cluster_config.n > 0) {
        jwrite_key(w, STR("config"));
        jwrite_raw(w, e->cluster_config);
    }
    jwrite_object_end(w);
}

void exec_credential_write(const struct kubeconfig_exec *e, const struct kubeconfig *k,
                           struct str ca, bool interactive, struct buf *out)
{
    struct jwrite w;
    jwrite_init(&w, out);
    jwrite_object_begin(&w);
    put_member(&w, "kind", STR("ExecCredential"));
    put_member(&w, "apiVersion", e->version);
    jwrite_key(&w, STR("spec"));
    jwrite_object_begin(&w);
    if (e->provide_cluster_info)
        put_cluster(&w, e, k, ca);
    jwrite_key(&w, STR("interactive"));
    jwrite_bool(&w, interactive);
    jwrite_object_end(&w);
    jwrite_object_end(&w);
}

struct answer {
    struct str version;
    struct str kind;
    struct str expires;
    bool has_status;
    struct exec_credential credential;
};

/* An empty string counts as absent. */
static struct str read_some(struct jread *r)
{
    struct str s = jread_str(r);
    return s.n == 0 ? STR_NULL : s;
}

static struct str read_pem(struct jread *r)
{
    struct str s = read_some(r);
    if (s.n > 0 && memmem(s.p, s.n, "-----BEGIN ", 11) == NULL) {
        jread_fail(r, ERR_SYNTAX, "not PEM");
        return STR_NULL;
    }
    return s;
}

static struct str read_token(struct jread *r)
{
    struct str s = read_some(r);
    for (size_t i = 0; i < s.n; i++) {
        if ((unsigned char)s.p[i] <= 0x20 || (unsigned char)s.p[i] >= 0x7f) {
            jread_fail(r, ERR_SYNTAX, "holds a character that no token has");
            return STR_NULL;
        }
    }
    return s;
}

/*
 * "Z" or "+01:00", with or without a fraction before it. Adding *ret_s to the local time gives UTC.
 */
static bool read_zone(struct str s, int64_t *ret_s)
{
    uint64_t hours = 0;
    uint64_t minutes = 0;
    size_t digits = 1;
    if (s.n > 0 && s.p[0] == '.') {
        while (digits < s.n && s.p[digits] >= '0' && s.p[digits] <= '9')
            digits++;
        if (digits == 1)
            return false;
        s = str_skip(s, digits);
    }
    *ret_s = 0;
    if (str_eq(s, STR("Z")))
        return true;
    if (s.n != 6 || (s.p[0] != '+' && s.p[0] != '-') || s.p[3] != ':' ||
        !str_to_u64((struct str){s.p + 1, 2}, 23, &hours) ||
        !str_to_u64((struct str){s.p + 4, 2}, 59, &minutes))
        return false;
    *ret_s = (int64_t)(hours * 3600 + minutes * 60) * (s.p[0] == '+' ? -1 : 1);
    return true;
}

/*
 * RFC 3339. A year after 2105 means never; a year before 1971, such as Go's zero time, means
 * unknown.
 */
static bool read_time(struct str s, uint32_t *ret_s)
{
    static const char form[] = "2000-01-01T00:00:00";
    char text[sizeof(form) + 1] = "";
    uint32_t stamp = 0;
    int64_t zone = 0;
    uint64_t year = 0;
    size_t n = sizeof(form) - 1;
    if (s.n <= n || !read_zone(str_skip(s, n), &zone) || !str_to_u64(str_head(s, 4), 9999, &year))
        return false;
    memcpy(text, s.p, n);
    text[n] = 'Z';
    if (year < 1971 || year > 2105)
        memcpy(text, form, 4);
    if (!stamp_read((struct str){text, n + 1}, &stamp))
        return false;
    *ret_s = year < 1971 ? 0 : year > 2105 ? UINT32_MAX : (uint32_t)((int64_t)stamp + zone);
    return true;
}

static void read_expiry(struct jread *r, struct exec_credential *c)
{
    struct str s = read_some(r);
    c->expires_s = 0;
    if (s.n > 0 && !read_time(s, &c->expires_s))
        jread_fail(r, ERR_SYNTAX, "is no time such as 2026-11-22T05:40:00Z");
}

static void read_status(struct jread *r, struct answer *a)
{
    struct str key;
    a->has_status = jread_type(r) == JTYPE_OBJECT;
    jread_object (r, key) {
        if (str_eq(key, STR("token")))
            a->credential.token = read_token(r);
        else if (str_eq(key, STR("clientCertificateData")))
            a->credential.cert = read_pem(r);
        else if (str_eq(key, STR("clientKeyData")))
            a->credential.key = read_pem(r);
        else if (str_eq(key, STR("expirationTimestamp")))
            read_expiry(r, &a->credential);
        else
            jread_skip(r);
    }
}

static enum errc read_answer(struct str json, struct arena *arena, struct answer *a, struct err *e)
{
    struct jread r;
    struct str key;
    jread_init(&r, json, arena);
    jread_object (&r, key) {
        if (str_eq(key, STR("kind")))
            a->kind = jread_str(&r);
        else if (str_eq(key, STR("apiVersion")))
            a->version = jread_str(&r);
        else if (str_eq(key, STR("status")))
            read_status(&r, a);
        else
            jread_skip(&r);
    }
    return jread_finish(&r, e);
}

static enum errc check(const struct answer *a, struct str version, struct err *e)
{
    const struct exec_credential *c = &a->credential;
    struct str kind = a->kind.p == NULL ? STR("") : a->kind;
    struct str spoken = a->version.p == NULL ? STR("") : a->version;
    if (!str_eq(kind, STR("ExecCredential")))
        return err_set(e, ERR_SYNTAX, "kind: \"%.*s\" must be ExecCredential",
                       STR_ARG(str_head(kind, QUOTED_MAX)));
    if (!str_eq(spoken, version))
        return err_set(e, ERR_SYNTAX, "apiVersion: \"%.*s\" must be %.*s, as the kubeconfig has it",
                       STR_ARG(str_head(spoken, QUOTED_MAX)), STR_ARG(version));
    if (!a->has_status)
        return err_set(e, ERR_SYNTAX, "status is not there");
    if (c->cert.n > 0 && c->key.n == 0)
        return err_set(e, ERR_SYNTAX, "status.clientCertificateData without clientKeyData");
    if (c->key.n > 0 && c->cert.n == 0)
        return err_set(e, ERR_SYNTAX, "status.clientKeyData without clientCertificateData");
    if (c->token.n == 0 && c->cert.n == 0)
        return err_set(e, ERR_SYNTAX, "status has neither a token nor a certificate with its key");
    return OK;
}

enum errc exec_credential_read(struct str text, struct str version, struct arena *arena,
                               struct exec_credential *ret, struct err *reterr)
{
    struct answer a = {.has_status = false};
    struct buf json;
    buf_init(&json, 2 * LIMIT_LOGIN_BYTES);
    enum errc code = yaml_to_json(text, &json, reterr);
    struct str copy = code == OK ? arena_dup(arena, buf_str(&json)) : STR_NULL;
    buf_done(&json);
    if (code == OK && copy.p == NULL)
        return err_set(reterr, arena_fault(arena), "too large");
    if (code == OK)
        code = read_answer(copy, arena, &a, reterr);
    if (code == OK)
        code = check(&a, version, reterr);
    if (code == OK && arena_failed(arena))
        code = err_set(reterr, arena_fault(arena), "too large");
    if (code == OK)
        *ret = a.credential;
    return code;
}
