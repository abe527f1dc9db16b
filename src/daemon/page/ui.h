/*
 * The page for people: static files that are built into the program; it loads nothing from other
 * servers.
 */
#pragma once

#include "daemon/service.h"
#include "io/http_server.h"

struct ui_asset {
    const char *name;
    const char *content_type;
    const char *etag; /* in quotes; a hash of the bytes */
    size_t n;
    const unsigned char *bytes;
};

/* The file of that name; "" is index.html. NULL: no such file. */
const struct ui_asset *ui_asset(struct str name);

/* GET /ui and below. */
void ui_handle(struct service *s, struct http_request *r);
