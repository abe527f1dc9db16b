/*
 * LIST in pages, and the events of a WATCH, as the API server writes them (Kubernetes'
 * documentation: API Concepts, "Retrieving large results sets in chunks" and "Efficient detection
 * of changes").
 */
#pragma once

#include "api/store.h"

/* A paged list: every page shows the objects of the first page's moment. */
struct listing {
    uint64_t id; /* 0: its continue tokens have expired */
    uint64_t rv;
    unsigned kind;
    unsigned n;
    unsigned slots[MAX_OBJECTS];
    union object objects[MAX_OBJECTS];
};

struct page {
    const struct listing *list; /* NULL: the continue token has expired */
    bool continued;
    unsigned from;
    unsigned to;
};

void lists_reset(void);
void lists_expire(void); /* ends the validity of all continue tokens */

/* Whether the query selects the pods that have not ended, or all objects of another kind. The lists
 * here do not check it: libcurl 7.88 may drop the query of a request when an allocation fails. */
bool selector_is_right(unsigned kind, struct str query);

/* Finds or begins the list that the query asks for. lag_ms: how far a watch cache is behind, for a
 * query that allows one. */
struct page list_page(unsigned kind, struct str query, uint64_t lag_ms);

/* Calls `wrote`, unless NULL, after each object. */
void list_write(struct text *t, const struct page *p,
                void (*wrote)(void *ctx, unsigned kind, unsigned slot, uint64_t rv), void *ctx);

void list_write_expired(struct text *t); /* the Status of a 410 */

/* Replaces the text by the pod that a GET asks for, and returns its slot; MAX_PODS: by the Status
 * of a 404. */
unsigned pod_write(struct text *t, const struct api_request *r, uint64_t lag_ms, uint64_t *ret_rv);

/* The version that a watch begins after, and for how long it asks. */
struct watch_query {
    uint64_t version;
    uint64_t seconds;
};

struct watch_query watch_query_read(struct str query);

/* Whether a watch of this kind shows the change, which may concern pods that it does not select. */
bool change_shows(const struct change *c);

void change_write(struct text *t, const struct change *c);
void bookmark_write(struct text *t, unsigned kind, uint64_t version);
void watch_error_write(struct text *t, unsigned code, const char *reason, const char *message,
                       const char *more);
