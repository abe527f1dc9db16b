/*
 * The files are looked at every ten seconds: what the kubelet swaps in a mounted Secret is in force
 * soon after, for new connections, and no connection is dropped. What can't be used is told once
 * and what was there stays.
 *
 * A client's certificate admits, and so does a token; where both are wanted either is enough.
 *
 * Whom it refuses is a stranger's choice to repeat, so it is told once a second with a count.
 */
#include "guard.h"

#include "log.h"
#include "mem.h"
#include "tls.h"
#include "token.h"

#define REFRESH_MS 10000
#define TELL_MS    1000
#define DAY_S      86400
#define NS_PER_S   1000000000

/* What has been said of the server's certificate. */
enum age {
    AGE_GOOD,
    AGE_STALE,
    AGE_EXPIRED,
};

struct guard {
    struct loop *loop;
    const struct config *config;
    struct tls *tls;      /* NULL: plain HTTP */
    struct tokens tokens; /* where there is a token-file */
    enum age age;
    struct timer refresh;
    struct timer tell; /* armed: not before it fires */
    uint64_t refused;  /* since it was told */
    char last_peer[64];
    const char *last_why;
};

static void tell_refused(struct guard *g)
{
    log_warn("refused", kv_cstr("why", g->last_why), kv_cstr("peer", g->last_peer),
             kv_uint("count", g->refused));
    g->refused = 0;
    timer_arm(g->loop, &g->tell, TELL_MS);
}

static void tell_fire(struct timer *t)
{
    struct guard *g = CONTAINER_OF(t, struct guard, tell);
    if (g->refused > 0)
        tell_refused(g);
}

static void refuse(void *guard, struct str peer, const char *why)
{
    struct guard *g = guard;
    size_t n = MIN_OF(peer.n, sizeof(g->last_peer) - 1);
    if (n > 0)
        memcpy(g->last_peer, peer.p, n);
    g->last_peer[n] = '\0';
    g->last_why = why;
    g->refused++;
    if (!timer_armed(&g->tell))
        tell_refused(g);
}

static void refresh_tokens(struct guard *g)
{
    struct err why = ERR_INIT;
    switch (tokens_refresh(&g->tokens, &why)) {
    case TOKENS_SAME:
        break;
    case TOKENS_TAKEN:
        log_info("the tokens are replaced", kv_str("token-file", g->config->token_file));
        break;
    case TOKENS_REFUSED:
        log_warn("the new tokens cannot be used: the old ones stay", kv_cstr("why", why.text));
        break;
    }
}

/* Without tokens the handshake let nobody in who has no good certificate; but that was then. */
static unsigned admit(void *guard, const struct http_caller *c)
{
    struct guard *g = guard;
    if (g->config->client_ca_file.n > 0 && c->certificate_fault == NULL)
        return 0;
    if (g->config->token_file.n == 0) {
        refuse(g, c->peer, c->certificate_fault);
        return 403;
    }
    if (tokens_admit(&g->tokens, c->authorization))
        return 0;
    refresh_tokens(g); /* it may be newer than what was read */
    if (tokens_admit(&g->tokens, c->authorization))
        return 0;
    refuse(g, c->peer,
           c->authorization.p == NULL ? "there is no token" : "the token is not the right one");
    return 401;
}

static int64_t now_s(const struct guard *g)
{
    return (int64_t)(loop_wall_ns(g->loop) / NS_PER_S);
}

static void tell_age(struct guard *g)
{
    enum age age = AGE_GOOD;
    int64_t left_s = tls_expires_s(g->tls) - now_s(g);
    if (left_s <= 0)
        age = AGE_EXPIRED;
    else if (now_s(g) >= tls_stale_s(g->tls))
        age = AGE_STALE;
    if (age == AGE_EXPIRED && g->age != AGE_EXPIRED)
        log_warn("the server's certificate has expired: nobody will trust it",
                 kv_str("tls-cert-file", g->config->tls_cert_file));
    else if (age == AGE_STALE && g->age != AGE_STALE)
        log_warn("the server's certificate expires soon",
                 kv_str("tls-cert-file", g->config->tls_cert_file),
                 kv_int("days_left", left_s / DAY_S));
    g->age = age;
}

static void tell_certificate(struct guard *g, const char *message)
{
    log_info(message, kv_str("tls-cert-file", g->config->tls_cert_file),
             kv_int("days_left", (tls_expires_s(g->tls) - now_s(g)) / DAY_S),
             kv_str("client-ca-file", g->config->client_ca_file));
    if (!tls_has_names(g->tls))
        log_warn("the server's certificate has no subjectAltName: kube-scheduler will not trust it",
                 kv_str("tls-cert-file", g->config->tls_cert_file));
    g->age = AGE_GOOD;
}

static void refresh_tls(struct guard *g)
{
    struct err why = ERR_INIT;
    switch (tls_refresh(g->tls, &why)) {
    case TLS_SAME:
        break;
    case TLS_TAKEN:
        tell_certificate(g, "the server's certificate is replaced");
        break;
    case TLS_REFUSED:
        log_warn("the port's new certificates cannot be used: the old ones stay",
                 kv_cstr("why", why.text));
        break;
    }
    tell_age(g);
}

static void refresh_fire(struct timer *t)
{
    struct guard *g = CONTAINER_OF(t, struct guard, refresh);
    if (g->tls != NULL)
        refresh_tls(g);
    if (g->config->token_file.n > 0)
        refresh_tokens(g);
    timer_arm(g->loop, t, REFRESH_MS);
}

static enum errc open_tls(struct guard *g, struct err *reterr)
{
    const struct config *c = g->config;
    struct tls_settings settings = {
        .cert_file = c->tls_cert_file,
        .key_file = c->tls_key_file,
        .client_ca_file = c->client_ca_file,
        .client_names = c->client_names,
        .optional = c->token_file.n > 0,
    };
    enum errc code = tls_new(&settings, &g->tls, reterr);
    if (code != OK)
        return code;
    tell_certificate(g, "TLS");
    tell_age(g);
    return OK;
}

enum errc guard_new(struct loop *l, const struct config *c, struct guard **ret, struct err *reterr)
{
    if (c->tls_cert_file.n == 0 && c->token_file.n == 0) {
        *ret = NULL;
        return OK;
    }
    struct guard *g = mem_alloc(sizeof(*g));
    if (g == NULL)
        return err_set(reterr, ERR_NOMEM, "out of memory");
    g->loop = l;
    g->config = c;
    g->refresh.fire = refresh_fire;
    g->tell.fire = tell_fire;
    enum errc code = c->tls_cert_file.n > 0 ? open_tls(g, reterr) : OK;
    if (code == OK && c->token_file.n > 0)
        code = tokens_open(&g->tokens, c->token_file, reterr);
    if (code != OK) {
        (void)guard_free(g);
        return code;
    }
    timer_arm(l, &g->refresh, REFRESH_MS);
    *ret = g;
    return OK;
}

struct guard *guard_free(struct guard *g)
{
    if (g == NULL)
        return NULL;
    if (g->refused > 0)
        tell_refused(g);
    timer_cancel(&g->refresh);
    timer_cancel(&g->tell);
    g->tls = tls_free(g->tls);
    tokens_done(&g->tokens);
    mem_free(g);
    return NULL;
}

void guard_settings(struct guard *g, struct http_server_settings *s)
{
    if (g == NULL)
        return;
    s->tls = g->tls;
    bool open = g->config->client_ca_file.n == 0 && g->config->token_file.n == 0;
    s->admit = open ? NULL : admit;
    s->refused = refuse;
    s->admit_ctx = g;
}
