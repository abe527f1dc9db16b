/*
 * What a request asks of the API server, and the parts of an answer that all doubles write alike:
 * the Status, and the head of a list.
 */
#pragma once

#include "api/text.h"
#include "core/cache/cache.h"

enum {
    API_BUDGETS = CACHE_ALL_KINDS, /* a kind of objects that the cache does not hold */
    API_KINDS,
    API_KINDS_EVERYWHERE = API_KINDS - (CACHE_ALL_KINDS - CACHE_KINDS) /* without DRA's */
};

enum api_verb {
    API_LIST,
    API_WATCH,
    API_GET,  /* a pod */
    API_NODE, /* GET or PATCH of one node */
    API_BIND,
    API_EVICT,
    API_EVENT,  /* POST or PATCH */
    API_LEASE,  /* GET, POST or PUT */
    API_GROUP,  /* DRA's group itself, which this API server has */
    API_ABSENT, /* a group that this API server does not have */
    API_UNKNOWN,
};

struct api_request {
    enum api_verb verb;
    struct str method;
    unsigned kind; /* of a list or a watch: an enum cache_kind, or API_BUDGETS */
    struct str ns;
    struct str name; /* "" for the POST of a Lease */
    struct str query;
};

/* `target`: the path, and the query if there is one. */
struct api_request api_request_read(struct str method, struct str target);

/* The decoded value of a query parameter; false: absent. */
bool query_get(struct str query, const char *key, struct text *ret);

/* The value of a parameter that must be a number; `otherwise` if it is absent. */
uint64_t query_number(struct str query, const char *key, uint64_t otherwise);

/* Replaces the text by a Status. `more`: further members, each after a comma. */
void status_write(struct text *t, unsigned code, const char *reason, const char *message,
                  const char *more);

/* Begins a list, up to its items. `left`: items after this page; 0: no continue token. */
void list_head_write(struct text *t, unsigned kind, uint64_t version, const char *token,
                     uint64_t left);

extern const char *const api_kind_names[API_KINDS]; /* "Node" */
