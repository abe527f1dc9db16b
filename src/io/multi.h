/*
 * Private to the HTTP client: libcurl's multi-socket interface on the loop. One multi is one set of
 * kept-alive connections.
 */
#pragma once

#include "loop.h"

#include <curl/curl.h>

struct multi_socket;

struct multi {
    CURLM *curl;
    struct loop *loop;
    uint64_t due_ms; /* when libcurl wants to be called whatever happened; UINT64_MAX: never */
    size_t n;        /* transfers in it */
    bool broken;     /* takes no more of them: they want another multi */
    struct multi_socket *sockets;
    struct multi_socket *spare;
    struct multi *next; /* the owner's, as is owner */
    void *owner;

    /* Set by the owner. Outside of any callback of libcurl's; the handle is still in the multi. */
    void (*finished)(struct multi *m, CURL *easy, CURLcode result);
    /* It cannot go on, nor can any of them where easy is NULL. Within a callback of libcurl's. */
    void (*stuck)(struct multi *m, CURL *easy);
};

enum errc multi_init(struct multi *m, struct loop *l) _must_use_;
void multi_done(struct multi *m); /* no transfer may be left */

/* Not inside a callback of libcurl's. */
enum errc multi_add(struct multi *m, CURL *easy) _must_use_;
void multi_del(struct multi *m, CURL *easy);

/* Lets libcurl work on what is due at now_ms, and reports what finished. Not within itself. */
void multi_run(struct multi *m, uint64_t now_ms);
