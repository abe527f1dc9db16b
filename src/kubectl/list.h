/* Reads a list of the API server, page by page and object by object. */
#pragma once

#include "kubectl/client.h"

struct kubectl_list {
    struct str path;
    struct str query; /* selectors, escaped: "fieldSelector=..."; absent: none */
    struct str kind;  /* "PodList" */

    /* The list begins, or begins again because its continue token has expired: the objects so far
     * do not count. NULL: not called. */
    void (*begin)(void *ctx);
    /* Before each request; an error ends the list. NULL: not called. */
    enum errc (*request)(void *ctx, struct err *e);
    /* An object, valid only during the call; an error ends the list. */
    enum errc (*take)(void *ctx, struct str json, struct err *e);
    void *ctx;
};

/* ERR_DENIED: the user has no right to list these objects. */
enum errc kubectl_list_read(struct kubectl_client *c, const struct kubectl_list *l,
                            struct err *reterr) _must_use_;
