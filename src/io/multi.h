/*
 * Private to the HTTP client: libcurl's multi-socket interface on the loop. One multi is one set of
 * kept-alive connections.
 */
#pragma once

#include "io/loop.h"

#include <curl/curl.h>

struct multi {
    CURLM *curl;
    struct loop *loop;
    uint64_t due_ms;       /* latest time of libcurl's next call; UINT64_MAX: none */
    size_t n;              /* number of its transfers */
    bool broken;           /* takes no new transfers: the client needs another multi */
    struct list spare;     /* sockets for reuse */
    struct list_link link; /* this and owner belong to the owner */
    void *owner;

    /*
     * The owner sets these. finished is called outside libcurl's callbacks; the handle is still in
     * the multi.
     */
    void (*finished)(struct multi *m, CURL *easy, CURLcode result);
    /* This transfer cannot continue; easy NULL: none can. Called inside a libcurl callback. */
    void (*stuck)(struct multi *m, CURL *easy);
};

enum errc multi_init(struct multi *m, struct loop *l) _must_use_;
void multi_done(struct multi *m); /* no transfer may be left */

/* Not inside a libcurl callback. */
enum errc multi_add(struct multi *m, CURL *easy) _must_use_;
void multi_del(struct multi *m, CURL *easy);

/* Lets libcurl do the work due at now_ms, and reports finished transfers. Not reentrant. */
void multi_run(struct multi *m, uint64_t now_ms);
