/*
 * Opens the server's socket, because libmicrohttpd does not say why it cannot listen. Addresses are
 * numeric, so that the listening address does not depend on a resolver.
 */
#include "listener.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

static bool listener_socket_listen(int fd, const struct addrinfo *a)
{
    int on = 1;
    int off = 0;
    /* Accepted sockets inherit TCP_NODELAY. GnuTLS writes a handshake of TLS 1.3 in pieces, and
     * Nagle's algorithm holds the second one until the peer's delayed ACK, which takes 40 ms. */
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) != 0)
        return false;
    if (a->ai_family == AF_INET6 &&
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)) != 0)
        return false;
    return bind(fd, a->ai_addr, a->ai_addrlen) == 0 && listen(fd, SOMAXCONN) == 0;
}

enum errc listener_open(struct str address, uint16_t port, int *ret_fd, struct err *reterr)
{
    char host[INET6_ADDRSTRLEN];
    char service[sizeof("65535")];
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE};
    struct addrinfo *found = NULL;
    (void)snprintf(host, sizeof(host), "%.*s", STR_ARG(address));
    (void)snprintf(service, sizeof(service), "%u", port);
    if (address.n == 0 || address.n >= sizeof(host) ||
        getaddrinfo(host, service, &hints, &found) != 0)
        return err_set(reterr, ERR_SYNTAX, "not an IP address to listen on: \"%.*s\"",
                       STR_ARG(address));
    int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool ok = fd >= 0 && listener_socket_listen(fd, found);
    int why = errno;
    char text[ADDRESS_TEXT_BYTES];
    address_print(found->ai_addr, text);
    freeaddrinfo(found);
    if (ok) {
        *ret_fd = fd;
        return OK;
    }
    if (fd >= 0)
        (void)close(fd);
    return err_set(reterr, why == EACCES ? ERR_DENIED : ERR_UNAVAILABLE, "cannot listen on %s: %s",
                   text, strerror(why));
}

/*
 * The port is at the same offset in both families. It is copied, because a sockaddr has a weaker
 * alignment.
 */
static uint16_t listener_port_of(const struct sockaddr *a)
{
    static_assert(offsetof(struct sockaddr_in, sin_port) ==
                      offsetof(struct sockaddr_in6, sin6_port),
                  "the port's place");
    uint16_t port = 0;
    memcpy(&port, (const char *)a + offsetof(struct sockaddr_in, sin_port), sizeof(port));
    return ntohs(port);
}

uint16_t listener_port(int fd)
{
    union {
        struct sockaddr any;
        struct sockaddr_in6 largest;
    } a = {.largest = {.sin6_port = 0}};

    socklen_t n = sizeof(a);
    int r = getsockname(fd, &a.any, &n);
    assert(r == 0);
    return listener_port_of(&a.any);
}

void listener_peer(int fd, char text[ADDRESS_TEXT_BYTES])
{
    union {
        struct sockaddr any;
        struct sockaddr_in6 largest;
    } a = {.largest = {.sin6_port = 0}};

    socklen_t n = sizeof(a);
    text[0] = '\0';
    if (getpeername(fd, &a.any, &n) == 0)
        address_print(&a.any, text);
}

void address_print(const struct sockaddr *a, char text[ADDRESS_TEXT_BYTES])
{
    bool v6 = a->sa_family == AF_INET6;
    const char *ip_at = (const char *)a + (v6 ? offsetof(struct sockaddr_in6, sin6_addr)
                                              : offsetof(struct sockaddr_in, sin_addr));
    char ip[INET6_ADDRSTRLEN] = "?";
    (void)inet_ntop(a->sa_family, ip_at, ip, sizeof(ip));
    (void)snprintf(text, ADDRESS_TEXT_BYTES, v6 ? "[%s]:%u" : "%s:%u", ip, listener_port_of(a));
}
