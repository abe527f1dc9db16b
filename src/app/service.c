#include "service.h"

#include "jwrite.h"

bool service_ready(const struct service *s, struct str *ret_missing)
{
    return s->backend->ready(s->backend, ret_missing);
}

void http_respond_error(struct http_request *r, unsigned status, struct str text)
{
    struct jwrite w;
    jwrite_init(&w, r->answer);
    jwrite_object_begin(&w);
    jwrite_key(&w, STR("error"));
    jwrite_str(&w, text);
    jwrite_object_end(&w);
    http_request_respond(r, status, "application/json");
}
