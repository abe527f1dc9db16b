/* The page: files that are part of the program, and nothing from anywhere else. */
#pragma once

#include "http_server.h"
#include "service.h"

struct ui_asset {
    const char *name;
    const char *content_type;
    const char *etag; /* with its quotes; of the bytes */
    size_t n;
    const unsigned char *bytes;
};

/* NULL where there is no such file; "" is index.html. */
const struct ui_asset *ui_asset(struct str name);

/* GET /ui and below; `rest` as routes.c gives it. */
void ui_handle(struct service *s, struct http_request *r, struct str rest);
