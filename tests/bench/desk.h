/*
 * The handlers of filter and prioritize without HTTP: a request as the server would hand it over,
 * and its answer. What is measured is the product, all but its server: the linker's --wrap leads
 * http_request_respond here.
 */
#pragma once

#include "service.h"

struct desk {
    struct service service; /* its cache is the ground */
    struct arena arena;
    struct buf answer; /* of the last request; until the next one */
};

typedef void handler(struct service *s, struct http_request *r);

void desk_open(struct desk *d);
void desk_close(struct desk *d);

/* The memory of the one before is reset first, as the server does it. Aborts where the answer is
 * not 200, or can't be written. */
void desk_ask(struct desk *d, handler *handle, struct str body);

/* Names in the answer's list, and in its map of refusals; of priorities, all of them. */
void desk_count(const struct desk *d, size_t *ret_fit, size_t *ret_failed);
