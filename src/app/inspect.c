#include "inspect_write.h"
#include "service.h"

static void respond(struct service *s, struct http_request *r, struct str node,
                    enum inspect_form form)
{
    if (inspect_write(&s->cache, node, form, r->arena, r->answer) != OK)
        r->answer->failed = true;
    http_request_respond(r, 200, "application/json");
}

/* Whatever is known by now: gpushare's has no other answer. */
void inspect_handle(struct service *s, struct http_request *r, struct str node)
{
    respond(s, r, node, INSPECT_GPUSHARE);
}

void cards_handle(struct service *s, struct http_request *r, struct str node)
{
    struct str missing;
    if (service_ready(s, &missing))
        respond(s, r, node, INSPECT_CARDS);
    else
        http_respond_error(r, 503, missing);
}
