/* The peer of the program's connections: HTTP/1.1 written by hand, on nonblocking sockets. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HTTP_PEER_BYTES 65536

struct http_listener {
    int fd;
    uint16_t port;
};

struct http_peer {
    bool open;
    bool ended; /* by the program */
    int fd;
    char in[HTTP_PEER_BYTES]; /* NUL-terminated */
    size_t n_in;
    char out[HTTP_PEER_BYTES];
    size_t n_out;
};

void http_listen(struct http_listener *l);
void http_unlisten(struct http_listener *l);
bool http_accept(const struct http_listener *l, struct http_peer *p);
bool http_connect(struct http_peer *p, uint16_t port);
void http_close(struct http_peer *p); /* by a reset, so that no port stays in use */

/* Sends what waits and reads what has come; false: nothing moved. */
bool http_move(struct http_peer *p);

void http_say(struct http_peer *p, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The end of the head; NULL until the head and the body are complete. An answer without a length is
 * complete when the program closes the connection. */
const char *http_body(const struct http_peer *p, size_t *ret_n);
void http_next(struct http_peer *p); /* drops the message that http_body found */
