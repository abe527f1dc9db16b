#include "backend.h"

#include "limit.h"

void backend_call_init(struct backend_call *c, struct backend *b)
{
    *c = (struct backend_call){.backend = b, .get = GET_FAILED}; /* nothing has been read */
    arena_init(&c->arena, LIMIT_REPLY_BYTES);
    buf_init(&c->body, LIMIT_REPLY_BYTES);
}

void backend_call_done(struct backend_call *c)
{
    c->backend->cancel(c);
    kube_call_done(&c->kube);
    arena_done(&c->arena);
    buf_done(&c->body);
}
