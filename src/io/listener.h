/* Private to the HTTP server: its listening socket, and addresses as text. */
#pragma once

#include "base/err.h"

#include <arpa/inet.h>

#define ADDRESS_TEXT_BYTES (INET6_ADDRSTRLEN + sizeof("[]:65535"))

/*
 * Returns a bound, listening socket, which the caller closes. address is numeric; "::" accepts IPv4
 * too.
 */
enum errc listener_open(struct str address, uint16_t port, int *ret_fd, struct err *reterr)
    _must_use_;

/* The port that the socket is bound to. */
uint16_t listener_port(int fd);

/* Prints the peer's address; empty if the peer is gone. */
void listener_peer(int fd, char text[ADDRESS_TEXT_BYTES]);

/* "127.0.0.1:51234", "[::1]:51234". */
void address_print(const struct sockaddr *a, char text[ADDRESS_TEXT_BYTES]);
