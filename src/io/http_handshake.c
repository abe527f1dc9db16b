/*
 * In its epoll mode libmicrohttpd 0.9.75 takes a socket for readable as long as a read has not told
 * it otherwise, and a handshake that wants more does not count as one: between two parts of a
 * handshake it runs again and again. One client that sends half of its hello kept a core busy until
 * its deadline, and 500 made a filter seven times slower.
 *
 * So a connection is suspended while its handshake waits for the other end, and our own loop
 * watches the socket meanwhile: each piece that arrives is one turn, and silence is none.
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
        /* Without memory it stays awake, and is tried again. */
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
