/*
 * An http_client with the API server's address and the client's credentials. Certificate, key and
 * CA files are given to it as paths, so a new connection reads their current content. This module
 * notices changed files and closes idle connections made with the old ones. Calls under way go on:
 * the server has authenticated them already.
 */
#include "kube/kube_api.h"

#include "base/limit.h"
#include "base/log.h"
#include "base/mem.h"
#include "objects/watch.h"

#define URL_MAX_BYTES      (256 * KIB)
#define ARENA_MAX          (4 * LIMIT_FILE_BYTES)
#define CHECK_FILES_MS     300000
#define MESSAGE_MAX        ((size_t)200)
#define STATUS_ARENA_BYTES (256 * KIB)

enum {
    CA_FILE,
    CERT_FILE,
    KEY_FILE,
    N_FILES
};

struct kube_api {
    struct loop *loop;
    struct http_client *client; /* owned */
    struct arena arena;         /* memory that the credentials point to */
    struct kube_credentials credentials;
    struct kube_token token;
    struct file_stamp stamps[N_FILES];
    struct timer check_files;
};

static struct str kube_api_watched_file(const struct kube_api *a, size_t i)
{
    const struct kubeconfig *c = &a->credentials.config;
    /* Inline data takes precedence: then the file is not used. */
    switch (i) {
    case CA_FILE:
        return c->ca_data.n > 0 ? STR_NULL : c->ca_file;
    case CERT_FILE:
        return c->client_cert_data.n > 0 ? STR_NULL : c->client_cert_file;
    default:
        return c->client_key_data.n > 0 ? STR_NULL : c->client_key_file;
    }
}

/* Whether any file has changed since the last call. */
static bool kube_api_stamp_files(struct kube_api *a)
{
    bool changed = false;
    for (size_t i = 0; i < N_FILES; i++) {
        struct str path = kube_api_watched_file(a, i);
        if (path.n == 0)
            continue;
        struct file_stamp now = file_stamp(path);
        changed = changed || !file_stamp_eq(now, a->stamps[i]);
        a->stamps[i] = now;
    }
    return changed;
}

static void kube_api_check_files(struct kube_api *a)
{
    if (!kube_api_stamp_files(a))
        return;
    log_debug("certificate files changed, closing idle connections",
              kv_str("server", a->credentials.config.server));
    http_client_forget_connections(a->client);
}

static void kube_api_on_check_files(struct timer *t)
{
    struct kube_api *a = CONTAINER_OF(t, struct kube_api, check_files);
    timer_arm(a->loop, t, CHECK_FILES_MS);
    kube_api_check_files(a);
}

static enum errc kube_api_client_new(struct kube_api *a, const struct kube_api_settings *set,
                                     struct err *reterr)
{
    const struct kubeconfig *c = &a->credentials.config;
    struct http_client_settings s = {
        .user_agent = set->user_agent,
        .socket = set->socket,
        .ca_file = kube_api_watched_file(a, CA_FILE),
        .ca_data = c->ca_data,
        .insecure = c->insecure_skip_tls_verify,
        .tls_server_name = c->tls_server_name,
        .proxy_url = c->proxy_url,
        .cert_file = kube_api_watched_file(a, CERT_FILE),
        .cert_data = c->client_cert_data,
        .key_file = kube_api_watched_file(a, KEY_FILE),
        .key_data = c->client_key_data,
        .allow_http = !a->credentials.tls,
    };
    return http_client_new(a->loop, &s, &a->client, reterr);
}

enum errc kube_api_new(struct loop *l, const struct kube_api_settings *s, struct kube_api **ret,
                       struct err *reterr)
{
    struct kube_api *a = mem_alloc(sizeof(*a));
    if (a == NULL)
        return err_set(reterr, ERR_NOMEM, "out of memory");
    a->loop = l;
    a->check_files.fire = kube_api_on_check_files;
    arena_init(&a->arena, ARENA_MAX);
    enum errc code = kube_credentials_find(s, &a->arena, &a->credentials, reterr);
    if (code == OK)
        code = kube_token_init(&a->token, &a->credentials.config, loop_now_ms(l), reterr);
    if (code == OK)
        code = kube_api_client_new(a, s, reterr);
    if (code != OK) {
        (void)kube_api_free(a);
        return code;
    }
    timer_arm(l, &a->check_files, CHECK_FILES_MS);
    (void)kube_api_stamp_files(a);
    *ret = a;
    return OK;
}

struct kube_api *kube_api_free(struct kube_api *a)
{
    if (a == NULL)
        return NULL;
    timer_cancel(&a->check_files);
    if (a->client != NULL)
        a->client = http_client_free(a->client);
    kube_token_done(&a->token);
    arena_done(&a->arena);
    mem_free(a);
    return NULL;
}

struct str kube_api_origin(const struct kube_api *a)
{
    return a->credentials.origin;
}

struct str kube_api_namespace(const struct kube_api *a)
{
    return a->credentials.config.namespace;
}

void kube_api_refresh(struct kube_api *a)
{
    struct err e = ERR_INIT;
    if (kube_token_refresh(&a->token, loop_now_ms(a->loop), &e) != OK)
        log_debug("token not read, the old one stays", kv_cstr("err", e.text));
    kube_api_check_files(a);
}

void kube_call_start(struct kube_api *a, struct kube_call *c, const char *method, struct str path)
{
    const struct kube_credentials *who = &a->credentials;
    if (c->url.max == 0)
        buf_init(&c->url, URL_MAX_BYTES);
    buf_clear(&c->url, KIB);
    buf_put(&c->url, who->config.server);
    buf_put(&c->url, path);
    c->http.method = method;
    /* An empty URL makes the call fail, as any URL that cannot be parsed. */
    c->http.url = buf_failed(&c->url) ? STR("") : buf_str(&c->url);
    c->http.bearer = kube_token_get(&a->token, loop_now_ms(a->loop));
    c->http.username = who->config.username;
    c->http.password = who->config.password;
    c->http.headers = who->headers;
    c->http.n_headers = who->n_headers;
    http_call_start(a->client, &c->http);
}

void kube_call_cancel(struct kube_call *c)
{
    http_call_cancel(&c->http);
}

void kube_call_done(struct kube_call *c)
{
    http_call_done(&c->http);
    buf_done(&c->url);
}

static enum errc kube_api_status_code(unsigned status)
{
    switch (status) {
    case 401:
    case 403:
        return ERR_DENIED;
    case 404:
    case 410:
        return ERR_NOTFOUND;
    case 409:
        return ERR_CONFLICT;
    case 429:
        return ERR_UNAVAILABLE;
    case 504:
        return ERR_TIMEOUT;
    default:
        return status >= 500 ? ERR_UNAVAILABLE : ERR_INTERNAL;
    }
}

enum errc kube_call_result(const struct kube_call *c, struct err *reterr)
{
    const struct http_call *h = &c->http;
    if (h->outcome != HTTP_ANSWERED) {
        if (reterr != NULL)
            *reterr = h->err;
        return h->err.code;
    }
    if (h->status >= 200 && h->status < 300)
        return OK;
    struct str url;
    struct str query;
    struct arena arena;
    (void)str_cut(h->url, '?', &url, &query);
    arena_init(&arena, STATUS_ARENA_BYTES);
    struct str message = kube_status_message(buf_str(&h->reply), &arena);
    enum errc code = err_set(reterr, kube_api_status_code(h->status), "%s %.*s: %u: %.*s",
                             h->method, STR_ARG(url), h->status, STR_ARG(message));
    arena_done(&arena);
    return code;
}

void kube_put_escaped(struct buf *out, struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        bool plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                     c == '-' || c == '.' || c == '_' || c == '~';
        if (plain)
            buf_putc(out, (char)c);
        else
            buf_printf(out, "%%%02X", c);
    }
}

void kube_put_segment(struct buf *out, struct str name)
{
    if (str_eq(name, STR(".")))
        buf_put(out, STR("%2E"));
    else if (str_eq(name, STR("..")))
        buf_put(out, STR("%2E%2E"));
    else
        kube_put_escaped(out, name);
}

struct str kube_status_message(struct str body, struct arena *arena)
{
    struct kube_status status;
    struct str text = body;
    if (kube_status_read(body, arena, &status, NULL) == OK && status.message.n > 0)
        text = status.message;
    else
        text = str_head(text, MESSAGE_MAX);
    text = str_trim(text);
    char *line = arena_alloc(arena, text.n + 1);
    if (line == NULL)
        return STR_NULL;
    for (size_t i = 0; i < text.n; i++) {
        unsigned char c = (unsigned char)text.p[i];
        line[i] = text.p[i];
        if (c < 0x20 || c == 0x7f)
            line[i] = ' ';
    }
    return (struct str){line, text.n};
}
