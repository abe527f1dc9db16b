/*
 * Who may ask on the main port: TLS, clients' certificates, tokens, and a word about who may not.
 */
#pragma once

#include "config.h"
#include "http_server.h"

struct guard;

/* The config is borrowed, and so is the loop. NULL is a guard that lets everybody in. */
enum errc guard_new(struct loop *l, const struct config *c, struct guard **ret, struct err *reterr)
    _must_use_;
struct guard *guard_free(struct guard *g); /* after the server; returns NULL */

/* Sets what the server's settings have to know of it. */
void guard_settings(struct guard *g, struct http_server_settings *s);
