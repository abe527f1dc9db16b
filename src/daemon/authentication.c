/*
 * Authenticates the requests on the main port, and keeps its certificates and tokens up to date.
 *
 * Checks the files every ten seconds: when the kubelet updates a mounted Secret, the new content is
 * soon used for new connections, and no connection is closed. A file that cannot be used is logged
 * once, and its previous content stays in use.
 *
 * authentication_become moves the draft into the existing authentication, since connections and the
 * HTTP server hold the authentication's address. All that can fail happens before, on the draft.
 *
 * Where both client certificates and tokens are configured, either one admits a request.
 *
 * A client can cause refusals as often as it likes, so they are logged at most once a second, with
 * a count.
 */
#include "daemon/authentication.h"

#include "base/limit.h"
#include "base/log.h"
#include "base/mem.h"
#include "daemon/token.h"
#include "io/tls.h"

#define REFRESH_MS 10000
#define FILES_MAX  LIMIT_FILE_BYTES
#define REPORT_MS  1000
#define DAY_S      86400
#define NS_PER_S   1000000000

/* What has been logged about the server's certificate. */
enum age {
    AGE_GOOD,
    AGE_STALE,
    AGE_EXPIRED,
};

/* Copies of the configuration's strings: a reload frees the originals. */
struct files {
    struct str tls_cert_file;
    struct str tls_key_file;
    struct str client_ca_file;
    struct str client_names;
    struct str token_file;
    struct arena arena;
};

struct authentication {
    struct loop *loop;
    struct files files;
    struct tls *tls;      /* NULL: plain HTTP */
    struct tokens tokens; /* used if token-file is set */
    enum age age;
    int64_t expires_s; /* of the server's certificate, Unix time */
    struct timer refresh;
    struct timer report; /* armed: the next refusal is logged when it fires */
    uint64_t refused;    /* since the last line of the log */
    char last_peer[64];
    const char *last_why;
    void (*changed)(void *ctx); /* may be NULL */
    void *changed_ctx;
};

static void authentication_report_changed(const struct authentication *g)
{
    if (g->changed != NULL)
        g->changed(g->changed_ctx);
}

static void authentication_report_refused(struct authentication *g)
{
    log_warn("refused", kv_cstr("why", g->last_why), kv_cstr("peer", g->last_peer),
             kv_uint("count", g->refused));
    g->refused = 0;
    timer_arm(g->loop, &g->report, REPORT_MS);
}

static void authentication_report_fire(struct timer *t)
{
    struct authentication *g = CONTAINER_OF(t, struct authentication, report);
    if (g->refused > 0)
        authentication_report_refused(g);
}

static void authentication_refuse(void *authentication, struct str peer, const char *why)
{
    struct authentication *g = authentication;
    size_t n = MIN_OF(peer.n, sizeof(g->last_peer) - 1);
    if (n > 0)
        memcpy(g->last_peer, peer.p, n);
    g->last_peer[n] = '\0';
    g->last_why = why;
    g->refused++;
    if (!timer_armed(&g->report))
        authentication_report_refused(g);
}

static void authentication_refresh_tokens(struct authentication *g)
{
    struct err why = ERR_INIT;
    switch (tokens_refresh(&g->tokens, &why)) {
    case TOKENS_SAME:
        break;
    case TOKENS_TAKEN:
        log_info("the tokens are replaced", kv_str("token-file", g->files.token_file));
        authentication_report_changed(g);
        break;
    case TOKENS_REFUSED:
        log_warn("the new tokens cannot be used: the old ones stay", kv_cstr("why", why.text));
        break;
    }
}

/*
 * Checks the certificate at every request, even though the TLS handshake checked it: it may have
 * expired, or the CAs or client-names may have changed since.
 */
static unsigned authentication_admit(void *authentication, const struct http_caller *c)
{
    struct authentication *g = authentication;
    if (g->files.client_ca_file.n > 0 && c->certificate_fault == NULL)
        return 0;
    if (g->files.token_file.n == 0) {
        authentication_refuse(g, c->peer, c->certificate_fault);
        return 403;
    }
    if (tokens_admit(&g->tokens, c->authorization))
        return 0;
    authentication_refresh_tokens(g); /* it may be newer than what was read */
    if (tokens_admit(&g->tokens, c->authorization))
        return 0;
    authentication_refuse(g, c->peer,
                          c->authorization.p == NULL ? "there is no token"
                                                     : "the token is not the right one");
    return 401;
}

static int64_t authentication_now_s(const struct authentication *g)
{
    return (int64_t)(loop_wall_ns(g->loop) / NS_PER_S);
}

static void authentication_report_age(struct authentication *g)
{
    enum age age = AGE_GOOD;
    g->expires_s = tls_expires_s(g->tls);
    int64_t left_s = g->expires_s - authentication_now_s(g);
    if (left_s <= 0)
        age = AGE_EXPIRED;
    else if (authentication_now_s(g) >= tls_stale_s(g->tls))
        age = AGE_STALE;
    if (age == AGE_EXPIRED && g->age != AGE_EXPIRED)
        log_warn("the server's certificate has expired: clients refuse it",
                 kv_str("tls-cert-file", g->files.tls_cert_file));
    else if (age == AGE_STALE && g->age != AGE_STALE)
        log_warn("the server's certificate expires soon",
                 kv_str("tls-cert-file", g->files.tls_cert_file),
                 kv_int("days_left", left_s / DAY_S));
    g->age = age;
}

static void authentication_report_certificate(struct authentication *g, const char *message)
{
    log_info(message, kv_str("tls-cert-file", g->files.tls_cert_file),
             kv_int("days_left", (tls_expires_s(g->tls) - authentication_now_s(g)) / DAY_S),
             kv_str("client-ca-file", g->files.client_ca_file));
    if (!tls_has_names(g->tls))
        log_warn("the server's certificate has no subjectAltName: kube-scheduler will not trust it",
                 kv_str("tls-cert-file", g->files.tls_cert_file));
    g->age = AGE_GOOD;
}

static void authentication_refresh_tls(struct authentication *g)
{
    struct err why = ERR_INIT;
    switch (tls_refresh(g->tls, &why)) {
    case TLS_SAME:
        break;
    case TLS_TAKEN:
        authentication_report_certificate(g, "the server's certificate is replaced");
        authentication_report_changed(g);
        break;
    case TLS_REFUSED:
        log_warn("the port's new certificates cannot be used: the old ones stay",
                 kv_cstr("why", why.text));
        break;
    }
    authentication_report_age(g);
}

static void authentication_refresh_fire(struct timer *t)
{
    struct authentication *g = CONTAINER_OF(t, struct authentication, refresh);
    if (g->tls != NULL)
        authentication_refresh_tls(g);
    if (g->files.token_file.n > 0)
        authentication_refresh_tokens(g);
    timer_arm(g->loop, t, REFRESH_MS);
}

static enum errc authentication_open_tls(struct authentication *g, bool again, struct err *reterr)
{
    const struct files *f = &g->files;
    struct tls_settings settings = {
        .cert_file = f->tls_cert_file,
        .key_file = f->tls_key_file,
        .client_ca_file = f->client_ca_file,
        .client_names = f->client_names,
        .optional = f->token_file.n > 0,
        .again = again,
    };
    return tls_new(&settings, &g->tls, reterr);
}

static enum errc authentication_copy_files(struct files *f, const struct config *c,
                                           struct err *reterr)
{
    arena_init(&f->arena, FILES_MAX);
    f->tls_cert_file = arena_dup(&f->arena, c->tls_cert_file);
    f->tls_key_file = arena_dup(&f->arena, c->tls_key_file);
    f->client_ca_file = arena_dup(&f->arena, c->client_ca_file);
    f->client_names = arena_dup(&f->arena, c->client_names);
    f->token_file = arena_dup(&f->arena, c->token_file);
    return arena_failed(&f->arena)
               ? err_set(reterr, arena_fault(&f->arena), "no memory for the port's file names")
               : OK;
}

/*
 * Starts no timer. again: cardpack serves requests already, so that reading a file must not block.
 */
static enum errc authentication_load(struct loop *l, const struct config *c, bool again,
                                     struct authentication **ret, struct err *reterr)
{
    if (c->tls_cert_file.n == 0 && c->token_file.n == 0) {
        *ret = NULL;
        return OK;
    }
    struct authentication *g = mem_alloc(sizeof(*g));
    if (g == NULL)
        return err_set(reterr, ERR_NOMEM, "out of memory");
    g->loop = l;
    g->refresh.fire = authentication_refresh_fire;
    g->report.fire = authentication_report_fire;
    enum errc code = authentication_copy_files(&g->files, c, reterr);
    if (code == OK && c->tls_cert_file.n > 0)
        code = authentication_open_tls(g, again, reterr);
    if (code == OK && c->token_file.n > 0)
        code = tokens_open(&g->tokens, g->files.token_file, again, reterr);
    if (code != OK) {
        (void)authentication_free(g);
        return code;
    }
    *ret = g;
    return OK;
}

enum errc authentication_new(struct loop *l, const struct config *c, struct authentication **ret,
                             struct err *reterr)
{
    enum errc code = authentication_load(l, c, false, ret, reterr);
    struct authentication *g = code == OK ? *ret : NULL;
    if (g == NULL)
        return code;
    if (g->tls != NULL) {
        authentication_report_certificate(g, "TLS");
        authentication_report_age(g);
    }
    timer_arm(l, &g->refresh, REFRESH_MS);
    return OK;
}

struct authentication *authentication_free(struct authentication *g)
{
    if (g == NULL)
        return NULL;
    if (g->refused > 0)
        authentication_report_refused(g);
    timer_cancel(&g->refresh);
    timer_cancel(&g->report);
    g->tls = tls_free(g->tls);
    tokens_done(&g->tokens);
    arena_done(&g->files.arena);
    mem_free(g);
    return NULL;
}

static bool authentication_files_same(const struct files *f, const struct config *c)
{
    return str_eq(f->tls_cert_file, c->tls_cert_file) && str_eq(f->tls_key_file, c->tls_key_file) &&
           str_eq(f->client_ca_file, c->client_ca_file) &&
           str_eq(f->client_names, c->client_names) && str_eq(f->token_file, c->token_file);
}

enum errc authentication_draft(const struct authentication *g, const struct config *c,
                               struct authentication **ret, struct err *reterr)
{
    if (g != NULL && !authentication_files_same(&g->files, c))
        return authentication_load(g->loop, c, true, ret, reterr);
    *ret = NULL;
    return OK;
}

void authentication_become(struct authentication *g, struct authentication *draft)
{
    if (draft == NULL)
        return;
    assert((g->tls == NULL) == (draft->tls == NULL));
    struct files old = g->files;
    if (g->tls != NULL)
        tls_become(g->tls, draft->tls);
    draft->tls = NULL;
    tokens_done(&g->tokens);
    g->tokens = draft->tokens;
    draft->tokens = (struct tokens){.file = STR_NULL};
    g->files = draft->files;
    draft->files = old;
    (void)authentication_free(draft);
    if (g->tls != NULL) {
        authentication_report_certificate(g, "the server's certificate is replaced");
        authentication_report_age(g);
    }
    authentication_report_changed(g);
}

void authentication_on_change(struct authentication *g, void (*changed)(void *ctx), void *ctx)
{
    if (g == NULL)
        return;
    g->changed = changed;
    g->changed_ctx = ctx;
}

void authentication_refresh(struct authentication *g)
{
    if (g != NULL)
        authentication_refresh_fire(&g->refresh);
}

const int64_t *authentication_expiry(const struct authentication *g)
{
    return g == NULL || g->tls == NULL ? NULL : &g->expires_s;
}

void authentication_settings(struct authentication *g, struct http_server_settings *s)
{
    if (g == NULL)
        return;
    s->tls = g->tls;
    bool open = g->files.client_ca_file.n == 0 && g->files.token_file.n == 0;
    s->admit = open ? NULL : authentication_admit;
    s->refused = authentication_refuse;
    s->admit_ctx = g;
}
