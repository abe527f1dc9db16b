/*
 * Authentication on the main port: TLS, client certificates and bearer tokens. Logs the requests
 * that it refuses.
 */
#pragma once

#include "daemon/config/config.h"
#include "io/http_server.h"

struct authentication;

/* Borrows the loop. NULL admits every request. */
enum errc authentication_new(struct loop *l, const struct config *c, struct authentication **ret,
                             struct err *reterr) _must_use_;
struct authentication *
authentication_free(struct authentication *g); /* free the HTTP server first; returns NULL */

/*
 * When the server's certificate expires, in Unix time; the authentication keeps the value up to
 * date. NULL: plain HTTP.
 */
const int64_t *authentication_expiry(const struct authentication *g);

/* Sets the fields of the HTTP server's settings that authentication needs. */
void authentication_settings(struct authentication *g, struct http_server_settings *s);

/*
 * Prepares the change to c's files and client names. *ret is a draft with the present content of
 * the files; NULL: plain HTTP and no tokens, so nothing can change. The caller ensures that TLS,
 * client certificates and tokens each stay on or off as they are, and that it passes the draft to
 * authentication_become or authentication_free.
 */
enum errc authentication_draft(const struct authentication *g, const struct config *c,
                               struct authentication **ret, struct err *reterr) _must_use_;
void authentication_become(struct authentication *g,
                           struct authentication *draft); /* frees the draft; NULL: does nothing */

/* `changed` is called when new tokens or certificates are in force. g may be NULL. */
void authentication_on_change(struct authentication *g, void (*changed)(void *ctx), void *ctx);

/* Checks now whether the files have changed. That also happens every ten seconds. */
void authentication_refresh(struct authentication *g);
