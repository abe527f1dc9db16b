/* Reads a list of the API server, page by page and object by object. */
#pragma once

#include "core/cache/cache.h"
#include "kubectl/client.h"

/* The list of all objects of a kind that the cache has. */
struct kubectl_source {
    struct str path;
    struct str query; /* selectors, escaped: "fieldSelector=..."; absent: none */
    struct str kind;  /* "PodList" */
    struct str name;  /* for people */
};

/* NULL: the plugin reads no objects of this kind. */
const struct kubectl_source *kubectl_source_of(enum cache_kind kind);

/*
 * Which dialects are read: those of --dialects, else all. But nvidia.com/gpu is HAMi's resource
 * only where a node has HAMi's plugin: without one it means whole cards, as for cardpack. nodes:
 * NULL before they are read.
 */
void kubectl_use_dialects(const struct kubectl_client *c, const struct cache *nodes);

struct kubectl_list {
    struct str path;
    struct str query; /* as of struct kubectl_source, and the next one */
    struct str kind;

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
