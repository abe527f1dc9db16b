/*
 * The handlers of filter and prioritize without HTTP: a request as the server would pass it, and
 * its answer. It measures cardpack without its server: the linker's --wrap redirects
 * http_request_respond here.
 */
#pragma once

#include "daemon/service.h"

struct verbs_fixture {
    struct service service; /* its cache holds the cluster */
    struct arena arena;
    struct buf request; /* the caller writes the next request into it */
    struct buf answer;  /* of the last request; valid until the next one */
    bool may_fail;      /* an answer of another status is as good */
};

typedef void handler(struct service *s, struct http_request *r);

void verbs_open(struct verbs_fixture *d);
void verbs_close(struct verbs_fixture *d);

/* First resets the memory of the previous request, as the server does. Aborts if the answer is not
 * 200 or lacks memory. */
void verbs_ask(struct verbs_fixture *d, handler *handle, struct str body);

/* Counts names in the answer's list and in its map of refusals; for priorities, all names. */
void verbs_count(const struct verbs_fixture *d, size_t *ret_fit, size_t *ret_failed);
