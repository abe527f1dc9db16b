/* Private to the HTTP server: its listening socket, and addresses as text. */
#pragma once

#include "err.h"

#include <arpa/inet.h>

#define ADDRESS_TEXT_BYTES (INET6_ADDRSTRLEN + sizeof("[]:65535"))

/* Bound and listening; address is numeric. "::" takes IPv4, too. The caller closes it. */
enum errc listener_open(struct str address, uint16_t port, int *ret_fd, struct err *reterr)
    _must_use_;

/* The port it is bound to. */
uint16_t listener_port(int fd);

/* The other end of a connection, printed; empty where it has gone. */
void listener_peer(int fd, char text[ADDRESS_TEXT_BYTES]);

/* "127.0.0.1:51234", "[::1]:51234". */
void address_print(const struct sockaddr *a, char text[ADDRESS_TEXT_BYTES]);
