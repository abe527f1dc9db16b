/*
 * Who may ask on the main port: TLS, clients' certificates, tokens, and a word about who may not.
 */
#pragma once

#include "config.h"
#include "http_server.h"

struct guard;

/* The loop is borrowed. NULL is a guard that lets everybody in. */
enum errc guard_new(struct loop *l, const struct config *c, struct guard **ret, struct err *reterr)
    _must_use_;
struct guard *guard_free(struct guard *g); /* after the server; returns NULL */

/* When the server's certificate expires, in Unix time, kept up to date; NULL: plain HTTP. */
const int64_t *guard_expiry(const struct guard *g);

/* Sets what the server's settings have to know of it. */
void guard_settings(struct guard *g, struct http_server_settings *s);

/*
 * Other files, and other names that clients may have. The draft holds what they hold now; NULL
 * where there is nothing to change. TLS, clients' certificates and tokens are on or off as before:
 * that is the caller's to see to, and so is that g becomes the draft or the draft is freed.
 */
enum errc guard_draft(const struct guard *g, const struct config *c, struct guard **ret,
                      struct err *reterr) _must_use_;
void guard_become(struct guard *g, struct guard *draft); /* the draft is gone; NULL: nothing */

/* changed is called when other tokens or certificates are in force; g may be NULL. */
void guard_on_change(struct guard *g, void (*changed)(void *ctx), void *ctx);

/* Looks at once whether files have changed; it does so every ten seconds by itself. */
void guard_refresh(struct guard *g);
