/*
 * Suspends connections that wait in a TLS handshake.
 *
 * In its epoll mode libmicrohttpd 0.9.75 treats a socket as readable until a read says otherwise. A
 * handshake that wants more bytes does not count as such a read. So libmicrohttpd runs again and
 * again between two parts of a handshake. One client that sent half of its ClientHello kept a core
 * busy until its deadline; 500 such clients made a filter seven times slower.
 *
 * So a connection is suspended while its handshake waits for the peer, and our own loop watches the
 * socket: each arriving part costs one turn, and silence costs none.
 */
#include "http_handshake.h"

#include <microhttpd.h>

static void unpark(struct conn *c)
{
    loop_fd_del(&c->parked);
    MHD_resume_connection(c->mhd);
    link_add(&c->table->awake, &c->awake);
}

static void parked_ready(struct loop_fd *f, uint32_t events)
{
    (void)events;
    unpark(CONTAINER_OF(f, struct conn, parked));
}

void handshake_begin(struct conn *c, struct MHD_Connection *mhd)
{
    c->mhd = mhd;
    c->parked = (struct loop_fd){.fd = c->fd, .ready = parked_ready};
    link_add(&c->table->awake, &c->awake);
}

void handshake_end(struct conn *c)
{
    loop_fd_del(&c->parked);
    if (c->awake.next != NULL)
        link_del(&c->awake);
}

void handshakes_park(struct conns *t)
{
    struct conn_link *next;
    for (struct conn_link *l = t->awake.next; l != &t->awake; l = next) {
        struct conn *c = CONTAINER_OF(l, struct conn, awake);
        next = l->next;
        c->parked.events = c->state == CONN_FRESH ? tls_peer_wants(&c->tls) : 0;
        /* No memory for the watch: the connection is not suspended; the next turn retries. */
        if (c->parked.events != 0 && loop_fd_add(t->loop, &c->parked, NULL) != OK)
            continue;
        link_del(l);
        if (c->parked.events != 0)
            MHD_suspend_connection(c->mhd);
    }
}

void handshakes_unpark(struct conns *t)
{
    for (enum conn_state state = 0; state < CONN_STATES; state++) {
        const struct conn_link *ring = &t->rings[state];
        for (struct conn_link *l = ring->next; l != ring; l = l->next) {
            struct conn *c = CONTAINER_OF(l, struct conn, link);
            if (c->parked.loop != NULL)
                unpark(c);
        }
    }
}
