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

static void http_handshake_unpark(struct conn *c)
{
    assert(c->mhd != NULL && c->parked.loop != NULL);
    loop_fd_del(&c->parked);
    MHD_resume_connection(c->mhd);
    list_push_back(&c->table->awake, &c->awake);
}

static void http_handshake_parked_ready(struct loop_fd *f, uint32_t events)
{
    (void)events;
    http_handshake_unpark(CONTAINER_OF(f, struct conn, parked));
}

void handshake_begin(struct conn *c, struct MHD_Connection *mhd)
{
    assert(c->mhd == NULL && mhd != NULL && c->state == CONN_FRESH);
    c->mhd = mhd;
    c->parked = (struct loop_fd){.fd = c->fd, .ready = http_handshake_parked_ready};
    list_push_back(&c->table->awake, &c->awake);
}

void handshake_end(struct conn *c)
{
    assert(c->parked.loop == NULL || !list_is_linked(&c->awake));
    loop_fd_del(&c->parked);
    if (list_is_linked(&c->awake))
        list_remove(&c->awake);
}

void handshakes_park(struct conns *t)
{
    LIST_FOR_EACH (struct conn, c, &t->awake, awake) {
        assert(c->parked.loop == NULL);
        c->parked.events = c->state == CONN_FRESH ? tls_peer_wants(&c->tls) : 0;
        /* No memory for the watch: the connection is not suspended; the next turn retries. */
        if (c->parked.events != 0 && loop_fd_add(t->loop, &c->parked, NULL) != OK)
            continue;
        list_remove(&c->awake);
        if (c->parked.events != 0)
            MHD_suspend_connection(c->mhd);
    }
}

void handshakes_unpark(struct conns *t)
{
    for (enum conn_state state = 0; state < CONN_STATES; state++) {
        LIST_FOR_EACH (struct conn, c, &t->in[state], link) {
            if (c->parked.loop != NULL)
                http_handshake_unpark(c);
        }
    }
}
