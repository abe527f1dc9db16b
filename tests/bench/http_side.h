/*
 * The two sides of a comparison over HTTP: a request to cardpack, and the same one to an echo that
 * answers with as many bytes. The first answer is checked by the caller; all others must be as
 * long.
 *
 * kube-scheduler names the nodes in another order in each request: its filters run beside each
 * other, and each appends the nodes that pass. So a list of names is sent in some orders in turn.
 */
#pragma once

#include "http_child.h"

#define HTTP_SIDE_ORDERS 16

struct http_side {
    struct blocking_client client;
    struct buf requests[HTTP_SIDE_ORDERS];
    size_t turn;
    size_t answer_n; /* length of a right answer */
};

/* For bench_side.once. ctx: a struct http_side. */
size_t http_side_ask(void *ctx);

/* Prepares a POST of this body. The first answer is in side->client. */
void http_side_open(struct http_side *side, const struct http_child *server, const char *path,
                    struct str body);

/* The same for an echo of as many bytes as `other` answers. */
void http_side_open_echo(struct http_side *side, const struct http_child *server, struct str body,
                         const struct http_side *other);

void http_side_close(struct http_side *side);

/* How often the text is in the bytes. */
size_t http_side_count(struct str in, const char *text);

/* Writes the bytes into a new file, which is removed at exit. */
void http_side_store(char path[static TEMP_PATH], struct str bytes);
