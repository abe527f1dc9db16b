/*
 * Authentication on the main port: TLS, client certificates and bearer tokens. Logs the requests
 * that it refuses.
 */
#pragma once

#include "daemon/config/config.h"
#include "io/http_server.h"

struct guard;

/* Borrows the loop. A guard of NULL admits every request. */
enum errc guard_new(struct loop *l, const struct config *c, struct guard **ret, struct err *reterr)
    _must_use_;
struct guard *guard_free(struct guard *g); /* free the HTTP server first; returns NULL */

/*
 * When the server's certificate expires, in Unix time; the guard keeps the value up to date. NULL:
 * plain HTTP.
 */
const int64_t *guard_expiry(const struct guard *g);

/* Sets the fields of the HTTP server's settings that authentication needs. */
void guard_settings(struct guard *g, struct http_server_settings *s);

/*
 * Prepares the change to c's files and client names. *ret is a draft with the present content of
 * the files; NULL: plain HTTP and no tokens, so nothing can change. The caller ensures that TLS,
 * client certificates and tokens each stay on or off as they are, and that it passes the draft to
 * guard_become or guard_free.
 */
enum errc guard_draft(const struct guard *g, const struct config *c, struct guard **ret,
                      struct err *reterr) _must_use_;
void guard_become(struct guard *g, struct guard *draft); /* frees the draft; NULL: does nothing */

/* The guard calls `changed` after it has taken new tokens or certificates. g may be NULL. */
void guard_on_change(struct guard *g, void (*changed)(void *ctx), void *ctx);

/* Checks now whether the files have changed. The guard also does so every ten seconds. */
void guard_refresh(struct guard *g);
