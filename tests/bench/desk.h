/*
 * The handlers of filter and prioritize without HTTP: a request as the server would pass it, and
 * its answer. It measures cardpack without its server: the linker's --wrap redirects
 * http_request_respond here.
 */
#pragma once

#include "daemon/service.h"

struct desk {
    struct service service; /* its cache holds the ground */
    struct arena arena;
    struct buf request; /* the caller writes the next request into it */
    struct buf answer;  /* of the last request; valid until the next one */
};

typedef void handler(struct service *s, struct http_request *r);

void desk_open(struct desk *d);
void desk_close(struct desk *d);

/* First resets the memory of the previous request, as the server does. Aborts if the answer is not
 * 200 or lacks memory. */
void desk_ask(struct desk *d, handler *handle, struct str body);

/* Counts names in the answer's list and in its map of refusals; for priorities, all names. */
void desk_count(const struct desk *d, size_t *ret_fit, size_t *ret_failed);
